// What a server must not forget: predictions that wait for their truth, truths with what came of
// them, and levels and monitors that follow the truths. In SQLite in a folder for one server, or in
// PostgreSQL for several: what commit() returned from survives a kill of the process and of the
// machine.
//
// Bounded: at most so many waiting predictions and so many truths; the oldest go.
// Tested by tests/server/feedback_store_test.cc and tests/cli/test_serve_state.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  double level = 0;      // the adapted one that it was answered with; 0: the request named its own
  int64_t place = 0;     // at which localized drew
  std::string answer{};  // that was given, as a StoredAnswer; "": not kept
};

struct StoredTruth {
  WaitingPrediction prediction;
  double time = 0;
  std::vector<float> truth;
  std::vector<double> scores;  // empty: it was judged by the answer alone
  double p_value = 0;
  bool covered = false;
  double size = 0;
  double adapted_size = 0;  // of the region that was answered, where its level was adapted
  double alpha = 0;         // the level of `covered` and `size`
  int64_t number = 0;       // given by the store, growing; only each_truth() tells it
};

// A level that follows the truths of a file's predictions.
struct LevelKey {
  std::string model;
  std::string sha256;
  std::string method;  // as AdaptiveLevel names it
  double target = 0;
};

struct StoredLevel {
  double level = 0;
  int64_t number = 0;         // of the last truth it knows
  std::vector<double> state;  // as AdaptiveLevel has it
};

// A monitor of a file's truths.
struct MonitorKey {
  std::string model;
  std::string sha256;
  std::string options;  // all that its state depends on besides the truths
};

struct StoredMonitor {
  int64_t number = 0;  // of the last truth it knows
  std::string state;   // as Monitor has it
};

class FeedbackStore {
 public:
  virtual ~FeedbackStore() = default;

  // All between begin() and commit() is kept or none of it; an Error (a full disk) undoes it.
  virtual void begin() = 0;
  virtual void commit() = 0;
  virtual void undo() = 0;
  // Writes something that changes nothing: whether there is room is then known at commit().
  virtual void touch() = 0;

  // False where the model has such an id and row already, waiting or with its truth.
  virtual bool add_waiting(const WaitingPrediction& prediction) = 0;
  virtual std::optional<WaitingPrediction> find_waiting(const std::string& model,
                                                        const std::string& id, int64_t row) = 0;
  // All rows that are kept under an id, waiting or with their truth, in their order.
  virtual std::vector<WaitingPrediction> find_request(const std::string& model,
                                                      const std::string& id) = 0;
  virtual bool has_truth(const std::string& model, const std::string& id, int64_t row) = 0;
  // The prediction waits no longer.
  virtual void add_truth(const StoredTruth& truth) = 0;

  // The truths of a file's predictions after the one numbered `after`, in the order of their
  // numbers. `take` must not call the store.
  virtual void each_truth(const std::string& model, const std::string& sha256, int64_t after,
                          const std::function<void(const StoredTruth&)>& take) = 0;

  virtual std::optional<StoredLevel> find_level(const LevelKey& key) = 0;
  virtual void put_level(const LevelKey& key, const StoredLevel& level) = 0;
  // All that were ever kept for a file, the one with the newest truth first.
  virtual std::vector<std::pair<LevelKey, StoredLevel>> levels_of(const std::string& sha256) = 0;

  virtual std::optional<StoredMonitor> find_monitor(const MonitorKey& key) = 0;
  // Of each model only the newest few are kept. One that knows fewer truths than what is there
  // changes nothing.
  virtual void put_monitor(const MonitorKey& key, const StoredMonitor& monitor) = 0;

  // The names under which a file has predicted what has its truth now, in their order.
  virtual std::vector<std::string> models_of(const std::string& sha256) = 0;
  // All files whose predictions have a truth: model and hash.
  virtual std::vector<std::pair<std::string, std::string>> files() = 0;

  virtual size_t most_truths() const = 0;  // that are kept
  virtual size_t waiting() = 0;
  virtual size_t truths() = 0;
  // Whether other servers may add to it meanwhile.
  virtual bool is_shared() const = 0;
};

// `where`: postgresql://…, or a folder. For a server: creates what is not there; an Error where
// that cannot be, where another server has the folder, and where fcp was built without the library.
std::unique_ptr<FeedbackStore> open_feedback_store(const std::string& where,
                                                   const StoreLimits& limits);

// To look at what a server keeps, which may be running.
std::unique_ptr<FeedbackStore> read_feedback_store(const std::string& where);

}  // namespace fcp
