# fcp_find_torch(FIRST LAST) finds one libtorch, and fcp_fill_torch(TARGET) gives a target its headers
# and libraries.
#
# Both come from one folder, by the places that they have in it. libtorch's own TorchConfig.cmake is
# not asked: it looks for its parts in the folders of the system first, where another torch may lie,
# and that of a torch with CUDA ends where CUDA is not installed, or is another version. Nothing is
# kept in the cache, so that a build folder follows the torch that is there.
#
# Looked at are FIRST, Torch_DIR, Torch_ROOT, CMAKE_PREFIX_PATH, LAST and the system, in this order.
# Sets fcp_torch_prefix, fcp_torch_includes, fcp_torch_libraries, fcp_torch_cuda (of which major
# version of CUDA; empty: none), fcp_torch_is_system, and Torch_VERSION.

# The folder of the torch that this path belongs to: itself or one above, with include/ATen; empty
# where there is none.
function(fcp_torch_around path result)
  set(${result} "" PARENT_SCOPE)
  if(path STREQUAL "")
    return()
  endif()
  get_filename_component(folder "${path}" REALPATH)
  foreach(step RANGE 5)
    if(EXISTS "${folder}/include/ATen/ATen.h")
      set(${result} ${folder} PARENT_SCOPE)
      return()
    endif()
    get_filename_component(folder "${folder}" DIRECTORY)
  endforeach()
endfunction()

# The folder with libc10.so and libtorch_cpu.so of the torch in `prefix`.
function(fcp_torch_library_folder prefix result)
  set(${result} "" PARENT_SCOPE)
  foreach(place lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
    if(EXISTS "${prefix}/${place}/libtorch_cpu.so" AND EXISTS "${prefix}/${place}/libc10.so")
      set(${result} ${prefix}/${place} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# One number of the torch's version.h.
function(fcp_torch_version prefix result)
  set(version)
  foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS "${prefix}/include/${file}")
      foreach(part MAJOR MINOR PATCH)
        file(STRINGS ${prefix}/include/${file} line REGEX "#define TORCH_VERSION_${part} +[0-9]+")
        string(REGEX MATCH "[0-9]+ *$" number "${line}")
        if(NOT number STREQUAL "")
          list(APPEND version ${number})
        endif()
      endforeach()
    endif()
  endforeach()
  list(JOIN version . version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

macro(fcp_find_torch first last)
  # Versions before kept here what they had found.
  get_property(fcp_help CACHE Torch_DIR PROPERTY HELPSTRING)
  if("${fcp_help}" MATCHES "containing a CMake configuration file|Path to a file")
    unset(Torch_DIR CACHE)
  endif()
  set(fcp_torch_prefix)
  foreach(fcp_folder ${first} ${Torch_DIR} ${Torch_ROOT} $ENV{Torch_ROOT})
    if(NOT fcp_torch_prefix)
      fcp_torch_around("${fcp_folder}" fcp_torch_prefix)
    endif()
  endforeach()
  set(fcp_folders ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH})
  list(TRANSFORM fcp_folders REPLACE "/share/cmake/*$" "")  # torch.utils.cmake_prefix_path
  foreach(fcp_folder ${fcp_folders} ${last} ${CMAKE_SYSTEM_PREFIX_PATH})
    if(NOT fcp_torch_prefix AND EXISTS "${fcp_folder}/include/ATen/ATen.h")
      set(fcp_torch_prefix ${fcp_folder})
    endif()
  endforeach()
  if(NOT fcp_torch_prefix)
    message(FATAL_ERROR "fcp: no libtorch is found; install libtorch-dev, or pip install torch and \
name it by -DTorch_DIR=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')")
  endif()
  fcp_torch_library_folder(${fcp_torch_prefix} fcp_torch_folder)
  if(NOT fcp_torch_folder)
    message(FATAL_ERROR "fcp: ${fcp_torch_prefix} has the headers of libtorch, but not libtorch_cpu.so \
and libc10.so; set Torch_DIR to a torch that has both")
  endif()
  fcp_torch_version(${fcp_torch_prefix} Torch_VERSION)
  if(NOT Torch_VERSION)
    message(FATAL_ERROR "fcp: the headers of libtorch in ${fcp_torch_prefix}/include do not say their \
version; set Torch_DIR to a torch of 1.13 or later")
  endif()
  fcp_check_torch()
  fcp_torch_parts()
endmacro()

function(fcp_check_torch)
  # Symbols of C++11's strings: the former ABI has none.
  file(STRINGS ${fcp_torch_folder}/libc10.so name REGEX "__cxx11" LIMIT_COUNT 1)
  if(name STREQUAL "")
    message(FATAL_ERROR "fcp: torch ${Torch_VERSION} in ${fcp_torch_prefix} has the C++ ABI from before \
C++11, and the libraries of this system have not; install a torch of 2.7 or later, or Debian's libtorch-dev")
  endif()
endfunction()

macro(fcp_torch_parts)
  set(fcp_torch_includes ${fcp_torch_prefix}/include
                         ${fcp_torch_prefix}/include/torch/csrc/api/include)
  # The real files: what is linked is then told by its name.
  set(fcp_torch_libraries)
  foreach(fcp_part torch torch_cpu c10)
    if(EXISTS ${fcp_torch_folder}/lib${fcp_part}.so)
      get_filename_component(fcp_part ${fcp_torch_folder}/lib${fcp_part}.so REALPATH)
      list(APPEND fcp_torch_libraries ${fcp_part})
    endif()
  endforeach()
  set(fcp_torch_cuda)
  if(EXISTS ${fcp_torch_folder}/libc10_cuda.so)
    file(STRINGS ${fcp_torch_folder}/libc10_cuda.so fcp_part REGEX "libcudart\\.so\\.[0-9]+"
         LIMIT_COUNT 1)
    string(REGEX MATCH "libcudart\\.so\\.([0-9]+)" fcp_part "${fcp_part}")
    set(fcp_torch_cuda ${CMAKE_MATCH_1})
  endif()
  set(fcp_torch_is_system FALSE)
  if(fcp_torch_prefix IN_LIST CMAKE_SYSTEM_PREFIX_PATH)
    set(fcp_torch_is_system TRUE)
  endif()
endmacro()

# The headers are system headers. The build fills fcp_torch, and the installed package fcp::torch:
# where libtorch lies is found anew on the machine that uses fcp.
function(fcp_fill_torch target)
  target_include_directories(${target} SYSTEM INTERFACE ${fcp_torch_includes})
  # libtorch.so brings libtorch_cuda.so, which no symbol asks for.
  list(GET fcp_torch_libraries 0 first)
  target_link_libraries(${target} INTERFACE "-Wl,--no-as-needed,${first},--as-needed"
                                            ${fcp_torch_libraries})
  target_compile_definitions(${target} INTERFACE USE_DISTRIBUTED USE_C10D_GLOO USE_RPC
                                                 USE_TENSORPIPE)
  target_compile_options(${target} INTERFACE -D_GLIBCXX_USE_CXX11_ABI=1)
  if(fcp_torch_cuda)  # of which fcp's own kernels use some
    target_link_libraries(${target} INTERFACE
                          "-Wl,--as-needed,${fcp_torch_folder}/libc10_cuda.so,--no-as-needed")
  endif()
  file(STRINGS ${fcp_torch_prefix}/include/c10/macros/cmake_macros.h logged
       REGEX "#define C10_USE_GLOG")
  if(logged)  # its headers include glog's
    find_package(glog REQUIRED)
    find_package(gflags REQUIRED)
    target_link_libraries(${target} INTERFACE glog::glog gflags)
  endif()
endfunction()
