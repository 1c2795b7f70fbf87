#include "fcp/methods/scores/linearized.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/kernels/relu_mlp/affine_rows.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

class Linearized : public Score {
 public:
  Linearized(const LinearizedOptions& options, std::shared_ptr<const Network> head, size_t output)
      : head_(std::move(head)),
        output_(output),
        norm_(options.norm),
        floor_(options.floor * options.slope / 2) {
    check_differentiable(*head_);
  }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor y = truth_matrix(truth, tangent.value);
    return plain_scores(spread_scores(distances_up(y, tangent.value), tangent.slope).amax(1));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor column = radius_column(radius, tangent.value);
    const torch::Tensor margin = spread_margins(tangent.slope, column);
    return inward_regions(tangent.value, tangent.value, tangent.value, margin, margin);
  }

  EndPairs ends(const torch::Tensor& features) const {
    const Tangent tangent = tangent_at(features);
    const torch::Tensor value = plain_matrix(tangent.value);
    return {value, value, value, plain_matrix(tangent.slope)};
  }

 private:
  struct Tangent {
    torch::Tensor value;  // μ [N, K]
    torch::Tensor slope;  // L [N, K]
  };

  Tangent tangent_at(const torch::Tensor& features) const {
    torch::AutoGradMode with_gradients(true);
    const torch::Tensor v = features.to(head_->device()).detach().requires_grad_();
    const torch::Tensor output = run_apart(*head_, {v})[output_];
    const torch::Tensor flat = output.reshape({output.size(0), -1});
    Tensors slopes;
    for (int64_t k = 0; k < flat.size(1); ++k) {
      const torch::Tensor gradient = torch::autograd::grad({flat.select(1, k).sum()}, {v}, {},
                                                           /*retain_graph=*/true)[0];
      slopes.push_back(dual_norm(gradient.to(torch::kDouble), norm_) + floor_);
    }
    return {output_matrix(output.detach()), torch::stack(slopes, 1)};
  }

  std::shared_ptr<const Network> head_;
  size_t output_;
  Norm norm_;
  double floor_;
};

}  // namespace

std::unique_ptr<Score> make_score(const LinearizedOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, shared.output);
  if (shared.side != BoundSide::kBoth) {
    const auto tangents = std::make_shared<const Linearized>(options, std::move(head), output);
    const auto read = [tangents](const torch::Tensor& features) {
      return tangents->ends(features);
    };
    return make_end_score(read, shared.side);
  }
  std::unique_ptr<Score> general = std::make_unique<Linearized>(options, head, output);
  return with_relu_linearized(options, *head, output, std::move(general));
}

namespace {

constexpr size_t kTangentBlock = 48;     // rows whose hidden units stay in the first cache
constexpr size_t kTangentThread = 1024;  // below, a thread costs more than it does

// Σ f(|g|) of a gradient of `width` numbers, a multiple of kLanes. Eight sums take turns, because
// each has to wait for its last addition.
template <typename Function>
double sum_of(const float* gradient, size_t width, const Function& f) {
  constexpr size_t kTurns = 8;
  double parts[kTurns] = {};
  for (size_t i = 0; i < width; i += kTurns) {
    for (size_t k = 0; k < kTurns; ++k) {
      parts[k] += f(std::abs(static_cast<double>(gradient[i + k])));
    }
  }
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
         ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

// The dual norm of a gradient.
double gradient_norm(const float* gradient, size_t width, Norm norm) {
  if (norm == Norm::kInf) return sum_of(gradient, width, [](double size) { return size; });
  float most = 0;
  for (size_t i = 0; i < width; ++i) most = std::max(most, std::abs(gradient[i]));
  const auto scale = static_cast<double>(most);  // no square overflows or vanishes
  if (norm == Norm::kOne || most == 0) return scale;
  const auto square = [scale](double size) { return (size / scale) * (size / scale); };
  return std::sqrt(sum_of(gradient, width, square)) * scale;
}

// The tangents of a block of rows, K of each.
struct Tangents {
  size_t rows = 0;
  std::vector<double> value{};  // μ
  std::vector<double> slope{};  // L
};

class ReluLinearized : public Score {
 public:
  ReluLinearized(const LinearizedOptions& options, const ReluHead& head,
                 std::unique_ptr<Score> general)
      : head_(head),
        rows_(make_relu_rows(head)),
        second_(make_affine_rows(head.w2, head.b2)),
        back_(make_affine_rows(head.w1.t().contiguous(), torch::zeros({head.w1.size(1)}))),
        norm_(options.norm),
        floor_(options.floor * options.slope / 2),
        general_(std::move(general)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if (!takes_rows(head_, features, truth)) return general_->score(features, truth);
    const torch::Tensor y = truth.to(torch::kCPU, torch::kDouble).contiguous();
    const double* wanted = y.data_ptr<double>();
    std::vector<double> scores(static_cast<size_t>(features.size(0)));
    for_blocks(features, [&](size_t first, const Tangents& tangents) {
      for (size_t i = 0; i < tangents.rows; ++i) {
        scores[first + i] = row_score(tangents, i, wanted + (first + i) * rows_.outputs);
      }
    });
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if (!takes(features)) return general_->region(features, radius);
    check_radii(radius, features.size(0), 1);
    const torch::Tensor radii = radius.to(torch::kCPU, torch::kDouble).contiguous();
    const auto outputs = static_cast<int64_t>(rows_.outputs);
    const torch::Tensor ends = torch::empty({3, features.size(0), outputs}, torch::kDouble);
    const Regions regions{ends[0], ends[1], ends[2], {}};
    const double* const wanted = radii.data_ptr<double>();
    double* const prediction = regions.prediction.data_ptr<double>();
    double* const lower = regions.lower.data_ptr<double>();
    double* const upper = regions.upper.data_ptr<double>();
    for_blocks(features, [&](size_t first, const Tangents& tangents) {
      for (size_t i = 0; i < tangents.value.size(); ++i) {
        const size_t at = first * rows_.outputs + i;
        const double center = tangents.value[i];
        const double margin = spread_margin(tangents.slope[i], wanted[first + i / rows_.outputs]);
        const Interval interval = inward_interval(center, center, margin, margin);
        prediction[at] = center;
        lower[at] = interval.lower;
        upper[at] = interval.upper;
      }
    });
    return regions;
  }

 private:
  bool takes(const torch::Tensor& features) const {
    return takes_features(head_, features) && features.size(0) > 0;
  }

  // 0 where y_k = μ_k, whatever the slope; NaN where anything is.
  double row_score(const Tangents& tangents, size_t row, const double* truth) const {
    double most = 0;
    for (size_t k = 0; k < rows_.outputs; ++k) {
      const size_t i = row * rows_.outputs + k;
      const double own = spread_score(distance_up(truth[k], tangents.value[i]), tangents.slope[i]);
      if (!(own <= most)) most = own;
      if (std::isnan(own)) break;
    }
    return most;
  }

  // Shows the tangents of the rows, block by block, to `work`.
  template <typename Work>
  void for_blocks(const torch::Tensor& features, const Work& work) const {
    const torch::Tensor v =
        features.detach().to(torch::kCPU, torch::kFloat).flatten(1).contiguous();
    const float* from = v.data_ptr<float>();
    parallel_rows(static_cast<size_t>(v.size(0)), kTangentThread,
                  static_cast<size_t>(at::get_num_threads()), [&](size_t begin, size_t end) {
                    Room room(*this, std::min(kTangentBlock, end - begin));
                    for (size_t first = begin; first < end; first += kTangentBlock) {
                      const size_t count = std::min(kTangentBlock, end - first);
                      find_tangents(from + first * rows_.features, count, room);
                      work(first, room.tangents);
                    }
                  });
  }

  // What a block needs, from block to block.
  struct Room {
    Room(const ReluLinearized& score, size_t rows)
        : hidden(rows * score.rows_.hidden_width),
          active(rows * score.rows_.hidden_width),
          values(rows * score.second_.width),
          gradients(rows * score.back_.width) {}
    std::vector<float> hidden, active, values, gradients;
    Tangents tangents;
  };

  void find_tangents(const float* features, size_t rows, Room& room) const {
    const size_t width = rows_.hidden_width, outputs = rows_.outputs;
    hidden_rows(rows_, features, rows, room.hidden.data());
    for (size_t i = 0; i < rows * width; ++i) {
      room.active[i] = room.hidden[i] <= 0 ? 0.0f : room.hidden[i];  // NaN stays
    }
    affine_rows(second_, room.active.data(), width, rows, Activation::kNone, room.values.data());
    room.tangents.rows = rows;
    room.tangents.value.resize(rows * outputs);
    room.tangents.slope.resize(rows * outputs);
    for (size_t k = 0; k < outputs; ++k) {
      const float* const weights = rows_.w2.data() + k * width;
      for (size_t row = 0; row < rows; ++row) {
        const float* const p = room.hidden.data() + row * width;
        float* const on = room.active.data() + row * width;
        for (size_t i = 0; i < width; ++i) on[i] = p[i] > 0 ? weights[i] : 0.0f;
      }
      affine_rows(back_, room.active.data(), width, rows, Activation::kNone, room.gradients.data());
      for (size_t row = 0; row < rows; ++row) {
        const size_t at = row * outputs + k;
        room.tangents.value[at] = static_cast<double>(room.values[row * second_.width + k]);
        room.tangents.slope[at] =
            gradient_norm(room.gradients.data() + row * back_.width, back_.width, norm_) + floor_;
      }
    }
  }

  ReluHead head_;
  ReluRows rows_;
  AffineRows second_;  // W₂ and b₂
  AffineRows back_;    // W₁ᵀ
  Norm norm_;
  double floor_;
  std::unique_ptr<Score> general_;
};

}  // namespace

std::unique_ptr<Score> with_relu_linearized(const LinearizedOptions& options, const Network& head,
                                            size_t output, std::unique_ptr<Score> general) {
  if (!head.device().is_cpu()) return general;
  const std::optional<ReluHead> matched = match_relu_head(head, output);
  if (!matched) return general;
  return std::make_unique<ReluLinearized>(options, *matched, std::move(general));
}

}  // namespace fcp
