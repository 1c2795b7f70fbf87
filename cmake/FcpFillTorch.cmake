# Gives a target the headers (as system headers), libraries and flags of the libtorch that
# find_package(Torch) has found. The build does so with fcp_torch, and so does the installed package
# with fcp::torch: where libtorch lies is found out anew on the machine that uses fcp.
function(fcp_fill_torch target)
  target_include_directories(${target} SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(${target} INTERFACE ${TORCH_LIBRARIES})
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(${target} INTERFACE ${flags})
endfunction()
