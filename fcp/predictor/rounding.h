// What the rounding of single precision does to the answers of a network, measured on calibration
// rows: how far they are from those of the same network in double precision. Another runtime adds
// in another order and is off by another error of that size, which an export must allow for.
//
// All numbers are rounded up to powers of two: they say sizes and nothing of single rows.
// Assumes that later rows are like these; an export scales the differences for rows whose numbers
// are larger. Cost: two forward passes of at most 256 rows, of large networks of 8.
// Tested by tests/export/rounding_test.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/predictor/scored_network.h"

namespace fcp {

struct Rounding {
  struct Loss {
    double difference = 0;  // the largest between both precisions
    double size = 0;        // the largest number
  };

  size_t rows = 0;                      // 0: not measured
  std::vector<double> largest{};        // |x| of each column, or one for all; at least 1
  std::map<std::string, Loss> outputs;  // by output of the head
  Loss logits{};                        // of scores of labels
  Loss score{};                         // at the ends of regions; nested, feature_cqr, linearized
  Loss ends{};                          // of the same regions

  bool measured() const { return rows > 0; }
};

// How many rows to measure on.
size_t rounding_rows(const Graph& network);

// x [N, …], on the CPU. Not measured where an operator of the network has no double precision.
Rounding measure_rounding(const Graph& network, const ScoreOptions& score, const std::string& cut,
                          const torch::Tensor& x, const std::vector<double>& radii);

// What holds for the rows of both.
Rounding joined(const Rounding& a, const Rounding& b);

std::string rounding_text(const Rounding& rounding);
Rounding read_rounding(const std::string& text);

}  // namespace fcp
