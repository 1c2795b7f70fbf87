// Interval bound propagation written as ONNX nodes: for each tensor of a head two more, its lower
// and its upper end over the ball around the feature, by the rules that fcp/bounds/walk.h runs.
//
//   first layer   z ± r·reach: W u + b over the ball, z the network's own tensor, reach a constant
//   later layers  (W c + b) ± |W| ρ with c = (l + u) / 2, ρ = (u − l) / 2
//   rising        f(l), f(u): rising activations, sums, pooling, reshaping, Resize
//   other curves  the least and the largest of f at both ends and at the turns inside [l, u]
//   Sub           l − u', u − l'
//   Mul, Div      by anything, by a constant: the least and the largest of the corners
//   Einsum        of two varying factors: c d ± (|c| σ + ρ |d| + ρ σ)
//   LayerNormalization, InstanceNormalization, Softmax, Sin, Cos   precision.h
//
// Which it is, the table of operators says (fcp/nn/ops/operators.inc); an operator without one is
// refused by its name. Cost: two products a layer beside the network's own, none for the first
// layer; the file grows by |W| of the later layers.
// Tested by tests/export/export_test.cc.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/bounds/walk.h"
#include "fcp/export/graph_builder.h"
#include "fcp/methods/scores/nested.h"

namespace fcp {

// Two tensors of the graph; one and the same for what does not vary with the feature.
struct Ends {
  std::string lower, upper;

  bool fixed() const { return lower == upper; }
};

class RangeWriter {
 public:
  // `feature` [1, …] is an example, which says the shape. The builder must have all tensors of the
  // head, and must outlive the writer.
  RangeWriter(GraphBuilder& builder, const std::shared_ptr<const Network>& head,
              const NestedOptions& score, const torch::Tensor& feature);

  // Writes the nodes for one radius ≥ 0; the ends of each output of the head. `factor`, where there
  // is one, is a tensor [N, 1] that multiplies the radius, row by row.
  std::vector<Ends> ranges(double radius, const std::string& factor = "");

  // An Error where single precision loses too much of an output's interval (precision.h).
  void check_precision(double radius, size_t output) const;

 private:
  using Slots = std::vector<Ends>;

  std::vector<Ends> step_inputs(const Step& step, Slots& slots, double radius,
                                const std::string& factor);
  std::vector<Ends> step_ends(size_t index, const std::vector<Ends>& inputs);
  std::vector<Ends> at_both_ends(const Node& node, const std::vector<Ends>& inputs);
  template <typename T>
  static T attribute_of(const Node& node, const std::string& name, T fallback);
  Ends softmax(const Node& node, const Ends& x);
  Ends normalized(const Step& step, const std::vector<Ends>& inputs);
  std::vector<Ends> product(const Step& step, const std::vector<Ends>& inputs);
  Ends unless_zero(const Ends& ends, const Ends& divisor);
  Ends product_of_two(const Ends& x, const Ends& y);
  Ends product_by_centers(const Node& node, const Ends& x, const Ends& y);
  Ends normalized_channels(const Step& step, const Ends& x);
  std::vector<Ends> curve(const Step& step, const std::vector<Ends>& inputs);
  std::vector<Ends> corners(const Node& node, const std::vector<Ends>& inputs);
  Ends around(const std::string& center, const torch::Tensor& reach, const std::string& factor);
  std::string magnitude(const Step& step, size_t input, const std::string& name);
  std::string number(double value);

  GraphBuilder& builder_;
  PreparedHead head_;
  Ball ball_;
  FirstOutputs first_;
  std::map<std::string, std::string> magnitudes_;    // |W| by W
  std::map<std::string, torch::Tensor> examples_{};  // outputs whose shapes the nodes need
};

}  // namespace fcp
