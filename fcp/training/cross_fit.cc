#include "fcp/training/cross_fit.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/base/special_numbers.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/export.h"
#include "fcp/training/ridge.h"
#include "fcp/training/training_data.h"

namespace fcp {
namespace {

constexpr int64_t kNoFold = -1;

// Constants of the graph: for each calibration row its fold and residual; of classes the columns of
// its fold.
constexpr char kCrossFold[] = "cross_fold";
constexpr char kCrossResidual[] = "cross_residual";
constexpr char kCrossColumn[] = "cross_column";
constexpr char kCrossOnes[] = "cross_ones";

// The fold of each row, at random and equally many of each; kNoFold of those left over.
std::vector<int64_t> deal_folds(size_t rows, int64_t folds, uint64_t seed) {
  std::vector<int64_t> fold_of(rows, kNoFold);
  const std::vector<size_t> order = Random(seed).permutation(rows);
  const size_t dealt = rows - rows % static_cast<size_t>(folds);
  for (size_t i = 0; i < dealt; ++i) fold_of[order[i]] = static_cast<int64_t>(i) % folds;
  return fold_of;
}

std::vector<size_t> rows_in(const std::vector<int64_t>& fold_of, int64_t fold, bool inside) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < fold_of.size(); ++i) {
    if ((fold_of[i] == fold) == inside) rows.push_back(i);
  }
  return rows;
}

// Adds a graph with every name but that of the input behind `prefix`; the name of its answer.
std::string append_graph(Graph& all, const Graph& part, const std::string& prefix) {
  const std::string input = part.inputs.at(0).name;
  const auto named = [&](const std::string& name) {
    return name.empty() ? name : name == input ? std::string("input") : prefix + name;
  };
  for (Node node : part.nodes) {
    node.name = named(node.name);
    for (std::string& name : node.inputs) name = named(name);
    for (std::string& name : node.outputs) name = named(name);
    all.nodes.push_back(std::move(node));
  }
  all.domains.insert(part.domains.begin(), part.domains.end());
  for (const auto& [name, tensor] : part.initializers) all.initializers[named(name)] = tensor;
  return named(part.outputs.at(0).name);
}

torch::Tensor answers_of(const Graph& graph, const Array& x) {
  const torch::NoGradGuard no_gradients;
  const auto rows = static_cast<int64_t>(x.rows()), columns = static_cast<int64_t>(x.row_size());
  return Network(graph).forward(
      torch::from_blob(const_cast<float*>(x.values.data()), {rows, columns}, torch::kFloat));
}

// The ensembles side by side, before the rows are known.
Graph begin_graph(int64_t columns) {
  Graph graph;
  graph.name = "fcp_cross";
  graph.inputs = {batch_of("input", columns)};
  return graph;
}

// Rows of the folds: where they stand, and the fold of each.
struct DealtRows {
  std::vector<int64_t> places, folds;
};

// The mean of the ensembles' answers.
void append_mean(Graph& graph, int64_t folds, int64_t columns, const char* output) {
  graph.initializers["cross_mean"] =
      torch::eye(columns).repeat({folds, 1}) / static_cast<double>(folds);
  append_node(graph, "MatMul", {"cross_answers", "cross_mean"}, output);
}

// μ_i − R_i and μ_i + R_i for all rows i (fcp/methods/scores/cross.h).
void finish_numbers(Graph& graph, const std::vector<std::string>& answers, const DealtRows& dealt,
                    const torch::Tensor& residuals) {
  const auto rows = static_cast<int64_t>(dealt.places.size());
  graph.initializers[kCrossFold] = torch::tensor(dealt.folds, torch::kLong);
  graph.initializers[kCrossResidual] = residuals.view({1, rows}).contiguous();
  append_node(graph, "Concat", answers, "cross_answers", {{"axis", int64_t{1}}});
  append_mean(graph, static_cast<int64_t>(answers.size()), 1, "prediction");
  append_node(graph, "Gather", {"cross_answers", kCrossFold}, "cross_center",
              {{"axis", int64_t{1}}});
  append_node(graph, "Sub", {"cross_center", kCrossResidual}, "fcp.cross_low");
  append_node(graph, "Add", {"cross_center", kCrossResidual}, "fcp.cross_high");
  graph.outputs = {batch_of("prediction", 1), batch_of("fcp.cross_low", rows),
                   batch_of("fcp.cross_high", rows)};
}

// −log softmax of logits [N, C], in operators whose bits do not depend on the batch.
std::string append_surprise(Graph& graph, const std::string& logits, const std::string& name) {
  append_node(graph, "ReduceMax", {logits}, name + "_largest",
              {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
  append_node(graph, "Sub", {logits, name + "_largest"}, name + "_lowered");
  append_node(graph, "Exp", {name + "_lowered"}, name + "_shares");
  append_node(graph, "MatMul", {name + "_shares", kCrossOnes}, name + "_sum");
  append_node(graph, "Log", {name + "_sum"}, name + "_log");
  append_node(graph, "Sub", {name + "_log", name + "_lowered"}, name);
  return name;
}

// In the place of −log p of a class that the ensemble has never seen: more than any other, whatever
// the network answers, so that a row of such a class is as unusual as a new row of one.
constexpr float kNeverSeen = 1e30f;

// Which classes the rows beside each fold have, [folds, C] bool.
torch::Tensor seen_classes(const Array& y, const std::vector<int64_t>& fold_of, int64_t folds,
                           int64_t classes) {
  torch::Tensor seen = torch::zeros({folds, classes}, torch::kBool);
  for (size_t i = 0; i < fold_of.size(); ++i) {
    const auto label = static_cast<int64_t>(y.values[i]);
    for (int64_t fold = 0; fold < folds; ++fold) {
      if (fold_of[i] != fold) seen[fold][label] = true;
    }
  }
  return seen;
}

// −log p_i(c) − R_i for all rows i and classes c (fcp/methods/scores/cross.h).
void finish_labels(Graph& graph, const std::vector<std::string>& answers, const DealtRows& dealt,
                   const torch::Tensor& residuals, const torch::Tensor& seen) {
  const int64_t classes = seen.size(1);
  const auto rows = static_cast<int64_t>(dealt.places.size());
  const torch::Tensor folds = torch::tensor(dealt.folds, torch::kLong);
  graph.initializers[kCrossOnes] = torch::ones({classes, 1});
  graph.initializers[kCrossColumn] =
      (folds.unsqueeze(1) * classes + torch::arange(classes, torch::kLong)).flatten();
  graph.initializers[kCrossResidual] =
      residuals.view({rows, 1}).expand({rows, classes}).reshape({1, rows * classes});
  std::vector<std::string> surprises;
  for (size_t fold = 0; fold < answers.size(); ++fold) {
    surprises.push_back(append_surprise(graph, answers[fold], concat("cross_surprise", fold)));
    const torch::Tensor own = seen[static_cast<int64_t>(fold)].unsqueeze(0);
    if (own.all().item<bool>()) continue;
    const std::string least = concat("cross_least", fold), raised = concat("cross_raised", fold);
    graph.initializers[least] = torch::where(own, torch::full({1, classes}, -kNeverSeen),
                                             torch::full({1, classes}, kNeverSeen));
    append_node(graph, "Max", {surprises.back(), least}, raised);
    surprises.back() = raised;
  }
  append_node(graph, "Concat", answers, "cross_answers", {{"axis", int64_t{1}}});
  append_mean(graph, static_cast<int64_t>(answers.size()), classes, "logits");
  append_node(graph, "Concat", surprises, "cross_surprises", {{"axis", int64_t{1}}});
  append_node(graph, "Gather", {"cross_surprises", kCrossColumn}, "cross_each",
              {{"axis", int64_t{1}}});
  append_node(graph, "Sub", {"cross_each", kCrossResidual}, "fcp.cross_margins");
  graph.outputs = {batch_of("logits", classes), batch_of("fcp.cross_margins", rows * classes)};
}

// −log p(y), or kNeverSeen where the fold's ensemble has not seen the class.
torch::Tensor label_residuals(const torch::Tensor& answers, const torch::Tensor& truth,
                              const DealtRows& dealt, const torch::Tensor& seen) {
  const torch::Tensor labels = truth.to(torch::kLong);
  const torch::Tensor known =
      seen.index_select(0, torch::tensor(dealt.folds, torch::kLong)).gather(1, labels);
  return (-torch::log_softmax(answers, 1).gather(1, labels))
      .masked_fill(known.logical_not(), kNeverSeen);
}

void check_crossed(const Array& x, const Array& y, const TabularOptions& options, int64_t folds) {
  if (options.loss == Loss::kQuantile)
    fail("cross-fitting takes numbers or classes, not quantiles");
  if (!options.groups.empty()) fail("cross-fitting deals single rows into folds, not groups");
  if (y.row_size() != 1) fail(y.row_size(), " targets, expected one: cross-fitting takes one");
  if (folds < 2 || static_cast<size_t>(folds) > x.rows()) {
    fail(folds, " folds of ", x.rows(), " rows, expected at least 2 and at most one per row");
  }
  if (!options.row_weights.empty() && options.row_weights.size() != x.rows()) {
    fail(options.row_weights.size(), " weights of ", x.rows(), " rows, expected one for each");
  }
  if (options.loss == Loss::kCrossEntropy && options.classes < 2) {
    fail("cross-fitting of classes needs their number");
  }
}

// The ridge regression beside an ensemble, and its weight w in their mix.
struct LinearMember {
  RidgeFit fit;
  double share = 0;
};

// The w of 0, 0.05, …, 1 whose mix has the least error out of fold, squared or absolute as the
// ensemble's centre is the mean or the median.
LinearMember fit_linear_member(const Array& x, const Array& y, const TabularResult& trained,
                               const std::vector<double>& row_weights) {
  constexpr int kSteps = 20;
  const torch::Tensor weight = mean_one(row_weights);
  LinearMember member{fit_ridge(x, y, weight), 0};
  const auto rows = static_cast<int64_t>(x.rows());
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()), {rows}, torch::kFloat)
          .to(torch::kDouble);
  const torch::Tensor ensemble = trained.out_of_fold.flatten().to(torch::kDouble);
  double least = std::numeric_limits<double>::infinity();
  for (int step = 0; step <= kSteps; ++step) {
    const double w = static_cast<double>(step) / kSteps;
    const torch::Tensor errors = ensemble * (1 - w) + member.fit.left_out * w - truth;
    torch::Tensor losses = trained.centre == Centre::kMedian ? errors.abs() : errors.square();
    if (weight.defined()) losses = losses * weight.flatten().to(torch::kDouble);
    const double loss = losses.nanmean().item<double>();
    if (!(loss < least)) continue;
    least = loss;
    member.share = w;
  }
  return member;
}

// (1 − w) · ensemble + w · ridge, [N, 1], under names of the fold's own.
std::string append_mix(Graph& graph, const std::string& ensemble, const LinearMember& member,
                       bool fill, const std::string& prefix) {
  const auto [fit, w] = member;
  const int64_t columns = fit.weight.numel();
  std::string input = "input";
  if (fill) {
    graph.initializers[prefix + "means"] = fit.mean.view({1, columns}).contiguous();
    append_node(graph, "IsNaN", {"input"}, prefix + "missing");
    append_node(graph, "Where", {prefix + "missing", prefix + "means", "input"}, prefix + "known");
    input = prefix + "known";
  }
  graph.initializers[prefix + "weight"] =
      (w * fit.weight).to(torch::kFloat).view({columns, 1}).contiguous();
  graph.initializers[prefix + "bias"] = torch::full({1}, w * fit.bias, torch::kFloat);
  const std::string linear = prefix + "linear";
  append_node(graph, "Gemm", {input, prefix + "weight", prefix + "bias"}, linear);
  if (w == 1) return linear;
  graph.initializers[prefix + "share"] = torch::full({1}, 1 - w, torch::kFloat);
  append_node(graph, "Mul", {ensemble, prefix + "share"}, prefix + "others");
  append_node(graph, "Add", {prefix + "others", linear}, prefix + "mix");
  return prefix + "mix";
}

// Adds the graph of a fold; the name of its answer.
std::string append_fold(Graph& all, const TabularResult& trained, const LinearMember& linear,
                        bool fill, int64_t fold) {
  const std::string prefix = concat("fold", fold, "/");
  const std::string ensemble = linear.share == 1 ? "" : append_graph(all, trained.graph, prefix);
  return linear.share == 0 ? ensemble : append_mix(all, ensemble, linear, fill, prefix + "ridge_");
}

// Trains the ensemble of one fold, adds it to the graph, and predicts the fold by it.
std::string train_fold(const Array& x, const Array& y, const TabularOptions& options,
                       const std::vector<int64_t>& fold_of, int64_t fold, CrossFit& result,
                       torch::Tensor& predicted) {
  const std::vector<size_t> others = rows_in(fold_of, fold, false);
  const std::vector<size_t> own = rows_in(fold_of, fold, true);
  TabularOptions each = options;
  each.seed = options.seed + static_cast<uint64_t>(fold);
  each.row_weights.clear();
  for (const size_t row : others) {
    if (!options.row_weights.empty()) each.row_weights.push_back(options.row_weights[row]);
  }
  // The fold itself, or the rows to predict, may miss what no other row misses.
  each.fill_missing = any_nan(x.values.data(), x.values.size());
  each.may_be_constant =
      options.may_be_constant || std::any_of(y.values.begin(), y.values.end(),
                                             [&](float value) { return value != y.values[0]; });
  const Array other_x = take_rows(x, others), other_y = take_rows(y, others);
  const TabularResult trained = train_tabular(other_x, other_y, each);
  LinearMember linear;
  if (options.loss == Loss::kMse && options.members > 1) {
    linear = fit_linear_member(other_x, other_y, trained, each.row_weights);
    result.ridge_share += linear.share / static_cast<double>(result.folds);
  }
  Graph alone = begin_graph(static_cast<int64_t>(x.row_size()));
  const std::string answer = append_fold(alone, trained, linear, each.fill_missing, fold);
  alone.outputs = {batch_of(answer, options.loss == Loss::kMse ? 1 : options.classes)};
  sort_and_check(alone);
  const torch::Tensor found = answers_of(alone, take_rows(x, own));
  for (size_t i = 0; i < own.size(); ++i) {
    predicted[static_cast<int64_t>(own[i])] = found[static_cast<int64_t>(i)];
  }
  result.log_target = result.log_target || trained.log_target;
  for (const double share : trained.tree_share) result.tree_share.push_back(share);
  return append_fold(result.graph, trained, linear, each.fill_missing, fold);
}

}  // namespace

CrossFit train_crossed(const Array& x, const Array& y, const TabularOptions& options, int64_t folds,
                       const std::function<void(int64_t fold)>& progress) {
  check_crossed(x, y, options, folds);
  const auto begin = std::chrono::steady_clock::now();
  const bool labels = options.loss == Loss::kCrossEntropy;
  const auto rows = static_cast<int64_t>(x.rows());
  CrossFit result;
  result.folds = folds;
  result.graph = begin_graph(static_cast<int64_t>(x.row_size()));
  const std::vector<int64_t> fold_of = deal_folds(x.rows(), folds, options.seed);
  torch::Tensor predicted = torch::empty({rows, labels ? options.classes : 1}, torch::kFloat);
  std::vector<std::string> answers;
  for (int64_t fold = 0; fold < folds; ++fold) {
    answers.push_back(train_fold(x, y, options, fold_of, fold, result, predicted));
    if (progress) progress(fold);
  }
  DealtRows dealt;
  for (size_t i = 0; i < fold_of.size(); ++i) {
    if (fold_of[i] == kNoFold) continue;
    result.calibrating.push_back(i);
    dealt.places.push_back(static_cast<int64_t>(i));
    dealt.folds.push_back(fold_of[i]);
  }
  const torch::Tensor places = torch::tensor(dealt.places, torch::kLong);
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()), {rows, 1}, torch::kFloat)
          .index_select(0, places);
  result.out_of_fold = predicted.index_select(0, places);
  if (labels) {
    const torch::Tensor seen = seen_classes(y, fold_of, folds, options.classes);
    finish_labels(result.graph, answers, dealt,
                  label_residuals(result.out_of_fold, truth, dealt, seen), seen);
  } else {
    finish_numbers(result.graph, answers, dealt, (truth - result.out_of_fold).abs());
  }
  sort_and_check(result.graph);
  const torch::Tensor weight = mean_one(options.row_weights);
  result.error = holdout_error(options.loss, result.out_of_fold, truth,
                               weight.defined() ? weight.index_select(0, places) : torch::Tensor());
  result.warnings = training_warnings(result.error, {}, 0, options.target_names);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace fcp
