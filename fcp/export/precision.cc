#include "fcp/export/precision.h"

#include <algorithm>

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
