// What a Monitor has seen, as bytes and back.
#include <utility>

#include "fcp/monitoring/monitor.h"

namespace fcp {
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

}  // namespace fcp
