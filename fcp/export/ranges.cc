#include "fcp/export/ranges.h"

#include <cmath>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/export/precision.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {
namespace {

using Exported = OpFacts::Range;

// Numbers are put in their place or added to it.
bool places_or_adds(const Node& node) {
  const auto reduction = node.attributes.find("reduction");
  return reduction == node.attributes.end() || std::get<std::string>(reduction->second) != "mul";
}

[[noreturn]] void refuse_range(const Node& node) {
  fail(describe(node), ": its interval cannot be written as ONNX nodes; cut later, behind it");
}

}  // namespace

RangeWriter::RangeWriter(GraphBuilder& builder, const std::shared_ptr<const Network>& head,
                         const NestedOptions& score, const torch::Tensor& feature)
    : builder_(builder), head_(prepare_head(head, score.bound)) {
  if (head_.unit > 0) fail("bounds that hold every rounding cannot be written as ONNX nodes");
  if (head_.type != head_.output_type) {
    fail("the features are ", head_.output_type, ", export needs them in single precision");
  }
  torch::Tensor scale;
  if (!score.scale.empty()) {
    if (static_cast<int64_t>(score.scale.size()) != feature[0].numel()) {
      fail("the score has scales for ", score.scale.size(), " numbers, its features have ",
           feature[0].numel());
    }
    scale = torch::tensor(score.scale, torch::kDouble).to(feature.options());
    scale = scale.reshape(feature.sizes().slice(1));
  }
  const torch::NoGradGuard no_gradients;
  head->run({feature.narrow(0, 0, 1)}, [&](const Step& step, const Tensors&, const Tensors& found) {
    if (facts_of(step.node).range != Exported::kNormalizedChannels) return;
    examples_[step.node.outputs[0]] = found[0];
  });
  ball_ = prepare_ball(head_, {feature.narrow(0, 0, 1), {}, score.norm, scale});
  first_ = first_outputs(head_, ball_);
}

std::vector<Ends> RangeWriter::ranges(double radius, const std::string& factor) {
  const Network& network = *head_.network;
  Slots slots(head_.constants.size());
  for (size_t i = 0; i < network.steps().size(); ++i) {
    const Step& step = network.steps()[i];
    std::vector<Ends> outputs;
    if (head_.plans[i].runs) {  // the network computes it, the same for all features
      for (const std::string& name : step.node.outputs) outputs.push_back({name, name});
    } else if (first_[i].center.defined()) {
      outputs = {around(step.node.outputs[0], first_[i].reach * radius, factor)};
    } else {
      outputs = step_ends(i, step_inputs(step, slots, radius, factor));
    }
    for (size_t k = 0; k < step.outputs.size() && k < outputs.size(); ++k) {
      if (step.outputs[k] >= 0) slots[static_cast<size_t>(step.outputs[k])] = outputs[k];
    }
  }
  std::vector<Ends> results;
  for (size_t i = 0; i < network.outputs().size(); ++i) {
    const Ends& ends = slots[static_cast<size_t>(network.output_slots()[i])];
    const std::string& name = network.outputs()[i].name;
    results.push_back(ends.lower.empty() ? Ends{name, name} : ends);
  }
  return results;
}

void RangeWriter::check_precision(double radius, size_t output) const {
  const double loss = precision_loss(head_, ball_, radius, output);
  if (loss <= kMostLoss) return;
  fail("at the radius ", radius, " single precision is off by ", 100 * loss,
       " % of the interval's larger end, and another runtime by another part of it; cut later, ",
       "where radii are larger beside the features, to export");
}

std::vector<Ends> RangeWriter::step_inputs(const Step& step, Slots& slots, double radius,
                                           const std::string& factor) {
  std::vector<Ends> inputs;
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const std::string& name = step.node.inputs[k];
    if (step.inputs[k] < 0) {
      inputs.push_back({"", ""});
      continue;
    }
    const auto slot = static_cast<size_t>(step.inputs[k]);
    if (slots[slot].lower.empty() && head_.constants[slot].defined()) {
      const std::string constant = builder_.tensor_or(name, head_.constants[slot]);
      slots[slot] = {constant, constant};
    } else if (slots[slot].lower.empty()) {  // the feature itself
      slots[slot] = around(name, row_scale(ball_) * radius, factor);
    }
    inputs.push_back(slots[slot]);
  }
  return inputs;
}

std::vector<Ends> RangeWriter::step_ends(size_t index, const std::vector<Ends>& inputs) {
  const Step& step = head_.network->steps()[index];
  const Node& node = step.node;
  const Exported range = facts_of(node).range;
  if (head_.plans[index].rule == BoundRule::kCurve && range != Exported::kReciprocal) {
    return curve(step, inputs);
  }
  switch (range) {
    case Exported::kEnds:
      return at_both_ends(node, inputs);
    case Exported::kOneFactor:
      if (inputs.size() > 2) refuse_range(node);
      return inputs.size() == 1 ? at_both_ends(node, inputs) : product(step, inputs);
    case Exported::kPlaced:
      if (!places_or_adds(node)) refuse_range(node);
      return at_both_ends(node, inputs);
    case Exported::kProduct:
    case Exported::kMatrixProduct:
    case Exported::kGemm:
      return product(step, inputs);
    case Exported::kCorners:
      return corners(node, inputs);
    case Exported::kQuotient:
      if (inputs[1].fixed()) return corners(node, inputs);
      return {unless_zero(corners(node, inputs)[0], inputs[1])};
    case Exported::kReciprocal:
      return {unless_zero(corners(node, inputs)[0], inputs[0])};
    case Exported::kDifference:
      return {{builder_.add("Sub", {inputs[0].lower, inputs[1].upper}),
               builder_.add("Sub", {inputs[0].upper, inputs[1].lower})}};
    case Exported::kSine:
      return {sine_ends(builder_, node, inputs[0], /*cosine=*/false)};
    case Exported::kCosine:
      return {sine_ends(builder_, node, inputs[0], /*cosine=*/true)};
    case Exported::kSoftmax:
      return {softmax(node, inputs[0])};
    case Exported::kNormalizedRow:
      return {normalized(step, inputs)};
    case Exported::kNormalizedChannels:
      return {normalized_channels(step, inputs[0])};
    case Exported::kNone:
      break;
  }
  refuse_range(node);
}

std::vector<Ends> RangeWriter::at_both_ends(const Node& node, const std::vector<Ends>& inputs) {
  std::vector<std::string> lower, upper;
  for (const Ends& input : inputs) {
    lower.push_back(input.lower);
    upper.push_back(input.upper);
  }
  const std::vector<std::string> below = builder_.copy(node, lower);
  const std::vector<std::string> above = builder_.copy(node, upper);
  std::vector<Ends> outputs;
  for (size_t i = 0; i < below.size(); ++i) outputs.push_back({below[i], above[i]});
  return outputs;
}

template <typename T>
T RangeWriter::attribute_of(const Node& node, const std::string& name, T fallback) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? fallback : std::get<T>(found->second);
}

Ends RangeWriter::softmax(const Node& node, const Ends& x) {
  if (builder_.graph().opset < 13) refuse_range(node);
  return softmax_ends(builder_, x, attribute_of(node, "axis", int64_t{-1}));
}

// Along the last axis with constant parameters.
Ends RangeWriter::normalized(const Step& step, const std::vector<Ends>& inputs) {
  const auto constant = [&](size_t input) {
    const int slot = input < step.inputs.size() ? step.inputs[input] : -1;
    return slot < 0 ? torch::Tensor() : head_.constants[static_cast<size_t>(slot)];
  };
  const torch::Tensor scale = constant(1), bias = constant(2);
  const bool several = inputs.size() > 2 && !inputs[2].lower.empty() && !bias.defined();
  if (!scale.defined() || scale.dim() != 1 || several) refuse_range(step.node);
  return layer_norm_ends(builder_, inputs[0], scale, bias,
                         attribute_of(step.node, "epsilon", 1e-5f));
}

//   W [c − ρ, c + ρ] + b = (W c + b) ± |W| ρ
std::vector<Ends> RangeWriter::product(const Step& step, const std::vector<Ends>& inputs) {
  const Exported range = facts_of(step.node).range;
  const size_t varying = inputs[0].fixed() ? 1 : 0;
  if (!inputs[1 - varying].fixed()) {
    if (range == Exported::kOneFactor) {
      return {product_by_centers(step.node, inputs[0], inputs[1])};
    }
    if (range != Exported::kMatrixProduct || builder_.graph().opset < 11) refuse_range(step.node);
    return {product_of_two(inputs[0], inputs[1])};
  }
  const Ends& x = inputs[varying];
  const std::string half = number(0.5);
  std::vector<std::string> names;
  for (const Ends& input : inputs) names.push_back(input.lower);
  names[varying] = builder_.add("Mul", {builder_.add("Add", {x.lower, x.upper}), half});
  const std::string center = builder_.copy(step.node, names)[0];

  Node spread = step.node;
  names.resize(2);  // without the bias
  names[varying] = builder_.add("Mul", {builder_.add("Sub", {x.upper, x.lower}), half});
  names[1 - varying] = magnitude(step, 1 - varying, inputs[1 - varying].lower);
  const auto alpha = spread.attributes.find("alpha");
  if (alpha != spread.attributes.end()) alpha->second = std::abs(std::get<float>(alpha->second));
  spread.attributes.erase("beta");
  if (range == Exported::kGemm && builder_.graph().opset < 11) {  // where its C is not optional
    names.push_back(number(0));
  }
  const std::string reach = builder_.copy(spread, names)[0];
  return {{builder_.add("Sub", {center, reach}), builder_.add("Add", {center, reach})}};
}

// Σ_k x_ik y_kj, each term from the smallest to the largest of its four corners.
Ends RangeWriter::product_of_two(const Ends& x, const Ends& y) {
  const auto with_axis = [&](const std::string& name, int64_t axis) {
    if (builder_.graph().opset < 13) {
      return builder_.add("Unsqueeze", {name}, {{"axes", std::vector<int64_t>{axis}}});
    }
    return builder_.add("Unsqueeze",
                        {name, builder_.constant(torch::full({1}, axis, torch::kLong))});
  };
  std::vector<std::string> corners;
  for (const std::string& left : {x.lower, x.upper}) {
    for (const std::string& right : {y.lower, y.upper}) {
      corners.push_back(builder_.add("Mul", {with_axis(left, -1), with_axis(right, -3)}));
    }
  }
  return {builder_.reduce("ReduceSum", builder_.add("Min", corners), -2, /*keep=*/false),
          builder_.reduce("ReduceSum", builder_.add("Max", corners), -2, /*keep=*/false)};
}

// c d ± (|c| σ + ρ |d| + ρ σ) of c ± ρ and d ± σ: never narrower than the corners, which a sum over
// any axes has no room for.
Ends RangeWriter::product_by_centers(const Node& node, const Ends& x, const Ends& y) {
  const std::string half = number(0.5);
  const auto middle = [&](const Ends& ends) {
    return builder_.add("Mul", {builder_.add("Add", {ends.lower, ends.upper}), half});
  };
  const auto reach = [&](const Ends& ends) {
    return builder_.add("Mul", {builder_.add("Sub", {ends.upper, ends.lower}), half});
  };
  const std::string c = middle(x), d = middle(y), rho = reach(x), sigma = reach(y);
  const auto times = [&](const std::string& a, const std::string& b) {
    return builder_.copy(node, {a, b})[0];
  };
  const std::string around = builder_.add("Add", {builder_.add("Abs", {d}), sigma});
  const std::string all =
      builder_.add("Add", {times(builder_.add("Abs", {c}), sigma), times(rho, around)});
  const std::string center = times(c, d);
  return {builder_.add("Sub", {center, all}), builder_.add("Add", {center, all})};
}

// Each channel of a row is one row of a LayerNormalization.
Ends RangeWriter::normalized_channels(const Step& step, const Ends& x) {
  const auto constant = [&](size_t input) {
    return head_.constants[static_cast<size_t>(step.inputs[input])];
  };
  const torch::Tensor scale = constant(1), bias = constant(2);
  const torch::Tensor& example = examples_.at(step.node.outputs[0]);
  if (!scale.defined() || !bias.defined() || example.dim() < 3) refuse_range(step.node);
  const int64_t channels = example.size(1), each = example[0][0].numel();
  const auto flat = [&](const std::string& end) {
    return builder_.reshape_rows(end, {channels, each});
  };
  const double epsilon = attribute_of(step.node, "epsilon", 1e-5f);
  const Ends plain = layer_norm_ends(builder_, {flat(x.lower), flat(x.upper)}, torch::ones({each}),
                                     torch::Tensor(), epsilon);
  const std::vector<int64_t> column = {1, channels, 1};
  const std::string factor = builder_.constant(scale.reshape(column));
  const std::string shift = builder_.constant(bias.reshape(column));
  const std::string at_lower = builder_.add("Mul", {plain.lower, factor});
  const std::string at_upper = builder_.add("Mul", {plain.upper, factor});
  const auto end = [&](const char* choice) {
    const std::string chosen = builder_.add(choice, {at_lower, at_upper});
    return builder_.reshape_rows(builder_.add("Add", {chosen, shift}),
                                 example.sizes().slice(1).vec());
  };
  return {end("Min"), end("Max")};
}

std::vector<Ends> RangeWriter::curve(const Step& step, const std::vector<Ends>& inputs) {
  Tensors constants;
  for (const int slot : step.inputs) {
    constants.push_back(slot < 0 ? torch::Tensor() : head_.constants[static_cast<size_t>(slot)]);
  }
  const Curve curve = step.op->curve(constants);
  if (curve.rising) return at_both_ends(step.node, inputs);
  if (curve.pole) refuse_range(step.node);
  std::vector<std::string> points = {inputs[0].lower, inputs[0].upper};
  for (const auto* places : {&curve.knots, &curve.turns}) {
    for (const double place : *places) {
      points.push_back(builder_.add(
          "Min", {builder_.add("Max", {number(place), inputs[0].lower}), inputs[0].upper}));
    }
  }
  std::vector<std::string> names, values;
  for (const Ends& input : inputs) names.push_back(input.lower);
  for (const std::string& point : points) {
    names[0] = point;
    values.push_back(builder_.copy(step.node, names)[0]);
  }
  return {{builder_.add("Min", values), builder_.add("Max", values)}};
}

// The ends, or everything where the divisor may be 0.
Ends RangeWriter::unless_zero(const Ends& ends, const Ends& divisor) {
  const std::string apart =
      builder_.add("Greater", {builder_.add("Mul", {divisor.lower, divisor.upper}), number(0)});
  const auto end = [&](const std::string& value, double otherwise) {
    return builder_.add("Where", {apart, value, number(otherwise)});
  };
  return {end(ends.lower, -kInfinity), end(ends.upper, kInfinity)};
}

std::vector<Ends> RangeWriter::corners(const Node& node, const std::vector<Ends>& inputs) {
  std::vector<std::vector<std::string>> corners = {{}};
  for (const Ends& input : inputs) {
    const size_t count = corners.size();
    for (size_t i = 0; i < count; ++i) {
      if (!input.fixed()) {
        corners.push_back(corners[i]);
        corners.back().push_back(input.upper);
      }
      corners[i].push_back(input.lower);
    }
  }
  std::vector<std::string> values;
  for (const std::vector<std::string>& corner : corners) {
    values.push_back(builder_.copy(node, corner)[0]);
  }
  return {{builder_.add("Min", values), builder_.add("Max", values)}};
}

Ends RangeWriter::around(const std::string& center, const torch::Tensor& reach,
                         const std::string& factor) {
  std::string margin = builder_.constant(reach);
  if (!factor.empty()) {
    const std::vector<int64_t> ones(static_cast<size_t>(reach.dim() - 1), 1);
    margin = builder_.add("Mul", {margin, builder_.reshape_rows(factor, ones)});
  }
  return {builder_.add("Sub", {center, margin}), builder_.add("Add", {center, margin})};
}

std::string RangeWriter::magnitude(const Step& step, size_t input, const std::string& name) {
  std::string& known = magnitudes_[name];
  if (!known.empty()) return known;
  const torch::Tensor& weight = head_.constants[static_cast<size_t>(step.inputs[input])];
  known = weight.defined() ? builder_.constant(weight.abs()) : builder_.add("Abs", {name});
  return known;
}

std::string RangeWriter::number(double value) {
  return builder_.constant(torch::full({1}, value, head_.type));
}

}  // namespace fcp
