#include "fcp/scores/lac.h"

#include <cmath>
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

}  // namespace

torch::Tensor probabilities(const torch::Tensor& logits, double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    fail("the temperature of a softmax must be positive; it was ", temperature);
  }
  return torch::softmax(logits.to(torch::kDouble) / temperature, 1);
}

std::unique_ptr<Score> make_lac(const ScoreOptions& options, std::shared_ptr<const Network> head) {
  if (options.pixels != 0) return make_pixel_sets(options, std::move(head));
  return std::make_unique<Lac>(options, head);
}

}  // namespace fcp
