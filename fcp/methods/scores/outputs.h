// What every interval score does with the head's outputs and with the truth before it starts.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/base/special_numbers.h"
#include "fcp/bounds/bounds.h"
#include "fcp/conformal/pixel_share.h"
#include "fcp/interval.h"
#include "fcp/methods/scores/least_radius.h"
#include "fcp/methods/scores/score.h"
#include "fcp/methods/scores/score_table.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {

// The index of the output called `name` among the head's outputs; where `name` is empty, the only
// one that is not of a head on features. An Error lists the outputs otherwise.
size_t output_index(const Network& head, const std::string& name);

// One output as a matrix of doubles, [N, K].
torch::Tensor output_matrix(const torch::Tensor& output);

// The truth as a matrix of doubles like `prediction`; an Error names both shapes where they differ.
torch::Tensor truth_matrix(const torch::Tensor& truth, const torch::Tensor& prediction);

// The scores of N rows as plain numbers.
std::vector<double> plain_scores(const torch::Tensor& scores);

// An Error where `radius` is not a matrix of one number for each of `rows` rows and `sides` sides.
void check_radii(const torch::Tensor& radius, int64_t rows, int64_t sides);

// The radii of a score with one side as a column [N, 1] on the device of `like` [N, …]; an Error
// where their number is another.
torch::Tensor radius_column(const torch::Tensor& radius, const torch::Tensor& like);

// The functions above of every number of matrices [N, K]; what has one column is
// expanded to the others.
torch::Tensor sums_up(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor distances_up(const torch::Tensor& truth, const torch::Tensor& mean);
torch::Tensor spread_margins(const torch::Tensor& spread, const torch::Tensor& radius);
torch::Tensor spread_scores(const torch::Tensor& distance, const torch::Tensor& spread);
Regions inward_regions(const torch::Tensor& prediction, const torch::Tensor& low,
                       const torch::Tensor& high, const torch::Tensor& low_margin,
                       const torch::Tensor& high_margin);

// The regions with the rows whose radius, [N, 1], is +∞ made infinite.
Regions with_infinite_rows(Regions regions, const torch::Tensor& radius);

// The norm of each row of `rows` [N, …] → [N].
torch::Tensor row_norms(const torch::Tensor& rows, Norm norm);

// One float32 number per row in the memory of the host, as most networks answer: plain scores go
// over it in one loop, where tensors would go over it once for each operation. The numbers are
// computed with as doubles, in the same order as the tensors would, so that the bits are the same.
template <typename Number>
struct Column {
  const Number* first;
  int64_t step;

  double operator[](int64_t row) const { return static_cast<double>(first[row * step]); }
};

// [N], [N, 1], …; none where it is of another type or device, or has several numbers per row.
template <typename Number>
std::optional<Column<Number>> column_of(const torch::Tensor& numbers) {
  constexpr torch::ScalarType kType =
      sizeof(Number) == sizeof(float) ? torch::kFloat : torch::kDouble;
  const bool plain = numbers.is_cpu() && numbers.scalar_type() == kType && numbers.dim() > 0 &&
                     numbers.numel() == numbers.size(0) && !numbers.requires_grad();
  if (!plain) return std::nullopt;
  return Column<Number>{numbers.data_ptr<Number>(), numbers.stride(0)};
}

// Intervals of `rows` rows with one output each, to be filled in. Both ends are of one tensor,
// [2, N, 1], so that a caller who wants them as such need not copy them.
struct RegionColumns {
  explicit RegionColumns(int64_t rows)
      : RegionColumns(rows, torch::empty({2, rows, 1}, torch::kDouble)) {}

  RegionColumns(int64_t rows, const torch::Tensor& ends)
      : regions{torch::empty({rows, 1}, torch::kDouble), ends[0], ends[1], {}},
        prediction(regions.prediction.data_ptr<double>()),
        lower(regions.lower.data_ptr<double>()),
        upper(regions.upper.data_ptr<double>()) {}

  Regions regions;
  double* prediction;
  double* lower;
  double* upper;
};

// Outputs that heads learned on frozen features add to a network: behind the feature tensor, beside
// the network's own outputs. Their names are reserved, so that a network with heads still has one
// answer, and scores that do not read them never pay for them.
//
//   fcp.spread      [N, K]      σ(v) > 0: how far the truth is from the prediction
//   fcp.quantiles   [N, K · Q]  of y − prediction, ascending for each output, at the levels
//                               1/(Q+1), …, Q/(Q+1)
//   fcp.cholesky    [N, K · K]  the lower triangular factor L of a covariance of y − prediction,
//                               row by row (ellipsoid.h)
//   fcp.rectifier   [N, S]      what rectified scores are divided by, or lowered by (rectified.h)
//   fcp.cross_low   [N, n]      ends of CV+ (cross.h)
//   fcp.cross_high  [N, n]
//   fcp.cross_margins  [N, n · C]  of CV+ for labels (cross.h)
//
// Tested by tests/methods/scores/spread_test.cc.

inline constexpr char kSpreadOutput[] = "fcp.spread";
inline constexpr char kQuantilesOutput[] = "fcp.quantiles";
inline constexpr char kCholeskyOutput[] = "fcp.cholesky";
inline constexpr char kRectifierOutput[] = "fcp.rectifier";
inline constexpr char kCrossLowOutput[] = "fcp.cross_low";
inline constexpr char kCrossHighOutput[] = "fcp.cross_high";
inline constexpr char kCrossMarginsOutput[] = "fcp.cross_margins";

// Whether the name is one of the above.
bool is_head_output(const std::string& output);

bool has_output(const Graph& network, const std::string& output);

// The network without the head outputs that the score does not read, and where the options name
// outputs without all others, and without what only those need: cuts, bounds and gradients of
// other outputs do not matter. Where all outputs are read the network is given back as it is.
Graph graph_for_score(const Graph& network, const ScoreOptions& options);

// The network as it was before heads were added.
Graph without_heads(const Graph& network);

// Intervals μ ± margin whose law is exact. The ends are rounded inwards and distances upwards, so
// that
//
//   y ∈ [end_up(μ − m), end_down(μ + m)]   ⟺   |y − μ| ≤ m, exactly   ⟺   distance_up(y, μ) ≤ m
//
// for all doubles y, μ and m: an end rounded inwards is the outermost double within the exact end,
// and the least double that is not below the exact distance is at most m exactly where the distance
// is. To the nearest, y = −1e-20 beside μ = 2 would have the distance 2, and [2 − 2, 2 + 2] does
// not hold it. Differences of float32 numbers are mostly exact in double precision, so that
// rounding changes nothing there.
//
// The error of a sum is Knuth's (2Sum, The Art of Computer Programming, volume 2, section 4.2.2),
// that of a product is what a fused multiply-add leaves. Tested by
// tests/methods/scores/law_test.cc.

// Whether `sum` = a + b is exact: one of the two differences is computed without rounding (Dekker's
// Fast2Sum), and where the sum is exact, both are. False where it is not finite.
inline bool is_exact(double a, double b, double sum) { return sum - a == b && sum - b == a; }

// The same over many sums without a branch: 0 where both are equal.
inline uint64_t bit_difference(double a, double b) {
  return std::bit_cast<uint64_t>(a) ^ std::bit_cast<uint64_t>(b);
}
inline uint64_t inexactness(double a, double b, double sum) {
  return bit_difference(sum - a, b) | bit_difference(sum - b, a);
}

// What rounding left out of `sum` = a + b; NaN where the sum is not finite.
inline double sum_error(double a, double b, double sum) {
  const double part = sum - a;
  return (a - (sum - part)) + (b - part);
}

// a + b, rounded up.
inline double sum_up(double a, double b) {
  const double sum = a + b;
  if (is_exact(a, b, sum)) [[likely]]
    return sum;
  return sum_error(a, b, sum) > 0 ? std::nextafter(sum, kInfinity) : sum;
}

inline double sum_down(double a, double b) { return -sum_up(-a, -b); }

// |y − μ|, rounded up.
inline double distance_up(double y, double mean) {
  return y < mean ? sum_up(mean, -y) : sum_up(y, -mean);
}

// [low − margin, high + margin], rounded inwards; all there is for an infinite margin.
inline Interval inward_interval(double low, double high, double low_margin, double high_margin) {
  return {low_margin == kInfinity && !std::isnan(low) ? -kInfinity : sum_up(low, -low_margin),
          high_margin == kInfinity && !std::isnan(high) ? kInfinity : sum_down(high, high_margin)};
}

// spread · radius, rounded up, for spreads of 0 and above. Nothing at a negative radius, whatever
// the spread; everything at an infinite one.
inline double spread_margin(double spread, double radius) {
  if (radius < 0) return -kInfinity;
  if (radius == 0 || radius == kInfinity) return std::isnan(spread) ? spread : radius;
  const double product = spread * radius;
  return std::fma(spread, radius, -product) > 0 ? std::nextafter(product, kInfinity) : product;
}

// The least radius whose margin is at least `distance`; NaN where either number is.
inline double spread_score(double distance, double spread) {
  if (std::isnan(distance) || std::isnan(spread)) return std::nan("");
  if (distance == 0) return 0;
  return least_radius([=](double radius) { return spread_margin(spread, radius) >= distance; },
                      distance / spread);
}

// Pixels: what the score of a whole image counts.
//
// An output [N, C, H, W] has P = H·W pixels of C channels; an output [N, K] has K pixels of one
// channel each. A pixel is in a region where all its channels are. Where the share q of the pixels
// is asked for, an image is within radius r when at least ⌈q P⌉ of its pixels are in the region
// of radius r:
//
//   score(v, y) = the ⌈q P⌉-th smallest over pixels of the largest score over channels
//
// so that the law of score.h becomes: share of pixels in region(v, r) ≥ q ⟺ score(v, y) ≤ r. With
// q = 1 it is the law of the whole. docs/mathematics.md says what is then guaranteed.
// Tested by tests/methods/scores/outputs_test.cc.

struct PixelShape {
  int64_t channels = 1;
  int64_t count = 1;  // P
};

// Of one output, [N, C, …] or [N, K].
PixelShape pixel_shape(const torch::Tensor& output);

// inside [N, C·P] bool → [N] bool: enough pixels have all their channels in.
torch::Tensor enough_pixels(const torch::Tensor& inside, const PixelShape& shape, double share);

// The scores of the outputs [N, C·P] → that of the image [N]; NaN where one of them is.
torch::Tensor pixel_quantile(const torch::Tensor& scores, const PixelShape& shape, double share);

// The share that the option `pixels` of the score `name` means: 0 stands for 1, the whole. An Error
// where it is not a share.
double pixel_share(double pixels, const std::string& name);

}  // namespace fcp
