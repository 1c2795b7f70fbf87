// What a ConformalPredictor holds: the artifact, what runs it, and how its rows are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/csv.h"
#include "fcp/fcp.h"

namespace fcp {

struct ConformalPredictor::State {
  State(CalibrationArtifact made, torch::Device where);

  // Features, groups and weights of rows [N × row_size]; an Error names a row that is not whole or
  // has a NaN that the network was not trained on. `first`: the place of the first row.
  TestInputs describe(std::span<const float> x, uint64_t first = 0) const;

  // The same of rows that are to be answered, each at a place of its own.
  TestInputs answered(std::span<const float> x) const {
    return describe(x, places.answer(x.size() / row_size));
  }

  // The rows of records as numbers.
  std::vector<float> encode(std::span<const Record> rows) const;

  // An Error where the predictor answers with the other kind of region.
  void expect_labels(bool wanted) const;

  CalibrationArtifact artifact;
  torch::Device device;
  TensorPredictor predictor;
  RowPlaces places;
  std::vector<int64_t> row_shape;
  size_t row_size = 1;
  size_t outputs = 1;
  std::optional<CsvEncoding> encoding;  // of a network trained on a table
  bool missing_allowed = false;
  std::vector<std::string> classes;
};

}  // namespace fcp
