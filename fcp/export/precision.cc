#include "fcp/export/precision.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/predictor/input_numbers.h"

namespace fcp {
namespace {

PreparedHead in_double(const PreparedHead& head) {
  PreparedHead wide = head;
  wide.type = torch::kDouble;
  for (torch::Tensor& constant : wide.constants) {
    if (constant.defined() && constant.is_floating_point()) constant = constant.to(torch::kDouble);
  }
  return wide;
}

// Both ends of an output, in double precision.
torch::Tensor ends_of(const PreparedHead& head, const Ball& given, double radius, size_t output) {
  Ball ball = given;
  ball.radius = torch::full({1}, radius, torch::kDouble);
  ball = prepare_ball(head, ball);
  const Ranges ranges = walk_forwards(head, ball, first_outputs(head, ball), true);
  const Range& range = ranges[static_cast<size_t>(head.network->output_slots()[output])];
  return torch::cat({range.lower.flatten(), range.upper.flatten()}).to(torch::kDouble);
}

}  // namespace

double RoundingNodes::of_output(const std::string& name) const {
  const auto found = rounding_.outputs.find(name);
  return found == rounding_.outputs.end() ? 0 : kRoundingSafety * found->second.difference;
}

std::string RoundingNodes::node(double difference, size_t rank, torch::ScalarType type) {
  if (difference == 0) return "";
  const std::string number = builder_.constant(torch::full({1}, difference, type));
  const TensorInfo& input = builder_.graph().inputs[0];
  if (rounding_.largest.empty() || !is_floating(input.type)) return number;
  if (growth_.empty()) {
    const std::string flat = builder_.reshape_rows(input.name, {-1});
    const std::string wide = builder_.add("Cast", {flat}, {{"to", int64_t{11}}});
    const torch::Tensor largest = torch::tensor(rounding_.largest, torch::kDouble).unsqueeze(0);
    std::string share =
        builder_.add("Div", {builder_.add("Abs", {wide}), builder_.constant(largest)});
    // A missing number is not a large one.
    if (builder_.graph().opset >= 9 && MissingNumbers(builder_.graph()).any()) {
      const std::string none = builder_.constant(torch::zeros({1, 1}, torch::kDouble));
      share = builder_.add("Where", {builder_.add("IsNaN", {share}), none, share});
    }
    growth_ = builder_.add("Max", {builder_.reduce("ReduceMax", share, 1, true),
                                   builder_.constant(torch::ones({1, 1}, torch::kDouble))});
  }
  std::string growth = growth_;
  if (type != torch::kDouble) growth = builder_.add("Cast", {growth}, {{"to", int64_t{1}}});
  if (rank != 2) growth = builder_.reshape_rows(growth, std::vector<int64_t>(rank - 1, 1));
  return builder_.add("Mul", {growth, number});
}

std::string RoundingNodes::added(const std::string& tensor, double difference, size_t rank,
                                 torch::ScalarType type) {
  const std::string more = node(difference, rank, type);
  return more.empty() ? tensor : builder_.add("Add", {tensor, more});
}

void RoundingNodes::check_radius(double radius) const {
  const double most = std::abs(radius) * kMostRounding;
  if (std::isinf(radius) || of_scores() <= most) return;
  if (kRoundingSafety * rounding_.ends.difference <= kRuntimeSlack * rounding_.ends.size) return;
  fail("beside the radius ", radius, " rounding in single precision is not small: it changes ",
       "scores by ", rounding_.score.difference, ", and another runtime by another part of it; ",
       "cut later, where radii are larger beside the features, or scale the inputs, to export");
}

void RoundingNodes::check_center(double radius, const std::string& output) const {
  const auto found = rounding_.outputs.find(output);
  if (found == rounding_.outputs.end() || std::isinf(radius)) return;
  const auto& [difference, size] = found->second;
  const double most = std::max(std::abs(radius) * kMostRounding, kRuntimeSlack * size);
  if (kRoundingSafety * difference <= most) return;
  fail("beside the radius ", radius, " rounding in single precision is not small: it changes '",
       output, "' by ", difference,
       ", and another runtime by another part of it; scale the inputs ", "to export");
}

double precision_loss(const PreparedHead& head, const Ball& ball, double radius, size_t output) {
  if (head.type == torch::kDouble) return 0;
  const torch::Tensor found = ends_of(head, ball, radius, output);
  const torch::Tensor exact = ends_of(in_double(head), ball, radius, output);
  const torch::Tensor known = found.isfinite().logical_and(exact.isfinite());
  if (!known.any().item<bool>()) return 0;
  const double most = exact.masked_select(known).abs().max().item<double>();
  const double lost = (found - exact).masked_select(known).abs().max().item<double>();
  return lost == 0 ? 0 : lost / std::max(most, 1e-30);
}

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kFloatNumber = 1, kDoubleNumber = 11;  // of TensorProto.DataType

// Nodes in double precision.
class DoubleNodes {
 public:
  explicit DoubleNodes(GraphBuilder& builder) : builder_(builder) {}

  std::string wide(const std::string& x) { return cast(x, kDoubleNumber); }
  std::string narrow(const std::string& x) { return cast(x, kFloatNumber); }
  std::string value(double number) { return value(torch::full({1}, number, torch::kDouble)); }
  std::string value(const torch::Tensor& numbers) {
    return builder_.constant(numbers.to(torch::kCPU, torch::kDouble));
  }
  std::string op(const std::string& name, std::vector<std::string> inputs) {
    return builder_.add(name, std::move(inputs));
  }
  std::string sum(const std::string& x, int64_t axis) {
    return builder_.reduce("ReduceSum", x, axis, true);
  }
  // Σ_{j≠i} x_j of terms that are not negative.
  std::string others(const std::string& x, int64_t axis) {
    return op("Max", {op("Sub", {sum(x, axis), x}), value(0)});
  }

 private:
  std::string cast(const std::string& x, int64_t type) {
    return builder_.add("Cast", {x}, {{"to", type}});
  }

  GraphBuilder& builder_;
};

}  // namespace

Ends layer_norm_ends(GraphBuilder& builder, const Ends& x, const torch::Tensor& scale,
                     const torch::Tensor& bias, double epsilon) {
  DoubleNodes nodes(builder);
  const auto n = static_cast<double>(scale.numel());
  const std::string l = nodes.wide(x.lower), u = nodes.wide(x.upper), by_n = nodes.value(1 / n);
  // c_i = x_i − Σ_j x_j / n: the end of x_i itself, and the opposite ends of the others.
  const auto centered = [&](const std::string& own, const std::string& other) {
    const std::string rest = nodes.op("Sub", {nodes.sum(other, -1), other});
    const std::string mean = nodes.op("Mul", {nodes.op("Add", {rest, own}), by_n});
    return nodes.op("Sub", {own, mean});
  };
  const std::string low = centered(l, u), high = centered(u, l);
  const auto square = [&](const std::string& c) { return nodes.op("Mul", {c, c}); };
  const std::string most = nodes.op("Max", {square(low), square(high)});
  const std::string nearest =
      nodes.op("Max", {low, nodes.op("Neg", {high}), nodes.value(0)});  // to 0
  const std::string others[2] = {nodes.others(square(nearest), -1), nodes.others(most, -1)};
  const auto end = [&](const std::string& c, const char* choice) {
    std::vector<std::string> values;
    for (const std::string& other : others) {
      const std::string power = nodes.op("Mul", {nodes.op("Add", {square(c), other}), by_n});
      const std::string root = nodes.op("Sqrt", {nodes.op("Add", {power, nodes.value(epsilon)})});
      values.push_back(nodes.op("Div", {c, root}));
    }
    const std::string limit = nodes.value(std::sqrt(n - 1)), least = nodes.value(-std::sqrt(n - 1));
    return nodes.op("Min", {nodes.op("Max", {nodes.op(choice, values), least}), limit});
  };
  const std::string z_low = end(low, "Min"), z_high = end(high, "Max");
  const std::string plus = nodes.value(scale.clamp_min(0)), minus = nodes.value(scale.clamp_max(0));
  const auto scaled = [&](const std::string& up, const std::string& down) {
    const std::string y =
        nodes.op("Add", {nodes.op("Mul", {up, plus}), nodes.op("Mul", {down, minus})});
    return nodes.narrow(bias.defined() ? nodes.op("Add", {y, nodes.value(bias)}) : y);
  };
  return {scaled(z_low, z_high), scaled(z_high, z_low)};
}

Ends softmax_ends(GraphBuilder& builder, const Ends& x, int64_t axis) {
  DoubleNodes nodes(builder);
  const std::string l = nodes.wide(x.lower), u = nodes.wide(x.upper);
  const std::string largest = builder.reduce("ReduceMax", u, axis, true);
  const std::string low = nodes.op("Exp", {nodes.op("Sub", {l, largest})});
  const std::string high = nodes.op("Exp", {nodes.op("Sub", {u, largest})});
  const auto share = [&](const std::string& own, const std::string& other) {
    const std::string all = nodes.op("Add", {own, nodes.others(other, axis)});
    return nodes.narrow(nodes.op("Div", {own, all}));
  };
  return {share(low, high), share(high, low)};
}

Ends sine_ends(GraphBuilder& builder, const Node& node, const Ends& x, bool cosine) {
  const auto number = [&](double value) { return builder.constant(torch::full({1}, value)); };
  const std::string at_l = builder.copy(node, {x.lower})[0],
                    at_u = builder.copy(node, {x.upper})[0];
  // The value where some `first` + 2πk lies in [l, u], otherwise the choice of both ends.
  const auto end = [&](double first, double value, const char* choice) {
    const std::string turns = builder.add(
        "Ceil",
        {builder.add("Div", {builder.add("Sub", {x.lower, number(first)}), number(2 * kPi)})});
    const std::string place =
        builder.add("Add", {builder.add("Mul", {turns, number(2 * kPi)}), number(first)});
    const std::string outside = builder.add("Greater", {place, x.upper});
    return builder.add("Where", {outside, builder.add(choice, {at_l, at_u}), number(value)});
  };
  const double top = cosine ? 0 : kPi / 2;
  return {end(top + kPi, -1, "Min"), end(top, 1, "Max")};
}

}  // namespace fcp
