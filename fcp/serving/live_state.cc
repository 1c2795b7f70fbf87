#include "fcp/serving/live_state.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/pipeline/replay.h"

namespace fcp {
namespace {

constexpr size_t kMostTasks = 10'000;   // waiting
constexpr size_t kTasksAtOnce = 1'000;  // in one transaction
constexpr std::chrono::milliseconds kBetweenReports(500);

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// "2026-11-16T05", in UTC.
std::string hour_of(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H", &parts);
  return text;
}

}  // namespace

LiveState::LiveState(std::unique_ptr<FeedbackStore> store, const ModelStore& models,
                     const MonitorOptions& options, std::function<void(const std::string&)> heard)
    : store_(std::move(store)), models_(models), options_(options), heard_(std::move(heard)) {
  for (const std::string& name : models.names()) {
    watched(models.find(name)->model());
  }
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

// The monitor of this very file, replayed from what is kept where it is a new one.
LiveState::Watched& LiveState::watched(const std::shared_ptr<const ServedModel>& model) {
  Watched& found = by_model_[model->name()];
  if (found.model && found.model->sha256() == model->sha256()) return found;
  const size_t row_size = model->row_size();
  const auto& columns = model->facts().columns;
  found.model = model;
  found.alarms = 0;
  found.monitor = std::make_unique<Monitor>(
      options_, monitored_calibration(model->artifact()),
      watched_inputs(row_size, columns.size() == row_size ? columns : std::vector<std::string>(),
                     {}, options_.seed));
  store_->each_truth(model->name(), model->sha256(),
                     [&](const StoredTruth& truth) { watch_truth(found, truth); });
  return found;
}

void LiveState::watch_truth(Watched& watched, const StoredTruth& truth) {
  const WaitingPrediction& asked = truth.prediction;
  const MonitoredRow row{.scores = truth.scores,
                         .covered = truth.covered,
                         .size = truth.size,
                         .group = asked.group,
                         .shown = {},
                         .x = asked.x};
  watched.monitor->take(row, hour_of(truth.time));
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

// Empty when the state ends, and when a report is due and nothing else is to be done.
std::vector<LiveState::Task> LiveState::wait_for_tasks() {
  const auto woken = [this] { return ending_ || !queue_.empty(); };
  std::vector<Task> tasks;
  std::unique_lock lock(mutex_);
  if (owed_) {
    wake_.wait_until(lock, published_ + kBetweenReports, woken);
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
    if (!tasks.empty()) {
      run(tasks);
    } else if (ending_) {
      return;
    }
    publish_if_due();
  }
}

// One transaction. Where it fails, nobody is told that anything was kept.
void LiveState::run(const std::vector<Task>& tasks) {
  std::string error;
  fresh_.clear();
  try {
    store_->begin();
    for (const Task& task : tasks) task.work();
    store_->commit();
  } catch (const std::exception& problem) {
    error = problem.what();
    fresh_.clear();
    try {
      store_->undo();
    } catch (const std::exception& again) {
      heard_(concat("state: ", again.what()));
    }
  }
  hear_fresh();
  owed_ = true;
  for (const Task& task : tasks) task.tell(error);
}

void LiveState::hear_fresh() {
  for (const StoredTruth& truth : fresh_) {
    Watched& found = by_model_.at(truth.prediction.model);
    if (found.model->sha256() == truth.prediction.sha256) watch_truth(found, truth);
  }
  for (auto& [name, found] : by_model_) {
    const std::vector<MonitorAlarm>& alarms = found.monitor->alarms();
    for (; found.alarms < alarms.size(); ++found.alarms) {
      const MonitorAlarm& alarm = alarms[found.alarms];
      heard_(concat("alarm: ", name, ": ", alarm.kind, " at truth ", alarm.row, ": ", alarm.what));
    }
  }
}

// Reports for readers, not more often than people look, and never owed for longer than that.
void LiveState::publish_if_due() {
  if (owed_ && std::chrono::steady_clock::now() >= published_ + kBetweenReports) publish();
}

void LiveState::publish() {
  published_ = std::chrono::steady_clock::now();
  owed_ = false;
  waiting_ = store_->waiting();
  truths_ = store_->truths();
  std::map<std::string, MonitorReport> reports;
  for (const auto& [name, found] : by_model_) reports[name] = found.monitor->report();
  const std::lock_guard lock(reports_mutex_);
  reports_ = std::move(reports);
}

std::optional<MonitorReport> LiveState::report(const std::string& model) const {
  const std::lock_guard lock(reports_mutex_);
  const auto found = reports_.find(model);
  if (found == reports_.end()) return std::nullopt;
  return found->second;
}

bool LiveState::remember(std::shared_ptr<const ServedModel> model, std::string id, ServedRows rows,
                         std::function<void(const std::string& error, bool taken)> done) {
  auto taken = std::make_shared<bool>(false);
  Task task;
  task.work = [this, model, id = std::move(id), rows = std::move(rows), taken] {
    watched(model);
    const size_t width = rows.x.size() / rows.rows;
    for (size_t i = 0; i < rows.rows && !*taken; ++i) {
      const auto first = rows.x.begin() + static_cast<std::ptrdiff_t>(i * width);
      const WaitingPrediction one{model->name(),
                                  id,
                                  static_cast<int64_t>(i),
                                  model->sha256(),
                                  now_seconds(),
                                  rows.groups.empty() ? 0 : rows.groups[i],
                                  {first, first + static_cast<std::ptrdiff_t>(width)}};
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
    const ServedRows row{.rows = 1,
                         .x = waiting->x,
                         .groups = model.artifact().calibration.name == "grouped"
                                       ? std::vector<int64_t>{waiting->group}
                                       : std::vector<int64_t>()};
    ServedTruth judged;
    try {
      judged = model.judge(row, told.truth, options_.level);
    } catch (const Error& error) {
      return {.status = "wrong", .error = error.what()};
    }
    watched(models_.find(name)->model());
    StoredTruth stored{*waiting,       now_seconds(),  told.truth, judged.scores,
                       judged.p_value, judged.covered, judged.size};
    stored.prediction.group = judged.group;
    store_->add_truth(stored);
    fresh_.push_back(stored);
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
