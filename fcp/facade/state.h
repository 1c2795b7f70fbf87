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

struct ConformalPredictor::State {
  State(CalibrationArtifact made, torch::Device where);

  // Features, groups and weights of rows [N × row_size]; an Error names a row that is not whole or
  // has a NaN that the network would compute with.
  TestInputs describe(std::span<const float> x) const;

  // The rows of records as numbers.
  std::vector<float> encode(std::span<const Record> rows) const;

  // An Error where the predictor answers with the other kind of region.
  void expect_labels(bool wanted) const;

  CalibrationArtifact artifact;
  torch::Device device;
  TensorPredictor predictor;
  MissingNumbers missing;
  std::vector<int64_t> row_shape;
  size_t row_size = 1;
  size_t outputs = 1;
  std::optional<CsvEncoding> encoding;  // of a network trained on a table
  std::vector<std::string> classes;
};

}  // namespace fcp
