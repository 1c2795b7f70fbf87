#include "fcp/training/tabular.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/data/split.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/export.h"
#include "fcp/training/input_encoding.h"
#include "fcp/training/training_data.h"

namespace fcp {
namespace {

void check_tabular_options(const TabularOptions& options) {
  constexpr int64_t kMostMembers = 1000;
  if (options.members < 1 || options.members > kMostMembers) {
    fail(options.members, " members, expected from 1 to ", kMostMembers);
  }
  if (options.layers.empty()) fail("no hidden layer, expected at least one");
  for (const int64_t width : options.layers) {
    if (width < 1) fail("a hidden layer of width ", width, ", expected at least 1");
  }
  if (options.batch < 0) fail("batches of ", options.batch, " rows, expected at least 1");
  if (options.epochs < 0) fail(options.epochs, " epochs, expected at least 1");
  if (options.patience < 0) fail("patience of ", options.patience, " epochs, expected at least 1");
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    fail("dropout ", options.dropout, ", expected at least 0 and below 1");
  }
  if (!(options.rate >= 0 && std::isfinite(options.rate))) {
    fail("learning rate ", options.rate, ", expected above 0");
  }
  if (!(options.holdout > 0 && options.holdout < 1)) {
    fail("hold-out ", options.holdout, ", expected above 0 and below 1");
  }
}

void check_tabular_loss(const TabularOptions& options) {
  const bool quantile = options.loss == Loss::kQuantile;
  if (quantile && !(options.low > 0 && options.low < options.high && options.high < 1)) {
    fail("quantile levels ", options.low, " and ", options.high, ", expected 0 < low < high < 1");
  }
  if (options.classes != 0 && options.loss != Loss::kCrossEntropy) {
    fail("a number of classes is for cross-entropy, found ", loss_name(options.loss));
  }
  if (options.target_scale == TargetScale::kLog && options.loss != Loss::kMse) {
    fail("the logarithm of the target is for mse, found ", loss_name(options.loss));
  }
  if (options.centre != Centre::kAuto && options.loss != Loss::kMse) {
    fail("the mean or median is for mse, found ", loss_name(options.loss));
  }
}

int64_t batch_for(int64_t rows) {
  if (rows >= 1000) return 256;
  if (rows >= 500) return 128;
  return rows >= 200 ? 64 : 32;
}

constexpr int64_t kLarge = 8000;  // rows

// Many steps can be shorter ones.
double rate_for(int64_t rows) { return rows >= kLarge ? 1.5e-3 : 3e-3; }

// Small tables need steps, large ones fewer passes.
int64_t epochs_for(int64_t rows, int64_t batch) {
  constexpr int64_t kHuge = 50000, kFewestSteps = 1000;
  if (rows >= kHuge) return std::max<int64_t>(16, 80 * kHuge / rows);
  if (rows >= kLarge) return 80;
  const int64_t batches = std::max<int64_t>(1, rows / batch);
  return std::clamp<int64_t>((kFewestSteps + batches - 1) / batches, 120, 400);
}

EnsembleFitOptions fit_options_for(const TabularOptions& options, const FitRows& rows,
                                   uint64_t seed) {
  const int64_t count = static_cast<int64_t>(rows.training.size());
  EnsembleFitOptions fitting;
  fitting.hidden = options.layers;
  fitting.dropout = options.dropout;
  fitting.rate = options.rate > 0 ? options.rate : rate_for(count);
  fitting.batch = options.batch > 0 ? options.batch : batch_for(count);
  fitting.epochs = options.epochs > 0 ? options.epochs : epochs_for(count, fitting.batch);
  fitting.patience =
      options.patience > 0 ? options.patience : std::max<int64_t>(10, 3 * fitting.epochs / 10);
  fitting.seed = seed;
  return fitting;
}

// Networks to train: the members for the mean, or for the median, or both.
std::vector<Centre> centres_to_try(const TabularOptions& options, const Array& y, bool log) {
  if (options.loss != Loss::kMse) return {Centre::kMean};
  if (options.centre != Centre::kAuto) return {options.centre};
  if (log || tail_weight(y) < kHeavyTail) return {Centre::kMean};
  return {Centre::kMean, Centre::kMedian};
}

// Where trees stand beside the networks, these are trained for a quarter of the epochs, and for
// half of them more where the trees leave them enough weight (tree_members.h). Each cycle ends at a
// rate of 0, so that a network is whole after either.
class TwoCycles {
 public:
  TwoCycles(const TabularOptions& options, const EnsembleFitOptions& whole,
            const EnsembleProgress& progress)
      : whole_(whole), progress_(progress) {
    const bool trees = options.trees && options.loss != Loss::kQuantile && can_boost();
    if (!trees || options.epochs > 0) return;
    first_epochs_ = (whole.epochs + 3) / 4;
    whole_.epochs = first_epochs_ + whole.epochs / 2;
  }

  bool two() const { return first_epochs_ > 0; }
  int64_t epochs() const { return whole_.epochs; }
  EnsembleFitOptions first() const { return two() ? cycle(first_epochs_) : whole_; }
  EnsembleFitOptions second(const EnsembleFit& before) const {
    EnsembleFitOptions options = cycle(whole_.epochs - first_epochs_);
    options.start = before.parameters;
    options.seed = whole_.seed + 1;
    return options;
  }

  EnsembleProgress progress_of_first() {
    if (!progress_ || !two()) return progress_;
    return [this](EnsembleStep step) {
      done_ = step.step;
      const double all = static_cast<double>(whole_.epochs) / static_cast<double>(first_epochs_);
      steps_ = static_cast<int64_t>(all * static_cast<double>(step.steps));
      step.seconds_left *= static_cast<double>(steps_ - step.step) /
                           static_cast<double>(std::max<int64_t>(step.steps - step.step, 1));
      step.epochs = whole_.epochs;
      step.steps = steps_;
      progress_(step);
    };
  }
  EnsembleProgress progress_of_second() const {
    if (!progress_) return progress_;
    return [this, done = done_](EnsembleStep step) {
      step.step += done;
      step.steps = std::max(steps_, done + step.steps);
      step.epoch += first_epochs_;
      step.epochs = whole_.epochs;
      progress_(step);
    };
  }

 private:
  EnsembleFitOptions cycle(int64_t epochs) const {
    EnsembleFitOptions options = whole_;
    options.epochs = epochs;
    options.patience = std::max<int64_t>(10, epochs * whole_.patience / whole_.epochs);
    return options;
  }

  EnsembleFitOptions whole_;
  const EnsembleProgress& progress_;
  int64_t first_epochs_ = 0, done_ = 0, steps_ = 0;
};

void keep_networks(EnsembleFit& fit, const std::vector<int64_t>& networks) {
  fit.parameters = fit.parameters.index_select(0, torch::tensor(networks, torch::kLong));
  std::vector<FitCurve> curves;
  for (const int64_t network : networks) {
    curves.push_back(fit.curves[static_cast<size_t>(network)]);
  }
  fit.curves = std::move(curves);
}

// The epochs of the first cycle in front of those of the second.
void join_curves(const EnsembleFit& first, EnsembleFit& second) {
  for (size_t e = 0; e < second.curves.size(); ++e) {
    FitCurve joined = first.curves[e];
    const FitCurve& more = second.curves[e];
    if (more.best_epoch > 0) {
      joined.best_epoch = static_cast<int64_t>(joined.holdout_loss.size()) + more.best_epoch;
    }
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(joined.training_loss, more.training_loss);
    append(joined.holdout_loss, more.holdout_loss);
    second.curves[e] = std::move(joined);
  }
}

void check_row_weights(const std::vector<double>& weights, size_t rows) {
  if (!weights.empty() && weights.size() != rows) {
    fail(weights.size(), " weights of ", rows, " rows, expected one for each");
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0 && std::isfinite(weights[i])) continue;
    fail("the weight of row ", i, " (from 0) is ", weights[i],
         ", expected a finite number above 0");
  }
}

// Undefined where there are none.
torch::Tensor weight_of(const torch::Tensor& weight, const std::vector<int64_t>& rows) {
  if (!weight.defined()) return {};
  return weight.index_select(0, torch::tensor(rows, torch::kLong));
}

struct TabularData {
  torch::Tensor x;       // encoded, on the device
  torch::Tensor y;       // scaled, on the device
  torch::Tensor weight;  // of rows, of mean 1, on the CPU; undefined: all 1
  TargetScaling scaling;
  int64_t targets = 0;
  int64_t outputs = 0;  // of a network
};

TargetScaling scaling_for(const InputEncoding& encoding, const Array& x, const Array& y,
                          const TabularOptions& options) {
  const std::optional<double> shift = log_shift(y);
  if (options.target_scale == TargetScale::kLog && !shift) {
    fail("the logarithm of the target takes one target without negative values");
  }
  const bool log =
      options.target_scale == TargetScale::kLog ||
      (options.target_scale == TargetScale::kAuto && options.loss == Loss::kMse && shift &&
       prefers_log(with_calendar(encoding, x), y, options.categories, options.seed,
                   mean_one(options.row_weights)));
  return log ? fit_log_scaling(y, *shift) : fit_target_scaling(y);
}

TabularData prepare_tabular(const InputEncoding& encoding, const Array& x, const Array& y,
                            const TabularOptions& options) {
  TabularData data;
  data.targets = static_cast<int64_t>(y.row_size());
  const bool labels = options.loss == Loss::kCrossEntropy;
  const int64_t columns = labels ? count_classes(y.values, options.classes) : data.targets;
  check_loss_weights(options.weights, columns, labels ? "class" : "target");
  data.outputs = labels ? columns : 2 * columns;
  data.scaling = labels ? TargetScaling{{0}, {1}} : scaling_for(encoding, x, y, options);
  data.x = encode_rows(encoding, x).to(options.device);
  data.y = scale_targets(data.scaling, y).to(options.device);
  data.weight = mean_one(options.row_weights);
  return data;
}

StackLoss make_stack_loss(const TabularOptions& options, const TabularData& data,
                          const std::vector<Centre>& centres) {
  StackLoss loss{
      .kind = options.loss, .low = options.low, .high = options.high, .weights = {}, .shares = {}};
  const bool labels = options.loss == Loss::kCrossEntropy;
  const int64_t columns = labels ? data.outputs : data.targets;
  loss.weights = options.weights.empty() ? torch::ones({columns}, torch::kFloat)
                                         : torch::tensor(options.weights, torch::kFloat);
  loss.weights = loss.weights.to(options.device);
  if (options.loss != Loss::kMse) return loss;
  std::vector<float> shares;
  for (const Centre centre : centres) {
    for (int64_t e = 0; e < options.members; ++e) {
      shares.push_back(centre == Centre::kMean ? 1.0f : 0.0f);
      shares.push_back(1.0f);
    }
  }
  loss.shares = torch::tensor(shares, torch::kFloat).view({-1, 2}).to(options.device);
  return loss;
}

OutputScaling output_scaling(const TabularData& data, Loss loss, Centre centre) {
  OutputScaling scaling;
  if (loss == Loss::kCrossEntropy) {
    scaling.columns.resize(static_cast<size_t>(data.outputs));
    std::iota(scaling.columns.begin(), scaling.columns.end(), 0);
    scaling.scale.assign(scaling.columns.size(), 1);
    scaling.offset.assign(scaling.columns.size(), 0);
    return scaling;
  }
  scaling.log = data.scaling.log;
  scaling.shift = data.scaling.shift;
  scaling.least = data.scaling.least;
  scaling.most = data.scaling.most;
  for (const int64_t half : {0, 1}) {
    const bool wanted = loss == Loss::kQuantile || half == (centre == Centre::kMedian ? 1 : 0);
    for (int64_t k = 0; wanted && k < data.targets; ++k) {
      scaling.columns.push_back(half * data.targets + k);
      scaling.scale.push_back(data.scaling.deviation[static_cast<size_t>(k)]);
      scaling.offset.push_back(data.scaling.mean[static_cast<size_t>(k)]);
    }
  }
  return scaling;
}

// Errors of the networks [first, first + members) on the rows that each has not seen, in the scale
// of training, [rows, K].
torch::Tensor unseen_errors(const EnsembleFit& fit, const TabularData& data,
                            const std::vector<FitRows>& rows, int64_t first, Centre centre) {
  const int64_t column = centre == Centre::kMedian ? data.targets : 0;
  std::vector<torch::Tensor> errors;
  for (size_t e = 0; e < rows.size(); ++e) {
    const torch::Tensor found =
        network_outputs(fit, first + static_cast<int64_t>(e), data.x, rows[e].holdout)
            .narrow(1, column, data.targets);
    const torch::Tensor indices = torch::tensor(rows[e].holdout, torch::kLong).to(data.y.device());
    errors.push_back(found - data.y.index_select(0, indices).to(torch::kCPU));
  }
  return torch::cat(errors).to(torch::kDouble);
}

// Which of the centres that were tried is the answer.
size_t choose_centre(const EnsembleFit& fit, const TabularData& data,
                     const std::vector<FitRows>& rows, const std::vector<Centre>& centres) {
  if (centres.size() < 2) return 0;
  constexpr double kShorter = 0.97, kRmseAllowed = 1.15;
  const int64_t members = static_cast<int64_t>(rows.size());
  const torch::Tensor mean = unseen_errors(fit, data, rows, 0, centres[0]);
  const torch::Tensor median = unseen_errors(fit, data, rows, members, centres[1]);
  std::vector<int64_t> judged;
  for (const FitRows& own : rows) {
    judged.insert(judged.end(), own.holdout.begin(), own.holdout.end());
  }
  const torch::Tensor weight = weight_of(data.weight, judged);
  const auto squares = [&](const torch::Tensor& errors) {
    const torch::Tensor all = errors.square();
    return (weight.defined() ? all * weight : all).mean().item<double>();
  };
  double length_ratio = 0, rmse_ratio = 0;  // means over targets of logarithms
  for (int64_t k = 0; k < data.targets; ++k) {
    const torch::Tensor a = mean.select(1, k), b = median.select(1, k);
    length_ratio += std::log(residual_length(b, weight) / residual_length(a, weight));
    rmse_ratio += 0.5 * std::log(squares(b) / squares(a));
  }
  const double targets = static_cast<double>(data.targets);
  const bool shorter = std::exp(length_ratio / targets) < kShorter;
  return shorter && std::exp(rmse_ratio / targets) <= kRmseAllowed ? 1 : 0;
}

// What each network says of the rows that it has not seen, in the scale of training: [N, outputs];
// NaN of rows that all have seen.
torch::Tensor unseen_outputs(const EnsembleFit& fit, const std::vector<int64_t>& networks,
                             const TabularData& data, const std::vector<FitRows>& rows,
                             const std::vector<int64_t>& columns) {
  torch::Tensor all = torch::full({data.x.size(0), static_cast<int64_t>(columns.size())},
                                  std::numeric_limits<float>::quiet_NaN(), torch::kFloat);
  const torch::Tensor chosen = torch::tensor(columns, torch::kLong);
  for (size_t e = 0; e < rows.size(); ++e) {
    const torch::Tensor found =
        network_outputs(fit, networks[e], data.x, rows[e].holdout).index_select(1, chosen);
    all.index_copy_(0, torch::tensor(rows[e].holdout, torch::kLong), found);
  }
  return all;
}

// Boosted members beside these networks, where they are wanted and help.
TreeMembers add_trees(const torch::Tensor& unseen, const Array& x, const InputEncoding& encoding,
                      const TabularData& data, const std::vector<FitRows>& rows,
                      const TabularOptions& options, Centre centre, uint64_t seed,
                      const std::function<torch::Tensor()>& train_on) {
  if (!options.trees || options.loss == Loss::kQuantile) return {};
  const bool labels = options.loss == Loss::kCrossEntropy;
  const Array all = with_calendar(encoding, x);
  const TreeData known{.x = all,
                       .y = data.y.to(torch::kCPU),
                       .weight = labels && !options.weights.empty()
                                     ? torch::tensor(options.weights, torch::kFloat)
                                     : torch::Tensor(),
                       .classes = labels ? data.outputs : 0,
                       .median = centre == Centre::kMedian,
                       .categories = options.categories,
                       .row_weight = data.weight,
                       .groups = &options.groups};
  TreeMembers trees = fit_tree_members(
      known, rows, unseen, {.heads = options.heads, .seed = seed, .train_on = train_on});
  return trees.used() ? trees : TreeMembers{};
}

// Features of the graph for all rows, [N, E · D].
torch::Tensor graph_features(const Graph& graph, const Array& x) {
  const torch::NoGradGuard no_gradients;
  const Network backbone(cut(graph, "features").backbone);
  const int64_t rows = static_cast<int64_t>(x.rows());
  const int64_t columns = static_cast<int64_t>(x.row_size());
  constexpr int64_t kBlock = 2048;
  std::vector<torch::Tensor> blocks;
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows - first);
    const torch::Tensor block = torch::from_blob(
        const_cast<float*>(x.values.data() + first * columns), {count, columns}, torch::kFloat);
    blocks.push_back(backbone.forward(block));
  }
  return torch::cat(blocks);
}

// What the members say of the rows they have not seen, by the graph itself.
void keep_unseen(const EnsembleFit& fit, const std::vector<int64_t>& networks,
                 const std::vector<FitRows>& rows, const OutputScaling& scaling, const Array& x,
                 const TreeMembers& trees, TabularResult& result) {
  const torch::Tensor features = graph_features(result.graph, x);
  const int64_t width = features.size(1) / static_cast<int64_t>(networks.size());
  const int64_t outputs = static_cast<int64_t>(scaling.columns.size());
  result.out_of_fold = torch::full({features.size(0), outputs},
                                   std::numeric_limits<float>::quiet_NaN(), torch::kFloat);
  for (size_t e = 0; e < networks.size(); ++e) {
    const torch::Tensor indices = torch::tensor(rows[e].holdout, torch::kLong);
    const AnswerLayer answer = answer_layer(fit, networks[e], scaling, trees);
    UnseenRows unseen;
    unseen.rows = rows[e].holdout;
    unseen.features = features.narrow(1, static_cast<int64_t>(e) * width, width)
                          .index_select(0, indices)
                          .contiguous();
    unseen.predictions =
        mapped_back(scaling, torch::addmm(answer.bias, unseen.features, answer.weight));
    result.out_of_fold.index_copy_(0, indices, unseen.predictions);
    result.members.push_back(std::move(unseen));
  }
}

size_t fewest_rows(const std::vector<std::vector<int64_t>>& parts) {
  const auto least = std::min_element(
      parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return static_cast<size_t>(least - parts.begin());
}

// Each group, in random order, goes to the fold that has the fewest rows so far; those of a single
// member to the rows that it does not see, until they are enough.
std::vector<FitRows> deal_groups(std::span<const int64_t> groups, int64_t members, double holdout,
                                 uint64_t seed) {
  const GroupedOrder order = grouped_order(groups, seed);
  const auto folds = static_cast<size_t>(std::max<int64_t>(members, 2));
  const auto aside = static_cast<size_t>(std::ceil(holdout * static_cast<double>(groups.size())));
  std::vector<std::vector<int64_t>> parts(folds);
  size_t part = 0, count = 0;
  for (size_t i = 0; i < order.rows.size(); ++i) {
    if (order.first[i] == i) {
      ++count;
      part = members == 1 ? (parts[0].size() < aside ? 0 : 1) : fewest_rows(parts);
    }
    parts[part].push_back(static_cast<int64_t>(order.rows[i]));
  }
  if (count < folds || parts[1].empty()) {
    fail("found ", count, " groups of rows to train ", members, " members on, expected at least ",
         folds, ", because the rows of a group stay together");
  }
  std::vector<FitRows> dealt(static_cast<size_t>(members));
  for (size_t e = 0; e < dealt.size(); ++e) {
    for (size_t fold = 0; fold < folds; ++fold) {
      std::vector<int64_t>& own = fold == e ? dealt[e].holdout : dealt[e].training;
      own.insert(own.end(), parts[fold].begin(), parts[fold].end());
    }
  }
  return dealt;
}

void judge(const Array& y, const TabularOptions& options, const torch::Tensor& weight,
           TabularResult& result) {
  std::vector<int64_t> rows;
  for (const UnseenRows& member : result.members) {
    rows.insert(rows.end(), member.rows.begin(), member.rows.end());
  }
  const torch::Tensor indices = torch::tensor(rows, torch::kLong);
  const torch::Tensor truth =
      torch::tensor(y.values, torch::kFloat).view({static_cast<int64_t>(y.rows()), -1});
  result.error = holdout_error(options.loss, result.out_of_fold.index_select(0, indices),
                               truth.index_select(0, indices), weight_of(weight, rows));
  result.warnings =
      training_warnings(result.error, result.curves, result.epochs, options.target_names);
}

}  // namespace

std::vector<FitRows> deal_rows(int64_t rows, int64_t members, double holdout, uint64_t seed,
                               std::span<const int64_t> groups) {
  if (!groups.empty()) return deal_groups(groups, members, holdout, seed);
  if (members > 1 && rows < 2 * members) {
    fail("found ", rows, " rows to train ", members, " members on, expected at least ",
         2 * members);
  }
  const std::vector<size_t> order = Random(seed).permutation(static_cast<size_t>(rows));
  const int64_t aside = std::clamp<int64_t>(
      static_cast<int64_t>(std::llround(holdout * static_cast<double>(rows))), 1, rows - 1);
  std::vector<FitRows> dealt(static_cast<size_t>(members));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = static_cast<int64_t>(order[static_cast<size_t>(i)]);
    for (int64_t e = 0; e < members; ++e) {
      const bool unseen = members == 1 ? i < aside : i % members == e;
      FitRows& own = dealt[static_cast<size_t>(e)];
      (unseen ? own.holdout : own.training).push_back(row);
    }
  }
  return dealt;
}

TabularResult train_tabular(const Array& x, const Array& y, const TabularOptions& options,
                            const EnsembleProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_tabular_options(options);
  check_tabular_loss(options);
  check_training_rows(x, y, options.loss, /*missing=*/true, options.may_be_constant);
  if (!options.groups.empty() && options.groups.size() != x.rows()) {
    fail(options.groups.size(), " groups of ", x.rows(), " rows, expected one for each");
  }
  check_row_weights(options.row_weights, x.rows());
  Random seeds(options.seed);
  const std::vector<FitRows> rows = deal_rows(static_cast<int64_t>(x.rows()), options.members,
                                              options.holdout, seeds.bits(), options.groups);
  InputEncoding encoding = fit_input_encoding(x, options.dates);
  encoding.fill = encoding.fill || options.fill_missing;
  const TabularData data = prepare_tabular(encoding, x, y, options);
  const std::vector<Centre> centres = centres_to_try(options, y, data.scaling.log);
  EnsembleFitOptions fitting = fit_options_for(options, rows[0], seeds.bits());
  if (data.weight.defined()) fitting.row_weight = data.weight.to(options.device);

  std::vector<FitRows> all;
  for (size_t i = 0; i < centres.size(); ++i) all.insert(all.end(), rows.begin(), rows.end());
  const StackLoss loss = make_stack_loss(options, data, centres);
  TwoCycles cycles(options, fitting, progress);
  EnsembleFit fit = fit_ensemble(data.x, data.y, all, loss, data.outputs, cycles.first(),
                                 cycles.progress_of_first());

  const size_t chosen = choose_centre(fit, data, rows, centres);
  std::vector<int64_t> networks(rows.size());
  std::iota(networks.begin(), networks.end(), static_cast<int64_t>(chosen * rows.size()));
  const OutputScaling scaling = output_scaling(data, options.loss, centres[chosen]);
  TabularResult result;
  result.centre = centres[chosen];
  result.epochs = cycles.epochs();
  const auto unseen = [&] { return unseen_outputs(fit, networks, data, rows, scaling.columns); };
  std::function<torch::Tensor()> train_on;
  if (cycles.two()) {
    train_on = [&] {
      EnsembleFit first = std::exchange(fit, {});
      keep_networks(first, networks);
      std::iota(networks.begin(), networks.end(), 0);
      fit = fit_ensemble(data.x, data.y, rows, make_stack_loss(options, data, {centres[chosen]}),
                         data.outputs, cycles.second(first), cycles.progress_of_second());
      join_curves(first, fit);
      return unseen();
    };
  }
  const TreeMembers trees = add_trees(unseen(), x, encoding, data, rows, options, centres[chosen],
                                      seeds.bits(), train_on);
  for (const int64_t network : networks) {
    result.curves.push_back(fit.curves[static_cast<size_t>(network)]);
  }
  result.tree_share = trees.share;
  result.log_target = scaling.log;
  result.graph = export_ensemble(fit, networks, encoding, scaling, options.loss, trees);
  keep_unseen(fit, networks, rows, scaling, x, trees, result);
  judge(y, options, data.weight, result);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = elapsed.count();
  return result;
}

}  // namespace fcp
