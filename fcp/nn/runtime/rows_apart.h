// Whether a network answers each row by itself. Networks that take statistics over the batch, or
// let rows attend to each other, give a row another answer in other company: no radius belongs to
// such an answer.
//
// A few rows run together and then alone. Rounding differs by about 1e-6 of the answers and much
// less than kApart; a batch's mean or attention over rows moves them by more, but for networks
// that hardly look at other rows at all. Quantised networks may move by a step of theirs, so they
// get kApartQuantized. Cost: two forward passes of the rows.
//
// Tested by tests/nn/runtime/rows_apart_test.cc.
#pragma once

#include <torch/types.h>

#include "fcp/nn/runtime/network.h"

namespace fcp {

inline constexpr double kApart = 1e-3;  // of the largest answer
inline constexpr double kApartQuantized = 0.1;

// An Error names the first node at which a row's numbers depend on other rows. x [N, …]: rows of
// the network's only input, N ≥ 2 or nothing is told. A network that takes only one row at a time
// passes: its rows run alone.
void check_rows_apart(const Network& network, const torch::Tensor& x);

}  // namespace fcp
