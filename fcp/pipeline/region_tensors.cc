#include "fcp/pipeline/region_tensors.h"

#include <limits>

namespace fcp {

torch::Tensor host_doubles(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kDouble).contiguous();
}

std::span<const double> numbers(const torch::Tensor& tensor) {
  return {tensor.data_ptr<double>(), static_cast<size_t>(tensor.numel())};
}

torch::Tensor round_outward(const torch::Tensor& end, bool down) {
  const torch::Tensor rounded = end.to(torch::kFloat);
  const torch::Tensor limit =
      torch::full_like(rounded, down ? -std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::infinity());
  const torch::Tensor wrong =
      down ? rounded.to(torch::kDouble) > end : rounded.to(torch::kDouble) < end;
  return torch::where(wrong, torch::nextafter(rounded, limit), rounded);
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
