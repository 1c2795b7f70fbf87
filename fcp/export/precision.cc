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

}  // namespace fcp
