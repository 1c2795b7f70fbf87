// Answers of a network that are not numbers. Finite inputs can overflow inside a network, to ∞ − ∞
// for instance; what would then be written is neither an interval nor a set. Infinite ends are
// numbers, and legal.
//
// Tested by tests/cli/test_numbers.py.
#pragma once

#include <cstddef>

#include <torch/types.h>

#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/rows.h"

namespace fcp {

// An Error names the first row with a NaN. `output` is [N, …]; its rows are those of `source` from
// `first_row` on.
void check_answers(const torch::Tensor& output, const RowSource& source, size_t first_row);

// Of intervals, or of sets of labels.
void check_answers(const Regions& regions, const RowSource& source, size_t first_row);

// The scores and p-values of these rows, where the scores are numbers.
Conformity judge_numbers(const TensorPredictor& predictor, const TestInputs& rows,
                         const torch::Tensor& truth, const RowSource& source, size_t first_row);

}  // namespace fcp
