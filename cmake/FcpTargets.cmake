# fcp_module(NAME SOURCES... ) declares the library of one module, fcp_NAME, with fcp's warnings.
# COLD: no time is spent in it when it runs; COLD_SOURCES: nor in these files of it.
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

# Seconds of the longest tests: ctest starts these first, so that no core waits for one at the end.
# The first line are fast tests, the others slow ones.
set(FCP_COSTS
    scores_test=50 cli_fast=30 bounds_test=25 cli_manual=25 calibration_test=20 training_test=18
    networks_parity_test=18 python_interface_test=16 package_examples=14 export_test=12
    cli_road=257 cli_ranks=206 python_guide_test=112 cli_bad_input=110 cli_calibration=106 cli_fit=94
    cli_export=90 cli_console=84 cli_production=77 cli_segment=74 cli_kill=61 cli_levels=61
    cli_changes=59 package_install=51 cli_promises=50 cli_numbers=49 cli_miniature=45 cli_labels=39)
function(fcp_cost test)
  foreach(pair IN LISTS FCP_COSTS)
    if(pair MATCHES "^${test}=([0-9]+)$")
      set_tests_properties(${test} PROPERTIES COST ${CMAKE_MATCH_1})
    endif()
  endforeach()
endfunction()

# With FCP_UNITY, so many files of one target are compiled together: what costs is what a file
# includes, libtorch's templates above all, and 24 files then pay for it once. Names in anonymous
# namespaces must be unique among the files of a target.
function(fcp_unite target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FCP_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# Of a target where no time is spent when it runs, less is optimised, so that it compiles faster.
# From g++ 13 on -O1 and -O3 differ in options of the processor, in which a precompiled header must
# agree with those who use it; -O2 and -O3 do not.
function(fcp_cold target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(level -O2)
  else()
    set(level -O1)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

# Modules whose numbers change their type only where they say so.
set(FCP_EXACT_NUMBERS bounds conformal graph monitoring search)

function(fcp_module name)
  cmake_parse_arguments(MODULE "COLD" "" "SOURCES;COLD_SOURCES;MODULES;LIBRARIES" ${ARGN})
  add_library(fcp_${name} STATIC ${MODULE_SOURCES})
  fcp_unite(fcp_${name} 24)
  if(MODULE_COLD)
    fcp_cold(fcp_${name})
  endif()
  target_include_directories(fcp_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(fcp_${name} PRIVATE $<BUILD_INTERFACE:fcp_warnings>)
  if(name IN_LIST FCP_EXACT_NUMBERS)
    target_compile_options(fcp_${name} PRIVATE -Wconversion -Wsign-conversion)
  endif()
  foreach(module IN LISTS MODULE_MODULES)
    target_link_libraries(fcp_${name} PUBLIC fcp_${module})
  endforeach()
  target_link_libraries(fcp_${name} PUBLIC ${MODULE_LIBRARIES})
  if(MODULE_COLD_SOURCES)
    add_library(fcp_${name}_cold OBJECT ${MODULE_COLD_SOURCES})
    fcp_unite(fcp_${name}_cold 24)
    fcp_cold(fcp_${name}_cold)
    target_include_directories(fcp_${name}_cold PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    list(TRANSFORM MODULE_MODULES PREPEND fcp_)
    target_link_libraries(fcp_${name}_cold PRIVATE fcp_warnings ${MODULE_MODULES} ${MODULE_LIBRARIES})
    target_sources(fcp_${name} PRIVATE $<TARGET_OBJECTS:fcp_${name}_cold>)
  endif()
endfunction()

function(fcp_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 900)  # a busy machine included
  endif()
  add_executable(${name} ${TEST_SOURCES})
  fcp_unite(${name} 8)
  fcp_cold(${name})
  if(FCP_BUILD_FUZZERS)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/fuzz/fill_bits.cc)
  endif()
  target_link_libraries(${name} PRIVATE fcp_warnings ${TEST_LIBRARIES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set(environment OMP_WAIT_POLICY=passive)  # spinning threads make a busy machine crawl
  if(FCP_SANITIZED)
    # libtorch, OpenBLAS and protobuf keep memory until the process ends.
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}"
                                          ENVIRONMENT "${environment}")
  fcp_cost(${name})
endfunction()
