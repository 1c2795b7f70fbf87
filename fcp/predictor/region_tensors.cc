#include "fcp/predictor/region_tensors.h"

#include <cmath>
#include <limits>

#include "fcp/evaluate/measures/set_evaluation.h"

namespace fcp {

torch::Tensor host_doubles(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

std::span<const double> numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

FloatInterval float_interval(double lower, double upper) {
  constexpr float kMost = std::numeric_limits<float>::infinity();
  FloatInterval found{static_cast<float>(lower), static_cast<float>(upper)};
  if (found.lower < lower) found.lower = std::nextafter(found.lower, kMost);
  if (found.upper > upper) found.upper = std::nextafter(found.upper, -kMost);
  return found;
}

FloatEnds float_ends(const torch::Tensor& lower, const torch::Tensor& upper) {
  const torch::Tensor low = host_doubles(lower), high = host_doubles(upper);
  FloatEnds ends{torch::empty(low.sizes(), torch::kFloat),
                 torch::empty(low.sizes(), torch::kFloat)};
  const std::span<const double> from = numbers(low), to = numbers(high);
  float* const first = ends.lower.data_ptr<float>();
  float* const last = ends.upper.data_ptr<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    const FloatInterval one = float_interval(from[i], to[i]);
    first[i] = one.lower;
    last[i] = one.upper;
  }
  return ends;
}

torch::Tensor interval_numbers(const Regions& regions) {
  const torch::Tensor mean = host_doubles(regions.prediction);
  const torch::Tensor low = host_doubles(regions.lower), high = host_doubles(regions.upper);
  torch::Tensor all = torch::empty({mean.size(0), mean.size(1), 3}, torch::kFloat);
  const std::span<const double> middle = numbers(mean), from = numbers(low), to = numbers(high);
  float* out = all.data_ptr<float>();
  for (size_t i = 0; i < middle.size(); ++i) {
    const FloatInterval one = float_interval(from[i], to[i]);
    *out++ = static_cast<float>(middle[i]);
    *out++ = one.lower;
    *out++ = one.upper;
  }
  return all;
}

std::vector<double> region_sizes(const Regions& regions) {
  const auto lengths = [](const torch::Tensor& lower, const torch::Tensor& upper) {
    return torch::where(lower < upper, upper - lower, torch::zeros_like(upper));
  };
  torch::Tensor sizes;
  if (regions.members.defined()) {
    sizes = regions.members.to(torch::kDouble).flatten(1).sum(1);
  } else if (regions.parts.defined()) {
    sizes = lengths(regions.parts.select(3, 0), regions.parts.select(3, 1)).sum(2).mean(1);
  } else if (regions.side != BoundSide::kBoth) {
    sizes = region_lengths(regions).mean(1);
  } else {
    sizes = lengths(regions.lower, regions.upper).mean(1);
  }
  const torch::Tensor plain = host_doubles(sizes);
  return {numbers(plain).begin(), numbers(plain).end()};
}

torch::Tensor host_members(const Regions& regions) {
  return regions.members.to(torch::kCPU, torch::kBool).contiguous();
}

std::vector<int64_t> host_labels(const torch::Tensor& labels) {
  const torch::Tensor known =
      labels.is_floating_point() ? labels.masked_fill(labels.isinf(), kUnknownLabel) : labels;
  const torch::Tensor plain = known.to(torch::kCPU, torch::kLong).flatten().contiguous();
  return {plain.data_ptr<int64_t>(), plain.data_ptr<int64_t>() + plain.numel()};
}

torch::Tensor label_hits(const torch::Tensor& members, const torch::Tensor& truth) {
  const torch::Tensor plain = truth.to(members.device()).reshape({-1, 1});
  const torch::Tensor foreign = plain.isinf();
  const torch::Tensor labels = plain.masked_fill(foreign, 0).to(torch::kLong);
  return members.gather(1, labels).logical_and(foreign.logical_not()).select(1, 0);
}

std::vector<std::string> member_names(const torch::Tensor& members, int64_t row,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> labels;
  const bool* in = members.data_ptr<bool>() + row * members.size(1);
  for (size_t k = 0; k < names.size(); ++k) {
    if (in[k]) labels.push_back(names[k]);
  }
  return labels;
}

}  // namespace fcp
