#include "apps/server/live_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kMostTasks = 10'000;  // waiting
constexpr std::chrono::milliseconds kBetweenReports(500);
constexpr size_t kMostPeriods = 1'000;     // hours of a timeline: six weeks
constexpr size_t kTruthsBetween = 10'000;  // a monitor's state is kept and kept again

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string minute_text(int64_t minute) {
  const auto time = static_cast<std::time_t>(60 * minute);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M", &parts);
  return text;
}

LiveState::LiveState(OpenStore open, const ModelStore& models, const LiveOptions& options,
                     std::function<void(const std::string&)> heard)
    : open_(std::move(open)), models_(models), options_(options), heard_(std::move(heard)) {
  options_.monitor.periods = kMostPeriods;
  try {
    this->open();
  } catch (const Error& error) {
    if (!options_.optional) throw;
    note_trouble(error.what());
  }
  thread_ = std::thread([this] { work(); });
}

void LiveState::open() {
  store_ = open_();
  store_->begin();
  watch_newest();
  store_->commit();
  publish();
}

LiveState::~LiveState() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool LiveState::put(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMostTasks) return false;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

// Where other servers may have added truths, and where there is trouble, which may have ended.
bool LiveState::looks_by_itself() const {
  return store_ == nullptr || store_->is_shared() || troubled_;
}

bool LiveState::is_healthy() const {
  constexpr std::chrono::seconds kTooLong(5);
  const auto began = began_.load(), none = std::chrono::steady_clock::time_point();
  if (troubled_ || (began != none && std::chrono::steady_clock::now() - began > kTooLong)) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return queue_.size() < kMostTasks;
}

// Empty when the state ends, when a report is due, and when it is time to look by itself.
std::vector<LiveState::Task> LiveState::wait_for_tasks() {
  const auto woken = [this] { return !queue_.empty() || (ending_ && lessons_ == 0); };
  std::vector<Task> tasks;
  std::unique_lock lock(mutex_);
  if (owed_ || looks_by_itself()) {
    wake_.wait_until(lock, (owed_ ? published_ : looked_) + kBetweenReports, woken);
  } else {
    wake_.wait(lock, woken);
  }
  size_t rows = 0;
  while (!queue_.empty() && (tasks.empty() || rows + queue_.front().rows <= kRowsAtOnce)) {
    rows += queue_.front().rows;
    tasks.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return tasks;
}

bool LiveState::is_at_its_end() {
  const std::lock_guard lock(mutex_);
  return ending_ && queue_.empty() && lessons_ == 0;
}

void LiveState::work() {
  while (true) {
    const std::vector<Task> tasks = wait_for_tasks();
    if (tasks.empty() && is_at_its_end()) return;
    if (ending_ && troubled_) {  // others have waited for the store, and nobody waits for the end
      for (const Task& task : tasks) task.tell(trouble_);
      continue;
    }
    if (!tasks.empty() || looks_by_itself()) run(tasks);
    publish_if_due();
  }
}

// One transaction. Where it fails, nobody is told that anything was kept.
void LiveState::run(const std::vector<Task>& tasks) {
  looked_ = std::chrono::steady_clock::now();
  std::string error;
  std::vector<Fresh> fresh;
  began_ = looked_;
  try {
    if (store_ == nullptr) open();
    store_->begin();
    if (troubled_) store_->touch();
    watch_newest();
    for (const Task& task : tasks) task.work();
    fresh = read_fresh();
    store_->commit();
  } catch (const std::exception& problem) {
    error = problem.what();
    fresh.clear();
    try {
      if (store_ != nullptr) store_->undo();
    } catch (const std::exception& again) {
      error += concat("; ", again.what());
    }
  }
  began_ = std::chrono::steady_clock::time_point();
  note_trouble(error);
  hear(fresh);
  owed_ = owed_ || !tasks.empty() || !fresh.empty();
  for (const Task& task : tasks) task.tell(error);
  if (error.empty()) keep_monitors();
}

// In a transaction of its own: where there is no room for it, truths are taken nevertheless.
void LiveState::keep_monitors() {
  const size_t often = std::min(kTruthsBetween, store_->most_truths() / 4 + 1);
  for (auto& [name, watched] : by_model_) {
    if (watched.not_kept < often) continue;
    watched.not_kept = 0;
    try {
      store_->begin();
      store_->put_monitor(monitor_key(*watched.model), {watched.last, watched.monitor->state()});
      store_->commit();
    } catch (const std::exception& problem) {
      heard_(concat("state: ", name, ": its monitor was not kept: ", problem.what()));
      try {
        store_->undo();
      } catch (const std::exception&) {  // begin() connects again
      }
    }
  }
}

// Told once when it begins and once when it ends.
void LiveState::note_trouble(const std::string& error) {
  if (!error.empty()) ++errors_;
  troubled_ = !error.empty();
  if (error.empty() == trouble_.empty()) return;
  trouble_ = error;
  heard_(error.empty() ? kWorksAgain : concat("state: ", error));
}

// Truths of this transaction and of other servers; the levels that follow from them are kept.
std::vector<LiveState::Fresh> LiveState::read_fresh() {
  std::vector<Fresh> all;
  for (auto& [name, watched] : by_model_) {
    Fresh fresh{&watched, {}, watched.level};
    each_judged(*watched.model, watched.last,
                [&](const StoredTruth& truth) { fresh.truths.push_back(truth); });
    if (fresh.truths.empty()) continue;
    if (fresh.level) {
      for (const StoredTruth& truth : fresh.truths) see_truth(truth, *fresh.level);
      store_->put_level(level_key(*watched.model),
                        {fresh.level->level(), fresh.truths.back().number, fresh.level->state()});
    }
    all.push_back(std::move(fresh));
  }
  return all;
}

void LiveState::hear(const std::vector<Fresh>& fresh) {
  for (const Fresh& one : fresh) {
    for (const StoredTruth& truth : one.truths) watch_truth(*one.watched, truth);
    one.watched->level = one.level;
  }
  tell_alarms();
  if (!options_.adapt) return;
  const std::lock_guard lock(reports_mutex_);
  for (const auto& [name, watched] : by_model_) {
    levels_[name] = {watched.model->sha256(), watched.level->level()};
  }
}

void LiveState::tell_alarms() {
  for (auto& [name, found] : by_model_) {
    const std::vector<MonitorAlarm>& alarms = found.monitor->alarms();
    for (; found.alarms < alarms.size(); ++found.alarms) {
      const MonitorAlarm& alarm = alarms[found.alarms];
      heard_(concat("alarm: ", name, ": ", alarm.kind, " at truth ", alarm.row, ": ", alarm.what));
    }
  }
}

// A level at or below 0 asks for everything; the smallest that is answered does so too, as long as
// fewer rows than its inverse calibrate. One at or above 1 asks for nothing, and is answered with
// the smallest region there is.
std::optional<Level> LiveState::adapted_level(const ServedModel& model) const {
  if (!options_.adapt) return std::nullopt;
  constexpr double kSmallest = 1e-12;
  const std::lock_guard lock(reports_mutex_);
  const auto found = levels_.find(model.name());
  const bool known = found != levels_.end() && found->second.first == model.sha256();
  if (!known) return options_.monitor.level;
  return Level(std::clamp(found->second.second, kSmallest, 1 - kSmallest));
}

// Reports for readers, not more often than people look, and never owed for longer than that.
void LiveState::publish_if_due() {
  if (owed_ && std::chrono::steady_clock::now() >= published_ + kBetweenReports) publish();
}

void LiveState::publish() {
  published_ = std::chrono::steady_clock::now();
  owed_ = false;
  if (store_ == nullptr) return;
  try {
    waiting_ = store_->waiting();
    truths_ = store_->truths();
  } catch (const std::exception& problem) {
    note_trouble(problem.what());
    owed_ = true;
  }
  std::map<std::string, LiveReport> reports;
  for (const auto& [name, found] : by_model_) {
    reports[name] = {found.monitor->report(),
                     {found.minutes.begin(), found.minutes.end()},
                     {found.recent.begin(), found.recent.end()}};
  }
  const std::lock_guard lock(reports_mutex_);
  reports_ = std::move(reports);
}

std::optional<LiveReport> LiveState::live_report(const std::string& model) const {
  const std::lock_guard lock(reports_mutex_);
  const auto found = reports_.find(model);
  if (found == reports_.end()) return std::nullopt;
  return found->second;
}

std::optional<MonitorReport> LiveState::report(const std::string& model) const {
  std::optional<LiveReport> found = live_report(model);
  if (!found) return std::nullopt;
  return std::move(found->monitor);
}

bool LiveState::remember(AnsweredRequest request,
                         std::function<void(const std::string& error, const Kept& kept)> done) {
  auto kept = std::make_shared<Kept>();
  Task task;
  task.rows = request.rows.rows();
  task.work = [this, request = std::move(request), kept] {
    const ServedModel& model = *request.model;
    *kept = store_->find_request(model.name(), request.id);
    if (!kept->empty()) return;
    const torch::Tensor x = request.rows.x.to(torch::kFloat).contiguous();
    const size_t width = model.row_size();
    const SideInformation& known = request.rows.known;
    for (size_t i = 0; i < request.rows.rows(); ++i) {
      const float* const first = x.data_ptr<float>() + i * width;
      store_->add_waiting({model.name(),
                           request.id,
                           static_cast<int64_t>(i),
                           model.sha256(),
                           now_seconds(),
                           known.groups.empty() ? 0 : known.groups[i],
                           {first, first + width},
                           request.adapted ? request.adapted->value() : 0,
                           static_cast<int64_t>(known.places.empty() ? i : known.places[i]),
                           request.answers.empty() ? "" : request.answers[i]});
    }
  };
  task.tell = [done = std::move(done), kept](const std::string& error) { done(error, *kept); };
  return put(std::move(task));
}

std::shared_ptr<const ServedModel> LiveState::served(const std::string& model,
                                                     const std::string& sha256) const {
  for (const std::string& version : models_.versions(model)) {
    const auto batcher = models_.find(model, version);
    if (batcher && batcher->model()->sha256() == sha256) return batcher->model();
  }
  return nullptr;
}

// By the model that predicted: scores, p-value, and coverage at the level that is watched. Those of
// truths that were answered at the same adapted level, or at none.
void LiveState::judge(const ServedModel& model, std::span<StoredTruth* const> truths) const {
  std::vector<float> x, y;
  std::vector<int64_t> groups;
  std::vector<uint64_t> places;
  for (const StoredTruth* truth : truths) {
    const WaitingPrediction& asked = truth->prediction;
    if (asked.x.size() != model.row_size()) fail("the stored row has another size");
    x.insert(x.end(), asked.x.begin(), asked.x.end());
    y.insert(y.end(), truth->truth.begin(), truth->truth.end());
    groups.push_back(asked.group);
    places.push_back(static_cast<uint64_t>(asked.place));
  }
  const double level = truths[0]->prediction.level;
  std::vector<ServedTruth> judged =
      model.judge(model.kept_rows(x, std::move(groups), std::move(places)), y,
                  options_.monitor.level, level > 0 ? std::optional(Level(level)) : std::nullopt);
  for (size_t i = 0; i < truths.size(); ++i) {
    truths[i]->scores = std::move(judged.at(i).scores);
    truths[i]->p_value = judged[i].p_value;
    truths[i]->covered = judged[i].covered;
    truths[i]->size = judged[i].size;
    truths[i]->adapted_size = judged[i].answered_size;
    truths[i]->alpha = options_.monitor.level.value();
    truths[i]->prediction.group = judged[i].group;
  }
}

// The truths of a model's predictions. Those that were told when it was not served, or to a server
// that does not have it, are judged now.
void LiveState::each_judged(const ServedModel& model, int64_t after,
                            const std::function<void(const StoredTruth&)>& take) {
  store_->each_truth(model.name(), model.sha256(), after, [&](const StoredTruth& truth) {
    if (!truth.scores.empty()) return take(truth);
    StoredTruth whole = truth;
    try {
      judge(model, std::array{&whole});
    } catch (const Error&) {
      whole = truth;  // it stays without a score, and is not watched
    }
    take(whole);
  });
}

}  // namespace fcp
