#include "fcp/methods/scores/lac.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

class Lac : public ShareScore {
 public:
  using ShareScore::ShareScore;

 protected:
  double score_of(const Row& row, int64_t label) const override {
    return 1 - row.shares[static_cast<size_t>(label)];
  }

  void scores_of(const Row& row, double* scores) const override {
    for (size_t k = 0; k < row.shares.size(); ++k) scores[k] = 1 - row.shares[k];
  }

  void find_members(const Row& row, double radius, bool* members) const override {
    for (size_t k = 0; k < row.shares.size(); ++k) members[k] = 1 - row.shares[k] <= radius;
  }
};

class PixelSets : public Score {
 public:
  PixelSets(const LacOptions& options, const SharedOptions& shared,
            std::shared_ptr<const Network> head)
      : head_(std::move(head)),
        output_(output_index(*head_, shared.output)),
        share_(pixel_share(shared.pixels, LacOptions::kName)),
        temperature_(options.temperature),
        double_log_(options.double_log),
        allow_empty_(options.allow_empty) {
    const TensorInfo& info = head_->outputs()[output_];
    if (!info.known_rank || info.shape.size() < 3 || info.shape[1] == kDynamic) {
      fail("output '", info.name,
           "': sets of labels for pixels need an output [rows, classes, height, width] that says ",
           "its classes");
    }
    classes_ = info.shape[1];
  }

  int64_t classes() const override { return classes_; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const torch::Tensor all = label_scores(features);  // [N, C, P]
    const torch::Tensor labels = labels_for(truth, all);
    const torch::Tensor own = all.gather(1, labels.clamp_min(0).unsqueeze(1)).squeeze(1);
    std::vector<double> scores;
    for (int64_t row = 0; row < all.size(0); ++row) {
      scores.push_back(score_of(own[row].masked_select(labels[row] >= 0), all[row]));
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const torch::Tensor all = label_scores(features);
    check_radii(radius, all.size(0), 1);
    const torch::Tensor limit = radius.to(all.device(), torch::kDouble).reshape({-1, 1, 1});
    return {all.argmin(1), {}, {}, all <= limit};
  }

 private:
  // [N, C, P] doubles; NaN where the network's answer is.
  torch::Tensor label_scores(const torch::Tensor& features) const {
    const torch::Tensor plain = plain_scores(features);
    if (allow_empty_) return plain;
    return plain.scatter(1, plain.argmin(1, /*keepdim=*/true), 0.0)
        .masked_fill(plain.isnan(), std::numeric_limits<double>::quiet_NaN());
  }

  // 1 − p
  torch::Tensor plain_scores(const torch::Tensor& features) const {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor output = run_apart(*head_, {features})[output_].to(torch::kDouble);
    const torch::Tensor flat = output.flatten(2);
    if (double_log_) return 1 - flat.exp().neg().exp();
    check_temperature(temperature_);
    return 1 - torch::softmax(flat / temperature_, 1);
  }

  // [N, P] int64; an Error names what is not a label.
  torch::Tensor labels_for(const torch::Tensor& truth, const torch::Tensor& all) const {
    const torch::Tensor labels = truth.to(all.device(), torch::kLong).flatten(1);
    if (labels.size(0) != all.size(0) || labels.size(1) != all.size(2)) {
      fail("there are ", labels.size(1), " labels per row, the network answers for ", all.size(2),
           " pixels");
    }
    const int64_t least = labels.min().item<int64_t>(), most = labels.max().item<int64_t>();
    if (least < -1 || most >= classes_) {
      fail("found label ", least < -1 ? least : most, ", expected one of 0 to ", classes_ - 1,
           ", or -1 for none");
    }
    return labels;
  }

  // scores [labelled] of one image, all [C, P] of it.
  double score_of(const torch::Tensor& scores, const torch::Tensor& all) const {
    if (all.isnan().any().item<bool>()) return std::numeric_limits<double>::quiet_NaN();
    if (scores.numel() == 0) return -std::numeric_limits<double>::infinity();
    return pixel_quantile(scores.unsqueeze(0), {1, scores.numel()}, share_).item<double>();
  }

  std::shared_ptr<const Network> head_;
  size_t output_;
  double share_;
  double temperature_;
  bool double_log_;
  bool allow_empty_;
  int64_t classes_ = 0;
};

}  // namespace

std::vector<Option> LacOptions::rows() {
  return {score_option(field::double_log, {.name = "double_log",
                                           .access = OptionAccess::kLearned,
                                           .storage = OptionStorage::kSince,
                                           .after = "temperature"})};
}

std::unique_ptr<Score> make_score(const LacOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  if (shared.pixels != 0) return std::make_unique<PixelSets>(options, shared, std::move(head));
  return std::make_unique<Lac>(head, shared.output, options.temperature, options.allow_empty);
}

}  // namespace fcp
