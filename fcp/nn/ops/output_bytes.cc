#include "fcp/nn/ops/output_bytes.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string>

namespace fcp {
namespace {

bool is_there(const Tensors& inputs, size_t at) {
  return inputs.size() > at && inputs[at].defined();
}

double element_bytes(const torch::Tensor& tensor) {
  return static_cast<double>(tensor.element_size());
}

double held_by(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0;
}

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

bool gathers_some(const Tensors& inputs) { return is_there(inputs, 1) && inputs[0].dim() > 0; }

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
double resized_elements(const Node& node, const Tensors& inputs, size_t scales_at) {
  const std::vector<double> sizes = numbers_in(inputs, 3);
  double elements = static_cast<double>(inputs[0].numel());
  if (!sizes.empty()) {
    // Sizes of some axes are at most the product with all of the input's numbers.
    return sizes.size() == static_cast<size_t>(inputs[0].dim()) ? product_of(sizes) : 0;
  }
  std::vector<double> scales = numbers_in(inputs, scales_at);
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

double broadcast_bytes(const Node&, const Tensors& inputs) {
  return broadcast_elements(inputs) * element_bytes(inputs[0]);
}

double choice_bytes(const Node&, const Tensors& inputs) {
  return broadcast_elements(inputs) * element_bytes(inputs[is_there(inputs, 1) ? 1 : 0]);
}

double product_bytes(const Node& node, const Tensors& inputs) {
  if (!is_there(inputs, 1)) return 0;
  const bool turned = integer_in(node, "transB", 0) != 0;
  return product_elements(inputs[0], inputs[1], turned) * element_bytes(inputs[0]);
}

double integer_bytes(const Node& node, const Tensors& inputs) {
  return 4 * product_bytes(node, inputs);
}

double quantized_bytes(const Node&, const Tensors& inputs) {
  if (!is_there(inputs, 3)) return 0;
  return product_elements(inputs[0], inputs[3], false) * element_bytes(inputs[0]);
}

double einsum_bytes(const Node& node, const Tensors& inputs) {
  return einsum_elements(node, inputs) * element_bytes(inputs[0]);
}

double conv_bytes(const Node& node, const Tensors& inputs) {
  if (!is_there(inputs, 1)) return 0;
  return convolution_elements(node, inputs[0], inputs[1], false) * element_bytes(inputs[0]);
}

double integer_conv_bytes(const Node& node, const Tensors& inputs) {
  return 4 * conv_bytes(node, inputs);
}

double quantized_conv_bytes(const Node& node, const Tensors& inputs) {
  if (!is_there(inputs, 3)) return 0;
  return convolution_elements(node, inputs[0], inputs[3], false) * element_bytes(inputs[0]);
}

double conv_transpose_bytes(const Node& node, const Tensors& inputs) {
  if (!is_there(inputs, 1)) return 0;
  return convolution_elements(node, inputs[0], inputs[1], true) * element_bytes(inputs[0]);
}

double gather_bytes(const Node& node, const Tensors& inputs) {
  if (!gathers_some(inputs)) return 0;
  const torch::Tensor& data = inputs[0];
  const int64_t axis = integer_in(node, "axis", 0);
  if (axis < -data.dim() || axis >= data.dim()) return 0;
  return held_by(data) / std::max(1.0, length_of(data, axis)) *
         static_cast<double>(inputs[1].numel());
}

double gather_nd_bytes(const Node& node, const Tensors& inputs) {
  if (!gathers_some(inputs) || inputs[1].dim() == 0) return 0;
  const torch::Tensor& data = inputs[0];
  const double parts = std::max(1.0, length_of(inputs[1], -1));
  double slice = static_cast<double>(inputs[1].numel()) / parts;
  const int64_t first = integer_in(node, "batch_dims", 0) + inputs[1].size(-1);
  for (int64_t axis = std::max<int64_t>(0, first); axis < data.dim(); ++axis) {
    slice *= length_of(data, axis);
  }
  return slice * element_bytes(data);
}

double gather_elements_bytes(const Node&, const Tensors& inputs) {
  if (!gathers_some(inputs)) return 0;
  return static_cast<double>(inputs[1].numel()) * element_bytes(inputs[0]);
}

double joined_bytes(const Node&, const Tensors& inputs) {
  double bytes = 0;
  for (const torch::Tensor& input : inputs) bytes += held_by(input);
  return bytes;
}

double tiled_bytes(const Node&, const Tensors& inputs) {
  return held_by(inputs[0]) * product_of(numbers_in(inputs, 1));
}

double expanded_bytes(const Node&, const Tensors& inputs) {
  const double wanted = product_of(numbers_in(inputs, 1)) * element_bytes(inputs[0]);
  return std::max(held_by(inputs[0]), wanted);
}

double filled_bytes(const Node&, const Tensors& inputs) {
  return product_of(numbers_in(inputs, 0)) * 4;
}

double one_hot_bytes(const Node&, const Tensors& inputs) {
  const std::vector<double> depth = numbers_in(inputs, 1);
  if (depth.size() != 1 || !is_there(inputs, 2)) return 0;
  return static_cast<double>(inputs[0].numel()) * depth[0] * element_bytes(inputs[2]);
}

double padded_bytes(const Node& node, const Tensors& inputs) {
  return padded_elements(node, inputs[0], inputs) * element_bytes(inputs[0]);
}

double resized_bytes(const Node& node, const Tensors& inputs) {
  const size_t scales_at = inputs.size() > 2 ? 2 : 1;
  return resized_elements(node, inputs, scales_at) * element_bytes(inputs[0]);
}

double upsampled_bytes(const Node& node, const Tensors& inputs) {
  return resized_elements(node, inputs, 1) * element_bytes(inputs[0]);
}

double range_bytes(const Node&, const Tensors& inputs) {
  return range_elements(inputs) * element_bytes(inputs[0]);
}

double places_bytes(const Node&, const Tensors& inputs) {
  constexpr double kPlaceBytes = 8;
  return kPlaceBytes * static_cast<double>(inputs[0].dim() * inputs[0].numel());
}

double sampled_bytes(const Node&, const Tensors& inputs) {
  if (!is_there(inputs, 1) || inputs[0].dim() < 2) return 0;
  return length_of(inputs[0], 1) * static_cast<double>(inputs[1].numel()) / 3 *
         element_bytes(inputs[0]);
}

}  // namespace

double output_bytes(const Node& node, const Tensors& inputs) {
  using Bytes = OpFacts::Bytes;
  switch (facts_of(node).bytes) {
    case Bytes::kAsInputs:
      return 0;
    case Bytes::kBroadcast:
      return broadcast_bytes(node, inputs);
    case Bytes::kChoice:
      return choice_bytes(node, inputs);
    case Bytes::kProduct:
      return product_bytes(node, inputs);
    case Bytes::kIntegerProduct:
      return integer_bytes(node, inputs);
    case Bytes::kQuantizedProduct:
      return quantized_bytes(node, inputs);
    case Bytes::kEinsum:
      return einsum_bytes(node, inputs);
    case Bytes::kConv:
      return conv_bytes(node, inputs);
    case Bytes::kIntegerConv:
      return integer_conv_bytes(node, inputs);
    case Bytes::kQuantizedConv:
      return quantized_conv_bytes(node, inputs);
    case Bytes::kConvTranspose:
      return conv_transpose_bytes(node, inputs);
    case Bytes::kGather:
      return gather_bytes(node, inputs);
    case Bytes::kGatherND:
      return gather_nd_bytes(node, inputs);
    case Bytes::kGatherElements:
      return gather_elements_bytes(node, inputs);
    case Bytes::kJoined:
      return joined_bytes(node, inputs);
    case Bytes::kTiled:
      return tiled_bytes(node, inputs);
    case Bytes::kExpanded:
      return expanded_bytes(node, inputs);
    case Bytes::kFilled:
      return filled_bytes(node, inputs);
    case Bytes::kOneHot:
      return one_hot_bytes(node, inputs);
    case Bytes::kPadded:
      return padded_bytes(node, inputs);
    case Bytes::kResized:
      return resized_bytes(node, inputs);
    case Bytes::kUpsampled:
      return upsampled_bytes(node, inputs);
    case Bytes::kRange:
      return range_bytes(node, inputs);
    case Bytes::kPlaces:
      return places_bytes(node, inputs);
    case Bytes::kSampled:
      return sampled_bytes(node, inputs);
  }
  return 0;
}

}  // namespace fcp
