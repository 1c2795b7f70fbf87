#include "fcp/nn/ops/op.h"

#include <utility>

#include "fcp/base/error.h"

namespace fcp {

bool Op::batch_free(const Tensors&, const std::vector<bool>&) const { return false; }

BoundRule Op::bound_rule(const std::vector<bool>&) const { return BoundRule::kNone; }

BoundSupport Op::bounds(const std::vector<bool>& constant) const {
  const BoundRule rule = bound_rule(constant);
  if (rule == BoundRule::kNone) return BoundSupport::kNone;
  return rule == BoundRule::kInterval ? BoundSupport::kInterval : BoundSupport::kLinear;
}

std::vector<Range> Op::interval(const std::vector<Range>& inputs, double) const {
  Tensors lower, upper;
  for (const Range& input : inputs) {
    lower.push_back(input.lower);
    upper.push_back(input.upper);
  }
  lower = forward(lower);
  upper = forward(upper);
  std::vector<Range> outputs;
  for (size_t i = 0; i < lower.size(); ++i) outputs.push_back({lower[i], upper[i]});
  return outputs;
}

torch::Tensor Op::forward_with_epilogue(const Tensors&, const Epilogue&) const { return {}; }
double Op::roundings(const Tensors&) const { return 0; }
torch::Tensor Op::magnitude(const Tensors&) const { return {}; }
torch::Tensor Op::pull_back(const torch::Tensor&, const Tensors&) const { return {}; }
Op::BallOutput Op::over_ball(const BallInput&, const Tensors&) const { return {}; }
double Op::workspace(const Tensors&, const Tensors&) const { return 0; }
Remainder Op::remainder(const std::vector<Range>&, const Tensors&, double) const { return {}; }
int64_t Op::unit_sum(int64_t) const { return -1; }
Curve Op::curve(const Tensors&) const { return {}; }
torch::Tensor Op::candidates(const Tensors&) const { return {}; }

double Op::flops(const Tensors&, const Tensors& outputs) const {
  double elements = 0;
  for (const torch::Tensor& output : outputs) {
    if (output.defined()) elements += static_cast<double>(output.numel());
  }
  return elements;
}

template <typename T>
T OpArguments::get(const std::string& name, const char* kind, T fallback) {
  read_.insert(name);
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return fallback;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail(describe(node_), ": attribute '", name, "' must be ", kind);
  return *value;
}

bool OpArguments::has(const std::string& name) const { return node_.attributes.contains(name); }

int64_t OpArguments::integer(const std::string& name, int64_t fallback) {
  return get<int64_t>(name, "an integer", fallback);
}

double OpArguments::number(const std::string& name, double fallback) {
  return has(name) ? get<float>(name, "a number", 0) : (read_.insert(name), fallback);
}

std::string OpArguments::text(const std::string& name, const std::string& fallback) {
  return get<std::string>(name, "a string", fallback);
}

std::vector<int64_t> OpArguments::integers(const std::string& name, std::vector<int64_t> fallback) {
  return get<std::vector<int64_t>>(name, "a list of integers", std::move(fallback));
}

std::vector<float> OpArguments::numbers(const std::string& name) {
  return get<std::vector<float>>(name, "a list of numbers", {});
}

std::vector<std::string> OpArguments::texts(const std::string& name) {
  return get<std::vector<std::string>>(name, "a list of strings", {});
}

torch::Tensor OpArguments::tensor(const std::string& name) {
  return get<ConstantTensor>(name, "a tensor", {});
}

const Graph& OpArguments::graph(const std::string& name) {
  const Subgraph inner = get<Subgraph>(name, "a graph", nullptr);
  if (inner == nullptr) fail(describe(node_), ": has no graph '", name, "'");
  return *std::get<Subgraph>(node_.attributes.at(name));
}

void OpArguments::ignore(const std::string& name) { read_.insert(name); }

void OpArguments::expect_inputs(size_t least, size_t most) const {
  const size_t count = node_.inputs.size();
  if (count < least || count > most) {
    fail(describe(node_), ": has ", count, " inputs, expected ", least,
         least == most ? "" : concat(" to ", most));
  }
  for (size_t i = 0; i < least; ++i) {
    if (node_.inputs[i].empty()) fail(describe(node_), ": input ", i, " is absent but required");
  }
}

void OpArguments::finish() const {
  for (const auto& [name, value] : node_.attributes) {
    if (!read_.contains(name)) {
      fail(describe(node_), ": attribute '", name, "' is not known for ", node_.op, " at opset ",
           opset_);
    }
  }
}

}  // namespace fcp
