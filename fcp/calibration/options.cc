#include "fcp/calibration/options.h"

#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibration/option_fields.h"
#include "fcp/scores/cross_labels.h"

namespace fcp {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr double kMostInt = std::numeric_limits<int>::max();

template <auto... Path>
Option of_score(Option option) {
  return field<&MethodRequest::score, Path...>(std::move(option));
}

template <auto... Path>
Option of_bound(Option option) {
  return of_score<&ScoreOptions::bound, Path...>(std::move(option));
}

template <auto... Path>
Option of_calibration(Option option) {
  option.of_calibration = true;
  return field<&MethodRequest::calibration, Path...>(std::move(option));
}

using OptionNames = std::vector<std::string>;

OptionNames scores_and_auto() {
  OptionNames names = score_names();
  names.emplace_back(kAutoScore);
  return names;
}

std::vector<Option> make_table() {
  constexpr auto kImages = OptionAccess::kImages;
  constexpr auto kLearned = OptionAccess::kLearned;
  constexpr auto kSince = OptionStorage::kSince;
  constexpr auto kSet = OptionStorage::kSet;
  const OptionNames features = {"nested",         "linearized",      "surrogate", "feature_cqr",
                                "feature_margin", "feature_sampled", kAutoScore};
  OptionNames cut_at = {"spread", "quantiles", "density"};  // whose heads are fitted there
  cut_at.insert(cut_at.begin(), features.begin(), features.end());
  const OptionNames bounded = {"nested", "surrogate", "feature_cqr", "feature_margin", kAutoScore};
  const OptionNames quantiles = {"cqr", "feature_cqr"};
  const OptionNames ends = {"cqr", "feature_cqr", kAutoScore};
  const OptionNames searching = {"surrogate", "feature_sampled", "feature_cqr with paper"};
  const OptionNames softmax = {"lac", "aps", "raps"};
  const OptionNames ranked = {"raps", "feature_margin"};
  return {
      of_score<&ScoreOptions::name>(
          {.name = "score",
           .help = "How strange an answer is; 'auto' takes the one with the least interval score, "
                   "or the smallest sets, on a slice of the rows",
           .choices = scores_and_auto(),
           .only_made = {kCrossScore, kCrossLabelScore}}),
      field<&MethodRequest::cut>(
          {.name = "cut",
           .scope = {.scores = cut_at, .calibrations = {"localized"}},
           .help = "Where features are, heads on features included: a tensor, a node, a number of "
                   "layers, or 'auto' to try every cut and floor on a slice of the rows; by "
                   "default two layers before the output",
           .may_be_auto = true}),
      of_score<&ScoreOptions::output>(
          {.name = "output", .help = "The network's output to calibrate, where it has several"}),
      of_score<&ScoreOptions::normalize>(
          {.name = "normalize",
           .scope = {.scores = {"residual"}},
           .help = "The output that estimates the spread of the answer"}),
      of_score<&ScoreOptions::low>(
          {.name = "low",
           .scope = {.scores = ends},
           .help = "The output that is the low quantile, or a column of one: y:0"}),
      of_score<&ScoreOptions::high>(
          {.name = "high",
           .scope = {.scores = ends},
           .help = "The output that is the high quantile, or a column: y:2"}),
      of_score<&ScoreOptions::asymmetric>(
          {.name = "asymmetric",
           .scope = {.scores = quantiles},
           .help = "A radius for each side, each at half of alpha"}),
      of_score<&ScoreOptions::spread>({.name = "spread",
                                       .scope = {.scores = {"spread"}},
                                       .help = "The output that is the spread; by default the one "
                                               "that fcp learned",
                                       .storage = kSet}),
      of_score<&ScoreOptions::quantiles>(
          {.name = "quantiles",
           .scope = {.scores = {"quantiles", "density"}},
           .help = "The output that holds the quantiles of the residual; by default the one that "
                   "fcp learned",
           .storage = kSet}),
      of_score<&ScoreOptions::tail>({.name = "tail",
                                     .scope = {.scores = {"quantiles"}},
                                     .help = "The level of the low quantile; the high one's is 1 "
                                             "less it",
                                     .most = 0.5,
                                     .above = true,
                                     .storage = kSet}),
      of_score<&ScoreOptions::level_set>(
          {.name = "union",
           .scope = {.scores = {"density"}},
           .help = "The level set of the learned density, which may be several intervals",
           .storage = kSet,
           .key = "level_set"}),
      of_score<&ScoreOptions::rectifier>(
          {.name = "rectifier", .access = kLearned, .storage = kSet}),
      of_score<&ScoreOptions::norm>({.name = "norm",
                                     .scope = {.scores = features},
                                     .help = "Norm of feature space",
                                     .choices = {"inf", "2", "1"}}),
      of_bound<&BoundOptions::method>({.name = "bound",
                                       .scope = {.scores = bounded},
                                       .help = "Bound propagation",
                                       .choices = {"ibp", "crown-ibp", "crown", "alpha-crown"}}),
      of_bound<&BoundOptions::iterations>({.name = "iterations",
                                           .scope = {.scores = bounded, .bounds = {"alpha-crown"}},
                                           .help = "Iterations that tighten the bound",
                                           .most = kMostInt}),
      of_bound<&BoundOptions::rate>(
          {.name = "bound_rate", .most = kAny, .access = kLearned, .key = "rate"}),
      of_bound<&BoundOptions::outward>({.name = "outward", .access = kLearned}),
      of_score<&ScoreOptions::pixels>(
          {.name = "pixels",
           .scope = {.scores = {"nested", "residual", "lac"}},
           .help = "Share of an image's pixels that must be in; 1: every one of them",
           .most = 1,
           .above = true,
           .harmless = 1,
           .access = kImages,
           .storage = kSince}),
      of_score<&ScoreOptions::floor>(
          {.name = "floor",
           .scope = {.scores = {"nested", "linearized", "feature_cqr without paper"}},
           .help = "Widen each band by this share of the mean band",
           .most = kAny}),
      of_score<&ScoreOptions::slope>({.name = "slope", .most = kAny, .access = kLearned}),
      field<&MethodRequest::steps>({.name = "steps",
                                    .scope = {.scores = searching},
                                    .help = "Steps of the search, or 'auto' to choose them on a "
                                            "slice",
                                    .least = 1,
                                    .most = kMostInt,
                                    .may_be_auto = true}),
      of_score<&ScoreOptions::step_rate>({.name = "rate",
                                          .scope = {.scores = searching},
                                          .help = "Step size of the search",
                                          .most = kAny,
                                          .above = true,
                                          .key = "step_rate"}),
      of_score<&ScoreOptions::adam>({.name = "adam",
                                     .scope = {.scores = searching},
                                     .help = "Search with Adam instead of plain descent"}),
      of_score<&ScoreOptions::paper>(
          {.name = "paper",
           .scope = {.scores = {"surrogate", "feature_cqr"}},
           .help = "As the paper: signed surrogate distances for feature_cqr; rows that choose the "
                   "steps are calibrated on too, at level 0.1 always, and the largest score stands "
                   "for an infinite radius"}),
      of_score<&ScoreOptions::loss_weights>(
          {.name = "loss_weights",
           .scope = {.scores = {"surrogate"}},
           .help = "Weights of the squared error, one for each output",
           .most = kAny}),
      field<&MethodRequest::temperature>(
          {.name = "temperature",
           .scope = {.scores = softmax},
           .help = "Temperature of the softmax, or 'auto' to fit it on a slice",
           .least = 1e-6,
           .most = kAny,
           .may_be_auto = true}),
      of_score<&ScoreOptions::double_log>(
          {.name = "double_log", .access = kLearned, .storage = kSince}),
      of_score<&ScoreOptions::randomized>(
          {.name = "randomized",
           .scope = {.scores = {"aps", "raps"}},
           .help = "Labels at the edge of a set are in by chance; not randomized, sets are larger "
                   "and cover more"}),
      field<&MethodRequest::rank_weight>(
          {.name = "rank_weight",
           .scope = {.scores = ranked},
           .help = "What each rank beyond the free ones costs (raps: its lambda), or 'auto' to "
                   "choose both numbers on a slice",
           .most = kAny,
           .may_be_auto = true}),
      of_score<&ScoreOptions::rank_free>({.name = "rank_free",
                                          .scope = {.scores = ranked},
                                          .help = "Ranks that cost nothing (raps: its k_reg)",
                                          .most = kMostInt}),
      of_score<&ScoreOptions::samples>({.name = "samples",
                                        .scope = {.scores = {"feature_sampled"}},
                                        .help = "Samples of the ball",
                                        .least = 1,
                                        .most = kMostInt}),
      of_score<&ScoreOptions::seed>({.name = "seed",
                                     .help = "Seed of everything random",
                                     .most = kAny,
                                     .access = OptionAccess::kSeed}),
      of_calibration<&CalibrationOptions::name>(
          {.name = "calibration",
           .help = "split: one radius; grouped: one for each group; localized: rows near the new "
                   "one in feature space count more; weighted: for rows of another distribution; "
                   "rectified: a learned quantile of the score evens out coverage",
           .choices = {"split", "grouped", "localized", "weighted", kRectified},
           .only_made = {kCrossScore},
           .key = "name"}),
      of_calibration<&CalibrationOptions::group>(
          {.name = "group",
           .scope = {.calibrations = {"grouped"}},
           .help = "What tells the groups: a CSV column, an .npy file of group numbers, or for "
                   "labels 'predicted' (by the network's answer) or 'label' (class by class)"}),
      field<&MethodRequest::bandwidth>(
          {.name = "bandwidth",
           .scope = {.calibrations = {"localized"}},
           .help = "Width of the neighborhood, in the unit of the features, or 'auto' to choose it "
                   "on a slice",
           .most = kAny,
           .above = true,
           .may_be_auto = true,
           .of_calibration = true}),
      of_calibration<&CalibrationOptions::seed>(
          {.name = "calibration_seed", .most = kAny, .access = kLearned, .key = "seed"}),
      of_calibration<&CalibrationOptions::paper>(
          {.name = "calibration_paper", .access = kLearned, .key = "paper"}),
      field<&MethodRequest::selection>(
          {.name = "selection",
           .help = "Share of the rows that choices look at and calibration does not",
           .most = 0.9,
           .storage = OptionStorage::kNone}),
      field<&MethodRequest::objective>(
          {.name = "objective",
           .scope = {.scores = {kAutoScore}},
           .help = "What 'auto' minimises: the interval score (length plus 2/alpha times the "
                   "distance of every miss), or the mean length alone",
           .choices = {kByIntervalScore, kByLength},
           .storage = OptionStorage::kNone}),
  };
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = make_table();
  return table;
}

const Option& find_option(const std::string& name) {
  for (const Option& option : option_table()) {
    if (option.name == name) return option;
  }
  fail_option(name, "there is no such option");
}

OptionValue default_value(const Option& option) {
  static const MethodRequest untouched;
  return option.get(untouched);
}

void set_option(MethodRequest& request, const Option& option, const OptionValue& value) {
  check_value(option, value);
  option.put(request, value);
}

MethodRequest resolved_request(const ScoreOptions& score, const CalibrationOptions& calibration,
                               const std::string& cut) {
  MethodRequest request{.score = score, .calibration = calibration};
  request.cut = cut;
  request.steps = score.steps;
  request.temperature = score.temperature;
  request.rank_weight = score.rank_weight;
  request.bandwidth = calibration.bandwidth;
  return request;
}

}  // namespace fcp
