#include "fcp/scores/residual.h"

#include <limits>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/pixels.h"

namespace fcp {
namespace {

class Residual : public Score {
 public:
  Residual(std::shared_ptr<const Network> head, size_t output, std::optional<size_t> spread,
           double share)
      : head_(std::move(head)), output_(output), spread_(spread), share_(share) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Answer answer = predict(features);
    torch::Tensor distance = (truth_matrix(truth, answer.mean) - answer.mean).abs();  // [N, K]
    if (spread_) distance = distance / answer.spread;
    return plain_scores(pixel_quantile(distance, answer.pixels, share_));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Answer answer = predict(features);
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

  Answer predict(const torch::Tensor& features) const {
    const Tensors outputs = run_apart(*head_, {features});
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
