#include "fcp/methods/scores/residual.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/lanes.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr int64_t kRoundedRows = 256;  // of a block that is gone over again where it was rounded

// |y − μ| of the rows of a block, to the nearest. True where no bit was rounded away, as mostly.
FCP_KERNEL bool near_distances(const Column<float>& y, const Column<float>& mean, int64_t begin,
                               int64_t end, double* distances) {
  uint64_t rounded = 0;
  for (int64_t row = begin; row < end; ++row) {
    const double truth = y[row], center = mean[row], difference = truth - center;
    distances[row] = std::abs(difference);
    rounded |= inexactness(truth, -center, difference);
  }
  return rounded == 0;
}

// The ends μ ± r of a block in the same way.
FCP_KERNEL bool near_ends(const Column<float>& mean, const Column<double>& radius, int64_t begin,
                          int64_t end, const RegionColumns& found) {
  uint64_t rounded = 0;
  double *prediction = found.prediction, *lower = found.lower, *upper = found.upper;
  for (int64_t row = begin; row < end; ++row) {
    const double center = mean[row], margin = radius[row] < 0 ? -kInfinity : radius[row];
    prediction[row] = center;
    lower[row] = center - margin;
    upper[row] = center + margin;
    rounded |= inexactness(center, -margin, lower[row]) | inexactness(center, margin, upper[row]);
  }
  return rounded == 0;
}

bool near_distances_any(const Column<float>& y, const Column<float>& mean, int64_t begin,
                        int64_t end, double* distances) {
  return near_distances(y, mean, begin, end, distances);
}
bool near_ends_any(const Column<float>& mean, const Column<double>& radius, int64_t begin,
                   int64_t end, const RegionColumns& found) {
  return near_ends(mean, radius, begin, end, found);
}
FCP_AVX2 bool near_distances_avx2(const Column<float>& y, const Column<float>& mean, int64_t begin,
                                  int64_t end, double* distances) {
  return near_distances(y, mean, begin, end, distances);
}
FCP_AVX2 bool near_ends_avx2(const Column<float>& mean, const Column<double>& radius, int64_t begin,
                             int64_t end, const RegionColumns& found) {
  return near_ends(mean, radius, begin, end, found);
}

// Scores of one number per row; none where there are several, or elsewhere than on the host.
std::optional<std::vector<double>> column_distances(const torch::Tensor& output,
                                                    const torch::Tensor& truth) {
  const auto mean = column_of<float>(output), y = column_of<float>(truth);
  if (!mean || !y || output.size(0) != truth.size(0)) return std::nullopt;
  const int64_t rows = output.size(0);
  std::vector<double> distances(static_cast<size_t>(rows));
  double* const out = distances.data();
  const auto near = simd_width() >= 256 ? near_distances_avx2 : near_distances_any;
  for (int64_t begin = 0; begin < rows; begin += kRoundedRows) {
    const int64_t end = std::min(begin + kRoundedRows, rows);
    if (near(*y, *mean, begin, end, out)) continue;
    for (int64_t row = begin; row < end; ++row) out[row] = distance_up((*y)[row], (*mean)[row]);
  }
  return distances;
}

// The interval μ ± r of each row; μ is a matrix [N, 1].
Regions column_intervals(const Column<float>& mean, const Column<double>& radius, int64_t rows) {
  const RegionColumns found(rows);
  const auto near = simd_width() >= 256 ? near_ends_avx2 : near_ends_any;
  for (int64_t begin = 0; begin < rows; begin += kRoundedRows) {
    const int64_t end = std::min(begin + kRoundedRows, rows);
    if (near(mean, radius, begin, end, found)) continue;
    for (int64_t row = begin; row < end; ++row) {
      const double margin = radius[row] < 0 ? -kInfinity : radius[row];
      const Interval interval = inward_interval(mean[row], mean[row], margin, margin);
      found.lower[row] = interval.lower;
      found.upper[row] = interval.upper;
    }
  }
  return found.regions;
}

// An Error where a spread is none.
void check_spread(const torch::Tensor& spread) {
  const torch::Tensor bad = (spread > 0).all(1).logical_not();
  if (bad.any().item<bool>()) {
    fail("row ", bad.nonzero()[0].item<int64_t>(),
         ": the spread by which residuals are normalised is not positive");
  }
}

class Residual : public Score {
 public:
  Residual(std::shared_ptr<const Network> head, size_t output, std::optional<size_t> spread,
           double share)
      : head_(std::move(head)), output_(output), spread_(spread), share_(share) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Tensors outputs = run_apart(*head_, {features});
    if (!spread_ && share_ == 1) {
      if (auto scores = column_distances(outputs[output_], truth)) return *std::move(scores);
    }
    const Answer answer = predict(outputs);
    torch::Tensor distance = distances_up(truth_matrix(truth, answer.mean), answer.mean);  // [N, K]
    if (spread_) distance = spread_scores(distance, answer.spread);
    return plain_scores(pixel_quantile(distance, answer.pixels, share_));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Tensors outputs = run_apart(*head_, {features});
    const auto mean = column_of<float>(outputs[output_]);
    const auto radii = column_of<double>(radius);
    if (!spread_ && mean && radii) {
      check_radii(radius, outputs[output_].size(0), 1);
      return column_intervals(*mean, *radii, radius.size(0));
    }
    const Answer answer = predict(outputs);
    const torch::Tensor column = radius_column(radius, answer.mean);
    // Rounding must not bring the prediction back into the region of a negative radius.
    const torch::Tensor margin =
        spread_ ? spread_margins(answer.spread, column)
                : torch::where(column < 0, torch::full_like(column, -kInfinity), column);
    return inward_regions(answer.mean, answer.mean, answer.mean, margin, margin);
  }

 private:
  struct Answer {
    torch::Tensor mean;    // [N, K]
    torch::Tensor spread;  // [N, K] or [N, 1]
    PixelShape pixels;
  };

  Answer predict(const Tensors& outputs) const {
    Answer answer{output_matrix(outputs[output_]), {}, pixel_shape(outputs[output_])};
    if (!spread_) return answer;
    answer.spread = output_matrix(outputs[*spread_]).expand_as(answer.mean);
    check_spread(answer.spread);
    return answer;
  }

  std::shared_ptr<const Network> head_;
  size_t output_;
  std::optional<size_t> spread_;
  double share_;  // of the pixels that must be in
};

std::unique_ptr<Score> residual_ends(std::shared_ptr<const Network> head, size_t output,
                                     std::optional<size_t> spread, BoundSide side) {
  const auto read = [head = std::move(head), output, spread](const torch::Tensor& features) {
    const Tensors outputs = run_apart(*head, {features});
    const torch::Tensor mean = plain_matrix(outputs[output]);
    torch::Tensor width = torch::ones_like(mean);
    if (spread) {
      width = plain_matrix(outputs[*spread]).expand_as(mean).contiguous();
      check_spread(width);
    }
    return EndPairs{mean, mean, mean, width};
  };
  return make_end_score(read, side);
}

}  // namespace

std::vector<Option> ResidualOptions::rows() {
  return {
      score_option(field::normalize, {.name = "normalize",
                                      .help = "The output that estimates the spread of the answer",
                                      .after = "output"})};
}

std::unique_ptr<Score> make_score(const ResidualOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, shared.output);
  std::optional<size_t> spread;
  if (!options.normalize.empty()) spread = output_index(*head, options.normalize);
  if (options.asymmetric || shared.side != BoundSide::kBoth) {
    return residual_ends(std::move(head), output, spread, shared.side);
  }
  return std::make_unique<Residual>(std::move(head), output, spread,
                                    pixel_share(shared.pixels, ResidualOptions::kName));
}

}  // namespace fcp
