// The sections and tiles that are alike in all reports, from a method's claim (promise.h).
// Tested by tests/report/html_test.cc and label_html_test.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// How good the predictive distributions are; empty where there are none.
std::string distribution_section(const MethodResult& method);

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

}  // namespace fcp
