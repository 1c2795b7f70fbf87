// Heads as nodes of a graph: append_heads and append_rectifier of heads.h.
#include "fcp/training/heads_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/training/heads.h"
#include "fcp/training/loss.h"
#include "fcp/training/training_data.h"

namespace fcp {
namespace {

constexpr int64_t kLeastHeadOpset = 9;

// Appends nodes under names that the graph does not have yet.
class HeadWriter {
 public:
  HeadWriter(Graph& graph, std::string prefix) : graph_(graph), prefix_(std::move(prefix)) {
    if (graph_.opset < kLeastHeadOpset) {
      fail("the network is of ONNX operator set ", graph_.opset, ", heads need ", kLeastHeadOpset,
           " or later");
    }
    for (const TensorInfo& input : graph_.inputs) taken_.insert(input.name);
    for (const auto& [name, value] : graph_.initializers) taken_.insert(name);
    for (const Node& node : graph_.nodes) taken_.insert(node.outputs.begin(), node.outputs.end());
  }

  bool has(const std::string& tensor) const { return taken_.contains(tensor); }

  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::map<std::string, Attribute> attributes = {}, std::string output = "") {
    if (output.empty()) output = fresh(op);
    taken_.insert(output);
    graph_.nodes.push_back({output, op, "", std::move(inputs), {output}, std::move(attributes)});
    return output;
  }

  std::string constant(const torch::Tensor& value) {
    const std::string name = fresh("constant");
    graph_.initializers[name] = value.contiguous();
    return name;
  }

  std::string reshape(const std::string& x, const std::vector<int64_t>& shape) {
    return add("Reshape", {x, constant(torch::tensor(shape, torch::kLong))});
  }

  // The mean over the first axis, which is then gone. The axes are an input from operator set 18.
  std::string mean_over_members(const std::string& x, const std::string& output) {
    std::map<std::string, Attribute> attributes = {{"keepdims", int64_t{0}}};
    std::vector<std::string> inputs = {x};
    if (graph_.opset >= 18) {
      inputs.push_back(constant(torch::tensor({int64_t{0}}, torch::kLong)));
    } else {
      attributes["axes"] = std::vector<int64_t>{0};
    }
    return add("ReduceMean", std::move(inputs), std::move(attributes), output);
  }

  std::string clip(const std::string& x, const torch::Tensor& least, const torch::Tensor& most) {
    return add("Min", {add("Max", {x, constant(least)}), constant(most)});
  }

  void output(const std::string& name, int64_t columns, const TensorInfo& like) {
    TensorInfo info;
    info.name = name;
    const bool rows = like.known_rank && !like.shape.empty();
    info.shape = {rows ? like.shape[0] : kDynamic, columns};
    info.dimension_names = {rows && !like.dimension_names.empty() ? like.dimension_names[0] : "",
                            ""};
    graph_.outputs.push_back(info);
  }

 private:
  std::string fresh(const std::string& stem) {
    std::string name;
    do {
      name = concat(prefix_, "/", stem, "_", made_++);
    } while (taken_.contains(name));
    taken_.insert(name);
    return name;
  }

  Graph& graph_;
  std::string prefix_;
  std::set<std::string> taken_;
  int64_t made_ = 0;
};

// The feature as [E, N, D] and the prediction as [N, K], in single precision.
struct HeadInputs {
  std::string features, prediction;
};

HeadInputs write_inputs(HeadWriter& writer, const std::string& feature,
                        const std::string& prediction, const torch::Tensor& columns,
                        int64_t members, int64_t width, const torch::Tensor& fill = {}) {
  const std::map<std::string, Attribute> to_float = {{"to", int64_t{1}}};
  const std::map<std::string, Attribute> rows_first = {{"axis", int64_t{1}}};
  std::string flat = writer.add("Flatten", {writer.add("Cast", {feature}, to_float)}, rows_first);
  if (columns.defined()) {
    flat = writer.add("Gather", {flat, writer.constant(columns)}, {{"axis", int64_t{1}}});
  }
  if (fill.defined()) {
    flat = writer.add("Where", {writer.add("IsNaN", {flat}), writer.constant(fill), flat});
  }
  const std::string apart = writer.reshape(flat, {-1, members, width});
  return {writer.add("Transpose", {apart}, {{"perm", std::vector<int64_t>{1, 0, 2}}}),
          writer.add("Flatten", {writer.add("Cast", {prediction}, to_float)}, rows_first)};
}

std::string write_standardised(HeadWriter& writer, const std::string& x, const torch::Tensor& mean,
                               const torch::Tensor& deviation) {
  const std::string scaled = writer.add(
      "Div", {writer.add("Sub", {x, writer.constant(mean)}), writer.constant(deviation)});
  return writer.clip(scaled, torch::full({1}, -kFeatureClip, torch::kFloat),
                     torch::full({1}, kFeatureClip, torch::kFloat));
}

// [E, N, O].
std::string write_perceptrons(HeadWriter& writer, const HeadInputs& inputs,
                              const Perceptrons& made) {
  const std::string u =
      write_standardised(writer, inputs.features, made.feature_mean, made.feature_deviation);
  const std::string p = write_standardised(writer, inputs.prediction, made.prediction_mean,
                                           made.prediction_deviation);
  const std::string sum =
      writer.add("Add", {writer.add("MatMul", {u, writer.constant(made.feature_weight)}),
                         writer.add("MatMul", {p, writer.constant(made.prediction_weight)})});
  const std::string hidden =
      writer.add("Relu", {writer.add("Add", {sum, writer.constant(made.hidden_bias)})});
  return writer.add("Add", {writer.add("MatMul", {hidden, writer.constant(made.output_weight)}),
                            writer.constant(made.output_bias)});
}

// shift + scale · x, kept within its range.
std::string write_scaled(HeadWriter& writer, const std::string& x, const torch::Tensor& shift,
                         const torch::Tensor& scale, const torch::Tensor& least,
                         const torch::Tensor& most) {
  const std::string value =
      writer.add("Add", {writer.add("Mul", {x, writer.constant(scale)}), writer.constant(shift)});
  return writer.clip(value, least, most);
}

// loss.h, in units of `spread` [E, N, K]; the mean of the members, [N, K · Q].
void write_quantiles(HeadWriter& writer, const HeadInputs& inputs, const FeatureHeads& heads,
                     const std::string& spread, const std::string& name) {
  const int64_t members = heads.spread.members(), outputs = heads.spread_floor.size(2);
  const int64_t quantiles = heads.quantiles.output_bias.size(2) / outputs;
  const std::string raw = writer.reshape(write_perceptrons(writer, inputs, heads.quantiles),
                                         {members, -1, outputs, quantiles});
  torch::Tensor middle = torch::zeros({quantiles});
  middle[quantiles / 2] = 1;
  const std::string steps =
      writer.add("Add", {writer.add("Softplus", {raw}), writer.constant(heads.step_floor)});
  const std::string parts =
      writer.add("Add", {writer.add("Mul", {raw, writer.constant(middle)}),
                         writer.add("Mul", {steps, writer.constant(1 - middle)})});
  const std::string rising =
      writer.add("MatMul", {parts, writer.constant(rising_matrix(quantiles))});
  const std::string unit = writer.reshape(spread, {members, -1, outputs, 1});
  const std::string mean = writer.mean_over_members(writer.add("Mul", {rising, unit}), "");
  writer.add(
      "Reshape",
      {mean, writer.constant(torch::tensor({int64_t{-1}, outputs * quantiles}, torch::kLong))}, {},
      name);
}

// loss.h, times `spread` [E, N, K]; the mean of the members, [N, K · K].
void write_factors(HeadWriter& writer, const HeadInputs& inputs, const FeatureHeads& heads,
                   const std::string& spread, const std::string& name) {
  const int64_t members = heads.spread.members(), outputs = heads.spread_floor.size(2);
  const torch::Tensor diagonal = torch::eye(outputs);
  const torch::Tensor middle = heads.factor_start.reshape({outputs, outputs}) * diagonal;
  const std::string raw = writer.reshape(write_perceptrons(writer, inputs, heads.factors),
                                         {members, -1, outputs, outputs});
  const std::string logs = writer.clip(writer.add("Mul", {raw, writer.constant(diagonal)}),
                                       middle - kFactorRange * diagonal,
                                       middle + kFactorRange * diagonal);  // 0 off the diagonal
  const std::string below = writer.constant(torch::ones({outputs, outputs}).tril(-1));
  const std::string factors =
      writer.add("Add", {writer.add("Mul", {writer.add("Exp", {logs}), writer.constant(diagonal)}),
                         writer.add("Mul", {raw, below})});
  const std::string unit = writer.reshape(spread, {members, -1, outputs, 1});
  const std::string mean = writer.mean_over_members(writer.add("Mul", {factors, unit}), "");
  writer.add("Reshape",
             {mean, writer.constant(torch::tensor({int64_t{-1}, outputs * outputs}, torch::kLong))},
             {}, name);
}

// The graph without outputs of these names and what only they need.
void drop_outputs(Graph& graph, const std::set<std::string>& names) {
  std::vector<TensorInfo> kept;
  for (const TensorInfo& output : graph.outputs) {
    if (!names.contains(output.name)) kept.push_back(output);
  }
  if (kept.size() == graph.outputs.size()) return;
  Graph rest = extract(graph, graph.inputs, kept);
  rest.metadata = graph.metadata;
  graph = std::move(rest);
}

const TensorInfo& check_places(const Graph& graph, const HeadWriter& writer,
                               const std::string& feature, const std::string& prediction) {
  if (!writer.has(feature)) fail("heads: the network has no tensor '", feature, "'");
  const auto found = std::find_if(graph.outputs.begin(), graph.outputs.end(),
                                  [&](const TensorInfo& info) { return info.name == prediction; });
  if (found == graph.outputs.end()) fail("heads: the network has no output '", prediction, "'");
  return *found;
}

}  // namespace

void append_heads(Graph& graph, const std::string& feature, const std::string& prediction,
                  const FeatureHeads& heads, const HeadNames& names) {
  drop_outputs(graph, {names.spread, names.quantiles, names.factors});
  HeadWriter writer(graph, "fcp.heads");
  const TensorInfo like = check_places(graph, writer, feature, prediction);
  const int64_t members = heads.spread.members(), outputs = heads.spread_floor.size(2);
  const HeadInputs inputs = write_inputs(writer, feature, prediction, heads.columns, members,
                                         heads.spread.feature_weight.size(1));
  const std::string log_spread =
      write_scaled(writer, write_perceptrons(writer, inputs, heads.spread), heads.spread_shift,
                   heads.spread_scale, heads.spread_least, heads.spread_most);
  const std::string spread =
      writer.add("Add", {writer.add("Exp", {log_spread}), writer.constant(heads.spread_floor)});
  if (!names.spread.empty()) {
    writer.mean_over_members(spread, names.spread);
    writer.output(names.spread, outputs, like);
  }
  if (!names.quantiles.empty()) {
    write_quantiles(writer, inputs, heads, spread, names.quantiles);
    writer.output(names.quantiles, heads.quantiles.output_bias.size(2), like);
  }
  if (!names.factors.empty() && heads.factor_start.defined()) {
    write_factors(writer, inputs, heads, spread, names.factors);
    writer.output(names.factors, outputs * outputs, like);
  }
  sort_and_check(graph);
}

void append_rectifier(Graph& graph, const std::string& feature, const std::string& prediction,
                      const Rectifier& rectifier, const std::string& name) {
  drop_outputs(graph, {name});
  HeadWriter writer(graph, "fcp.rectifier");
  const TensorInfo like = check_places(graph, writer, feature, prediction);
  const HeadInputs inputs = write_inputs(writer, feature, prediction, rectifier.columns, 1,
                                         rectifier.network.feature_weight.size(1), rectifier.fill);
  const std::string value =
      write_scaled(writer, write_perceptrons(writer, inputs, rectifier.network), rectifier.shift,
                   rectifier.scale, rectifier.least, rectifier.most);
  writer.mean_over_members(rectifier.difference ? value : writer.add("Exp", {value}), name);
  writer.output(name, rectifier.network.output_bias.size(2), like);
  sort_and_check(graph);
}

bool add_heads(const Array& y, const TabularOptions& made, TabularResult& trained) {
  constexpr size_t kLeastRows = 30;  // of each member
  const auto enough = [](const UnseenRows& member) { return member.rows.size() >= kLeastRows; };
  if (!std::all_of(trained.members.begin(), trained.members.end(), enough)) return false;

  torch::NoGradGuard no_grad;
  const auto rows = static_cast<int64_t>(y.rows());
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()),
                       {rows, static_cast<int64_t>(y.row_size())}, torch::kFloat);
  const torch::Tensor weight = mean_one(made.row_weights);
  std::vector<HeadMember> members;
  for (const UnseenRows& member : trained.members) {
    const torch::Tensor rows_of_member = torch::tensor(member.rows, torch::kLong);
    const torch::Tensor own = truth.index_select(0, rows_of_member);
    members.push_back({member.features, member.predictions, own - member.predictions});
    HeadMember& added = members.back();
    if (weight.defined()) added.weight = weight.index_select(0, rows_of_member);
    for (const int64_t row : member.rows) {
      if (!made.groups.empty()) added.groups.push_back(made.groups[static_cast<size_t>(row)]);
    }
  }
  constexpr size_t kMostFactors = 64;  // outputs, whose factors have as many rows and columns
  HeadOptions options;
  options.fit.seed = made.seed;
  options.factors = y.row_size() > 1 && y.row_size() <= kMostFactors;
  append_heads(trained.graph, "features", "prediction", fit_heads(members, options));
  return true;
}

}  // namespace fcp
