# The interpreter for which the Python module is built, and the torch that it runs on.
include_guard()

# Sets FCP_PYTHON, and FCP_PYTHON_TORCH, the folder of its torch, with FCP_PYTHON_TORCH_VERSION; both
# are empty where it has none. torch is not imported, which would take seconds. pip builds in an
# environment of its own; -E shows the interpreter as it is outside, and what is only inside counts
# where that has no torch.
macro(fcp_python_torch)
  if(SKBUILD)
    set(FCP_PYTHON ${PYTHON_EXECUTABLE})
  else()
    find_program(FCP_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH DOC "Python with numpy and torch")
    find_program(FCP_PYTHON python3)
  endif()
  set(FCP_PYTHON_TORCH)
  set(FCP_PYTHON_TORCH_VERSION)
  foreach(fcp_outside -E -B)
    if(FCP_PYTHON AND NOT FCP_PYTHON_TORCH)
      execute_process(
        COMMAND
          ${FCP_PYTHON} ${fcp_outside} -c
          "import importlib.util, os, runpy
folder = list(importlib.util.find_spec('torch').submodule_search_locations)[0]
print(folder, runpy.run_path(os.path.join(folder, 'version.py'))['__version__'], sep=';')"
        OUTPUT_VARIABLE fcp_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
        RESULT_VARIABLE fcp_failed)
      if(NOT fcp_failed)
        list(GET fcp_found 0 FCP_PYTHON_TORCH)
        list(GET fcp_found 1 FCP_PYTHON_TORCH_VERSION)
      endif()
    endif()
  endforeach()
endmacro()

# Where the libraries of FCP_PYTHON_TORCH are; Debian's package for Python links to those of the
# system. Empty where there is none.
function(fcp_python_torch_folder result)
  set(${result} "" PARENT_SCOPE)
  if(FCP_PYTHON_TORCH AND EXISTS ${FCP_PYTHON_TORCH}/lib/libc10.so)
    get_filename_component(library ${FCP_PYTHON_TORCH}/lib/libc10.so REALPATH)
    get_filename_component(library ${library} DIRECTORY)
    set(${result} ${library} PARENT_SCOPE)
  endif()
endfunction()

# fcp_find_torch for FCP_BUILD_PYTHON: where the module must be built its interpreter's torch is the
# one, where it may be built that torch comes after what was asked for.
macro(fcp_choose_torch)
  set(fcp_own_torch)
  if(FCP_BUILD_PYTHON)
    fcp_python_torch()
    fcp_python_torch_folder(fcp_own_torch)
    fcp_torch_around("${fcp_own_torch}" fcp_own_torch)
  endif()
  if(FCP_BUILD_PYTHON STREQUAL AUTO)
    fcp_find_torch("" "${fcp_own_torch}")
  else()
    fcp_find_torch("${fcp_own_torch}" "")
  endif()
endmacro()

# Why a module for FCP_PYTHON cannot be built with the libtorch that was found; empty where it can.
function(fcp_python_torch_complaint result)
  set(${result} "" PARENT_SCOPE)
  if(NOT FCP_PYTHON)
    set(${result} "there is no python3" PARENT_SCOPE)
    return()
  endif()
  if(NOT FCP_PYTHON_TORCH)
    set(${result} "${FCP_PYTHON} has no torch; install the one that fcp is to run on first"
        PARENT_SCOPE)
    return()
  endif()
  fcp_python_torch_folder(own)
  get_filename_component(linked ${fcp_torch_folder}/libc10.so REALPATH)
  get_filename_component(linked ${linked} DIRECTORY)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+\\." version "${FCP_PYTHON_TORCH_VERSION}")
  string(FIND "${Torch_VERSION}" "${version}" same)
  if(NOT same EQUAL 0 OR (own AND NOT linked STREQUAL own))
    set(${result} "${FCP_PYTHON} runs torch ${FCP_PYTHON_TORCH_VERSION} in ${FCP_PYTHON_TORCH}, but \
libtorch ${Torch_VERSION} in ${fcp_torch_prefix} was found; leave Torch_DIR and CMAKE_PREFIX_PATH alone, or set \
FCP_PYTHON to the interpreter of that torch" PARENT_SCOPE)
  endif()
endfunction()
