// The build has no XGBoost.
#include "fcp/base/error.h"
#include "fcp/training/boosting.h"

namespace fcp {

bool can_boost() { return false; }

BoostedTrees boost(const BoostRows&, const BoostRows&, const BoostOptions&) {
  fail("fcp is built without XGBoost, which gradient-boosted trees need");
}

}  // namespace fcp
