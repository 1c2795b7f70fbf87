#include "fcp/nn/kernels/relu_mlp/relu_head.h"

#include "fcp/nn/kernels/relu_mlp/backward_reader.h"

namespace fcp {

std::optional<ReluHead> match_relu_head(const Network& head, size_t output) {
  BackwardReader reader(head, head.output_slots()[output]);
  reader.skip_identities();
  const torch::Tensor factors = reader.read_factors();
  std::optional<LinearLayer> last = reader.read_linear();
  if (!last) return std::nullopt;
  if (factors.defined()) {
    if (factors.numel() != 1 && factors.numel() != last->bias.numel()) return std::nullopt;
    last = LinearLayer{last->weight * factors.unsqueeze(1), last->bias * factors};
  }
  reader.skip_identities();
  if (!reader.read_relu()) return std::nullopt;
  reader.skip_identities();
  const std::optional<LinearLayer> first = reader.read_linear();
  if (!first) return std::nullopt;
  reader.skip_identities();
  if (!reader.at_rows_of_features()) return std::nullopt;
  if (first->weight.size(0) != last->weight.size(1)) return std::nullopt;
  return ReluHead{first->weight, first->bias, last->weight, last->bias, reader.flattened()};
}

bool takes_features(const ReluHead& head, const torch::Tensor& features) {
  const int64_t dimensions = features.dim(), width = head.w1.size(1);
  if (dimensions == 2) return features.size(1) == width;
  return head.flattens && dimensions > 2 && features.numel() == features.size(0) * width;
}

bool takes_rows(const ReluHead& head, const torch::Tensor& features, const torch::Tensor& truth) {
  if (!takes_features(head, features) || features.size(0) == 0) return false;
  return truth.dim() > 0 && truth.size(0) == features.size(0) &&
         truth.numel() == features.size(0) * head.w2.size(0);
}

}  // namespace fcp
