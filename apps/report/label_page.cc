// The page of a report on label sets; see page.h.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

#include "apps/report/json.h"
#include "apps/report/results.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

using Cells = std::vector<std::string>;

constexpr size_t kMostExamples = 24;
constexpr std::ptrdiff_t kMostMissed = 15;  // before covered ones
constexpr size_t kMostMembers = 12;
constexpr size_t kMostClasses = 15;
constexpr size_t kMostAbsent = 8;

double share_of_size(const SetEvaluation& result, size_t size) {
  if (size >= result.size_histogram.size() || result.rows == 0) return 0;
  return static_cast<double>(result.size_histogram[size]) / static_cast<double>(result.rows);
}

bool any_share(const EvaluationReport& report, double SetEvaluation::*share) {
  return std::any_of(report.methods.begin(), report.methods.end(),
                     [&](const MethodResult& method) { return method.sets().*share > 0; });
}

// ---- headline ---------------------------------------------------------------------------------

std::string size_remark(const SetEvaluation& result) {
  std::string remark = concat("of ", format_count(result.classes, "label"), "\n",
                              format_percent(share_of_size(result, 1)), " of one label");
  if (result.empty_share > 0) remark += concat(", ", format_percent(result.empty_share), " empty");
  if (result.full_share > 0 && result.classes > 1) {
    remark += concat(", ", format_percent(result.full_share), " of all");
  }
  return remark;
}

std::string accuracy_tile(const MethodResult& main) {
  const std::string top5 = main.top5 ? "top-5 " + format_percent(*main.top5) : "";
  if (main.top1) {
    return html_tile("Top-1 accuracy", format_percent(*main.top1),
                     top5.empty() ? "of the network alone" : "of the network alone\n" + top5);
  }
  return main.top5 ? html_tile("Top-5 accuracy", format_percent(*main.top5), "of the network alone")
                   : "";
}

std::string label_headline(const EvaluationReport& report, const Claim& claim) {
  const MethodResult& main = report.methods.front();
  const SetEvaluation& result = main.sets();
  return headline_section(
      report, claim,
      concat(coverage_tile(claim),
             html_tile("Mean size", format_number(result.mean_size), size_remark(result), "main"),
             accuracy_tile(main), rows_tile(claim, "")));
}

// ---- methods ----------------------------------------------------------------------------------

// The least coverage among the strata of set size: size-stratified coverage.
std::string worst_stratum_text(const SetEvaluation& result) {
  double least = 1;
  for (const Stratum& stratum : result.size_strata) {
    least = std::min(least, stratum.coverage.rate);
  }
  return result.size_strata.empty() ? "–" : format_percent(least);
}

std::string label_methods(const EvaluationReport& report) {
  const bool detection = any_detection(report.methods);
  const bool empty = any_share(report, &SetEvaluation::empty_share);
  const bool full = any_share(report, &SetEvaluation::full_share);
  const double main_size = report.methods.front().sets().mean_size;
  const bool scoped = !report.guaranteed_groups.empty();
  Cells headers = {"Method", "Coverage", format_confidence(report.confidence)};
  if (detection) headers.push_back("Detection");
  headers.insert(headers.end(), {"Mean size", "against first", "One label"});
  if (empty) headers.push_back("Empty");
  if (full) headers.push_back("All labels");
  headers.insert(headers.end(), {"Worst size", "Worst class", "Radius"});

  std::vector<Cells> rows;
  for (const MethodResult& method : report.methods) {
    const SetEvaluation& result = method.sets();
    const bool first = &method == &report.methods.front();
    Cells row = {method.name, format_percent(result.coverage.rate),
                 format_percent_range(result.coverage.lower, result.coverage.upper)};
    if (detection) row.push_back(method.detection ? format_percent(method.detection->rate) : "–");
    row.push_back(format_number(result.mean_size));
    row.push_back(first || scoped ? "–" : difference_text(result.mean_size, main_size));
    row.push_back(format_percent(share_of_size(result, 1)));
    if (empty) row.push_back(format_percent(result.empty_share));
    if (full) row.push_back(format_percent(result.full_share));
    row.push_back(worst_stratum_text(result));
    row.push_back(format_percent(result.worst_class.coverage.rate));
    row.push_back(radius_text(method.radius));
    rows.push_back(std::move(row));
  }
  std::string remark =
      "Sizes compare fairly where coverages are alike. Worst size and worst class are the least "
      "coverages by size of the set and by true label.";
  if (empty) {
    remark += " An empty set says that no label is usual enough for this row; it counts as a miss.";
  }
  return methods_section(headers, rows, remark + scope_remark(report),
                         candidates_html(report, "size"));
}

// ---- examples ---------------------------------------------------------------------------------

// A label of an example's set: with the last level whose set holds it, for the script.
std::string member_html(const std::string& name, size_t last, bool truth, bool shown) {
  return concat("<li", truth ? " class=\"truth\"" : "", " data-last=\"", last, "\"",
                shown ? "" : " hidden=\"\"", ">", html_text(name), "</li>");
}

// The labels of the set, the true one marked, and behind them those of larger sets, not shown. Of
// many the first are shown, and the true one.
std::string members_html(const LabelExample& example, size_t own) {
  std::vector<LabelAtLevels> labels = example.at_levels;
  if (labels.empty()) {
    for (const std::string& member : example.members) labels.push_back({member, own});
  }
  const auto is_truth = [&](const LabelAtLevels& label) { return label.name == example.truth; };
  if (labels.size() > kMostMembers && example.at_levels.empty()) {
    const auto truth = std::find_if(labels.begin(), labels.end(), is_truth);
    if (truth != labels.end() && truth - labels.begin() >= static_cast<int>(kMostMembers)) {
      std::swap(labels[kMostMembers - 1], *truth);
    }
    labels.resize(kMostMembers);
  }
  std::string items;
  size_t shown = 0;
  for (const LabelAtLevels& label : labels) {
    const bool in = label.last >= own;
    shown += in;
    items += member_html(label.name, label.last, is_truth(label), in);
  }
  if (example.members.size() > shown) {
    items += concat("<li class=\"more\">and ", format_count(example.members.size() - shown),
                    " more</li>");
  }
  const bool empty = example.members.empty();
  return concat("<p class=\"remark none\"", empty ? "" : " hidden=\"\"",
                ">∅ The set is empty: at this α no label is usual enough for the row. It counts as "
                "a miss.</p>\n",
                items.empty() ? "" : concat("<ul class=\"labels\">", items, "</ul>\n"));
}

std::string example_html(const Example& example, size_t own, size_t levels) {
  const LabelExample& labels = example.labels();
  std::string html = concat("<div class=\"card example", example.covered ? "" : " missed",
                            "\" data-covered=\"", covered_levels(example, levels), "\">\n");
  if (!example.png.empty()) {
    html += html_png(example.png, concat(example.name, ", of class ", labels.truth));
  }
  const bool right = labels.truth == labels.prediction;
  html += concat("<div><h3>", html_text(example.name), "</h3>",
                 html_paragraph(example.covered ? "✓ covered" : "✗ missed", "mark"),
                 html_paragraph(concat("true label ", labels.truth,
                                       right ? ", predicted rightly"
                                             : concat(", predicted ", labels.prediction)),
                                "remark"),
                 members_html(labels, own), "</div></div>\n");
  return html;
}

// Missed rows first, then those of the largest sets, those that are predicted wrongly before
// others. Of many the missed ones do not take up all of the room.
std::vector<const Example*> hardest_first(const std::vector<Example>& examples) {
  std::vector<const Example*> order;
  for (const Example& example : examples) order.push_back(&example);
  const auto hardness = [](const Example* example) {
    const LabelExample& labels = example->labels();
    return std::tuple(!example->covered, labels.members.size(), labels.truth != labels.prediction);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Example* a, const Example* b) { return hardness(a) > hardness(b); });
  const auto covered = std::find_if(order.begin(), order.end(),
                                    [](const Example* example) { return example->covered; });
  std::rotate(order.begin() + std::min(kMostMissed, covered - order.begin()), covered, order.end());
  return order;
}

size_t own_level_number(const EvaluationReport& report) {
  size_t own = 0;
  for (const LevelResult& at : report.methods.front().levels) {
    if (at.level == report.level) return own;
    ++own;
  }
  return 0;
}

std::string examples(const EvaluationReport& report) {
  if (report.examples.empty()) return "";
  const std::vector<const Example*> order = hardest_first(report.examples);
  const size_t count = std::min(order.size(), kMostExamples);
  const size_t levels = report.methods.front().levels.size();
  const std::string drawn = format_count(order.size(), "test row");
  std::string html = html_paragraph(
      count < order.size()
          ? concat("The hardest ", count, " of ", drawn,
                   " that were drawn at random: missed ones first, then the largest sets.")
          : concat(drawn, ", the hardest first: missed ones, then the largest sets."));
  html += filter_html() + "<div class=\"examples\">\n";
  for (size_t i = 0; i < count; ++i) {
    html += example_html(*order[i], own_level_number(report), levels);
  }
  return html_section("examples", "Hard test rows with their sets", html + "</div>\n");
}

// ---- confusions ---------------------------------------------------------------------------------

std::string confusions_html(const SetEvaluation& result) {
  if (result.confusions.empty()) return "";
  std::vector<Cells> rows;
  size_t listed = 0;
  for (const Confusion& one : result.confusions) {
    listed += one.rows;
    rows.push_back(
        {one.truth, one.prediction, format_count(one.rows),
         concat(format_count(one.covered), " (",
                format_percent(static_cast<double>(one.covered) / static_cast<double>(one.rows), 0),
                ")")});
  }
  const Cells headers = {"True label", "Predicted", "Rows", "Truth in the set all the same"};
  std::string remark =
      concat("The network answers ", format_count(result.confused_rows, "test row"), " wrongly");
  if (listed < result.confused_rows) {
    remark += concat("; the most frequent confusions make up ", format_count(listed), " of them");
  }
  return html_section("confusions", "What is taken for what",
                      concat("<div class=\"card\">\n", html_table(headers, rows),
                             html_paragraph(remark + ".", "remark"), "</div>\n"));
}

// "–" of a share of no rows.
std::string share_text(size_t part, size_t whole) {
  return whole == 0 ? "–" : format_percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string answers_html(const MethodResult& main) {
  const SetEvaluation& result = main.sets();
  if (result.answers.empty()) return "";
  std::vector<Cells> rows;
  for (const ClassAnswers& one : result.answers) {
    rows.push_back({one.name, format_count(one.rows), format_count(one.predicted),
                    share_text(one.right, one.predicted), share_text(one.right, one.rows)});
    if (result.auc) rows.back().push_back(one.auc ? format_number(*one.auc, 3) : "–");
  }
  Cells headers = {"Class", "Rows", "Predicted", "Precision", "Recall"};
  std::string remark = concat(
      "The most likely label of each row: ",
      share_text(result.rows - result.confused_rows - result.unknown_rows, result.rows),
      " are right. Precision is the share of right ones among the rows that are predicted as the "
      "class, recall among the rows of the class.");
  if (result.auc) {
    headers.emplace_back("AUC");
    remark +=
        concat(" AUC (", format_number(*result.auc, 3),
               " in the mean) is how often a row of the class is given a higher probability of it "
               "than a row of another class; 0.5 is guessing.");
  }
  if (result.log_loss && !main.probabilities) {
    remark +=
        concat(" The log loss of the probabilities is ", format_number(*result.log_loss), ".");
  }
  const std::vector<Figure> figures = {{.caption = "Precision and recall of the classes",
                                        .remark = remark,
                                        .chart = {"answers", "/answers"},
                                        .wide = true,
                                        .html = html_table(headers, rows)}};
  return html_section("answers", "The single answers", html_figures(figures));
}

// ---- charts -------------------------------------------------------------------------------------

std::string sizes_table(const SetEvaluation& result) {
  std::vector<Cells> rows;
  for (size_t size = 0; size < result.size_histogram.size(); ++size) {
    if (result.size_histogram[size] == 0) continue;
    rows.push_back({format_count(size), format_count(result.size_histogram[size])});
  }
  const Cells headers = {"Labels in the set", "Rows"};
  return html_table(headers, rows);
}

Figure sizes_figure(const EvaluationReport& report) {
  const MethodResult& main = report.methods.front();
  std::vector<MethodMean> means;
  for (const MethodResult& method : report.methods) {
    means.push_back({method.name, method.sets().mean_size});
  }
  return {.caption = "Sizes of the sets",
          .remark = concat("Sets of ", main.name, "; lines mark the mean of each method."),
          .chart = size_chart(main.sets().size_histogram, means),
          .html = sizes_table(main.sets())};
}

Figure strata_figure(const SetEvaluation& result, const Claim& claim) {
  return parts_figure(claim, {.caption = "Coverage by size of the set",
                              .remark = "From the smallest to the largest: is a small set as "
                                        "trustworthy as a large one?",
                              .parts = strata_parts(result.size_strata, true),
                              .at = "/size_strata"});
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
              .at = "/class_coverage",
              .worst = true});
}

std::vector<Figure> label_figures(const EvaluationReport& report, const Claim& claim) {
  const MethodResult& main = report.methods.front();
  std::vector<Figure> figures = {sizes_figure(report), strata_figure(main.sets(), claim)};
  add_importance(figures, report);
  add_curve(figures, claim, report.methods);
  add_scores(figures, claim, main.scores);
  return figures;
}

std::vector<Figure> class_figures(const EvaluationReport& report, const Claim& claim) {
  const SetEvaluation& result = report.methods.front().sets();
  std::vector<Figure> figures = {worst_classes_figure(report, claim)};
  if (!result.groups.empty()) figures.push_back(groups_figure(claim, result.groups));
  add_known_parts(figures, claim, report);
  return figures;
}

}  // namespace

std::string label_page(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const SetEvaluation& result = report.methods.front().sets();
  const std::string subtitle =
      concat(format_target(report.level), " label sets among ", format_count(result.classes),
             " classes, score ", claim.method);
  const MethodResult& main = report.methods.front();
  return html_page(
      page_title(report, "Label sets"), subtitle,
      concat(label_headline(report, claim), level_section(report, claim, ""), examples(report),
             answers_html(main), confusions_html(result), probability_section(main),
             charts_section(label_figures(report, claim)),
             html_section("parts", "Coverage by part", html_figures(class_figures(report, claim))),
             label_methods(report), conditional_section(main, report.confidence, "size"),
             promise_section(claim), table_section(report), provenance_section(report.provenance)),
      report_json(report));
}

}  // namespace fcp
