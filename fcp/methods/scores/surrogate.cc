#include "fcp/methods/scores/surrogate.h"

#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

class Surrogate : public Score {
 public:
  Surrogate(const SurrogateOptions& options, std::shared_ptr<const Network> head,
            const std::string& output)
      : head_(std::move(head)),
        bounds_(make_bounds(head_, options.bound)),
        output_(output_index(*head_, output)),
        norm_(options.norm),
        steps_(options.steps),
        search_(
            head_, output_,
            {.rate = options.step_rate, .adam = options.adam, .weights = options.loss_weights}) {
    if (steps_ < 1) fail("surrogate needs its number of steps; it was ", steps_);
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    return plain_scores(search_.distances(features, truth, steps_, distance_order(norm_)));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    Regions regions{output_matrix(run_apart(*head_, {features})[output_]), {}, {}, {}};
    const torch::Tensor column = radius_column(radius, regions.prediction);
    const torch::Tensor finite = torch::where(column.isinf(), torch::zeros_like(column), column);
    const Range range =
        bounds_->ranges({features, finite.squeeze(1).to(features.options()), norm_, {}})[output_];
    regions.lower = output_matrix(range.lower);
    regions.upper = output_matrix(range.upper);
    return with_infinite_rows(std::move(regions), column);
  }

 private:
  std::shared_ptr<const Network> head_;
  std::unique_ptr<HeadBounds> bounds_;
  size_t output_;
  Norm norm_;
  int steps_;
  SurrogateSearch search_;
};

}  // namespace

std::vector<Option> SurrogateOptions::rows() {
  return {score_option(field::loss_weights,
                       {.name = "loss_weights",
                        .help = "Weights of the squared error, one for each output",
                        .most = kAnyNumber,
                        .after = "paper"})};
}

std::unique_ptr<Score> make_score(const SurrogateOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  return std::make_unique<Surrogate>(options, std::move(head), shared.output);
}

}  // namespace fcp
