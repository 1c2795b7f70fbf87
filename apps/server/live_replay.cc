// What a LiveState knows of each model: as the store has it, and on from there.
#include <charconv>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/evaluate/replay.h"

#include "apps/server/live_state.h"

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

}  // namespace fcp
