# The interpreter for which the Python module is built, and the torch that it runs on.
include_guard()

# Sets FCP_PYTHON, and FCP_PYTHON_TORCH, the folder of its torch, with FCP_PYTHON_TORCH_VERSION; both
# are empty where it has none. torch is not imported: pip builds in an environment without it, by an
# interpreter that has it, which -E shows as it is.
macro(fcp_python_torch)
  if(SKBUILD)
    set(FCP_PYTHON ${PYTHON_EXECUTABLE})
  else()
    find_program(FCP_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH DOC "Python with numpy and torch")
    find_program(FCP_PYTHON python3)
  endif()
  set(FCP_PYTHON_TORCH)
  set(FCP_PYTHON_TORCH_VERSION)
  if(FCP_PYTHON)
    execute_process(
      COMMAND
        ${FCP_PYTHON} -E -c
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
  # Of one torch there is one libc10; Debian's package for Python links to that of the system.
  set(linked)
  foreach(library IN LISTS TORCH_LIBRARIES)
    fcp_library_file(${library} file)
    if(file MATCHES "/libc10\\.so")
      set(linked ${file})
    endif()
  endforeach()
  get_filename_component(own ${FCP_PYTHON_TORCH}/lib/libc10.so REALPATH)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+\\." version "${FCP_PYTHON_TORCH_VERSION}")
  string(FIND "${Torch_VERSION}" "${version}" same)
  if(NOT same EQUAL 0 OR (linked AND EXISTS ${own} AND NOT linked STREQUAL own))
    set(${result} "${FCP_PYTHON} runs torch ${FCP_PYTHON_TORCH_VERSION} in ${FCP_PYTHON_TORCH}, but \
libtorch ${Torch_VERSION} of ${Torch_DIR} was found; set Torch_DIR to the folder of that torch's \
TorchConfig.cmake, in a fresh build folder" PARENT_SCOPE)
  endif()
endfunction()
