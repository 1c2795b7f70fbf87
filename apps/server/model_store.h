// The models of a server by name, each in one or more versions. A file that is replaced on disk is
// loaded beside the old one and takes over when it is ready: no request is dropped, and one that
// cannot be read changes nothing. Requests hold on to the model they began with.
// Tested by tests/cli/test_serve.py.
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

class ModelStore {
 public:
  // "calibrated.onnx", called by its name without the ending, or "name=calibrated.onnx". Several
  // files of one name are its versions. An Error names a file that cannot be served.
  ModelStore(const std::vector<std::string>& files, torch::Device device,
             const Batcher::Options& options);

  // The version, or the newest; null where there is none.
  std::shared_ptr<Batcher> find(const std::string& name, const std::string& version = "") const;
  std::vector<std::string> names() const;
  // Ascending.
  std::vector<std::string> versions(const std::string& name) const;

  // Loads files that have changed since they were read; hears of each: a name, and what is wrong or
  // "". A file must look the same twice before it is read.
  void reload(const std::function<void(const std::string&, const std::string&)>& heard);

 private:
  struct Watched {
    std::string name;
    std::string path;
    std::string stamp;   // of the file when it was read
    std::string seen{};  // at the last look
    std::string version{};
  };

  void load(Watched& file);

  torch::Device device_;
  Batcher::Options options_;
  std::vector<Watched> files_;
  mutable std::mutex mutex_;
  std::map<std::string, std::map<size_t, std::shared_ptr<Batcher>>> models_;
};

}  // namespace fcp
