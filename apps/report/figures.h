// Charts with the words around them that are alike in all reports: coverage over α, the scores and
// their radius, coverage by part. Tested by tests/report/html_test.cc and label_html_test.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/report/charts.h"
#include "apps/report/page.h"
#include "apps/report/promise.h"

namespace fcp {

// The curves of all methods that have one, the main one first.
std::vector<CurveSeries> curves_of(const std::vector<MethodResult>& methods);

// Adds nothing where there is no curve. The cursor of the page's slider stands at the level of the
// claim.
void add_curve(std::vector<Figure>& figures, const Claim& claim,
               std::span<const CurveSeries> series);

// Adds nothing where there are no scores.
void add_scores(std::vector<Figure>& figures, const Claim& claim, std::span<const double> scores);

// A part is a group of rows with a name. The chart shows the worst of more than `most` parts, the
// table below it all of them.
struct PartsFigure {
  std::string caption;
  std::string remark;
  std::vector<GroupCoverage> parts;
  size_t most = 24;
};
Figure parts_figure(const Claim& claim, PartsFigure figure);

// Coverage by the categories of the most uneven columns, and over time; none where none is known.
void add_known_parts(std::vector<Figure>& figures, const Claim& claim,
                     const EvaluationReport& report);

// Coverage by the groups given with the data.
Figure groups_figure(const Claim& claim, const std::vector<GroupCoverage>& groups);

}  // namespace fcp
