// Which rows are within their radii, at one level or at many: what coverage is counted from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/tensor_predictor.h"
#include "fcp/conformal/level.h"
#include "fcp/evaluation/coverage.h"

namespace fcp {

// The scores of rows and, where they are asked for, their p-values.
Conformity judge_rows(const TensorPredictor& predictor, const TestInputs& rows,
                      const torch::Tensor& truth, bool p_values);

// Which rows of a score of labels have a truth that is none of its classes; empty: none has.
std::vector<bool> foreign_labels(const Score& score, const torch::Tensor& truth);

// Whether each row's scores are all within its radii, and its label, if it is one, among the
// classes; the paper's code is strict.
std::vector<bool> within_radii(const TensorPredictor& predictor, const TestInputs& rows,
                               const torch::Tensor& truth, const std::vector<double>& scores,
                               const Level& level, bool strict);

// Where the radii of some levels alone are kept: the number of rows within those of each.
std::vector<uint64_t> count_within(const CalibrationArtifact& artifact,
                                   const TensorPredictor& predictor, const TestInputs& rows,
                                   const torch::Tensor& truth, const std::vector<double>& scores);
void add_counts(std::vector<uint64_t>& sums, std::span<const uint64_t> counts);
// The coverage curve of those sums.
std::vector<CurvePoint> curve_of_levels(const CalibrationArtifact& artifact,
                                        std::span<const uint64_t> sums, size_t rows);

// Levels of the coverage curve: 0.02, 0.04, … 0.5, as exact fractions.
std::vector<Level> curve_levels();

// Levels that a reader of a report may want to see besides its own, by ascending α with that among
// them: 0.01 … 0.5, or those whose radii are kept.
std::vector<Level> slider_levels(const CalibrationArtifact& artifact, const Level& own);

}  // namespace fcp
