# The protobuf messages of ONNX, as target fcp_onnx.
#
# Debian's libtorch links libonnx_proto; a second copy of the same messages in one process aborts at
# start, so there we must use Debian's. With another libtorch they are generated from an onnx.proto: the one of
# the Python package onnx, or -DFCP_ONNX_PROTO=path.
include_guard()
find_package(Protobuf REQUIRED)
if(fcp_torch_is_system OR NOT FCP_TORCH)
  find_package(ONNX CONFIG QUIET)
endif()
add_library(fcp_onnx INTERFACE)
set(FCP_ONNX_INSTALLED FALSE)
if(ONNX_FOUND AND NOT FCP_ONNX_PROTO)
  set(FCP_ONNX_INSTALLED TRUE)
  message(STATUS "fcp: ONNX messages of the installed libonnx_proto")
  set(FCP_ONNX_TARGET onnx_proto)
  if(TARGET ONNX::onnx_proto)  # since ONNX 1.16
    set(FCP_ONNX_TARGET ONNX::onnx_proto)
  endif()
  target_link_libraries(fcp_onnx INTERFACE ${FCP_ONNX_TARGET})
  target_compile_definitions(fcp_onnx INTERFACE FCP_ONNX_HEADER=<onnx/onnx_pb.h>)
else()
  if(NOT FCP_ONNX_PROTO)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -c
              "import importlib.util, os
print(os.path.join(os.path.dirname(importlib.util.find_spec('onnx').origin), 'onnx.proto'))"
      ERROR_QUIET OUTPUT_VARIABLE FCP_ONNX_PROTO OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT EXISTS "${FCP_ONNX_PROTO}")
    message(FATAL_ERROR "fcp: no onnx.proto; install libonnx-dev, or the Python package onnx, "
                        "or set FCP_ONNX_PROTO")
  endif()
  message(STATUS "fcp: ONNX messages generated from ${FCP_ONNX_PROTO}")
  set(generated ${PROJECT_BINARY_DIR}/onnx)
  file(MAKE_DIRECTORY ${generated})
  configure_file(${FCP_ONNX_PROTO} ${generated}/fcp_onnx.proto COPYONLY)
  add_custom_command(
    OUTPUT ${generated}/fcp_onnx.pb.cc ${generated}/fcp_onnx.pb.h
    COMMAND protobuf::protoc --proto_path=${generated} --cpp_out=${generated} fcp_onnx.proto
    DEPENDS ${generated}/fcp_onnx.proto)
  # pip's libtorch brings the headers of another protobuf, whose symbols it hides. Ours come first,
  # through a link beside the generated code. The static library, if it can be part of a shared one,
  # which Debian's cannot; otherwise what is built needs the shared one at run time.
  file(CREATE_LINK ${Protobuf_INCLUDE_DIRS}/google ${generated}/google SYMBOLIC)
  find_library(FCP_STATIC_PROTOBUF NAMES libprotobuf.a)
  if(FCP_STATIC_PROTOBUF)
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/protobuf_probe.cc)
    file(WRITE ${probe} "#include <google/protobuf/arena.h>\nvoid* probe() { return new google::protobuf::Arena; }\n")
    try_compile(FCP_PROTOBUF_FITS_SHARED ${PROJECT_BINARY_DIR}/probe SOURCES ${probe}
                CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${Protobuf_INCLUDE_DIRS}
                            -DCMAKE_POSITION_INDEPENDENT_CODE=ON
                COMPILE_DEFINITIONS -fPIC
                LINK_OPTIONS -shared
                LINK_LIBRARIES ${FCP_STATIC_PROTOBUF} Threads::Threads)
  endif()
  add_library(fcp_onnx_messages STATIC ${generated}/fcp_onnx.pb.cc)
  target_include_directories(fcp_onnx_messages PUBLIC $<BUILD_INTERFACE:${generated}>)
  if(FCP_STATIC_PROTOBUF AND FCP_PROTOBUF_FITS_SHARED)
    target_link_libraries(fcp_onnx_messages PUBLIC ${FCP_STATIC_PROTOBUF} Threads::Threads)
  else()
    target_link_libraries(fcp_onnx_messages PUBLIC protobuf::libprotobuf)
  endif()
  target_link_libraries(fcp_onnx INTERFACE fcp_onnx_messages)
  target_compile_definitions(fcp_onnx INTERFACE FCP_ONNX_HEADER=<fcp_onnx.pb.h>)
endif()
