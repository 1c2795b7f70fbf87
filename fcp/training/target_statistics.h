// Categories as trees read them, by the targets of the rows of each level:
//
//   statistic(level) = (sum of the targets of its rows + m · mean) / (rows + m),   m = 10
//
// of a member's training rows, by weight where they have weights; for those rows themselves, which
// would meet their own targets in it, of the other inner folds, with as much less of m, so that
// levels keep their places. Groups of rows that are kept together are so in inner folds too. A
// level without rows has the mean. Tested by tests/training/tree_members_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "fcp/training/tree_members.h"

namespace fcp {

struct EncodedStatistics {
  CategoryStatistics made;
  torch::Tensor encoded;  // what each row reads, [N, S]
};

// targets [N, S]: what statistics are means of.
EncodedStatistics fit_statistics(const TreeData& data, const torch::Tensor& targets,
                                 const std::vector<CategoryColumns>& categories,
                                 const FitRows& rows, uint64_t seed);

double row_weight(const TreeData& data, int64_t row);

}  // namespace fcp
