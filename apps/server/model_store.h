// The models of a server by name, each in one or more versions. The files on disk are what is
// served: one that is replaced is loaded beside the one before and takes over when it is ready,
// also where its version is the lower one, as when a file is put back. No request is dropped,
// requests hold on to the model they began with, and the version before stays. A file changes
// nothing where it cannot be read, and where clients of its version would get other answers than
// they ask for: another task, other inputs, other classes.
// Tested by tests/server/model_store_test.cc and tests/cli/test_serve.py.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/types.h>

#include "apps/server/batcher.h"

namespace fcp {

// "regression" or "classification".
const char* task_of(const ServedModel& model);

// A file that has changed: the model it holds now, or what is wrong with it.
struct Reloaded {
  std::string name;
  std::shared_ptr<const ServedModel> model{};
  std::string error{};
};

class ModelStore {
 public:
  // "calibrated.onnx", called by its name without the ending, or "name=calibrated.onnx". Several
  // files of one name are its versions. An Error names a file that cannot be served.
  ModelStore(const std::vector<std::string>& files, torch::Device device,
             const Batcher::Options& options);

  // The version, or the newest of those on disk; null where there is none.
  std::shared_ptr<Batcher> find(const std::string& name, const std::string& version = "") const;
  std::vector<std::string> names() const;
  // Ascending.
  std::vector<std::string> versions(const std::string& name) const;

  // Loads files that have changed since they were read, and hears of each. A file must look the
  // same twice before it is read, unless `at_once`, which also tries again what was refused.
  void reload(const std::function<void(const Reloaded&)>& heard, bool at_once = false);

  // Lets go of all models, after their batchers have answered what is queued.
  void clear();

 private:
  struct Watched {
    std::string name;
    std::string path;
    std::string stamp;     // of the file when it was read
    std::string seen{};    // at the last look
    size_t version = 0;    // that it holds
    size_t before = 0;     // that it held; 0: none
    bool refused = false;  // what is on disk is not what is served
  };
  struct Versions {
    size_t current = 0;
    std::map<size_t, std::shared_ptr<Batcher>> all{};
  };

  // Whether what is served has changed.
  bool load(Watched& file);
  void check_replacement(const Watched& file, const ServedModel& found) const;
  std::vector<std::shared_ptr<Batcher>> put_in_place(const Watched& file,
                                                     std::shared_ptr<Batcher> batcher);

  torch::Device device_;
  Batcher::Options options_;
  std::vector<Watched> files_;
  mutable std::mutex mutex_;
  std::map<std::string, Versions> models_;
};

}  // namespace fcp
