// The scores that `auto` tried, as one line of an artifact's provenance, and read from it again:
//
//   residual 18.49, nested 16.93, spread 13.36 (chosen)
//
// The numbers are those of the objective, which stands beside them; files without one were chosen
// by length or size.
//
// Tested by tests/pipeline/candidates_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/evaluation/evaluation_report.h"
#include "fcp/pipeline/choices.h"

namespace fcp {

inline constexpr char kCandidates[] = "candidates";  // their key in the provenance
inline constexpr char kObjective[] = "objective";    // what they were compared by: interval-score

// Those that were skipped are left out.
std::string candidates_text(const ChosenFrom<ScoreTried>& scores, bool by_interval_score);

// What does not read like a candidate is left out: an artifact may come from elsewhere.
std::vector<CandidateScore> parse_candidates(std::string_view text);

// Whether an artifact's score was chosen by the interval score.
bool chosen_by_interval_score(const CalibrationArtifact& artifact);

// Of an artifact; empty where its score was not chosen by `auto`.
std::vector<CandidateScore> candidates_of(const CalibrationArtifact& artifact);

}  // namespace fcp
