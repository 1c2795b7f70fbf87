#include "apps/server/model_store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kVersionsKept = 2;  // of a model whose file is replaced

std::string stamp_of(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return "";
  return concat(facts.st_ino, "/", facts.st_size, "/", facts.st_mtim.tv_sec, ".",
                facts.st_mtim.tv_nsec);
}

// A name that can stand in an address without being written otherwise.
bool is_model_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

}  // namespace

ModelStore::ModelStore(const std::vector<std::string>& files, torch::Device device,
                       const Batcher::Options& options)
    : device_(device), options_(options) {
  for (const std::string& file : files) {
    const size_t equals = file.find('=');
    const bool named = equals != std::string::npos && is_model_name(file.substr(0, equals));
    Watched one;
    one.path = named ? file.substr(equals + 1) : file;
    one.name = named ? file.substr(0, equals) : std::filesystem::path(file).stem().string();
    if (!is_model_name(one.name)) {
      fail(file, ": '", one.name, "' cannot be a model's name; say name=", one.path);
    }
    load(one);
    files_.push_back(std::move(one));
  }
}

void ModelStore::load(Watched& file) {
  file.stamp = file.seen = stamp_of(file.path);
  const auto model = std::make_shared<const ServedModel>(file.name, file.path, device_);
  auto batcher = std::make_shared<Batcher>(model, options_);
  const size_t number = model->facts().version;
  std::vector<std::shared_ptr<Batcher>> gone;  // ended outside the lock
  const std::lock_guard lock(mutex_);
  auto& versions = models_[file.name];
  if (file.version.empty() && versions.contains(number)) {
    fail(file.path, ": is version ", number, " of '", file.name, "', and so is another file");
  }
  gone.push_back(std::exchange(versions[number], std::move(batcher)));
  const bool replaced = !file.version.empty() && file.version != model->version();
  file.version = model->version();
  while (replaced && versions.size() > kVersionsKept) {
    gone.push_back(std::move(versions.begin()->second));
    versions.erase(versions.begin());
  }
}

std::shared_ptr<Batcher> ModelStore::find(const std::string& name,
                                          const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return nullptr;
  if (version.empty()) return found->second.rbegin()->second;
  size_t number = 0;
  const auto [end, error] =
      std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || end != version.data() + version.size()) return nullptr;
  const auto one = found->second.find(number);
  return one == found->second.end() ? nullptr : one->second;
}

std::vector<std::string> ModelStore::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, versions] : models_) names.push_back(name);
  return names;
}

std::vector<std::string> ModelStore::versions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> versions;
  const auto found = models_.find(name);
  if (found == models_.end()) return versions;
  for (const auto& [number, batcher] : found->second) versions.push_back(std::to_string(number));
  return versions;
}

void ModelStore::reload(const std::function<void(const std::string&, const std::string&)>& heard) {
  for (Watched& file : files_) {
    const std::string now = stamp_of(file.path);
    const bool steady = now == std::exchange(file.seen, now);
    if (now.empty() || now == file.stamp || !steady) continue;
    try {
      load(file);
      heard(file.name, "");
    } catch (const std::exception& error) {
      heard(file.name, error.what());
    }
  }
}

}  // namespace fcp
