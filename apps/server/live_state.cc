#include "apps/server/live_state.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kMostTasks = 10'000;   // waiting
constexpr size_t kTasksAtOnce = 1'000;  // in one transaction
constexpr std::chrono::milliseconds kBetweenReports(500);
constexpr size_t kMostPeriods = 1'000;     // hours of a timeline: six weeks
constexpr size_t kTruthsBetween = 10'000;  // a monitor's state is kept and kept again

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

LiveState::LiveState(std::unique_ptr<FeedbackStore> store, const ModelStore& models,
                     const LiveOptions& options, std::function<void(const std::string&)> heard)
    : store_(std::move(store)), models_(models), options_(options), heard_(std::move(heard)) {
  options_.monitor.periods = kMostPeriods;
  store_->begin();
  watch_newest();
  store_->commit();
  publish();
  thread_ = std::thread([this] { work(); });
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

// Empty when the state ends, when a report is due, and when it is time to look whether other
// servers have added truths.
std::vector<LiveState::Task> LiveState::wait_for_tasks() {
  const auto woken = [this] { return ending_ || !queue_.empty(); };
  std::vector<Task> tasks;
  std::unique_lock lock(mutex_);
  if (owed_ || store_->is_shared()) {
    wake_.wait_until(lock, (owed_ ? published_ : looked_) + kBetweenReports, woken);
  } else {
    wake_.wait(lock, woken);
  }
  while (!queue_.empty() && tasks.size() < kTasksAtOnce) {
    tasks.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return tasks;
}

void LiveState::work() {
  while (true) {
    const std::vector<Task> tasks = wait_for_tasks();
    if (tasks.empty() && ending_) return;
    if (!tasks.empty() || store_->is_shared()) run(tasks);
    publish_if_due();
  }
}

// One transaction. Where it fails, nobody is told that anything was kept.
void LiveState::run(const std::vector<Task>& tasks) {
  looked_ = std::chrono::steady_clock::now();
  std::string error;
  std::vector<Fresh> fresh;
  try {
    store_->begin();
    watch_newest();
    for (const Task& task : tasks) task.work();
    fresh = read_fresh();
    store_->commit();
  } catch (const std::exception& problem) {
    error = problem.what();
    fresh.clear();
    try {
      store_->undo();
    } catch (const std::exception& again) {
      error += concat("; ", again.what());
    }
  }
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

// Once when it begins and once when it ends.
void LiveState::note_trouble(const std::string& error) {
  if (error.empty() == trouble_.empty()) return;
  trouble_ = error;
  heard_(error.empty() ? "state: works again" : concat("state: ", error));
}

// Truths of this transaction and of other servers; the levels that follow from them are kept.
std::vector<LiveState::Fresh> LiveState::read_fresh() {
  std::vector<Fresh> all;
  for (auto& [name, watched] : by_model_) {
    Fresh fresh{&watched, {}, watched.level};
    store_->each_truth(name, watched.model->sha256(), watched.last,
                       [&](const StoredTruth& truth) { fresh.truths.push_back(truth); });
    if (fresh.truths.empty()) continue;
    if (fresh.level) {
      for (const StoredTruth& truth : fresh.truths) fresh.level->see(truth.p_value);
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
  try {
    waiting_ = store_->waiting();
    truths_ = store_->truths();
  } catch (const std::exception& problem) {
    note_trouble(problem.what());
    owed_ = true;
  }
  std::map<std::string, LiveReport> reports;
  for (const auto& [name, found] : by_model_) {
    reports[name] = {found.monitor->report(), {found.recent.begin(), found.recent.end()}};
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

bool LiveState::remember(std::shared_ptr<const ServedModel> model, std::string id,
                         internal::BatchData rows, const std::optional<Level>& level,
                         std::function<void(const std::string& error, bool taken)> done) {
  auto taken = std::make_shared<bool>(false);
  Task task;
  const double answered = level ? level->value() : 0;
  task.work = [this, model, id = std::move(id), rows = std::move(rows), answered, taken] {
    const torch::Tensor x = rows.x.to(torch::kFloat).contiguous();
    const size_t width = model->row_size();
    const SideInformation& known = rows.known;
    for (size_t i = 0; i < rows.rows() && !*taken; ++i) {
      const float* const first = x.data_ptr<float>() + i * width;
      const WaitingPrediction one{model->name(),
                                  id,
                                  static_cast<int64_t>(i),
                                  model->sha256(),
                                  now_seconds(),
                                  known.groups.empty() ? 0 : known.groups[i],
                                  {first, first + width},
                                  answered,
                                  static_cast<int64_t>(known.places.empty() ? i : known.places[i])};
      *taken = !store_->add_waiting(one);
    }
  };
  task.tell = [done = std::move(done), taken](const std::string& error) { done(error, *taken); };
  return put(std::move(task));
}

TruthResult LiveState::take_truth(const std::string& name, const TruthReport& told) {
  if (store_->has_truth(name, told.id, told.row)) return {.status = "duplicate"};
  const auto waiting = store_->find_waiting(name, told.id, told.row);
  if (!waiting) return {.status = "unknown"};
  for (const std::string& version : models_.versions(name)) {
    const auto batcher = models_.find(name, version);
    if (!batcher || batcher->model()->sha256() != waiting->sha256) continue;
    const ServedModel& model = *batcher->model();
    std::optional<Level> answered;
    if (waiting->level > 0) answered = Level(waiting->level);
    ServedTruth judged;
    try {
      const auto place = static_cast<uint64_t>(waiting->place);
      judged = model.judge(model.kept_row(waiting->x, waiting->group, place), told.truth,
                           options_.monitor.level, answered);
    } catch (const Error& error) {
      return {.status = "wrong", .error = error.what()};
    }
    StoredTruth stored{*waiting,      now_seconds(),        told.truth,
                       judged.scores, judged.p_value,       judged.covered,
                       judged.size,   judged.answered_size, options_.monitor.level.value()};
    stored.prediction.group = judged.group;
    store_->add_truth(stored);
    return {
        .status = "accepted", .error = {}, .p_value = judged.p_value, .covered = judged.covered};
  }
  return {.status = "unknown", .error = "the version that predicted is not served any more"};
}

bool LiveState::learn(
    std::string model, std::vector<TruthReport> truths,
    std::function<void(const std::vector<TruthResult>&, const std::string& error)> done) {
  auto results = std::make_shared<std::vector<TruthResult>>();
  Task task;
  task.work = [this, model = std::move(model), truths = std::move(truths), results] {
    for (const TruthReport& truth : truths) results->push_back(take_truth(model, truth));
  };
  task.tell = [done = std::move(done), results](const std::string& error) {
    done(*results, error);
  };
  return put(std::move(task));
}

}  // namespace fcp
