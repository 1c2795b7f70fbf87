# fcp_room(NAME SOURCES... ) declares the library of one room, fcp_NAME, with fcp's warnings.
# fcp_test(NAME SOURCES...) declares one test program and registers its cases with ctest.
include_guard()

add_library(fcp_warnings INTERFACE)
target_compile_options(fcp_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                                              -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping and endless copies in "text" + std::to_string(i) where there are none.
  target_compile_options(fcp_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # g++ 13 sees an insertion beyond the end of a vector that it took to have one number.
  target_compile_options(fcp_warnings INTERFACE -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(FCP_WERROR)
  target_compile_options(fcp_warnings INTERFACE -Werror)
endif()

# With FCP_UNITY, so many files of one target are compiled together: what costs is what a file
# includes, libtorch's templates above all, and twenty files then pay for it once. Names in anonymous
# namespaces must be unique among the files of a target.
function(fcp_unite target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FCP_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# Of a target where no time is spent when it runs, less is optimised: it compiles in half the time.
function(fcp_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

function(fcp_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(fcp_${name} STATIC ${ROOM_SOURCES})
  fcp_unite(fcp_${name} 20)
  if(ROOM_COLD)
    fcp_cold(fcp_${name})
  endif()
  target_include_directories(fcp_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(fcp_${name} PRIVATE $<BUILD_INTERFACE:fcp_warnings>)
  foreach(room IN LISTS ROOM_ROOMS)
    target_link_libraries(fcp_${name} PUBLIC fcp_${room})
  endforeach()
  target_link_libraries(fcp_${name} PUBLIC ${ROOM_LIBRARIES})
endfunction()

function(fcp_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  fcp_unite(${name} 8)
  fcp_cold(${name})
  target_link_libraries(${name} PRIVATE fcp_warnings ${TEST_LIBRARIES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set(environment OMP_WAIT_POLICY=passive)  # spinning threads make a busy machine crawl
  if(FCP_SANITIZED)
    # libtorch, OpenBLAS and protobuf keep memory until the process ends.
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}"
                                          ENVIRONMENT "${environment}")
endfunction()
