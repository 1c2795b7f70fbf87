// What a ConformalPredictor holds: the artifact, what runs it, and how its rows are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/csv.h"
#include "fcp/fcp.h"
#include "fcp/pipeline/input_numbers.h"

namespace fcp {

// An Error where there is not one group, or weight, per row where the calibration needs it, or
// there are some where it does not.
void check_info(const RowInfo& info, size_t rows, bool needs_groups, bool needs_weights);

struct ConformalPredictor::State {
  State(CalibrationArtifact made, torch::Device where);

  // Rows [N × row_size] as a tensor; an Error names a row that is not whole or has a NaN that the
  // network would compute with. The numbers must outlive the tensor.
  torch::Tensor rows_of(std::span<const float> x) const;

  // Features, groups and weights of rows. An Error where the calibration needs other information
  // than there is. `first`: the place of the first row.
  TestInputs describe(const torch::Tensor& x, const RowInfo& info, uint64_t first = 0) const;

  // The same of rows that are to be answered, each at a place of its own.
  TestInputs answered(const torch::Tensor& x, const RowInfo& info) const {
    return describe(x, info, places.answer(x.dim() == 0 ? 0 : static_cast<uint64_t>(x.size(0))));
  }

  // `info` with the groups that the records themselves hold, where it names none.
  RowInfo info_of(std::span<const Record> rows, const RowInfo& info) const;

  // The rows of records as numbers.
  std::vector<float> encode(std::span<const Record> rows) const;

  // An Error where the predictor answers with the other kind of region.
  void expect_labels(bool wanted) const;

  // Whether new rows need a group each, by name.
  bool needs_groups() const;

  CalibrationArtifact artifact;
  torch::Device device;
  TensorPredictor predictor;
  MissingNumbers missing;
  RowPlaces places;
  std::vector<int64_t> row_shape;
  size_t row_size = 1;
  size_t outputs = 1;
  std::optional<CsvEncoding> encoding;  // of a network trained on a table
  std::vector<std::string> classes;
};

}  // namespace fcp
