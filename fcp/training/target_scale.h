// At which scale a target is learned: as it is, or by its logarithm, where noise grows with the
// value. Two short boosted members per scale, each on half of at most 6,000 rows, predict the other
// half. Intervals around these predictions, whose ends are the 5 % and 95 % quantiles of the
// residuals in ten bins of the prediction, are mapped back to the target, and the scale with the
// smaller interval score is taken; the logarithm where its score is smaller by 2 % or more. Bins
// let either scale adapt to noise that varies, as heads do later.
//
// Cost: that of four boosters of 150 rounds. Tested by tests/training/target_scale_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/training/tree_members.h"

namespace fcp {

enum class TargetScale { kAuto, kIdentity, kLog };

// x [N, columns] as trees read it, y [N, 1]. False where the target has no logarithm, where rows
// are fewer than 200, and in a build without XGBoost.
// `weight` [N] of the rows; undefined: all 1.
bool prefers_log(const Array& x, const Array& y, const std::vector<CategoryColumns>& categories,
                 uint64_t seed, const torch::Tensor& weight = {});

}  // namespace fcp
