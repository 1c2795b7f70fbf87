#include "fcp/pipeline/candidates.h"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/number_text.h"
#include "fcp/calibration/method_request.h"

namespace fcp {
namespace {

constexpr std::string_view kChosen = " (chosen)";

// A number as format_number writes it.
std::optional<double> parse_shown(std::string_view shown) {
  if (shown == "∞") return std::numeric_limits<double>::infinity();
  std::string plain;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown.substr(i, 3) == "−") {
      plain += '-';
      i += 2;
    } else if (shown[i] != ',') {
      plain += shown[i];
    }
  }
  double value = 0;
  const auto end = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (end.ec != std::errc() || end.ptr != plain.data() + plain.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string candidates_text(const ChosenFrom<ScoreTried>& scores, bool by_interval_score) {
  std::string text;
  for (size_t i = 0; i < scores.candidates.size(); ++i) {
    const ScoreTried& one = scores.candidates[i];
    if (!one.skipped.empty()) continue;
    const double loss = by_interval_score ? one.interval_score : one.length;
    text += concat(text.empty() ? "" : ", ", one.name, ' ', format_number(loss),
                   i == scores.chosen ? kChosen : "");
  }
  return text;
}

std::vector<CandidateScore> parse_candidates(std::string_view text) {
  std::vector<CandidateScore> candidates;
  while (!text.empty()) {
    const size_t end = text.find(", ");
    std::string_view one = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
    CandidateScore candidate;
    candidate.chosen = one.ends_with(kChosen);
    if (candidate.chosen) one.remove_suffix(kChosen.size());
    const size_t space = one.rfind(' ');
    if (space == std::string_view::npos) continue;
    const std::optional<double> size = parse_shown(one.substr(space + 1));
    if (!size) continue;
    candidate.name = one.substr(0, space);
    candidate.size = *size;
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

bool chosen_by_interval_score(const CalibrationArtifact& artifact) {
  const auto found = artifact.provenance.find(kObjective);
  return found != artifact.provenance.end() && found->second == kByIntervalScore;
}

std::vector<CandidateScore> candidates_of(const CalibrationArtifact& artifact) {
  const auto found = artifact.provenance.find(kCandidates);
  return found == artifact.provenance.end() ? std::vector<CandidateScore>()
                                            : parse_candidates(found->second);
}

}  // namespace fcp
