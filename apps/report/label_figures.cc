#include "apps/report/label_figures.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fcp/base/error.h"

#include "apps/report/charts.h"
#include "apps/report/figures.h"
#include "apps/report/format.h"

namespace fcp {
namespace {

constexpr size_t kMostClasses = 15;
constexpr size_t kMostAbsent = 8;

Figure sizes_figure(const EvaluationReport& report) {
  const MethodResult& main = report.methods.front();
  std::vector<MethodMean> means;
  for (const MethodResult& method : report.methods) {
    means.push_back({method.name, method.sets().mean_size});
  }
  return {.caption = "Sizes of the sets",
          .remark = concat("Sets of ", main.name, "; lines mark the mean of each method."),
          .chart = size_chart(main.sets().size_histogram, means)};
}

Figure strata_figure(const SetEvaluation& result, const Claim& claim) {
  std::vector<GroupCoverage> strata = {{"all rows", result.coverage}};
  for (const Stratum& stratum : result.size_strata) {
    const bool one = stratum.low == 1 && stratum.high == 1;
    strata.push_back({format_sizes(stratum) + (one ? " label" : " labels"), stratum.coverage});
  }
  return parts_figure(claim, {.caption = "Coverage by size of the set",
                              .remark = "From the smallest to the largest: is a small set as "
                                        "trustworthy as a large one?",
                              .parts = std::move(strata)});
}

// Classes without a test row: nothing is known of their coverage.
std::string absent_text(const SetEvaluation& result, const std::vector<std::string>& class_names) {
  const size_t absent = result.classes - std::min(result.classes, result.class_coverage.size());
  if (absent == 0) return "";
  std::set<std::string> seen;
  for (const GroupCoverage& part : result.class_coverage) seen.insert(part.name);
  std::string names;
  size_t named = 0;
  for (const std::string& name : class_names) {
    if (seen.contains(name) || named++ >= kMostAbsent) continue;
    names += concat(names.empty() ? ": " : ", ", name);
  }
  if (named != absent) names.clear();  // the evaluation was not given these names
  if (!names.empty() && named > kMostAbsent) {
    names += concat(" and ", format_count(named - kMostAbsent), " more");
  }
  return concat(" No test row belongs to ", format_count(absent), " of the ",
                format_count(result.classes), " classes", names, ".");
}

Figure worst_classes_figure(const EvaluationReport& report, const Claim& claim) {
  const SetEvaluation& result = report.methods.front().sets();
  std::vector<GroupCoverage> classes = result.class_coverage;
  // Of equal rates that of most rows first: its whole confidence interval is the lowest.
  std::stable_sort(classes.begin(), classes.end(),
                   [](const GroupCoverage& a, const GroupCoverage& b) {
                     return std::pair(a.coverage.rate, a.coverage.upper) <
                            std::pair(b.coverage.rate, b.coverage.upper);
                   });
  const std::string promised =
      report.guaranteed_classes ? " The guarantee holds for each class alone." : "";
  return parts_figure(
      claim, {.caption = classes.size() > kMostClasses ? "The worst classes" : "By class",
              .remark = "Coverage of the rows whose true label it is, the least first." + promised +
                        " Of many classes some are low by luck: see whether the whole confidence "
                        "interval is." +
                        absent_text(result, report.class_names),
              .parts = std::move(classes),
              .most = kMostClasses});
}

}  // namespace

std::vector<Figure> label_figures(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const MethodResult& main = report.methods.front();
  std::vector<Figure> figures = {sizes_figure(report), strata_figure(main.sets(), claim)};
  add_curve(figures, claim, curves_of(report.methods));
  add_scores(figures, claim, main.scores);
  return figures;
}

std::vector<Figure> class_figures(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const SetEvaluation& result = report.methods.front().sets();
  std::vector<Figure> figures = {worst_classes_figure(report, claim)};
  if (!result.groups.empty()) figures.push_back(groups_figure(claim, result.groups));
  add_known_parts(figures, claim, report);
  return figures;
}

}  // namespace fcp
