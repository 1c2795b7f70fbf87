// Everything that is watched about a calibrated predictor in use, row by row, in one place:
//
//   exchangeability   a conformal test martingale on the scores of the truths
//   coverage          whether regions miss more often than calibration allows
//   drift             martingales on the inputs' columns
//
// and what people look at over time: coverage with a confidence sequence, by period and by group,
// and the lengths of intervals or sizes of sets. The chance that any alarm is ever raised while
// nothing has changed is at most `false_alarms`: a third for each of the three, coverage's shared
// by the groups that have a radius of their own.
//
// Memory does not grow with the rows: 100,000 scores per side, which groups share, 20,000 values
// per column and 1,000 groups to show; only the timeline does, where all of its periods are kept.
//
// Tested by tests/monitoring/monitor_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/interval.h"
#include "fcp/level.h"
#include "fcp/monitoring/coverage_alarm.h"
#include "fcp/monitoring/martingale.h"
#include "fcp/monitoring/saved_state.h"

namespace fcp {

// Drift of the inputs themselves: one conformal test martingale per column, and their mean.
//
// The strangeness of a row for a column is its value; the transducer compares it with the values
// before (those of `reference` rows, where there are some, and 20,000 of the rows since). The mean
// of the columns' capitals is a martingale again, so that one threshold serves all of them, and the
// column whose capital is largest is named. No truths are needed. A missing value (NaN) says
// nothing, and its column is passed over.
//
// Rows of more than 64 numbers are watched through 32 sums of their numbers with random signs, by
// the seed.
//
// O(columns) transducers per row. Tested by tests/monitoring/monitor_test.cc.

class Drift {
 public:
  // `names` of the columns to watch; empty: numbers. `columns` are their places in a row.
  Drift(size_t row_size, std::vector<size_t> columns, std::vector<std::string> names,
        uint64_t seed);

  // A row from before, whose order does not matter; none after the first step.
  void add_reference(std::span<const float> row);
  void step(std::span<const float> row);

  double log_capital() const;
  // The name of the column whose capital is largest; "" where none is watched.
  std::string strangest() const;
  const std::vector<std::string>& names() const { return names_; }

  void exchange(SavedState& state);

 private:
  void look_at(std::span<const float> row);
  void begin();

  size_t row_size_;
  std::vector<size_t> columns_;
  std::vector<std::string> names_;
  std::vector<float> signs_;                    // [projections × row_size]; empty: plain columns
  std::vector<double> values_;                  // of the row looked at
  std::vector<std::vector<double>> reference_;  // until the first step
  std::vector<Transducer> transducers_;
  std::vector<Martingale> martingales_;
  uint64_t seed_;
};

struct MonitorOptions {
  Level level = Level(0.1);
  double false_alarms = 0.01;
  uint64_t seed = 0;
  size_t periods = 0;  // of the timeline, the newest, to keep; 0: all
};

// What the monitor must know of the calibration.
struct MonitoredCalibration {
  std::vector<std::string> groups = {};  // with a radius of their own; empty: one for all
  // The calibration scores, [group][side][n]; one group where there are no names.
  std::vector<std::vector<std::vector<double>>> scores;
  bool exchangeable = true;  // new rows are drawn as calibration rows were: not with weights
  bool has_law = true;       // coverage follows Beta(k, n + 1 − k), group by group
};

struct MonitoredRow {
  std::span<const double> scores;  // one per side
  bool covered = false;
  double size = 0;           // length of the intervals, or labels in the set
  int64_t group = 0;         // of the calibration's; −1: one that it does not know
  std::string shown = {};    // the group to show coverage by; "": none
  std::span<const float> x;  // for drift; empty: not watched
  std::string time = {};     // when it came, as its alarms say it; "": unknown
};

// What adapting did to the same row.
struct AdaptedRow {
  double level = 0;
  bool covered = false;
  double size = 0;
};

struct MonitorAlarm {
  std::string kind;        // "exchangeability", "coverage" or "drift"
  std::string what;        // a sentence, with the group or column
  size_t row = 0;          // from 0: where it was raised
  size_t since = 0;        // about where it began
  double log10_odds = 0;   // of the capital when it was raised
  std::string time = {};   // of that row; "": unknown
  std::string began = {};  // the time of row `since`, or the period of the timeline it is in
};

struct RateCount {
  size_t rows = 0;
  size_t hits = 0;
  void add(bool hit);
  double rate() const;  // 0 without rows
};

struct SizeCount {
  size_t finite = 0, infinite = 0;
  double sum = 0;  // of the finite ones
  void add(double size);
  double mean() const { return finite == 0 ? 0 : sum / static_cast<double>(finite); }
};

struct TimelinePoint {
  std::string label;
  size_t first_row = 0;
  RateCount covered{}, adapted_covered{};
  SizeCount size{}, adapted_size{};
  double level_sum = 0;  // of the adapted levels
  RateCount so_far{};    // from the first row to the end of the period
  Interval sequence{};   // the confidence sequence of coverage there
  double log_exchangeability = 0, log_coverage = 0, log_drift = 0;  // capitals at its end
};

struct GroupCount {
  std::string name;
  RateCount covered;
  Interval sequence{};
};

struct MonitorReport {
  MonitorOptions options;
  size_t rows = 0;
  RateCount covered{}, adapted_covered{};
  Interval sequence{};  // of coverage, at confidence 1 − false_alarms
  SizeCount size{}, adapted_size{};
  double log_exchangeability = 0, log_coverage = 0, log_drift = 0;
  bool watches_exchangeability = false, watches_coverage = false, watches_drift = false;
  std::vector<MonitorAlarm> alarms;  // in the order in which they were raised
  std::vector<TimelinePoint> timeline;
  std::vector<GroupCount> groups;
};

class Monitor {
 public:
  // `drift` as it is to start, reference rows included; none: inputs are not watched.
  Monitor(const MonitorOptions& options, MonitoredCalibration calibration,
          std::optional<Drift> drift);

  // A row in the order of time. A change of `period` begins a new point of the timeline.
  void take(const MonitoredRow& row, const std::string& period,
            const std::optional<AdaptedRow>& adapted = {});

  MonitorReport report() const;
  size_t rows() const { return so_far_.rows; }
  // In the order in which they were raised.
  const std::vector<MonitorAlarm>& alarms() const { return so_far_.alarms; }

  // All that it has seen, for a monitor of the same options, calibration and inputs, which goes on
  // from there as this one would. An Error where the bytes are not such a state; nothing is changed
  // then.
  std::string state();
  void restore(std::string_view state);

 private:
  struct GroupTest {
    std::string name;
    CoverageAlarm test;
    CapitalWatch watch;
    double log_capital = 0;
  };

  std::optional<double> allowed_for(size_t rows, size_t sides, double delta) const;
  void watch_scores(const MonitoredRow& row);
  void watch_coverage(const MonitoredRow& row);
  void watch_inputs(const MonitoredRow& row);
  void raise(const CapitalWatch& watch, double log_capital, const std::string& kind,
             const std::string& what);
  void count(const MonitoredRow& row, const std::string& period,
             const std::optional<AdaptedRow>& adapted);
  void count_shown(const MonitoredRow& row);
  std::string period_of(size_t row) const;
  void exchange(SavedState& state);

  MonitorOptions options_;
  MonitoredCalibration calibration_;
  std::vector<std::vector<Transducer>> transducers_;  // [group][side]; the last: unknown groups
  std::vector<Martingale> by_side_;
  CapitalWatch scores_watch_, drift_watch_;
  std::vector<std::optional<GroupTest>> tests_;  // by group; none where it can never miss
  std::optional<Drift> drift_;
  MonitorReport so_far_;  // without its confidence sequences
};

}  // namespace fcp
