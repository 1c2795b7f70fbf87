#include "fcp/methods/scores/cqr.h"

#include <limits>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

// A low and a high quantile per row, the lower one first; NaN where either is.
struct QuantileColumns {
  Column<float> low, high;

  std::pair<double, double> operator[](int64_t row) const {
    const double a = low[row], b = high[row];
    if (a <= b) return {a, b};
    if (b < a) return {b, a};
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
};

// None where there are several numbers per row, or elsewhere than on the host.
std::optional<QuantileColumns> quantile_columns(const Tensors& outputs,
                                                const QuantileOutputs& which) {
  const auto low = column_of<float>(outputs[which.low]);
  const auto high = column_of<float>(outputs[which.high]);
  if (!low || !high || outputs[which.low].size(0) != outputs[which.high].size(0)) return {};
  return QuantileColumns{*low, *high};
}

class Cqr : public Score {
 public:
  Cqr(std::shared_ptr<const Network> head, const QuantileOutputs& outputs, bool asymmetric)
      : head_(std::move(head)), outputs_(outputs), asymmetric_(asymmetric) {}

  int64_t sides() const override { return asymmetric_ ? 2 : 1; }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const Tensors outputs = run_apart(*head_, {features});
    const auto columns = quantile_columns(outputs, outputs_);
    const auto answers = column_of<float>(truth);
    if (columns && answers && truth.size(0) == outputs[outputs_.low].size(0)) {
      return column_scores(*columns, *answers, truth.size(0));
    }
    const Quantiles quantiles = predict(outputs);
    const torch::Tensor y = truth_matrix(truth, quantiles.low);
    const torch::Tensor below = sums_up(quantiles.low, -y).amax(1);   // [N]
    const torch::Tensor above = sums_up(y, -quantiles.high).amax(1);  // [N]
    return plain_scores(asymmetric_ ? torch::stack({below, above}, 1)
                                    : torch::maximum(below, above));
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const Tensors outputs = run_apart(*head_, {features});
    check_radii(radius, features.size(0), sides());
    const auto columns = quantile_columns(outputs, outputs_);
    if (columns && outputs[outputs_.low].size(0) == radius.size(0)) {
      return column_regions(*columns, radius.to(torch::kCPU, torch::kDouble));
    }
    const Quantiles quantiles = predict(outputs);
    const torch::Tensor radii = radius.to(quantiles.low.device(), torch::kDouble);
    return inward_regions((quantiles.low + quantiles.high) / 2, quantiles.low, quantiles.high,
                          radii.narrow(1, 0, 1), radii.narrow(1, sides() - 1, 1));
  }

 private:
  std::vector<double> column_scores(const QuantileColumns& quantiles, const Column<float>& answers,
                                    int64_t rows) const {
    std::vector<double> scores(static_cast<size_t>(rows * sides()));
    double* out = scores.data();
    for (int64_t row = 0; row < rows; ++row) {
      const auto [low, high] = quantiles[row];
      const double below = sum_up(low, -answers[row]), above = sum_up(answers[row], -high);
      if (asymmetric_) *out++ = below;
      *out++ = !asymmetric_ && below > above ? below : above;
    }
    return scores;
  }

  Regions column_regions(const QuantileColumns& quantiles, const torch::Tensor& radii) const {
    const int64_t rows = radii.size(0), last = (sides() - 1) * radii.stride(1);
    const int64_t step = radii.stride(0);
    const double* radius = radii.data_ptr<double>();
    const RegionColumns found(rows);
    for (int64_t row = 0; row < rows; ++row, radius += step) {
      const auto [low, high] = quantiles[row];
      found.prediction[row] = (low + high) / 2;
      const Interval interval = inward_interval(low, high, radius[0], radius[last]);
      found.lower[row] = interval.lower;
      found.upper[row] = interval.upper;
    }
    return found.regions;
  }

  Quantiles predict(const Tensors& outputs) const {
    const auto [low, high] = quantiles_of(outputs, outputs_);
    return {torch::minimum(low, high), torch::maximum(low, high)};
  }

  std::shared_ptr<const Network> head_;
  QuantileOutputs outputs_;
  bool asymmetric_;
};

}  // namespace

QuantileOutputs quantile_outputs(const Network& head, const std::string& low,
                                 const std::string& high) {
  if (!low.empty() || !high.empty()) {
    if (low.empty() || high.empty() || low == high) {
      fail("quantiles need two outputs of the network, low and high; found '", low, "' and '", high,
           "'");
    }
    return {output_index(head, low), output_index(head, high)};
  }
  std::vector<size_t> own;  // not of heads on features
  for (size_t i = 0; i < head.outputs().size(); ++i) {
    if (!is_head_output(head.outputs()[i].name)) own.push_back(i);
  }
  if (own.size() != 2) {
    fail(
        "quantiles need a network with two outputs, low and high, as `fcp train --loss quantile` "
        "makes; this one has ",
        own.size(), ": name two as low and high");
  }
  return {own[0], own[1]};
}

Quantiles quantiles_of(const Tensors& outputs, const QuantileOutputs& which) {
  const Quantiles quantiles{output_matrix(outputs[which.low]), output_matrix(outputs[which.high])};
  if (quantiles.low.size(1) != quantiles.high.size(1)) {
    fail("the low quantile answers ", quantiles.low.size(1), " numbers per row, the high one ",
         quantiles.high.size(1), "; expected as many");
  }
  return quantiles;
}

std::unique_ptr<Score> make_score(const CqrOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  const QuantileOutputs outputs = quantile_outputs(*head, options.low, options.high);
  const bool two_sided = options.asymmetric || shared.side != BoundSide::kBoth;
  return one_end_of(std::make_unique<Cqr>(std::move(head), outputs, two_sided), shared.side);
}

}  // namespace fcp
