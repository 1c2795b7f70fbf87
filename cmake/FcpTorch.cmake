# Finds libtorch: that of the interpreter for which the Python module is built, FCP_PYTHON, or
# Debian's libtorch-dev. Where no module must be built, Torch_DIR and CMAKE_PREFIX_PATH name another
# one (cmake -DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')).
# The target fcp_torch carries its headers, as system headers, and its libraries.
include_guard()
include(FcpFindTorch)
include(FcpPythonTorch)
fcp_choose_torch()
message(STATUS "fcp: libtorch ${Torch_VERSION} of ${fcp_torch_prefix}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" FCP_TORCH_MINOR "${Torch_VERSION}")

# fcp's own kernels are built where libtorch and this machine have the same CUDA.
option(FCP_CUDA_KERNELS "Build fcp's own CUDA kernels where libtorch and this machine have CUDA" ON)
set(FCP_CUDA FALSE)
if(fcp_torch_cuda AND FCP_CUDA_KERNELS)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION MATCHES "^${fcp_torch_cuda}\\.")
      find_package(CUDAToolkit REQUIRED)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it of nvcc 13
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(FCP_CUDA TRUE)
      add_compile_definitions(FCP_CUDA)  # fcp/nn/kernels/cuda/cuda_kernels.h
      message(STATUS "fcp: CUDA kernels by ${CMAKE_CUDA_COMPILER}")
    else()
      message(STATUS "fcp: without CUDA kernels: ${CMAKE_CUDA_COMPILER} is of CUDA \
${CMAKE_CUDA_COMPILER_VERSION}, libtorch of ${fcp_torch_cuda}")
    endif()
  else()
    message(STATUS "fcp: without CUDA kernels: there is no nvcc")
  endif()
endif()

# What fcp's kernels are compiled for: each architecture is a second of compiling and a part of the
# file. Without a list: the devices of this machine, as nvidia-smi names them, and the last three of
# data centres; a device between two of them runs what is compiled for the lower one.
set(FCP_CUDA_ARCHITECTURES "" CACHE STRING
    "CUDA architectures of fcp's kernels, such as 80;90 or native; empty: native and 75;80;90")
function(fcp_cuda_architectures result)
  set(architectures ${FCP_CUDA_ARCHITECTURES})
  if(NOT architectures)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" devices "${found}")
      string(REPLACE "." "" architectures "${devices}")
    endif()
    list(APPEND architectures 75 80 90)
    list(REMOVE_DUPLICATES architectures)
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

# fcp_kernels(TARGET FILES...) adds CUDA sources to a target: compiled by themselves, because the
# flags of the C++ files are not nvcc's. Products and sums are fused only where a file says so: the
# same arithmetic gives the same bits wherever it stands.
function(fcp_kernels target)
  add_library(${target}_kernels OBJECT ${ARGN})
  target_include_directories(${target}_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target}_kernels PRIVATE --fmad=false --expt-relaxed-constexpr)
  fcp_cuda_architectures(architectures)
  set_target_properties(
    ${target}_kernels PROPERTIES CUDA_STANDARD 20 CUDA_ARCHITECTURES "${architectures}"
                                 POSITION_INDEPENDENT_CODE ON)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_kernels>)
  target_link_libraries(${target} PUBLIC CUDA::cudart)
endfunction()

add_library(fcp_torch INTERFACE)
fcp_fill_torch(fcp_torch)

# libtorch's headers take many seconds a file; compiled once, with the JSON that most files read too,
# they are shared by every target that calls fcp_use_torch_header. Not <torch/torch.h>: modules,
# optimisers and data loaders, which fcp does not use, would double what every file has to load.
add_library(fcp_torch_header OBJECT ${CMAKE_CURRENT_LIST_DIR}/torch_header.cc)
target_link_libraries(fcp_torch_header PUBLIC fcp_torch nlohmann_json::nlohmann_json)
set_target_properties(fcp_torch_header PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(fcp_torch_header PRIVATE -fPIC)
target_precompile_headers(fcp_torch_header PRIVATE <torch/types.h> <torch/utils.h>
                           <torch/csrc/autograd/autograd.h> <nlohmann/json.hpp>)
function(fcp_use_torch_header target)
  if(TARGET ${target}_cold)  # fcp_module
    fcp_use_torch_header(${target}_cold)
  endif()
  # The header is compiled with -fPIC; a program must be, too, to be able to use it.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM fcp_torch_header)
endfunction()
