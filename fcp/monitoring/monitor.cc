#include "fcp/monitoring/monitor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/monitoring/coverage_alarm.h"

namespace fcp {
namespace {

constexpr size_t kMostShownGroups = 1000;  // beyond them: "(others)"
constexpr size_t kMostScores = 100'000;    // per side, to compare with; groups share them
constexpr size_t kLeastScores = 1'000;     // of a group nevertheless

std::vector<double> log_capitals(const std::vector<Martingale>& martingales) {
  std::vector<double> logs;
  for (const Martingale& one : martingales) logs.push_back(one.log_capital());
  return logs;
}

}  // namespace

void RateCount::add(bool hit) {
  ++rows;
  hits += hit ? 1 : 0;
}

double RateCount::rate() const {
  return rows == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(rows);
}

void SizeCount::add(double size) {
  if (std::isinf(size)) {
    ++infinite;
    return;
  }
  ++finite;
  sum += size;
}

Monitor::Monitor(const MonitorOptions& options, MonitoredCalibration calibration,
                 std::optional<Drift> drift)
    : options_(options),
      calibration_(std::move(calibration)),
      scores_watch_(options.false_alarms / 3),
      drift_watch_(options.false_alarms / 3),
      drift_(std::move(drift)) {
  auto& groups = calibration_.scores;
  if (groups.empty() || groups[0].empty()) fail("a monitor needs the scores of a calibration");
  const size_t sides = groups[0].size();
  const double share = options.false_alarms / 3 / static_cast<double>(groups.size()) / 2;
  const size_t most = std::max(kLeastScores, kMostScores / groups.size());
  uint64_t seed = options.seed;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto allowed = allowed_for(groups[g].at(0).size(), sides, share);
    tests_.emplace_back();
    const std::string name = calibration_.groups.empty() ? "" : calibration_.groups.at(g);
    if (allowed) tests_.back() = GroupTest{name, CoverageAlarm(*allowed), CapitalWatch(share), 0};
    transducers_.emplace_back();
    for (std::vector<double>& scores : groups[g]) {
      transducers_.back().emplace_back(std::move(scores), seed++, most);
    }
  }
  transducers_.emplace_back();
  for (size_t side = 0; side < sides; ++side) {
    transducers_.back().emplace_back(std::vector<double>(), seed++, most);
  }
  by_side_.resize(sides);
  so_far_.options = options;
  so_far_.watches_exchangeability = calibration_.exchangeable;
  so_far_.watches_drift = drift_.has_value();
  for (const auto& test : tests_) so_far_.watches_coverage |= test.has_value();
}

// Each of the sides is calibrated at its share of the level, and a row is missed where one is.
std::optional<double> Monitor::allowed_for(size_t rows, size_t sides, double delta) const {
  if (!calibration_.has_law) return std::nullopt;
  const Level level = sides == 1 ? options_.level : options_.level.divided_by(sides);
  const auto parts = static_cast<double>(sides);
  const std::optional<double> one = allowed_miss_rate(level, rows, delta / parts);
  if (!one || *one * parts >= 1) return std::nullopt;
  return *one * parts;
}

void Monitor::raise(const CapitalWatch& watch, double log_capital, const std::string& kind,
                    const std::string& what) {
  const double odds = std::exp(std::min(log_capital, 700.0));
  so_far_.alarms.push_back(
      {.kind = kind,
       .what = concat(what, "; ", format_number(odds, 3), " to 1 against no change"),
       .row = watch.row(),
       .since = watch.since(),
       .log10_odds = log_capital / std::log(10)});
}

void Monitor::watch_scores(const MonitoredRow& row) {
  if (!calibration_.exchangeable) return;
  const bool known = row.group >= 0 && static_cast<size_t>(row.group) + 1 < transducers_.size();
  auto& bags = known ? transducers_[static_cast<size_t>(row.group)] : transducers_.back();
  for (size_t side = 0; side < by_side_.size(); ++side) {
    by_side_[side].step(bags[side].next(row.scores[side]));
  }
  const double now = so_far_.log_exchangeability = log_mean_exp(log_capitals(by_side_));
  if (!scores_watch_.see(so_far_.rows, now)) return;
  raise(scores_watch_, now, "exchangeability", "the scores are no longer those of calibration");
}

void Monitor::watch_coverage(const MonitoredRow& row) {
  if (row.group < 0 || static_cast<size_t>(row.group) >= tests_.size()) return;
  auto& found = tests_[static_cast<size_t>(row.group)];
  if (!found) return;
  found->test.step(row.covered);
  const double now = found->log_capital = found->test.log_capital();
  so_far_.log_coverage = now;
  for (const auto& other : tests_) {
    if (other) so_far_.log_coverage = std::max(so_far_.log_coverage, other->log_capital);
  }
  if (!found->watch.see(so_far_.rows, now)) return;
  const std::string where = found->name.empty() ? "" : concat(" in group '", found->name, "'");
  raise(found->watch, now, "coverage",
        concat("regions", where, " miss the truth more often than the ",
               format_percent(found->test.allowed_miss_rate()), " that calibration allows"));
}

void Monitor::watch_inputs(const MonitoredRow& row) {
  if (!drift_ || row.x.empty()) return;
  drift_->step(row.x);
  const double now = so_far_.log_drift = drift_->log_capital();
  if (!drift_watch_.see(so_far_.rows, now)) return;
  raise(drift_watch_, now, "drift",
        concat("the inputs drift, '", drift_->strangest(), "' most of all"));
}

void Monitor::count(const MonitoredRow& row, const std::string& period,
                    const std::optional<AdaptedRow>& adapted) {
  auto& timeline = so_far_.timeline;
  if (timeline.empty() || timeline.back().label != period) {
    timeline.push_back({.label = period, .first_row = so_far_.rows});
    const bool too_many = options_.periods > 0 && timeline.size() > options_.periods;
    if (too_many) timeline.erase(timeline.begin());
  }
  TimelinePoint& point = timeline.back();
  for (RateCount* rate : {&so_far_.covered, &point.covered}) rate->add(row.covered);
  for (SizeCount* size : {&so_far_.size, &point.size}) size->add(row.size);
  if (adapted) {
    for (RateCount* rate : {&so_far_.adapted_covered, &point.adapted_covered}) {
      rate->add(adapted->covered);
    }
    for (SizeCount* size : {&so_far_.adapted_size, &point.adapted_size}) size->add(adapted->size);
    point.level_sum += adapted->level;
  }
  point.log_exchangeability = so_far_.log_exchangeability;
  point.log_coverage = so_far_.log_coverage;
  point.log_drift = so_far_.log_drift;
  point.so_far = so_far_.covered;
  if (!row.shown.empty()) count_shown(row);
}

void Monitor::count_shown(const MonitoredRow& row) {
  auto& shown = so_far_.groups;
  auto found = std::find_if(shown.begin(), shown.end(),
                            [&](const GroupCount& group) { return group.name == row.shown; });
  if (found == shown.end()) {
    const bool full = shown.size() >= kMostShownGroups;
    if (shown.size() <= kMostShownGroups) {
      shown.push_back({.name = full ? "(others)" : row.shown, .covered = {}});
    }
    found = shown.end() - 1;
  }
  found->covered.add(row.covered);
}

void Monitor::take(const MonitoredRow& row, const std::string& period,
                   const std::optional<AdaptedRow>& adapted) {
  if (row.scores.size() != by_side_.size()) {
    fail("found ", row.scores.size(), " scores of a row, expected ", by_side_.size());
  }
  const size_t raised = so_far_.alarms.size();
  watch_scores(row);
  watch_coverage(row);
  watch_inputs(row);
  count(row, period, adapted);
  ++so_far_.rows;
  for (size_t i = raised; i < so_far_.alarms.size() && !row.time.empty(); ++i) {
    so_far_.alarms[i].time = row.time;
    so_far_.alarms[i].began = period_of(so_far_.alarms[i].since);
  }
}

// Of rows before those that the timeline keeps, the first one's.
std::string Monitor::period_of(size_t row) const {
  const auto& timeline = so_far_.timeline;
  const auto after =
      std::find_if(timeline.begin(), timeline.end(),
                   [&](const TimelinePoint& point) { return point.first_row > row; });
  return after == timeline.begin() ? after->label : (after - 1)->label;
}

MonitorReport Monitor::report() const {
  MonitorReport report = so_far_;
  const auto sequence = [&](const RateCount& count) {
    return rate_sequence(count.hits, count.rows, options_.false_alarms);
  };
  report.sequence = sequence(report.covered);
  for (TimelinePoint& point : report.timeline) point.sequence = sequence(point.so_far);
  for (GroupCount& group : report.groups) group.sequence = sequence(group.covered);
  return report;
}

// What a Monitor has seen, as bytes and back.

namespace {

constexpr size_t kFormat = 1;  // of the bytes

void exchange_rate(SavedState& state, RateCount& rate) {
  state.count(rate.rows);
  state.count(rate.hits);
}

void exchange_size(SavedState& state, SizeCount& size) {
  state.count(size.finite);
  state.count(size.infinite);
  state.number(size.sum);
}

void exchange_alarm(SavedState& state, MonitorAlarm& alarm) {
  for (std::string* text : {&alarm.kind, &alarm.what, &alarm.time, &alarm.began}) {
    state.text(*text);
  }
  state.count(alarm.row);
  state.count(alarm.since);
  state.number(alarm.log10_odds);
}

void exchange_point(SavedState& state, TimelinePoint& point) {
  state.text(point.label);
  state.count(point.first_row);
  for (RateCount* rate : {&point.covered, &point.adapted_covered, &point.so_far}) {
    exchange_rate(state, *rate);
  }
  for (SizeCount* size : {&point.size, &point.adapted_size}) exchange_size(state, *size);
  for (double* number :
       {&point.level_sum, &point.log_exchangeability, &point.log_coverage, &point.log_drift}) {
    state.number(*number);
  }
}

// Options, what is watched and confidence sequences follow from the rest.
void exchange_report(SavedState& state, MonitorReport& report) {
  state.count(report.rows);
  for (RateCount* rate : {&report.covered, &report.adapted_covered}) exchange_rate(state, *rate);
  for (SizeCount* size : {&report.size, &report.adapted_size}) exchange_size(state, *size);
  for (double* number : {&report.log_exchangeability, &report.log_coverage, &report.log_drift}) {
    state.number(*number);
  }
  state.list(report.alarms, [&](MonitorAlarm& alarm) { exchange_alarm(state, alarm); });
  state.list(report.timeline, [&](TimelinePoint& point) { exchange_point(state, point); });
  state.list(report.groups, [&](GroupCount& group) {
    state.text(group.name);
    exchange_rate(state, group.covered);
  });
}

}  // namespace

void Monitor::exchange(SavedState& state) {
  state.expect(kFormat, "for its format");
  state.expect(transducers_.size(), "groups");
  state.expect(by_side_.size(), "sides");
  for (auto& sides : transducers_) {
    for (Transducer& transducer : sides) transducer.exchange(state);
  }
  for (Martingale& martingale : by_side_) martingale.exchange(state);
  scores_watch_.exchange(state);
  drift_watch_.exchange(state);
  for (auto& found : tests_) {
    state.expect(found ? 1 : 0, "tests of a group's coverage");
    if (!found) continue;
    found->test.exchange(state);
    found->watch.exchange(state);
    state.number(found->log_capital);
  }
  state.expect(drift_ ? 1 : 0, "tests of drift");
  if (drift_) drift_->exchange(state);
  exchange_report(state, so_far_);
}

std::string Monitor::state() {
  SavedState state;
  exchange(state);
  return state.take();
}

void Monitor::restore(std::string_view bytes) {
  Monitor read = *this;
  SavedState state(bytes);
  read.exchange(state);
  state.end();
  *this = std::move(read);
}

namespace {

constexpr size_t kMostColumns = 64;
constexpr size_t kProjections = 32;
constexpr size_t kMostValues = 20'000;  // of a column, to compare with

}  // namespace

Drift::Drift(size_t row_size, std::vector<size_t> columns, std::vector<std::string> names,
             uint64_t seed)
    : row_size_(row_size), columns_(std::move(columns)), names_(std::move(names)), seed_(seed) {
  for (const size_t column : columns_) {
    if (column >= row_size) fail("there is no column ", column, " in rows of ", row_size);
  }
  if (names_.size() != columns_.size()) {
    names_.clear();
    for (const size_t column : columns_) names_.push_back(concat("column ", column));
  }
  size_t watched = columns_.size();
  if (watched > kMostColumns) {
    watched = kProjections;
    Random random(seed);
    signs_.resize(watched * columns_.size());
    for (float& sign : signs_) sign = random.below(2) == 0 ? -1.0f : 1.0f;
    names_.clear();
    for (size_t i = 0; i < watched; ++i) names_.push_back(concat("random sum ", i));
  }
  values_.resize(watched);
  reference_.resize(watched);
  martingales_.resize(watched);
}

void Drift::look_at(std::span<const float> row) {
  if (row.size() != row_size_) fail("found a row of ", row.size(), ", expected ", row_size_);
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i] = 0;
    if (signs_.empty()) {
      values_[i] = row[columns_[i]];
      continue;
    }
    for (size_t j = 0; j < columns_.size(); ++j) {
      values_[i] += static_cast<double>(signs_[i * columns_.size() + j] * row[columns_[j]]);
    }
  }
}

void Drift::add_reference(std::span<const float> row) {
  look_at(row);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!std::isnan(values_[i])) reference_[i].push_back(values_[i]);
  }
}

void Drift::begin() {
  for (size_t i = 0; i < reference_.size(); ++i) {
    transducers_.emplace_back(std::move(reference_[i]), seed_ + 1 + i, kMostValues);
  }
  reference_.clear();
}

void Drift::step(std::span<const float> row) {
  if (!reference_.empty()) begin();
  look_at(row);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!std::isnan(values_[i])) martingales_[i].step(transducers_[i].next(values_[i]));
  }
}

void Drift::exchange(SavedState& state) {
  if (!reference_.empty()) begin();
  state.expect(transducers_.size(), "columns");
  for (Transducer& transducer : transducers_) transducer.exchange(state);
  for (Martingale& martingale : martingales_) martingale.exchange(state);
}

double Drift::log_capital() const {
  if (martingales_.empty()) return 0;
  std::vector<double> logs;
  for (const Martingale& one : martingales_) logs.push_back(one.log_capital());
  return log_mean_exp(logs);
}

std::string Drift::strangest() const {
  const auto less = [](const Martingale& a, const Martingale& b) {
    return a.log_capital() < b.log_capital();
  };
  const auto found = std::max_element(martingales_.begin(), martingales_.end(), less);
  return found == martingales_.end() ? ""
                                     : names_[static_cast<size_t>(found - martingales_.begin())];
}

}  // namespace fcp
