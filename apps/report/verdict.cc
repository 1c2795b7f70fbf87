#include "apps/report/verdict.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/evaluate/measures/beta.h"

#include "apps/report/format.h"
#include "apps/report/page.h"

namespace fcp {
namespace {

constexpr double kSurprising = 0.05;  // a p-value over all parts
constexpr size_t kMostWatched = 4;

constexpr char kNewRows[] =
    "These rows are probably not drawn as the calibration rows were. Calibrate on rows like these "
    "(fcp update or fcp calibrate) before you rely on the predictor, and let fcp monitor watch it.";
constexpr char kEven[] =
    "fcp calibrate --calibration rectified evens coverage out; no single radius promises it here.";
constexpr char kByGroup[] =
    "fcp calibrate --calibration grouped --group COLUMN gives every group a radius and a promise "
    "of its own.";
constexpr char kByClass[] =
    "fcp calibrate --calibration grouped --group label promises coverage class by class.";

// P(X ≤ covered) of X ~ Binomial(rows, 1 − α).
double chance_of(const Coverage& coverage, const Level& level) {
  if (coverage.covered >= coverage.rows) return 1;
  return beta_cdf(level.value(), static_cast<double>(coverage.rows - coverage.covered),
                  static_cast<double>(coverage.covered + 1));
}

class PartList {
 public:
  explicit PartList(const Claim& claim) : claim_(claim) {}

  void add(const std::string& name, const Coverage& coverage, const std::string& cure) {
    if (coverage.rows == 0) return;
    parts_.push_back({concat(name, ": ", format_percent(coverage.rate), " of ",
                             format_count(coverage.rows, "row"), " covered, ",
                             format_target(claim_.level), " asked for"),
                      cure, chance_of(coverage, claim_.level)});
  }

  void add_groups(const std::string& before, const std::vector<GroupCoverage>& groups,
                  const std::string& cure) {
    for (const GroupCoverage& group : groups) add(before + group.name, group.coverage, cure);
  }

  size_t size() const { return parts_.size(); }

  // Those that are improbable among all that were added.
  std::vector<WatchedPart> watched() {
    const auto count = static_cast<double>(parts_.size());
    for (WatchedPart& part : parts_) part.chance = std::min(1.0, part.chance * count);
    std::erase_if(parts_, [](const WatchedPart& part) { return part.chance >= kSurprising; });
    std::stable_sort(parts_.begin(), parts_.end(), [](const WatchedPart& a, const WatchedPart& b) {
      return a.chance < b.chance;
    });
    return parts_;
  }

 private:
  const Claim& claim_;
  std::vector<WatchedPart> parts_;
};

void watch_parts(const EvaluationReport& report, const Claim& claim, ReportVerdict& verdict) {
  PartList list(claim);
  const Evaluation& found = report.methods.front().evaluation;
  if (const auto* intervals = std::get_if<IntervalEvaluation>(&found)) {
    list.add_groups(concat(report.response, ", "), intervals->response_thirds, kEven);
    for (const Stratum& stratum : intervals->length_strata) {
      list.add(concat("intervals of length ", format_lengths(stratum)), stratum.coverage, kEven);
    }
    list.add_groups("group ", intervals->groups, claim.groups.empty() ? kByGroup : kNewRows);
  } else if (const auto* sets = std::get_if<SetEvaluation>(&found)) {
    list.add_groups("class ", sets->class_coverage,
                    report.guaranteed_classes ? kNewRows : kByClass);
    for (const Stratum& stratum : sets->size_strata) {
      list.add(stratum.high == 0 ? "empty sets" : concat("sets of size ", format_sizes(stratum)),
               stratum.coverage, kEven);
    }
    list.add_groups("group ", sets->groups, claim.groups.empty() ? kByGroup : kNewRows);
  }
  verdict.parts = list.size();
  verdict.watched = list.watched();
}

std::string covered_text(const Claim& claim) {
  return concat(format_percent(claim.coverage.rate), " of ", format_count(claim.coverage.rows),
                " test ", words_for(claim.kind).rows, " are covered, ", format_target(claim.level));
}

// Where no law of coverage is known, the confidence interval alone is held against the target.
bool below_target(const Claim& claim) { return claim.coverage.upper < 1 - claim.level.value(); }

}  // namespace

ReportVerdict verdict_of(const EvaluationReport& report, const Claim& claim) {
  const std::string regions(words_for(claim.kind).regions);
  if (claim.radius == std::numeric_limits<double>::infinity()) {
    return {Tone::kBroken,
            concat("The ", regions, " say nothing: the radius is infinite."),
            infinite_radius_text(claim),
            {}};
  }
  const Verdict law = coverage_verdict(claim);
  ReportVerdict verdict;
  const bool grouped = !claim.radius && !claim.groups.empty();
  if (law == Verdict::kTooLow && grouped) {
    verdict = {Tone::kBroken, "The promise is not kept in every group.", kNewRows, {}};
  } else if (law == Verdict::kTooLow || (law == Verdict::kUnknown && below_target(claim))) {
    verdict = {Tone::kBroken,
               concat(claim.guaranteed ? "The promise is not kept on these rows: "
                                       : "Coverage is too low, and nothing was promised: ",
                      covered_text(claim), " was asked for."),
               claim.guaranteed ? kNewRows : "Use a score that obeys the law, as nested or auto.",
               {}};
  } else {
    verdict = {Tone::kKept,
               concat(claim.guaranteed ? "The promise is kept: " : "Nothing is promised here: ",
                      covered_text(claim), " was asked for."),
               "",
               {}};
    if (law == Verdict::kTooHigh && !single_answers(claim)) {
      verdict.tone = Tone::kWatch;
      verdict.cure = concat(
          "More than chance explains: many scores are equal, or these rows are "
          "easier than the calibration rows, and the ",
          regions, " larger than they need be.");
    }
    if (!claim.guaranteed) verdict.tone = Tone::kWatch;
  }
  watch_parts(report, claim, verdict);
  if (!verdict.watched.empty() && verdict.tone == Tone::kKept) verdict.tone = Tone::kWatch;
  return verdict;
}

std::string verdict_html(const ReportVerdict& verdict) {
  const char* tone = verdict.tone == Tone::kKept    ? "kept"
                     : verdict.tone == Tone::kWatch ? "watch"
                                                    : "broken";
  const char* sign = verdict.tone == Tone::kKept ? "✓" : verdict.tone == Tone::kWatch ? "!" : "✗";
  const bool loud = verdict.tone == Tone::kBroken;
  std::string html =
      concat("<div class=\"opening ", tone, "\"", loud ? " role=\"alert\"" : "",
             "><span class=\"sign\" aria-hidden=\"true\">", sign, "</span><div>\n<p><strong>",
             html_text(verdict.headline), "</strong></p>\n");
  if (!verdict.cure.empty()) html += html_paragraph(verdict.cure);
  if (verdict.watched.empty()) {
    if (verdict.tone == Tone::kKept && verdict.parts > 0) {
      html += html_paragraph(concat("None of the ", format_count(verdict.parts),
                                    " parts of the rows that were looked at stands out: nothing to "
                                    "watch."));
    }
    return html + "</div></div>\n";
  }
  html += "<p>Watch:</p>\n<ul>\n";
  std::string last;
  for (size_t i = 0; i < std::min(verdict.watched.size(), kMostWatched); ++i) {
    const WatchedPart& part = verdict.watched[i];
    html += concat("<li>", html_text(part.what), ".");
    if (part.cure != last) html += concat(" ", html_text(part.cure));
    html += "</li>\n";
    last = part.cure;
  }
  html += "</ul>\n";
  if (verdict.watched.size() > kMostWatched) {
    html += html_paragraph(concat("And ", format_count(verdict.watched.size() - kMostWatched),
                                  " more: see coverage by part."));
  }
  return html + "</div></div>\n";
}

}  // namespace fcp
