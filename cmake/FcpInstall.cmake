# cmake --install, find_package(fcp) and the Debian packages.
#
# Two components: `program` (fcp, its manual page and completion) and `development` (static libraries,
# the shared library of the C API, headers and the CMake package). Every module is a target fcp::MODULE, and fcp::fcp is all of them. What
# fcp stands on is found anew where it is used; fcpConfig.cmake says what that is.
include_guard()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fcp)

# The libraries. fcp_torch is exported empty, and filled by fcpConfig.cmake with the libtorch found
# there.
set(exported fcp fcp_torch fcp_onnx)
foreach(module IN LISTS FCP_MODULES)
  list(APPEND exported fcp_${module})
  set_target_properties(fcp_${module} PROPERTIES EXPORT_NAME ${module})
  target_include_directories(fcp_${module} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(fcp_torch PROPERTIES EXPORT_NAME torch)
set_target_properties(fcp_onnx PROPERTIES EXPORT_NAME onnx)
if(TARGET fcp_onnx_messages)
  list(APPEND exported fcp_onnx_messages)
  set_target_properties(fcp_onnx_messages PROPERTIES EXPORT_NAME onnx_messages)
endif()
install(TARGETS ${exported} EXPORT fcpTargets ARCHIVE COMPONENT development)
install(EXPORT fcpTargets NAMESPACE fcp:: DESTINATION ${package_dir} COMPONENT development)

# The public headers, all of them; every other header is fcp's own.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fcp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.h")

# The C API, a shared library: fcp::c. Where libtorch is not in a folder of the system, it must find
# it again.
set_target_properties(fcp_c PROPERTIES EXPORT_NAME c INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS fcp_c EXPORT fcpTargets LIBRARY COMPONENT development)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" FCP_TORCH_MINOR "${Torch_VERSION}")
configure_package_config_file(cmake/fcpConfig.cmake.in ${PROJECT_BINARY_DIR}/fcpConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fcpConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fcpConfig.cmake ${PROJECT_BINARY_DIR}/fcpConfigVersion.cmake
              cmake/FcpFindTorch.cmake cmake/FcpXgboost.cmake cmake/FcpXxhash.cmake
        DESTINATION ${package_dir} COMPONENT development)

# The program. Where libtorch is not in a folder of the system (pip's is not), it must find it again.
set_target_properties(fcp_core PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS fcp_program RUNTIME COMPONENT program)
install(TARGETS fcp_core RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/fcp COMPONENT program)
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
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME fcp)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "Turns a trained network into one that says how sure it is: the program fcp.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfcp-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libtorch-dev, libonnx-dev, libprotobuf-dev, nlohmann-json3-dev, zlib1g-dev, libssl-dev, libxxhash-dev")
if(JPEG_FOUND)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libjpeg-dev")
endif()
if(PNG_FOUND)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libpng-dev")
endif()
if(TARGET fcp_xgboost)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libxgboost-dev")
endif()
if(FCP_WITH_MPI)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libopenmpi-dev")
endif()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Feature conformal prediction for C++: libraries, headers and find_package(fcp).")
set(CPACK_GENERATOR DEB)
include(CPack)
