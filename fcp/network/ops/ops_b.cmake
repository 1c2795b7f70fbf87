target_sources(
  fcp_network
  PRIVATE activations.cc
          unary.cc
          arithmetic.cc
          logic.cc
          shape.cc
          slice.cc
          expand.cc)
