#include "fcp/nn/graph/missing_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

MissingRule rule_of(const Node& node, int64_t opset) {
  try {
    return make_op(node, opset)->missing_rule();
  } catch (const Error&) {  // a network that has such a node does not run
    return MissingRule::kSpreads;
  }
}

// The nodes that an input's NaN reaches before anything computes with it.
struct MissingFront {
  std::vector<const Node*> movers;     // that pass it on, or what they know of it
  std::vector<const Node*> computers;  // that compute with it
  bool read = false;                   // somebody takes it as a value
};

MissingFront front_of(const Graph& network, const std::string& input) {
  MissingFront front;
  std::set<std::string> reached = {input};
  for (const Node& node : network.nodes) {
    const bool touched = std::any_of(node.inputs.begin(), node.inputs.end(),
                                     [&](const auto& name) { return reached.contains(name); });
    if (!touched) continue;
    const MissingRule rule = rule_of(node, network.opset);
    front.read = front.read || rule == MissingRule::kReads || rule == MissingRule::kTests;
    if (rule == MissingRule::kReads) continue;
    if (rule == MissingRule::kSpreads) {
      front.computers.push_back(&node);
      continue;
    }
    front.movers.push_back(&node);
    for (const std::string& output : node.outputs) {
      if (!output.empty()) reached.insert(output);
    }
  }
  return front;
}

// Which column each number of a tensor is, counted from 1; 0: none. Of truth values: c > 0 is true
// and c < 0 false where the column |c| is missing; 0: not known.
constexpr int64_t kMostColumns = int64_t{1} << 24;  // exact in float32

class MissingWalk {
 public:
  MissingWalk(const Graph& network, const std::string& input, const std::vector<int64_t>& row_shape)
      : network_(network), front_(front_of(network, input)) {
    std::vector<int64_t> shape = row_shape;
    shape.insert(shape.begin(), 1);
    int64_t count = 1;
    for (const int64_t size : row_shape) count *= size;
    allowed_.assign(static_cast<size_t>(count), front_.read && count < kMostColumns);
    columns_[input] = torch::arange(1, count + 1, torch::kDouble).reshape(shape);
  }

  std::vector<bool> allowed() && {
    if (allowed_.empty() || !allowed_[0]) return std::move(allowed_);
    try {
      const torch::NoGradGuard no_gradients;
      if (!front_.movers.empty()) run();
    } catch (const std::exception&) {  // the rows themselves will show why
      return std::vector<bool>(allowed_.size(), false);
    }
    for (const Node* node : front_.computers) {
      for (const std::string& name : node->inputs) refuse(name);
    }
    for (const TensorInfo& output : network_.outputs) refuse(output.name);
    return std::move(allowed_);
  }

 private:
  void refuse(const std::string& name) {
    const auto found = columns_.find(name);
    if (found != columns_.end() && !truths_.contains(name)) refuse(found->second);
  }
  void refuse(const torch::Tensor& columns) {
    const torch::Tensor flat = columns.abs().contiguous().flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const auto column = static_cast<size_t>(flat.data_ptr<double>()[i]);
      if (column > 0) allowed_[column - 1] = false;
    }
  }

  // Runs what passes columns on, on zeros, and beside it the columns themselves.
  void run() {
    std::vector<TensorInfo> wanted;
    for (const Node* node : front_.movers) {
      for (const std::string& output : node->outputs) {
        if (!output.empty()) wanted.push_back({output, ElementType::kFloat, false, {}, {}});
      }
    }
    const Network part(extract(network_, network_.inputs, wanted),
                       {.fold_constants = false, .fold_batch_norm = false});
    const std::vector<BoundPlan> plans = plan_bounds(part);
    Tensors zeros;
    for (const TensorInfo& info : part.inputs()) zeros.push_back(zero_row(info));
    size_t at = 0;
    part.run(zeros, [&](const Step& step, const Tensors& inputs, const Tensors& outputs) {
      if (!plans[at++].runs) follow(step, inputs, outputs);
    });
  }

  torch::Tensor zero_row(const TensorInfo& info) {
    const auto own = columns_.find(info.name);
    std::vector<int64_t> shape = own == columns_.end() ? info.shape : own->second.sizes().vec();
    const bool fixed = info.known_rank && !info.shape.empty() && info.shape[0] != kDynamic;
    if (fixed && !shape.empty()) shape[0] = info.shape[0];
    for (int64_t& size : shape) size = size == kDynamic ? 1 : size;
    torch::Tensor zeros = declared_zeros(shape, info.type, info.name);
    columns_[info.name] = own == columns_.end() ? torch::zeros(shape, torch::kDouble)
                                                : own->second.expand(shape).contiguous();
    return zeros;
  }

  void follow(const Step& step, const Tensors& inputs, const Tensors& outputs) {
    Tensors found;  // undefined: the same for all rows
    bool any = false;
    for (const std::string& name : step.node.inputs) {
      const auto own = columns_.find(name);
      found.push_back(own == columns_.end() ? torch::Tensor() : own->second);
      any = any || (found.back().defined() && found.back().any().item<bool>());
    }
    const Tensors moved = any ? after(step, inputs, found) : Tensors();
    for (size_t i = 0; i < std::min(outputs.size(), step.node.outputs.size()); ++i) {
      const std::string& name = step.node.outputs[i];
      if (!outputs[i].defined() || name.empty()) continue;
      const bool truth = outputs[i].scalar_type() == torch::kBool;
      if (truth) truths_.insert(name);
      const bool from_truth = !inputs.empty() && inputs[0].defined() &&
                              inputs[0].scalar_type() == torch::kBool && !truth;
      const bool selects = step.op->missing_rule() == MissingRule::kSelects;
      const bool known = i < moved.size() && moved[i].defined() && (selects || !from_truth);
      if (known && moved[i].sizes() != outputs[i].sizes()) {
        fail(describe(step.node), ": moves numbers by their values");
      }
      columns_[name] = known ? moved[i] : torch::zeros(outputs[i].sizes(), torch::kDouble);
    }
  }

  // The columns of the outputs; none: there are none.
  Tensors after(const Step& step, const Tensors& inputs, const Tensors& found) {
    switch (step.op->missing_rule()) {
      case MissingRule::kMoves:
        return moved(step, inputs, found);
      case MissingRule::kTests:
        return {found[0]};
      case MissingRule::kNegates:
        return {-found[0]};
      case MissingRule::kSelects:
        return {selected(step, inputs, found)};
      default:  // reading leaves none; front_.computers are looked at in the end
        return {};
    }
  }

  // The operator itself moves the columns: they stand for its numbers, while its indices and shapes
  // are what they are.
  Tensors moved(const Step& step, const Tensors& inputs, const Tensors& found) {
    Tensors moving = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) continue;
      const bool counts = c10::isIntegralType(inputs[i].scalar_type(), /*includeBool=*/false);
      if (counts && found[i].defined()) {  // places that depend on the row
        for (const std::string& name : step.node.inputs) refuse(name);
        return {};
      }
      if (counts) continue;
      moving[i] = found[i].defined() ? found[i] : torch::zeros(inputs[i].sizes(), torch::kDouble);
    }
    Tensors results = step.op->forward(moving);
    for (torch::Tensor& result : results) {
      // Half precision does not hold columns; only a cast gives it, and leaves them where they are.
      if (result.is_floating_point() && result.element_size() < 4) result = found[0];
      result = result.is_floating_point() ? result.to(torch::kDouble) : torch::Tensor();
    }
    return results;
  }

  torch::Tensor selected(const Step& step, const Tensors& inputs, const Tensors& found) {
    Tensors given = found;
    for (size_t i = 1; i < given.size(); ++i) {
      if (!given[i].defined()) given[i] = torch::zeros(inputs[i].sizes(), torch::kDouble);
    }
    if (!found[0].defined()) return step.op->forward({inputs[0], given[1], given[2]})[0];
    const Tensors same = torch::broadcast_tensors(given);
    const torch::Tensor &condition = same[0], column = condition.abs();
    const torch::Tensor left = same[1].masked_fill((condition < 0) & (same[1] == column), 0);
    const torch::Tensor right = same[2].masked_fill((condition > 0) & (same[2] == column), 0);
    if (inputs[1].scalar_type() != torch::kBool) {
      refuse(left);
      refuse(right);
    }
    return torch::zeros_like(left);
  }

  const Graph& network_;
  MissingFront front_;
  std::vector<bool> allowed_;
  std::map<std::string, torch::Tensor> columns_;
  std::set<std::string> truths_;
};

}  // namespace

bool reads_missing(const Graph& network, const std::string& input) {
  return front_of(network, input).read;
}

std::vector<bool> missing_columns(const Graph& network, const std::string& input,
                                  const std::vector<int64_t>& row_shape) {
  return MissingWalk(network, input, row_shape).allowed();
}

}  // namespace fcp
