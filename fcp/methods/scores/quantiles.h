// The learned low and high quantile of the residual, moved in proportion to their distance.
//
//   region(v, r) = [μ + q_τ − r w, μ + q_{1−τ} + r w],   w = q_{1−τ} − q_τ
//   score(v, y)  = the least r whose interval holds y, about
//                  max(μ + q_τ − y, y − μ − q_{1−τ}) / w; negative inside, −1/2 in the middle
//
// The quantiles are an output of the graph behind the cut (outputs.h). τ is the option `tail`,
// 0.05 by default: half the level that one expects to ask for is best, but any radius fits any
// level. Where w = 0 the interval is one point up to r = +∞. Several outputs: the largest score.
// Cost: one forward. Reference: CQR (Romano, Patterson, Candès, 2019) in the scaled form of Sesia
// and Candès, 2020; here of the residual, on frozen features.
// Tested by tests/methods/scores/law_test.cc, coverage_test.cc and density_test.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <torch/types.h>

#include "fcp/methods/scores/score.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

struct QuantilesOptions {
  static constexpr char kName[] = "quantiles";

  std::string quantiles{};  // the output that is the grid of quantiles; empty: the reserved one
  double tail = 0.05;       // the level of the low one; the high one's is 1 − tail
  bool asymmetric = false;  // a radius for each side, each at α/2 (one_sided.h)

  static std::vector<Option> rows();
  std::vector<std::string> learned_outputs() const;
  bool operator==(const QuantilesOptions&) const = default;
};

std::unique_ptr<Score> make_score(const QuantilesOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head);

// The learned quantiles of the residual, as scores read them from the graph.
//
//   q_0 ≤ … ≤ q_{Q−1} at the levels 1/(Q+1), …, Q/(Q+1), for each row and output; y ≈ μ + q
//
// Heads that fcp fits are monotone; quantiles of others that cross are put in order (Chernozhukov,
// Fernández-Val, Galichon, Quantile and Probability Curves Without Crossing, 2010), which keeps
// their distances: a quantile raised to its predecessor would have none, and intervals that are
// moved in proportion to it would never grow. Numbers beyond ±1e150 are brought back to it, so that
// differences stay finite.
struct QuantileRows {
  torch::Tensor prediction;  // [N, K] doubles on the CPU, but for those of read_cuda
  torch::Tensor grid;        // [N, K · Q], ascending in each run of Q; NaN where one of the run is

  int64_t levels() const { return grid.size(1) / std::max<int64_t>(1, prediction.size(1)); }
  double center(int64_t n, int64_t k) const {
    return prediction.data_ptr<double>()[n * prediction.size(1) + k];
  }
  std::span<const double> quantiles(int64_t n, int64_t k) const {
    const int64_t count = levels();
    return {grid.data_ptr<double>() + n * grid.size(1) + k * count, static_cast<size_t>(count)};
  }
};

// Reads both outputs of a head; made once for a score.
class QuantileReader {
 public:
  // The outputs that are the prediction (empty: the only one) and the quantiles.
  QuantileReader(std::shared_ptr<const Network> head, const std::string& output,
                 const std::string& quantiles);

  // An Error where the grid is not a whole number of at least two quantiles for each output.
  QuantileRows read(const torch::Tensor& features) const;

  // Whether the rows go through the kernels of monotone_cuda.h; the same as `read`, where they are.
  bool on_cuda() const;
  QuantileRows read_cuda(const torch::Tensor& features) const;

 private:
  QuantileRows outputs_of(const torch::Tensor& features) const;

  std::shared_ptr<const Network> head_;
  size_t output_, grid_;
};

// Where a level lies among so many quantiles: a share of the way from one to the next.
struct QuantilePlace {
  size_t below;
  double share;
};
QuantilePlace quantile_place(size_t levels, double level);

// The quantile at any level of (0, 1), linear between its neighbours and the outermost one beyond
// them. Monotone in the level.
double quantile_at(std::span<const double> quantiles, double level);

}  // namespace fcp
