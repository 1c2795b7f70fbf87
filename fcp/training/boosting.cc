#include "fcp/training/boosting.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <xgboost/c_api.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"

namespace fcp {
namespace {

void check_xgboost(int code) {
  if (code != 0) fail("XGBoost: ", XGBGetLastError());
}

struct FreeMatrix {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};
struct FreeBooster {
  void operator()(void* handle) const { XGBoosterFree(handle); }
};
using BoostMatrix = std::unique_ptr<void, FreeMatrix>;
using Booster = std::unique_ptr<void, FreeBooster>;

BoostMatrix make_boost_matrix(const BoostRows& rows) {
  DMatrixHandle handle = nullptr;
  check_xgboost(XGDMatrixCreateFromMat_omp(rows.x.data(), static_cast<bst_ulong>(rows.rows()),
                                           static_cast<bst_ulong>(rows.columns),
                                           std::numeric_limits<float>::quiet_NaN(), &handle, 1));
  BoostMatrix matrix(handle);
  check_xgboost(XGDMatrixSetFloatInfo(handle, "label", rows.y.data(), rows.y.size()));
  if (!rows.weight.empty()) {
    check_xgboost(XGDMatrixSetFloatInfo(handle, "weight", rows.weight.data(), rows.weight.size()));
  }
  return matrix;
}

int64_t boost_outputs(const BoostOptions& options) {
  return options.loss == BoostLoss::kClasses && options.classes > 2 ? options.classes : 1;
}

std::string boost_objective(const BoostOptions& options) {
  if (options.loss != BoostLoss::kClasses) return "reg:squarederror";
  return options.classes > 2 ? "multi:softprob" : "binary:logistic";
}

std::string boost_metric(const BoostOptions& options) {
  if (options.loss == BoostLoss::kSquared) return "rmse";
  if (options.loss == BoostLoss::kAbsolute) return "mae";
  return options.classes > 2 ? "mlogloss" : "logloss";
}

void set_boost_parameters(BoosterHandle booster, const BoostOptions& options) {
  const auto set = [&](const char* name, const std::string& value) {
    check_xgboost(XGBoosterSetParam(booster, name, value.c_str()));
  };
  set("verbosity", "0");
  set("nthread", "1");
  set("seed", std::to_string(options.seed & 0x7fffffffU));
  set("seed_per_iteration", "1");
  set("objective", boost_objective(options));
  set("eval_metric", boost_metric(options));
  // Zero votes say zero, or odds of one.
  set("base_score", options.loss == BoostLoss::kClasses ? "0.5" : "0");
  if (options.classes > 2) set("num_class", std::to_string(options.classes));
  set("tree_method", "hist");
  set("grow_policy", "lossguide");
  set("max_depth", "0");
  set("max_leaves", std::to_string(options.leaves));
  set("min_child_weight", concat(options.least));
  set("eta", concat(options.rate));
  set("subsample", "0.8");
  set("colsample_bytree", "0.8");
}

// "[12]\tholdout-rmse:0.25"
double parse_metric(const std::string& line) {
  return std::strtod(line.c_str() + line.rfind(':') + 1, nullptr);
}

// The sums of all trees while the booster is trained: [n · outputs].
std::vector<float> sums_of_trees(BoosterHandle booster, DMatrixHandle matrix) {
  const std::string config = nlohmann::json{
      {"type", 1},
      {"training", true},
      {"iteration_begin", 0},
      {"iteration_end", 0},
      {"strict_shape", true}}.dump();
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* sums = nullptr;
  check_xgboost(
      XGBoosterPredictFromDMatrix(booster, matrix, config.c_str(), &shape, &dimensions, &sums));
  bst_ulong count = 1;
  for (bst_ulong d = 0; d < dimensions; ++d) count *= shape[d];
  return {sums, sums + count};
}

Tree read_tree(const nlohmann::json& json) {
  const auto& left = json.at("left_children");
  Tree tree(left.size());
  for (size_t i = 0; i < tree.size(); ++i) {
    TreeNode& node = tree[i];
    node.less = left[i].get<int32_t>();
    node.other = json.at("right_children")[i].get<int32_t>();
    node.number = json.at("split_conditions")[i].get<float>();
    if (node.less < 0) continue;
    node.feature = json.at("split_indices")[i].get<int32_t>();
    const auto& missing = json.at("default_left")[i];
    node.missing_is_less = missing.is_boolean() ? missing.get<bool>() : missing.get<int64_t>() != 0;
  }
  return tree;
}

std::vector<Tree> read_trees(BoosterHandle booster, int64_t count) {
  bst_ulong length = 0;
  const char* text = nullptr;
  check_xgboost(XGBoosterSaveModelToBuffer(booster, R"({"format": "json"})", &length, &text));
  const nlohmann::json model = nlohmann::json::parse(text, text + length);
  const auto& all = model.at("learner").at("gradient_booster").at("model").at("trees");
  std::vector<Tree> trees;
  for (int64_t t = 0; t < count; ++t) trees.push_back(read_tree(all.at(static_cast<size_t>(t))));
  return trees;
}

constexpr float kGoldenSection = 0.618034f;

// The numbers of a column in ascending order, each once.
std::vector<float> sorted_numbers(const BoostRows& rows, int32_t column) {
  std::vector<float> numbers;
  numbers.reserve(rows.y.size());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const float number = rows.x[static_cast<size_t>(i * rows.columns + column)];
    if (!std::isnan(number)) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// XGBoost splits at a number of the training rows. Between it and the one below, the rounding of a
// number that the graph computes sends no row to the other side; by the golden section rather than
// halfway, where other numbers of an even grid, as of dates, would lie.
void separate_thresholds(std::vector<Tree>& trees, const BoostRows& rows) {
  std::map<int32_t, std::vector<float>> columns;
  for (Tree& tree : trees) {
    for (TreeNode& node : tree) {
      if (node.feature < 0) continue;
      auto [column, fresh] = columns.try_emplace(node.feature);
      if (fresh) column->second = sorted_numbers(rows, node.feature);
      const std::vector<float>& numbers = column->second;
      const auto above = std::lower_bound(numbers.begin(), numbers.end(), node.number);
      if (above == numbers.begin() || above == numbers.end()) continue;
      const float below = *(above - 1), between = below + (*above - below) * kGoldenSection;
      if (std::isfinite(between) && between > below) node.number = between;
    }
  }
}

float leaf_of(const Tree& tree, const float* x) {
  const TreeNode* node = tree.data();
  while (node->feature >= 0) {
    const float number = x[node->feature];
    const bool less = std::isnan(number) ? node->missing_is_less : number < node->number;
    node = &tree[static_cast<size_t>(less ? node->less : node->other)];
  }
  return node->number;
}

std::vector<float> sums_of_leaves(const BoostedTrees& fitted, const BoostRows& rows) {
  const auto outputs = static_cast<size_t>(fitted.outputs);
  std::vector<float> sums(rows.y.size() * outputs, 0.0f);
  for (size_t i = 0; i < rows.y.size(); ++i) {
    const float* x = rows.x.data() + i * static_cast<size_t>(rows.columns);
    for (size_t t = 0; t < fitted.trees.size(); ++t) {
      sums[i * outputs + t % outputs] += leaf_of(fitted.trees[t], x);
    }
  }
  return sums;
}

// One round towards medians. XGBoost's own absolute error moves leaves to the medians of their rows
// without the rate and on threads of its own; here |r| is majorised by r² / 2w + w / 2 with
// w = √(r² + ε²), so that a leaf moves towards a mean weighted by 1 / w.
void boost_medians(BoosterHandle booster, DMatrixHandle matrix, const BoostRows& rows) {
  constexpr double kSoft = 0.05;  // ε, of the mean |r|
  std::vector<float> slope = sums_of_trees(booster, matrix);
  std::vector<float> curve(slope.size());
  double mean = 0;
  for (size_t i = 0; i < slope.size(); ++i) {
    slope[i] -= rows.y[i];
    mean += std::abs(static_cast<double>(slope[i]));
  }
  mean /= static_cast<double>(slope.size());
  if (!(mean > 0)) mean = 1;
  double all = 0;
  for (size_t i = 0; i < slope.size(); ++i) {
    curve[i] = static_cast<float>(1 / std::hypot(slope[i] / mean, kSoft));
    all += curve[i];
  }
  const float unit = static_cast<float>(static_cast<double>(slope.size()) / all);
  for (size_t i = 0; i < slope.size(); ++i) {
    curve[i] *= unit * (rows.weight.empty() ? 1 : rows.weight[i]);
    slope[i] *= curve[i];
  }
  check_xgboost(XGBoosterBoostOneIter(booster, matrix, slope.data(), curve.data(), slope.size()));
}

// How many rounds are best, at least 1.
int64_t run_rounds(BoosterHandle booster, DMatrixHandle training, const BoostRows& rows,
                   DMatrixHandle holdout, const BoostOptions& options) {
  DMatrixHandle judged[] = {holdout};
  const char* names[] = {"holdout"};
  double best = std::numeric_limits<double>::infinity();
  int64_t best_round = 0;
  for (int64_t round = 0; round < options.rounds; ++round) {
    check_interrupted();
    if (options.loss == BoostLoss::kAbsolute) {
      boost_medians(booster, training, rows);
    } else {
      check_xgboost(XGBoosterUpdateOneIter(booster, static_cast<int>(round), training));
    }
    const char* line = nullptr;
    check_xgboost(XGBoosterEvalOneIter(booster, static_cast<int>(round), judged, names, 1, &line));
    const double loss = parse_metric(line);
    if (!std::isfinite(loss)) fail("XGBoost: the loss on the hold-out is not finite");
    if (loss < best) {
      best = loss;
      best_round = round + 1;
    }
    if (round + 1 - best_round >= options.patience) break;
  }
  return best_round;
}

}  // namespace

bool can_boost() { return true; }

BoostedTrees boost(const BoostRows& training, const BoostRows& holdout,
                   const BoostOptions& options) {
  const BoostMatrix train = make_boost_matrix(training), judge = make_boost_matrix(holdout);
  DMatrixHandle known[] = {train.get(), judge.get()};
  BoosterHandle handle = nullptr;
  check_xgboost(XGBoosterCreate(known, 2, &handle));
  const Booster booster(handle);
  set_boost_parameters(handle, options);
  BoostedTrees fitted;
  fitted.outputs = boost_outputs(options);
  const int64_t rounds = run_rounds(handle, train.get(), training, judge.get(), options);
  fitted.trees = read_trees(handle, rounds * fitted.outputs);
  separate_thresholds(fitted.trees, training);
  fitted.holdout = sums_of_leaves(fitted, holdout);
  return fitted;
}

}  // namespace fcp
