#include "fcp/pipeline/select_options.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/number_text.h"
#include "fcp/base/random.h"
#include "fcp/base/text_table.h"
#include "fcp/calibration/default_cut.h"
#include "fcp/calibration/feature_heads.h"
#include "fcp/calibration/label_selection.h"
#include "fcp/calibration/localized.h"
#include "fcp/calibration/options.h"
#include "fcp/calibration/score_selection.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/calibration/selection.h"
#include "fcp/calibration/surrogate_steps.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/conformal/rank.h"
#include "fcp/export/export.h"
#include "fcp/images/image_text.h"
#include "fcp/network/carry.h"
#include "fcp/network/cut.h"
#include "fcp/network/libtorch_error.h"
#include "fcp/network/output_kind.h"
#include "fcp/network/select_first.h"
#include "fcp/scores/head_outputs.h"

namespace fcp {
namespace {

size_t count_rows(RowSource& source, size_t batch) {
  if (source.size()) return *source.size();
  size_t count = 0;
  for (Rows rows; source.next(batch, rows);) count += rows.x.rows();
  source.rewind();
  return count;
}

// The rows at the places [first, last) of a random order.
RowMask choose_rows(size_t rows, size_t first, size_t last, uint64_t seed) {
  RowMask mask(rows, false);
  const std::vector<size_t> order = Random(seed).permutation(rows);
  for (size_t i = first; i < std::min(last, rows); ++i) mask[order[i]] = true;
  return mask;
}

size_t share_of(double share, size_t rows) {
  return static_cast<size_t>(static_cast<double>(rows) * share);
}

// The rows of the whole source whose mask is `wanted`, in memory.
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
        fail(source.row_place(rows.first_row), ": has another size than the rows before it; what ",
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

// A row whose label is none of the classes tells nothing of which score is short.
void drop_unknown_labels(Rows& rows) {
  if (rows.y.values.size() != rows.x.rows()) return;  // of pixels
  std::vector<size_t> known;
  for (size_t i = 0; i < rows.x.rows(); ++i) {
    if (!std::isinf(rows.y.values[i])) known.push_back(i);
  }
  if (known.size() == rows.x.rows()) return;
  rows.x = take_rows(rows.x, known);
  rows.y = take_rows(rows.y, known);
}

// What is left open, and with it whether a slice of the rows is needed.
struct OpenOptions {
  bool cut = false, floor = false, steps = false, temperature = false, rank_term = false;
  bool bandwidth = false, ratio = false, score = false, heads = false, rectifier = false;
  bool scales = false;  // of several targets

  bool any() const { return scales || any_but_scales(); }
  bool any_but_scales() const {
    return cut || floor || steps || temperature || rank_term || bandwidth || ratio || score ||
           heads || rectifier;
  }
};

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

bool reads_heads(const std::string& score) {
  return score == "spread" || score == "quantiles" || score == "density";
}

// Whether the network has the output that the score reads beside the prediction: the reserved one,
// or the one that the options name.
bool has_heads(const Graph& network, const ScoreOptions& score) {
  return has_output(network,
                    score.name == "spread" ? spread_output(score) : quantiles_output(score));
}

// An output that is named must exist: it is not learned instead.
void check_named_heads(const Graph& network, const ScoreOptions& score) {
  const std::string& named = score.name == "spread" ? score.spread : score.quantiles;
  if (!reads_heads(score.name) || named.empty() || has_output(network, named)) return;
  std::string known;
  for (const TensorInfo& output : network.outputs) {
    known += concat(known.empty() ? "'" : ", '", output.name, "'");
  }
  fail_option(score.name == "spread" ? "spread" : "quantiles", "the network has no output '", named,
              "', only ", known);
}

OpenOptions open_options(const Graph& network, const CalibrateSettings& settings) {
  const MethodRequest& method = settings.method;
  const OpenValues values = open_values(method);
  OpenOptions open{.cut = values.cut,
                   .steps = values.steps,
                   .temperature = values.temperature,
                   .rank_term = values.rank_term,
                   .bandwidth = values.bandwidth};
  open.score = method.score.name == kAutoScore;
  open.heads = reads_heads(method.score.name) && !has_heads(network, method.score);
  open.rectifier = method.calibration.name == kRectified;
  open.cut = open.cut && !open.score;
  open.floor = !open.score && uses_features(method.score.name) && method.score.floor > 0;
  open.ratio = method.calibration.name == "weighted" && settings.shifted != nullptr;
  return open;
}

// The cut and floor or steps are chosen first, then what calibration needs on top of the score that
// they give.
class OptionSelector {
 public:
  OptionSelector(const Graph& network, RowSource& source, const CalibrateSettings& settings,
                 const Context& context)
      : source_(source),
        settings_(settings),
        context_(context),
        batch_(context.batch_for(source)),
        open_(open_options(network, settings)) {
    chosen_.network = network;
  }

  SelectedOptions select() {
    take_given();
    if (!open_.any()) return std::move(chosen_);
    const size_t rows = count_rows(source_, batch_);
    size_t wanted = slice_size(rows);
    size_t least = kLeastSlice;
    if (open_.score && too_few_for_score(wanted)) {
      take_simplest(rows);
      // The radius is to stay finite; a few rows tell units apart.
      const size_t spare = rows - std::min(rows, least_calibration_rows(settings_.level));
      const size_t some = std::min(std::max(wanted, kLeastSlice), spare);
      open_.scales = has_several_targets() && some >= kLeastForScales;
      if (open_.scales && !open_.any_but_scales()) wanted = least = some;
    }
    if (open_.cut && too_few_for_cut(wanted)) take_default_cut(rows);
    if (!open_.any()) return std::move(chosen_);
    chosen_.left_out = choose_rows(rows, 0, wanted, context_.seed);
    slice_ = take_masked(source_, chosen_.left_out, true, batch_);
    if (labels_ || (!open_.score && predicts_labels(chosen_.score.name)))
      drop_unknown_labels(slice_);
    if (slice_.x.rows() < least) {
      fail(settings_.data_name, ": what is chosen needs at least ", least, " rows of its own; ",
           settings_.method.selection, " of ", rows, " rows are ", slice_.x.rows());
    }
    chosen_.choices.rows = slice_.x.rows();
    const bool has_heads = has_output(chosen_.network, kSpreadOutput);
    if (open_.heads) fit_heads(rows, wanted);
    if (open_.score && !labels_ && !has_heads) try_heads(rows, wanted);
    if (open_.scales || (open_.score && has_several_targets())) scale_targets();
    if (open_.score) choose_score();
    if (!open_.score) choose_for_score();
    if (open_.rectifier) fit_score_rectifier();
    if (open_.bandwidth) choose_localization();
    if (open_.ratio) estimate_ratio();
    if (!chosen_.choices.left_out) chosen_.left_out.clear();
    context_.observer->chosen(chosen_.choices);
    return std::move(chosen_);
  }

 private:
  static constexpr size_t kLeastSlice = 10;
  static constexpr size_t kLeastForScales = 3;
  static constexpr size_t kLeastForScore = 40;        // rows of a slice that chooses a score
  static constexpr size_t kLeastForHeads = 200;       // rows that heads are fitted on
  static constexpr double kHeadShare = 0.3;           // of the calibration rows, if they must serve
  static constexpr size_t kMostLearned = 20'000;      // rows that a score is chosen or learned on,
  static constexpr size_t kMostNumbers = 1ULL << 27;  // and their numbers: all are in memory

  // More rows than these would be left out of the calibration for nothing.
  size_t most_learned() const {
    const size_t row = std::max<size_t>(1, element_count(source_.row_shape()));
    return std::clamp(kMostNumbers / row, kLeastForHeads, kMostLearned);
  }

  size_t slice_size(size_t rows) const {
    const size_t share = share_of(settings_.method.selection, rows);
    return open_.score ? std::min(share, most_learned()) : share;
  }

  // Lengths are compared at the radius of one half of the slice, which must be finite.
  bool too_few_for_score(size_t slice) const {
    const size_t half = slice / 2;
    return slice < kLeastForScore || conformal_rank(settings_.level, half) > half;
  }

  bool too_few_for_cut(size_t slice) const {
    const Level side =
        side_level(settings_.level, chosen_.score.asymmetric ? 2 : 1, chosen_.calibration);
    return slice < kLeastSlice || conformal_rank(side, slice / 2) > slice / 2;
  }

  // What the settings say, with the default cut where one is needed.
  void take_given() {
    const MethodRequest& method = settings_.method;
    const auto* place = std::get_if<std::string>(&method.cut);
    const bool localized = method.calibration.name == "localized";
    if (place != nullptr && !localized && reads_heads(method.score.name) && !open_.heads) {
      fail_option("cut", "this network has its heads on features already; the cut says where they ",
                  "are fitted");
    }
    const ScoreOptions& score = chosen_.score = requested_score(method);
    check_named_heads(chosen_.network, score);
    chosen_.calibration = requested_calibration(method);
    chosen_.choices.score = score.name;
    if (open_.rectifier) chosen_.calibration.name = "split";
    labels_ = open_.score && answers_labels(chosen_.network, score.output, source_);
    const bool by_features = (!open_.score && uses_features(score.name)) || localized;
    if (by_features || open_.score) chosen_.network = select_first(std::move(chosen_.network));
    if (place != nullptr && (localized || !reads_heads(score.name))) chosen_.cut = *place;
    if (std::holds_alternative<DefaultCut>(method.cut) && by_features) {
      take_default();
    }
    if (place != nullptr && !localized && !open_.score) carry_masks();
  }

  // Masks that pass the cut go along with the feature (carry.h), for scores whose balls have a
  // scale.
  void carry_masks() {
    ScoreOptions& score = chosen_.score;
    if (score.name != "nested" && (score.name != "feature_cqr" || score.paper)) return;
    std::optional<CarriedCut> carried =
        carry_past_cut(chosen_.network, graph_for_score(chosen_.network, score), chosen_.cut);
    if (!carried) return;
    chosen_.network = std::move(carried->network);
    chosen_.cut = std::move(carried->cut);
    score.scale = std::move(carried->scale);
  }

  // Of a score that is not chosen yet, the plainest stands for it.
  CutChoice default_place() const {
    ScoreOptions score = chosen_.score;
    if (open_.score) score.name = labels_ ? "lac" : "residual";
    return default_cut(chosen_.network, score);
  }

  void take_default() {
    const CutChoice choice = default_place();
    chosen_.cut = choice.cut;
    if (!choice.note.empty()) context_.observer->note(choice.note);
  }

  // Too few rows to choose from: the plainest score, and every row calibrates.
  void take_simplest(size_t rows) {
    open_.score = false;
    chosen_.score.name = chosen_.choices.score = labels_ ? "lac" : "residual";
    context_.observer->note(
        concat("score: ", rows, " rows are too few to choose one; taking ", chosen_.score.name));
  }

  void take_default_cut(size_t rows) {
    open_.cut = false;
    chosen_.cut = default_place().cut;
    context_.observer->note(
        concat("cut: ", rows, " rows are too few to choose one; taking ", chosen_.cut));
  }

  // The same for a score that is to be chosen: without heads there are other ones.
  void try_heads(size_t rows, size_t selection) {
    try {
      fit_heads(rows, selection);
    } catch (const std::exception&) {
      no_heads_ = concat("heads on features cannot be learned: ", failure_reason());
    }
  }

  // Heads on the features of a network that has none, from rows of their own.
  void fit_heads(size_t rows, size_t selection) {
    const auto* place = std::get_if<std::string>(&settings_.method.cut);
    const size_t count = std::min(share_of(kHeadShare, rows), most_learned());
    Rows fitting;
    RowMask mask;
    if (settings_.head_rows != nullptr) {
      fitting = read_all(*settings_.head_rows);
    } else if (count >= kLeastForHeads) {
      mask = choose_rows(rows, selection, selection + count, context_.seed);
      fitting = take_masked(source_, mask, true, batch_);
    } else if (open_.heads) {
      fail_option("score", chosen_.score.name, " needs heads on features, which this network does ",
                  "not have; ", rows, " rows are too few to learn them, at least ",
                  static_cast<size_t>(kLeastForHeads / kHeadShare) + 1,
                  " are needed, or head_rows of their own");
    } else {
      return;
    }
    const Stage stage(context_, "fit heads", 0);
    const std::string cut = place != nullptr ? *place : default_place().cut;
    HeadOptions options;
    options.fit.seed = context_.seed;
    chosen_.network = with_heads(chosen_.network, cut, chosen_.score.output, view(fitting.x),
                                 view(fitting.y), options, context_.device);
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i]) chosen_.left_out[i] = true;
    }
    chosen_.choices.head_rows = fitting.x.rows();
    chosen_.choices.own_head_rows = settings_.head_rows != nullptr;
  }

  // Targets that residual gives one radius, although they may have units of their own.
  bool has_several_targets() const {
    return !labels_ && source_.target_count() > 1 && chosen_.score.normalize.empty();
  }

  // Where it cannot be done, all targets share a radius as before.
  void scale_targets() {
    try {
      chosen_.network = with_target_scales(chosen_.network, chosen_.score.output, view(slice_.x),
                                           view(slice_.y), context_.device);
    } catch (const std::exception&) {
      failure_reason();
    }
    if (!has_output(chosen_.network, kScaleOutput)) return;
    chosen_.score.normalize = kScaleOutput;
    if (!open_.score) {
      context_.observer->note(concat("score: residual in the unit of each target, measured on ",
                                     slice_.x.rows(), " rows, which are left out of calibration"));
    }
  }

  void choose_score() {
    ScoreSelectionOptions options;
    options.level = settings_.level;
    options.seed = context_.seed;
    options.device = context_.device;
    const bool by_length = settings_.method.objective == kByLength;
    options.objective = by_length ? Objective::kLength : Objective::kIntervalScore;
    if (const auto* place = std::get_if<std::string>(&settings_.method.cut)) options.cut = *place;
    // Density counts probability, so that coverage is nearly even already; its tails grow so fast
    // that a radius times a few per cent is far out in them.
    if (open_.rectifier) options.without = {"density"};
    options.no_heads = no_heads_;
    options.exportable = [&](const ScoreCandidate& one) { return can_be_exported(one); };
    Stage stage(context_, "choose the score", 0);
    options.observe = [&](const ScoreCandidate&) { stage.advance(1); };
    ScoreOptions shared = chosen_.score;
    shared.name = labels_ ? "lac" : "residual";
    const auto select = labels_ ? select_label_score : select_score;
    const ScoreSelection selection =
        select(chosen_.network, shared, view(slice_.x), view(slice_.y), options);
    chosen_.score = selection.best().score;
    if (!selection.best().cut.empty()) chosen_.cut = selection.best().cut;
    chosen_.choices.score = chosen_.score.name;
    chosen_.choices.scores.emplace().chosen = selection.chosen;
    chosen_.choices.by = labels_     ? ChosenBy::kSize
                         : by_length ? ChosenBy::kLength
                                     : ChosenBy::kIntervalScore;
    for (const ScoreCandidate& one : selection.candidates) {
      chosen_.choices.scores->candidates.push_back({one.name, one.cut, one.length,
                                                    one.interval_score, one.standard_error,
                                                    one.coverage, one.skipped});
    }
  }

  // Whether the score gives a network with the region as outputs, at a radius like its own.
  bool can_be_exported(const ScoreCandidate& candidate) const {
    constexpr size_t kAnyRows = 1000;
    CalibrationArtifact artifact;
    artifact.network = chosen_.network;
    artifact.score = candidate.score;
    artifact.cut = candidate.cut;
    artifact.calibration = chosen_.calibration;
    try {
      artifact.rows.sides =
          ScoredNetwork(artifact.network, artifact.score, artifact.cut).score().sides();
      artifact.rows.scores.assign(kAnyRows * static_cast<size_t>(artifact.rows.sides),
                                  candidate.radius);
      export_artifact(artifact, {.levels = {settings_.level}});
      return true;
    } catch (const std::exception&) {
      failure_reason();
      return false;
    }
  }

  // What a score that is given leaves open.
  void choose_for_score() {
    if (predicts_labels(chosen_.score.name)) {
      choose_label_options();
    } else if (open_.steps) {
      choose_surrogate_steps();
    } else if (open_.cut || open_.floor) {
      choose_cut();
    }
  }

  void fit_score_rectifier() {
    const Stage stage(context_, "rectify", 0);
    HeadOptions options;
    options.fit.seed = context_.seed;
    chosen_.network =
        with_rectifier(chosen_.network, chosen_.cut, chosen_.score, view(slice_.x), view(slice_.y),
                       settings_.level.value(), options, context_.device);
    chosen_.choices.rectified = true;
  }

  // Radii from one half of the rows that are left out, judged on the other; the paper takes the
  // radii of the calibration rows themselves.
  static StepsFolds halves_of(const torch::Tensor& features, const torch::Tensor& truth) {
    const int64_t rows = features.size(0), half = rows / 2;
    return {features.narrow(0, 0, half), truth.narrow(0, 0, half),
            features.narrow(0, half, rows - half), truth.narrow(0, half, rows - half),
            /*clamp=*/true};
  }

  void choose_surrogate_steps() {
    ScoreOptions score = chosen_.score;
    score.steps = 1;
    const ScoredNetwork predictor(chosen_.network, score, chosen_.cut, context_.device);
    const Rows rest = score.paper ? take_masked(source_, chosen_.left_out, false, batch_) : Rows();
    const StepsFolds rows =
        score.paper ? StepsFolds{predictor.features(view(rest.x)), view(rest.y),
                                 predictor.features(view(slice_.x)), view(slice_.y), false}
                    : halves_of(predictor.features(view(slice_.x)), view(slice_.y));
    const Level level = score.paper ? Level::fraction(1, 10) : settings_.level;
    const StepsChoice choice = choose_steps(predictor.shared_head(), score, rows, level);
    chosen_.score.steps = choice.steps;
    chosen_.choices.steps = ChosenSteps{choice.steps, choice.coverage.back()};
    // The paper calibrates on these rows too, where nothing else is chosen on them.
    chosen_.choices.left_out = !score.paper || open_.bandwidth || open_.ratio;
  }

  void choose_cut() {
    SelectionOptions options;
    options.level = settings_.level;
    options.device = context_.device;
    if (!open_.cut) {
      options.work = std::numeric_limits<double>::infinity();
      options.cuts = {resolve_cut(chosen_.network, chosen_.cut)};
      options.scaled = false;
    }
    if (open_.floor || !open_.cut) options.floors = {chosen_.score.floor};
    Stage stage(context_, "choose the cut", 0);
    options.observe = [&](const Candidate&) { stage.advance(1); };
    const Selection selection =
        select_cut(chosen_.network, chosen_.score, view(slice_.x), view(slice_.y), options);
    const Candidate& best = selection.candidates[selection.chosen];
    chosen_.cut = best.cut;
    chosen_.score = best.score;
    if (!open_.cut) return;
    chosen_.choices.cut.emplace().chosen = selection.chosen;
    for (const Candidate& one : selection.candidates) {
      chosen_.choices.cut->candidates.push_back(
          {one.cut, one.score.floor, one.length, one.coverage, one.skipped});
    }
  }

  void choose_label_options() {
    ScoreOptions& score = chosen_.score;
    ScoreOptions any = score;
    any.steps = std::max(any.steps, 1);  // the head does not depend on it
    const ScoredNetwork predictor(chosen_.network, any, chosen_.cut, context_.device);
    const std::shared_ptr<const Network>& head = predictor.shared_head();
    const LabelledFeatures rows{predictor.features(view(slice_.x)), view(slice_.y)};
    if (open_.temperature) {
      score = choose_temperature(score, head, rows);
      chosen_.choices.temperature = score.temperature;
    }
    if (open_.rank_term) {
      score = choose_rank_term(score, head, rows, settings_.level);
      chosen_.choices.rank_term = ChosenRankTerm{score.rank_weight, score.rank_free};
    }
    if (open_.steps) {
      score = choose_sampled_steps(score, head, rows, settings_.level);
      chosen_.choices.sampled_steps = score.steps;
    }
  }

  void choose_localization() {
    const ScoredNetwork predictor(chosen_.network, chosen_.score, chosen_.cut, context_.device);
    const BandwidthChoice choice =
        choose_bandwidth(predictor.score(), predictor.features(view(slice_.x)), view(slice_.y),
                         settings_.level, chosen_.calibration.seed);
    chosen_.calibration.bandwidth = choice.candidates[choice.chosen].bandwidth;
    chosen_.choices.bandwidth.emplace().chosen = choice.chosen;
    for (const BandwidthCandidate& one : choice.candidates) {
      chosen_.choices.bandwidth->candidates.push_back(
          {one.bandwidth, one.loss, one.coverage, one.effective_rows});
    }
  }

  void estimate_ratio() {
    const ScoredNetwork predictor(chosen_.network, chosen_.score, chosen_.cut, context_.device);
    const Rows shifted = read_all(*settings_.shifted);
    const auto input = [&](const Rows& rows) {
      const torch::Tensor x = view(rows.x);
      return ratio_input(x, x.dim() == 2 ? x : predictor.features(x));
    };
    chosen_.choices.shifted_rows = shifted.x.rows();
    chosen_.ratio = fit_density_ratio(input(slice_), input(shifted));
  }

  RowSource& source_;
  const CalibrateSettings& settings_;
  const Context& context_;
  size_t batch_;
  OpenOptions open_;
  Rows slice_;
  std::string no_heads_;  // why heads could not be learned
  bool labels_ = false;   // of a score that is chosen: whether it is one of labels
  SelectedOptions chosen_;
};

}  // namespace

bool chooses_on_rows(const Graph& network, const CalibrateSettings& settings) {
  return open_options(network, settings).any();
}

SelectedOptions select_options(const Graph& network, RowSource& source,
                               const CalibrateSettings& settings, const Context& context) {
  return OptionSelector(network, source, settings, context).select();
}

}  // namespace fcp
