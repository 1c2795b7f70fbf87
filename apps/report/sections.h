// What the pages of all reports share, from a method's claim (promise.h): tiles, sections
// (sections.cc), and charts with the words around them (figures.cc). What the report has no data
// for is left out. Tested by tests/report/page_test.cc and label_html_test.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/report/charts.h"
#include "apps/report/page.h"
#include "apps/report/promise.h"

namespace fcp {

// Coverage against its target, loud where it is too low.
std::string coverage_tile(const Claim& claim);

// Test and calibration rows; `remark` says something more about them, or is empty.
std::string rows_tile(const Claim& claim, std::string_view remark);

// The title of the report, or this one, with the file of the model.
std::string page_title(const EvaluationReport& report, std::string_view otherwise);

// The verdict, the tiles, how it came about, the notes.
std::string headline_section(const EvaluationReport& report, const Claim& claim,
                             std::string_view tiles_html);

// Empty where there are no figures.
std::string charts_section(std::span<const Figure> figures);

// How even coverage is, with what each figure means and where it comes from; empty where the method
// was not measured so. `size` is what its regions have: "length" or "size".
std::string conditional_section(const MethodResult& method, double confidence,
                                const std::string& size);

std::string promise_section(const Claim& claim);

// How rows were split, and the columns that were used and left out, and why; empty where neither is
// known.
std::string table_section(const EvaluationReport& report);

// Empty where there are no pairs.
std::string provenance_section(std::span<const std::pair<std::string, std::string>> pairs);

// A table of methods, a row each, with a remark below, and further markup.
std::string methods_section(std::span<const std::string> headers,
                            std::span<const std::vector<std::string>> rows, std::string_view remark,
                            std::string_view html = {});

// Where the main method promises coverage for each group, that the others do not, and are therefore
// not compared with it. Otherwise empty.
std::string scope_remark(const EvaluationReport& report);

// What `auto` tried, by the mean `size` ("length" or "size") of its regions; empty where nothing
// was.
std::string candidates_html(const EvaluationReport& report, const std::string& size);

// How much longer or larger than the main one: "+12.3 %"; "–" where that has no meaning.
std::string difference_text(double size, double main);

// "by row" where each row has its own.
std::string radius_text(const std::optional<double>& radius);

// Whether the coverage of detection is to be shown beside that of the regions.
bool any_detection(std::span<const MethodResult> methods);

// ---- the level ---------------------------------------------------------------------------------

// Where the reader chooses the level: a slider over the levels that were evaluated, what coverage
// and length (or size) are at each, and `html` that follows the slider. A report of one level has
// no slider, but its rows can be filtered. Empty where there is nothing to choose. Tested by
// tests/report/level_section_test.cc, and in a browser by tests/cli/test_page.py.
std::string level_section(const EvaluationReport& report, const Claim& claim,
                          std::string_view html);

// Which rows are shown (all, covered, or missed) and, of several targets, which one.
std::string filter_html(std::span<const std::string> targets = {});

// ---- charts with the words around them ----------------------------------------------------------

// Adds nothing where no method has a curve.
void add_curve(std::vector<Figure>& figures, const Claim& claim,
               const std::vector<MethodResult>& methods);

// Adds nothing where there are no scores.
void add_scores(std::vector<Figure>& figures, const Claim& claim, std::span<const double> scores);

// Adds nothing where no importance of columns is known.
void add_importance(std::vector<Figure>& figures, const EvaluationReport& report);

// A part is a group of rows with a name; `at` is where the parts stand in the report's JSON. The
// chart shows the worst of many, and the worst first if `worst`; the table below it shows all.
struct PartsFigure {
  std::string caption;
  std::string remark;
  std::vector<GroupCoverage> parts;
  std::string at;
  bool worst = false;
};
Figure parts_figure(const Claim& claim, const PartsFigure& figure);

// Parts by length or size, as they are named in the report's JSON.
std::vector<GroupCoverage> strata_parts(std::span<const Stratum> strata, bool sizes);

// Coverage by the categories of the most uneven columns, and over time; none where none is known.
void add_known_parts(std::vector<Figure>& figures, const Claim& claim,
                     const EvaluationReport& report);

// Coverage by the groups given with the data.
Figure groups_figure(const Claim& claim, const std::vector<GroupCoverage>& groups);

// How good predictive distributions, or class probabilities, are; empty where there are none.
std::string distribution_section(const MethodResult& method);
std::string probability_section(const MethodResult& method);

// ---- the pages of page.h ------------------------------------------------------------------------

std::string interval_page(const EvaluationReport& report);
std::string label_page(const EvaluationReport& report);
std::string pixel_page(const EvaluationReport& report);

}  // namespace fcp
