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
  std::vector<float> median;  // one per column
  std::vector<float> scale;   // above 0
  bool fill = false;          // whether missing values of any column are replaced
  std::vector<int64_t> missing;
  // One per bin:
  std::vector<int64_t> bin_column;
  std::vector<float> bin_start;
  std::vector<float> bin_width;  // above 0

  int64_t columns() const { return static_cast<int64_t>(median.size()); }
  int64_t width() const;  // of an encoded row
};

// x [N, columns], in which NaN is a missing value.
InputEncoding fit_input_encoding(const Array& x);

// Adds the nodes that make the encoded rows [N, width] from `input`, and returns their tensor.
std::string append_encoding(Graph& graph, const InputEncoding& encoding, const std::string& input);

// Rows through these very nodes: [N, columns] to [N, width], on the CPU.
torch::Tensor encode_rows(const InputEncoding& encoding, const Array& x);

}  // namespace fcp
