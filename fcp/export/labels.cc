#include "fcp/export/labels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/export/precision.h"
#include "fcp/methods/scores/feature_margin.h"
#include "fcp/methods/scores/labels.h"
#include "fcp/methods/scores/margin_head.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/distribution.h"

namespace fcp {
namespace {

constexpr int64_t kOnnxDouble = 11;  // of TensorProto.DataType
constexpr int64_t kOnnxFloat = 1;
constexpr int64_t kOnnxInt64 = 7;
constexpr int64_t kSortingOpset = 11;  // the first whose TopK, CumSum and ScatterElements all exist

class LabelWriter {
 public:
  LabelWriter(GraphBuilder& builder, const CalibrationArtifact& artifact, const ExportHead& head)
      : builder_(builder),
        artifact_(artifact),
        score_(artifact.method.score),
        rounding_(builder, artifact.rounding),
        logit_head_(logit_head(head.network, artifact.method.score.output)),
        output_(head.network->outputs()[output_index(*head.network, score_.output)].name) {
    const std::string logits = logit_tensor();
    logits_ = builder_.add("Cast", {builder_.reshape_rows(logits, {-1})}, {{"to", kOnnxFloat}});
    wide_ = builder_.add("Cast", {logits_}, {{"to", kOnnxDouble}});
    scores_ = std::visit([&](const auto& options) { return scores_of(options, head.feature); },
                         score_.own);
    if (!score_.value(field::allow_empty)) scores_ = with_answer(scores_);
  }

  // The logits; where the network has probabilities alone, the nodes that logit_head puts behind
  // them come along.
  std::string logit_tensor() {
    const Graph graph = logit_head_.network->graph();
    std::map<std::string, std::string> added;
    for (const Node& node : graph.nodes) {
      if (builder_.has(node.outputs[0])) continue;
      std::vector<std::string> inputs;
      for (const std::string& input : node.inputs) {
        const auto found = added.find(input);
        const bool known = input.empty() || builder_.has(input);
        inputs.push_back(found != added.end() ? found->second
                         : known              ? input
                                              : builder_.constant(graph.initializers.at(input)));
      }
      added[node.outputs[0]] = builder_.copy(node, inputs)[0];
    }
    const std::string& name = graph.outputs[0].name;
    return added.contains(name) ? added[name] : name;
  }

  int64_t classes() const { return logit_head_.classes; }

  // Whether score ≤ r, as score < the next double, so that a NaN is not in.
  std::string members(const Level& level) {
    const torch::Tensor radii = radii_at(level);
    const torch::Tensor next = torch::nextafter(radii, torch::full_like(radii, kInfinity));
    std::string below = builder_.constant(next);
    const torch::Tensor infinite = radii == kInfinity;
    std::string always = infinite.any().item<bool>() ? builder_.constant(infinite) : "";
    if (by_prediction()) {
      const std::string answer = builder_.reshape_rows(output_, {-1});
      const std::string label =
          builder_.add("ArgMax", {answer}, {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}});
      below = builder_.add("Gather", {below, label});
      if (!always.empty()) always = builder_.add("Gather", {always, label});
    }
    const std::string in = builder_.add("Less", {scores_, below});
    return always.empty() ? in : builder_.add("Or", {in, always});
  }

  // The calibrated probabilities and their pair: a share is looked up among the scores at which
  // either changes.
  std::vector<std::string> chances() {
    check_chances(artifact_.chances, classes());
    const double* const own = score_.find(field::temperature);
    std::string shares = probabilities(own == nullptr ? 1 : *own);
    const bool two = artifact_.chances.size() == 1;
    if (two) {
      const std::string second = builder_.constant(torch::ones({1}, torch::kLong));
      shares = builder_.add("Gather", {shares, second}, {{"axis", int64_t{1}}});
    }
    const StepTables tables = step_tables(artifact_.chances);
    const auto fitted = static_cast<int64_t>(artifact_.chances.size());
    const std::string own_share = builder_.reshape_rows(shares, {fitted, 1});
    const std::string from = builder_.constant(tables.from);
    const std::string behind = builder_.add("Less", {from, own_share});
    const std::string reached = builder_.add("Not", {builder_.add("Less", {own_share, from})});
    std::string p0 = looked_up(tables.p0, reached), p1 = looked_up(tables.p1, behind);
    if (two) {
      const auto both = [&](const std::string& other, const std::string& second) {
        const std::string first = builder_.add("Sub", {doubles({1}), other});
        return builder_.add("Concat", {first, second}, {{"axis", int64_t{1}}});
      };
      const std::string low = both(p1, p0), high = both(p0, p1);
      p0 = low;
      p1 = high;
    }
    const std::string rest = builder_.add("Sub", {doubles({1}), p0});
    std::string merged = builder_.add("Div", {p1, builder_.add("Add", {rest, p1})});
    if (!two) merged = builder_.add("Div", {merged, builder_.reduce("ReduceSum", merged, 1, true)});
    std::vector<std::string> all;
    for (const std::string& one : {merged, p0, p1}) {
      all.push_back(builder_.add("Cast", {one}, {{"to", kOnnxFloat}}));
    }
    return all;
  }

 private:
  // Of each of S classes the scores at which its steps begin, [1, S, M], and their values after 0,
  // 1, …, M of them, [S, M + 1]; behind the last one +∞.
  struct StepTables {
    torch::Tensor from, p0, p1;
  };
  static StepTables step_tables(const std::vector<VennAbers>& chances) {
    size_t most = 2;
    for (const VennAbers& one : chances) most = std::max(most, one.steps().size());
    const auto classes = static_cast<int64_t>(chances.size()), width = static_cast<int64_t>(most);
    StepTables tables{torch::full({1, classes, width - 1}, kInfinity, torch::kDouble),
                      torch::zeros({classes, width}, torch::kDouble),
                      torch::zeros({classes, width}, torch::kDouble)};
    for (int64_t k = 0; k < classes; ++k) {
      const std::vector<VennAbers::Step>& steps = chances[static_cast<size_t>(k)].steps();
      for (size_t i = 0; i < most; ++i) {
        const VennAbers::Step& step = steps[std::min(i, steps.size() - 1)];
        const auto at = static_cast<int64_t>(i);
        tables.p0[k][at] = step.p0;
        tables.p1[k][at] = step.p1;
        if (i > 0 && i < steps.size()) tables.from[0][k][at - 1] = step.from;
      }
    }
    return tables;
  }

  // The value of each class's table [S, M + 1] after as many steps as are taken, [N, S, M] bool.
  std::string looked_up(const torch::Tensor& table, const std::string& taken) {
    const std::string counted = builder_.reduce(
        "ReduceSum", builder_.add("Cast", {taken}, {{"to", kOnnxDouble}}), 2, false);
    const torch::Tensor first = torch::arange(table.size(0), torch::kLong) * table.size(1);
    const std::string place =
        builder_.add("Add", {builder_.add("Cast", {counted}, {{"to", kOnnxInt64}}),
                             builder_.constant(first.unsqueeze(0))});
    return builder_.add("Gather", {builder_.constant(table.flatten().contiguous()), place});
  }

  // Of each score, [N, C].
  template <typename Options>
  std::string scores_of(const Options& options, const torch::Tensor&) {
    fail(options.kName, " is not exported");
  }
  std::string scores_of(const LacOptions& options, const torch::Tensor&) {
    const double temperature = options.temperature;
    return builder_.add("Sub", {doubles({1}), with_slack(probabilities(temperature), temperature)});
  }
  std::string scores_of(const ApsOptions& options, const torch::Tensor&) {
    return running_sums(options.temperature, {});
  }
  std::string scores_of(const RapsOptions& options, const torch::Tensor&) {
    return running_sums(options.temperature, terms(options.rank_weight, options.rank_free));
  }
  // Not randomised, saps is the largest probability and a rank term with one free rank.
  std::string scores_of(const SapsOptions& options, const torch::Tensor&) {
    const double temperature = options.temperature;
    const std::string largest = builder_.reduce("ReduceMax", probabilities(temperature), 1, true);
    return builder_.add(
        "Add", {with_slack(largest, temperature, -3), ranked_terms(terms(options.rank_weight, 1))});
  }
  std::string scores_of(const FeatureMarginOptions& options, const torch::Tensor& feature) {
    return margins(options, feature);
  }

  bool by_prediction() const {
    return artifact_.method.calibration.value(field::group) == kByPrediction;
  }

  // 0 for the label of the largest logit, and for others that rounding may bring above it.
  std::string with_answer(const std::string& scores) {
    const std::string largest = builder_.reduce("ReduceMax", wide_, 1, true);
    const std::string slack = builder_.add("Mul", {logit_rounding(), doubles({2})});
    const std::string less = builder_.add("Less", {wide_, builder_.add("Sub", {largest, slack})});
    const std::string kept = builder_.add("Cast", {less}, {{"to", kOnnxDouble}});
    return builder_.add("Mul", {scores, kept});  // a NaN stays one
  }

  // [1, 1]; class by class [1, C]; by prediction one for each answer, [C].
  torch::Tensor radii_at(const Level& level) const {
    const auto calibration =
        make_calibration(artifact_.method.calibration, artifact_.rows, classes());
    TestInputs rows{torch::zeros({1, 1}), {}, {}};
    if (!by_prediction()) return calibration->radii(rows, level).contiguous();
    rows.features = torch::zeros({classes(), 1});
    rows.groups.resize(static_cast<size_t>(classes()));
    std::iota(rows.groups.begin(), rows.groups.end(), 0);
    return calibration->radii(rows, level).select(1, 0).contiguous();
  }

  std::string probabilities(double temperature) {
    const std::string cooled =
        temperature == 1 ? wide_ : builder_.add("Div", {wide_, doubles({temperature})});
    return builder_.add("Softmax", {cooled}, {{"axis", int64_t{1}}});
  }

  // Shares of probability, [N, C], times exp(3 d / T), or as often as asked: export.h says why.
  std::string with_slack(const std::string& shares, double temperature, double times = 3) {
    const double most = kMostRounding * temperature;
    if (rounding_.of_logits() > most) {
      fail("rounding in single precision changes logits by ",
           rounding_.of_logits() / kRoundingSafety,
           " and another runtime by another part of it, which is not small beside the temperature ",
           temperature, "; scale the inputs to export");
    }
    const std::string part =
        builder_.add("Mul", {logit_rounding(), doubles({times / temperature})});
    return builder_.add("Mul", {shares, builder_.add("Exp", {part})});
  }

  // d = ε max|z| and what was measured, [N, 1] doubles.
  std::string logit_rounding() {
    const std::string relative = builder_.add("Mul", {largest_logit(), doubles({kRuntimeSlack})});
    return rounding_.added(relative, rounding_.of_logits(), 2, torch::kDouble);
  }

  // max_j |z_j| over the finite ones, [N, 1] doubles: a probability of 0 has the logit −∞.
  std::string largest_logit() {
    const std::string size = builder_.add("Abs", {wide_});
    const std::string finite =
        builder_.add("Less", {size, doubles({std::numeric_limits<double>::infinity()})});
    const std::string kept = builder_.add("Where", {finite, size, doubles({0})});
    return builder_.reduce("ReduceMax", kept, 1, true);
  }

  // The labels by rank, [N, C]: TopK puts the lower label first where logits are equal.
  std::string order() {
    if (builder_.graph().opset < kSortingOpset) {
      fail("the network is of ONNX operator set ", builder_.graph().opset,
           ", to rank labels takes ", kSortingOpset, " or later");
    }
    const std::string count = builder_.constant(torch::full({1}, classes(), torch::kLong));
    Node node;
    node.op = "TopK";
    node.outputs = {"values", "order"};
    node.attributes = {{"axis", int64_t{1}}};
    return builder_.copy(node, {logits_, count})[1];
  }

  // The rank term of rank 1, 2, …, [1, C].
  torch::Tensor terms(double weight, int64_t free) const {
    const torch::Tensor ranks = torch::arange(1, classes() + 1, torch::kLong);
    return rank_terms(ranks, {weight, free}).unsqueeze(0);
  }

  // The rank terms [1, C] of every label, [N, C].
  std::string ranked_terms(const torch::Tensor& of_ranks) {
    const std::string ranked = order();
    const std::string shape = builder_.add("Shape", {ranked});
    const std::string in_order = builder_.add("Expand", {builder_.constant(of_ranks), shape});
    return builder_.add("ScatterElements", {wide_, ranked, in_order}, {{"axis", int64_t{1}}});
  }

  // aps, raps: the probabilities of all labels up to this one: all less those after it; and where
  // they are defined, the rank terms.
  std::string running_sums(double temperature, const torch::Tensor& terms) {
    const std::string ranked = order();
    const std::string sorted = builder_.add("GatherElements", {probabilities(temperature), ranked},
                                            {{"axis", int64_t{1}}});
    const std::string axis = builder_.constant(torch::tensor(int64_t{1}));
    const std::string after = builder_.add("CumSum", {sorted, axis},
                                           {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
    std::string sums = builder_.add("Sub", {doubles({1}), with_slack(after, temperature)});
    if (terms.defined()) sums = builder_.add("Add", {sums, builder_.constant(terms)});
    return builder_.add("ScatterElements", {wide_, ranked, sums}, {{"axis", int64_t{1}}});
  }

  // max_j (z_j − z_k) / ‖W_j − W_k‖ of every label k.
  std::string margins(const FeatureMarginOptions& options, const torch::Tensor& feature) {
    const AffineTail tail = affine_tail(logit_head_, feature);
    if (!tail.whole()) {
      fail("feature_margin behind more than one linear layer compares bounds of all pairs of ",
           "labels, which is not written as ONNX nodes; calibrate with the cut -1");
    }
    if (classes() > kMostMarginClasses) {
      fail("feature_margin compares all pairs of labels: export takes at most ", kMostMarginClasses,
           " classes, found ", classes());
    }
    const std::string inverse = builder_.constant(inverse_distances(tail.weight, options.norm));
    const std::string pairs = builder_.add(
        "Sub", {builder_.reshape_rows(logits_, {1, -1}), builder_.reshape_rows(logits_, {-1, 1})});
    const std::string slack = builder_.add(
        "Cast", {builder_.add("Mul", {logit_rounding(), doubles({2})})}, {{"to", kOnnxFloat}});
    const std::string least = builder_.add("Sub", {pairs, builder_.reshape_rows(slack, {1, 1})});
    const std::string largest =
        builder_.reduce("ReduceMax", builder_.add("Mul", {least, inverse}), 2, false);
    const std::string margin = builder_.add("Cast", {largest}, {{"to", kOnnxDouble}});
    if (options.rank_weight == 0) return margin;
    const std::string of_label = ranked_terms(terms(options.rank_weight, options.rank_free));
    return builder_.add("Add", {margin, of_label});
  }

  std::string doubles(const std::vector<double>& values) {
    return builder_.constant(torch::tensor(values, torch::kDouble));
  }

  GraphBuilder& builder_;
  const CalibrationArtifact& artifact_;
  const ScoreOptions& score_;
  RoundingNodes rounding_;
  LogitHead logit_head_;
  std::string output_;
  std::string logits_;  // [N, C] float32
  std::string wide_;    // the same in double precision
  std::string scores_;  // [N, C] doubles
};

}  // namespace

LabelSets write_label_sets(GraphBuilder& builder, const CalibrationArtifact& artifact,
                           const ExportHead& head, const std::vector<Level>& levels) {
  LabelWriter writer(builder, artifact, head);
  LabelSets sets;
  sets.classes = writer.classes();
  for (const Level& level : levels) sets.members.push_back(writer.members(level));
  if (!artifact.chances.empty()) sets.chances = writer.chances();
  return sets;
}

}  // namespace fcp
