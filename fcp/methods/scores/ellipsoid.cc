#include "fcp/methods/scores/ellipsoid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr double kLargestFactor = 1e150;  // products with a radius that matters stay finite
constexpr double kLeastFactor = 1e-150;
constexpr double kBoxSlack = 0x1p-40;     // relative: above 64 roundings of every kind
constexpr double kBoxUnderflow = 1e-290;  // absolute, per unit of L: what underflow can lose

// ‖z‖ of the K numbers without overflow or underflow of squares.
double stable_norm(const double* z, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(z[i]));
  if (largest == 0 || std::isinf(largest)) return largest;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (z[i] / largest) * (z[i] / largest);
  return largest * std::sqrt(sum);
}

// ‖L⁻¹ (y − μ)‖ by forward substitution; 0 only where y = μ. `z` is room for K numbers.
double whitened_norm(const double* y, const double* mean, const double* factor, int64_t outputs,
                     double* z) {
  for (int64_t i = 0; i < outputs; ++i) {
    const double* const row = factor + i * outputs;
    double left = y[i] - mean[i];
    if (std::isnan(left) || std::isnan(row[i])) return std::nan("");
    for (int64_t j = 0; j < i; ++j) left -= row[j] * z[j];
    z[i] = left / row[i];
    // Numbers that overflow are farther than any radius.
    if (!std::isfinite(z[i])) return kInfinity;
    if (z[i] == 0 && left != 0) z[i] = std::numeric_limits<double>::denorm_min();
  }
  return stable_norm(z, outputs);
}

// The norm of each row; all are [N, K] or [N, K, K] doubles on the CPU.
std::vector<double> whitened_norms(const torch::Tensor& truth, const torch::Tensor& prediction,
                                   const torch::Tensor& factor) {
  const int64_t rows = prediction.size(0), outputs = prediction.size(1);
  std::vector<double> norms, z(static_cast<size_t>(outputs));
  norms.reserve(static_cast<size_t>(rows));
  for (int64_t n = 0; n < rows; ++n) {
    norms.push_back(whitened_norm(
        truth.data_ptr<double>() + n * outputs, prediction.data_ptr<double>() + n * outputs,
        factor.data_ptr<double>() + n * outputs * outputs, outputs, z.data()));
  }
  return norms;
}

class Ellipsoid : public Score {
 public:
  Ellipsoid(std::shared_ptr<const Network> head, const std::string& output,
            const std::string& cholesky)
      : head_(std::move(head)),
        output_(output_index(*head_, output)),
        cholesky_(output_index(*head_, cholesky)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Rows rows = read(features);
    const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), rows.prediction).contiguous();
    return whitened_norms(y, rows.prediction, rows.factor);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Rows rows = read(features);
    const torch::Tensor column = radius_column(radius, rows.prediction).contiguous();
    Regions regions{rows.prediction,
                    torch::empty_like(rows.prediction),
                    torch::empty_like(rows.prediction),
                    {}};
    regions.factor = rows.factor;
    regions.radius = column;
    const int64_t outputs = rows.prediction.size(1);
    for (int64_t i = 0; i < rows.prediction.numel(); ++i) {
      const Interval side = box_side(rows.prediction.data_ptr<double>()[i],
                                     rows.factor.data_ptr<double>() + i * outputs, i % outputs + 1,
                                     column.data_ptr<double>()[i / outputs]);
      regions.lower.data_ptr<double>()[i] = side.lower;
      regions.upper.data_ptr<double>()[i] = side.upper;
    }
    return regions;
  }

 private:
  struct Rows {
    torch::Tensor prediction, factor;  // [N, K], [N, K, K], on the CPU
  };

  // Outwards, so that no y of the ellipsoid is outside; `row` has so many numbers.
  static Interval box_side(double center, const double* row, int64_t count, double radius) {
    if (radius == kInfinity) return {};
    if (radius < 0) return {kInfinity, -kInfinity};
    const double length = stable_norm(row, count);
    const double reach =
        length * radius * (1 + kBoxSlack) + (radius > 0 ? kBoxUnderflow * (1 + length) : 0);
    return {sum_down(center, -reach), sum_up(center, reach)};
  }

  Rows read(const torch::Tensor& features) const {
    const Tensors outputs = run_apart(*head_, {features});
    Rows rows{plain_matrix(outputs[output_]), plain_matrix(outputs[cholesky_])};
    const int64_t width = rows.prediction.size(1);
    if (rows.factor.size(1) != width * width) {
      fail("ellipsoid: output '", head_->outputs()[cholesky_].name, "' has ", rows.factor.size(1),
           " numbers per row, expected the ", width, " x ", width, " of a factor");
    }
    rows.factor = rows.factor.clamp(-kLargestFactor, kLargestFactor)
                      .reshape({-1, width, width})
                      .tril()
                      .contiguous();
    const torch::Tensor diagonal = rows.factor.diagonal(0, 1, 2);
    diagonal.copy_(diagonal.clamp_min(kLeastFactor));
    return rows;
  }

  std::shared_ptr<const Network> head_;
  size_t output_, cholesky_;
};

}  // namespace

torch::Tensor in_ellipsoids(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor y = truth_matrix(truth.to(torch::kCPU), regions.prediction).contiguous();
  const std::vector<double> norms = whitened_norms(y, regions.prediction, regions.factor);
  torch::Tensor in = torch::empty({y.size(0)}, torch::kBool);
  for (int64_t n = 0; n < y.size(0); ++n) {
    in.data_ptr<bool>()[n] = norms[static_cast<size_t>(n)] <= regions.radius.data_ptr<double>()[n];
  }
  return in;
}

torch::Tensor ellipsoid_volumes(const Regions& regions) {
  const auto outputs = static_cast<double>(regions.prediction.size(1));
  const double ball =  // V_K^(1/K)
      std::exp((outputs / 2 * std::log(std::numbers::pi) - std::lgamma(outputs / 2 + 1)) / outputs);
  const torch::Tensor side = regions.factor.diagonal(0, 1, 2).log().mean(1).exp();
  return ball * side * regions.radius.select(1, 0).clamp_min(0);
}

std::vector<std::string> EllipsoidOptions::learned_outputs() const {
  return {cholesky.empty() ? kCholeskyOutput : cholesky};
}

std::vector<Option> EllipsoidOptions::rows() {
  return {score_option(
      field::cholesky,
      {.name = "cholesky",
       .help = "The output that is the Cholesky factor of the covariance of all targets; by "
               "default the one that fcp learned",
       .storage = OptionStorage::kSet,
       .after = "spread"})};
}

std::unique_ptr<Score> make_score(const EllipsoidOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  if (shared.side != BoundSide::kBoth) fail("ellipsoid: has no one-sided form");
  return std::make_unique<Ellipsoid>(std::move(head), shared.output, options.learned_outputs()[0]);
}

}  // namespace fcp
