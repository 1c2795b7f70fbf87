#include "fcp/nn/ops/checks.h"

#include "fcp/base/error.h"
#include "fcp/nn/ops/shared.h"

namespace fcp {

std::string shape_text(torch::IntArrayRef shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void expect_rank(const torch::Tensor& tensor, int64_t least, int64_t most, const Node& node,
                 const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.dim() < least || tensor.dim() > most) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()),
         ", expected a tensor of rank ", least, least == most ? "" : concat(" to ", most));
  }
}

void expect_floating(const torch::Tensor& tensor, const Node& node, const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (!tensor.is_floating_point()) {
    fail(describe(node), ": ", what, " is of type ", tensor.scalar_type(),
         ", expected floating-point numbers");
  }
}

void expect_type_of(const torch::Tensor& data, const torch::Tensor& tensor, const Node& node,
                    const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.scalar_type() != data.scalar_type()) {
    fail(describe(node), ": ", what, " is of type ", tensor.scalar_type(), ", expected ",
         data.scalar_type(), " as the first input");
  }
}

void expect_vector(const torch::Tensor& tensor, int64_t size, const Node& node, const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  if (tensor.dim() != 1 || tensor.size(0) != size) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()), ", expected [",
         size, "]");
  }
}

void expect_broadcast(const torch::Tensor& tensor, torch::IntArrayRef shape, const Node& node,
                      const char* what) {
  if (!tensor.defined()) fail(describe(node), ": ", what, " is absent");
  const int64_t rank = static_cast<int64_t>(shape.size());
  bool fits = tensor.dim() <= rank;
  for (int64_t i = 1; fits && i <= tensor.dim(); ++i) {
    const int64_t size = tensor.size(tensor.dim() - i);
    fits = size == 1 || size == shape[static_cast<size_t>(rank - i)];
  }
  if (!fits) {
    fail(describe(node), ": ", what, " has shape ", shape_text(tensor.sizes()),
         ", which does not broadcast to ", shape_text(shape));
  }
}

void check_sample(std::vector<int64_t> shape, const Node& node) {
  if (!shape.empty()) shape[0] = 1;
  checked_elements(shape, node);
}

}  // namespace fcp
