# libxxhash, which has no CMake package in Debian: the target fcp_xxhash.
include_guard()
find_path(FCP_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(FCP_XXHASH_LIBRARY xxhash REQUIRED)
add_library(fcp_xxhash UNKNOWN IMPORTED GLOBAL)
set_target_properties(fcp_xxhash PROPERTIES IMPORTED_LOCATION ${FCP_XXHASH_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${FCP_XXHASH_INCLUDE})
