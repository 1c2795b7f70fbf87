// The norm of feature space as the search of a surrogate feature names it.
#pragma once

#include "fcp/bounds/ball.h"
#include "fcp/search/distance_order.h"

namespace fcp {

inline DistanceOrder distance_order(Norm norm) {
  switch (norm) {
    case Norm::kInf:
      return DistanceOrder::kLargest;
    case Norm::kTwo:
      return DistanceOrder::kEuclidean;
    default:
      return DistanceOrder::kSum;
  }
}

}  // namespace fcp
