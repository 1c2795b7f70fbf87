// One calibrated predictor as a server uses it: requests become rows, rows become answers.
// All functions are const and may be called from several threads.
// Tested by tests/server/served_model_test.cc and tests/cli/test_serve.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/csv.h"
#include "fcp/level.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/artifact_facts.h"
#include "fcp/predictor/tensor_predictor.h"

#include "apps/server/tensor_message.h"

namespace fcp {

// Rows of a request, as the network wants them.
struct ServedRows {
  size_t rows = 0;
  std::vector<float> x;            // row by row
  std::vector<int64_t> groups;     // where the calibration has groups of a column; −1: unknown
  std::vector<uint64_t> places{};  // by which localized draws; empty: it is not
};

// Of one level: the ends of the intervals, row by row and output by output, the float32 numbers
// that `fcp predict` writes; or for each row and class whether it is in the set.
struct ServedRegions {
  std::vector<float> lower, upper;
  std::vector<uint8_t> members;
};

struct ServedAnswer {
  size_t rows = 0;
  std::vector<float> prediction;  // of intervals
  std::vector<int64_t> labels;    // of sets
  std::vector<ServedRegions> at;  // one per level
};

// How strange truths are.
struct ServedTruth {
  std::vector<double> scores;  // one per side
  double p_value = 0;
  bool covered = false;
  double size = 0;
  double answered_size = 0;  // at the level of the answer, where it is another
  int64_t group = 0;         // whose radius the row has; −1: unknown
};

class ServedModel {
 public:
  // An Error where the file cannot be served: rows of open shape, or weights that a client would
  // have to know.
  ServedModel(std::string name, const std::string& path, torch::Device device);

  const std::string& name() const { return name_; }
  std::string version() const { return std::to_string(facts_.version); }
  const ArtifactFacts& facts() const { return facts_; }
  const CalibrationArtifact& artifact() const { return artifact_; }
  const std::string& sha256() const { return sha256_; }
  size_t row_size() const { return row_size_; }
  size_t outputs() const { return outputs_; }
  size_t classes() const { return classes_.size(); }
  const std::vector<std::string>& class_names() const { return classes_; }
  const std::vector<std::string>& columns() const { return facts_.columns; }
  // The network's inputs: name, type as the protocol calls it, and shape, whose first size is −1.
  struct Input {
    std::string name, datatype;
    std::vector<int64_t> shape;
  };
  const std::vector<Input>& inputs() const { return inputs_; }

  // Gives rows that are to be answered the places by which localized draws, each at random: a
  // truth must be judged at the place its row was answered at.
  void draw_places(ServedRows& rows) const;

  // The levels that a request asks for, or the default. An Error where one is not there.
  std::vector<Level> levels(const std::string& alpha, const Level& otherwise) const;

  // One tensor for each of the network's inputs, or columns by name. An Error names the input, row
  // and column.
  ServedRows rows_of(const TensorRequest& request) const;

  // An Error names a row (from 0) whose answer is not a number.
  ServedAnswer answer(const ServedRows& rows, const std::vector<Level>& levels) const;

  // The truth of one row: outputs() numbers, or one label. `answered`: the level of the region that
  // the client was given, where it was adapted.
  ServedTruth judge(const ServedRows& row, const std::vector<float>& truth, const Level& level,
                    const std::optional<Level>& answered = {}) const;

  // The answer as tensors of a response: prediction, lower, upper, or prediction, in_set; with
  // several levels lower_0.05 and so on. Those asked for, in their order.
  std::vector<ResponseTensor> tensors(const ServedAnswer& answer, const std::vector<Level>& levels,
                                      const TensorRequest& request) const;

 private:
  TestInputs describe(const ServedRows& rows) const;
  int64_t judged_group(const TestInputs& inputs, const std::vector<float>& truth) const;
  ServedRows rows_of_tensors(const TensorRequest& request) const;
  bool names_inputs(const TensorRequest& request) const;
  ServedRows rows_of_columns(const TensorRequest& request) const;
  int64_t group_of(const std::map<std::string, std::string>& record, size_t row) const;
  std::vector<ResponseTensor> all_tensors(const ServedAnswer& answer,
                                          const std::vector<Level>& levels) const;

  std::string name_;
  std::string sha256_;
  CalibrationArtifact artifact_;
  ArtifactFacts facts_;
  TensorPredictor predictor_;
  InputLayout layout_;  // of the tensors that clients send
  std::vector<Input> inputs_;
  std::vector<int64_t> row_shape_;
  size_t row_size_ = 1;
  size_t outputs_ = 1;
  std::vector<std::string> classes_;
  std::optional<CsvEncoding> encoding_;
  std::vector<bool> missing_allowed_;  // of each number of a row
  std::string group_column_;           // "": none
};

}  // namespace fcp
