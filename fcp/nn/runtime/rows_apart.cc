#include "fcp/nn/runtime/rows_apart.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/ops/op_traits.h"

namespace fcp {
namespace {

bool is_quantized(const Network& network) {
  return std::any_of(network.steps().begin(), network.steps().end(),
                     [](const Step& step) { return has_traits(step.node, kQuantized); });
}

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  const bool plain = a.is_cpu() && b.is_cpu() && a.is_contiguous() && b.is_contiguous();
  return plain && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

// Whether two tensors of one shape differ by more than this share of their largest number.
bool far_apart(const torch::Tensor& a, const torch::Tensor& b, double limit) {
  if (!a.is_floating_point() || a.sizes() != b.sizes() || a.numel() == 0) return false;
  if (same_bits(a, b) || torch::equal(a, b)) return false;
  const torch::Tensor scale = torch::maximum(a.abs().max(), b.abs().max());
  const double distance = (a - b).abs().max().to(torch::kDouble).item<double>();
  return distance > limit * scale.to(torch::kDouble).item<double>();  // false of NaN
}

// Whether what `together` has for a row is not `alone`, as far as the two can be compared.
bool differs_at(int64_t row, const torch::Tensor& together, const torch::Tensor& alone,
                double limit) {
  if (!together.defined() || !alone.defined() || together.dim() != alone.dim()) return false;
  if (alone.dim() == 0 || together.size(0) < (row + 1) * alone.size(0)) return false;
  return far_apart(together.narrow(0, row * alone.size(0), alone.size(0)), alone, limit);
}

// The first node whose output for the row differs.
std::string find_meeting(const Network& network, const torch::Tensor& x, int64_t row,
                         double limit) {
  std::map<std::string, torch::Tensor> alone;
  const auto each_output = [](const Step& step, const Tensors& outputs, const auto& work) {
    for (size_t i = 0; i < std::min(outputs.size(), step.node.outputs.size()); ++i) {
      work(step.node.outputs[i], outputs[i]);
    }
  };
  network.run({x.narrow(0, row, 1)}, [&](const Step& step, const Tensors&, const Tensors& outputs) {
    each_output(step, outputs,
                [&](const std::string& name, const torch::Tensor& value) { alone[name] = value; });
  });
  std::string found;
  network.run({x}, [&](const Step& step, const Tensors&, const Tensors& outputs) {
    each_output(step, outputs, [&](const std::string& name, const torch::Tensor& value) {
      if (found.empty() && differs_at(row, value, alone[name], limit)) found = describe(step.node);
    });
  });
  return found;
}

// Where it keeps any number of boxes of a row, outputs do not have one entry for each row.
void refuse_boxes(const Network& network, const Tensors& alone) {
  for (const Step& step : network.steps()) {
    if (step.node.op != "NonMaxSuppression") continue;
    for (size_t i = 0; i < alone.size(); ++i) {
      if (alone[i].dim() > 0 && alone[i].size(0) == 1) continue;
      fail("output '", network.outputs()[i].name, "' has shape ", alone[i].sizes(),
           " for one row, because ", describe(step.node),
           " keeps any number of boxes; intervals need an output with one entry for each row");
    }
  }
}

}  // namespace

void check_rows_apart(const Network& network, const torch::Tensor& x) {
  const torch::NoGradGuard no_gradients;
  if (x.dim() == 0 || x.size(0) < 2 || network.inputs().size() != 1) return;
  const double limit = is_quantized(network) ? kApartQuantized : kApart;
  Tensors together;
  try {
    together = network.run_rows({x});
  } catch (const Error&) {
    return;  // it takes rows one by one, or not at all, which is said where it matters
  }
  for (int64_t row = 0; row < x.size(0); ++row) {
    const Tensors alone = network.run_rows({x.narrow(0, row, 1)});
    refuse_boxes(network, alone);
    for (size_t i = 0; i < alone.size(); ++i) {
      const torch::Tensor& all = together[i];
      if (all.dim() == 0 || all.size(0) != x.size(0) || alone[i].dim() == 0) continue;
      if (!far_apart(all.narrow(0, row, 1), alone[i], limit)) continue;
      const std::string node =
          network.fixed_batch() == kDynamic ? find_meeting(network, x, row, limit) : "";
      fail("output '", network.outputs()[i].name, "' of a row depends on the rows beside it",
           node.empty() ? "" : ": they meet in ", node,
           "; intervals need a network that answers each row by itself (inference mode, no "
           "statistics or attention over the batch)");
    }
  }
}

}  // namespace fcp
