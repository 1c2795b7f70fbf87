// One operator of a network, ready to run. An Op is made once from its node (attributes read and
// checked then) and is immutable afterwards, so any number of threads may run it.
//
// Adding an operator: write a class and its factory in a file of fcp/nn/ops/, and add a line to
// ops/operators.inc. CONTRIBUTING.md walks through an example.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"
#include "fcp/nn/kernels/cpu/epilogue.h"
#include "fcp/nn/ops/curve.h"

namespace fcp {

// One tensor per input or output of a node; an absent optional one is an undefined tensor.
using Tensors = std::vector<torch::Tensor>;

// How an operator's outputs follow from those of its inputs that are not constants. This decides
// how ranges go through it (walk.h) and which of the hooks below it must override.
enum class BoundRule {
  kNone,      // not known
  kShape,     // by the inputs' shapes alone
  kInterval,  // by interval(), and nothing else is known
  kSmooth,    // by interval(), and near its tangent: remainder(), one output
  kAffine,    // every number is a weighted sum of the inputs' numbers plus a constant: interval()
              // where a larger input may make a smaller output, roundings() where it computes
  kBilinear,  // a product of two varying inputs: linear in each of them, no terms beside;
              // interval()
  kCurve,     // every number is curve() of the number at its place in the first input
  kLargest,   // every number is the largest of its candidates()
  kSmallest,  // … the smallest
};

// What follows for an operator: no ranges, an interval of its output from intervals of its inputs
// (which linear bounds take as two constants), or also linear functions of its inputs between which
// its output lies.
enum class BoundSupport { kNone, kInterval, kLinear };

// How far an output may be from its tangent, and what rounding adds to that.
struct Remainder {
  Range exact;             // of f(x) − f(m) − f'(m)(x − m); NaN where nothing is known
  torch::Tensor rounding;  // undefined: nothing
};

// What an operator does with a NaN that stands for a missing value (missing_values.h).
enum class MissingRule {
  kSpreads,  // computes with it
  kMoves,    // copies it, as any number, to places that do not depend on the numbers
  kReads,    // takes it as a value: no output is NaN because of it
  kTests,    // is true exactly where it stands
  kNegates,  // not of a truth value
  kSelects,  // the first input decides at each place between the other two
};

class Op {
 public:
  virtual ~Op() = default;

  // Computes the outputs. Floating-point data lies on one device; integer tensors that say shapes,
  // axes or indices lie on the CPU. Differentiable by autograd where differentiable() says so.
  virtual Tensors forward(const Tensors& inputs) const = 0;

  // forward() of the one output and what follows it, without gradients, at less cost than one after
  // the other and with the same bits; images come and go in any layout. Undefined: not possible.
  virtual torch::Tensor forward_with_epilogue(const Tensors& inputs,
                                              const Epilogue& epilogue) const;

  // Whether the bits of each row of the outputs are the same in batches of any size, where that
  // depends on attributes or constants; kBatchFree (op_traits.h) says it of other operators. Inputs
  // that vary are undefined in `inputs`; those that are absent are constant.
  virtual bool batch_free(const Tensors& inputs, const std::vector<bool>& constant) const;

  // Whether gradients flow from the outputs back to the first input.
  virtual bool differentiable() const { return true; }

  // The rule when the inputs marked in `constant` are constants; absent inputs are.
  virtual BoundRule bound_rule(const std::vector<bool>& constant) const;
  BoundSupport bounds(const std::vector<bool>& constant) const;

  // The outputs' ranges from the inputs', in plain arithmetic and such that a larger range never
  // gives a smaller one, to the last bit. By default the outputs of both ends, which is right where
  // no output falls when an input rises. `unit` > 0 asks a rule of kind kInterval or kBilinear, and
  // no other, to hold what rounding with this roundoff can do.
  virtual std::vector<Range> interval(const std::vector<Range>& inputs, double unit) const;

  // kAffine, kBilinear: k such that the computed output is off by less than k roundoffs of its
  // magnitude Σ |w·x| + |constant|. magnitude() says it for inputs that hold |x| where the constant
  // is itself a difference; undefined: from interval().
  virtual double roundings(const Tensors& inputs) const;
  virtual torch::Tensor magnitude(const Tensors& inputs) const;

  // kAffine, optional: what Σ a·output says of the one input that varies, [S, N, …] to [S, N, …].
  // Undefined: by autograd through forward().
  virtual torch::Tensor pull_back(const torch::Tensor& coefficients, const Tensors& inputs) const;

  // kAffine, for an operator that multiplies its first input by a constant one: over all inputs
  // whose distance from `center` [N, …], weighted by 1 / scale [1, …], is at most r, each number of
  // the output ranges over center ± r · reach. Undefined: not known.
  enum class BallShape { kBox, kRound, kDiamond };  // of the ℓ∞, ℓ2 and ℓ1 norms
  struct BallInput {
    torch::Tensor center, scale;
    BallShape shape = BallShape::kBox;
  };
  struct BallOutput {
    torch::Tensor center, reach;  // [N, …], [1, …]
  };
  virtual BallOutput over_ball(const BallInput& ball, const Tensors& inputs) const;

  // kSmooth: the remainder of the output over the inputs' ranges, at their middles m (constants
  // stand among both), where forward() is differentiable; and rounding with this roundoff.
  // unit_sum() is the axis along which the exact outputs always add up to 1; -1: none.
  virtual Remainder remainder(const std::vector<Range>& inputs, const Tensors& middles,
                              double unit) const;
  virtual int64_t unit_sum(int64_t rank) const;

  // kCurve: the function, with the constants among the inputs.
  virtual Curve curve(const Tensors& inputs) const;

  // kLargest, kSmallest: the inputs' numbers, in the output's shape and one dimension more.
  virtual torch::Tensor candidates(const Tensors& inputs) const;

  // Numbers that one forward of a single row may need beside its inputs and outputs.
  virtual double workspace(const Tensors& inputs, const Tensors& outputs) const;

  virtual MissingRule missing_rule() const { return MissingRule::kSpreads; }

  // Multiplications and additions of one forward, as shown by `fcp inspect`.
  virtual double flops(const Tensors& inputs, const Tensors& outputs) const;
};

// What a factory reads: the node, the operator set its meaning comes from, and typed access to its
// attributes. A wrong type is an error that names node and attribute; so is, in epilogue(), an
// attribute that nobody asked for, because ignoring it would change the network's meaning.
class OpArguments {
 public:
  OpArguments(const Node& node, int64_t opset) : node_(node), opset_(opset) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }

  bool has(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t fallback);
  double number(const std::string& name, double fallback);
  std::string text(const std::string& name, const std::string& fallback);
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> fallback = {});
  std::vector<float> numbers(const std::string& name);
  std::vector<std::string> texts(const std::string& name);
  torch::Tensor tensor(const std::string& name);
  const Graph& graph(const std::string& name);  // must be there
  void ignore(const std::string& name);         // has no effect on inference, by its definition

  // Checks the number of inputs, and that the first `least` of them are present.
  void expect_inputs(size_t least, size_t most) const;

  void finish() const;  // throws when an attribute was not read

 private:
  template <typename T>
  T get(const std::string& name, const char* kind, T fallback);

  const Node& node_;
  int64_t opset_;
  std::set<std::string> read_;
};

// Makes the Op of a node. Throws an Error that names op, node and domain when there is no such
// operator, or when it is used in a way that is not supported.
std::unique_ptr<Op> make_op(const Node& node, int64_t opset);

// What make_op has to say against the graph's nodes: one message for each node, and one for all
// nodes of an operator that is not known. The second throws them all as one Error.
std::vector<std::string> unsupported_nodes(const Graph& graph);
void check_supported(const Graph& graph);

}  // namespace fcp
