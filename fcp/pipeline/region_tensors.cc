#include "fcp/pipeline/region_tensors.h"

#include <limits>

namespace fcp {

torch::Tensor host_doubles(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

std::span<const double> numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

FloatEnds float_ends(const torch::Tensor& lower, const torch::Tensor& upper) {
  const auto inside = [](const torch::Tensor& end, bool up) {
    const torch::Tensor nearest = end.to(torch::kFloat);
    const torch::Tensor limit =
        torch::full_like(nearest, up ? std::numeric_limits<float>::infinity()
                                     : -std::numeric_limits<float>::infinity());
    const torch::Tensor outside =
        up ? nearest.to(torch::kDouble) < end : nearest.to(torch::kDouble) > end;
    return torch::where(outside, torch::nextafter(nearest, limit), nearest);
  };
  const FloatEnds ends{inside(lower, true), inside(upper, false)};
  // No float lies between them: the nearest ones say where the interval is.
  const torch::Tensor between = (ends.lower > ends.upper).logical_and(lower <= upper);
  return {torch::where(between, lower.to(torch::kFloat), ends.lower),
          torch::where(between, upper.to(torch::kFloat), ends.upper)};
}

torch::Tensor host_members(const Regions& regions) {
  return regions.members.to(torch::kCPU, torch::kBool).contiguous();
}

std::vector<int64_t> host_labels(const torch::Tensor& labels) {
  const torch::Tensor plain = labels.to(torch::kCPU, torch::kLong).flatten().contiguous();
  return {plain.data_ptr<int64_t>(), plain.data_ptr<int64_t>() + plain.numel()};
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
