// Data sets made of random numbers, the same for the same seed.
//
// Tested by tests/experiments/synthetic_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fcp/data/array.h"

namespace fcp {

struct SyntheticOptions {
  size_t rows = 10000;
  size_t inputs = 100;
  size_t outputs = 10;
};

// The paper's multi-dimensional set: X uniform in [0, 1), Y = XW + ε, W uniform in [0, 1) and drawn
// once, ε standard normal.
DataSet synthetic_set(uint64_t seed, const SyntheticOptions& options = {});

// A plain network y = W₃ relu(W₂ relu(W₁ x + b₁) + b₂) + b₃; weights[i] is [outputs, inputs].
struct DenseNetwork {
  std::vector<Array> weights;
  std::vector<Array> biases;
};

Array evaluate(const DenseNetwork& network, const Array& x);

struct ZeroQuantileOptions {
  size_t rows = 10000;
  size_t inputs = 100;
  size_t width = 64;
  double zero_share = 0.901;
};

// The set of the paper's appendix on zero quantiles: y = f*(x) + ε, f* a random three-layer
// network, x uniform in [0, 1), ε = 0 with probability 0.901 and standard normal otherwise, so that
// the 90 % quantile of |y − f*(x)| is 0. (The paper prints 0.009 for the other probability; the two
// must sum to 1, so 0.099 is meant. It does not give the sizes; these are our defaults.)
struct ZeroQuantileSet {
  DataSet data;
  DenseNetwork truth;
  // ε alone, [N, 1]: added to f* as another runtime computes it, it gives exact zeros there too.
  Array noise;
};

ZeroQuantileSet zero_quantile_set(uint64_t seed, const ZeroQuantileOptions& options = {});

// For demonstrations: minutes a delivery takes, from eight named features. The noise grows from
// about 1 minute (near, no traffic) to about 20 (far, dense traffic, rain), so a band of one width
// for all is a bad answer.
DataSet demo_set(uint64_t seed, size_t rows = 6000);

}  // namespace fcp
