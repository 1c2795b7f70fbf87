#include "apps/report/console.h"

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

#include "apps/report/promise.h"
#include "apps/report/results.h"
#include "apps/report/verdict.h"

namespace fcp {
namespace {

// The headline: one line a quantity, its name, its value, and a remark.
class Headline {
 public:
  void add(std::string name, std::string value, std::string remark = "") {
    name_width_ = std::max(name_width_, display_width(name));
    value_width_ = std::max(value_width_, display_width(value));
    lines_.push_back({std::move(name), std::move(value), std::move(remark)});
  }

  void print(std::ostream& out) const {
    for (const Line& line : lines_) {
      out << line.name << std::string(name_width_ - display_width(line.name) + 2, ' ')
          << line.value;
      if (!line.remark.empty()) {
        out << std::string(value_width_ - display_width(line.value) + 2, ' ') << line.remark;
      }
      out << '\n';
    }
  }

 private:
  struct Line {
    std::string name, value, remark;
  };
  std::vector<Line> lines_;
  size_t name_width_ = 14;  // of "interval score", as the lines that print_method puts before
  size_t value_width_ = 0;
};

void add_coverage(Headline& headline, const Coverage& coverage, const PrintOptions& options) {
  headline.add(
      "coverage", format_percent(coverage.rate),
      concat("target ", format_target(options.level), ", ", format_confidence(options.confidence),
             " ", format_percent_range(coverage.lower, coverage.upper)));
}

void add_length(Headline& headline, const LengthSummary& length, BoundSide side) {
  std::string remark = length.median ? "median " + format_number(*length.median) : "";
  if (side != BoundSide::kBoth) {
    remark += concat(remark.empty() ? "" : ", ", "from the prediction to the ", side_name(side),
                     " bound");
  }
  headline.add("length", format_number(length.mean), std::move(remark));
  if (length.infinite_share > 0) {
    headline.add(
        "infinite", format_percent(length.infinite_share),
        "of the intervals; mean length of the others " + format_number(length.mean_finite));
  }
  if (length.empty_share > 0) {
    headline.add("empty", format_percent(length.empty_share), "of the intervals");
  }
}

Table part_table(const PrintOptions& options) {
  return Table({"coverage by", "rows", "coverage", format_confidence(options.confidence), ""});
}

void add_part(Table& table, std::string name, const Coverage& coverage, std::string mark = "") {
  table.add_row({std::move(name), format_count(coverage.rows), format_percent(coverage.rate),
                 format_percent_range(coverage.lower, coverage.upper), std::move(mark)});
}

// All groups with the worst one marked, or only that one where there are too many.
void add_groups(Table& table, std::span<const GroupCoverage> groups, const std::string& prefix,
                const PrintOptions& options) {
  if (groups.empty()) return;
  const GroupCoverage worst = worst_group(groups);
  if (groups.size() > options.most_groups) {
    add_part(table, prefix + worst.name, worst.coverage,
             concat("worst of ", groups.size(), " groups"));
    return;
  }
  const bool differ = std::any_of(groups.begin(), groups.end(), [&](const GroupCoverage& group) {
    return group.coverage.rate > worst.coverage.rate;
  });
  for (const GroupCoverage& group : groups) {
    const bool is_worst = differ && group.name == worst.name;
    add_part(table, prefix + group.name, group.coverage, is_worst ? "worst" : "");
  }
}

}  // namespace

void print_evaluation(std::ostream& out, const IntervalEvaluation& evaluation,
                      const PrintOptions& options) {
  Headline headline;
  add_coverage(headline, evaluation.coverage, options);
  add_length(headline, evaluation.length, evaluation.side);
  if (evaluation.weighted_length) {
    headline.add("weighted length", format_number(*evaluation.weighted_length));
  }
  if (evaluation.joint_coverage) {
    headline.add("all outputs", format_percent(*evaluation.joint_coverage), "in at once");
    constexpr size_t kMostShown = 8;
    std::string each;
    for (size_t k = 0; k < std::min(kMostShown, evaluation.outputs); ++k) {
      each += (k == 0 ? "" : ", ") + format_percent(evaluation.output_coverage.at(k));
    }
    headline.add("each output", each + (evaluation.outputs > kMostShown ? ", …" : ""), "in alone");
  }
  if (evaluation.volume) {
    headline.add("volume", format_number(*evaluation.volume_per_dimension),
                 "per dimension: a row's volume to the power 1/K, mean");
  }
  headline.add("interval score", format_number(evaluation.interval_score));
  if (evaluation.output_error.size() == 1) {
    const PointError& error = evaluation.output_error[0];
    headline.add("error", format_number(error.rmse),
                 concat("RMSE; MAE ", format_number(error.mae), ", target SD ",
                        format_number(error.deviation)));
  }
  headline.add("rows", format_count(evaluation.rows),
               evaluation.outputs > 1 ? concat(evaluation.outputs, " outputs each") : "");
  headline.print(out);

  Table table = part_table(options);
  add_groups(table, evaluation.response_thirds, "", options);
  if (!evaluation.groups.empty()) table.add_gap();
  add_groups(table, evaluation.groups, "group ", options);
  if (!evaluation.length_strata.empty()) table.add_gap();
  for (const Stratum& stratum : evaluation.length_strata) {
    add_part(table, "length " + format_lengths(stratum), stratum.coverage);
  }
  out << '\n' << table;
}

void print_evaluation(std::ostream& out, const SetEvaluation& evaluation,
                      const PrintOptions& options) {
  Headline headline;
  add_coverage(headline, evaluation.coverage, options);
  headline.add("set size", format_number(evaluation.mean_size),
               concat("of ", evaluation.classes, " labels"));
  if (evaluation.empty_share > 0) {
    headline.add("empty", format_percent(evaluation.empty_share), "of the sets");
  }
  if (evaluation.full_share > 0) {
    headline.add("full", format_percent(evaluation.full_share), "of the sets hold every label");
  }
  if (evaluation.unknown_rows > 0) {
    headline.add("unknown", format_count(evaluation.unknown_rows),
                 "rows whose label is none of the classes: misses");
  }
  headline.add("rows", format_count(evaluation.rows));
  headline.print(out);

  Table table = part_table(options);
  add_groups(table, evaluation.class_coverage, "label ", options);
  if (!evaluation.groups.empty()) table.add_gap();
  add_groups(table, evaluation.groups, "group ", options);
  if (!evaluation.size_strata.empty()) table.add_gap();
  for (const Stratum& stratum : evaluation.size_strata) {
    add_part(table, "size " + format_sizes(stratum), stratum.coverage);
  }
  out << '\n' << table;
}

namespace {

void print_conditional(std::ostream& out, const ConditionalCoverage& found,
                       const PrintOptions& options) {
  Headline headline;
  if (found.worst_slab) {
    headline.add("worst slab", format_percent(found.worst_slab->rate),
                 concat("coverage, ", format_confidence(options.confidence), " ",
                        format_percent_range(found.worst_slab->lower, found.worst_slab->upper)));
  } else {
    headline.add("worst slab", "—", not_computed(found.rows));
  }
  if (found.excess_risk) {
    headline.add("excess risk", format_number(found.excess_risk->value, 2),
                 concat("± ", format_number(found.excess_risk->standard_error, 2),
                        "; 0: misses cannot be foreseen"));
  } else {
    headline.add("excess risk", "—", not_computed(found.rows));
  }
  if (found.gap) {
    const std::string parts = concat(" over ", found.gap->parts.size(), " parts of the rows");
    headline.add("coverage gap", format_percent(found.gap->gap), concat("the mean", parts));
    headline.add("squared error", format_number(found.gap->squared_error, 2),
                 concat("of coverage", parts, "; ", format_number(found.gap->by_chance, 2),
                        " by chance alone"));
  }
  headline.add("length and miss", format_number(found.correlation, 2),
               "correlation; 0: long ones miss as often as short ones");
  if (found.stability) {
    headline.add("stability", format_percent(*found.stability),
                 concat("of two intervals is shared, over ", found.refits + 1, " predictors"));
  }
  out << '\n';
  headline.print(out);
}

// How many of the ten counts lie within the band.
size_t bins_within(const DistributionEvaluation& found) {
  return static_cast<size_t>(std::count_if(found.pit.begin(), found.pit.end(), [&](size_t count) {
    const auto rows = static_cast<double>(count);
    return found.pit_low <= rows && rows <= found.pit_high;
  }));
}

void print_distribution(std::ostream& out, const DistributionEvaluation& found) {
  Headline headline;
  headline.add("CRPS", format_number(found.crps), "mean error of the predictive distributions");
  headline.add("PIT", concat(bins_within(found), " of ", kPitBins),
               concat("bins within ", format_number(found.pit_low), " to ",
                      format_number(found.pit_high), " rows, as 19 of 20 are by chance"));
  for (const ThresholdCalibration& one : found.thresholds) {
    headline.add("above " + format_number(one.threshold), format_percent(one.observed),
                 concat("of the rows, predicted ", format_percent(one.predicted)));
  }
  out << '\n';
  headline.print(out);
}

void print_probabilities(std::ostream& out, const ProbabilityEvaluation& found) {
  const auto beside = [&](double ProbabilityFigures::*figure) {
    return found.softmax ? concat("the network's own: ", format_number((*found.softmax).*figure, 3))
                         : std::string();
  };
  Headline headline;
  const ProbabilityFigures& all = found.figures;
  headline.add("log loss", format_number(all.log_loss, 3), beside(&ProbabilityFigures::log_loss));
  headline.add("Brier", format_number(all.brier, 3), beside(&ProbabilityFigures::brier));
  headline.add("ECE", format_number(all.ece, 3), beside(&ProbabilityFigures::ece));
  if (found.mean_gap) {
    headline.add("p1 - p0", format_number(*found.mean_gap, 3),
                 "mean: how much the calibration rows leave open");
  }
  out << '\n';
  headline.print(out);
}

void print_method(std::ostream& out, const MethodResult& method, const PrintOptions& options) {
  const bool sets = std::holds_alternative<SetEvaluation>(method.evaluation);
  out << method.name << '\n';
  constexpr size_t kFewClasses = 5;  // of which five are always right
  const bool few = !sets || method.sets().classes <= kFewClasses;
  if (method.top1 && method.top5 && !few) {
    out << "top-1, top-5    " << format_percent(*method.top1) << ", "
        << format_percent(*method.top5) << '\n';
  } else if (method.top1) {
    out << "accuracy        " << format_percent(*method.top1) << '\n';
  }
  if (method.detection) {
    out << "detection       " << format_percent(method.detection->rate)
        << "  scores within the radius: what is guaranteed, but not of the "
        << (sets ? "sets" : "intervals") << '\n';
  }
  if (sets) {
    print_evaluation(out, method.sets(), options);
  } else {
    print_evaluation(out, method.intervals(), options);
  }
  if (method.conditional) print_conditional(out, *method.conditional, options);
  if (method.distribution) print_distribution(out, *method.distribution);
  if (method.probabilities) print_probabilities(out, *method.probabilities);
}

}  // namespace

void print_report(std::ostream& out, const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  if (claim.kind == RegionKind::kPixels) {
    out << pixel_text(report);
  } else {
    for (const MethodResult& method : report.methods) {
      if (&method != &report.methods.front()) out << '\n';
      print_method(out, method, {.level = report.level, .confidence = report.confidence});
    }
  }
  if (claim.folds > 0) {
    out << "\nguaranteed: at least " << format_percent(guaranteed_rate(claim))
        << " (cross: the training rows calibrate); near " << format_target(claim.level)
        << " is usual\n";
  }
  if (claim.kind != RegionKind::kPixels) {
    const char* begin = "\nwatch: ";
    for (const std::string& text : watch_texts(report, 3)) {
      out << begin << text << '\n';
      begin = "watch: ";
    }
  }
  const std::string alarm = alarm_text(claim);
  if (!alarm.empty()) out << "\nverdict: " << alarm << '\n';
}

}  // namespace fcp
