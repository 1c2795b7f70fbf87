#include "fcp/calibrate/choose.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/split.h"
#include "fcp/methods/calibrations/localized.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/carry.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/graph/select_first.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

constexpr size_t kLeastSlice = 10;
constexpr size_t kLeastForScales = 3;
constexpr size_t kLeastForScore = 40;  // rows of a slice that chooses a score

// A row whose label is none of the classes tells nothing of which score is short.
void drop_unknown_labels(Rows& rows, std::vector<int64_t>& groups) {
  if (rows.y.values.size() != rows.x.rows()) return;  // of pixels
  std::vector<size_t> known;
  for (size_t i = 0; i < rows.x.rows(); ++i) {
    if (!std::isinf(rows.y.values[i])) known.push_back(i);
  }
  if (known.size() == rows.x.rows()) return;
  rows.x = take_rows(rows.x, known);
  rows.y = take_rows(rows.y, known);
  if (groups.empty()) return;
  std::vector<int64_t> kept;
  for (const size_t row : known) kept.push_back(groups[row]);
  groups = std::move(kept);
}

// Whether the first targets are all 0 or 1, and both are there.
bool has_two_labels(RowSource& source) {
  constexpr size_t kLookedAt = 1000;
  source.rewind();
  Rows rows;
  source.next(kLookedAt, rows);
  source.rewind();
  const std::vector<float>& y = rows.y.values;
  const auto zeros = std::count(y.begin(), y.end(), 0.0f),
             ones = std::count(y.begin(), y.end(), 1.0f);
  return source.target_count() == 1 && zeros > 0 && ones > 0 &&
         zeros + ones == static_cast<std::ptrdiff_t>(y.size());
}

// Whether the network's answer is a number for each class: it says so, or it has several numbers
// or probabilities where the rows have one target, or one sigmoid where the targets are 0 and 1.
bool answers_labels(const Graph& network, const std::string& output, RowSource& source) {
  if (network.metadata.contains(kClassesKey) || !source.class_names().empty()) return true;
  for (const TensorInfo& info : network.outputs) {
    if (is_head_output(info.name) || (!output.empty() && info.name != output)) continue;
    if (info.name == "logits") return true;
    const OutputKind kind = output_meaning(network, info.name).kind;
    const bool several = info.known_rank && info.shape.size() == 2 && info.shape[1] > 1;
    const bool shares = kind == OutputKind::kProbabilities || kind == OutputKind::kLogProbabilities;
    if (several || shares) return source.target_count() == 1;
    return kind == OutputKind::kProbability && has_two_labels(source);
  }
  return false;
}

// Whether the network has the output that the score reads beside the prediction: the reserved one,
// or the one that the options name.
bool has_heads(const Graph& network, const ScoreOptions& score) {
  return has_output(network, score.learned_outputs().at(0));
}

// An output that is named must exist: it is not learned instead.
void check_named_heads(const Graph& network, const ScoreOptions& score) {
  if (!score.traits().reads_heads) return;
  const std::string* spread = score.find(field::spread);
  const std::string* factor = score.find(field::cholesky);
  const std::string named = spread != nullptr   ? *spread
                            : factor != nullptr ? *factor
                                                : score.value(field::quantiles);
  if (named.empty() || has_output(network, named)) return;
  std::string known;
  for (const TensorInfo& output : network.outputs) {
    known += concat(known.empty() ? "'" : ", '", output.name, "'");
  }
  const char* const option = spread != nullptr   ? "spread"
                             : factor != nullptr ? "cholesky"
                                                 : "quantiles";
  fail_option(option, "the network has no output '", named, "', only ", known);
}

OpenOptions open_options(const Graph& network, const CalibrateSettings& settings) {
  const MethodRequest& request = settings.method;
  const Method given = resolve(request);
  const OpenValues values = open_values(request);
  const bool score = given.score.as<AutoOptions>() != nullptr;
  return {.score = score,
          .heads = given.score.traits().reads_heads && !has_heads(network, given.score),
          .cut = values.cut && !score,
          .floor = given.score.value(field::floor) > 0,
          .steps = values.steps,
          .temperature = values.temperature,
          .rank_term = values.rank_term,
          .rectifier = request.calibration == kRectified,
          .bandwidth = values.bandwidth,
          .ratio = given.calibration.traits().by_weight && settings.shifted != nullptr};
}

// Masks that pass the cut go along with the feature (carry.h), for scores whose balls have a scale.
void carry_masks(CalibrationPlan& plan) {
  ScoreOptions& score = plan.method.score;
  auto* const scale = score.find(field::scale);
  if (scale == nullptr || score.searches()) return;
  std::optional<CarriedCut> carried =
      carry_past_cut(plan.network, graph_for_score(plan.network, score), plan.method.cut);
  if (!carried) return;
  plan.network = std::move(carried->network);
  plan.method.cut = std::move(carried->cut);
  *scale = std::move(carried->scale);
}

// What the settings say, with the default cut where one is needed.
// What is asked of intervals alone, where `auto` turns out to choose sets of labels.
void check_no_ends(const ScoreOptions& score) {
  const char* option = score.side != BoundSide::kBoth ? "side"
                       : score.integer                ? "integer"
                       : !score.support.empty()       ? "support"
                                                      : nullptr;
  if (option == nullptr) return;
  fail_option(option, "applies only to intervals; this network answers labels");
}

// How many outputs have a radius of their own is known with the rows.
void settle_targets(ChoiceState& state, const RowSource& source,
                    const CalibrateSettings& settings) {
  const std::string joint = settings.method.text("joint");
  const auto& score = state.plan.method.score;
  if (joint == kJointAll && score.find(field::cholesky) == nullptr) return;
  const size_t targets = source.target_count();
  const bool labels = state.labels || (!state.open.score && score.traits().labels);
  if (labels)
    fail_option("joint", joint, " applies only to intervals; this network answers labels");
  if (targets < 2) {
    fail_option("joint", joint == kJointAll ? kJointVolume : joint,
                " is for several targets; the data has one");
  }
  const bool ellipsoids = joint != kJointEach;
  if (ellipsoids && static_cast<int64_t>(targets) > kMostEllipsoidOutputs) {
    fail_option("joint", "the data has ", targets, " targets, ellipsoids have at most ",
                kMostEllipsoidOutputs);
  }
  if (joint == kJointEach) state.plan.method.score.targets = targets;
}

ChoiceState given_options(const Graph& network, RowSource& source,
                          const CalibrateSettings& settings, const Context& context) {
  ChoiceState state;
  state.open = open_options(network, settings);
  CalibrationPlan& plan = state.plan;
  plan.network = network;
  const Method given = resolve(settings.method);
  const auto* place = std::get_if<std::string>(&settings.method.cut);
  const bool localized = given.calibration.traits().by_feature;
  const bool reads_heads = given.score.traits().reads_heads;
  if (place != nullptr && !localized && reads_heads && !state.open.heads) {
    fail_option("cut", "this network has its heads on features already; the cut says where they ",
                "are fitted");
  }
  check_named_heads(plan.network, given.score);
  plan.method = {.score = given.score, .calibration = given.calibration};
  plan.choices.score = given.score.name();
  state.labels = state.open.score && answers_labels(plan.network, given.score.output, source);
  if (state.labels) check_no_ends(given.score);
  settle_targets(state, source, settings);
  const bool by_features = (!state.open.score && given.score.traits().uses_features) || localized;
  if (by_features || state.open.score) plan.network = select_first(std::move(plan.network));
  if (place != nullptr && (localized || !reads_heads)) plan.method.cut = *place;
  if (std::holds_alternative<DefaultCut>(settings.method.cut) && by_features) {
    plan.method.cut = usual_cut(state, context.observer);
  }
  if (place != nullptr && !localized && !state.open.score) carry_masks(plan);
  return state;
}

// Of a score that is open, the plainest one with what was asked of all that are compared.
ScoreOptions plainest_score(const ChoiceState& state) {
  return as_score(state.plan.method.score,
                  state.labels ? LacOptions::kName : ResidualOptions::kName);
}

// Lengths are compared at the radius of one half of the slice, which must be finite.
bool too_few_for_score(size_t slice, const Level& level) {
  const size_t half = slice / 2;
  return slice < kLeastForScore || conformal_rank(level, half) > half;
}

bool too_few_for_cut(size_t slice, const CalibrationPlan& plan, const Level& level) {
  const Level side = side_level(level, plan.method.score.value(field::asymmetric) ? 2 : 1,
                                plan.method.calibration.paper);
  return slice < kLeastSlice || conformal_rank(side, slice / 2) > slice / 2;
}

// How many rows the slice has, and what they are too few to choose settled without them: the
// plainest score and the default cut, with which every row calibrates. `least`: how many rows the
// slice must have in the end.
ChoiceState settle_without_rows(ChoiceState state, ChoiceRows& rows, size_t& least) {
  const Level& level = rows.settings.level;
  OpenOptions& open = state.open;
  rows.sliced = static_cast<size_t>(static_cast<double>(rows.count) *
                                    rows.settings.method.number("selection"));
  if (open.score) rows.sliced = std::min(rows.sliced, most_learned(rows.source));
  least = kLeastSlice;
  if (open.score && too_few_for_score(rows.sliced, level)) {
    open.score = false;
    state.plan.method.score = plainest_score(state);
    state.plan.choices.score = state.plan.method.score.name();
    rows.context.observer->note(concat("score: ", rows.count,
                                       " rows are too few to choose one; taking ",
                                       state.plan.method.score.name()));
    // The radius is to stay finite; a few rows tell units apart.
    const size_t spare = rows.count - std::min(rows.count, least_calibration_rows(level));
    const size_t some = std::min(std::max(rows.sliced, kLeastSlice), spare);
    const bool scales_alone = !open.any();
    open.scales = has_several_targets(state, rows.source) && some >= kLeastForScales;
    if (open.scales && scales_alone) rows.sliced = least = some;
  }
  if (open.cut && too_few_for_cut(rows.sliced, state.plan, level)) {
    open.cut = false;
    state.plan.method.cut = usual_cut(state);
    rows.context.observer->note(concat(
        "cut: ", rows.count, " rows are too few to choose one; taking ", state.plan.method.cut));
  }
  return state;
}

void take_slice(ChoiceState& state, ChoiceRows& rows, size_t least) {
  CalibrationPlan& plan = state.plan;
  const std::vector<int64_t>& groups = rows.settings.keep_together;
  plan.left_out = random_rows(rows.count, 0, rows.sliced, rows.context.seed, groups);
  rows.slice = take_masked(rows.source, plan.left_out, true, rows.batch);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (plan.left_out[i]) rows.slice_groups.push_back(groups[i]);
  }
  if (state.labels || (!state.open.score && plan.method.score.traits().labels)) {
    drop_unknown_labels(rows.slice, rows.slice_groups);
  }
  plan.choices.rows = rows.slice.x.rows();
  if (plan.choices.rows >= least) return;
  fail(rows.settings.data_name, ": what is chosen needs at least ", least, " rows of its own; ",
       rows.settings.method.number("selection"), " of ", rows.count, " rows are ",
       plan.choices.rows);
}

using ChoiceStep = ChoiceState (*)(ChoiceState, const ChoiceRows&);
constexpr ChoiceStep kSteps[] = {choose_heads,         choose_scales,       choose_score,
                                 choose_label_options, choose_search_steps, choose_cut,
                                 choose_rectifier,     choose_bandwidth,    choose_ratio};

}  // namespace

torch::Tensor ChoiceRows::x() const { return view(slice.x); }

torch::Tensor ChoiceRows::y() const { return view(slice.y); }

std::string usual_cut(const ChoiceState& state, Observer* observer) {
  CutChoice choice = default_cut(
      state.plan.network, state.open.score ? plainest_score(state) : state.plan.method.score);
  if (observer != nullptr && !choice.note.empty()) observer->note(choice.note);
  return std::move(choice.cut);
}

bool has_several_targets(const ChoiceState& state, const RowSource& source) {
  return !state.labels && source.target_count() > 1 && state.plan.method.score.targets == 0 &&
         state.plan.method.score.value(field::normalize).empty();
}

size_t most_learned(const RowSource& source) {
  constexpr size_t kMostLearned = 20'000;
  constexpr size_t kMostNumbers = size_t{1} << 27;  // all are in memory
  const size_t row = std::max<size_t>(1, element_count(source.row_shape()));
  return std::clamp(kMostNumbers / row, kLeastForHeads, kMostLearned);
}

size_t count_rows(RowSource& source, size_t batch) {
  if (source.size()) return *source.size();
  size_t count = 0;
  // Rows are read, not skipped: a wrong one is named before anything is chosen.
  for (Rows rows; source.next(batch, rows);) count += rows.x.rows();
  source.rewind();
  return count;
}

RowMask random_rows(size_t rows, size_t first, size_t last, uint64_t seed,
                    std::span<const int64_t> groups) {
  RowMask mask(rows, false);
  if (!groups.empty()) {
    const GroupedOrder order = grouped_order(groups, seed);
    for (size_t i = 0; i < order.rows.size(); ++i) {
      mask[order.rows[i]] = order.first[i] >= first && order.first[i] < last;
    }
    return mask;
  }
  const std::vector<size_t> order = Random(seed).permutation(rows);
  for (size_t i = first; i < std::min(last, rows); ++i) mask[order[i]] = true;
  return mask;
}

Rows take_masked(RowSource& source, const RowMask& mask, bool wanted, size_t batch) {
  Rows all;
  size_t next = 0;
  for (Rows rows; source.next(batch, rows);) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < rows.x.rows(); ++i) {
      if (mask[next + i] == wanted) indices.push_back(i);
    }
    next += rows.x.rows();
    for (auto [to, from] : {std::pair(&all.x, &rows.x), std::pair(&all.y, &rows.y)}) {
      const Array part = take_rows(*from, indices);
      const int64_t before = to->shape.empty() ? 0 : to->shape[0];
      if (before > 0 && part.row_size() != to->row_size()) {
        fail(rows.place(0), ": has another size than the rows before it; what ",
             "is chosen needs rows of one size");
      }
      to->shape = part.shape;
      to->shape[0] += before;
      to->values.insert(to->values.end(), part.values.begin(), part.values.end());
    }
  }
  source.rewind();
  return all;
}

ChoiceState choose_bandwidth(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.bandwidth) return state;
  CalibrationPlan& plan = state.plan;
  const ScoredNetwork predictor(plan.network, plan.method.score, plan.method.cut,
                                rows.context.device);
  const BandwidthChoice choice =
      choose_bandwidth(predictor.score(), predictor.features(rows.x()), rows.y(),
                       rows.settings.level, plan.method.calibration.seed);
  plan.method.calibration.set(field::bandwidth, choice.candidates[choice.chosen].bandwidth);
  plan.choices.bandwidth.emplace().chosen = choice.chosen;
  for (const BandwidthCandidate& one : choice.candidates) {
    plan.choices.bandwidth->candidates.push_back(
        {one.bandwidth, one.loss, one.coverage, one.effective_rows});
  }
  state.open.bandwidth = false;
  return state;
}

ChoiceState choose_ratio(ChoiceState state, const ChoiceRows& rows) {
  if (!state.open.ratio) return state;
  CalibrationPlan& plan = state.plan;
  const ScoredNetwork predictor(plan.network, plan.method.score, plan.method.cut,
                                rows.context.device);
  const Rows shifted = read_all(*rows.settings.shifted);
  const auto input = [&](const torch::Tensor& x) {
    return ratio_input(x, x.dim() == 2 ? x : predictor.features(x));
  };
  plan.choices.shifted_rows = shifted.x.rows();
  plan.ratio = fit_density_ratio(input(rows.x()), input(view(shifted.x)));
  state.open.ratio = false;
  return state;
}

bool chooses_on_rows(const Graph& network, const CalibrateSettings& settings) {
  return open_options(network, settings).any();
}

CalibrationPlan choose_options(const Graph& network, RowSource& source,
                               const CalibrateSettings& settings, const Context& context) {
  ChoiceState state = given_options(network, source, settings, context);
  if (!state.open.any()) return std::move(state.plan);
  ChoiceRows rows{source, settings, context, context.batch_for(source)};
  rows.count = count_rows(source, rows.batch);
  if (!settings.keep_together.empty() && settings.keep_together.size() != rows.count) {
    fail(settings.data_name, ": ", settings.keep_together.size(), " groups of ", rows.count,
         " rows, expected one for each");
  }
  size_t least = 0;
  state = settle_without_rows(std::move(state), rows, least);
  if (!state.open.any()) return std::move(state.plan);
  take_slice(state, rows, least);
  for (const ChoiceStep step : kSteps) state = step(std::move(state), rows);
  CalibrationPlan& plan = state.plan;
  if (!plan.choices.left_out) plan.left_out.clear();
  context.observer->chosen(plan.choices);
  return std::move(plan);
}

}  // namespace fcp
