// What a server must not forget: predictions that wait for their truth, and truths with what came
// of them. One SQLite file in a folder, in WAL mode with full synchronisation: what commit()
// returned from survives a kill of the process and of the machine.
//
// Bounded: at most so many waiting predictions and so many truths; the oldest go.
// Tested by tests/serving/feedback_store_test.cc and tests/cli/test_serve_state.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fcp {

struct StoreLimits {
  size_t waiting = 1'000'000;  // predictions without truth
  size_t truths = 1'000'000;
};

struct WaitingPrediction {
  std::string model;
  std::string id;
  int64_t row = 0;     // of the request
  std::string sha256;  // of the file that predicted
  double time = 0;     // seconds since 1970
  int64_t group = 0;
  std::vector<float> x;
};

struct StoredTruth {
  WaitingPrediction prediction;
  double time = 0;
  std::vector<float> truth;
  std::vector<double> scores;
  double p_value = 0;
  bool covered = false;
  double size = 0;
};

class FeedbackStore {
 public:
  virtual ~FeedbackStore() = default;

  // All between begin() and commit() is kept or none of it; an Error (a full disk) undoes it.
  virtual void begin() = 0;
  virtual void commit() = 0;
  virtual void undo() = 0;

  // False where the model has such an id and row already, waiting or with its truth.
  virtual bool add_waiting(const WaitingPrediction& prediction) = 0;
  virtual std::optional<WaitingPrediction> find_waiting(const std::string& model,
                                                        const std::string& id, int64_t row) = 0;
  virtual bool has_truth(const std::string& model, const std::string& id, int64_t row) = 0;
  // The prediction waits no longer.
  virtual void add_truth(const StoredTruth& truth) = 0;

  // The truths of a file's predictions, the oldest first.
  virtual void each_truth(const std::string& model, const std::string& sha256,
                          const std::function<void(const StoredTruth&)>& take) = 0;
  virtual size_t waiting() = 0;
  virtual size_t truths() = 0;
};

// Creates the folder and the file where they are not there. An Error where that cannot be, where
// another server has it open, and where fcp was built without SQLite.
std::unique_ptr<FeedbackStore> open_feedback_store(const std::string& folder,
                                                   const StoreLimits& limits);

}  // namespace fcp
