// Intervals on a stream of rows; see method_evaluator.h.

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/images/heat_map.h"
#include "fcp/data/images/image.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/evaluate/measures/set_evaluation.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/interval.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"
#include "fcp/predictor/segmentation_task.h"

namespace fcp {
namespace {

constexpr size_t kMostOutputs = 12;  // outputs of an example

// Whether the interval of an output, or a part of the union in its place, holds the truth.
bool holds(const Regions& regions, int64_t row, int64_t output, double truth) {
  const auto in = [truth](const torch::Tensor& lower, const torch::Tensor& upper) {
    return Interval{lower.item<double>(), upper.item<double>()}.contains(truth);
  };
  if (!regions.parts.defined()) return in(regions.lower[row][output], regions.upper[row][output]);
  const torch::Tensor parts = regions.parts[row][output];  // [parts, 2]
  for (int64_t part = 0; part < parts.size(0); ++part) {
    if (in(parts[part][0], parts[part][1])) return true;
  }
  return false;
}

IntervalExample interval_example(const MeasuredRegions& measured, int64_t row, int64_t output,
                                 double truth) {
  const auto at = [&](const torch::Tensor& ends) { return ends[row][output].item<double>(); };
  const Regions& regions = measured.regions;
  IntervalExample example{at(regions.prediction), at(regions.lower), at(regions.upper), truth};
  for (const Regions& level : measured.at_levels) {
    example.at_levels.push_back(
        {{at(level.lower), at(level.upper)}, holds(level, row, output, truth)});
  }
  return example;
}

class IntervalMethod : public MethodEvaluator {
 public:
  using MethodEvaluator::MethodEvaluator;

  // The first output stands for the row.
  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    const size_t outputs = rows.y.row_size();
    Example example;
    example.name = rows.name(i);
    if (example.name.empty()) example.name = concat("row ", rows.first_row + i);
    for (size_t k = 0; k < std::min(outputs, kMostOutputs); ++k) {
      const size_t at = i * outputs + k;
      const double truth = rows.y.exact.empty() ? rows.y.values[at] : rows.y.exact[at];
      const auto output = static_cast<int64_t>(k);
      IntervalExample one = interval_example(measured, row, output, truth);
      if (k > 0) {
        example.others.push_back(std::move(one));
        continue;
      }
      example.covered = holds(measured.regions, row, output, truth);
      example.region = std::move(one);
    }
    return example;
  }

  std::optional<double> length(const Regions& regions, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    if (regions.side != BoundSide::kBoth) return region_lengths(regions)[row][0].item<double>();
    return regions.upper[row][0].item<double>() - regions.lower[row][0].item<double>();
  }

 protected:
  void measure_regions(const JudgedRows& rows, const Regions& regions,
                       Packer& packer) const override {
    const HostIntervals host(rows.truth, regions);
    for (const torch::Tensor& part :
         {host.lower, host.upper, host.truth, host_doubles(regions.prediction)}) {
      packer.add(numbers(part));
    }
    packer.add(host.outputs());
    packer.add(host.batch().parts);
    packer.add(uint64_t{host.batch().part_count});
    packer.add(host.inside);
    packer.add(host.batch().volumes);
  }

  LevelSums sums_at(const Rows& rows, const Regions& regions) const override {
    const HostIntervals host(view(rows.y), regions);
    return level_sums(host.batch(), host.outputs(), targets() > 1);
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t> groups) override {
    const auto lower = unpacker.numbers<double>(), upper = unpacker.numbers<double>(),
               truth = unpacker.numbers<double>(), prediction = unpacker.numbers<double>();
    const size_t outputs = unpacker.number();
    const auto parts = unpacker.numbers<double>();
    const size_t part_count = unpacker.number();
    const auto inside = unpacker.numbers<uint8_t>();
    const auto volumes = unpacker.numbers<double>();
    if (!evaluator_) {
      evaluator_.emplace(
          outputs, IntervalEvaluationOptions{.level = method_.options.level,
                                             .side = method_.artifact().method.score.side,
                                             .each = targets() > 1,
                                             .group_names = method_.options.facts.shown.names});
    }
    evaluator_->add({.lower = lower,
                     .upper = upper,
                     .truth = truth,
                     .groups = groups,
                     .parts = parts,
                     .part_count = part_count,
                     .prediction = prediction,
                     .inside = inside,
                     .volumes = volumes,
                     .side = method_.artifact().method.score.side});
  }

  void finish_regions(MethodResult& result) const override {
    result.evaluation = evaluator_->finish();
  }

  bool curve_of_scores() const override { return true; }

 private:
  std::optional<IntervalEvaluator> evaluator_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_interval_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<IntervalMethod>(method);
}

// Sets of labels on a stream of rows; see method_evaluator.h.

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

// Bands, or sets of labels, of whole images on a stream of them; see method_evaluator.h.

template <typename Archive>
void visit_fields(Archive& archive, MeanSums& sums) {
  archive(sums.sum, sums.count);
}

template <typename Archive>
void visit_fields(Archive& archive, ImageFigures& figures) {
  archive(figures.pixels, figures.pixels_in, figures.values_in, figures.weighted_length,
          figures.boundary, figures.inside, figures.boundary_uncertainty,
          figures.inside_uncertainty);
}

namespace {

// `y` is the image's row: labels of pixels, or the target of bands.
ImageFigures image_figures(const SegmentImage& image, std::span<const float> y,
                           const Regions& regions, const SegmentTask& task) {
  const std::vector<uint8_t> boundary =
      boundary_pixels(image.labels.pixels, static_cast<size_t>(image.labels.height),
                      static_cast<size_t>(image.labels.width));
  const auto channels = static_cast<size_t>(task.channels());
  if (regions.members.defined()) {
    const torch::Tensor members = host_members(regions);
    const std::vector<int64_t> labels(y.begin(), y.end());
    const std::span<const bool> in(members.data_ptr<bool>(), static_cast<size_t>(members.numel()));
    return set_figures({.members = in, .labels = labels, .boundary = boundary}, channels);
  }
  const torch::Tensor lower = host_doubles(regions.lower), upper = host_doubles(regions.upper);
  const std::vector<double> truth(y.begin(), y.end());
  const std::vector<float> uncertainty = pixel_uncertainty(regions, task);
  return band_figures({.lower = numbers(lower),
                       .upper = numbers(upper),
                       .truth = truth,
                       .weights = image.weights,
                       .boundary = boundary,
                       .uncertainty = uncertainty},
                      channels);
}

class PixelMethod : public MethodEvaluator {
 public:
  explicit PixelMethod(const EvaluatedMethod& method)
      : MethodEvaluator(method),
        task_(*method.source.segmentation()),
        evaluator_(method.artifact().method.score.pixels,
                   method.artifact().method.score.traits().labels) {}

  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const SegmentImage& image = *rows.images.at(i);
    const Regions own = region_of_row(measured.regions, i);
    const ImageFigures figures = image_figures(image, rows.y.row(i), own, task_);
    const auto coloured = [&](const Image& classes) {
      return encode_png(colour_labels(classes, method_.class_names));
    };
    PixelExample pixels{figures.pixel_share(), static_cast<size_t>(image.image.height),
                        static_cast<size_t>(image.image.width), pixel_uncertainty(own, task_)};
    pixels.truth = coloured(image.labels);
    pixels.prediction = coloured(predicted_classes(image.image, own, task_));
    pixels.missed = encode_png(mark_pixels(image.image, missed_pixels(own, rows.y.row(i), task_)));
    return {.name = image.name,
            .png = encode_png(image.image),
            .covered = evaluator_.covers(figures),
            .region = std::move(pixels)};
  }

 protected:
  void measure_regions(const JudgedRows& rows, const Regions& regions,
                       Packer& packer) const override {
    for (size_t i = 0; i < rows.count(); ++i) {
      const SegmentImage& image = *rows.rows.images.at(i);
      packer(image.name,
             image_figures(image, rows.rows.y.row(i), region_of_row(regions, i), task_));
    }
    packer(std::string());  // no image has this name: the end
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t>) override {
    for (std::string name; !(name = unpacker.text()).empty();) {
      ImageFigures figures;
      unpacker(figures);
      evaluator_.add(figures);
      if (method_.options.on_image) {
        method_.options.on_image(
            {name, method_.artifact().method.score.name(), evaluator_.covers(figures), figures});
      }
    }
  }

  void finish_regions(MethodResult& result) const override {
    result.evaluation = evaluator_.finish();
  }

  bool has_curve() const override { return false; }

 private:
  const SegmentTask& task_;
  PixelEvaluator evaluator_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_pixel_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<PixelMethod>(method);
}

}  // namespace fcp
