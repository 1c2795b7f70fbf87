# Libraries that libtorch is linked with and does not use. Debian's brings OpenCV, FFmpeg, ZeroMQ and
# others, and through them GDAL, Qt and 200 more, of which it calls nothing; loading them is a third
# of the processor time of a short command. An empty library under their names, found first, stands
# in for them in a program that nothing else is loaded into.
include_guard()

# The names of the libraries, of all below it, that the loader finds for a file.
function(fcp_all_libraries file result)
  execute_process(COMMAND ldd ${file} OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCHALL "[^ \t\n/]+\\.so[^ \t\n]*" names "${text}")
  set(${result} "${names}" PARENT_SCOPE)
endfunction()

# Sets the names that no other library needs: not those that libtorch uses, nor these files.
function(fcp_unused_libraries result)
  set(${result} "" PARENT_SCOPE)
  if(NOT fcp_torch_is_system)
    return()
  endif()
  execute_process(COMMAND ldd -u ${fcp_torch_folder}/libtorch_cpu.so OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCHALL "/[^ \t\n]+\\.so[^ \t\n]*" paths "${text}")
  set(unused)
  foreach(path IN LISTS paths)
    get_filename_component(name ${path} NAME)
    if(name MATCHES "^lib(opencv_|av|sw)")  # those that are large, or bring many
      list(APPEND unused ${name})
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${fcp_torch_folder}/libtorch_cpu.so
                  OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCHALL "NEEDED +[^ \n]+" lines "${text}")
  set(used ${ARGN})
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "NEEDED +" "" name "${line}")
    if(NOT name IN_LIST unused AND EXISTS ${fcp_torch_folder}/${name})
      list(APPEND used ${fcp_torch_folder}/${name})
    endif()
  endforeach()
  foreach(file IN LISTS used)
    if(EXISTS ${file} AND unused)
      fcp_all_libraries(${file} names)
      if(names)
        list(REMOVE_ITEM unused ${names})
      endif()
    endif()
  endforeach()
  set(${result} "${unused}" PARENT_SCOPE)
endfunction()

# Puts the empty library, by all of the names, into a folder beside the program, where it looks first.
function(fcp_leave_out target folder)
  if(NOT ARGN)
    return()
  endif()
  set(place ${PROJECT_BINARY_DIR}/bin/${folder})
  set(empty ${place}/libempty.so)
  add_custom_command(
    OUTPUT ${empty}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${place}
    COMMAND ${CMAKE_CXX_COMPILER} -shared -nostdlib -x c++ /dev/null -o ${empty}
    VERBATIM)
  add_custom_target(${target}_left_out DEPENDS ${empty})
  add_dependencies(${target} ${target}_left_out)
  file(MAKE_DIRECTORY ${place})
  foreach(name ${ARGN})
    file(CREATE_LINK libempty.so ${place}/${name} SYMBOLIC)
  endforeach()
  # As DT_RPATH, which holds for the libraries of libraries; DT_RUNPATH does not.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH $ORIGIN/${folder})
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH $ORIGIN/${folder})
endfunction()
