#include "fcp/nn/graph/rows_first.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/lifted_graph.h"
#include "fcp/nn/ops/op_traits.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/network.h"

namespace fcp {
namespace {

bool moves_first_axis(const Step& step) {
  if (facts_of(step.node).axes != OpFacts::Axes::kOrder) return false;
  const auto order = step.node.attributes.find("perm");
  if (order == step.node.attributes.end()) return true;
  const auto& axes = std::get<std::vector<int64_t>>(order->second);
  return axes.empty() || axes[0] != 0;
}

class RowsFirst {
 public:
  RowsFirst(const Network& head, const torch::Tensor& row)
      : head_(head), plans_(plan_bounds(head)), graph_(head.graph()) {
    const torch::NoGradGuard no_gradients;
    graph_.set_shape(head.inputs()[0].name, row.sizes().vec());
    head.run({row}, [&](const Step& step, const Tensors&, const Tensors& outputs) {
      for (size_t i = 0; i < std::min(outputs.size(), step.node.outputs.size()); ++i) {
        if (!outputs[i].defined()) continue;
        values_[step.node.outputs[i]] = outputs[i];
        graph_.set_shape(step.node.outputs[i], outputs[i].sizes().vec());
      }
    });
  }

  Graph write() {
    const std::string& feature = head_.inputs()[0].name;
    graph_.reshape(feature, feature, graph_.shape(feature));
    graph_.set_varies(feature);
    for (size_t i = 0; i < plans_.size(); ++i) {
      const Node& node = head_.steps()[i].node;
      if (plans_[i].runs) {
        keep_values(node);
      } else {
        write_node(node, plans_[i].rule);
        for (const std::string& output : node.outputs) graph_.set_varies(output);
      }
    }
    for (const TensorInfo& output : head_.outputs()) graph_.finish(output.name);
    return graph_.take();
  }

 private:
  [[noreturn]] static void refuse(const Node& node) {
    fail(describe(node), ": crown bounds do not go through it where another node moves the rows ",
         "away from the first axis; use bound ibp, or cut later");
  }

  // What is the same for all rows.
  void keep_values(const Node& node) {
    for (const std::string& name : node.outputs) {
      const auto value = values_.find(name);
      if (value != values_.end()) graph_.set_constant(name, value->second);
    }
  }

  static std::string lifted(const std::string& name) { return LiftedGraph::lifted(name); }
  const LiftedShape& shape(const std::string& name) const { return graph_.shape(name); }
  bool varies(const std::string& name) const { return graph_.varies(name); }
  int64_t integer_of(const Node& node, const std::string& name, int64_t fallback) const {
    return OpArguments(node, graph_.opset()).integer(name, fallback);
  }

  void write_node(const Node& node, BoundRule rule) {
    using Axes = OpFacts::Axes;
    if (!node.domain.empty() || node.inputs.empty()) refuse(node);
    const Axes axes = facts_of(node).axes;
    if (axes == Axes::kReshape) {
      return graph_.reshape(lifted(node.inputs[0]), node.outputs[0], graph_.out(node));
    }
    const bool each = rule == BoundRule::kCurve || axes == Axes::kEachNumber;
    if (each || axes == Axes::kMatrices) return write_broadcast(node, /*least_rank=*/each ? 0 : 2);
    if (axes == Axes::kOrder) return write_transpose(node);
    if (axes == Axes::kRows) return write_gemm(node);
    if (axes == Axes::kImages) return write_image(node);
    if (axes == Axes::kTarget) return write_expand(node);
    write_along_axis(node, axes);
  }

  void write_broadcast(const Node& node, size_t least_rank) {
    std::vector<std::string> inputs;
    for (const std::string& name : node.inputs) {
      if (!varies(name)) {
        inputs.push_back(name);
        continue;
      }
      if (shape(name).size() < least_rank) refuse(node);
      inputs.push_back(graph_.with_rank(name, graph_.out(node).size()));
    }
    graph_.add(node, inputs);
  }

  void write_transpose(const Node& given) {
    Node node = given;
    std::vector<int64_t> order = {0};
    const auto found = node.attributes.find("perm");
    if (found == node.attributes.end()) {
      for (size_t i = graph_.out(node).size(); i > 0; --i) order.push_back(static_cast<int64_t>(i));
    } else {
      for (const int64_t axis : std::get<std::vector<int64_t>>(found->second)) {
        order.push_back(axis + 1);
      }
    }
    node.attributes["perm"] = order;
    graph_.add(node, {lifted(node.inputs[0])});
  }

  // On the rows of all matrices at once.
  void write_gemm(const Node& node) {
    const bool plain =
        varies(node.inputs[0]) && !varies(node.inputs[1]) && integer_of(node, "transA", 0) == 0;
    if (!plain) refuse(node);
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      const ConstantTensor bias = graph_.constant(node.inputs[2]);
      if (!bias.defined() || (bias.dim() == 2 && bias.shape()[0] != 1)) refuse(node);
    }
    std::vector<std::string> inputs = node.inputs;
    inputs[0] = graph_.reshaped(lifted(node.inputs[0]), {shape(node.inputs[0])[1]});
    write_between(node, std::move(inputs));
  }

  void write_image(const Node& node) {
    const LiftedShape& in = shape(node.inputs[0]);
    if (!varies(node.inputs[0]) || in.empty() || in[0] != 1 || graph_.out(node)[0] != 1)
      refuse(node);
    std::vector<std::string> inputs = node.inputs;
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (varies(inputs[i])) refuse(node);
    }
    inputs[0] = graph_.reshaped(lifted(node.inputs[0]), LiftedShape(in.begin() + 1, in.end()));
    write_between(node, std::move(inputs));
  }

  // The operator itself, on inputs that are not lifted.
  void write_between(const Node& node, std::vector<std::string> inputs) {
    for (size_t i = 1; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) refuse(node);
    }
    graph_.add_between(node, std::move(inputs));
  }

  void write_expand(const Node& node) {
    LiftedShape target = graph_.out(node);
    target.insert(target.begin(), 1);
    graph_.add(
        node, {graph_.with_rank(node.inputs[0], graph_.out(node).size()), graph_.integers(target)});
  }

  // Operators with axes as an attribute or an input.
  void write_along_axis(Node node, OpFacts::Axes axes) {
    using Axes = OpFacts::Axes;
    std::vector<std::string> inputs = node.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      // Constants among what is joined would have to be there for every row.
      const bool lift = varies(inputs[i]), joined = axes == Axes::kJoined;
      if (lift != (i == 0 || joined)) refuse(node);
      if (lift) inputs[i] = lifted(inputs[i]);
    }
    if (axes == Axes::kSlice && inputs.size() >= 3) {
      move_slice_axes(node, inputs);
    } else if (axes == Axes::kReduced) {
      move_reduced_axes(node, inputs);
    } else {
      move_axis(node, axes);
    }
    graph_.add(std::move(node), std::move(inputs));
  }

  void move_axis(Node& node, OpFacts::Axes axes) const {
    using Axes = OpFacts::Axes;
    const bool first = axes == Axes::kFromFirst || axes == Axes::kJoined;
    if (!first && axes != Axes::kFromLast && axes != Axes::kSoftmax) refuse(node);
    const bool flattens = axes == Axes::kSoftmax && graph_.opset() < 13;
    const int64_t axis = integer_of(node, "axis", first ? 0 : flattens ? 1 : -1);
    const auto rank = static_cast<int64_t>(shape(node.inputs[0]).size());
    if (flattens && axis != rank - 1 && axis != -1) refuse(node);
    node.attributes["axis"] = axis < 0 ? axis : axis + 1;
  }

  std::vector<int64_t> moved(std::vector<int64_t> axes) const {
    for (int64_t& axis : axes) axis += axis < 0 ? 0 : 1;
    return axes;
  }
  void move_slice_axes(const Node& node, std::vector<std::string>& inputs) {
    std::vector<int64_t> axes;
    if (inputs.size() > 3 && !inputs[3].empty()) {
      if (!graph_.constant(inputs[3]).defined()) refuse(node);
      axes = graph_.constant(inputs[3]).integers();
    } else {
      if (!graph_.constant(inputs[1]).defined()) refuse(node);
      axes.resize(static_cast<size_t>(graph_.constant(inputs[1]).numel()));
      std::iota(axes.begin(), axes.end(), 0);
    }
    inputs.resize(std::max<size_t>(inputs.size(), 4));
    inputs[3] = graph_.integers(moved(axes));
  }

  void move_reduced_axes(Node& node, std::vector<std::string>& inputs) {
    const auto found = node.attributes.find("axes");
    if (found != node.attributes.end()) {
      found->second = moved(std::get<std::vector<int64_t>>(found->second));
    } else if (inputs.size() > 1 && graph_.constant(inputs[1]).defined()) {
      inputs[1] = graph_.integers(moved(graph_.constant(inputs[1]).integers()));
    } else {
      refuse(node);
    }
  }

  const Network& head_;
  std::vector<BoundPlan> plans_;
  LiftedGraph graph_;
  std::map<std::string, torch::Tensor> values_;
};

}  // namespace

std::optional<std::string> moves_rows(const Network& head) {
  const std::vector<BoundPlan> plans = plan_bounds(head);
  for (size_t i = 0; i < plans.size(); ++i) {
    const Step& step = head.steps()[i];
    if (!plans[i].runs && moves_first_axis(step)) return describe(step.node);
  }
  return std::nullopt;
}

Graph rows_first(const Network& head, const torch::Tensor& row) {
  return RowsFirst(head, row).write();
}

}  // namespace fcp
