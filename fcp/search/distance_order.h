// The norm by which a surrogate feature is far from the feature it began at.
#pragma once

namespace fcp {

enum class DistanceOrder { kLargest, kEuclidean, kSum };  // ℓ∞, ℓ2, ℓ1

}  // namespace fcp
