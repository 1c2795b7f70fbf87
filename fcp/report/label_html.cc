#include "fcp/report/label_html.h"

#include <algorithm>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/report/format.h"
#include "fcp/report/label_figures.h"
#include "fcp/report/page.h"
#include "fcp/report/sections.h"

namespace fcp {
namespace {

using Cells = std::vector<std::string>;

constexpr size_t kMostExamples = 24;
constexpr size_t kMostMembers = 12;

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
      claim,
      concat(coverage_tile(claim),
             html_tile("Mean size", format_number(result.mean_size), size_remark(result), "main"),
             accuracy_tile(main), radius_tile(claim),
             calibration_tile(claim, format_count(result.rows, "test row"))),
      report.notes);
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
    row.push_back(first ? "–" : difference_text(result.mean_size, main_size));
    row.push_back(format_percent(share_of_size(result, 1)));
    if (empty) row.push_back(format_percent(result.empty_share));
    if (full) row.push_back(format_percent(result.full_share));
    row.push_back(worst_stratum_text(result));
    row.push_back(format_percent(result.worst_class.coverage.rate));
    row.push_back(radius_text(method.radius));
    rows.push_back(std::move(row));
  }
  return methods_section(headers, rows,
                         "Sizes compare fairly where coverages are alike. Worst size and worst "
                         "class are the least coverages by size of the set and by true label.");
}

// ---- examples ---------------------------------------------------------------------------------

// The labels of the set, the true one marked. Of many the first are shown, and the true one.
std::string members_html(const LabelExample& example) {
  const std::vector<std::string>& members = example.members;
  if (members.empty()) return html_paragraph("∅ the set is empty", "remark");
  Cells shown(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min(members.size(), kMostMembers)));
  const auto is_truth = [&](const std::string& member) { return member == example.truth; };
  const bool hidden = std::none_of(shown.begin(), shown.end(), is_truth) &&
                      std::any_of(members.begin(), members.end(), is_truth);
  if (hidden) shown.back() = example.truth;
  std::string html = "<ul class=\"labels\">";
  for (const std::string& member : shown) {
    html += concat(is_truth(member) ? "<li class=\"truth\">" : "<li>", html_text(member), "</li>");
  }
  if (members.size() > shown.size()) {
    html += concat("<li class=\"more\">and ", format_count(members.size() - shown.size()),
                   " more</li>");
  }
  return html + "</ul>\n";
}

std::string example_html(const Example& example) {
  const LabelExample& labels = example.labels();
  std::string html = concat("<div class=\"card example", example.covered ? "" : " missed", "\">\n");
  if (!example.png.empty()) html += html_png(example.png, example.name);
  html +=
      concat("<div><h3>", html_text(example.name), "</h3>",
             html_paragraph(example.covered ? "✓ covered" : "✗ missed", "mark"),
             html_paragraph(concat("true label ", labels.truth, ", predicted ", labels.prediction),
                            "remark"),
             members_html(labels), "</div></div>\n");
  return html;
}

std::string examples(const EvaluationReport& report) {
  if (report.examples.empty()) return "";
  const size_t count = std::min(report.examples.size(), kMostExamples);
  std::string html = "<div class=\"examples\">\n";
  for (size_t i = 0; i < count; ++i) html += example_html(report.examples[i]);
  html += "</div>\n";
  if (count < report.examples.size()) {
    html += html_paragraph(
        concat("The first ", count, " of ", format_count(report.examples.size()), " examples."),
        "remark");
  }
  return html_section("examples", "Test rows with their sets", html);
}

}  // namespace

std::string label_page(const EvaluationReport& report) {
  const Claim claim = claim_of(report);
  const std::string subtitle = concat(format_target(report.level), " label sets among ",
                                      format_count(report.methods.front().sets().classes),
                                      " classes by the score ", claim.method);
  return html_page(
      report.title.empty() ? "Label sets" : report.title, subtitle,
      concat(label_headline(report, claim), charts_section(label_figures(report)),
             label_methods(report),
             html_section("parts", "Coverage by part", html_figures(class_figures(report))),
             examples(report),
             conditional_section(report.methods.front(), report.confidence, "size"),
             promise_section(claim), provenance_section(report.provenance)));
}

}  // namespace fcp
