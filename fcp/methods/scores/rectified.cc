#include "fcp/methods/scores/rectified.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/least_radius.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr double kLargestDivisor = 1e150;

// The head without the rectifier, which no bound should walk through.
std::shared_ptr<const Network> without_output(const Network& head, size_t output) {
  std::vector<TensorInfo> kept = head.outputs();
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(output));
  NetworkOptions options;
  options.device = head.device();
  return std::make_shared<const Network>(extract(head.graph(), head.inputs(), kept), options);
}

class Rectified : public Score {
 public:
  Rectified(std::unique_ptr<Score> inner, std::shared_ptr<const Network> rectifier, bool difference)
      : inner_(std::move(inner)), rectifier_(std::move(rectifier)), difference_(difference) {}

  int64_t sides() const override { return inner_->sides(); }
  int64_t targets() const override { return inner_->targets(); }
  int64_t classes() const override { return inner_->classes(); }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    std::vector<double> scores = inner_->score(features, truth);
    const torch::Tensor rho = rectifier(features).expand({-1, sides()}).contiguous();
    const double* own = rho.data_ptr<double>();
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = rectify(scores[i], own[i]);
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const torch::Tensor rho = rectifier(features).to(radius.device());
    return inner_->region(features, difference_ ? radius + rho : products(radius, rho));
  }

 private:
  torch::Tensor rectifier(const torch::Tensor& features) const {
    const torch::Tensor rho = plain_matrix(run_apart(*rectifier_, {features})[0]);
    if (rho.size(1) != 1 && rho.size(1) != sides()) {
      fail("rectified: output '", rectifier_->outputs()[0].name, "' has ", rho.size(1),
           " numbers per row, expected 1 or one for each of ", sides(), " sides");
    }
    return difference_ ? rho.clamp(-kLargestDivisor, kLargestDivisor)
                       : rho.clamp(1 / kLargestDivisor, kLargestDivisor);
  }

  double rectify(double score, double rho) const {
    if (std::isnan(score) || std::isnan(rho)) return std::nan("");
    if (difference_) return least_radius([=](double r) { return r + rho >= score; }, score - rho);
    return least_radius([=](double r) { return product(r, rho) >= score; }, score / rho);
  }

  // A negative radius stays one where its product vanishes: 0 is the radius of many scores.
  static double product(double radius, double rho) {
    const double exact = radius * rho;
    return radius < 0 && exact == 0 ? -std::numeric_limits<double>::denorm_min() : exact;
  }
  static torch::Tensor products(const torch::Tensor& radius, const torch::Tensor& rho) {
    const torch::Tensor exact = radius * rho;
    return exact.masked_fill((radius < 0).logical_and(exact == 0),
                             -std::numeric_limits<double>::denorm_min());
  }

  std::unique_ptr<Score> inner_;
  std::shared_ptr<const Network> rectifier_;  // one output
  bool difference_;
};

}  // namespace

std::unique_ptr<Score> make_rectified(const ScoreOptions& options,
                                      std::shared_ptr<const Network> head) {
  if (!options.obeys_law()) {
    fail("rectified: ", options.name(), " does not obey the law that rectifying relies on");
  }
  const size_t output = output_index(*head, options.rectifier);
  NetworkOptions network;
  network.device = head->device();
  auto rectifier = std::make_shared<const Network>(
      extract(head->graph(), head->inputs(), {head->outputs()[output]}), network);
  ScoreOptions inner = options;
  inner.rectifier.clear();
  inner.support.clear();  // which the rectified score keeps to
  inner.integer = false;
  return std::make_unique<Rectified>(make_score(inner, without_output(*head, output)),
                                     std::move(rectifier), options.may_be_negative());
}

}  // namespace fcp
