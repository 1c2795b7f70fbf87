# XGBoost, whose CMake package in Debian wants the program of another package: the target
# fcp_xgboost, where the library is there. Without it fcp trains networks alone.
include_guard()
find_path(FCP_XGBOOST_INCLUDE xgboost/c_api.h)
find_library(FCP_XGBOOST_LIBRARY xgboost)
if(FCP_XGBOOST_INCLUDE AND FCP_XGBOOST_LIBRARY)
  add_library(fcp_xgboost INTERFACE IMPORTED GLOBAL)
  target_include_directories(fcp_xgboost INTERFACE ${FCP_XGBOOST_INCLUDE})
  target_link_libraries(fcp_xgboost INTERFACE ${FCP_XGBOOST_LIBRARY})
else()
  message(STATUS "fcp is built without XGBoost: fcp fit trains networks alone, without trees")
endif()
