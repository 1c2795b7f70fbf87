#include "fcp/calibrate/fit_heads.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/choose.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/methods/scores/rectified.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

// The features at the cut and the answers of one output, for all rows.
struct Observed {
  std::string feature;  // tensor
  std::string output;
  torch::Tensor features;    // [N, …]
  torch::Tensor prediction;  // [N, K]
};

Observed observe(const Graph& network, const std::string& cut, const std::string& output,
                 const torch::Tensor& x, torch::Device device) {
  const ScoreOptions plain(ResidualOptions{}, {.output = output});
  const ScoredNetwork scored(without_heads(network), plain, cut, device);
  const Network& head = *scored.shared_head();
  const size_t index = output_index(head, output);
  Observed seen;
  seen.feature = scored.cut().empty() ? network.inputs[0].name : scored.cut();
  seen.output = head.outputs()[index].name;
  seen.features = scored.features(x);
  seen.prediction = output_matrix(head.run_rows({seen.features})[index]);
  return seen;
}

// The output that the rectifier reads beside the features: of two quantiles, the low one.
std::string described_output(const Graph& network, const ScoreOptions& score) {
  const std::string* low = score.find(field::low);
  if (low == nullptr) return score.output;
  return low->empty() ? without_heads(network).outputs[0].name : *low;
}

constexpr double kHeadShare = 0.3;  // of the calibration rows, if they must serve

// Rows that heads are fitted on: those of their own, or a share of the calibration rows behind the
// slice, which `mask` then tells. Empty: there are too few.
Rows rows_for_heads(const ChoiceRows& rows, RowMask& mask) {
  if (rows.settings.head_rows != nullptr) return read_all(*rows.settings.head_rows);
  const auto share = static_cast<size_t>(static_cast<double>(rows.count) * kHeadShare);
  const size_t count = std::min(share, most_learned(rows.source));
  if (count >= kLeastForHeads) {
    mask = random_rows(rows.count, rows.sliced, rows.sliced + count, rows.context.seed,
                       rows.settings.keep_together);
    return take_masked(rows.source, mask, true, rows.batch);
  }
  return {};
}

// Whether the covariance of several targets is asked for, or compared.
bool wants_factors(const ChoiceRows& rows, const ChoiceState& state) {
  return state.plan.method.score.find(field::cholesky) != nullptr ||
         rows.settings.method.text("joint") == kJointAuto;
}

void fit_heads_on(const ChoiceRows& rows, ChoiceState& state) {
  CalibrationPlan& plan = state.plan;
  RowMask mask;
  const Rows fitting = rows_for_heads(rows, mask);
  if (fitting.x.empty()) return;
  const Stage stage(rows.context, "fit heads", 0);
  const auto* place = std::get_if<std::string>(&rows.settings.method.cut);
  HeadOptions options;
  options.fit.seed = rows.context.seed;
  options.factors = wants_factors(rows, state);
  const std::vector<int64_t>& groups = rows.settings.keep_together;
  for (size_t i = 0; i < std::min(groups.size(), mask.size()); ++i) {
    if (mask[i]) options.groups.push_back(groups[i]);
  }
  plan.network = with_heads(plan.network, place != nullptr ? *place : usual_cut(state),
                            plan.method.score.output, view(fitting.x), view(fitting.y), options,
                            rows.context.device);
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) plan.left_out[i] = true;
  }
  plan.choices.head_rows = fitting.x.rows();
  plan.choices.own_head_rows = rows.settings.head_rows != nullptr;
}

}  // namespace

Graph with_heads(const Graph& network, const std::string& cut, const std::string& output,
                 const torch::Tensor& x, const torch::Tensor& y, const HeadOptions& options,
                 torch::Device device) {
  const torch::NoGradGuard no_gradients;
  const Observed seen = observe(network, cut, output, x, device);
  const torch::Tensor residual = truth_matrix(y, seen.prediction) - seen.prediction;
  const FeatureHeads heads =
      fit_heads({{seen.features, seen.prediction, residual, options.groups}}, options);
  Graph graph = network;
  append_heads(graph, seen.feature, seen.output, heads,
               {kSpreadOutput, kQuantilesOutput, kCholeskyOutput});
  return graph;
}

Graph with_target_scales(const Graph& network, const std::string& output, const torch::Tensor& x,
                         const torch::Tensor& y, torch::Device device) {
  constexpr double kSameUnit = 2;
  const torch::NoGradGuard no_gradients;
  const Observed seen = observe(network, "", output, x, device);
  const auto info = std::find_if(network.outputs.begin(), network.outputs.end(),
                                 [&](const TensorInfo& each) { return each.name == seen.output; });
  const bool matrix = info->known_rank && info->shape.size() == 2;
  if (!matrix || seen.prediction.size(1) < 2) return network;
  const torch::Tensor truth = truth_matrix(y, seen.prediction);
  torch::Tensor scale = (truth - seen.prediction).abs().mean(0);  // [K]
  // A target that is predicted exactly has no error to measure it by; its size serves.
  scale = torch::where(scale > 0, scale, truth.abs().mean(0));
  scale = torch::where(scale > 0, scale, torch::ones_like(scale)).cpu();
  const bool finite = torch::isfinite(scale).all().item<bool>();
  if (!finite || (scale.max() <= kSameUnit * scale.min()).item<bool>()) return network;
  Graph graph = network;
  const std::string name = kScaleOutput;
  graph.initializers[name + "/targets"] = scale.unsqueeze(0).to(scalar_type(info->type));
  Node shape, expand;
  shape.op = "Shape";
  shape.name = name + "/shape";
  shape.inputs = {seen.output};
  shape.outputs = {shape.name};
  expand.op = "Expand";
  expand.name = name;
  expand.inputs = {name + "/targets", shape.name};
  expand.outputs = {name};
  graph.nodes.insert(graph.nodes.end(), {shape, expand});
  TensorInfo added = *info;
  added.name = name;
  graph.outputs.push_back(added);
  return graph;
}

Graph with_rectifier(const Graph& network, const std::string& cut, ScoreOptions& score,
                     const torch::Tensor& x, const torch::Tensor& y, double alpha,
                     const HeadOptions& options, torch::Device device) {
  const torch::NoGradGuard no_gradients;
  ScoreOptions plain = score;
  plain.rectifier.clear();
  const ScoredNetwork scored(network, plain, cut, device);
  const std::vector<double> scores = scored.score().score(scored.features(x), y);
  const int64_t sides = scored.score().sides();
  const Observed seen = observe(network, cut, described_output(network, score), x, device);
  const torch::Tensor target = torch::tensor(scores, torch::kDouble).reshape({x.size(0), sides});
  const double quantile = 1 - alpha / static_cast<double>(sides);
  HeadOptions own = options;
  own.missing = scored.cut().empty();  // what a network reads may be missing, what it computes not
  const Rectifier rectifier =
      fit_rectifier({seen.features, seen.prediction, target, options.groups}, quantile,
                    score.may_be_negative(), own);
  Graph graph = network;
  append_rectifier(graph, seen.feature, seen.output, rectifier, kRectifierOutput);
  score.rectifier = kRectifierOutput;
  return graph;
}

namespace {

bool has_all_heads(const ChoiceRows& rows, const ChoiceState& state) {
  const Graph& network = state.plan.network;
  return has_output(network, kSpreadOutput) &&
         (!wants_factors(rows, state) || has_output(network, kCholeskyOutput));
}

}  // namespace

ChoiceState choose_heads(ChoiceState state, const ChoiceRows& rows) {
  if (state.open.heads) {
    fit_heads_on(rows, state);
    if (state.plan.choices.head_rows == 0) {
      fail_option("score", state.plan.method.score.name(),
                  " needs heads on features, which this network ", "does not have; ", rows.count,
                  " rows are too few to learn them, at least ",
                  static_cast<size_t>(kLeastForHeads / kHeadShare) + 1,
                  " are needed, or head_rows of their own");
    }
    state.open.heads = false;
  } else if (state.open.score && !state.labels && !has_all_heads(rows, state)) {
    try {  // without heads there are other scores to choose
      fit_heads_on(rows, state);
    } catch (const std::exception&) {
      state.no_heads = concat("heads on features cannot be learned: ", failure_reason());
    }
  }
  return state;
}

ChoiceState choose_scales(ChoiceState state, const ChoiceRows& rows) {
  CalibrationPlan& plan = state.plan;
  const bool wanted = state.open.score && has_several_targets(state, rows.source);
  if (!state.open.scales && !wanted) return state;
  state.open.scales = false;
  try {
    plan.network = with_target_scales(plan.network, plan.method.score.output, rows.x(), rows.y(),
                                      rows.context.device);
  } catch (const std::exception&) {
    failure_reason();  // where it cannot be done, all targets share a radius as before
  }
  if (!has_output(plan.network, kScaleOutput)) return state;
  if (auto* normalize = plan.method.score.find(field::normalize)) *normalize = kScaleOutput;
  if (!state.open.score) {
    rows.context.observer->note(concat("score: residual in the unit of each target, measured on ",
                                       rows.slice.x.rows(),
                                       " rows, which are left out of calibration"));
  }
  return state;
}

ChoiceState choose_rectifier(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.rectifier) return state;
  CalibrationPlan& plan = state.plan;
  const Stage stage(rows.context, "rectify", 0);
  HeadOptions options;
  options.fit.seed = rows.context.seed;
  options.groups = rows.slice_groups;
  plan.network =
      with_rectifier(plan.network, plan.method.cut, plan.method.score, rows.x(), rows.y(),
                     rows.settings.level.value(), options, rows.context.device);
  plan.choices.rectified = true;
  state.open.rectifier = false;
  return state;
}

}  // namespace fcp
