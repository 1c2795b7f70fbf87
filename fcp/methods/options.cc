#include "fcp/methods/options.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"

namespace fcp {
namespace {

using OptionNames = std::vector<std::string>;

// The scores that can be asked for with such traits, auto among them: first those of features.
OptionNames scores_with(bool (*wanted)(const ScoreTraits&)) {
  const auto names = [&](bool features) {
    return names_with_traits<AnyScore>([&](const ScoreTraits& traits) {
      return traits.uses_features == features && !traits.made_by_fit && wanted(traits);
    });
  };
  OptionNames all = names(true);
  for (const std::string& other : names(false)) all.push_back(other);
  return all;
}

OptionNames joined(OptionNames names, const char* last) {
  names.emplace_back(last);
  return names;
}

// What a file of fcp fit may name beside the choices.
template <typename AnyOptions>
OptionNames made_by_fit() {
  return names_with_traits<AnyOptions>([](const auto& traits) { return traits.made_by_fit; });
}

// The names of the parts and the cut are options that replace the part itself.
Option whole_part(Option option, OptionValue usual, std::string (*get)(const Method&),
                  void (*put)(Method&, const std::string&)) {
  option.kind = option.choices.empty() ? OptionKind::kText : OptionKind::kChoice;
  option.usual = std::move(usual);
  option.get = [get](const Method& method) { return OptionValue(get(method)); };
  option.put = [put](Method& method, const OptionValue& value) {
    put(method, std::get<std::string>(value));
  };
  return option;
}

// Of what is asked for alone.
Option of_request(Option option, OptionKind kind, OptionValue usual) {
  option.storage = OptionStorage::kNone;
  option.kind = kind;
  option.usual = std::move(usual);
  return option;
}

// What names the score, the calibration and the cut.
std::vector<Option> naming_options() {
  return {
      whole_part(
          {.name = "score",
           .help = "Nonconformity score; 'auto' takes the one with the least interval score "
                   "on rows held out for selection",
           .choices = joined(score_names(), kAutoScore),
           .only_made = made_by_fit<AnyScore>()},
          std::string(kAutoScore), [](const Method& method) { return method.score.name(); },
          [](Method& method, const std::string& name) {
            method.score = ScoreOptions(name, method.score);
          }),
      whole_part(
          {.name = "cut",
           .scope = {.scores = scores_with([](const ScoreTraits& traits) {
                       return traits.uses_features || traits.reads_heads;
                     }),
                     .calibrations = {LocalizedOptions::kName}},
           .help = "Where to cut the network: a tensor, a node, a number of layers, or 'auto' "
                   "to try every cut and floor on held-out rows; by default two layers before "
                   "the output",
           .may_be_auto = true},
          std::string(), [](const Method& method) { return method.cut; },
          [](Method& method, const std::string& cut) { method.cut = cut; }),
      whole_part(
          {.name = "calibration",
           .help = "split: one radius; grouped: one for each group; localized: rows near "
                   "the new one in feature space count more; weighted: for rows of another "
                   "distribution; rectified: a learned quantile of the score evens out "
                   "coverage",
           .choices = joined(calibration_names(), kRectified),
           .only_made = made_by_fit<AnyCalibration>(),
           .key = "name",
           .of_calibration = true},
          std::string(SplitOptions::kName),
          [](const Method& method) { return method.calibration.name(); },
          [](Method& method, const std::string& name) {
            method.calibration = CalibrationOptions(name, method.calibration);
          }),
  };
}

OptionNames interval_scores() {
  return scores_with([](const ScoreTraits& traits) { return !traits.labels; });
}

// Those that obey the law; of feature_cqr the form that does.
OptionNames one_sided_scores() {
  OptionNames names;
  for (const std::string& name : interval_scores()) {
    if (name == FeatureCqrOptions::kName) {
      names.push_back(name + " without paper");
    } else if (ScoreOptions(name).obeys_law() && !score_traits(name).boxed) {
      names.push_back(name);
    }
  }
  return names;
}

// Those that read the network's outputs alone: no bound or search goes over several.
OptionNames joint_scores() {
  OptionNames names = {kAutoScore};
  for (const std::string& name : interval_scores()) {
    if (!uses_features(name)) names.push_back(name);
  }
  return names;
}

std::string joint_of(const Method& method) {
  if (method.score.targets > 0) return kJointEach;
  return method.score.as<EllipsoidOptions>() != nullptr ? kJointVolume : kJointAll;
}

// How many outputs `each` is for turns out with the rows.
void put_joint(Method& method, const std::string& joint) {
  const uint64_t targets = std::max<uint64_t>(1, method.score.targets);
  method.score.targets = joint == kJointEach ? targets : 0;
  if (joint == kJointVolume && method.score.as<EllipsoidOptions>() == nullptr) {
    method.score = ScoreOptions(EllipsoidOptions::kName, method.score);
  }
}

Option joint_option() {
  return whole_part(
      {.name = "joint",
       .scope = {.scores = joint_scores()},
       .help = "Several targets: all at once by one radius; each with a radius and "
               "coverage 1 - alpha of its own; volume: all at once in an ellipsoid; auto: "
               "all at once in what has the least volume on held-out rows",
       .choices = {kJointAll, kJointEach, kJointVolume, kJointAuto},
       .storage = OptionStorage::kNone},
      std::string(kJointAll), joint_of, put_joint);
}

// Which outputs, which ends, and how rows of images count.
std::vector<Option> output_options() {
  return {
      score_option(
          FCP_FIELD(output),
          {.name = "output", .help = "The network's output to calibrate, where it has several"}),
      score_option(
          field::low,
          {.name = "low", .help = "The output that is the low quantile, or a column of one: y:0"}),
      score_option(field::high, {.name = "high",
                                 .help = "The output that is the high quantile, or a column: y:2"}),
      score_option(field::asymmetric,
                   {.name = "asymmetric", .help = "A radius for each side, each at half of alpha"}),
      score_option(FCP_FIELD(side),
                   {.name = "side",
                    .scope = {.scores = one_sided_scores()},
                    .help = "An interval, or one bound with all of alpha on its side: upper, lower",
                    .choices = {"both", "lower", "upper"},
                    .storage = OptionStorage::kSet}),
      score_option(FCP_FIELD(support),
                   {.name = "support",
                    .scope = {.scores = interval_scores()},
                    .help = "Known range of the target, such as 0: or 0:100; regions are cut to it",
                    .storage = OptionStorage::kSet}),
      score_option(FCP_FIELD(integer),
                   {.name = "integer",
                    .scope = {.scores = interval_scores()},
                    .help = "The target is a whole number, and so are the ends of regions",
                    .storage = OptionStorage::kSet}),
      score_option(FCP_FIELD(targets), {.name = "targets",
                                        .most = kMostInt,
                                        .access = OptionAccess::kLearned,
                                        .storage = OptionStorage::kSet}),
      joint_option(),
      score_option(
          FCP_FIELD(rectifier),
          {.name = "rectifier", .access = OptionAccess::kLearned, .storage = OptionStorage::kSet}),
  };
}

// Of feature space: the ball, its bound, and the floor under a band.
std::vector<Option> feature_options() {
  return {
      score_option(field::norm,
                   {.name = "norm", .help = "Norm of feature space", .choices = {"inf", "2", "1"}}),
      score_option(FCP_FIELD(bound.method),
                   {.name = "bound",
                    .help = "Bound propagation",
                    .choices = {"ibp", "crown-ibp", "crown", "alpha-crown"}}),
      score_option(FCP_FIELD(bound.iterations), {.name = "iterations",
                                                 .scope = {.bounds = {"alpha-crown"}},
                                                 .help = "Iterations that tighten the bound",
                                                 .most = kMostInt}),
      score_option(FCP_FIELD(bound.rate), {.name = "bound_rate",
                                           .most = kAnyNumber,
                                           .access = OptionAccess::kLearned,
                                           .key = "rate"}),
      score_option(FCP_FIELD(bound.outward), {.name = "outward", .access = OptionAccess::kLearned}),
      score_option(FCP_FIELD(pixels),
                   {.name = "pixels",
                    .scope = {.scores = scores_with(
                                  [](const ScoreTraits& traits) { return traits.counts_pixels; })},
                    .help = "Share of an image's pixels that must be in; 1: every one of them",
                    .most = 1,
                    .above = true,
                    .harmless = 1,
                    .access = OptionAccess::kImages,
                    .storage = OptionStorage::kSince}),
      score_option(field::floor, {.name = "floor",
                                  .help = "Widen each band by this share of the mean band",
                                  .most = kAnyNumber}),
      score_option(field::slope,
                   {.name = "slope", .most = kAnyNumber, .access = OptionAccess::kLearned}),
  };
}

// Of searches of a surrogate feature.
std::vector<Option> search_options() {
  return {
      score_option(field::steps,
                   {.name = "steps",
                    .help = "Steps of the search, or 'auto' to choose them on held-out rows",
                    .least = 1,
                    .most = kMostInt,
                    .may_be_auto = true,
                    .auto_by_default = true}),
      score_option(field::step_rate, {.name = "rate",
                                      .help = "Step size of the search",
                                      .most = kAnyNumber,
                                      .above = true,
                                      .key = "step_rate"}),
      score_option(field::adam,
                   {.name = "adam", .help = "Search with Adam instead of plain descent"}),
      score_option(field::paper,
                   {.name = "paper",
                    .help = "As the paper: signed surrogate distances for feature_cqr; rows that "
                            "choose the steps are calibrated on too, at level 0.1 always, and the "
                            "largest score stands for an infinite radius"}),
  };
}

// A crossed score has it too, but is not asked for.
Option allow_empty_option() {
  Option option = score_option(
      field::allow_empty,
      {.name = "allow_empty",
       .help = "Allow empty sets: the predicted label is treated like any other, instead "
               "of being in every set",
       .storage = OptionStorage::kOwn,
       .earlier = true});
  std::erase(option.scope.scores, CrossLabelsOptions::kName);
  return option;
}

// Of sets of labels.
std::vector<Option> label_options() {
  return {
      allow_empty_option(),
      score_option(
          FCP_FIELD(probabilities),
          {.name = "probabilities",
           .scope = {.scores = joined(
                         scores_with([](const ScoreTraits& traits) { return traits.labels; }),
                         kAutoScore)},
           .help = "Class probabilities beside the sets: the network's, or a pair for each "
                   "class calibrated by Venn-Abers prediction",
           .choices = {"softmax", kVennAbers},
           .storage = OptionStorage::kSet}),
      score_option(field::temperature,
                   {.name = "temperature",
                    .help = "Temperature of the softmax, or 'auto' to fit it on held-out rows",
                    .least = 1e-6,
                    .most = kAnyNumber,
                    .may_be_auto = true}),
      score_option(
          field::rank_weight,
          {.name = "rank_weight",
           .help = "Penalty on each rank beyond the free ones (raps, saps: lambda), or 'auto' "
                   "to choose it, with the free ranks, on held-out rows",
           .most = kAnyNumber,
           .may_be_auto = true,
           .auto_by_default = true}),
      score_option(
          field::rank_free,
          {.name = "rank_free", .help = "Ranks without penalty (raps: k_reg)", .most = kMostInt}),
  };
}

// Kept twice: a file says what its score and what its calibration took.
std::vector<Option> common_options() {
  return {
      score_option(FCP_FIELD(seed), {.name = "seed",
                                     .help = "Random seed",
                                     .most = kAnyNumber,
                                     .access = OptionAccess::kSeed}),
      calibration_option(FCP_FIELD(seed), {.name = "calibration_seed",
                                           .most = kAnyNumber,
                                           .access = OptionAccess::kLearned,
                                           .key = "seed"}),
      calibration_option(
          FCP_FIELD(paper),
          {.name = "calibration_paper", .access = OptionAccess::kLearned, .key = "paper"}),
  };
}

std::vector<Option> choosing_options() {
  return {
      of_request(
          {.name = "selection", .help = "Share of the rows held out for selection", .most = 0.9},
          OptionKind::kNumber, 0.2),
      of_request({.name = "objective",
                  .scope = {.scores = {kAutoScore}},
                  .help = "What 'auto' minimises: the interval score (length plus 2/alpha times "
                          "the distance of every miss; sets: size plus 1/alpha times the labels "
                          "to the truth), or the mean length or size alone",
                  .choices = {kByIntervalScore, kByLength}},
                 OptionKind::kChoice, std::string(kByIntervalScore)),
  };
}

void append(std::vector<Option>& table, const std::vector<Option>& rows) {
  table.insert(table.end(), rows.begin(), rows.end());
}

// The rows that the structs of options bring along, each where it says.
template <typename AnyOptions>
void insert_own_rows(std::vector<Option>& table) {
  for_each_options(std::type_identity<AnyOptions>{}, [&](const auto& options) {
    if constexpr (requires { options.rows(); }) {
      for (const Option& row : options.rows()) {
        const auto before = std::find_if(
            table.begin(), table.end(), [&](const Option& each) { return each.name == row.after; });
        table.insert(before == table.end() ? before : before + 1, row);
      }
    }
  });
}

std::vector<Option> make_table() {
  const std::vector<Option> names = naming_options(), common = common_options();
  std::vector<Option> table = {names[0], names[1]};
  for (const auto& rows :
       {output_options(), feature_options(), search_options(), label_options()}) {
    append(table, rows);
  }
  append(table, {common[0], names[2], common[1], common[2]});
  insert_own_rows<AnyScore>(table);
  insert_own_rows<AnyCalibration>(table);
  append(table, choosing_options());
  return table;
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

OptionValue MethodRequest::value(const std::string& option) const {
  if (option == "score") return score;
  if (option == "calibration") return calibration;
  if (option == "cut") {
    if (std::holds_alternative<AutoCut>(cut)) return AutoValue{};
    const auto* named = std::get_if<std::string>(&cut);
    return named == nullptr ? std::string() : *named;
  }
  const auto given = values.find(option);
  return given == values.end() ? default_value(find_option(option)) : given->second;
}

double MethodRequest::number(const std::string& option) const {
  const OptionValue given = value(option);
  const auto* whole = std::get_if<uint64_t>(&given);
  return whole == nullptr ? std::get<double>(given) : static_cast<double>(*whole);
}

void MethodRequest::put(const std::string& option, const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (option == "cut") {
    cut = DefaultCut{};
    if (text == nullptr) cut = AutoCut{};
    if (text != nullptr && !text->empty()) cut = *text;
  } else if (option == "score" || option == "calibration") {
    (option == "score" ? score : calibration) = std::get<std::string>(value);
  } else {
    values[option] = value;
  }
}

void set_option(MethodRequest& request, const Option& option, const OptionValue& value) {
  check_value(option, value);
  request.put(option.name, value);
}

Method resolve(const MethodRequest& request) {
  Method method;
  for (const Option& option : option_table()) {
    if (!option.put) continue;
    const OptionValue value = request.value(option.name);
    if (std::holds_alternative<AutoValue>(value)) continue;
    const bool rectified = value == OptionValue(std::string(kRectified));
    if (!rectified || !option.of_calibration) option.put(method, value);
  }
  if (auto* scale = method.score.find(field::scale)) *scale = request.scale;
  if (auto* bound = method.score.find(field::bound)) bound->memory = request.memory;
  method.calibration.paper = method.score.value(field::paper);
  method.calibration.seed = method.score.seed;
  return method;
}

MethodRequest request_of(const Method& method) {
  MethodRequest request;
  for (const Option& option : option_table()) {
    if (option.get) request.put(option.name, value_in(option, method));
  }
  request.scale = method.score.value(field::scale);
  return request;
}

ScoreOptions as_score(const ScoreOptions& score, const std::string& name) {
  const Method from{.score = score};
  Method to{.score = ScoreOptions(name, score)};
  for (const Option& option : option_table()) {
    if (option.of_calibration || option.storage == OptionStorage::kNone) continue;
    if (option.name == "score") continue;
    if (const auto value = option.get(from)) option.put(to, *value);
  }
  const auto* bound = score.find(field::bound);
  auto* own_bound = to.score.find(field::bound);
  if (bound != nullptr && own_bound != nullptr) *own_bound = *bound;
  if (auto* scale = to.score.find(field::scale)) *scale = score.value(field::scale);
  return to.score;
}

std::optional<ScoreOptions> baseline_of(const ScoreOptions& score) {
  const std::string name = score.traits().baseline;
  if (name.empty() || score.targets > 0) return std::nullopt;
  ScoreOptions plain = as_score(score, name);
  plain.rectifier.clear();
  if (bool* asymmetric = plain.find(field::asymmetric)) *asymmetric = false;
  return plain;
}

}  // namespace fcp
