// The opening of a report: whether the promise is kept, what to watch, and what to do about it.
//
// A part (a third of the response, a length, a size, a class, a group) is watched where its
// coverage is improbably low for a part that is covered at the target rate: P(X ≤ covered),
// X binomial, times the number of parts looked at, is below 0.05 (Bonferroni), so that a report on
// rows that are covered evenly names a part at most once in twenty.
// Tested by tests/report/verdict_test.cc.
#pragma once

#include <string>
#include <vector>

#include "apps/report/promise.h"

namespace fcp {

enum class Tone { kKept, kWatch, kBroken };

struct WatchedPart {
  std::string what;   // "group north: 81.0 % of 210 rows are covered, not 90 %"
  std::string cure;   // what to do about it
  double chance = 0;  // of a coverage this low, times the number of parts
};

struct ReportVerdict {
  Tone tone = Tone::kKept;
  std::string headline;              // one sentence
  std::string cure = {};             // what to do where the promise itself is broken
  std::vector<WatchedPart> watched;  // the least probable first
  size_t parts = 0;                  // that were looked at
};

ReportVerdict verdict_of(const EvaluationReport& report, const Claim& claim);

// What to watch and what to do about it, at most so many lines; none where nothing is.
std::vector<std::string> watch_texts(const EvaluationReport& report, size_t most);

// As the box that opens the page.
std::string verdict_html(const ReportVerdict& verdict);

}  // namespace fcp
