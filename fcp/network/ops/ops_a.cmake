# Operators that compute with weights, windows, axes and coordinates.
target_sources(
  fcp_network
  PRIVATE checks.cc
          conv.cc
          gemm.cc
          normalization.cc
          pooling.cc
          reduce.cc
          resize.cc
          resize_coordinates.cc
          softmax.cc
          window.cc)
