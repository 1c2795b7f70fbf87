// One calibrated predictor as a server uses it: a name, a version and the tensors of the protocol
// around the Predictor of the library, which encodes rows and answers them.
// All functions are const and may be called from several threads.
// Tested by tests/server/served_model_test.cc and tests/cli/test_serve.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/level.h"
#include "fcp/predictor/artifact_settings.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/predictor_core.h"

#include "apps/server/tensor_message.h"

namespace fcp {

// How unusual the truth of a row is.
struct ServedTruth {
  std::vector<double> scores;  // one per side
  double p_value = 0;
  bool covered = false;
  double size = 0;
  double answered_size = 0;  // at the level of the answer, where it is another
  int64_t group = 0;         // whose radius the row has; −1: unknown
};

// Cells of a column, or numbers of an input, that say less than the client may believe.
struct CellCounts {
  std::string column;
  size_t missing = 0;  // empty or null
  size_t unknown = 0;  // categories that training has not seen
};

class ServedModel {
 public:
  // An Error where the file cannot be served: rows of open shape.
  ServedModel(std::string name, const std::string& path, torch::Device device);

  const std::string& name() const { return name_; }
  std::string version() const { return std::to_string(facts_.version); }
  const ArtifactFacts& facts() const { return facts_; }
  const std::string& sha256() const { return sha256_; }
  const CalibrationArtifact& artifact() const { return core_.artifact(); }
  size_t row_size() const { return core_.schema().row_size(); }
  size_t outputs() const { return core_.outputs(); }
  const std::vector<std::string>& class_names() const { return core_.class_names(); }
  size_t classes() const { return class_names().size(); }
  const std::vector<std::string>& columns() const { return core_.schema().columns(); }
  // The network's inputs: name, type as the protocol calls it, and shape, whose first size is −1.
  struct Input {
    std::string name, datatype;
    std::vector<int64_t> shape;
  };
  const std::vector<Input>& inputs() const { return inputs_; }

  // The levels that a request asks for, or the default.
  std::vector<Level> levels(const std::string& alpha, const Level& otherwise) const;

  // One tensor for each of the network's inputs, or columns by name; with them the groups or the
  // weights that the calibration asks for. An Error names the input, row and column.
  internal::BatchData rows_of(const TensorRequest& request) const;

  // Of each column, or input, of rows_of(request) that has any.
  std::vector<CellCounts> count_cells(const TensorRequest& request,
                                      const internal::BatchData& rows) const;

  // What no training row had, row by row: the tensor "flags". An Error where it cannot be known.
  static ResponseTensor flags(const internal::BatchData& rows);

  // Gives rows that are to be answered the places by which localized draws, each at random: a
  // truth must be judged at the place its row was answered at.
  void draw_places(internal::BatchData& rows) const;

  // An Error where a truth could not be judged by what is kept of the rows: a number has more
  // digits than float32, or rows have weights.
  void check_kept(const internal::BatchData& rows) const;
  // Rows as they were kept, row by row.
  internal::BatchData kept_rows(std::span<const float> x, std::vector<int64_t> groups,
                                std::vector<uint64_t> places) const;

  // On the host. An Error names a row (from 0) whose answer is not a number.
  internal::AnswerData answer(const internal::BatchData& rows,
                              const std::vector<Level>& levels) const;

  // The truths of rows, row by row: outputs() numbers, or one label. `answered`: the level of the
  // regions that clients were given, where it was adapted.
  std::vector<ServedTruth> judge(const internal::BatchData& rows, std::span<const float> truth,
                                 const Level& level,
                                 const std::optional<Level>& answered = {}) const;

  // The answer as tensors of a response: prediction, lower, upper, or prediction, in_set; with
  // several levels lower_0.05 and so on.
  std::vector<ResponseTensor> tensors(const internal::AnswerData& answer) const;

  // What a request asks for beside the regions, one tensor [N] for each column that `fcp predict`
  // would write of distributions, and `probability`, `p0` and `p1` [N, classes]. The network runs
  // once more for it. An OptionError names the parameter that cannot be had; with no rows that is
  // all that is found out.
  std::vector<ResponseTensor> added(const TensorRequest& request,
                                    const internal::BatchData& rows) const;

 private:
  std::shared_ptr<const PredictiveDistribution> distribution() const;

  std::string name_;
  std::string sha256_;
  internal::PredictorCore core_;
  ArtifactFacts facts_;
  std::vector<Input> inputs_;
  mutable std::mutex making_;
  mutable std::shared_ptr<const PredictiveDistribution> distribution_;  // when somebody asks
};

}  // namespace fcp
