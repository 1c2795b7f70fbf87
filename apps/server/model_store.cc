#include "apps/server/model_store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

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

bool are_equal(const std::vector<ServedModel::Input>& a, const std::vector<ServedModel::Input>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.name == other.name && one.datatype == other.datatype && one.shape == other.shape;
  });
}

// The first name at which two lists differ: "'a' instead of 'b'".
std::string difference(const std::vector<std::string>& found, const std::vector<std::string>& old) {
  if (found.size() != old.size()) return concat(found.size(), " instead of ", old.size());
  const auto [one, other] = std::mismatch(found.begin(), found.end(), old.begin());
  return one == found.end() ? "" : concat("'", *one, "' instead of '", *other, "'");
}

// What a client of one would notice of the other; "": nothing but numbers.
std::string difference(const ServedModel& found, const ServedModel& old) {
  const std::string task = task_of(found), served = task_of(old);
  if (task != served) return concat("its task is ", task, " instead of ", served);
  if (found.outputs() != old.outputs()) {
    return concat("it has ", found.outputs(), " outputs instead of ", old.outputs());
  }
  const std::string classes = difference(found.class_names(), old.class_names());
  if (!classes.empty()) return "classes: " + classes;
  const std::string columns = difference(found.columns(), old.columns());
  if (!columns.empty()) return "columns: " + columns;
  return are_equal(found.inputs(), old.inputs()) ? "" : "its inputs have other names or shapes";
}

}  // namespace

const char* task_of(const ServedModel& model) {
  return model.classes() > 0 ? "classification" : "regression";
}

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

bool ModelStore::load(Watched& file) {
  file.stamp = file.seen = stamp_of(file.path);
  file.refused = true;
  const auto model = std::make_shared<const ServedModel>(file.name, file.path, device_);
  check_replacement(file, *model);
  file.refused = false;
  const size_t number = model->facts().version;
  std::shared_ptr<Batcher> batcher = find(file.name, model->version());
  const bool known = batcher != nullptr && batcher->model()->sha256() == model->sha256();
  if (known && file.version == number) return false;
  if (!known) batcher = std::make_shared<Batcher>(model, options_);
  if (file.version != number) file.before = std::exchange(file.version, number);
  // What is not served any more ends here, outside the lock.
  put_in_place(file, std::move(batcher));
  return true;
}

void ModelStore::check_replacement(const Watched& file, const ServedModel& found) const {
  const size_t number = found.facts().version;
  for (const Watched& other : files_) {
    if (&other == &file || other.name != file.name || other.version != number) continue;
    fail(file.path, ": is version ", number, " of '", file.name, "', and so is another file");
  }
  const auto served = find(file.name, found.version());
  if (served == nullptr) return;
  const std::string problem = difference(found, *served->model());
  if (problem.empty()) return;
  fail(file.path, ": is version ", number, " of '", file.name,
       "' like the one that is served, but ", problem, "; serve it under another name");
}

// Returns the versions that are served no longer: those that are neither in a file of the name nor
// were before.
std::vector<std::shared_ptr<Batcher>> ModelStore::put_in_place(const Watched& file,
                                                               std::shared_ptr<Batcher> batcher) {
  std::set<size_t> kept = {file.version, file.before};
  size_t current = file.version;
  for (const Watched& other : files_) {
    if (&other == &file || other.name != file.name) continue;
    kept.insert({other.version, other.before});
    current = std::max(current, other.version);
  }
  std::vector<std::shared_ptr<Batcher>> gone;
  const std::lock_guard lock(mutex_);
  Versions& versions = models_[file.name];
  gone.push_back(std::exchange(versions.all[file.version], std::move(batcher)));
  versions.current = current;
  for (auto each = versions.all.begin(); each != versions.all.end();) {
    if (kept.contains(each->first)) {
      ++each;
      continue;
    }
    gone.push_back(std::move(each->second));
    each = versions.all.erase(each);
  }
  return gone;
}

std::shared_ptr<Batcher> ModelStore::find(const std::string& name,
                                          const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return nullptr;
  const Versions& versions = found->second;
  if (version.empty()) return versions.all.at(versions.current);
  size_t number = 0;
  const auto [end, error] =
      std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || end != version.data() + version.size()) return nullptr;
  const auto one = versions.all.find(number);
  return one == versions.all.end() ? nullptr : one->second;
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
  for (const auto& [number, batcher] : found->second.all)
    versions.push_back(std::to_string(number));
  return versions;
}

void ModelStore::clear() {
  decltype(models_) gone;  // ended outside the lock
  const std::lock_guard lock(mutex_);
  gone.swap(models_);
}

void ModelStore::reload(const std::function<void(const Reloaded&)>& heard, bool at_once) {
  for (Watched& file : files_) {
    const std::string now = stamp_of(file.path);
    const bool steady = now == std::exchange(file.seen, now);
    const bool changed = !now.empty() && now != file.stamp && steady;
    if (!changed && !(at_once && (now != file.stamp || file.refused))) continue;
    try {
      if (load(file))
        heard({file.name, find(file.name, std::to_string(file.version))->model(), {}});
    } catch (const std::exception& error) {
      heard({file.name, nullptr, error.what()});
    }
  }
}

}  // namespace fcp
