// All scores: the one list of their options' types, what is known of each, and the score of a head.
// A new score is a type in AnyScore and a row of the table, beside its own file pair and its test.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fcp/methods/option.h"
#include "fcp/methods/scores/aps.h"
#include "fcp/methods/scores/cqr.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/methods/scores/density.h"
#include "fcp/methods/scores/ellipsoid.h"
#include "fcp/methods/scores/feature_cqr.h"
#include "fcp/methods/scores/feature_margin.h"
#include "fcp/methods/scores/feature_sampled.h"
#include "fcp/methods/scores/lac.h"
#include "fcp/methods/scores/linearized.h"
#include "fcp/methods/scores/nested.h"
#include "fcp/methods/scores/quantiles.h"
#include "fcp/methods/scores/residual.h"
#include "fcp/methods/scores/saps.h"
#include "fcp/methods/scores/score.h"
#include "fcp/methods/scores/spread.h"
#include "fcp/methods/scores/surrogate.h"

namespace fcp {

// The best of the scores that suit the network, on a slice of the rows: not a score yet, but what
// is asked of all that are compared.
inline constexpr char kAutoScore[] = "auto";
struct AutoOptions {
  static constexpr const char* kName = kAutoScore;

  std::string low{};
  std::string high{};
  Norm norm = Norm::kInf;
  BoundOptions bound = {.outward = false};
  bool allow_empty = false;

  bool operator==(const AutoOptions&) const = default;
};

// In the order in which options name them.
using AnyScore =
    std::variant<ResidualOptions, CqrOptions, SpreadOptions, QuantilesOptions, DensityOptions,
                 NestedOptions, LinearizedOptions, SurrogateOptions, FeatureCqrOptions, LacOptions,
                 ApsOptions, RapsOptions, SapsOptions, FeatureMarginOptions, FeatureSampledOptions,
                 CrossOptions, CrossLabelsOptions, AutoOptions, EllipsoidOptions>;

// What is known of a score, whatever its options.
struct ScoreTraits {
  bool labels = false;         // sets of labels, not intervals
  bool uses_features = false;  // works in feature space, so that the cut matters
  bool reads_heads = false;    // reads an output that fcp can learn on features (outputs.h)
  bool counts_pixels = false;  // a share of an image's pixels can be asked for
  bool negative = false;       // may be below 0: rectifying lowers it instead of dividing it
  bool linear = false;         // its ends follow from one gradient of the head, for every radius
  bool boxed = false;          // its ends are those of a box around the region
  bool made_by_fit = false;    // comes with its network and cannot be asked of another one
  const char* baseline = "";   // the plain score beside which it is shown; empty: a plain one
};

// The table: a row for each score.
constexpr ScoreTraits traits_of(const ResidualOptions&) { return {.counts_pixels = true}; }
constexpr ScoreTraits traits_of(const CqrOptions&) { return {.negative = true}; }
constexpr ScoreTraits traits_of(const SpreadOptions&) {
  return {.reads_heads = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const QuantilesOptions&) {
  return {.reads_heads = true, .negative = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const DensityOptions&) {
  return {.reads_heads = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const EllipsoidOptions&) {
  return {.reads_heads = true, .boxed = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const NestedOptions&) {
  return {.uses_features = true, .counts_pixels = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const LinearizedOptions&) {
  return {.uses_features = true, .linear = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const SurrogateOptions&) {
  return {.uses_features = true, .baseline = "residual"};
}
constexpr ScoreTraits traits_of(const FeatureCqrOptions&) {
  return {.uses_features = true, .negative = true, .baseline = "cqr"};
}
constexpr ScoreTraits traits_of(const LacOptions&) {
  return {.labels = true, .counts_pixels = true};
}
constexpr ScoreTraits traits_of(const ApsOptions&) { return {.labels = true, .baseline = "lac"}; }
constexpr ScoreTraits traits_of(const RapsOptions&) { return {.labels = true, .baseline = "lac"}; }
constexpr ScoreTraits traits_of(const SapsOptions&) { return {.labels = true, .baseline = "lac"}; }
constexpr ScoreTraits traits_of(const FeatureMarginOptions&) {
  return {.labels = true, .uses_features = true, .baseline = "lac"};
}
constexpr ScoreTraits traits_of(const FeatureSampledOptions&) {
  return {.labels = true, .uses_features = true, .baseline = "lac"};
}
constexpr ScoreTraits traits_of(const CrossOptions&) { return {.made_by_fit = true}; }
constexpr ScoreTraits traits_of(const CrossLabelsOptions&) {
  return {.labels = true, .made_by_fit = true, .baseline = "lac"};
}
constexpr ScoreTraits traits_of(const AutoOptions&) { return {.uses_features = true}; }

// The fields that scores have in common, and those that code outside of the score looks at.
namespace field {
inline constexpr auto normalize = FCP_FIELD(normalize);
inline constexpr auto low = FCP_FIELD(low);
inline constexpr auto high = FCP_FIELD(high);
inline constexpr auto asymmetric = FCP_FIELD(asymmetric);
inline constexpr auto spread = FCP_FIELD(spread);
inline constexpr auto quantiles = FCP_FIELD(quantiles);
inline constexpr auto cholesky = FCP_FIELD(cholesky);
inline constexpr auto tail = FCP_FIELD(tail);
inline constexpr auto level_set = FCP_FIELD(level_set);
inline constexpr auto norm = FCP_FIELD(norm);
inline constexpr auto bound = FCP_FIELD(bound);
inline constexpr auto scale = FCP_FIELD(scale);
inline constexpr auto units = FCP_FIELD(units);
inline constexpr auto floor = FCP_FIELD(floor);
inline constexpr auto slope = FCP_FIELD(slope);
inline constexpr auto steps = FCP_FIELD(steps);
inline constexpr auto step_rate = FCP_FIELD(step_rate);
inline constexpr auto adam = FCP_FIELD(adam);
inline constexpr auto paper = FCP_FIELD(paper);
inline constexpr auto loss_weights = FCP_FIELD(loss_weights);
inline constexpr auto allow_empty = FCP_FIELD(allow_empty);
inline constexpr auto temperature = FCP_FIELD(temperature);
inline constexpr auto double_log = FCP_FIELD(double_log);
inline constexpr auto randomized = FCP_FIELD(randomized);
inline constexpr auto rank_weight = FCP_FIELD(rank_weight);
inline constexpr auto rank_free = FCP_FIELD(rank_free);
inline constexpr auto samples = FCP_FIELD(samples);
}  // namespace field

// Which score, and its options. Kept in the calibrated predictor.
struct ScoreOptions : OptionsOf<SharedOptions, AnyScore> {
  ScoreOptions() : ScoreOptions(NestedOptions{}) {}
  template <typename Options>
  requires kIsOneOf<Options, AnyScore> ScoreOptions(Options options, SharedOptions shared = {})
      : OptionsOf{std::move(shared), AnyScore(std::in_place_type<Options>, std::move(options))} {}
  // With its defaults; an Error where there is no score of that name.
  explicit ScoreOptions(const std::string& score, SharedOptions shared = {});

  // Whether the score searches a surrogate feature, so that it needs a number of steps.
  bool searches() const;
  // Whether region and score obey the law, so that the guarantee holds for the regions.
  bool obeys_law() const { return !searches(); }
  // Whether a score may be below 0, by its kind or as that of one end: rectifying lowers it.
  bool may_be_negative() const;
  // Whether its region is one bound, or its radii are signed, one for each end: by which a bound
  // may lie on either side of the prediction.
  bool has_signed_ends() const;
  // The outputs of the network that the score reads beside the prediction and that fcp can learn.
  std::vector<std::string> learned_outputs() const;

  bool operator==(const ScoreOptions&) const = default;
};

// An Error where there is no score of that name.
inline ScoreTraits score_traits(const std::string& score) { return ScoreOptions(score).traits(); }
inline bool uses_features(const std::string& score) { return score_traits(score).uses_features; }
inline bool predicts_labels(const std::string& score) { return score_traits(score).labels; }

// The score over a head, the part of the network from the feature on. Throws an Error for options
// that contradict the head.
std::unique_ptr<Score> make_score(const ScoreOptions& options, std::shared_ptr<const Network> head);

// The names of the scores that can be asked for, ascending.
std::vector<std::string> score_names();

}  // namespace fcp
