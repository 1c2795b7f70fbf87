// Which numbers of a row may be missing: those whose NaN the network takes as a value before it
// computes with it. Trees send NaN to a side of their own, Imputer and LabelEncoder replace it,
// and so do IsNaN and Where together. A number that anything else computes with may not be missing.
//
// Every operator says what it does with NaN (Op::missing_rule). One walk from the input follows the
// columns through the operators that only move them, as numbers that say which column they are.
// A column may be missing where it may be so alone, whatever the others hold; then any set of such
// columns may be missing.
//
// Cost: one run of the part of the network before anything is computed, on one row.
// Tested by tests/nn/graph/missing_values_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// Whether NaN of this input reaches an operator that takes it as a value. Found without running.
bool reads_missing(const Graph& network, const std::string& input);

// For each number of a row [row_shape] of this input, in its order, whether it may be missing.
std::vector<bool> missing_columns(const Graph& network, const std::string& input,
                                  const std::vector<int64_t>& row_shape);

}  // namespace fcp
