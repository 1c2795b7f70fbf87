// Sets of labels on a stream of rows; see method_evaluator.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/images/image.h"
#include "fcp/evaluate/measures/set_evaluation.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr size_t kMostLabels = 40;  // of an example
constexpr char kForeignName[] = "(none of the classes)";

// How often the true label is among the largest one or five logits, and the logarithms of the
// probabilities.
class TopCounter {
 public:
  explicit TopCounter(const EvaluatedMethod& method)
      : head_(logit_head(method.judge.predictor().network().shared_head(),
                         method.artifact().method.score.output)) {}

  void measure(const torch::Tensor& features, const torch::Tensor& truth, Packer& packer) const {
    const torch::Tensor logits = logits_of(head_, features);
    const torch::Tensor logs =
        torch::log_softmax(logits.to(torch::kDouble), 1).to(torch::kFloat).contiguous();
    packer.add(std::span<const float>(logs.data_ptr<float>(), static_cast<size_t>(logs.numel())));
    const torch::Tensor ranks = label_ranks(logits);
    const torch::Tensor plain = truth.reshape({-1, 1});
    const torch::Tensor foreign = plain.isinf();
    const torch::Tensor own = ranks.gather(1, plain.masked_fill(foreign, 0).to(torch::kLong))
                                  .masked_fill(foreign, ranks.size(1) + 5);
    packer.add(std::vector<int64_t>{(own == 1).sum().item<int64_t>(),
                                    (own <= 5).sum().item<int64_t>(), own.size(0)});
  }

  // Returns the logarithms, [rows × classes].
  std::vector<float> take(Unpacker& unpacker) {
    std::vector<float> logs = unpacker.numbers<float>();
    const std::vector<int64_t> counts = unpacker.numbers<int64_t>();
    first_ += counts.at(0);
    fifth_ += counts.at(1);
    rows_ += counts.at(2);
    return logs;
  }

  double top1() const { return static_cast<double>(first_) / static_cast<double>(rows_); }
  double top5() const { return static_cast<double>(fifth_) / static_cast<double>(rows_); }

 private:
  LogitHead head_;
  int64_t first_ = 0, fifth_ = 0, rows_ = 0;
};

// What the network saw, with the normalisation undone.
std::string row_picture(const Array& x, size_t row, const ImageTransform& transform) {
  const auto height = static_cast<int>(x.shape[2]), width = static_cast<int>(x.shape[3]);
  Image image = blank_image(height, width, 3);
  const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
  for (size_t channel = 0; channel < 3; ++channel) {
    const float* from = x.values.data() + (row * 3 + channel) * plane;
    for (size_t i = 0; i < plane; ++i) {
      const float value = 255 * (from[i] * transform.deviation[channel] + transform.mean[channel]);
      image.pixels[i * 3 + channel] =
          static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
    }
  }
  return encode_png(image);
}

class LabelMethod : public MethodEvaluator {
 public:
  explicit LabelMethod(const EvaluatedMethod& method)
      : MethodEvaluator(method),
        evaluator_(method.class_names.size(), {.class_names = method.class_names,
                                               .group_names = method.options.facts.shown.names}) {
    if (method.main) top_.emplace(method);
  }

  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const Regions& regions = measured.regions;
    const std::vector<std::string>& names = method_.class_names;
    const torch::Tensor members = host_members(regions);
    const auto row = static_cast<int64_t>(i);
    const bool foreign = std::isinf(rows.y.values[i]);
    const size_t truth = foreign ? names.size() : static_cast<size_t>(rows.y.values[i]);
    const auto predicted = regions.prediction[row][0].item<int64_t>();
    Example example;
    example.name = rows.name(i);
    if (example.name.empty()) example.name = concat("row ", rows.first_row + i);
    example.covered = !foreign && members[row][static_cast<int64_t>(truth)].item<bool>();
    if (method_.options.images) {
      example.png = row_picture(rows.x, i, *method_.options.images);
    }
    example.region =
        LabelExample{foreign ? kForeignName : names[truth], names[static_cast<size_t>(predicted)],
                     member_names(members, row, names), labels_at(measured, row, truth)};
    return example;
  }

 protected:
  void measure_regions(const JudgedRows& rows, const Regions& regions,
                       Packer& packer) const override {
    const torch::Tensor members = host_members(regions);
    packer.add(std::span(reinterpret_cast<const uint8_t*>(members.data_ptr<bool>()),
                         static_cast<size_t>(members.numel())));
    packer.add(host_labels(rows.truth));
    packer.add(host_labels(regions.prediction));
    if (top_) top_->measure(rows.inputs.features, rows.truth, packer);
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t> groups) override {
    const std::vector<uint8_t> members = unpacker.numbers<uint8_t>();
    const std::vector<int64_t> labels = unpacker.numbers<int64_t>();
    const std::vector<int64_t> predicted = unpacker.numbers<int64_t>();
    const std::vector<float> logs = top_ ? top_->take(unpacker) : std::vector<float>();
    evaluator_.add({.members = members,
                    .truth = labels,
                    .groups = groups,
                    .prediction = predicted,
                    .log_probabilities = logs});
  }

  LevelSums sums_at(const Rows& rows, const Regions& regions) const override {
    const torch::Tensor members = host_members(regions);
    const std::vector<int64_t> labels = host_labels(view(rows.y));
    return level_sums({.members = {reinterpret_cast<const uint8_t*>(members.data_ptr<bool>()),
                                   static_cast<size_t>(members.numel())},
                       .truth = labels},
                      method_.class_names.size());
  }

  void finish_regions(MethodResult& result) const override {
    SetEvaluation found = evaluator_.finish();
    if (found.unknown_rows == found.rows) {
      fail("none of the labels of the ", found.rows, " test rows is one of the ", found.classes,
           " classes of this predictor, as ", in_quotes(method_.class_names[0]));
    }
    result.evaluation = std::move(found);
    if (!top_) return;
    result.top1 = top_->top1();
    result.top5 = top_->top5();
  }

 private:
  // The labels of all levels' sets, at most so many and the true one; those that stay longest as α
  // grows first.
  std::vector<LabelAtLevels> labels_at(const MeasuredRegions& measured, int64_t row,
                                       size_t truth) const {
    std::vector<LabelAtLevels> labels;
    std::vector<bool> seen(method_.class_names.size());
    for (size_t level = measured.at_levels.size(); level-- > 0;) {
      const torch::Tensor members = host_members(measured.at_levels[level])[row].contiguous();
      for (size_t c = 0; c < seen.size(); ++c) {
        if (seen[c] || !members.data_ptr<bool>()[c]) continue;
        seen[c] = true;
        labels.push_back({method_.class_names[c], level});
      }
    }
    if (labels.size() <= kMostLabels) return labels;
    const auto is_truth = [&](const LabelAtLevels& label) {
      return truth < seen.size() && label.name == method_.class_names[truth];
    };
    const auto found = std::find_if(labels.begin() + kMostLabels, labels.end(), is_truth);
    if (found != labels.end()) std::swap(labels[kMostLabels - 1], *found);
    labels.resize(kMostLabels);
    return labels;
  }

  SetEvaluator evaluator_;
  std::optional<TopCounter> top_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_label_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<LabelMethod>(method);
}

}  // namespace fcp
