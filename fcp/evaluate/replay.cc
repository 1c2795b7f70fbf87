#include "fcp/pipeline/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/data/csv_column.h"
#include "fcp/monitoring/periods.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/coverage_counts.h"
#include "fcp/pipeline/replay_adapter.h"

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
  for (Rows rows; options.reference->next(context.batch_for(*options.reference), rows);) {
    check_interrupted();
    for (size_t i = 0; i < rows.x.rows(); ++i) drift.add_reference(rows.x.row(i));
  }
  return drift;
}

// Where groups are the labels themselves, a row's group is its truth; one that is none of the
// classes is infinitely strange in any of them.
int64_t group_of(const CalibrationArtifact& artifact, const TestInputs& inputs, const Rows& rows,
                 size_t i) {
  if (artifact.calibration.name != "grouped") return 0;
  if (artifact.calibration.group == kByLabel) {
    return std::isinf(rows.y.values[i]) ? 0 : static_cast<int64_t>(rows.y.values[i]);
  }
  return inputs.groups[i];
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

class Replayer {
 public:
  Replayer(const CalibrationArtifact& artifact, const RowSource& source,
           const ReplayOptions& options, const Context& context)
      : artifact_(artifact),
        source_(source),
        options_(options),
        periods_(options, source),
        predictor_(artifact, context.device),
        monitor_(options.monitor, monitored_calibration(artifact),
                 start_drift(source, options, context)) {
    if (!options.adapt) return;
    adapter_.emplace(artifact, predictor_, options.monitor.level, *options.adapt, options.window,
                     options.monitor.seed);
  }

  void take(const Rows& rows) {
    const size_t first = monitor_.rows(), count = rows.x.rows();
    const Level& level = options_.monitor.level;
    const TestInputs inputs = predictor_.describe(
        view(rows.x),
        side_information(options_.facts, artifact_.rows.group_names.size(), first, count));
    const torch::Tensor truth = view(rows.y);
    const Conformity judged = judge_numbers(predictor_, inputs, truth, source_, rows.first_row);
    const std::vector<bool> in =
        within_radii(predictor_, inputs, truth, judged.scores, level, artifact_.score.paper);
    const std::vector<double> sizes = region_sizes(predictor_.region(inputs, level));
    const auto adapted = adapter_ ? adapter_->take(inputs, judged) : std::vector<AdaptedRow>();
    const auto sides = static_cast<size_t>(predictor_.score().sides());
    for (size_t i = 0; i < count; ++i) {
      const MonitoredRow row{.scores = std::span(judged.scores).subspan(i * sides, sides),
                             .covered = in[i],
                             .size = sizes[i],
                             .group = group_of(artifact_, inputs, rows, i),
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
  const CalibrationArtifact& artifact_;
  const RowSource& source_;
  const ReplayOptions& options_;
  ReplayPeriods periods_;
  TensorPredictor predictor_;
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
  const CalibrationOptions& options = artifact.calibration;
  if (options.name == kCrossScore) {
    fail(
        "the predictor is calibrated by its training rows (cross), with which the scores of a log ",
        "are not exchangeable; run fcp calibrate on it with the score auto and rows of their own");
  }
  const CalibrationScores& rows = artifact.rows;
  const bool grouped = options.name == "grouped";
  const auto sides = static_cast<size_t>(rows.sides);
  MonitoredCalibration monitored;
  monitored.exchangeable = options.name != "weighted";
  monitored.has_law = (options.name == "split" || grouped) && !options.paper;
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
  Stage stage(context, "monitor", source.size().value_or(0));
  for (Rows rows; source.next(context.batch_for(source), rows);) {
    check_interrupted();
    replayer.take(rows);
    stage.advance(rows.x.rows());
  }
  return replayer.finish();
}

}  // namespace fcp
