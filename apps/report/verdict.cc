#include "apps/report/verdict.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/evaluate/measures/coverage_law.h"

#include "apps/report/page.h"
#include "apps/report/results.h"

namespace fcp {
namespace {

constexpr double kSurprising = 0.05;  // a p-value over all parts
constexpr size_t kMostWatched = 4;

constexpr char kNewRows[] =
    "These rows are probably not drawn as the calibration rows were. Calibrate on rows like these "
    "(fcp update or fcp calibrate) before you rely on the predictor, and let fcp monitor watch it.";
constexpr char kLater[] =
    "Later rows differ from those that calibrate. Calibrate on the newest rows as they come (fcp "
    "update), and let fcp monitor watch the predictor.";

// The command that makes the predictor with these options, or calibrates it again.
std::string command_with(const EvaluationReport& report, const std::string& options) {
  if (!report.command.empty()) return concat(report.command, " ", options);
  return concat("fcp calibrate ", report.model.empty() ? "MODEL.onnx" : report.model,
                " --data NEW.csv --target TARGET ", options, " --out CALIBRATED.onnx");
}

std::string even_cure(const EvaluationReport& report) {
  return concat("One radius for all rows cannot guarantee even coverage; to even it out: ",
                command_with(report, "--calibration rectified"));
}

std::string group_cure(const EvaluationReport& report, const std::string& column) {
  return concat(
      "To give every ", column == "label" ? "class" : "group", " its own radius and guarantee: ",
      command_with(report, concat(report.command.empty() ? "--calibration grouped --group "
                                                         : "--cover-each ",
                                  column)));
}

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
                             format_count(coverage.rows, "row"), " covered (target ",
                             format_target(claim_.level), ")"),
                      cure, chance_of(worth(coverage, claim_.rows_alike), claim_.level)});
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
  const std::string even =
      claim.groups.empty() ? even_cure(report) : "What has its own radius evens out, nothing else.";
  const std::string by_group = claim.groups.empty() ? group_cure(report, "COLUMN") : kNewRows;
  if (const auto* intervals = std::get_if<IntervalEvaluation>(&found)) {
    list.add_groups(concat(report.response, ", "), intervals->response_thirds, even);
    for (const Stratum& stratum : intervals->length_strata) {
      list.add(concat("intervals of length ", format_lengths(stratum)), stratum.coverage, even);
    }
    list.add_groups("group ", intervals->groups, by_group);
  } else if (const auto* sets = std::get_if<SetEvaluation>(&found)) {
    list.add_groups("class ", sets->class_coverage,
                    report.guaranteed_classes ? kNewRows : group_cure(report, "label"));
    for (const Stratum& stratum : sets->size_strata) {
      list.add(stratum.high == 0 ? "empty sets" : concat("sets of size ", format_sizes(stratum)),
               stratum.coverage, even);
    }
    list.add_groups("group ", sets->groups, by_group);
  }
  for (const ColumnCoverage& column : report.by_column) {
    list.add_groups(concat(column.column, " = "), column.parts,
                    group_cure(report, shell_word(column.column)));
  }
  list.add_groups("", report.over_time, kLater);
  verdict.parts = list.size();
  verdict.watched = list.watched();
}

std::string covered_text(const Claim& claim) {
  return concat(format_percent(claim.coverage.rate), " of ", format_count(claim.coverage.rows),
                " test ", words_for(claim.kind).rows, " are covered (target ",
                format_target(claim.level), ")");
}

// Of rows that trained or calibrated.
ReportVerdict seen_verdict(const Claim& claim) {
  const bool trained = claim.origin == RowsOrigin::kTrainingRows;
  return {Tone::kWatch,
          concat(trained ? "The network was trained on some of these rows"
                         : "These are the rows that calibrated the predictor",
                 ": these numbers say nothing about new rows."),
          "Evaluate on rows that it has not seen.",
          {}};
}

// Why coverage is lower than chance usually makes it, and what can be done.
std::string low_cure(const Claim& claim) {
  if (claim.origin == RowsOrigin::kLater) return kLater;
  const bool dealt =
      claim.origin == RowsOrigin::kRandomSplit || claim.origin == RowsOrigin::kNewGroups;
  return dealt ? "The rows were split at random, so this is chance and the guarantee stands; more "
                 "calibration rows make it rarer."
               : kNewRows;
}

std::string low_headline(const Claim& claim) {
  const bool dealt =
      claim.origin == RowsOrigin::kRandomSplit || claim.origin == RowsOrigin::kNewGroups;
  return dealt ? "Coverage is lower than chance usually makes it: "
               : "The guarantee fails on these rows: ";
}

// Where no law of coverage is known, the confidence interval alone is held against the target.
bool below_target(const Claim& claim) { return claim.coverage.upper < 1 - claim.level.value(); }

// What to do, with the command at its end as one.
std::string html_cure(const std::string& cure) {
  const size_t colon = cure.find(": fcp ");
  if (colon == std::string::npos) return html_text(cure);
  return concat(html_text(cure.substr(0, colon + 2)), "<code>", html_text(cure.substr(colon + 2)),
                "</code>");
}

}  // namespace

ReportVerdict verdict_of(const EvaluationReport& report, const Claim& claim) {
  const std::string regions(words_for(claim.kind).regions);
  if (claim.radius == std::numeric_limits<double>::infinity()) {
    return {Tone::kBroken,
            concat("The ", regions, " say nothing: the radius is infinite."),
            infinite_radius_text(claim),
            {}};
  }
  if (seen_rows(claim)) return seen_verdict(claim);
  const Verdict law = coverage_verdict(claim);
  ReportVerdict verdict;
  const bool grouped = !claim.radius && !claim.groups.empty();
  if (law == Verdict::kTooLow && grouped) {
    verdict = {Tone::kBroken, "The guarantee fails in some groups.", low_cure(claim), {}};
  } else if (law == Verdict::kTooLow || (law == Verdict::kUnknown && below_target(claim))) {
    verdict = {Tone::kBroken,
               concat(claim.guaranteed ? low_headline(claim)
                                       : "Coverage is too low, without a guarantee: ",
                      covered_text(claim), "."),
               claim.guaranteed ? low_cure(claim)
                                : "Use a score that obeys the law, such as nested or auto.",
               {}};
    if (claim.origin == RowsOrigin::kRandomSplit) verdict.tone = Tone::kWatch;
  } else {
    verdict = {
        Tone::kKept,
        concat(claim.guaranteed ? "The guarantee holds: " : "Nothing is guaranteed here: ",
               covered_text(claim), claim.folds > 0 ? concat("; ", cross_words(claim)) : "", "."),
        "",
        {}};
    if (claim.folds > 0 && below_target(claim)) {
      verdict.tone = Tone::kWatch;
      verdict.cure =
          concat("Below the target, above what cross guarantees. For a guarantee of ",
                 format_target(claim.level), ": ", command_with(report, "--calibration split"));
    }
    if (law == Verdict::kTooHigh && !single_answers(claim)) {
      verdict.tone = Tone::kWatch;
      verdict.cure = concat("More than chance explains: many scores are equal",
                            claim.origin == RowsOrigin::kRandomSplit
                                ? ""
                                : ", or these rows are easier than the calibration rows",
                            ", and the ", regions, " larger than they need be.");
    }
    if (!claim.guaranteed) verdict.tone = Tone::kWatch;
  }
  watch_parts(report, claim, verdict);
  if (!verdict.watched.empty() && verdict.tone == Tone::kKept) verdict.tone = Tone::kWatch;
  return verdict;
}

std::vector<std::string> watch_texts(const EvaluationReport& report, size_t most) {
  std::vector<std::string> texts;
  for (const WatchedPart& part : verdict_of(report, claim_of(report)).watched) {
    if (texts.size() == most) break;
    texts.push_back(concat(part.what, ". ", part.cure));
  }
  return texts;
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
  if (!verdict.cure.empty()) html += concat("<p>", html_cure(verdict.cure), "</p>\n");
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
    if (part.cure != last) html += concat(" ", html_cure(part.cure));
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
