#include "fcp/methods/scores/feature_cqr.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/nested.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/surrogate.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

class SurrogateCqr : public Score {
 public:
  SurrogateCqr(const FeatureCqrOptions& options, std::shared_ptr<const Network> head,
               const QuantileOutputs& outputs)
      : head_(std::move(head)),
        bounds_(make_bounds(head_, options.bound)),
        outputs_(outputs),
        norm_(options.norm),
        steps_(options.steps),
        low_(head_, outputs_.low, search_options(options)),
        high_(head_, outputs_.high, search_options(options)) {
    if (steps_ < 1) fail("the paper's feature_cqr needs its number of steps; it was ", steps_);
  }

  int64_t sides() const override { return 2; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const auto [low, high] = quantiles_of(run_apart(*head_, {features}), outputs_);
    if (low.size(1) != 1) fail("the paper's feature_cqr is for one output; found ", low.size(1));
    const torch::Tensor y = truth_matrix(truth, low);
    return plain_scores(
        torch::stack({signed_distance(low_, features, truth, (y < low).squeeze(1)),
                      signed_distance(high_, features, truth, (y > high).squeeze(1))},
                     1));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    check_radii(radius, features.size(0), sides());
    const auto [low, high] = quantiles_of(run_apart(*head_, {features}), outputs_);
    const torch::Tensor radii = radius.to(low.device(), torch::kDouble);
    const torch::Tensor first = radii.narrow(1, 0, 1), last = radii.narrow(1, 1, 1);
    const Range below = range_at(features, first, outputs_.low);
    const Range above = range_at(features, last, outputs_.high);
    Regions regions{(low + high) / 2,
                    torch::where(first < 0, output_matrix(below.upper), output_matrix(below.lower)),
                    torch::where(last < 0, output_matrix(above.lower), output_matrix(above.upper)),
                    {}};
    const torch::Tensor infinity = torch::full_like(low, std::numeric_limits<double>::infinity());
    regions.lower = torch::where(first.isposinf(), -infinity, regions.lower);
    regions.upper = torch::where(last.isposinf(), infinity, regions.upper);
    return regions;
  }

 private:
  static SearchOptions search_options(const FeatureCqrOptions& options) {
    return {.rate = options.step_rate, .adam = options.adam, .weights = {}};
  }

  torch::Tensor signed_distance(const SurrogateSearch& search, const torch::Tensor& features,
                                const torch::Tensor& truth, const torch::Tensor& outside) const {
    const torch::Tensor distance =
        search.distances(features, truth, steps_, distance_order(norm_)).to(torch::kDouble);
    return torch::where(outside, distance, -distance);
  }

  Range range_at(const torch::Tensor& features, const torch::Tensor& radius, size_t output) const {
    const torch::Tensor size =
        torch::where(radius.isinf(), torch::zeros_like(radius), radius.abs());
    return bounds_->ranges({features, size.squeeze(1).to(features.options()), norm_, {}})[output];
  }

  std::shared_ptr<const Network> head_;
  std::unique_ptr<HeadBounds> bounds_;
  QuantileOutputs outputs_;
  Norm norm_;
  int steps_;
  SurrogateSearch low_, high_;
};

}  // namespace

std::string FeatureCqrOptions::form_of(const std::string& option) {
  if (option == "floor") return " without paper";
  if (option == "steps" || option == "rate" || option == "adam") return " with paper";
  return "";
}

std::unique_ptr<Score> make_score(const FeatureCqrOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const QuantileOutputs outputs = quantile_outputs(*head, options.low, options.high);
  if (options.paper) return std::make_unique<SurrogateCqr>(options, std::move(head), outputs);
  const NestedOptions band{.norm = options.norm,
                           .bound = options.bound,
                           .scale = options.scale,
                           .floor = options.floor,
                           .slope = options.slope};
  const bool two_sided = options.asymmetric || shared.side != BoundSide::kBoth;
  std::unique_ptr<Score> score =
      make_band_score(band, pixel_share(shared.pixels, FeatureCqrOptions::kName), std::move(head),
                      {.low = outputs.low,
                       .high = outputs.high,
                       .range = RadiusRange::kSigned,
                       .sides = two_sided ? 2 : 1});
  return one_end_of(std::move(score), shared.side);
}

}  // namespace fcp
