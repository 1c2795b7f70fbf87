#include "fcp/nn/runtime/tensor_memory.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {
namespace {

double bytes_in(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0;
}

// Of this thread: the memory of the innermost network that runs, and what loops hold.
thread_local const TensorMemory* innermost = nullptr;
thread_local double held_bytes = 0;

double megabytes(double bytes) { return std::max(1.0, std::ceil(bytes / (1 << 20))); }

double broadcast_elements(const Tensors& inputs) {
  std::vector<double> sizes;
  for (const torch::Tensor& input : inputs) {
    if (!input.defined()) continue;
    const auto rank = static_cast<size_t>(input.dim());
    if (rank > sizes.size()) sizes.insert(sizes.begin(), rank - sizes.size(), 1);
    for (size_t i = 0; i < rank; ++i) {
      double& size = sizes[sizes.size() - rank + i];
      size = std::max(size, static_cast<double>(input.size(static_cast<int64_t>(i))));
    }
  }
  double elements = 1;
  for (const double size : sizes) elements *= size;
  return elements;
}

// The numbers of input `at`, such as the sizes that it asks for; none where it is not given or is
// too long to be them.
std::vector<double> numbers_in(const Tensors& inputs, size_t at) {
  if (inputs.size() <= at || !inputs[at].defined() || inputs[at].numel() > 64) return {};
  const torch::Tensor plain =
      inputs[at].detach().to(torch::kCPU, torch::kDouble).flatten().contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

// Their product, each at least 1; 0 where there are none.
double product_of(const std::vector<double>& numbers) {
  double product = numbers.empty() ? 0 : 1;
  for (const double number : numbers) product *= std::max(1.0, number);
  return product;
}

double length_of(const torch::Tensor& tensor, int64_t axis) {
  return static_cast<double>(tensor.size(axis));
}

double product_elements(const torch::Tensor& a, const torch::Tensor& b, bool transpose_b) {
  if (a.dim() < 1 || b.dim() < 1) return 0;
  const double inner = std::max(1.0, length_of(a, -1));
  const double columns = b.dim() == 1 ? 1 : length_of(b, transpose_b && b.dim() == 2 ? 0 : -1);
  const double one_stack = static_cast<double>(a.numel()) / inner * columns;
  // Stacks of matrices are stretched against each other.
  double repeated = 1;
  for (int64_t i = 3; i <= b.dim(); ++i) {
    if (i > a.dim() || a.size(-i) == 1) repeated *= length_of(b, -i);
  }
  return one_stack * repeated;
}

int64_t integer_in(const Node& node, const std::string& name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value =
      found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

double list_value(const Node& node, const std::string& name, size_t at, double otherwise) {
  const auto found = node.attributes.find(name);
  const auto* values =
      found == node.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  return values == nullptr || values->size() <= at ? otherwise : static_cast<double>((*values)[at]);
}

// libtorch multiplies factor by factor and keeps the axes that are still needed. The largest of
// these products.
double einsum_elements(const Node& node, const Tensors& inputs) {
  const auto found = node.attributes.find("equation");
  const auto* equation =
      found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (equation == nullptr) return 0;
  std::vector<std::string> parts(1);  // letters of the factors, '.' for the axes of "..."
  const size_t arrow = equation->find("->");
  for (const char letter : equation->substr(0, arrow)) {
    if (letter == ',') parts.emplace_back();
    const bool named = std::isalpha(static_cast<unsigned char>(letter)) != 0;
    if (named || (letter == '.' && !parts.back().ends_with('.'))) parts.back() += letter;
  }
  if (parts.size() != inputs.size()) return 0;
  std::string output;  // what is not in an output without an arrow occurs twice
  if (arrow != std::string::npos) output = equation->substr(arrow + 2);
  if (arrow == std::string::npos) {
    for (const char letter : *equation) {
      if (letter == '.' || std::count(equation->begin(), equation->end(), letter) == 1) {
        output += letter;
      }
    }
  }
  std::map<char, double> lengths;
  std::string met;
  double most = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!inputs[i].defined()) return 0;
    const auto letters = static_cast<int64_t>(parts[i].size());
    int64_t axis = 0;
    for (const char letter : parts[i]) {
      const int64_t axes = letter == '.' ? inputs[i].dim() - letters + 1 : 1;
      double length = 1;
      for (int64_t k = 0; k < axes; ++k, ++axis) {
        if (axis >= inputs[i].dim()) return 0;  // the operator says what is wrong
        length *= length_of(inputs[i], axis);
      }
      lengths[letter] = std::max(lengths[letter], length);
      if (met.find(letter) == std::string::npos) met += letter;
    }
    std::string later = output;
    for (size_t k = i + 1; k < parts.size(); ++k) later += parts[k];
    double elements = 1;
    for (const char letter : met) {
      if (later.find(letter) != std::string::npos) elements *= lengths[letter];
    }
    if (i > 0) most = std::max(most, elements);
  }
  return most;
}

// Weights [M, C / groups, k…] over x [N, C, …]; transposed, [C, M / groups, k…].
double convolution_elements(const Node& node, const torch::Tensor& x, const torch::Tensor& w,
                            bool transposed) {
  if (!x.defined() || !w.defined() || x.dim() < 3 || w.dim() != x.dim()) return 0;
  const auto groups = static_cast<double>(integer_in(node, "group", 1));
  double elements = length_of(x, 0) * (transposed ? length_of(w, 1) * groups : length_of(w, 0));
  const auto axes = static_cast<size_t>(x.dim() - 2);
  for (size_t i = 0; i < axes; ++i) {
    const double in = length_of(x, static_cast<int64_t>(i) + 2);
    const double stride = std::max(1.0, list_value(node, "strides", i, 1));
    const double reach =
        list_value(node, "dilations", i, 1) * (length_of(w, static_cast<int64_t>(i) + 2) - 1);
    const double pads = list_value(node, "pads", i, 0) + list_value(node, "pads", axes + i, 0);
    const double added = list_value(node, "output_padding", i, 0);
    elements *= std::max(1.0, transposed ? (in - 1) * stride + reach + 1 + added - pads
                                         : std::floor((in + pads - reach - 1) / stride) + 1);
  }
  return elements;
}

double gathered_elements(const Node& node, const Tensors& inputs) {
  if (inputs.size() < 2 || !inputs[1].defined() || inputs[0].dim() == 0) return 0;
  const torch::Tensor &data = inputs[0], &index = inputs[1];
  const auto numbers = static_cast<double>(data.numel()),
             chosen = static_cast<double>(index.numel());
  if (node.op == "GatherElements") return chosen;
  if (node.op == "Gather") {
    const int64_t axis = integer_in(node, "axis", 0);
    if (axis < -data.dim() || axis >= data.dim()) return 0;
    return numbers / std::max(1.0, length_of(data, axis)) * chosen;
  }
  if (index.dim() == 0) return 0;
  double slice = 1;
  const int64_t first = integer_in(node, "batch_dims", 0) + index.size(-1);
  for (int64_t axis = std::max<int64_t>(0, first); axis < data.dim(); ++axis) {
    slice *= length_of(data, axis);
  }
  return chosen / std::max(1.0, length_of(index, -1)) * slice;
}

double padded_elements(const Node& node, const torch::Tensor& data, const Tensors& inputs) {
  const std::vector<double> pads = numbers_in(inputs, 1), axes = numbers_in(inputs, 3);
  const auto rank = static_cast<size_t>(data.dim());
  double elements = static_cast<double>(data.numel());
  const size_t count = axes.empty() ? rank : axes.size();
  for (size_t i = 0; i < count; ++i) {
    const auto axis = axes.empty() ? static_cast<int64_t>(i) : static_cast<int64_t>(axes[i]);
    if (axis < -data.dim() || axis >= data.dim()) return 0;
    const double length = length_of(data, axis);
    const double more = pads.size() == 2 * count ? pads[i] + pads[count + i]
                                                 : list_value(node, "pads", i, 0) +
                                                       list_value(node, "pads", rank + i, 0);
    if (length > 0) elements *= std::max(1.0, (length + more) / length);
  }
  return elements;
}

// Of Resize and Upsample: sizes, or scales, which are the last input or an attribute.
double resized_elements(const Node& node, const Tensors& inputs) {
  const std::vector<double> sizes = numbers_in(inputs, 3);
  double elements = static_cast<double>(inputs[0].numel());
  if (!sizes.empty()) {
    // Sizes of some axes are at most the product with all of the input's numbers.
    return sizes.size() == static_cast<size_t>(inputs[0].dim()) ? product_of(sizes) : 0;
  }
  std::vector<double> scales = numbers_in(inputs, node.op == "Resize" && inputs.size() > 2 ? 2 : 1);
  const auto found = node.attributes.find("scales");
  if (const auto* list = found == node.attributes.end()
                             ? nullptr
                             : std::get_if<std::vector<float>>(&found->second)) {
    scales.assign(list->begin(), list->end());
  }
  for (const double scale : scales) elements *= scale;
  return elements;
}

double range_elements(const Tensors& inputs) {
  const std::vector<double> first = numbers_in(inputs, 0), last = numbers_in(inputs, 1),
                            step = numbers_in(inputs, 2);
  if (first.size() != 1 || last.size() != 1 || step.size() != 1 || step[0] == 0) return 0;
  return std::max(0.0, (last[0] - first[0]) / step[0]);
}

// Elements of the first output, of the size of the first input's elements.
double expected_elements(const Node& node, const Tensors& inputs) {
  const std::string& op = node.op;
  const auto given = [&](size_t at) { return inputs.size() > at && inputs[at].defined(); };
  if (op == "Gemm" && given(1)) {
    return product_elements(inputs[0], inputs[1], integer_in(node, "transB", 0) != 0);
  }
  if (op == "MatMul" && given(1)) return product_elements(inputs[0], inputs[1], false);
  if (op == "MatMulInteger" && given(1)) return 4 * product_elements(inputs[0], inputs[1], false);
  if (op == "QLinearMatMul" && given(3)) return product_elements(inputs[0], inputs[3], false);
  if (op == "Einsum") return einsum_elements(node, inputs);
  if (op == "Conv" && given(1)) return convolution_elements(node, inputs[0], inputs[1], false);
  if (op == "ConvInteger" && given(1)) {
    return 4 * convolution_elements(node, inputs[0], inputs[1], false);
  }
  if (op == "QLinearConv" && given(3))
    return convolution_elements(node, inputs[0], inputs[3], false);
  if (op == "ConvTranspose" && given(1)) {
    return convolution_elements(node, inputs[0], inputs[1], true);
  }
  if (op.starts_with("Gather")) return gathered_elements(node, inputs);
  if (op == "Pad") return padded_elements(node, inputs[0], inputs);
  if (op == "Resize" || op == "Upsample") return resized_elements(node, inputs);
  if (op == "Range") return range_elements(inputs);
  if (op == "NonZero") {
    return 8 * static_cast<double>(inputs[0].dim() * inputs[0].numel()) /
           static_cast<double>(inputs[0].element_size());
  }
  if (op == "GridSample" && given(1) && inputs[0].dim() > 1) {
    return length_of(inputs[0], 1) * static_cast<double>(inputs[1].numel()) / 3;
  }
  return 0;
}

}  // namespace

double expected_bytes(const Node& node, const Tensors& inputs) {
  if (inputs.empty() || !inputs[0].defined()) return 0;
  const auto size = static_cast<double>(inputs[0].element_size());
  const std::string& op = node.op;
  if (op == "Concat") {
    double bytes = 0;
    for (const torch::Tensor& input : inputs) bytes += bytes_in(input);
    return bytes;
  }
  if (has_traits(node, kBroadcasts)) {
    const auto widest = op == "Where" && inputs.size() > 1 && inputs[1].defined()
                            ? static_cast<double>(inputs[1].element_size())
                            : size;
    return broadcast_elements(inputs) * widest;
  }
  if (op == "Tile") return bytes_in(inputs[0]) * product_of(numbers_in(inputs, 1));
  if (op == "Expand") {
    return std::max(bytes_in(inputs[0]), product_of(numbers_in(inputs, 1)) * size);
  }
  if (op == "ConstantOfShape") return product_of(numbers_in(inputs, 0)) * 4;
  if (op == "OneHot") {
    const std::vector<double> depth = numbers_in(inputs, 1);
    const bool complete = depth.size() == 1 && inputs.size() > 2 && inputs[2].defined();
    return complete ? static_cast<double>(inputs[0].numel()) * depth[0] *
                          static_cast<double>(inputs[2].element_size())
                    : 0;
  }
  return expected_elements(node, inputs) * size;
}

TensorMemory::TensorMemory(size_t slots)
    : budget_(static_cast<double>(memory_budget())),
      around_(innermost),
      alive_(held_bytes + (innermost == nullptr ? 0 : innermost->alive_)),
      by_slot_(slots, 0) {
  innermost = this;
}

TensorMemory::~TensorMemory() { innermost = around_; }

HeldTensors::~HeldTensors() { set(0); }

void HeldTensors::set(double bytes) {
  held_bytes += bytes - bytes_;
  bytes_ = bytes;
}

void TensorMemory::check(const Node& node, double bytes) const {
  if (alive_ + bytes <= budget_) return;
  fail(describe(node), ": would take the network to ",
       static_cast<int64_t>(megabytes(alive_ + bytes)), " MiB of tensors, more than the ",
       static_cast<int64_t>(megabytes(budget_)),
       " MiB that it may have; allow more memory, or take a smaller batch");
}

void TensorMemory::before(const Node& node, const Tensors& inputs) const {
  check(node, expected_bytes(node, inputs));
}

// A view of an input takes nothing.
void TensorMemory::made(const Node& node, int slot, const torch::Tensor& value,
                        const Tensors& inputs) {
  if (slot < 0 || !value.defined() || !value.has_storage()) return;
  const bool view = std::any_of(inputs.begin(), inputs.end(), [&](const torch::Tensor& input) {
    return input.defined() && input.has_storage() && input.is_alias_of(value);
  });
  if (view) return;
  by_slot_[static_cast<size_t>(slot)] = static_cast<double>(value.storage().nbytes());
  alive_ += by_slot_[static_cast<size_t>(slot)];
  check(node, 0);
}

void TensorMemory::freed(int slot) {
  alive_ -= by_slot_[static_cast<size_t>(slot)];
  by_slot_[static_cast<size_t>(slot)] = 0;
}

torch::Tensor declared_zeros(const std::vector<int64_t>& shape, torch::ScalarType type,
                             const std::string& name) {
  double bytes = static_cast<double>(c10::elementSize(type));
  for (const int64_t dimension : shape) bytes *= static_cast<double>(dimension);
  if (bytes > static_cast<double>(memory_budget()) / 4) {
    fail("input '", name, "': one batch of its declared shape takes ",
         static_cast<int64_t>(megabytes(bytes)), " MiB, more than a quarter of the ",
         static_cast<int64_t>(megabytes(static_cast<double>(memory_budget()))),
         " MiB that networks may have; allow more memory");
  }
  return torch::zeros(shape, type);
}

}  // namespace fcp
