// What a LiveState knows of each model: as the store has it, and on from there.

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/evaluate/replay.h"

#include "apps/server/live_state.h"
#include "apps/server/sql_database.h"

namespace fcp {
namespace {

constexpr size_t kShownTruths = 10;
constexpr int64_t kShownMinutes = 120;
constexpr size_t kHour = 13;          // letters of a time that name its hour: "2026-11-16T05"
constexpr int64_t kLookBack = 2'000;  // numbers among which truths to show are looked for

// The fewest digits that are read back as the same number.
std::string shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

// At the start of a transaction: what was not committed is not heard of.
void LiveState::watch_newest() {
  for (const std::string& name : models_.names()) watch(models_.find(name)->model());
}

// The monitor of this very file, replayed from what is kept where it is a new one.
void LiveState::watch(const std::shared_ptr<const ServedModel>& model) {
  const auto known = by_model_.find(model->name());
  if (known != by_model_.end() && known->second.model->sha256() == model->sha256()) return;
  Watched made;
  made.model = model;
  made.monitor = new_monitor(*model);
  replay_monitor(made);
  made.alarms = made.monitor->alarms().size();  // they were told when they were raised
  if (options_.adapt) made.level = replayed_level(*model);
  by_model_.insert_or_assign(model->name(), std::move(made));
  hear({});
}

std::unique_ptr<Monitor> LiveState::new_monitor(const ServedModel& model) const {
  const size_t row_size = model.row_size();
  const auto& columns = model.facts().columns;
  return std::make_unique<Monitor>(
      options_.monitor, monitored_calibration(model.artifact()),
      watched_inputs(row_size, columns.size() == row_size ? columns : std::vector<std::string>(),
                     {}, options_.monitor.seed));
}

// From where it was kept, through the truths since then.
void LiveState::replay_monitor(Watched& watched) {
  const ServedModel& model = *watched.model;
  if (const auto kept = store_->find_monitor(monitor_key(model))) {
    try {
      watched.monitor->restore(kept->state);
      watched.last = kept->number;
    } catch (const Error& error) {
      heard_(concat("state: ", model.name(), ": its monitor begins anew: ", error.what()));
    }
  }
  const int64_t known = watched.last;
  each_judged(model, known - kLookBack, [&](const StoredTruth& truth) {
    if (truth.number > known) return watch_truth(watched, truth);
    show_truth(watched, truth);
  });
}

// A truth that was judged at another level says nothing about coverage at this one.
bool LiveState::is_watched(const StoredTruth& truth) const {
  return !truth.scores.empty() && truth.alpha == options_.monitor.level.value();
}

void LiveState::show_truth(Watched& watched, const StoredTruth& truth) const {
  watched.recent.push_front(truth);
  if (watched.recent.size() > kShownTruths) watched.recent.pop_back();
  if (!is_watched(truth)) return;
  std::deque<MinuteOfTruths>& minutes = watched.minutes;
  const auto minute = static_cast<int64_t>(truth.time / 60);
  if (minutes.empty() || minutes.back().minute < minute) minutes.push_back({.minute = minute});
  while (minutes.front().minute <= minute - kShownMinutes) minutes.pop_front();
  minutes.back().covered.add(truth.covered);
  minutes.back().size.add(truth.size);
}

MonitorKey LiveState::monitor_key(const ServedModel& model) const {
  const MonitorOptions& options = options_.monitor;
  return {model.name(), model.sha256(),
          concat("level ", shortest(options.level.value()), ", false alarms ",
                 shortest(options.false_alarms), ", seed ", options.seed)};
}

LevelKey LiveState::level_key(const ServedModel& model) const {
  return {model.name(), model.sha256(), adapting_text(*options_.adapt),
          options_.monitor.level.value()};
}

// From where it was kept, or from the target through all truths that are.
AdaptiveLevel LiveState::replayed_level(const ServedModel& model) {
  AdaptiveLevel level(options_.monitor.level, *options_.adapt);
  const std::optional<StoredLevel> kept = store_->find_level(level_key(model));
  if (kept) level.restore(kept->state);
  each_judged(model, kept ? kept->number : 0,
              [&](const StoredTruth& truth) { see_truth(truth, level); });
  return level;
}

// A truth without a score has no p-value.
void LiveState::see_truth(const StoredTruth& truth, AdaptiveLevel& level) {
  if (!truth.scores.empty()) level.see(truth.p_value);
}

void LiveState::watch_truth(Watched& watched, const StoredTruth& truth) const {
  watched.last = truth.number;
  show_truth(watched, truth);
  if (!is_watched(truth)) return;
  ++watched.not_kept;
  const WaitingPrediction& asked = truth.prediction;
  const MonitoredRow row{.scores = truth.scores,
                         .covered = truth.covered,
                         .size = truth.size,
                         .group = asked.group,
                         .shown = {},
                         .x = asked.x,
                         .time = minute_text(static_cast<int64_t>(truth.time / 60))};
  std::optional<AdaptedRow> adapted;
  if (asked.level > 0) {
    adapted = AdaptedRow{asked.level, truth.p_value > asked.level, truth.adapted_size};
  }
  watched.monitor->take(row, row.time.substr(0, kHour), adapted);
}

// What a LiveState learns: the truths of one caller, piece by piece. A piece is looked up in one
// transaction, judged outside of any, and written in another, where a truth that has come meanwhile
// from elsewhere makes it a duplicate.

struct LiveState::Lesson {
  std::string model;
  std::vector<TruthReport> truths;
  std::shared_ptr<Deadline> deadline;
  Learned done;
  std::vector<TruthResult> results{};  // of all
  size_t first = 0, last = 0;          // of the piece
  struct Found {
    size_t truth;  // its number
    StoredTruth stored;
    std::shared_ptr<const ServedModel> by;  // null: it is served no longer
    bool judged = false;
  };
  std::vector<Found> found{};  // predictions of the piece
};

bool LiveState::learn(std::string model, std::vector<TruthReport> truths,
                      std::shared_ptr<Deadline> deadline, Learned done) {
  const auto lesson = std::make_shared<Lesson>(
      Lesson{std::move(model), std::move(truths), std::move(deadline), std::move(done)});
  lesson->results.resize(lesson->truths.size());
  {
    const std::lock_guard lock(mutex_);
    ++lessons_;
  }
  if (put(look_up(lesson))) return true;
  const std::lock_guard lock(mutex_);
  --lessons_;
  return false;
}

// What has begun is not refused because much waits.
void LiveState::go_on(Task task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void LiveState::go_on(const LessonPointer& lesson) {
  lesson->first = lesson->last;
  if (lesson->first == lesson->truths.size()) return end(lesson, "");
  if (ending_) return end(lesson, "the server is ending");
  const bool over = lesson->deadline != nullptr && lesson->deadline->is_over();
  if (over) return end(lesson, Batcher::kTimeIsOver);
  go_on(look_up(lesson));
}

void LiveState::end(const LessonPointer& lesson, const std::string& error) {
  lesson->done(lesson->results, error);
  {
    const std::lock_guard lock(mutex_);
    --lessons_;
  }
  wake_.notify_one();
}

LiveState::Task LiveState::look_up(const LessonPointer& lesson) {
  lesson->last = std::min(lesson->first + kRowsAtOnce, lesson->truths.size());
  Task task;
  task.rows = lesson->last - lesson->first;
  task.work = [this, lesson] {
    lesson->found.clear();
    for (size_t i = lesson->first; i < lesson->last; ++i) {
      const TruthReport& told = lesson->truths[i];
      TruthResult& result = lesson->results[i];
      if (store_->has_truth(lesson->model, told.id, told.row)) {
        result = {.status = "duplicate"};
        continue;
      }
      result = {.status = "unknown"};
      auto waiting = store_->find_waiting(lesson->model, told.id, told.row);
      if (!waiting) continue;
      auto by = served(lesson->model, waiting->sha256);
      if (by == nullptr && waiting->answer.empty()) {
        result.error = "the version that predicted is not served any more";
        continue;
      }
      StoredTruth stored{.prediction = std::move(*waiting), .truth = told.truth, .scores = {}};
      lesson->found.push_back({i, std::move(stored), std::move(by)});
    }
  };
  task.tell = [this, lesson](const std::string& error) {
    if (!error.empty()) return end(lesson, error);
    if (lesson->found.empty()) return go_on(lesson);
    judges_.put([this, lesson] {
      judge_piece(*lesson);
      go_on(write(lesson));
    });
  };
  return task;
}

void LiveState::judge_piece(Lesson& lesson) const {
  std::map<std::pair<const ServedModel*, double>, std::vector<size_t>> together;
  for (size_t i = 0; i < lesson.found.size(); ++i) {
    const Lesson::Found& one = lesson.found[i];
    together[{one.by.get(), one.stored.prediction.level}].push_back(i);
  }
  for (const auto& [key, which] : together) {
    if (key.first != nullptr) {
      judge_together(lesson, which);
    } else {
      for (const size_t i : which) judge_together(lesson, {i});
    }
  }
}

// Where one truth cannot be judged, all are judged by themselves, so that the others are.
void LiveState::judge_together(Lesson& lesson, const std::vector<size_t>& which) const {
  const Lesson::Found& first = lesson.found[which[0]];
  try {
    if (first.by == nullptr) {
      StoredTruth& stored = lesson.found[which[0]].stored;
      const AnswerJudgement judged = judge_by_answer(read_answer(stored.prediction.answer),
                                                     stored.truth, options_.monitor.level.value());
      stored.covered = judged.covered;
      stored.size = judged.size;
      stored.alpha = judged.alpha;
    } else {
      std::vector<StoredTruth*> truths;
      for (const size_t i : which) truths.push_back(&lesson.found[i].stored);
      for (const StoredTruth* one : truths) {
        const bool odd = one->truth.size() != first.stored.truth.size();
        if (odd) fail("truths of different lengths");
      }
      judge(*first.by, truths);
    }
    for (const size_t i : which) lesson.found[i].judged = true;
  } catch (const std::exception& error) {
    if (which.size() > 1) {
      for (const size_t i : which) judge_together(lesson, {i});
      return;
    }
    lesson.results[first.truth] = {.status = "wrong", .error = error.what()};
  }
}

LiveState::Task LiveState::write(const LessonPointer& lesson) {
  Task task;
  task.rows = lesson->found.size();
  task.work = [this, lesson] {
    for (Lesson::Found& one : lesson->found) {
      if (!one.judged) continue;
      TruthResult& result = lesson->results[one.truth];
      const WaitingPrediction& asked = one.stored.prediction;
      if (store_->has_truth(lesson->model, asked.id, asked.row)) {
        result = {.status = "duplicate"};
        continue;
      }
      one.stored.time = now_seconds();
      store_->add_truth(one.stored);
      result = {.status = "accepted", .covered = one.stored.covered};
      if (one.by != nullptr) result.p_value = one.stored.p_value;
    }
  };
  task.tell = [this, lesson](const std::string& error) {
    if (!error.empty()) return end(lesson, error);
    go_on(lesson);
  };
  return task;
}

}  // namespace fcp
