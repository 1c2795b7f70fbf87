#include "fcp/training/tree_graph.h"

#include <utility>

#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/training/export.h"

namespace fcp {
namespace {

constexpr char kMlDomain[] = "ai.onnx.ml";
constexpr int64_t kMlVersion = 3;

// Trees in the lists of TreeEnsembleRegressor.
struct ForestLists {
  std::vector<int64_t> tree, node, feature, less, other, missing;
  std::vector<std::string> mode;
  std::vector<float> number;
  std::vector<int64_t> leaf_tree, leaf_node, leaf_target;
  std::vector<float> leaf_value;

  void add(const Tree& own, int64_t number_of_tree, int64_t target) {
    for (size_t i = 0; i < own.size(); ++i) {
      const TreeNode& at = own[i];
      const bool leaf = at.feature < 0;
      tree.push_back(number_of_tree);
      node.push_back(static_cast<int64_t>(i));
      feature.push_back(leaf ? 0 : at.feature);
      less.push_back(leaf ? 0 : at.less);
      other.push_back(leaf ? 0 : at.other);
      missing.push_back(!leaf && at.missing_is_less ? 1 : 0);
      mode.push_back(leaf ? "LEAF" : "BRANCH_LT");
      number.push_back(leaf ? 0 : at.number);
      if (!leaf) continue;
      leaf_tree.push_back(number_of_tree);
      leaf_node.push_back(static_cast<int64_t>(i));
      leaf_target.push_back(target);
      leaf_value.push_back(at.number);
    }
  }
};

void append_forest(Graph& graph, const MemberForest& forest, int64_t members,
                   const std::string& input, const std::string& output) {
  ForestLists lists;
  for (size_t t = 0; t < forest.trees.size(); ++t) {
    lists.add(forest.trees[t], static_cast<int64_t>(t), forest.columns[t]);
  }
  graph.domains[kMlDomain] = kMlVersion;
  graph.nodes.push_back(
      {.name = concat(output, "/TreeEnsembleRegressor"),
       .op = "TreeEnsembleRegressor",
       .domain = kMlDomain,
       .inputs = {input},
       .outputs = {output},
       .attributes = {{"n_targets", members * forest.outputs},
                      {"nodes_treeids", std::move(lists.tree)},
                      {"nodes_nodeids", std::move(lists.node)},
                      {"nodes_featureids", std::move(lists.feature)},
                      {"nodes_truenodeids", std::move(lists.less)},
                      {"nodes_falsenodeids", std::move(lists.other)},
                      {"nodes_missing_value_tracks_true", std::move(lists.missing)},
                      {"nodes_modes", std::move(lists.mode)},
                      {"nodes_values", std::move(lists.number)},
                      {"target_treeids", std::move(lists.leaf_tree)},
                      {"target_nodeids", std::move(lists.leaf_node)},
                      {"target_ids", std::move(lists.leaf_target)},
                      {"target_weights", std::move(lists.leaf_value)}}});
}

// Statistics of all members side by side.
void append_statistics(Graph& graph, const TreeMembers& trees, const std::string& filled) {
  std::vector<torch::Tensor> levels, means;
  for (const CategoryStatistics& own : trees.statistics) {
    levels.push_back(own.levels);
    means.push_back(own.mean);
  }
  graph.initializers["category_columns"] = torch::tensor(trees.category_columns, torch::kLong);
  graph.initializers["category_levels"] = torch::cat(levels, 1).contiguous();
  graph.initializers["category_means"] = torch::cat(means);
  append_node(graph, "Gather", {filled, "category_columns"}, "categories", {{"axis", int64_t{1}}});
  append_node(graph, "Gemm", {"categories", "category_levels", "category_means"},
              "category_statistics");
}

// [input | calendar | statistics of member 0 | of member 1 | …].
std::string append_tree_input(Graph& graph, const TreeMembers& trees, const std::string& filled,
                              const std::string& calendar) {
  std::vector<std::string> parts{"input"};
  if (!calendar.empty()) parts.push_back(calendar);
  if (!trees.statistics.empty()) {
    append_statistics(graph, trees, filled);
    parts.push_back("category_statistics");
  }
  if (parts.size() == 1) return parts[0];
  append_node(graph, "Concat", parts, "tree_input", {{"axis", int64_t{1}}});
  return "tree_input";
}

}  // namespace

void append_trees(Graph& graph, const TreeMembers& trees, int64_t members,
                  const std::string& filled, const std::string& calendar,
                  std::vector<FeatureParts>& parts) {
  const std::string input = append_tree_input(graph, trees, filled, calendar);
  append_forest(graph, trees.answers, members, input, kTreeAnswers);
  parts.push_back({kTreeAnswers, trees.answers.outputs});
  if (trees.spreads.trees.empty()) return;
  append_forest(graph, trees.spreads, members, input, kTreeSpreads);
  parts.push_back({kTreeSpreads, trees.spreads.outputs});
}

void append_blocks(Graph& graph, const std::vector<FeatureParts>& parts, int64_t members,
                   const std::string& output) {
  std::vector<std::string> tensors;
  for (const FeatureParts& part : parts) tensors.push_back(part.tensor);
  std::vector<int64_t> order;
  for (int64_t e = 0; e < members; ++e) {
    int64_t first = 0;
    for (const FeatureParts& part : parts) {
      for (int64_t i = 0; i < part.width; ++i) order.push_back(first + e * part.width + i);
      first += members * part.width;
    }
  }
  if (tensors.size() > 1) {
    append_node(graph, "Concat", tensors, output + "_parts", {{"axis", int64_t{1}}});
  }
  graph.initializers[output + "_order"] = torch::tensor(order, torch::kLong);
  append_node(graph, "Gather",
              {tensors.size() > 1 ? output + "_parts" : tensors[0], output + "_order"}, output,
              {{"axis", int64_t{1}}});
}

}  // namespace fcp
