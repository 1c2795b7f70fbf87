# cmake --install, find_package(fcp) and the Debian packages.
#
# Three components: `program` (fcp, its manual page and completion), `runtime` (libfcp.so) and
# `development` (the public headers, the CMake package, and the name by which the linker finds
# libfcp); with Debian's Python a fourth, `python3` (python/CMakeLists.txt). A program links fcp::fcp,
# or fcp::c for C, and needs nothing else; fcp/tensors.h wants libtorch's headers, which
# find_package(fcp COMPONENTS tensors) finds for fcp::tensors.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Where libtorch is not in a folder of the system (pip's is not), what was linked with it must find it
# again.
set_target_properties(fcp_library PROPERTIES EXPORT_NAME library INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(fcp_c PROPERTIES EXPORT_NAME c)

configure_package_config_file(cmake/fcpConfig.cmake.in ${PROJECT_BINARY_DIR}/fcpConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fcp)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fcpConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)

# libfcp, the public headers (every other header is fcp's own) and the CMake package, in folders that
# have these names, as a set of exported targets of its own. MORE goes to every install().
function(fcp_install_library set folder include runtime development)
  cmake_parse_arguments(INSTALL "" "" "NAMELINK;MORE" ${ARGN})
  install(TARGETS fcp_library EXPORT ${set} ARCHIVE DESTINATION ${folder} COMPONENT ${development} ${INSTALL_MORE}
          LIBRARY DESTINATION ${folder} COMPONENT ${runtime} ${INSTALL_MORE} ${INSTALL_NAMELINK}
          INCLUDES DESTINATION ${include})
  install(TARGETS fcp fcp_c EXPORT ${set})
  install(EXPORT ${set} FILE fcpTargets.cmake NAMESPACE fcp:: DESTINATION ${folder}/cmake/fcp
          COMPONENT ${development} ${INSTALL_MORE})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fcp DESTINATION ${include}
          COMPONENT ${development} ${INSTALL_MORE} FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_BINARY_DIR}/fcpConfig.cmake ${PROJECT_BINARY_DIR}/fcpConfigVersion.cmake
                cmake/FcpFindTorch.cmake cmake/FcpXgboost.cmake cmake/FcpXxhash.cmake
          DESTINATION ${folder}/cmake/fcp COMPONENT ${development} ${INSTALL_MORE})
endfunction()
fcp_install_library(fcpTargets ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR} runtime
                    development NAMELINK NAMELINK_COMPONENT development)
if(TARGET _fcp)  # in the Python package, too; a wheel holds no links
  set(native fcp/torch-${FCP_TORCH_MINOR})
  set_property(TARGET fcp_library APPEND PROPERTY INSTALL_RPATH $ORIGIN/../../../torch/lib)
  fcp_install_library(fcpWheelTargets ${native}/lib ${native}/include python python NAMELINK
                      NAMELINK_SKIP MORE EXCLUDE_FROM_ALL)
endif()
if(NOT TARGET fcp_program)
  return()
endif()

# The program. Where libtorch is not in a folder of the system (pip's is not), it must find it again.
set_target_properties(fcp_core PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS fcp_program RUNTIME COMPONENT program)
install(TARGETS fcp_core RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/fcp COMPONENT program)
if(TARGET fcp_core_left_out)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/bin/unused DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/fcp
          COMPONENT program)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
# It writes its manual page and completion itself; $<…> keeps that to the moment of installation.
install(CODE "
  set(made \"${PROJECT_BINARY_DIR}/installed\")
  file(MAKE_DIRECTORY \${made})
  execute_process(COMMAND \"$<TARGET_FILE:fcp_program>\" man OUTPUT_FILE \${made}/fcp.1
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"$<TARGET_FILE:fcp_program>\" completion bash OUTPUT_FILE \${made}/fcp
                  COMMAND_ERROR_IS_FATAL ANY)"
        COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/installed/fcp.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/installed/fcp
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)

# cpack -G DEB, or `make package`.
set(CPACK_PACKAGE_NAME fcp)
set(CPACK_PACKAGE_VENDOR "the fcp authors")
set(CPACK_PACKAGE_CONTACT "the fcp authors (see SECURITY.md)")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Prediction intervals with guaranteed coverage for networks")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME fcp)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "Turns a trained network into one that says how sure it is: the program fcp.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libfcp${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Feature conformal prediction: the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfcp-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libfcp${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS libtorch-dev)  # of fcp/tensors.h
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Feature conformal prediction for C++ and C: headers and find_package(fcp).")
if(FCP_DEBIAN_PYTHON)  # the module runs with this minor version alone
  list(APPEND CPACK_COMPONENTS_ALL python3)
  string(REGEX MATCH "[0-9]+$" minor ${FCP_DEBIAN_PYTHON})
  math(EXPR minor "${minor} + 1")
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_NAME python3-fcp)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS
      "python3 (>= ${FCP_DEBIAN_PYTHON}~), python3 (<< 3.${minor}~), python3-numpy, python3-torch")
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_RECOMMENDS "python3-onnx")  # of networks made by torch
  set(CPACK_COMPONENT_PYTHON3_DESCRIPTION "Feature conformal prediction: the package for Python 3.")
  # Compiled files come and go with the package.
  foreach(script "postinst:py3compile" "prerm:py3clean")
    string(REPLACE ":" ";" script ${script})
    list(GET script 0 when)
    list(GET script 1 command)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/debian/${when} CONTENT
         "#!/bin/sh\nset -e\nif command -v ${command} >/dev/null; then ${command} -p python3-fcp; fi\n")
    file(CHMOD ${PROJECT_BINARY_DIR}/debian/${when} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
         GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    list(APPEND CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/${when})
  endforeach()
endif()
if(NOT FCP_SHARED)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL runtime)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
      "libtorch-dev, libonnx-dev, libprotobuf-dev, zlib1g-dev, libssl-dev, libxxhash-dev, libxgboost-dev, libjpeg-dev, libpng-dev")
endif()
set(CPACK_GENERATOR DEB)
include(CPack)
