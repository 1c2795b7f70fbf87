#include "fcp/calibration/selection.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/calibration.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/conformal/following_quantile.h"
#include "fcp/network/bound_support.h"
#include "fcp/network/cut.h"
#include "fcp/network/network.h"
#include "fcp/network/output_kind.h"
#include "fcp/network/simplify.h"
#include "fcp/network/tensor_memory.h"
#include "fcp/scores/cqr.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/region_measures.h"
#include "fcp/scores/search_norm.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

struct LengthAndCoverage {
  double length = 0;
  double coverage = 0;
};

// The rows' own scores as a split calibration would keep them.
CalibrationScores rows_of(const Score& score, const std::vector<double>& scores, int64_t begin,
                          int64_t count) {
  CalibrationScores rows;
  rows.sides = score.sides();
  const auto first = scores.begin() + begin * rows.sides;
  rows.scores.assign(first, first + count * rows.sides);
  return rows;
}

// Radius from one half of the rows, length and coverage on the other; the mean of both ways.
LengthAndCoverage judge(const Score& score, const torch::Tensor& features,
                        const torch::Tensor& truth, const Level& level) {
  const std::vector<double> scores = score.score(features, truth);
  const int64_t rows = features.size(0), half = rows / 2;
  LengthAndCoverage result;
  for (const bool first : {true, false}) {
    const int64_t begin = first ? half : 0;
    const int64_t count = first ? rows - half : half;
    const auto calibration =
        make_calibration({}, rows_of(score, scores, first ? 0 : half, first ? half : rows - half));
    const TestInputs fresh{features.narrow(0, begin, count), {}, {}};
    const Regions regions = score.region(fresh.features, calibration->radii(fresh, level));
    result.length += region_lengths(regions).mean().item<double>() / 2;
    const std::vector<double> own = rows_of(score, scores, begin, count).scores;
    const std::vector<double> p_values = calibration->p_values(fresh, own);
    const auto covered = std::count_if(p_values.begin(), p_values.end(),
                                       [&](double p) { return p > level.value(); });
    result.coverage += static_cast<double>(covered) / static_cast<double>(count) / 2;
  }
  return result;
}

// Why cuts were passed over: each reason once, with the cuts that it holds for.
class SkippedCuts {
 public:
  void add(const std::string& cut, const std::string& why) {
    const auto known = std::find_if(reasons_.begin(), reasons_.end(),
                                    [&](const Reason& reason) { return reason.why == why; });
    if (known == reasons_.end()) {
      reasons_.push_back({why, cut, 1});
    } else {
      ++known->cuts;
    }
  }

  std::string text() const {
    std::string all;
    for (const Reason& reason : reasons_) {
      all += concat("; ", reason.first, ": ", reason.why);
      if (reason.cuts > 1) all += concat(" (at ", reason.cuts, " cuts)");
    }
    return all;
  }

 private:
  struct Reason {
    std::string why;
    std::string first;
    size_t cuts = 0;
  };
  std::vector<Reason> reasons_;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The tensor for so many rows; undefined where the file fixes another number of them, or does not
// tell all shapes.
torch::Tensor example_feature(const Graph& backbone, int64_t rows) {
  Tensors inputs;
  for (const TensorInfo& input : backbone.inputs) {
    std::vector<int64_t> shape = input.shape;
    const bool known = input.known_rank && !shape.empty() &&
                       (shape[0] == kDynamic || shape[0] == rows) &&
                       std::find(shape.begin() + 1, shape.end(), kDynamic) == shape.end();
    if (!known) return {};
    shape[0] = rows;
    inputs.push_back(declared_zeros(shape, input.type, input.name));
  }
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

}  // namespace

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

void check_time(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                double times, double limit) {
  const int64_t rows = features.size(0);
  for (int64_t probe = 1;; probe = std::min(8 * probe, rows)) {
    const Clock::time_point start = Clock::now();
    score.score(features.narrow(0, 0, probe), truth.narrow(0, 0, probe));
    const double seconds = seconds_since(start);
    const double expected =
        seconds * static_cast<double>(rows) / static_cast<double>(probe) * times;
    if (expected <= limit) return;
    if (probe == rows || seconds > limit / 100) {
      fail("would take about ", static_cast<int64_t>(expected), " s, more than ", limit);
    }
  }
}

namespace {

bool needs_bounds(const ScoreOptions& score) {
  return score.name == "nested" || score.name == "feature_margin" || score.name == "surrogate" ||
         (score.name == "feature_cqr" && !score.paper);
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
  const std::vector<std::string> cuts = valid_cuts(folded);
  const auto last_with = [&](size_t layers) -> std::string {
    for (auto tensor = cuts.rbegin(); tensor != cuts.rend(); ++tensor) {
      if (can_be_feature(folded, *tensor, layers)) return *tensor;
    }
    if (layers > 1) return "";
    fail("the network has no tensor at which it can be cut; residual and lac need none");
  };
  const bool by_margin = predicts_labels(score.name) && score.name != "feature_sampled";
  const size_t wanted = std::min<size_t>(by_margin ? 1 : 2, count_layers(folded));
  std::string usual = last_with(wanted);
  if (usual.empty()) usual = last_with(1);
  if (needs_bounds(score) && unbounded_node(cut(folded, usual).head)) {
    const BoundedCut bounded = last_bounded_cut(folded, cuts, wanted);
    if (bounded.cut.empty() && !bounded.obstacle.empty()) {
      fail(score.name,
           " needs a cut behind which all nodes have bounds, and this network has none: ",
           bounded.obstacle, " has no bounds; use ",
           predicts_labels(score.name) ? "lac" : "residual or linearized");
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

double measure_slope(const Score& score, const torch::Tensor& features, const torch::Tensor& truth,
                     const Level& level) {
  const CalibrationScores own = rows_of(score, score.score(features, truth), 0, features.size(0));
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
  const std::vector<std::string> cuts = options.cuts.empty() ? valid_cuts(folded) : options.cuts;
  const double infinity = std::numeric_limits<double>::infinity();
  const bool takes_scale = score.name == "nested" || score.name == "feature_cqr";
  Selection selection;
  double best = infinity;
  SkippedCuts skipped;
  for (const std::string& tensor : cuts) {
    check_interrupted();
    Candidate candidate{tensor, score, infinity, 0, ""};
    candidate.score.floor = 0;
    const auto skip = [&](const std::string& why) {
      candidate.skipped = why;
      skipped.add(tensor, why);
      selection.candidates.push_back(candidate);
      if (options.observe) options.observe(candidate);
    };
    try {
      const ScoredNetwork predictor(network, candidate.score, tensor, options.device);
      const torch::Tensor features = predictor.features(x);
      if (options.scaled && takes_scale) candidate.score.scale = feature_spread(features);
      const std::unique_ptr<Score> sharp = make_score(candidate.score, predictor.shared_head());
      check_time(*sharp, features, y, static_cast<double>(options.floors.size() + 1),
                 options.seconds);
      const double slope = measure_slope(*sharp, features, y, options.level);
      for (const double floor : options.floors) {
        candidate.score.floor = floor;
        candidate.score.slope = floor > 0 ? slope : 0;
        const std::unique_ptr<Score> wide = make_score(candidate.score, predictor.shared_head());
        const LengthAndCoverage judged = judge(*wide, features, y, options.level);
        candidate.length = judged.length;
        candidate.coverage = judged.coverage;
        selection.candidates.push_back(candidate);
        if (options.observe) options.observe(candidate);
        if (candidate.length < best) {
          best = candidate.length;
          selection.chosen = selection.candidates.size() - 1;
        }
      }
    } catch (const Error& error) {
      skip(error.what());
    } catch (const std::bad_alloc&) {
      skip("out of memory");
    }
  }
  if (!std::isfinite(best)) {
    fail("no cut gives finite intervals on the ", x.size(0), " selection rows", skipped.text());
  }
  return selection;
}

namespace {

// The signed distances of Algorithm 4 after 1, 2, … steps, for both sides at once: one trajectory
// a side serves all numbers of steps.
std::vector<CalibrationScores> cqr_rows_by_step(const std::shared_ptr<const Network>& head,
                                                const ScoreOptions& score, const StepsFolds& rows,
                                                int most) {
  const QuantileOutputs outputs = quantile_outputs(*head, score);
  const Tensors answers = head->run_rows({rows.calibration_features});
  std::vector<CalibrationScores> by_step(static_cast<size_t>(most));
  const auto n = static_cast<size_t>(rows.calibration_features.size(0));
  for (CalibrationScores& step : by_step) {
    step.sides = 2;
    step.scores.resize(2 * n);
  }
  for (const size_t side : {0, 1}) {
    const size_t output = side == 0 ? outputs.low : outputs.high;
    const torch::Tensor quantile = output_matrix(answers[output]);
    const torch::Tensor y = truth_matrix(rows.calibration_truth, quantile);
    const torch::Tensor outside = (side == 0 ? y < quantile : y > quantile).squeeze(1);
    const SurrogateSearch search(
        head, output, {.rate = score.step_rate, .adam = score.adam, .weights = score.loss_weights});
    search.distances(rows.calibration_features, rows.calibration_truth, most,
                     distance_order(score.norm), [&](int step, const torch::Tensor& distance) {
                       check_interrupted();
                       const std::vector<double> signed_distance =
                           plain_scores(torch::where(outside, distance, -distance));
                       CalibrationScores& kept = by_step[static_cast<size_t>(step - 1)];
                       for (size_t i = 0; i < n; ++i)
                         kept.scores[2 * i + side] = signed_distance[i];
                       return true;
                     });
  }
  return by_step;
}

double count_inside(const Regions& regions, const torch::Tensor& truth) {
  return (regions.lower <= truth).logical_and(truth <= regions.upper).all(1).sum().item<double>();
}

// Strictly more than 1 − α of the rows: strictly fewer misses than α of them.
bool covers_more(double covered, double rows, const Level& level) {
  return level.at_most_share(rows - covered + 1e-9, rows);
}

[[noreturn]] void fail_steps(const StepsChoice& choice, int most, const Level& level) {
  const double best = *std::max_element(choice.coverage.begin(), choice.coverage.end());
  fail("surrogate: after none of ", most, " steps do the bands cover more than ",
       100 * (1 - level.value()), " % of the validation rows (best ", 100 * best,
       " %); try another --rate, a looser --bound, or a score that needs no steps");
}

StepsChoice choose_cqr_steps(const std::shared_ptr<const Network>& head, const ScoreOptions& score,
                             const StepsFolds& rows, const Level& level, int most) {
  ScoreOptions one_step = score;
  one_step.steps = 1;  // region() does not depend on it
  const std::unique_ptr<Score> surrogate = make_score(one_step, head);
  const torch::Tensor truth = output_matrix(rows.validation_truth);
  const auto validation_rows = static_cast<double>(truth.size(0));
  const TestInputs fresh{rows.validation_features, {}, {}};
  CalibrationOptions as_paper;
  as_paper.paper = true;
  StepsChoice choice;
  for (const CalibrationScores& step : cqr_rows_by_step(head, score, rows, most)) {
    const torch::Tensor radii = make_calibration(as_paper, step)->radii(fresh, level);
    const double covered = count_inside(surrogate->region(fresh.features, radii), truth);
    choice.coverage.push_back(covered / validation_rows);
    if (covers_more(covered, validation_rows, level)) {
      choice.steps = static_cast<int>(choice.coverage.size());
      return choice;
    }
  }
  fail_steps(choice, most, level);
}

// How many validation rows a band of that radius covers. Where bands only grow, a row is covered
// from its nested score on, so that the scores, made once, answer for every radius.
std::function<double(double)> count_by_radius(const std::shared_ptr<const Network>& head,
                                              const ScoreOptions& score, const StepsFolds& rows) {
  ScoreOptions options = score;
  if (score.bound.method == BoundMethod::kIbp) {
    options.name = "nested";
    options.floor = 0;
    options.scale.clear();
    std::vector<double> entered =
        make_score(options, head)->score(rows.validation_features, rows.validation_truth);
    for (double& radius : entered) {
      if (std::isnan(radius)) radius = std::numeric_limits<double>::infinity();  // never
    }
    std::sort(entered.begin(), entered.end());
    return [entered](double radius) {
      const auto as_band = static_cast<double>(static_cast<float>(radius));
      const auto end = std::upper_bound(entered.begin(), entered.end(), as_band);
      return static_cast<double>(end - entered.begin());
    };
  }
  options.steps = 1;  // region() does not depend on it
  const std::shared_ptr<const Score> surrogate = make_score(options, head);
  const torch::Tensor truth = output_matrix(rows.validation_truth);
  return [surrogate, truth, features = rows.validation_features](double radius) {
    return count_inside(surrogate->region(features, radius), truth);
  };
}

}  // namespace

StepsChoice choose_steps(std::shared_ptr<const Network> head, const ScoreOptions& score,
                         const StepsFolds& rows, const Level& level, int most) {
  if (most < 1) fail("surrogate: at most ", most, " steps were allowed, expected 1 or more");
  torch::NoGradGuard no_grad;
  if (score.name == "feature_cqr") return choose_cqr_steps(head, score, rows, level, most);
  const SurrogateSearch search(
      head, output_index(*head, score.output),
      {.rate = score.step_rate, .adam = score.adam, .weights = score.loss_weights});
  const auto validation_rows = static_cast<double>(rows.validation_truth.size(0));
  const std::function<double(double)> covered_at = count_by_radius(head, score, rows);
  FollowingQuantile quantile(level);
  StepsChoice choice;
  search.distances(rows.calibration_features, rows.calibration_truth, most,
                   distance_order(score.norm), [&](int step, const torch::Tensor& distances) {
                     check_interrupted();
                     const std::vector<double> scores = plain_scores(distances);
                     double radius = quantile.of(scores);
                     if (score.paper || rows.clamp)
                       radius = std::min(radius, *std::max_element(scores.begin(), scores.end()));
                     const double covered = covered_at(radius);
                     choice.coverage.push_back(covered / validation_rows);
                     if (covers_more(covered, validation_rows, level)) choice.steps = step;
                     return choice.steps == 0;
                   });
  if (choice.steps == 0) fail_steps(choice, most, level);
  return choice;
}

}  // namespace fcp
