#include "fcp/calibrate/choose_cut.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/special_numbers.h"
#include "fcp/calibrate/choose.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/graph/simplify.h"
#include "fcp/nn/runtime/bound_support.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

Halving front_and_back(int64_t rows) {
  Halving halves;
  for (int64_t row = 0; row < rows; ++row) {
    halves[row < rows / 2 ? 0 : 1].push_back(static_cast<size_t>(row));
  }
  return halves;
}

bool has_linear_bounds(const ScoreOptions& score) {
  const BoundOptions* bound = score.find(field::bound);
  return bound != nullptr && bound->method != BoundMethod::kIbp;
}

constexpr double kNumberWork = 8;        // a number that is written and read again
constexpr double kNodeWork = 1e5;        // a node that makes a few numbers
constexpr double kBackwards = 20;        // a walk back, in forwards: gradients are far slower
constexpr double kRegion = 3;            // an interval through a node, in forwards
constexpr int64_t kBatch = 1000;         // rows that share a walk, about
constexpr double kRegionsOfAScore = 32;  // of a bisection, and the region itself

}  // namespace

void SkippedCuts::add(const std::string& cut, const std::string& why) {
  const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                  [&](const Reason& reason) { return reason.why == why; });
  if (known == reasons_.end()) {
    reasons_.push_back({why, cut, 1});
  } else {
    ++known->cuts;
  }
}

std::string SkippedCuts::text() const {
  std::string all;
  for (const Reason& reason : reasons_) {
    all += concat("; ", reason.first, ": ", reason.why);
    if (reason.cuts > 1) all += concat(" (at ", reason.cuts, " cuts)");
  }
  return all;
}

torch::Tensor checked_features(const ScoredNetwork& network, const torch::Tensor& x) {
  const TensorInfo& info = network.shared_head()->inputs()[0];
  const bool whole = info.type != ElementType::kUndefined && !is_floating(info.type);
  if (whole) fail("cut at '", info.name, "': it holds whole numbers, expected real ones");
  torch::Tensor features = network.features(x);
  if (features.dim() < 2 || features.size(0) != x.size(0)) {
    fail("cut at '", info.name, "': the tensor is ", features.sizes(), " for ", x.size(0),
         " rows, expected the rows first and numbers behind them");
  }
  return features;
}

torch::Tensor spread_rows(const torch::Tensor& all, int64_t most) {
  const int64_t rows = all.size(0);
  if (rows <= most) return all;
  const torch::Tensor places = torch::arange(most, torch::kLong) * rows / most;
  return all.index_select(0, places.to(torch::kLong));
}

std::vector<double> feature_spread(const torch::Tensor& features) {
  const torch::Tensor spread =
      features.flatten(1).to(torch::kCPU, torch::kDouble).std(0, /*unbiased=*/false);
  const double mean = spread.mean().item<double>();
  if (!(mean > 0) || !std::isfinite(mean)) return {};
  return plain_scores(spread.clamp_min(mean / 1000));
}

CutWork::CutWork(const Graph& graph, const ScoreOptions& score, const torch::Tensor& x)
    : linearized_(score.traits().linear), linear_bounds_(has_linear_bounds(score)) {
  struct CountedNode {
    std::vector<std::string> outputs;
    Work work;
  };
  std::vector<CountedNode> nodes;
  try {
    const torch::NoGradGuard no_gradients;
    const Network network(graph, {.fold_constants = false, .fold_batch_norm = false});
    const int64_t fixed = network.fixed_batch();
    const int64_t rows = fixed == kDynamic ? 1 : fixed;
    std::vector<int64_t> shape = x.sizes().vec();
    shape[0] = rows;
    const Tensors outputs = network.run(
        {x.narrow(0, 0, 1).expand(shape).contiguous()},
        [&](const Step& step, const Tensors& inputs, const Tensors& results) {
          Work work{step.op->flops(inputs, results) / static_cast<double>(rows), 1, 0};
          for (const torch::Tensor& result : results) {
            if (result.defined()) {
              work.numbers += static_cast<double>(result.numel()) / static_cast<double>(rows);
            }
          }
          work.operations += kNumberWork * work.numbers;
          nodes.push_back({step.node.outputs, work});
        });
    outputs_ = static_cast<double>(outputs[0].numel()) / static_cast<double>(rows);
  } catch (const std::exception&) {
    failure_reason();  // what is not a failure of the network goes on
    return;
  }
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    for (const std::string& output : node->outputs) behind_[output] = all_;
    all_.operations += node->work.operations;
    all_.nodes += node->work.nodes;
    all_.numbers += node->work.numbers;
  }
}

double CutWork::of(const std::string& cut, int64_t rows, double regions) const {
  const auto found = behind_.find(cut);
  const Work& head = found == behind_.end() ? all_ : found->second;
  const double walks = linearized_
                           ? 1 + kBackwards * outputs_
                           : kRegion * regions * (linear_bounds_ ? outputs_ + head.numbers : 1);
  const double times = linearized_ ? 1 : regions;
  const auto count = static_cast<double>(rows);
  const auto batches = static_cast<double>((rows + kBatch - 1) / kBatch);
  const double back = linearized_ ? outputs_ : 1;
  return count * (all_.operations - head.operations) + count * head.operations * walks +
         batches * head.nodes * kNodeWork * times * back;
}

std::string too_much_work(double work, double most) {
  const auto rounded = [](double number) {
    std::ostringstream text;
    text << std::setprecision(2) << number;
    return text.str();
  };
  return concat("would take about ", rounded(work), " operations, expected at most ", rounded(most),
                "; it runs where it is asked for by name");
}

std::vector<std::string> affordable_cuts(
    const CutWork& work, const std::vector<std::string>& cuts, int64_t rows, double regions,
    const SelectionOptions& options,
    const std::function<void(const std::string& cut, const std::string& why)>& skip) {
  std::vector<std::pair<double, size_t>> by_work;
  for (size_t i = 0; i < cuts.size(); ++i) by_work.emplace_back(work.of(cuts[i], rows, regions), i);
  std::sort(by_work.begin(), by_work.end());
  std::vector<bool> tried(cuts.size(), false);
  double spent = 0;
  for (const auto& [cost, i] : by_work) {
    spent += cost;
    tried[i] = spent <= options.work || (options.cheapest && i == by_work[0].second);
  }
  std::vector<std::string> some;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (tried[i]) {
      some.push_back(cuts[i]);
    } else {
      skip(cuts[i], too_much_work(spent, options.work));
    }
  }
  return some;
}

void widen(ScoreOptions& score, double floor, double slope) {
  if (double* own = score.find(field::floor)) *own = floor;
  if (double* own = score.find(field::slope)) *own = floor > 0 ? slope : 0;
}

double measure_slope(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                     const Level& level) {
  CalibrationScores own;
  own.sides = score.sides();
  own.scores = score.score(features, truth);
  const TestInputs rows{features, {}, {}};
  const torch::Tensor radii = make_calibration({}, own)->radii(rows, level);
  const double radius = radii.mean().item<double>();
  if (!std::isfinite(radius) || radius == 0) return 0;
  const auto mean_width = [&](const torch::Tensor& at) {
    return region_lengths(score.region(features, at)).mean().item<double>();
  };
  return (mean_width(radii) - mean_width(torch::zeros_like(radii))) / radius;
}

Selection select_cut(const Graph& network, const ScoreOptions& score, const torch::Tensor& x,
                     const torch::Tensor& y, const SelectionOptions& options) {
  torch::NoGradGuard no_grad;
  Graph folded = graph_for_score(network, score);
  fold_constants(folded);
  const std::vector<std::string> cuts = options.cuts.empty() ? feature_cuts(folded) : options.cuts;
  Selection selection;
  double best = kInfinity;
  SkippedCuts skipped;
  std::map<std::string, std::string> unaffordable;
  const std::vector<Halving> halves = {front_and_back(x.size(0))};
  const double regions = kRegionsOfAScore * static_cast<double>(options.floors.size() + 1);
  affordable_cuts(CutWork(folded, score, x), cuts, x.size(0), regions, options,
                  [&](const std::string& cut, const std::string& why) { unaffordable[cut] = why; });
  for (const std::string& tensor : cuts) {
    check_interrupted();
    Candidate candidate{{.cut = tensor, .length = kInfinity}, score, kInfinity};
    widen(candidate.score, 0, 0);
    const auto skip = [&](const std::string& why) {
      candidate.skipped = why;
      skipped.add(tensor, why);
      selection.candidates.push_back(candidate);
      if (options.observe) options.observe(candidate);
    };
    if (unaffordable.contains(tensor)) {
      skip(unaffordable[tensor]);
      continue;
    }
    try {
      const ScoredNetwork predictor(network, candidate.score, tensor, options.device);
      const torch::Tensor features = checked_features(predictor, x);
      auto* const scale = candidate.score.find(field::scale);
      if (options.scaled && scale != nullptr) *scale = feature_spread(features);
      const std::unique_ptr<Score> sharp = make_score(candidate.score, predictor.shared_head());
      const double slope = measure_slope(*sharp, features, y, options.level);
      for (const double floor : options.floors) {
        candidate.floor = floor;
        widen(candidate.score, floor, slope);
        const std::unique_ptr<Score> wide = make_score(candidate.score, predictor.shared_head());
        const HalfMeasures judged = measure_halves(*wide, features, y, options.level, halves);
        candidate.length = judged.length();
        candidate.loss = mean_of(judged.losses(options.objective, options.level));
        candidate.coverage = judged.coverage;
        selection.candidates.push_back(candidate);
        if (options.observe) options.observe(candidate);
        if (candidate.loss < best) {
          best = candidate.loss;
          selection.chosen = selection.candidates.size() - 1;
        }
      }
    } catch (const std::exception&) {
      skip(failure_reason());
    }
  }
  if (!std::isfinite(best)) {
    fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped.text());
  }
  return selection;
}

ChoiceState choose_cut(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.cut && !state.open.floor) return state;
  CalibrationPlan& plan = state.plan;
  SelectionOptions options;
  options.level = rows.settings.level;
  options.device = rows.context.device;
  if (!state.open.cut) {
    options.work = std::numeric_limits<double>::infinity();
    options.cuts = {resolve_cut(plan.network, plan.method.cut)};
    options.scaled = false;
  }
  if (state.open.floor || !state.open.cut) options.floors = {plan.method.score.value(field::floor)};
  Stage stage(rows.context, "choose the cut", 0);
  options.observe = [&](const Candidate&) { stage.advance(1); };
  const Selection selection =
      select_cut(plan.network, plan.method.score, rows.x(), rows.y(), options);
  plan.method.cut = selection.best().cut;
  plan.method.score = selection.best().score;
  if (state.open.cut) {
    ChosenFrom<CutCandidate>& tried = plan.choices.cut.emplace();
    tried.candidates.assign(selection.candidates.begin(), selection.candidates.end());
    tried.chosen = selection.chosen;
  }
  state.open.cut = state.open.floor = false;
  return state;
}

namespace {

// The tensor for so many rows; undefined where the file fixes another number of them, or does not
// tell all shapes.
torch::Tensor example_feature(const Graph& backbone, int64_t rows) {
  const Tensors inputs = zero_inputs(backbone, rows);
  if (inputs.empty()) return {};
  const torch::NoGradGuard no_gradients;
  return Network(backbone).run(inputs)[0];
}

// The numbers of one row of the tensor; nothing where the file does not tell all shapes.
std::optional<int64_t> feature_numbers(const Graph& graph, const std::string& tensor) {
  const Graph backbone = cut(graph, tensor).backbone;
  const int64_t fixed = Network(backbone).fixed_batch();
  const torch::Tensor feature = example_feature(backbone, fixed == kDynamic ? 1 : fixed);
  if (!feature.defined()) return std::nullopt;
  return feature.dim() == 0 ? 1 : feature.numel() / std::max<int64_t>(1, feature.size(0));
}

// A tensor whose first axis is that of the rows, as far as shapes tell: recurrent networks have
// others. Where the graph cannot be cut, neither can it be used.
bool can_be_feature(const Graph& graph, const std::string& tensor, size_t layers) {
  try {
    const CutGraph parts = cut(graph, tensor);
    if (count_layers(parts.head) < layers) return false;
    for (const int64_t rows : {1, 2}) {  // one of them alone may be the length of another axis
      const torch::Tensor feature = example_feature(parts.backbone, rows);
      if (feature.defined() && (feature.dim() == 0 || feature.size(0) != rows)) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whether every node of the head is affine, so that the differences of its outputs are too.
bool is_affine(const Graph& head) {
  const Network network(head);
  return std::all_of(network.steps().begin(), network.steps().end(), [&](const Step& step) {
    std::vector<bool> constant;
    for (const int slot : step.inputs) {
      constant.push_back(slot < 0 || network.constants()[static_cast<size_t>(slot)].defined());
    }
    const BoundRule rule = step.op->bound_rule(constant);
    return rule == BoundRule::kAffine || rule == BoundRule::kShape;
  });
}

// The cut after which the network is affine, where it is not behind `usual`: SqueezeNet has a ReLU
// behind its last layer, and only averages after it. Otherwise, and for outputs that are
// probabilities, `usual`.
std::string before_affine_end(const Graph& graph, const std::vector<std::string>& cuts,
                              const std::string& usual) {
  if (output_meaning(graph, graph.outputs[0].name).kind != OutputKind::kPlain) return usual;
  for (auto tensor = std::find(cuts.begin(), cuts.end(), usual); tensor != cuts.end(); ++tensor) {
    if (can_be_feature(graph, *tensor, 0) && is_affine(cut(graph, *tensor).head)) return *tensor;
  }
  return usual;
}

bool needs_bounds(const ScoreOptions& score) {
  const bool searched_pair = score.find(field::low) != nullptr && score.value(field::paper);
  return score.find(field::bound) != nullptr && !searched_pair;
}

// A node of the head that has no bounds; nothing where all have.
std::optional<std::string> unbounded_node(const Graph& head) {
  const Network network(head);
  const std::vector<BoundSupport> support = bound_support(network);
  for (size_t i = 0; i < support.size(); ++i) {
    if (support[i] == BoundSupport::kNone) return describe(network.steps()[i].node);
  }
  return std::nullopt;
}

// The last of the cuts that leaves so many layers to a head with bounds, or the earliest that
// leaves at least one; and the first node that has none, looking back from the output.
struct BoundedCut {
  std::string cut;
  std::string obstacle;
};
BoundedCut last_bounded_cut(const Graph& graph, const std::vector<std::string>& cuts,
                            size_t layers) {
  BoundedCut found;
  for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
    if (!can_be_feature(graph, *tensor, 0)) continue;
    const Graph head = cut(graph, *tensor).head;
    if (const std::optional<std::string> node = unbounded_node(head)) {
      found.obstacle = *node;
      return found;
    }
    const size_t count = count_layers(head);
    if (count < std::min<size_t>(layers, 1)) continue;
    found.cut = *tensor;
    if (count >= layers) return found;
  }
  return found;
}

}  // namespace

CutChoice default_cut(const Graph& network, const ScoreOptions& score) {
  Graph folded = graph_for_score(without_heads(network), score);
  fold_constants(folded);
  const std::vector<std::string> cuts = feature_cuts(folded);
  const auto last_with = [&](size_t layers) -> std::string {
    for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
      if (can_be_feature(folded, *tensor, layers)) return *tensor;
    }
    if (layers > 1) return "";
    fail("the network has no tensor at which it can be cut; residual and lac need none");
  };
  const bool by_margin = score.traits().labels && !score.searches();
  const size_t wanted = std::min<size_t>(by_margin ? 1 : 2, count_layers(folded));
  std::string usual = last_with(wanted);
  if (usual.empty()) usual = last_with(1);
  if (needs_bounds(score) && unbounded_node(cut(folded, usual).head)) {
    const BoundedCut bounded = last_bounded_cut(folded, cuts, wanted);
    if (bounded.cut.empty() && !bounded.obstacle.empty()) {
      fail(score.name(),
           " needs a cut behind which all nodes have bounds, and this network has none: ",
           bounded.obstacle, " has no bounds; use ",
           score.traits().labels ? "lac" : "residual or linearized");
    }
    if (!bounded.cut.empty()) {
      return {bounded.cut, concat("cut: taking '", bounded.cut, "'; before it, at '", usual, "', ",
                                  bounded.obstacle, " has no bounds")};
    }
  }
  if (by_margin) return {before_affine_end(folded, cuts, usual)};
  if (wanted < 2) return {usual};
  const std::optional<int64_t> numbers = feature_numbers(folded, usual);
  if (!numbers || *numbers <= kLargestFeature) return {usual};
  const std::string later = last_with(1);
  const std::optional<int64_t> fewer = feature_numbers(folded, later);
  if (!fewer || *fewer >= *numbers) return {usual};
  return {later,
          concat("cut: taking '", later, "' with ", *fewer,
                 " numbers per row, before the last layer; the feature before the last two, '",
                 usual, "', has ", *numbers)};
}

}  // namespace fcp
