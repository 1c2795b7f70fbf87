#include "fcp/training/cross_fit.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/network/network.h"
#include "fcp/training/graph_parts.h"

namespace fcp {
namespace {

// The fold of each row: as equal as can be, at random.
std::vector<int64_t> deal_folds(size_t rows, int64_t folds, uint64_t seed) {
  std::vector<int64_t> fold_of(rows);
  const std::vector<size_t> order = Random(seed).permutation(rows);
  for (size_t i = 0; i < rows; ++i) fold_of[order[i]] = static_cast<int64_t>(i) % folds;
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

// μ_i − R_i and μ_i + R_i for all rows i, and the mean of the ensembles.
void finish_graph(Graph& graph, const std::vector<std::string>& answers,
                  const std::vector<int64_t>& fold_of, const torch::Tensor& residuals) {
  const auto folds = static_cast<int64_t>(answers.size());
  const auto rows = static_cast<int64_t>(fold_of.size());
  graph.initializers["cross_mean"] =
      torch::full({folds, 1}, 1.0 / static_cast<double>(folds), torch::kFloat);
  graph.initializers["cross_fold"] = torch::tensor(fold_of, torch::kLong);
  graph.initializers["cross_residual"] = residuals.view({1, rows}).contiguous();
  append_node(graph, "Concat", answers, "cross_answers", {{"axis", int64_t{1}}});
  append_node(graph, "MatMul", {"cross_answers", "cross_mean"}, "prediction");
  append_node(graph, "Gather", {"cross_answers", "cross_fold"}, "cross_center",
              {{"axis", int64_t{1}}});
  append_node(graph, "Sub", {"cross_center", "cross_residual"}, "fcp.cross_low");
  append_node(graph, "Add", {"cross_center", "cross_residual"}, "fcp.cross_high");
  graph.outputs = {batch_of("prediction", 1), batch_of("fcp.cross_low", rows),
                   batch_of("fcp.cross_high", rows)};
  sort_and_check(graph);
}

}  // namespace

CrossFit train_crossed(const Array& x, const Array& y, const TabularOptions& options, int64_t folds,
                       const std::function<void(int64_t fold)>& progress) {
  if (y.row_size() != 1) fail(y.row_size(), " targets, expected one: cross-fitting takes one");
  if (folds < 2 || static_cast<size_t>(folds) > x.rows()) {
    fail(folds, " folds of ", x.rows(), " rows, expected at least 2 and at most one per row");
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto rows = static_cast<int64_t>(x.rows());
  CrossFit result;
  result.graph = begin_graph(static_cast<int64_t>(x.row_size()));
  result.out_of_fold = torch::empty({rows, 1}, torch::kFloat);
  const std::vector<int64_t> fold_of = deal_folds(x.rows(), folds, options.seed);
  std::vector<std::string> answers;
  for (int64_t fold = 0; fold < folds; ++fold) {
    const std::vector<size_t> others = rows_in(fold_of, fold, false);
    const std::vector<size_t> own = rows_in(fold_of, fold, true);
    TabularOptions each = options;
    each.seed = options.seed + static_cast<uint64_t>(fold);
    const TabularResult trained = train_tabular(take_rows(x, others), take_rows(y, others), each);
    const torch::Tensor found = answers_of(trained.graph, take_rows(x, own));
    for (size_t i = 0; i < own.size(); ++i) {
      result.out_of_fold[static_cast<int64_t>(own[i])] = found[static_cast<int64_t>(i)];
    }
    answers.push_back(append_graph(result.graph, trained.graph, concat("fold", fold, "/")));
    if (progress) progress(fold);
  }
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()), {rows, 1}, torch::kFloat).clone();
  finish_graph(result.graph, answers, fold_of, (truth - result.out_of_fold).abs());
  result.error = holdout_error(Loss::kMse, result.out_of_fold, truth);
  result.warnings = training_warnings(result.error, {}, 0);
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace fcp
