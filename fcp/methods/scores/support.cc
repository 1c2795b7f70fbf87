#include "fcp/methods/scores/support.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/outputs.h"

namespace fcp {
namespace {

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The float32 number at or beyond the end, seen from inside.
double outward(double end, double towards) {
  const auto nearest = static_cast<float>(end);
  const bool inside = towards < 0 ? nearest > end : nearest < end;
  return inside ? std::nextafter(nearest, static_cast<float>(towards)) : nearest;
}

class Supported : public Score {
 public:
  Supported(std::unique_ptr<Score> inner, const Support& support)
      : inner_(std::move(inner)), support_(support) {}

  int64_t sides() const override { return inner_->sides(); }
  int64_t targets() const override { return inner_->targets(); }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    std::vector<double> scores = inner_->score(features, truth);
    const torch::Tensor y = output_matrix(truth).to(torch::kCPU).contiguous();
    const double* truths = y.data_ptr<double>();
    // Of outputs with radii of their own, the sides of the one that is outside.
    const auto targets = static_cast<size_t>(this->targets());
    const size_t sides = static_cast<size_t>(this->sides()) / targets;
    for (int64_t i = 0; i < y.numel(); ++i) {
      if (support_.holds(truths[i])) continue;
      const auto target = targets > 1 ? static_cast<size_t>(i) : static_cast<size_t>(i / y.size(1));
      const size_t first = target * sides;
      for (size_t side = first; side < first + sides; ++side) {
        if (!std::isnan(scores[side])) scores[side] = kInfinity;
      }
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    return within(inner_->region(features, radius));
  }

  std::vector<Regions> regions(const torch::Tensor& features,
                               std::span<const torch::Tensor> radii) const override {
    std::vector<Regions> found = inner_->regions(features, radii);
    for (Regions& regions : found) regions = within(std::move(regions));
    return found;
  }

 private:
  torch::Tensor lower_end(const torch::Tensor& end) const {
    const torch::Tensor inside = end.clamp_min(support_.lower);
    return support_.integer ? inside.ceil() : inside;
  }
  torch::Tensor upper_end(const torch::Tensor& end) const {
    const torch::Tensor inside = end.clamp_max(support_.upper);
    return support_.integer ? inside.floor() : inside;
  }

  Regions within(Regions regions) const {
    regions.lower = lower_end(regions.lower);
    regions.upper = upper_end(regions.upper);
    if (!regions.parts.defined()) return regions;
    torch::Tensor from = lower_end(regions.parts.select(3, 0));
    torch::Tensor to = upper_end(regions.parts.select(3, 1));
    const torch::Tensor empty = from > to;
    from = from.masked_fill(empty, kInfinity);
    to = to.masked_fill(empty, -kInfinity);
    const torch::Tensor order = std::get<1>(from.sort(/*dim=*/2));  // empty parts go last
    from = from.gather(2, order);
    to = to.gather(2, order);
    regions.parts = torch::stack({from, to}, 3);
    regions.lower = from.amin(2);
    regions.upper = to.amax(2);
    return regions;
  }

  std::unique_ptr<Score> inner_;
  Support support_;
};

}  // namespace

bool Support::holds(double y) const {
  return !(y < lower) && !(y > upper) && (!integer || std::isnan(y) || y == std::floor(y));
}

Support parse_support(const std::string& text, bool integer) {
  Support support{.integer = integer};
  if (text.empty()) return support;
  const size_t colon = text.find(':');
  const auto end_of = [&](const std::string& part, double none) -> std::optional<double> {
    return part.empty() ? std::optional(none) : finite_number(part);
  };
  std::optional<double> lower, upper;
  if (colon != std::string::npos && text.size() > 1) {
    lower = end_of(text.substr(0, colon), -kInfinity);
    upper = end_of(text.substr(colon + 1), kInfinity);
  }
  if (!lower || !upper || !(*lower < *upper)) {
    fail_option("support", "found ", text, ", expected LOWER:UPPER with one or both of them, ",
                "such as 0: or 0:100");
  }
  if (std::isfinite(*lower)) support.lower = outward(*lower, -kInfinity);
  if (std::isfinite(*upper)) support.upper = outward(*upper, kInfinity);
  return support;
}

std::unique_ptr<Score> with_support(std::unique_ptr<Score> score, const Support& support) {
  if (!support.known()) return score;
  return std::make_unique<Supported>(std::move(score), support);
}

}  // namespace fcp
