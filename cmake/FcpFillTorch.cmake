# fcp_find_torch(FOLDERS...) is find_package(Torch REQUIRED) where several torches are installed. The
# file TorchConfig.cmake of one looks for its parts in the folders of the system first: headers of
# the one would meet libraries of the other. So it is found first, by Torch_DIR, CMAKE_PREFIX_PATH,
# the folders given, and the system, in this order; its own folders then come before all others; and
# what was found must lie in them.
macro(fcp_find_torch)
  find_path(
    Torch_DIR TorchConfig.cmake NO_DEFAULT_PATH
    HINTS ${Torch_ROOT} $ENV{Torch_ROOT} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH} ${ARGN}
          ${CMAKE_SYSTEM_PREFIX_PATH}
    PATH_SUFFIXES Torch share/cmake/Torch lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake/Torch
                  lib/cmake/Torch)
  set(fcp_torch_prefix)
  if(Torch_DIR)
    get_filename_component(fcp_torch_prefix ${Torch_DIR} REALPATH)
    while(NOT EXISTS ${fcp_torch_prefix}/include/ATen AND NOT fcp_torch_prefix STREQUAL "/")
      get_filename_component(fcp_torch_prefix ${fcp_torch_prefix} DIRECTORY)
    endwhile()
    if(fcp_torch_prefix STREQUAL "/")
      set(fcp_torch_prefix)  # its headers lie elsewhere
    endif()
  endif()
  foreach(fcp_cached TORCH_LIBRARY c10_LIBRARY C10_CUDA_LIBRARY kineto_LIBRARY Caffe2_DIR)
    unset(${fcp_cached} CACHE)  # of another torch, perhaps
  endforeach()
  set(fcp_prefix_path ${CMAKE_PREFIX_PATH})
  set(fcp_library_path ${CMAKE_LIBRARY_PATH})
  if(fcp_torch_prefix)
    list(PREPEND CMAKE_PREFIX_PATH ${fcp_torch_prefix})
    list(PREPEND CMAKE_LIBRARY_PATH ${fcp_torch_prefix}/lib)
  endif()
  find_package(Torch REQUIRED)
  set(CMAKE_PREFIX_PATH ${fcp_prefix_path})
  set(CMAKE_LIBRARY_PATH ${fcp_library_path})
  if(fcp_torch_prefix)
    fcp_check_torch(${fcp_torch_prefix})
  endif()
endmacro()

# The file of a library, whether it is named by its path or by a target; empty for others.
function(fcp_library_file library result)
  set(file ${library})
  if(TARGET ${library})
    get_target_property(type ${library} TYPE)
    set(file)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      get_target_property(file ${library} LOCATION)
    endif()
  endif()
  if(file AND EXISTS "${file}")
    get_filename_component(file ${file} REALPATH)
    set(${result} ${file} PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# An error where a header or library of the torch that was found lies outside of its folder.
function(fcp_check_torch prefix)
  foreach(library IN LISTS TORCH_LIBRARIES TORCH_LIBRARY)
    fcp_library_file(${library} file)
    get_filename_component(name "${file}" NAME)
    get_filename_component(folder "${file}" DIRECTORY)
    if(name MATCHES "^lib(torch|c10)" AND NOT folder STREQUAL "${prefix}/lib"
       AND NOT folder STREQUAL "${prefix}/lib64"
       AND NOT folder STREQUAL "${prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
      message(FATAL_ERROR "fcp: ${Torch_DIR} names the library ${file}, which is not of the torch in "
                          "${prefix}; set Torch_DIR to the folder of one TorchConfig.cmake")
    endif()
  endforeach()
  foreach(folder IN LISTS TORCH_INCLUDE_DIRS)
    get_filename_component(real "${folder}" REALPATH)
    if(EXISTS "${real}/ATen" AND NOT real STREQUAL "${prefix}/include")
      message(FATAL_ERROR "fcp: ${Torch_DIR} names the headers ${folder}, which are not of the torch "
                          "in ${prefix}; set Torch_DIR to the folder of one TorchConfig.cmake")
    endif()
  endforeach()
endfunction()

# Gives a target the headers (as system headers), libraries and flags of the libtorch that
# find_package(Torch) has found. The build does so with fcp_torch, and so does the installed package
# with fcp::torch: where libtorch lies is found out anew on the machine that uses fcp.
function(fcp_fill_torch target)
  target_include_directories(${target} SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} INTERFACE ${TORCH_LIBRARIES})
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(${target} INTERFACE ${flags})
endfunction()
