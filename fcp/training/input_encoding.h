// What a table's columns become before the first layer of a network, fitted on the training rows
// and written into the graph, which therefore takes raw columns:
//
//   soft     z / √(1 + (z/3)²), z = (x − median) / (0.7413 · interquartile range)
//   bins     clip((x − aᵢ) / (aᵢ₊₁ − aᵢ), 0, 1) for each pair of neighbouring edges aᵢ of the
//   column missing  1 where x is missing, for columns in which values are missing
//
// The first is a robust standardisation whose outliers are softly clipped at ±3; the second is the
// piecewise-linear encoding (Gorishniy et al., "On embeddings for numerical features in tabular
// deep learning", 2022), which lets a network bend at quantiles of the column. Edges are quantiles;
// a column with few distinct values, such as the codes of a category, has an edge at each of them.
// A missing value (NaN) is read as the median, and `missing` says so.
//
// A column of dates, in days since 2000-01-01, which was a Saturday, gains three columns, which are
// encoded like all others: the weekday from 0, the day of the year, and the time of day.
//
//   weekday = ⌊d⌋ − 7 ⌊⌊d⌋ / 7⌋,   day = d − 365.2425 ⌊d / 365.2425⌋,   time = d − ⌊d⌋
//
// Cost: sorting each column once. Tested by tests/training/input_encoding_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/array.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

struct InputEncoding {
  std::vector<int64_t> dates;  // columns that hold days
  std::vector<float> median;   // one per column, those of the calendar behind those of the table
  std::vector<float> scale;    // above 0
  bool fill = false;           // whether missing values of any column are replaced
  std::vector<int64_t> missing;
  // One per bin:
  std::vector<int64_t> bin_column;
  std::vector<float> bin_start;
  std::vector<float> bin_width;  // above 0

  // Of the table, and with those of the calendar.
  int64_t columns() const { return all_columns() - 3 * static_cast<int64_t>(dates.size()); }
  int64_t all_columns() const { return static_cast<int64_t>(median.size()); }
  int64_t width() const;  // of an encoded row
};

// x [N, columns], in which NaN is a missing value; `dates`: which columns hold days.
InputEncoding fit_input_encoding(const Array& x, const std::vector<int64_t>& dates = {});

// The table's columns as they are and those of the calendar, [N, all_columns]: what trees read.
Array with_calendar(const InputEncoding& encoding, const Array& x);

// The tensor of the calendar's columns in the graph; there is none without dates.
inline constexpr char kCalendar[] = "calendar";

// Adds the nodes that make the encoded rows [N, width] from `input`, and returns their tensor.
std::string append_encoding(Graph& graph, const InputEncoding& encoding, const std::string& input);

// Rows through these very nodes: [N, columns] to [N, width], on the CPU.
torch::Tensor encode_rows(const InputEncoding& encoding, const Array& x);

}  // namespace fcp
