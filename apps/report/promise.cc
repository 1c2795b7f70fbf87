#include "apps/report/promise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fcp/base/error.h"
#include "fcp/conformal/cross_guarantee.h"
#include "fcp/conformal/quantile.h"

#include "apps/report/results.h"

namespace fcp {
namespace {

constexpr RegionWords kIntervalWords = {"interval", "intervals", "true value", "rows"};
constexpr RegionWords kSetWords = {"set", "sets", "true label", "rows"};
constexpr RegionWords kPixelWords = {"region", "regions", "true image", "images"};
constexpr double kImprobable = 0.001;  // a p-value over all groups
constexpr size_t kMostGroups = 20;     // by name

RegionKind kind_of(const Evaluation& evaluation) {
  if (std::holds_alternative<IntervalEvaluation>(evaluation)) return RegionKind::kInterval;
  return std::holds_alternative<SetEvaluation>(evaluation) ? RegionKind::kLabelSet
                                                           : RegionKind::kPixels;
}

// The range that holds for this method, where one does.
std::optional<ExpectedCoverage> expected_of(const Claim& claim) {
  if (!claim.guaranteed || !claim.radius || std::isinf(*claim.radius)) return std::nullopt;
  return expected_coverage(claim.level, worth(claim.calibration_rows, claim.rows_alike));
}

// Why the test rows can be covered less than the calibration rows let one expect.
std::string too_low_text(const Claim& claim) {
  const std::string rows(words_for(claim.kind).rows);
  const bool groups = claim.origin == RowsOrigin::kNewGroups;
  if (groups || claim.origin == RowsOrigin::kRandomSplit) {
    const std::string dealt =
        concat(groups ? "Whole groups of rows" : "These rows",
               " were split at random from the calibration rows, so it is chance");
    if (!claim.p_value || *claim.p_value <= 0) return dealt + ".";
    return concat(dealt, ": about one such split in ",
                  format_count(static_cast<size_t>(std::min(1e15, std::ceil(1 / *claim.p_value)))),
                  " gives a coverage this low.");
  }
  if (claim.origin == RowsOrigin::kLater) {
    return "The later rows are probably not drawn as the earlier calibration rows were.";
  }
  return concat("The test ", rows, " are probably not drawn as the calibration ", rows, " were.");
}

bool by_group(const Claim& claim) {
  return claim.guaranteed && !claim.radius && !claim.groups.empty();
}

// What the groups are.
const char* group_words(const Claim& claim) {
  if (claim.targets) return "targets";
  return claim.classes ? "classes" : "groups";
}

// The group whose coverage is the least probable.
std::string group_verdict_text(const Claim& claim) {
  if (!claim.p_value) return "";
  const GuaranteedGroup* worst = nullptr;
  double least = 2;
  for (const GuaranteedGroup& group : claim.groups) {
    if (!group.coverage) continue;
    const auto p = coverage_p_value(claim.level, group.calibration_rows, *group.coverage);
    if (p.value_or(2) >= least) continue;
    least = *p;
    worst = &group;
  }
  const std::string seen = concat(claim.targets ? "" : "group ", worst->name, ", with ",
                                  format_count(worst->calibration_rows, "calibration row"),
                                  " and a coverage of ", format_percent(worst->coverage->rate));
  const std::string one = claim.targets ? "target" : "group";
  const std::string chance = concat("The probability of a coverage as low as this in any ", one,
                                    " is ", format_number(*claim.p_value, 2), ".");
  if (*claim.p_value < kImprobable) {
    return concat("Coverage is too low in ", seen, ". ", too_low_text(claim), " ", chance);
  }
  return concat("The coverage of each ", one, " agrees with its calibration rows; the least ",
                "probable is that of ", seen, ". ", chance);
}

// What happens with the promised probability.
std::string covered_event(const Claim& claim) {
  const RegionWords& words = words_for(claim.kind);
  if (claim.targets) return "Each target of a new row lies in its interval";
  if (claim.kind != RegionKind::kPixels) {
    return concat("A new row's ", words.truth, " lies in its ", words.region);
  }
  const std::string share = claim.pixel_share == 1
                                ? "all"
                                : concat("at least ", format_percent(claim.pixel_share), " of the");
  return concat("In a new image ", share,
                claim.pixel_sets ? " labelled pixels have their label in their set"
                                 : " pixels lie in their bands, in every class,");
}

std::string group_list(const Claim& claim) {
  std::string text;
  for (size_t i = 0; i < std::min(claim.groups.size(), kMostGroups); ++i) {
    const GuaranteedGroup& group = claim.groups[i];
    const bool infinite =
        conformal_rank(claim.level, group.calibration_rows) > group.calibration_rows;
    text += concat(i == 0 ? "" : ", ", group.name, " (",
                   format_count(group.calibration_rows, "calibration row"),
                   infinite ? ", too few: everything is in" : "", ")");
  }
  if (claim.groups.size() > kMostGroups) {
    text += concat(" and ", format_count(claim.groups.size() - kMostGroups), " more");
  }
  return text;
}

// CV+: fcp/methods/scores/cross.h.
std::vector<std::string> crossed_texts(const Claim& claim) {
  const RegionWords& words = words_for(claim.kind);
  const double least = cross_guarantee(claim.level, claim.calibration_rows, claim.folds);
  return {concat("A new row's ", words.truth, " lies in its ", words.region,
                 " with probability at least ", format_percent(least),
                 ", if it and the training rows are exchangeable. This is CV+, which promises ",
                 "1 − 2α, less a little for ", claim.folds,
                 " folds: ", format_count(claim.calibration_rows),
                 " training rows calibrate, each judged by networks that did not see it. Coverage ",
                 "is usually near ", format_target(claim.level), ", which is not guaranteed."),
          "The probability is over the draw of all these rows and of the new row together."};
}

}  // namespace

const RegionWords& words_for(RegionKind kind) {
  switch (kind) {
    case RegionKind::kInterval:
      return kIntervalWords;
    case RegionKind::kLabelSet:
      return kSetWords;
    default:
      return kPixelWords;
  }
}

Claim claim_of(const EvaluationReport& report) {
  if (report.methods.empty()) throw std::invalid_argument("a report without a method");
  const MethodResult& main = report.methods.front();
  const auto* pixels = std::get_if<PixelEvaluation>(&main.evaluation);
  return {.kind = kind_of(main.evaluation),
          .method = main.name,
          .level = report.level,
          .confidence = report.confidence,
          .calibration_rows = report.calibration_rows,
          .folds = report.folds,
          .coverage = main.coverage(),
          .radius = main.radius,
          .guaranteed = main.guaranteed,
          .detection = main.detection,
          .groups = report.guaranteed_groups,
          .p_value = coverage_p_value(report),
          .origin = report.origin,
          .rows_alike = report.rows_alike,
          .classes = report.guaranteed_classes,
          .targets = report.guaranteed_targets,
          .pixel_share = pixels ? pixels->share : 1,
          .pixel_sets = pixels && pixels->sets};
}

bool seen_rows(const Claim& claim) {
  return claim.origin == RowsOrigin::kCalibrationRows || claim.origin == RowsOrigin::kTrainingRows;
}

double guaranteed_rate(const Claim& claim) {
  return claim.folds > 0 ? cross_guarantee(claim.level, claim.calibration_rows, claim.folds)
                         : 1 - claim.level.value();
}

std::string cross_words(const Claim& claim) {
  return concat("at least ", format_percent(guaranteed_rate(claim)),
                " is guaranteed (cross), near ", format_target(claim.level), " is usual");
}

Verdict coverage_verdict(const Claim& claim) {
  if (seen_rows(claim)) return Verdict::kUnknown;
  if (claim.folds > 0 && claim.guaranteed) {
    return claim.coverage.upper < guaranteed_rate(claim) ? Verdict::kTooLow : Verdict::kAsExpected;
  }
  if (by_group(claim)) {
    if (!claim.p_value) return Verdict::kUnknown;
    return *claim.p_value < kImprobable ? Verdict::kTooLow : Verdict::kAsExpected;
  }
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (!expected) return Verdict::kUnknown;
  const Coverage& coverage = claim.coverage;
  if (coverage.upper < expected->low) return Verdict::kTooLow;
  if (coverage.lower > expected->high) return Verdict::kTooHigh;
  return Verdict::kAsExpected;
}

bool single_answers(const Claim& claim) {
  return claim.kind == RegionKind::kLabelSet && claim.radius == 0.0;
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAsExpected:
      return "as expected";
    case Verdict::kTooLow:
      return "too low";
    case Verdict::kTooHigh:
      return "too high";
    default:
      return "unknown";
  }
}

std::string alarm_text(const Claim& claim) {
  const Verdict verdict = coverage_verdict(claim);
  if (verdict != Verdict::kTooLow && verdict != Verdict::kTooHigh) return "";
  if (by_group(claim) && claim.p_value) return verdict_text(claim);
  std::string text = concat("coverage is ", verdict_name(verdict), ". ", verdict_text(claim));
  if (verdict == Verdict::kTooHigh || by_group(claim) || !claim.p_value) return text;
  return concat(text, " The probability of a coverage this low is ",
                format_number(*claim.p_value, 2), ".");
}

std::string verdict_text(const Claim& claim) {
  if (seen_rows(claim)) return "";
  if (by_group(claim)) return group_verdict_text(claim);
  if (claim.folds > 0 && claim.guaranteed) {
    return concat("The training rows calibrate as well, fold by fold: ", cross_words(claim), ".");
  }
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (!expected) return "";
  const std::string range = concat(
      "With ", format_count(claim.calibration_rows), " calibration ", words_for(claim.kind).rows,
      ", the coverage of a predictor lies between ", format_percent(expected->low), " and ",
      format_percent(expected->high), " nine times out of ten",
      claim.rows_alike > 1
          ? concat(" (rows of one group are alike: ", format_number(claim.rows_alike, 2),
                   " of them tell as much as one)")
          : "",
      ". ");
  const std::string rows(words_for(claim.kind).rows);
  const Coverage& coverage = claim.coverage;
  const std::string observed = concat("the observed ", format_percent(coverage.rate));
  switch (coverage_verdict(claim)) {
    case Verdict::kTooLow:
      return range + "Even the upper end of the confidence interval of " + observed + " is less. " +
             too_low_text(claim);
    case Verdict::kTooHigh:
      if (single_answers(claim)) {
        return range +
               "Every set is the network's single prediction, which is right more often than " +
               "the target.";
      }
      return range + "Even the lower end of the confidence interval of " + observed +
             (claim.origin == RowsOrigin::kRandomSplit
                  ? " is more: many scores are equal, or it is chance."
                  : " is more: many scores may be equal, or the test " + rows +
                        " are easier than the calibration " + rows + ".");
    default:
      return range + "Within its confidence interval, " + observed + " agrees with it.";
  }
}

std::string infinite_radius_text(const Claim& claim) {
  if (claim.radius != std::numeric_limits<double>::infinity()) return "";
  const size_t n = claim.calibration_rows;
  const std::string everything =
      concat(claim.kind == RegionKind::kLabelSet ? "Every set holds every label"
                                                 : "Every interval is the whole line",
             ": it always covers and says nothing. ");
  if (conformal_rank(claim.level, n) > n) {
    return concat(everything, "With α = ", claim.level.text(), " at least ",
                  format_count(least_calibration_rows(claim.level)),
                  " calibration rows are needed, and there are ", format_count(n),
                  ". Calibrate on more rows or choose a larger α.");
  }
  return concat(everything, "More than a share of α = ", claim.level.text(),
                " of the calibration scores are themselves infinite: this score cannot reach those "
                "rows at any radius.");
}

std::vector<std::string> guaranteed_texts(const Claim& claim) {
  const RegionWords& words = words_for(claim.kind);
  if (!claim.guaranteed) {
    return {concat("The ", words.regions, " of ", claim.method,
                   " carry no guarantee: they are not those whose coverage is calibrated. "
                   "Read the observed coverage only.")};
  }
  if (claim.folds > 0) return crossed_texts(claim);
  std::vector<std::string> texts = {
      concat(covered_event(claim), " with probability at least ", format_target(claim.level),
             ", if it and the calibration ", words.rows,
             " are exchangeable (for instance drawn independently from the same source). The "
             "network may be wrong in any way."),
      concat("The probability is over the draw of the calibration ", words.rows, " and of the new ",
             claim.kind == RegionKind::kPixels ? "image" : "row",
             " together: it holds before the calibration data are seen.")};
  if (by_group(claim) && !claim.targets) {
    texts.insert(texts.begin() + 1,
                 concat("The same for each of these ", group_words(claim),
                        " alone, if its rows are ", "exchangeable: ", group_list(claim), "."));
  }
  const std::optional<ExpectedCoverage> expected = expected_of(claim);
  if (expected) {
    const size_t n = claim.calibration_rows;
    const size_t k = conformal_rank(claim.level, n);
    texts.push_back(concat(
        "Once they are, the coverage of this very predictor is fixed. Over such "
        "draws it follows Beta(",
        k, ", ", n + 1 - k, ") where scores have no ties: between ", format_percent(expected->low),
        " and ", format_percent(expected->high), " nine times out of ten."));
  }
  return texts;
}

namespace {

// For which parts nothing is promised.
std::string unpromised_parts(const Claim& claim) {
  if (claim.kind == RegionKind::kPixels) {
    return concat(" for each kind of image, each class or each pixel: it is an average over all ",
                  "images, and an image that is covered may miss some of its pixels.");
  }
  if (by_group(claim)) {
    return concat(" for each x, or for parts other than the ", group_words(claim), " that are ",
                  "guaranteed: within each it is an average over its rows (see coverage by part).");
  }
  const bool sets = claim.kind == RegionKind::kLabelSet;
  return concat(" for each x", sets ? ", for each class" : "",
                " or for each group: it is an average over all rows, and some ",
                sets ? "classes" : "groups", " may lie below it (see coverage by part).");
}

}  // namespace

std::vector<std::string> not_guaranteed_texts(const Claim& claim) {
  const RegionWords& words = words_for(claim.kind);
  std::vector<std::string> texts = {
      concat("Coverage of ", format_target(claim.level), unpromised_parts(claim)),
      concat("Anything after the data change: under drift or selection the ", words.rows,
             " are no longer exchangeable."),
      concat("Several ", words.rows, " being covered at once, or one chosen because its ",
             words.region, " looks remarkable.")};
  if (claim.targets)
    texts.push_back("All targets of a row at once: how often they are is observed.");
  if (claim.kind == RegionKind::kLabelSet) {
    texts.push_back(
        "That a set of one label is right: coverage is not promised for each size (see coverage by "
        "size). An empty set is a miss, and says that no label is usual enough.");
    texts.push_back("Small sets: their size depends on the network and the score.");
  } else if (claim.kind == RegionKind::kPixels) {
    texts.push_back(
        concat(claim.pixel_sets ? "Small sets: their size" : "Narrow bands: their width",
               " depends on the network and the score."));
  } else {
    texts.push_back("Short intervals: their length depends on the network and the score.");
  }
  return texts;
}

}  // namespace fcp
