#include "fcp/scores/residual.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/number_column.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/pixels.h"

namespace fcp {
namespace {

// Scores of one number per row; none where there are several, or elsewhere than on the host.
std::optional<std::vector<double>> column_distances(const torch::Tensor& output,
                                                    const torch::Tensor& truth) {
  const auto mean = column_of<float>(output), y = column_of<float>(truth);
  if (!mean || !y || output.size(0) != truth.size(0)) return std::nullopt;
  std::vector<double> distances(static_cast<size_t>(output.size(0)));
  for (size_t i = 0; i < distances.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    distances[i] = std::abs((*y)[row] - (*mean)[row]);
  }
  return distances;
}

// The interval μ ± r of each row; μ is a matrix [N, 1].
Regions column_intervals(const Column<float>& mean, const Column<double>& radius, int64_t rows) {
  const RegionColumns found(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const double r = radius[row], margin = r < 0 ? -std::numeric_limits<double>::infinity() : r;
    found.prediction[row] = mean[row];
    found.lower[row] = mean[row] - margin;
    found.upper[row] = mean[row] + margin;
  }
  return found.regions;
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
    torch::Tensor distance = (truth_matrix(truth, answer.mean) - answer.mean).abs();  // [N, K]
    if (spread_) distance = distance / answer.spread;
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
        torch::where(column < 0, torch::full_like(column, -std::numeric_limits<double>::infinity()),
                     spread_ ? answer.spread * column * kRoundedUp : column);
    return {answer.mean, answer.mean - margin, answer.mean + margin, {}};
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
    const torch::Tensor bad = (answer.spread > 0).all(1).logical_not();
    if (bad.any().item<bool>()) {
      fail("row ", bad.nonzero()[0].item<int64_t>(),
           ": the spread by which residuals are normalised is not positive");
    }
    return answer;
  }

  std::shared_ptr<const Network> head_;
  size_t output_;
  std::optional<size_t> spread_;
  double share_;  // of the pixels that must be in
};

}  // namespace

std::unique_ptr<Score> make_residual(const ScoreOptions& options,
                                     std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, options.output);
  std::optional<size_t> spread;
  if (!options.normalize.empty()) spread = output_index(*head, options.normalize);
  return std::make_unique<Residual>(std::move(head), output, spread,
                                    pixel_share(options.pixels, options.name));
}

}  // namespace fcp
