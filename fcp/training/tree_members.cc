#include "fcp/training/tree_members.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/nn/runtime/parallel_alone.h"
#include "fcp/training/target_statistics.h"

namespace fcp {
namespace {

constexpr int64_t kFewLevels = 10;      // one-hot columns that trees read themselves
constexpr int64_t kMostStatistics = 5;  // of a category: one per target or class

// A round costs columns · (rows + leaves · bins) · outputs, about 8 ns of each.
constexpr double kMostWork = 6e8;  // of a member
constexpr double kSplitRows = 31 * 512;
constexpr int64_t kMostRounds = 1000, kUsefulRounds = 300;
constexpr int64_t kPilotRounds = 12;
constexpr size_t kFewestRows = 40;      // of a member's training
constexpr double kWorthTraining = 0.2;  // weight of networks that are trained on

int64_t affordable_rounds(int64_t columns, int64_t rows, int64_t outputs) {
  const double round =
      static_cast<double>(columns * outputs) * (static_cast<double>(rows) + kSplitRows);
  return static_cast<int64_t>(std::min<double>(kMostWork / round, kMostRounds));
}

// The jobs on as many threads as libtorch has, each job on one.
void run_jobs(int64_t jobs, const std::function<void(int64_t)>& job) {
  const auto threads = static_cast<size_t>(std::min<int64_t>(jobs, at::get_num_threads()));
  std::atomic<int64_t> next{0};
  parallel_alone(threads, 1, threads, [&](size_t, size_t) {
    try {
      for (int64_t i = next++; i < jobs; i = next++) job(i);
    } catch (...) {
      next = jobs;  // the others begin no more
      throw;
    }
  });
}

// What statistics are means of, [N, S]: the targets, or whether a row is of a class.
torch::Tensor statistic_targets(const TreeData& data) {
  if (data.classes == 0) return data.y;
  if (data.classes == 2) return data.y;
  if (data.classes > kMostStatistics) return torch::zeros({data.y.size(0), 0});
  return torch::one_hot(data.y.to(torch::kLong).flatten(), data.classes).to(torch::kFloat);
}

std::vector<CategoryColumns> with_statistics(const TreeData& data, int64_t statistics) {
  std::vector<CategoryColumns> chosen;
  if (statistics == 0 || statistics > kMostStatistics) return chosen;
  for (const CategoryColumns& category : data.categories) {
    if (category.count > 2) chosen.push_back(category);
  }
  return chosen;
}

// What one member's boosters read.
class MemberInputs {
 public:
  MemberInputs(const TreeData& data, const torch::Tensor& targets,
               const std::vector<CategoryColumns>& categories, const FitRows& rows, uint64_t seed)
      : data_(data), raw_(raw_columns(data, categories)) {
    const auto columns = static_cast<int64_t>(data.x.row_size());
    if (categories.empty()) return;
    EncodedStatistics found = fit_statistics(data, targets, categories, rows, seed);
    made_ = std::move(found.made);
    encoded_ = std::move(found.encoded);
    const int64_t width = encoded_.size(1);
    statistics_ = width;
    first_statistic_ = columns;
  }

  const CategoryStatistics& statistics() const { return made_; }
  int64_t columns() const { return static_cast<int64_t>(raw_.size()) + statistics_; }

  // Of column j: its place in the row of [raw columns | statistics of all members].
  int32_t feature(int64_t column, int64_t member) const {
    const auto raw = static_cast<int64_t>(raw_.size());
    if (column < raw) return static_cast<int32_t>(raw_[static_cast<size_t>(column)]);
    return static_cast<int32_t>(first_statistic_ + member * statistics_ + column - raw);
  }

  // Of some columns.
  BoostRows rows(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns,
                 const std::function<float(int64_t)>& target) const {
    BoostRows made;
    made.columns = static_cast<int64_t>(columns.size());
    made.x.reserve(rows.size() * columns.size());
    const auto raw = static_cast<int64_t>(raw_.size());
    const auto width = static_cast<int64_t>(data_.x.row_size());
    for (const int64_t row : rows) {
      const float* x = data_.x.values.data() + row * width;
      for (const int64_t column : columns) {
        made.x.push_back(column < raw
                             ? x[raw_[static_cast<size_t>(column)]]
                             : encoded_.data_ptr<float>()[row * statistics_ + column - raw]);
      }
      made.y.push_back(target(row));
    }
    return made;
  }

 private:
  static std::vector<int64_t> raw_columns(const TreeData& data,
                                          const std::vector<CategoryColumns>& categories) {
    std::vector<bool> left_out(data.x.row_size(), false);
    for (const CategoryColumns& category : categories) {
      if (category.count <= kFewLevels) continue;
      std::fill_n(left_out.begin() + category.first, category.count, true);
    }
    std::vector<int64_t> columns;
    for (size_t j = 0; j < left_out.size(); ++j) {
      if (!left_out[j]) columns.push_back(static_cast<int64_t>(j));
    }
    return columns;
  }

  const TreeData& data_;
  std::vector<int64_t> raw_;
  CategoryStatistics made_;
  torch::Tensor encoded_;  // [N, statistics]
  int64_t statistics_ = 0, first_statistic_ = 0;
};

std::vector<int64_t> all_columns(int64_t count) {
  std::vector<int64_t> columns(static_cast<size_t>(count));
  std::iota(columns.begin(), columns.end(), 0);
  return columns;
}

std::vector<int64_t> used_columns(const std::vector<Tree>& trees) {
  std::set<int64_t> used;
  for (const Tree& tree : trees) {
    for (const TreeNode& node : tree) {
      if (node.feature >= 0) used.insert(node.feature);
    }
  }
  return {used.begin(), used.end()};
}

// One booster of a member and the columns that it reads.
struct MemberBooster {
  BoostedTrees fitted;
  std::vector<int64_t> columns;
};

struct BoostJob {
  const TreeData& data;
  const MemberInputs& inputs;
  const FitRows& rows;
  std::function<float(int64_t)> target;  // of a row
  std::vector<float> class_weight;       // empty: 1
};

BoostRows job_rows(const BoostJob& job, const std::vector<int64_t>& rows,
                   const std::vector<int64_t>& columns) {
  BoostRows made = job.inputs.rows(rows, columns, job.target);
  const bool weighted = !job.class_weight.empty() || job.data.row_weight.defined();
  for (size_t i = 0; i < made.y.size() && weighted; ++i) {
    const float own = static_cast<float>(row_weight(job.data, rows[i]));
    const auto label = static_cast<size_t>(made.y[i]);
    made.weight.push_back(job.class_weight.empty() ? own : own * job.class_weight[label]);
  }
  return made;
}

MemberBooster run_job(const BoostJob& job, BoostOptions options) {
  MemberBooster made;
  made.columns = all_columns(job.inputs.columns());
  const auto count = static_cast<int64_t>(job.rows.training.size());
  const int64_t outputs = std::max<int64_t>(options.classes, 1);
  const auto affordable = [&] {
    return affordable_rounds(static_cast<int64_t>(made.columns.size()), count, outputs);
  };
  if (affordable() < std::min(kUsefulRounds, options.rounds)) {
    BoostOptions pilot = options;
    pilot.rounds = pilot.patience = std::min(kPilotRounds, affordable());
    pilot.rate = 0.3;
    const std::vector<int64_t> used =
        used_columns(boost(job_rows(job, job.rows.training, made.columns),
                           job_rows(job, job.rows.holdout, made.columns), pilot)
                         .trees);
    if (!used.empty()) made.columns = used;
  }
  if (affordable() < std::min(kUsefulRounds, options.rounds)) options.rate *= 2;
  options.rounds = std::min(options.rounds, affordable());
  made.fitted = boost(job_rows(job, job.rows.training, made.columns),
                      job_rows(job, job.rows.holdout, made.columns), options);
  return made;
}

void add_booster(MemberForest& forest, const MemberBooster& booster, const MemberInputs& inputs,
                 int64_t member, int64_t first_output) {
  const BoostedTrees& fitted = booster.fitted;
  for (size_t t = 0; t < fitted.trees.size(); ++t) {
    Tree tree = fitted.trees[t];
    for (TreeNode& node : tree) {
      if (node.feature < 0) continue;
      node.feature = inputs.feature(booster.columns[static_cast<size_t>(node.feature)], member);
    }
    forest.trees.push_back(std::move(tree));
    forest.columns.push_back(member * forest.outputs + first_output +
                             static_cast<int64_t>(t) % fitted.outputs);
  }
}

// [n, outputs] of the holdout of each job into its rows and columns.
void keep_holdout(const BoostedTrees& fitted, const std::vector<int64_t>& rows,
                  int64_t first_output, torch::Tensor& out_of_fold) {
  const torch::Tensor sums =
      torch::tensor(fitted.holdout, torch::kFloat).view({-1, fitted.outputs});
  out_of_fold.narrow(1, first_output, fitted.outputs)
      .index_copy_(0, torch::tensor(rows, torch::kLong), sums);
}

// The mean loss of the rows that are known, for each target [K]; of classes [1].
torch::Tensor centre_loss(const TreeData& data, const torch::Tensor& answers,
                          const torch::Tensor& rows) {
  const torch::Tensor found = answers.index_select(0, rows).to(torch::kDouble);
  const torch::Tensor truth = data.y.index_select(0, rows).to(torch::kDouble);
  torch::Tensor weight;  // [n, 1]
  if (data.row_weight.defined()) {
    weight = data.row_weight.to(torch::kDouble).index_select(0, rows).unsqueeze(1);
  }
  const torch::Tensor labels = truth.to(torch::kLong);
  if (data.classes > 0 && data.weight.defined()) {
    const torch::Tensor own = data.weight.to(torch::kDouble).index_select(0, labels.flatten());
    weight = weight.defined() ? weight * own.unsqueeze(1) : own.unsqueeze(1);
  }
  const torch::Tensor error = found - truth;
  const torch::Tensor loss = data.classes > 0 ? -torch::log_softmax(found, 1).gather(1, labels)
                             : data.median    ? error.abs()
                                              : error.square();
  return weight.defined() ? (loss * weight).sum(0) / weight.sum() : loss.mean(0);
}

// w of each target; the smallest of those that are equally good.
std::vector<double> choose_shares(const TreeData& data, const torch::Tensor& networks,
                                  const torch::Tensor& trees, const torch::Tensor& rows) {
  constexpr int kSteps = 20;
  std::vector<double> share, best;
  for (int step = 0; step <= kSteps; ++step) {
    const double w = static_cast<double>(step) / kSteps;
    const torch::Tensor loss = centre_loss(data, networks * (1 - w) + trees * w, rows);
    for (int64_t k = 0; k < loss.numel(); ++k) {
      const double found = loss[k].item<double>();
      const auto at = static_cast<size_t>(k);
      if (step == 0) {
        share.push_back(0);
        best.push_back(found);
      } else if (found < best[at]) {
        share[at] = w;
        best[at] = found;
      }
    }
  }
  return share;
}

// log |residual| of the mix less its mean, [N, K]; NaN of rows without one.
torch::Tensor log_residuals(const TreeData& data, const torch::Tensor& networks,
                            const TreeMembers& made, const torch::Tensor& rows) {
  constexpr double kLeast = 1e-3;  // of the mean |residual|
  const torch::Tensor w = torch::tensor(made.share, torch::kFloat);
  const torch::Tensor mix = networks * (1 - w) + made.out_of_fold * w;
  const torch::Tensor size = (data.y - mix).index_select(0, rows).abs();
  const torch::Tensor mean = size.mean(0, /*keepdim=*/true);
  const torch::Tensor unit = torch::where(mean > 0, mean, torch::ones_like(mean));
  const torch::Tensor logs = torch::maximum(size, unit * kLeast).log();
  torch::Tensor all = torch::full_like(mix, std::numeric_limits<float>::quiet_NaN());
  all.index_copy_(0, rows, logs - logs.mean(0, /*keepdim=*/true));
  return all;
}

// A booster per member and column of `targets`; what each says of its rows goes to out_of_fold.
MemberForest boost_members(const TreeData& data, const std::vector<FitRows>& rows,
                           const std::vector<MemberInputs>& inputs, const torch::Tensor& targets,
                           const BoostOptions& options, Random& seeds, torch::Tensor* out_of_fold) {
  const auto members = static_cast<int64_t>(rows.size());
  const int64_t columns = targets.size(1);
  std::vector<MemberBooster> boosters(static_cast<size_t>(members * columns));
  std::vector<BoostOptions> each(boosters.size(), options);
  for (BoostOptions& own : each) own.seed = seeds.bits();
  std::vector<float> class_weight;
  if (data.classes > 0 && data.weight.defined()) {
    const torch::Tensor flat = data.weight.to(torch::kCPU, torch::kFloat).contiguous();
    class_weight.assign(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  const torch::Tensor values = targets.contiguous();
  run_jobs(members * columns, [&](int64_t i) {
    const auto e = static_cast<size_t>(i / columns);
    const auto target = [&, k = i % columns](int64_t row) {
      return values.data_ptr<float>()[row * columns + k];
    };
    boosters[static_cast<size_t>(i)] =
        run_job({data, inputs[e], rows[e], target, class_weight}, each[static_cast<size_t>(i)]);
  });
  MemberForest forest;
  forest.outputs = columns * boosters[0].fitted.outputs;
  for (int64_t i = 0; i < members * columns; ++i) {
    const auto e = static_cast<size_t>(i / columns);
    const MemberBooster& booster = boosters[static_cast<size_t>(i)];
    add_booster(forest, booster, inputs[e], i / columns, i % columns);
    if (out_of_fold != nullptr) {
      if (!out_of_fold->defined()) {
        *out_of_fold = torch::full({targets.size(0), forest.outputs},
                                   std::numeric_limits<float>::quiet_NaN(), torch::kFloat);
      }
      keep_holdout(booster.fitted, rows[e].holdout, i % columns, *out_of_fold);
    }
  }
  return forest;
}

bool worth_trying(const TreeData& data, const std::vector<FitRows>& rows) {
  size_t fewest = rows[0].training.size();
  for (const FitRows& own : rows) fewest = std::min(fewest, own.training.size());
  if (!can_boost() || fewest < kFewestRows) return false;
  const int64_t outputs = data.classes > 0 ? data.classes : data.y.size(1);
  return affordable_rounds(static_cast<int64_t>(data.x.row_size()),
                           static_cast<int64_t>(rows[0].training.size()), outputs) >= kPilotRounds;
}

BoostOptions answer_options(const TreeData& data, const TreeMemberOptions& asked) {
  BoostOptions options{.rounds = asked.rounds, .rate = asked.rate};
  if (data.classes == 0) {
    options.loss = data.median ? BoostLoss::kAbsolute : BoostLoss::kSquared;
    return options;
  }
  options.loss = BoostLoss::kClasses;
  options.classes = data.classes;
  options.least = 1;
  return options;
}

torch::Tensor held_out_rows(const std::vector<FitRows>& rows) {
  std::vector<int64_t> all;
  for (const FitRows& own : rows) all.insert(all.end(), own.holdout.begin(), own.holdout.end());
  std::sort(all.begin(), all.end());
  return torch::tensor(all, torch::kLong);
}

}  // namespace

bool TreeMembers::used() const {
  return std::any_of(share.begin(), share.end(), [](double w) { return w > 0; });
}

torch::Tensor tree_answer_matrix(int64_t outputs, int64_t targets) {
  if (outputs == targets) return torch::eye(targets);
  return torch::tensor({-0.5f, 0.5f}).view({1, 2});
}

TreeMembers fit_tree_members(const TreeData& data, const std::vector<FitRows>& rows,
                             const torch::Tensor& half_trained, const TreeMemberOptions& options) {
  TreeMembers made;
  torch::Tensor networks = half_trained;
  if (!worth_trying(data, rows)) {
    if (options.train_on) options.train_on();
    return made;
  }
  const torch::NoGradGuard no_gradients;
  Random seeds(options.seed);
  const torch::Tensor targets = statistic_targets(data).contiguous();
  const std::vector<CategoryColumns> categories = with_statistics(data, targets.size(1));
  for (const CategoryColumns& category : categories) {
    for (int64_t l = 0; l < category.count; ++l) {
      made.category_columns.push_back(category.first + l);
    }
  }
  std::vector<MemberInputs> inputs;
  inputs.reserve(rows.size());
  for (const FitRows& own : rows) {
    inputs.emplace_back(data, targets, categories, own, seeds.bits());
    if (!categories.empty()) made.statistics.push_back(inputs.back().statistics());
  }
  made.answers = boost_members(data, rows, inputs, data.y, answer_options(data, options), seeds,
                               &made.out_of_fold);
  const torch::Tensor known = held_out_rows(rows);
  const torch::Tensor answers =
      made.out_of_fold.matmul(tree_answer_matrix(made.answers.outputs, networks.size(1)));
  made.share = choose_shares(data, networks, answers, known);
  const double least = *std::min_element(made.share.begin(), made.share.end());
  if (options.train_on && 1 - least >= kWorthTraining) {
    networks = options.train_on();
    made.share = choose_shares(data, networks, answers, known);
  }
  made.without_networks = !options.heads && std::all_of(made.share.begin(), made.share.end(),
                                                        [](double w) { return w == 1; });
  const bool all_known = known.numel() == data.y.size(0);
  if (!made.used() || !options.heads || data.classes > 0 || !all_known) return made;
  BoostOptions spread{.rounds = 300, .patience = 30, .leaves = 15, .least = 20};
  made.spreads = boost_members(data, rows, inputs, log_residuals(data, networks, made, known),
                               spread, seeds, nullptr);
  return made;
}

}  // namespace fcp
