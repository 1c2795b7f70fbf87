#include "fcp/evaluate/replay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/base/text_table.h"
#include "fcp/data/csv_column.h"
#include "fcp/evaluate/judge.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/monitoring/adaptive_level.h"
#include "fcp/monitoring/coverage_alarm.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr size_t kPoints = 20;         // of a timeline by count
constexpr size_t kLeastPerPoint = 50;  // rows

class ReplayPeriods {
 public:
  ReplayPeriods(const ReplayOptions& options, const RowSource& source) : times_(&options.times) {
    check_times(options.times);
    if (!options.period.empty()) {
      if (options.times.empty()) fail_option("period", "needs time, the column of the times");
      calendar_ = calendar_periods(options.times, options.period);
    }
    const size_t rows = source.size().value_or(options.times.size());
    every_ = options.every > 0 ? options.every
                               : std::max(kLeastPerPoint, (rows + kPoints - 1) / kPoints);
  }

  std::string of(size_t row) const {
    if (!times_->empty() && row >= times_->size()) {
      fail("time: names ", times_->size(), " rows, the data has more");
    }
    return calendar_.empty() ? counted_period(row, every_, *times_) : calendar_[row];
  }

 private:
  const std::vector<std::string>* times_;
  std::vector<std::string> calendar_;
  size_t every_ = 1;
};

std::optional<Drift> start_drift(const RowSource& source, const ReplayOptions& options,
                                 const Context& context) {
  if (!options.watch_inputs) return std::nullopt;
  const size_t row_size = element_count(source.row_shape());
  Drift drift =
      watched_inputs(row_size, source.column_names(), options.watched, options.monitor.seed);
  if (options.reference == nullptr) return drift;
  if (element_count(options.reference->row_shape()) != row_size) {
    fail("the reference rows have ", element_count(options.reference->row_shape()),
         " numbers, the log's ", row_size);
  }
  Context quiet = context;
  quiet.observer = silent_observer();
  each_batch(*options.reference, quiet, "reference", [&](const Rows& rows) {
    for (size_t i = 0; i < rows.x.rows(); ++i) drift.add_reference(rows.x.row(i));
  });
  return drift;
}

// Where groups are the labels themselves, a row's group is its truth; one that is none of the
// classes is infinitely unusual in any of them.
int64_t group_of(const CalibrationArtifact& artifact, const JudgedRows& judged, size_t i) {
  if (!artifact.method.calibration.traits().by_group) return 0;
  if (artifact.method.calibration.value(field::group) == kByLabel) {
    const float label = judged.rows.y.values[i];
    return std::isinf(label) ? 0 : static_cast<int64_t>(label);
  }
  return judged.inputs.groups[i];
}

std::string shown_group(const RowGroups& shown, size_t row) {
  return shown.ids.empty() ? "" : shown.names.at(static_cast<size_t>(shown.ids.at(row)));
}

void add_times(const std::vector<std::string>& times, MonitorReport& report) {
  if (times.empty()) return;
  for (MonitorAlarm& alarm : report.alarms) {
    alarm.time = times.at(alarm.row);
    alarm.began = times.at(alarm.since);
  }
}

// What is known of row `row` alone.
TestInputs one_row(const TestInputs& rows, int64_t row) {
  const auto at = static_cast<size_t>(row);
  TestInputs one{rows.features.narrow(0, row, 1), {}, {}};
  if (!rows.groups.empty()) one.groups = {rows.groups[at]};
  if (!rows.weights.empty()) one.weights = {rows.weights[at]};
  if (!rows.keys.empty()) one.keys = {rows.keys[at]};
  return one;
}

// Regions whose level follows the truths: from the scores of rows in order to a radius for each.
class ReplayAdapter {
 public:
  // window: radii are those of the last so many scores; 0: of the artifact's. A window needs split
  // calibration of a score with one side.
  ReplayAdapter(const Judge& judge, const ReplayOptions& options)
      : judge_(judge), level_(options.monitor.level, *options.adapt) {
    if (options.window == 0) return;
    const CalibrationArtifact& artifact = judge.artifact();
    if (!artifact.method.calibration.traits().one_radius || artifact.rows.sides != 1) {
      fail_option("window", "applies only to split calibration of a score with one side, found ",
                  artifact.method.calibration.name(), " of ", artifact.rows.sides);
    }
    window_.emplace(artifact.rows.scores, options.window, options.monitor.seed);
  }

  // The rows in order, each judged before its truth is learned from.
  std::vector<AdaptedRow> take(const TestInputs& rows, const Conformity& judged) {
    std::vector<AdaptedRow> adapted(judged.p_values.size());
    std::vector<torch::Tensor> radii;
    for (size_t i = 0; i < adapted.size(); ++i) {
      const double level = level_.level();
      const double p = window_ ? window_->p_value(judged.scores[i]) : judged.p_values[i];
      radii.push_back(radii_at(rows, static_cast<int64_t>(i), level));
      adapted[i].level = level;
      adapted[i].covered = p > level;
      level_.see(p);
      if (window_) window_->add(judged.scores[i]);
    }
    const std::vector<double> sizes =
        region_sizes(judge_.score().region(rows.features, torch::cat(radii)));
    for (size_t i = 0; i < adapted.size(); ++i) adapted[i].size = sizes[i];
    return adapted;
  }

 private:
  torch::Tensor radii_at(const TestInputs& rows, int64_t row, double level) const {
    if (window_) return torch::full({1, 1}, window_->radius(level), torch::kDouble);
    const TestInputs one = one_row(rows, row);
    const bool inside = level > 0 && level < 1;
    const torch::Tensor radii =
        host_doubles(judge_.predictor().calibration().radii(one, Level(inside ? level : 0.5)));
    return inside ? radii : torch::full_like(radii, level <= 0 ? kInfinity : -kInfinity);
  }

  const Judge& judge_;
  AdaptiveLevel level_;
  std::optional<ScoreWindow> window_;
};

class Replayer {
 public:
  Replayer(const CalibrationArtifact& artifact, const RowSource& source,
           const ReplayOptions& options, const Context& context)
      : options_(options),
        periods_(options, source),
        judge_(artifact, context.device),
        monitor_(options.monitor, monitored_calibration(artifact),
                 start_drift(source, options, context)) {
    if (options.adapt) adapter_.emplace(judge_, options);
  }

  void take(const Rows& rows) {
    const size_t first = monitor_.rows();
    const Level& level = options_.monitor.level;
    const JudgedRows judged = judge_.run(rows, options_.facts, first);
    const Conformity found = judge_.judge(judged);
    const std::vector<bool> in = judge_.within(judged, found.scores, level);
    const std::vector<double> sizes = region_sizes(judge_.predictor().region(judged.inputs, level));
    const auto adapted =
        adapter_ ? adapter_->take(judged.inputs, found) : std::vector<AdaptedRow>();
    const auto sides = static_cast<size_t>(judge_.score().sides());
    for (size_t i = 0; i < judged.count(); ++i) {
      const MonitoredRow row{.scores = std::span(found.scores).subspan(i * sides, sides),
                             .covered = in[i],
                             .size = sizes[i],
                             .group = group_of(judge_.artifact(), judged, i),
                             .shown = shown_group(options_.facts.shown, first + i),
                             .x = rows.x.row(i)};
      monitor_.take(row, periods_.of(first + i),
                    adapted.empty() ? std::optional<AdaptedRow>() : adapted[i]);
    }
  }

  MonitorReport finish() const {
    check_facts(options_.facts, monitor_.rows());
    if (monitor_.rows() == 0) fail("the data has no rows to monitor");
    MonitorReport report = monitor_.report();
    add_times(options_.times, report);
    return report;
  }

 private:
  const ReplayOptions& options_;
  ReplayPeriods periods_;
  Judge judge_;
  Monitor monitor_;
  std::optional<ReplayAdapter> adapter_;
};

}  // namespace

std::vector<std::string> read_times(const DataOptions& data, const std::string& column) {
  std::vector<std::string> times;
  for (const std::string& file : file_list(data.data)) {
    for (std::string& cell : read_csv_column(file, column, data.csv)) {
      times.push_back(std::move(cell));
    }
  }
  return times;
}

Drift watched_inputs(size_t row_size, const std::vector<std::string>& columns,
                     const std::vector<std::string>& watched, uint64_t seed) {
  std::vector<size_t> places;
  for (const std::string& name : watched) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) fail_option("watch", "the data has no column '", name, "'");
    places.push_back(static_cast<size_t>(found - columns.begin()));
  }
  if (!watched.empty()) return Drift(row_size, places, watched, seed);
  for (size_t i = 0; i < row_size; ++i) places.push_back(i);
  return Drift(row_size, places, columns, seed);
}

MonitoredCalibration monitored_calibration(const CalibrationArtifact& artifact) {
  if (const auto missing = missing_scores(artifact.rows.levels)) {
    fail(*missing, "; monitoring needs all scores");
  }
  const CalibrationOptions& options = artifact.method.calibration;
  if (options.traits().made_by_fit) {
    fail(
        "the predictor is calibrated by its training rows (cross), with which the scores of a log ",
        "are not exchangeable; run fcp calibrate on it with the score auto and rows of their own");
  }
  const CalibrationScores& rows = artifact.rows;
  if (rows.targets > 1) {
    fail("the predictor promises coverage for each of ", rows.targets,
         " targets (joint each), and ",
         "a monitor follows one; calibrate with joint all or volume");
  }
  const bool grouped = options.traits().by_group;
  const auto sides = static_cast<size_t>(rows.sides);
  MonitoredCalibration monitored;
  monitored.exchangeable = !options.traits().by_weight;
  monitored.has_law = (options.traits().one_radius || grouped) && !options.paper;
  if (grouped) monitored.groups = rows.group_names;
  monitored.scores.resize(grouped ? rows.group_names.size() : 1,
                          std::vector<std::vector<double>>(sides));
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    const auto group = grouped ? static_cast<size_t>(rows.groups[i / sides]) : 0;
    monitored.scores.at(group)[i % sides].push_back(rows.scores[i]);
  }
  return monitored;
}

MonitorReport replay(const CalibrationArtifact& artifact, RowSource& source,
                     const ReplayOptions& options, const Context& context) {
  torch::NoGradGuard no_grad;
  Replayer replayer(artifact, source, options, context);
  each_batch(source, context, "monitor", [&](const Rows& rows) { replayer.take(rows); });
  return replayer.finish();
}

}  // namespace fcp
