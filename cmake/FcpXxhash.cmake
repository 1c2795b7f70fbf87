# libxxhash, which has no CMake package in Debian: the target fcp_xxhash. Without it files are
# watched by SHA-256 instead, which is several times slower.
include_guard()
find_path(FCP_XXHASH_INCLUDE xxhash.h)
find_library(FCP_XXHASH_LIBRARY xxhash)
add_library(fcp_xxhash INTERFACE IMPORTED GLOBAL)
if(FCP_XXHASH_INCLUDE AND FCP_XXHASH_LIBRARY)
  target_include_directories(fcp_xxhash INTERFACE ${FCP_XXHASH_INCLUDE})
  target_link_libraries(fcp_xxhash INTERFACE ${FCP_XXHASH_LIBRARY})
  target_compile_definitions(fcp_xxhash INTERFACE FCP_HAS_XXHASH)
else()
  message(STATUS "fcp is built without libxxhash: blocks of files are hashed by SHA-256")
endif()
