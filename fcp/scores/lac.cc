#include "fcp/scores/lac.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/scores/labels.h"
#include "fcp/scores/pixel_sets.h"

namespace fcp {
namespace {

class Lac : public LabelScore {
 public:
  Lac(const ScoreOptions& options, const std::shared_ptr<const Network>& head)
      : LabelScore(options, head), temperature_(options.temperature) {}

  using LabelScore::label_scores;
  torch::Tensor label_scores(const torch::Tensor&, const torch::Tensor& logits) const override {
    return 1 - probabilities(logits, temperature_);
  }

 private:
  double temperature_;
};

// Row by row, so that the bits of a row do not depend on its batch.
torch::Tensor row_softmax(const torch::Tensor& logits) {
  torch::Tensor shares = torch::empty_like(logits);
  const int64_t classes = logits.size(1);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const double* z = logits.data_ptr<double>() + row * classes;
    double* p = shares.data_ptr<double>() + row * classes;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < classes; ++k) largest = z[k] > largest ? z[k] : largest;
    for (int64_t k = 0; k < classes; ++k) sum += p[k] = std::exp(z[k] - largest);
    for (int64_t k = 0; k < classes; ++k) p[k] /= sum;
  }
  return shares;
}

}  // namespace

torch::Tensor probabilities(const torch::Tensor& logits, double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    fail("the temperature of a softmax must be positive; it was ", temperature);
  }
  const torch::Tensor cooled = logits.to(torch::kDouble) / temperature;
  if (cooled.dim() != 2 || !cooled.is_cpu()) return torch::softmax(cooled, 1);
  return row_softmax(cooled.contiguous());
}

std::unique_ptr<Score> make_lac(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  if (options.pixels != 0) return make_pixel_sets(options, std::move(head));
  return std::make_unique<Lac>(options, head);
}

}  // namespace fcp
