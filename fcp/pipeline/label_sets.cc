#include "fcp/pipeline/label_sets.h"

namespace fcp {

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
