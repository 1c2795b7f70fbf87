#include "apps/experiments/selftest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/base/text_table.h"
#include "fcp/calibrate/outliers.h"
#include "fcp/conformal/quantile.h"
#include "fcp/methods/method.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/scored_network.h"
#include "fcp/version.h"

#include "apps/experiments/selftest_worlds.h"
#include "apps/report/results.h"

namespace fcp {
namespace {

constexpr std::array kCalibrations = {"split", "grouped", "localized", "weighted"};
constexpr double kAlpha = 0.1;

constexpr char kUnion[] = "density --union";
constexpr char kRectifiedResidual[] = "rectified residual";
constexpr char kUpperResidual[] = "residual --side upper";
constexpr char kLowerSpread[] = "spread --side lower";
constexpr char kUpperNested[] = "nested --side upper";
constexpr char kFeatureScore[] = "check --reference";
constexpr char kEachSpread[] = "spread --joint each";  // the coverage of the second target

ScoreOptions score_options(const std::string& name) {
  if (name == kUnion) return DensityOptions{.level_set = true};
  if (name == kRectifiedResidual) return {ResidualOptions{}, {.rectifier = kRectifierOutput}};
  if (name == kUpperResidual) return {ResidualOptions{}, {.side = BoundSide::kUpper}};
  if (name == kLowerSpread) return {SpreadOptions{}, {.side = BoundSide::kLower}};
  if (name == kFeatureScore) return ResidualOptions{};  // for its network
  if (name == kUpperNested) return {NestedOptions{}, {.side = BoundSide::kUpper}};
  if (name == kEachSpread) return {SpreadOptions{}, {.targets = 2}};
  ScoreOptions options(name);
  if (options.searches()) *options.find(field::steps) = 10;
  if (auto* samples = options.find(field::samples)) *samples = 50;
  if (double* weight = options.find(field::rank_weight)) *weight = 0.1;
  return options;
}

// Whether it is tried on two outputs.
bool of_pairs(const ScoreOptions& score) {
  return score.targets > 0 || score.find(field::cholesky) != nullptr;
}

const Graph& network_for(const SelftestWorld& world, const ScoreOptions& score) {
  if (of_pairs(score)) return world.pair;
  if (score.traits().labels) return world.logits;
  if (score.find(field::low) != nullptr) return world.quantiles;
  const bool heads = score.traits().reads_heads || !score.rectifier.empty();
  return heads ? world.heads : world.mean;
}

// A score with all rows of a world, whose features and scores are computed once.
struct Scored {
  Scored(const SelftestWorld& world, const std::string& score_name)
      : name(score_name),
        options(score_options(name)),
        predictor(network_for(world, options), options, "hidden1"),
        truth(options.traits().labels ? world.labels
              : of_pairs(options)     ? world.pairs
                                      : world.truth) {
    features = predictor.features(world.x);
    scores = predictor.score().score(features, truth);
    if (name == kFeatureScore) judge_features(world);
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    ties = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }

  // By the distances of features, without the truth.
  void judge_features(const SelftestWorld& world) {
    CalibrationArtifact artifact;
    artifact.network = world.mean;
    artifact.method.score = options;
    OutlierFeatures source(artifact, "hidden1");
    const torch::Tensor own = source.of(world.x);
    scores = FeatureOutliers(std::move(source), own.narrow(0, 0, own.size(0) / 4), {}).scores(own);
  }

  bool has_regions() const { return options.obeys_law() && name != kFeatureScore; }

  std::string name;
  ScoreOptions options;
  ScoredNetwork predictor;
  torch::Tensor features, truth;
  std::vector<double> scores;
  bool ties = false;
};

using Drawn = std::vector<int64_t>;  // rows of the population

torch::Tensor rows_of(const torch::Tensor& all, const Drawn& rows) {
  return all.index_select(0, torch::tensor(rows, torch::kLong));
}

template <typename T>
std::vector<T> pick(const std::vector<T>& all, const Drawn& rows) {
  std::vector<T> some;
  for (const int64_t row : rows) some.push_back(all[static_cast<size_t>(row)]);
  return some;
}

// Those of rows that have several.
std::vector<double> pick(const std::vector<double>& all, const Drawn& rows, int64_t each) {
  std::vector<double> some;
  for (const int64_t row : rows) {
    some.insert(some.end(), all.begin() + row * each, all.begin() + (row + 1) * each);
  }
  return some;
}

// Calibration and new rows of one replication.
struct Sample {
  Drawn kept, fresh;
};

Sample draw_distinct(size_t population, const SelftestOptions& options, Random& random) {
  Drawn order(population);
  for (size_t i = 0; i < population; ++i) order[i] = static_cast<int64_t>(i);
  const size_t count = options.rows + options.fresh;
  for (size_t i = 0; i < count; ++i) {
    std::swap(order[i], order[i + random.below(population - i)]);
  }
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(options.rows);
  return {{order.begin(), middle}, {middle, order.begin() + static_cast<std::ptrdiff_t>(count)}};
}

// New rows by their weight: those of another distribution.
Sample draw_shifted(const std::vector<double>& weights, const SelftestOptions& options,
                    Random& random) {
  std::vector<double> sums;
  for (const double weight : weights) sums.push_back((sums.empty() ? 0 : sums.back()) + weight);
  Sample sample;
  for (size_t i = 0; i < options.rows; ++i) {
    sample.kept.push_back(static_cast<int64_t>(random.below(weights.size())));
  }
  for (size_t i = 0; i < options.fresh; ++i) {
    const double place = random.uniform() * sums.back();
    const auto found = std::upper_bound(sums.begin(), sums.end() - 1, place);
    sample.fresh.push_back(found - sums.begin());
  }
  return sample;
}

// Whether each new row is covered.
std::vector<bool> covered_rows(const Scored& scored, const SelftestWorld& world,
                               const Sample& sample, const CalibrationOptions& calibration,
                               size_t spoil) {
  CalibrationScores kept;
  const Score& score = scored.predictor.score();
  kept.sides = score.sides();
  kept.targets = score.targets();
  kept.scores = pick(scored.scores, sample.kept, kept.sides);
  std::fill_n(kept.scores.begin(), spoil * static_cast<size_t>(kept.sides),
              -std::numeric_limits<double>::infinity());
  kept.groups = pick(world.groups, sample.kept);
  kept.group_names = {"0", "1", "2"};
  kept.weights = pick(world.weights, sample.kept);
  kept.features = rows_of(scored.features, sample.kept).flatten(1).contiguous();
  const auto made = make_calibration(calibration, kept, score.classes());
  const TestInputs fresh{rows_of(scored.features, sample.fresh), pick(world.groups, sample.fresh),
                         pick(world.weights, sample.fresh)};
  const torch::Tensor radii = made->radii(fresh, Level(kAlpha));
  torch::Tensor in;
  if (!scored.has_regions()) {
    in = torch::tensor(pick(scored.scores, sample.fresh), torch::kDouble) <= radii.select(1, 0);
  } else {
    const Regions regions = score.region(fresh.features, radii);
    const torch::Tensor truth = rows_of(scored.truth, sample.fresh);
    if (score.classes() > 0) {
      in = regions.members.gather(1, truth.to(torch::kLong)).squeeze(1);
    } else if (score.targets() > 1) {
      in = (regions.lower <= truth).logical_and(truth <= regions.upper).select(1, 1);
    } else {
      in = in_regions(regions, truth);
    }
  }
  const torch::Tensor plain = in.to(torch::kBool).contiguous();
  return std::vector<bool>(plain.data_ptr<bool>(), plain.data_ptr<bool>() + plain.numel());
}

double share_of(const std::vector<bool>& covered) {
  return static_cast<double>(std::count(covered.begin(), covered.end(), true)) /
         static_cast<double>(covered.size());
}

// The counts of split calibration, or of each group that has rows enough for a finite radius.
void add_counts(const SelftestWorld& world, const Sample& sample, const std::vector<bool>& covered,
                bool grouped, Random& random, std::vector<double>& uniform) {
  for (int64_t group = 0; group < (grouped ? 3 : 1); ++group) {
    const auto mine = [&](int64_t row) {
      return !grouped || world.groups[static_cast<size_t>(row)] == group;
    };
    const auto rows =
        static_cast<size_t>(std::count_if(sample.kept.begin(), sample.kept.end(), mine));
    size_t fresh = 0, in = 0;
    for (size_t i = 0; i < covered.size(); ++i) {
      if (!mine(sample.fresh[i])) continue;
      ++fresh;
      in += covered[i] ? 1 : 0;
    }
    const size_t rank = conformal_rank(Level(kAlpha), rows);
    if (rank > rows || fresh == 0) continue;
    uniform.push_back(uniform_of_count({rows, fresh, rank}, in, random.uniform()));
  }
}

// The largest share of all weight that one row of the population has, the new row included.
double largest_share(const SelftestWorld& world, const Sample& sample) {
  std::vector<double> own = world.weights;  // as a new row
  double total = 0;
  for (const int64_t row : sample.kept) {
    own[static_cast<size_t>(row)] += world.weights[static_cast<size_t>(row)];
    total += world.weights[static_cast<size_t>(row)];
  }
  return *std::max_element(own.begin(), own.end()) / total;
}

SelftestCheck check_one(const SelftestWorld& world, const Scored& scored, const std::string& name,
                        const SelftestOptions& options, Random random) {
  SelftestCheck check{.world = world.name, .score = scored.name, .calibration = name};
  const CalibrationTraits traits = calibration_traits(name);
  check.exact = traits.one_radius || traits.by_group;
  std::vector<double> uniform;
  Gambler below(Gambler::kTooLow), above(Gambler::kTooHigh);
  for (uint64_t t = 0; t < options.replications; ++t) {
    check_interrupted();
    const Sample sample = traits.by_weight ? draw_shifted(world.weights, options, random)
                                           : draw_distinct(world.groups.size(), options, random);
    CalibrationOptions calibration(name, {.seed = random.bits()});
    if (double* bandwidth = calibration.find(field::bandwidth)) *bandwidth = 2;
    const std::vector<bool> covered =
        covered_rows(scored, world, sample, calibration, options.spoil);
    check.coverage += share_of(covered) / static_cast<double>(options.replications);
    if (check.exact) {
      add_counts(world, sample, covered, traits.by_group, random, uniform);
    } else {
      below.bet(1 - kAlpha - share_of(covered));
      above.bet(share_of(covered) - (1 - kAlpha) - largest_share(world, sample));
    }
  }
  if (check.exact) {
    check.chance = scored.ties ? chance_too_low(uniform) : chance_not_uniform(uniform);
  } else if (traits.by_weight && !scored.ties) {
    check.chance = std::min(1.0, 2 * std::min(below.chance(), above.chance()));
  } else {
    check.chance = below.chance();
  }
  return check;
}

// Of each class in turn; see selftest.h.
SelftestCheck check_chances(const SelftestWorld& world, const SelftestOptions& options,
                            Random random) {
  SelftestCheck check{
      .world = world.name, .score = "probabilities", .calibration = kVennAbers, .promised = 1};
  const ScoreOptions score = LacOptions{};
  const ScoredNetwork network(world.logits, score, "");
  const torch::Tensor shares = LogitShares(network, score).of(world.x);
  const torch::Tensor labels = world.labels.to(torch::kLong).flatten();
  std::vector<Gambler> gamblers(4, Gambler(Gambler::kTooHigh));
  double hits = 0, foretold = 0;
  for (uint64_t t = 0; t < options.replications; ++t) {
    check_interrupted();
    const auto label = static_cast<int64_t>(t) % shares.size(1);
    const auto is_hit = [&](int64_t row) { return labels[row].item<int64_t>() == label; };
    const auto share = [&](int64_t row) { return shares[row][label].item<double>(); };
    const Sample sample = draw_distinct(world.groups.size(), options, random);
    std::vector<double> scores;
    std::vector<bool> seen;
    for (const int64_t row : sample.kept) {
      scores.push_back(share(row));
      seen.push_back(seen.size() < options.spoil || is_hit(row));
    }
    const VennAbers fitted(scores, seen);
    std::array<double, 2> gaps{};
    for (const int64_t row : sample.fresh) {
      const VennAbersPair pair = fitted.at(share(row));
      const double p = is_hit(row) ? pair.p1 : pair.p0;
      hits += is_hit(row) ? 1 : 0;
      foretold += p;
      gaps[p < 0.5 ? 0 : 1] +=
          ((is_hit(row) ? 1 : 0) - p) / static_cast<double>(sample.fresh.size());
    }
    for (size_t i = 0; i < gamblers.size(); ++i) {
      gamblers[i].bet((i % 2 == 0 ? 1 : -1) * gaps[i / 2]);
    }
  }
  check.coverage = hits / foretold;
  for (const Gambler& one : gamblers) {
    check.chance = std::min(check.chance, static_cast<double>(gamblers.size()) * one.chance());
  }
  return check;
}

}  // namespace

std::vector<SelftestCheck> run_selftest(const SelftestOptions& options) {
  torch::NoGradGuard no_gradients;
  if (options.population < options.rows + options.fresh) fail("the population is too small");
  std::vector<std::string> names = options.scores.empty() ? score_names() : options.scores;
  if (options.scores.empty()) {
    names.insert(names.end(), {kUnion, kRectifiedResidual, kUpperResidual, kLowerSpread,
                               kUpperNested, kEachSpread, kFeatureScore});
  }
  const std::vector<SelftestWorld> worlds = selftest_worlds(options.population, options.seed);
  Random random(options.seed + 1);
  std::vector<SelftestCheck> checks;
  for (size_t i = 0; i < worlds.size() * names.size(); ++i) {
    if (options.observe) options.observe(i, worlds.size() * names.size());
    const SelftestWorld& world = worlds[i / names.size()];
    const Scored scored(world, names[i % names.size()]);
    for (const char* calibration : kCalibrations) {
      checks.push_back(check_one(world, scored, calibration, options, Random(random.bits())));
    }
  }
  for (size_t i = 0; options.scores.empty() && i < worlds.size(); ++i) {
    checks.push_back(check_chances(worlds[i], options, Random(random.bits())));
  }
  const double least = kSelftestFalseAlarm / static_cast<double>(checks.size());
  for (SelftestCheck& check : checks) check.passed = check.chance > least;
  return checks;
}

nlohmann::ordered_json selftest_json(const std::vector<SelftestCheck>& checks,
                                     const SelftestOptions& options) {
  nlohmann::ordered_json json = {
      {"version", FCP_VERSION},
      {"replications", options.replications},
      {"false_alarm", kSelftestFalseAlarm},
      {"passed", std::all_of(checks.begin(), checks.end(), [](const auto& c) { return c.passed; })},
      {"checks", nlohmann::ordered_json::array()}};
  for (const SelftestCheck& check : checks) {
    json["checks"].push_back({{"world", check.world},
                              {"score", check.score},
                              {"calibration", check.calibration},
                              {"coverage", check.coverage},
                              {"promised", check.promised},
                              {"exact", check.exact},
                              {"chance", check.chance},
                              {"passed", check.passed}});
  }
  return json;
}

std::string selftest_text(const std::vector<SelftestCheck>& checks) {
  std::vector<std::string> headers = {"score", "calibration"};
  std::map<std::string, std::vector<const SelftestCheck*>> lines;
  std::vector<std::string> order;
  for (const SelftestCheck& check : checks) {
    if (std::find(headers.begin(), headers.end(), check.world) == headers.end()) {
      headers.push_back(check.world);
    }
    const std::string line = check.score + " " + check.calibration;
    if (!lines.contains(line)) order.push_back(line);
    lines[line].push_back(&check);
  }
  headers.insert(headers.end(), {"least chance", ""});
  Table table(headers);
  for (const std::string& line : order) {
    std::vector<std::string> cells = {lines[line][0]->score, lines[line][0]->calibration};
    double chance = 1;
    bool passed = true;
    for (const SelftestCheck* check : lines[line]) {
      cells.push_back(format_percent(check->coverage));
      chance = std::min(chance, check->chance);
      passed = passed && check->passed;
    }
    cells.insert(cells.end(), {format_number(chance, 2), passed ? "" : "off"});
    table.add_row(cells);
  }
  return table.text();
}

}  // namespace fcp
