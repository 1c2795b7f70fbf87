// The rows of cells, looked at together: grouped by some of their fields, averaged over the others.
//
// Rows that carry `failed` say why they have no numbers: they are counted, not averaged. Infinite
// numbers are the strings "inf" and "-inf", as everywhere in fcp's JSON.
// Tested by tests/experiments/result_rows_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fcp/level.h"

#include "apps/experiments/experiment.h"
#include "apps/report/results.h"

namespace fcp {

// The number of a field; NaN where there is none.
double number_of(const Json& row, std::string_view field);

// The text of a field, numbers as JSON writes them; empty where there is none.
std::string text_of(const Json& row, std::string_view field);

struct Spread {
  size_t count = 0;
  double mean = 0;       // NaN of nothing
  double deviation = 0;  // of the sample; 0 of a single number
};

Spread spread_of(std::span<const double> values);

// "1.987 ± 0.105"; "–" of nothing, without ± of a single number. The second shows fractions as per
// cent: "90.3 ± 0.4".
std::string spread_text(const Spread& spread, int decimals = 3);
std::string percent_text(const Spread& spread, int decimals = 1);

// With so many decimals; "–" for NaN.
std::string fixed_text(double value, int decimals);

// Rows that agree in the fields they were grouped by.
struct RowGroup {
  std::vector<std::string> key;  // the values of those fields
  std::vector<const Json*> rows;
  size_t failed = 0;

  Spread spread(std::string_view field) const;
  std::vector<double> numbers(std::string_view field) const;
  // "2 of 5 seeds: no M"; empty where none failed.
  std::string failed_text() const;
};

// In the order in which the keys are first met. The rows must outlive the groups.
std::vector<RowGroup> group_rows(const Json& rows, std::span<const std::string_view> fields);
std::vector<RowGroup> group_rows(const Json& rows, std::initializer_list<std::string_view> fields);

// The group of this key; nothing where there is none.
const RowGroup* find_group(std::span<const RowGroup> groups,
                           std::initializer_list<std::string_view> key);

// Spread of a field of that group; of nothing where there is none.
Spread spread_at(std::span<const RowGroup> groups, std::initializer_list<std::string_view> key,
                 std::string_view field);

// The different values of a field, in the order in which they are first met.
std::vector<std::string> values_of(const Json& rows, std::string_view field);

// A CSV of all rows: one column for each field that any of them has, but for `seconds`.
std::string rows_csv(const Json& rows);

// Tables and figures that several experiments on data sets share, from rows with `set`, `method`,
// `coverage`, `length` and, where a score has one, `detection_coverage`.

// A line for each set and method: detection, interval coverage, worst third, length, what failed.
ResultTable coverage_table(const Json& rows);

// Mean length of each method divided by that of `base`, by set.
Figure relative_length_figure(const Json& rows, const std::string& base,
                              const std::vector<std::string>& methods);

// Interval coverage of each method by set, with its target.
Figure coverage_figure(const Json& rows, const std::vector<std::string>& methods,
                       const Level& level);

// What the paper prints, to stand beside our figures, as text: mean ± deviation over its five
// seeds. "Official" is the paper's own code run by its own recipe, where that was measured.

// A row of the paper's tables on the one-dimensional sets, and on the synthetic one; empty where it
// prints nothing. Lengths, unless said otherwise.
struct PaperSet {
  std::string_view set;
  std::string_view cp, fcp;                    // vanilla CP, Feature CP
  std::string_view official_cp, official_fcp;  // by IBP
  std::string_view cqr, feature_cqr;
  std::string_view cqr_third, feature_cqr_third;  // coverage of the worst third, %
  std::string_view cubic_feature, cubic_output;   // distances to the quantile
  std::string_view untrained_cp, untrained_fcp;
};

// "meps21 (rebuilt)" is looked up as meps21. A set the paper does not have is empty throughout.
const PaperSet& paper_set(std::string_view set);

// Its ablation of the cut: `layers` is "1:3", "2:2" or "3:1".
std::string paper_cut_length(std::string_view set, std::string_view layers);

}  // namespace fcp
