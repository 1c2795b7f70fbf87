#include "fcp/calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/data/row_digest.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"
#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kRows = 200;

struct World {
  Graph network;
  Array x, y;

  MemoryRows rows() const { return {x, y}; }
};

Array random_rows(Random& random, std::vector<int64_t> shape) {
  Array array = zeros(std::move(shape));
  for (float& value : array.values) value = static_cast<float>(random.normal());
  return array;
}

torch::Tensor tensor_over(const Array& array) {
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat);
}

// The network's answer [N, K], by itself.
torch::Tensor answers(const World& world) {
  torch::NoGradGuard no_grad;
  return Network(world.network).run({tensor_over(world.x)})[0].flatten(1);
}

// y is the answer with noise, more of it where x is large.
void add_truth(World& world, Random& random) {
  const torch::Tensor answer = answers(world).contiguous();
  world.y = zeros({answer.size(0), answer.size(1)});
  for (size_t i = 0; i < world.y.values.size(); ++i) {
    world.y.values[i] = answer.data_ptr<float>()[i] + static_cast<float>(random.normal());
  }
}

World interval_world(uint64_t seed) {
  torch::manual_seed(seed);
  Random random(seed);
  World world{make_mlp({4, 8, 8, 2}), random_rows(random, {kRows, 4}), {}};
  add_truth(world, random);
  return world;
}

World label_world(uint64_t seed) {
  torch::manual_seed(seed);
  Random random(seed);
  World world{make_mlp({4, 8, 8, 3}), random_rows(random, {kRows, 4}), zeros({kRows, 1})};
  for (float& label : world.y.values) label = static_cast<float>(random.below(3));
  return world;
}

World pixel_world(uint64_t seed) {
  torch::manual_seed(seed);
  Random random(seed);
  World world{make_conv_head(3, 5, 3, 1), random_rows(random, {60, 3, 4, 5}), {}};
  add_truth(world, random);
  return world;
}

CalibrateSettings settings_for(const std::string& score) {
  CalibrateSettings settings;
  settings.data_name = "memory";
  settings.method.score = score;
  return settings;
}

CalibrateResult calibrate_world(const World& world, const CalibrateSettings& settings,
                                const Context& context = {}) {
  MemoryRows rows = world.rows();
  return calibrate(world.network, rows, settings, context);
}

// The largest error of each row, ascending.
std::vector<double> errors_of(const World& world) {
  const torch::Tensor error = (answers(world) - tensor_over(world.y)).abs().amax(1);
  std::vector<double> errors(error.data_ptr<float>(), error.data_ptr<float>() + error.numel());
  std::sort(errors.begin(), errors.end());
  return errors;
}

template <typename Work>
std::string refused_option(const Work& work) {
  try {
    work();
  } catch (const OptionError& error) {
    return error.option();
  }
  return "nothing";
}

TEST(Calibrate, GivesTheErrorsOfAllRows) {
  for (const World& world : {interval_world(1), pixel_world(2)}) {
    const CalibrateResult result = calibrate_world(world, settings_for("residual"));
    const std::vector<double> expected = errors_of(world);
    ASSERT_EQ(result.artifact.rows.scores.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.artifact.rows.scores[i], expected[i], 1e-5 * (1 + expected[i]));
    }
    EXPECT_EQ(result.choices.rows, 0u);
    EXPECT_EQ(result.findings.seen, expected.size());
    EXPECT_EQ(result.findings.kept, expected.size());
    EXPECT_THAT(result.warnings, IsEmpty());
    EXPECT_EQ(result.artifact.provenance.at("calibration rows"), std::to_string(expected.size()));
  }
}

TEST(Calibrate, ChoosesTheShortestCutOnRowsThatItLeavesOut) {
  const World world = interval_world(3);
  CalibrateSettings settings = settings_for("nested");
  settings.method.cut = AutoCut{};
  Listener listener;
  Context context;
  context.observer = &listener;
  const CalibrateResult result = calibrate_world(world, settings, context);
  ASSERT_TRUE(result.choices.cut);
  const auto& [candidates, chosen] = *result.choices.cut;
  ASSERT_LT(chosen, candidates.size());
  for (const CutCandidate& one : candidates) {
    if (!one.skipped.empty()) continue;
    EXPECT_LE(candidates[chosen].length, one.length);
  }
  EXPECT_EQ(result.artifact.method.cut, candidates[chosen].cut);
  EXPECT_EQ(result.artifact.method.score.value(field::floor), candidates[chosen].floor);
  EXPECT_EQ(result.choices.rows, kRows / 5);
  EXPECT_TRUE(result.choices.left_out);
  EXPECT_EQ(result.findings.seen, kRows);
  EXPECT_EQ(result.findings.kept, kRows - kRows / 5);
  EXPECT_EQ(result.artifact.rows.count(), kRows - kRows / 5);
  ASSERT_THAT(listener.heard, SizeIs(1));
  EXPECT_EQ(listener.heard[0].rows, kRows / 5);
  ASSERT_FALSE(listener.stages.empty());
  EXPECT_EQ(listener.stages.front().first, "choose the cut");
  EXPECT_EQ(listener.stages.back(), std::pair(std::string("calibrate"), kRows));
  EXPECT_FALSE(listener.open);
  EXPECT_EQ(listener.advanced, candidates.size() + kRows);
}

TEST(Calibrate, ChoosesNothingThatIsGiven) {
  const World world = interval_world(4);
  CalibrateSettings settings = settings_for("surrogate");
  settings.method.set("steps", 5);
  const CalibrateResult steps = calibrate_world(world, settings);
  EXPECT_EQ(steps.artifact.method.score.value(field::steps), 5);
  EXPECT_EQ(steps.choices.rows, 0u);
  ASSERT_TRUE(steps.findings.reached);
  EXPECT_GE(*steps.findings.reached, 0);
  EXPECT_LE(*steps.findings.reached, 1);
  settings = settings_for("nested");
  settings.method.calibration = "localized";
  settings.method.set("bandwidth", 0.5);
  settings.method.cut = std::string("h1");
  const CalibrateResult bandwidth = calibrate_world(world, settings);
  EXPECT_EQ(bandwidth.artifact.method.calibration.value(field::bandwidth), 0.5);
  EXPECT_EQ(bandwidth.artifact.method.cut, "h1");
  EXPECT_EQ(bandwidth.artifact.rows.features.sizes(), torch::IntArrayRef({kRows, 8}));
  settings.method.put("bandwidth", AutoValue{});
  const CalibrateResult open = calibrate_world(world, settings);
  ASSERT_TRUE(open.choices.bandwidth);
  const auto& [candidates, chosen] = *open.choices.bandwidth;
  EXPECT_EQ(open.artifact.method.calibration.value(field::bandwidth),
            candidates.at(chosen).bandwidth);
  for (const BandwidthTried& one : candidates) EXPECT_LE(candidates[chosen].loss, one.loss);
}

// Answers of calibration rows that become nonsense change nothing that was chosen.
TEST(Calibrate, ChoosesStepsWithoutLookingAtCalibrationRows) {
  World world = interval_world(4);
  CalibrateSettings settings = settings_for("surrogate");
  const CalibrateResult before = calibrate_world(world, settings);
  ASSERT_TRUE(before.choices.steps);
  const std::vector<size_t> order = Random(0).permutation(kRows);  // by the context's seed
  for (size_t i = kRows / 5; i < kRows; ++i) {
    for (size_t k = 0; k < 2; ++k) world.y.values[2 * order[i] + k] += 1000;
  }
  const CalibrateResult after = calibrate_world(world, settings);
  ASSERT_TRUE(after.choices.steps);
  EXPECT_EQ(after.choices.steps->steps, before.choices.steps->steps);
  EXPECT_EQ(after.choices.steps->coverage, before.choices.steps->coverage);
  EXPECT_NE(after.artifact.radius(Level(0.1)), before.artifact.radius(Level(0.1)));
}

TEST(Calibrate, ChoosesTheOptionsOfLabels) {
  const World world = label_world(5);
  CalibrateSettings settings = settings_for("raps");
  settings.method.put("temperature", AutoValue{});
  settings.method.calibration = "grouped";
  settings.method.set("group", kByLabel);
  const CalibrateResult result = calibrate_world(world, settings);
  ASSERT_TRUE(result.choices.temperature && result.choices.rank_term);
  EXPECT_EQ(*result.choices.temperature, result.artifact.method.score.value(field::temperature));
  EXPECT_EQ(result.choices.rank_term->weight,
            result.artifact.method.score.value(field::rank_weight));
  EXPECT_EQ(result.choices.rank_term->free, result.artifact.method.score.value(field::rank_free));
  EXPECT_THAT(result.artifact.rows.group_names, SizeIs(3));
  EXPECT_EQ(result.artifact.rows.groups.size(), kRows - kRows / 5);
}

// The nodes that read a tensor.
std::vector<std::string> readers_of(const Graph& network, const std::string& tensor) {
  std::vector<std::string> readers;
  for (const Node& node : network.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), tensor) != node.inputs.end()) {
      readers.push_back(node.name);
    }
  }
  return readers;
}

TEST(Calibrate, FitsHeadsAtTheCut) {
  const World world = interval_world(19), fitting = interval_world(19);
  MemoryRows head_rows = fitting.rows();
  CalibrateSettings settings = settings_for("spread");
  settings.head_rows = &head_rows;
  const CalibrateResult usual = calibrate_world(world, settings);
  EXPECT_EQ(usual.choices.head_rows, kRows);
  EXPECT_TRUE(usual.choices.own_head_rows);
  const std::string last_hidden = world.network.nodes[3].outputs[0];
  settings.method.cut = last_hidden;
  head_rows.rewind();
  const CalibrateResult told = calibrate_world(world, settings);
  const size_t plain = readers_of(world.network, last_hidden).size();
  EXPECT_EQ(readers_of(usual.artifact.network, last_hidden).size(), plain);
  EXPECT_GT(readers_of(told.artifact.network, last_hidden).size(), plain);
  MemoryRows rows = world.rows();
  EXPECT_EQ(refused_option([&] { calibrate(told.artifact.network, rows, settings, {}); }), "cut");
}

// A network that answers `mu`, with a positive `sigma` beside it.
World spread_world(uint64_t seed, size_t rows = kRows) {
  torch::manual_seed(seed);
  Random random(seed);
  World world{make_mlp({4, 8, 1}), random_rows(random, {static_cast<int64_t>(rows), 4}), {}};
  add_truth(world, random);
  Graph& network = world.network;
  network.initializers["w"] = torch::randn({1, 8});
  network.nodes.push_back(make_node("Gemm", {"h1", "w"}, {"s"}, {{"transB", int64_t{1}}}));
  network.nodes.push_back(make_node("Softplus", {"s"}, {"sigma"}));
  network.nodes.push_back(make_node("Identity", {"y"}, {"mu"}));
  network.outputs = {make_info("mu", {kDynamic, 1}), make_info("sigma", {kDynamic, 1})};
  return world;
}

TEST(Calibrate, ReadsTheSpreadThatIsNamed) {
  const World world = spread_world(31);
  CalibrateSettings settings = settings_for("spread");
  settings.method.set("spread", "sigma");
  const CalibrateResult result = calibrate_world(world, settings);
  EXPECT_EQ(result.choices.head_rows, 0u);
  EXPECT_EQ(result.artifact.method.score.output, "mu");
  EXPECT_EQ(result.artifact.rows.count(), kRows);  // nothing is learned on rows
  const Tensors outputs = Network(world.network).run({tensor_over(world.x)});
  const torch::Tensor ratio = ((tensor_over(world.y) - outputs[0]).abs() / outputs[1]).flatten();
  const torch::Tensor sorted = std::get<0>(ratio.sort());
  std::vector<double> scores = result.artifact.rows.scores;
  std::sort(scores.begin(), scores.end());
  for (int64_t i : {int64_t{0}, int64_t{100}, int64_t{199}}) {
    EXPECT_NEAR(scores[static_cast<size_t>(i)], sorted[i].item<double>(), 1e-4);
  }
  settings.method.set("spread", "nothing");
  EXPECT_EQ(refused_option([&] { calibrate_world(world, settings); }), "spread");
  settings = settings_for("density");
  settings.method.set("quantiles", "nothing");
  EXPECT_EQ(refused_option([&] { calibrate_world(world, settings); }), "quantiles");
}

TEST(Calibrate, TakesAMeanAndASpreadForWhatTheirNamesSay) {
  const World world = spread_world(32, 400);
  const CalibrateResult result = calibrate_world(world, settings_for("auto"));
  EXPECT_EQ(result.artifact.method.score.output, "mu");
  EXPECT_THAT(result.artifact.provenance.at(kOutputsTaken),
              HasSubstr("taking 'mu' as the prediction, not 'sigma'"));
  for (const ScoreTried& one : result.choices.scores->candidates) EXPECT_NE(one.name, "cqr");
  World unnamed = world;
  for (const char* name : {"mu", "sigma"}) {
    unnamed.network.nodes.push_back(make_node("Identity", {name}, {std::string("out_") + name[0]}));
  }
  unnamed.network.outputs = {make_info("out_m", {kDynamic, 1}), make_info("out_s", {kDynamic, 1})};
  EXPECT_THAT([&] { calibrate_world(unnamed, settings_for("auto")); },
              ::testing::ThrowsMessage<Error>(HasSubstr("do not tell which is the prediction")));
}

// exp(squeeze(…)): the last tensors are [N], which is no feature.
TEST(Calibrate, SkipsWhatAnAnswerOfOneAxisCannotHave) {
  torch::manual_seed(33);
  Random random(33);
  World world{make_mlp({4, 8, 1}), random_rows(random, {700, 4}), zeros({700, 1})};
  Graph& network = world.network;
  network.initializers["axes"] = torch::tensor({int64_t{1}}, torch::kLong);
  network.nodes.push_back(make_node("Squeeze", {"y", "axes"}, {"flat"}));
  network.nodes.push_back(make_node("Exp", {"flat"}, {"rate"}));
  network.outputs = {make_info("rate", {kDynamic})};
  const torch::Tensor rate = Network(network).run({tensor_over(world.x)})[0].contiguous();
  for (size_t i = 0; i < 700; ++i) {
    world.y.values[i] = rate.data_ptr<float>()[i] + static_cast<float>(random.normal());
  }
  for (const char* score : {"auto", "nested", "linearized"}) {
    const CalibrateResult result = calibrate_world(world, settings_for(score));
    EXPECT_THAT(result.artifact.method.cut, ::testing::AnyOf("", "x", "h1", "z1", "y")) << score;
    CalibrateSettings flat = settings_for(score);
    flat.method.cut = "flat";
    if (score == std::string("auto")) continue;
    EXPECT_THAT([&] { calibrate_world(world, flat); },
                ::testing::ThrowsMessage<Error>(HasSubstr("cut at 'flat'")));
  }
}

// Targets of units 1 and 1000 below the rows that choose a score: a radius each.
TEST(Calibrate, ScalesTargetsByTheirOwnErrors) {
  for (const size_t rows : {size_t{30}, size_t{100}, size_t{400}}) {
    torch::manual_seed(34);
    Random random(34);
    World world{make_mlp({4, 2}), random_rows(random, {static_cast<int64_t>(rows), 4}), {}};
    world.network.initializers["units"] = torch::tensor({1.0f, 1000.0f});
    world.network.nodes.push_back(make_node("Mul", {"y", "units"}, {"both"}));
    world.network.outputs = {make_info("both", {kDynamic, 2})};
    const torch::Tensor answer = answers(world).contiguous();
    world.y = zeros({answer.size(0), 2});
    for (size_t i = 0; i < world.y.values.size(); ++i) {
      const float unit = i % 2 == 0 ? 1.0f : 1000.0f;
      world.y.values[i] = answer.data_ptr<float>()[i] + unit * static_cast<float>(random.normal());
    }
    CalibrateSettings settings = settings_for("auto");
    const CalibrateResult result = calibrate_world(world, settings);
    const internal::PredictorCore predictor(result.artifact);
    const Regions regions = predictor.region(predictor.describe(tensor_over(world.x)), Level(0.1));
    const torch::Tensor length = (regions.upper - regions.lower).mean(0);
    EXPECT_LT(length[0].item<double>(), 20) << rows;
    EXPECT_GT(length[1].item<double>(), 1000) << rows;
    EXPECT_LT(result.artifact.rows.count(), rows);  // the scales have rows of their own
  }
  const World alike = interval_world(35);  // errors of one unit: nothing to measure
  CalibrateSettings settings = settings_for("auto");
  EXPECT_EQ(calibrate_world(alike, settings).artifact.method.score.value(field::normalize), "");
}

TEST(Calibrate, EstimatesTheRatioAgainstShiftedRows) {
  const World world = interval_world(6);
  Random random(7);
  Array moved = random_rows(random, {150, 4});
  for (float& value : moved.values) value += 0.5f;
  MemoryRows shifted(moved, zeros({150, 0}));
  CalibrateSettings settings = settings_for("residual");
  settings.method.calibration = "weighted";
  settings.shifted = &shifted;
  const CalibrateResult result = calibrate_world(world, settings);
  EXPECT_EQ(result.choices.shifted_rows, 150u);
  EXPECT_TRUE(result.artifact.ratio.defined());
  ASSERT_TRUE(result.findings.effective_rows);
  EXPECT_LT(*result.findings.effective_rows, static_cast<double>(result.findings.kept));
}

TEST(Calibrate, NamesTheOptionThatDoesNotFit) {
  const World world = interval_world(8);
  const auto option = [&](const CalibrateSettings& settings) {
    return refused_option([&] { calibrate_world(world, settings); });
  };
  CalibrateSettings settings = settings_for("residual");
  settings.method.cut = AutoCut{};
  EXPECT_EQ(option(settings), "cut");
  settings = settings_for("nested");
  settings.method.put("temperature", AutoValue{});
  EXPECT_EQ(option(settings), "temperature");
  settings = settings_for("nested");
  settings.method.calibration = "grouped";
  EXPECT_EQ(option(settings), "group");
  settings.method.set("group", kByLabel);
  EXPECT_EQ(option(settings), "group");
  settings = settings_for("nested");
  settings.method.calibration = "localized";
  settings.levels = {Level(0.1)};
  EXPECT_EQ(option(settings), "levels");
  EXPECT_EQ(option(settings_for("residual")), "nothing");
}

TEST(Calibrate, NamesTheRowWhoseScoreIsNotANumber) {
  World world = interval_world(9);
  world.y.values[2 * 17] = std::numeric_limits<float>::quiet_NaN();
  Context context;
  context.batch = 7;
  try {
    calibrate_world(world, settings_for("nested"), context);
    FAIL() << "a NaN went through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("memory: row 17 (from 0) has a score that is not a"));
  }
}

// Also of the score that is only compared with, and where only radii are kept: a NaN among keys
// that are sorted would be a rank like any other.
TEST(Calibrate, NamesTheRowWhoseAnswerIsNotANumber) {
  World world = interval_world(9);
  for (size_t i = 0; i < 4; ++i) world.x.values[4 * 17 + i] = i % 2 == 0 ? 3e38f : -3e38f;
  ASSERT_TRUE(answers(world)[17].isnan().any().item<bool>());
  for (const std::string score : {"nested", "residual", "linearized"}) {
    for (const bool levels : {false, true}) {
      CalibrateSettings settings = settings_for(score);
      if (levels) settings.levels = {Level(0.1), Level(0.2)};
      try {
        calibrate_world(world, settings);
        FAIL() << "a NaN went through " << score;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("memory: row 17 (from 0)")) << score;
      }
    }
  }
}

TEST(Calibrate, RefusesRowsThatTheNetworkWasTrainedOn) {
  World world = interval_world(15);
  RowSample training;
  training.add(row_codes(world.x));
  world.network.metadata[kTrainingFilterKey] = training.filter();
  CalibrateSettings settings = settings_for("residual");
  try {
    calibrate_world(world, settings);
    FAIL() << "rows of training were taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("100 % of the rows that the network was trained on"));
  }
  settings.allow_training_rows = true;
  EXPECT_THAT(calibrate_world(world, settings).warnings,
              ElementsAre(HasSubstr("intervals will be too short")));
  World other = interval_world(16);
  other.network.metadata = world.network.metadata;
  EXPECT_THAT(calibrate_world(other, settings_for("residual")).warnings, IsEmpty());
}

// From the sketch of earlier versions the target of a training row could be recovered.
TEST(Calibrate, DropsTheSketchOfEarlierVersions) {
  World world = interval_world(15);
  world.network.metadata[kTrainingSketchKey] = "12 13";
  const CalibrateResult result = calibrate_world(world, settings_for("residual"));
  EXPECT_FALSE(result.artifact.network.metadata.contains(kTrainingSketchKey));
}

// Rows of a discrete world repeat: that some equal those of the training proves nothing.
TEST(Calibrate, TakesIndependentRowsOfADiscreteWorld) {
  const auto rounded = [](uint64_t seed) {
    World world = interval_world(seed);
    for (float& value : world.x.values) value = value > 0 ? 1.0f : 0.0f;
    for (float& value : world.y.values) value = value > 0 ? 1.0f : 0.0f;
    return world;
  };
  const World trained = rounded(15);
  RowSample sample;
  sample.add(row_codes(trained.x));
  World other = rounded(16);
  other.network.metadata[kTrainingFilterKey] = sample.filter();
  EXPECT_THAT(calibrate_world(other, settings_for("residual")).warnings, IsEmpty());
}

// A caller that parted the rows itself is not asked whether it did.
TEST(Calibrate, DoesNotLookForTrainingRowsThatAreKnownToBeApart) {
  World world = interval_world(15);
  RowSample sample;
  sample.add(row_codes(world.x));
  world.network.metadata[kTrainingFilterKey] = sample.filter();
  CalibrateSettings settings = settings_for("residual");
  MemoryRows rows = world.rows();
  const UnfinishedCalibration made =
      begin_calibration(world.network, rows, settings, {}, {.known_apart = true});
  EXPECT_THAT(made.result->warnings, IsEmpty());
}

TEST(TrainingOverlap, ChanceFollowsFromHowOftenRowsRepeat) {
  EXPECT_TRUE(more_than_chance(1, 0, 1000, 3000));
  EXPECT_TRUE(more_than_chance(0.4, 0.01, 1000, 3000));
  EXPECT_FALSE(more_than_chance(0.25, 0, 1000, 3000));
  EXPECT_FALSE(more_than_chance(0.83, 0.99, 400, 1300));
  EXPECT_FALSE(more_than_chance(0.6, 0.2, 1000, 3000));  // three times as many rows to equal
  EXPECT_TRUE(more_than_chance(0.6, 0.2, 1000, 1000));
  EXPECT_TRUE(more_than_chance(1, 0.1, 1000, 0));
  EXPECT_FALSE(more_than_chance(0.5, 0, 10, 30));
  EXPECT_TRUE(more_than_chance(1, 0, 10, 30));
}

// Independent draws of worlds of several sizes: the share of n rows that are among N others,
// against what repeats among the n say. A share is off by 0.3 with a chance below exp(−2 · 400 ·
// 0.15²) each.
TEST(TrainingOverlap, IndependentRowsPassAndTheSameRowsDoNot) {
  Random random(3);
  for (const uint64_t values : {2, 20, 200, 2000, 20000, 2000000}) {
    for (const size_t trained : {100, 400, 1600}) {
      const auto draw = [&](size_t rows) {
        Array x = zeros({static_cast<int64_t>(rows), 1});
        for (float& value : x.values) value = static_cast<float>(random.below(values));
        return x;
      };
      const Array training = draw(trained), rows = draw(400);
      const auto sample_of = [](const Array& x) {
        RowSample sample;
        sample.add(row_codes(x));
        return sample;
      };
      const RowFilter filter(sample_of(training).filter());
      EXPECT_FALSE(more_than_chance(filter.overlap(sample_of(rows))))
          << values << " values, " << trained << " training rows";
      if (values >= 20000) {
        EXPECT_TRUE(more_than_chance(filter.overlap(sample_of(training))));
      }
    }
  }
}

TEST(Calibrate, WarnsOfALevelAtWhichMostRegionsMiss) {
  const World world = interval_world(10);
  CalibrateSettings settings = settings_for("residual");
  settings.level = Level(0.5);
  EXPECT_THAT(calibrate_world(world, settings).warnings, IsEmpty());
  settings.level = Level(0.9);
  EXPECT_THAT(calibrate_world(world, settings).warnings,
              ElementsAre("at alpha 0.9 most regions may miss the truth; did you mean a "
                          "confidence of 0.9?"));
}

TEST(Calibrate, WarnsOfARadiusBeyondSinglePrecision) {
  World world = interval_world(10);
  for (float& value : world.y.values) value = 1e35f;
  const CalibrateResult nested = calibrate_world(world, settings_for("nested"));
  EXPECT_THAT(nested.warnings,
              ElementsAre(HasSubstr("too large for single precision: numbers overflow")));
  // A radius that is a length may be as large as it likes.
  EXPECT_THAT(calibrate_world(world, settings_for("residual")).warnings, IsEmpty());
}

TEST(Calibrate, WarnsOfARadiusThatIsInfinite) {
  World world = interval_world(10);
  CalibrateSettings settings = settings_for("residual");
  settings.level = Level(0.001);
  const CalibrateResult result = calibrate_world(world, settings);
  ASSERT_THAT(result.warnings, SizeIs(1));
  EXPECT_THAT(result.warnings[0], HasSubstr("at least 999 calibration rows"));
}

// The artifact as it would be written, on any number of ranks.
std::string artifact_bytes(const World& world, const CalibrateSettings& settings, int ranks) {
  std::string bytes;
  run_threads(ranks, [&](Communicator& communicator) {
    Context context;
    context.ranks = &communicator;
    context.batch = 7;
    const CalibrateResult result = calibrate_world(world, settings, context);
    if (communicator.rank() == 0) bytes = serialize_onnx(artifact_graph(result.artifact));
  });
  return bytes;
}

TEST(Calibrate, RanksGiveTheSameBytes) {
  const World intervals = interval_world(11), labels = label_world(12), pixels = pixel_world(13);
  CalibrateSettings levels = settings_for("nested");
  levels.levels = {Level(0.05), Level(0.1)};
  CalibrateSettings chosen = settings_for("nested");
  chosen.method.cut = AutoCut{};
  CalibrateSettings grouped = settings_for("lac");
  grouped.method.calibration = "grouped";
  grouped.method.set("group", kByPrediction);
  grouped.method.set("probabilities", kVennAbers);
  CalibrateSettings few = settings_for("lac");
  few.levels = levels.levels;
  few.method.set("probabilities", kVennAbers);
  CalibrateSettings share = settings_for("nested");
  share.method.set("pixels", 0.9);
  const std::pair<const World*, const CalibrateSettings*> cases[] = {{&intervals, &levels},
                                                                     {&intervals, &chosen},
                                                                     {&labels, &grouped},
                                                                     {&labels, &few},
                                                                     {&pixels, &share}};
  for (const auto& [world, settings] : cases) {
    const std::string alone = artifact_bytes(*world, *settings, 1);
    ASSERT_FALSE(alone.empty());
    for (const int ranks : {2, 3}) EXPECT_TRUE(artifact_bytes(*world, *settings, ranks) == alone);
  }
}

// Rows are kept and hashed in the end, or hashed as they come: larger than 32 MiB, or of ranks.
TEST(UnfinishedCalibration, FinishesToTheSameBytes) {
  const World small = interval_world(17), grouped = label_world(18);
  torch::manual_seed(19);
  Random random(19);
  World large{make_mlp({4096, 2}), random_rows(random, {2100, 4096}), {}};
  add_truth(large, random);
  CalibrateSettings by_label = settings_for("lac");
  by_label.method.calibration = "grouped";
  by_label.method.set("group", kByPrediction);
  const std::pair<const World*, CalibrateSettings> cases[] = {
      {&small, settings_for("nested")}, {&grouped, by_label}, {&large, settings_for("residual")}};
  for (const auto& [world, settings] : cases) {
    MemoryRows rows = world->rows();
    const CalibrateResult whole = calibrate_world(*world, settings);
    UnfinishedCalibration later =
        begin_calibration(world->network, rows, settings, {}, {.finish_later = true});
    EXPECT_EQ(later.kept.empty(), world == &large);
    EXPECT_FALSE(later.result->artifact.provenance.contains(kDataHash));
    const auto radius = later.predictor->radius(Level(0.1));
    for (int turn = 0; turn < 2; ++turn) later.finish();
    EXPECT_EQ(later.result->warnings, whole.warnings);
    EXPECT_EQ(radius, whole.artifact.radius(Level(0.1)));
    EXPECT_TRUE(serialize_onnx(artifact_graph(later.result->artifact)) ==
                serialize_onnx(artifact_graph(whole.artifact)));
  }
}

// A call may start threads, for batches or heads; all of them end with it, those of OpenMP teams
// included.
TEST(Calibrate, LeavesNoThreads) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  Random random(20);
  World world = interval_world(20);
  world.x = random_rows(random, {1000, 4});  // heads are fitted, by several threads
  add_truth(world, random);
  calibrate_world(world, settings_for("auto"));  // what libtorch keeps is there from now on
  const auto before = threads();
  for (const char* score : {"auto", "nested", "spread", "surrogate", "residual", "auto"}) {
    calibrate_world(world, settings_for(score));
    // A thread that has been joined may be listed for a moment more.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (threads() > before && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(threads(), before) << "after " << score;
  }
}

TEST(ScoreRows, AreThoseThatCalibrationSorts) {
  const World world = interval_world(14);
  CalibrateSettings settings = settings_for("nested");
  MemoryRows rows = world.rows();
  UnfinishedCalibration made =
      begin_calibration(world.network, rows, settings, {}, {.finish_later = true});
  const RowScores in_order = made.row_scores();
  made.finish();
  const CalibrateResult& result = *made.result;
  rows.rewind();
  RowScores scores =
      score_rows(world.network, rows, result.artifact.method.score, result.artifact.method.cut, {});
  EXPECT_EQ(scores.scores, in_order.scores);
  EXPECT_EQ(scores.baseline, in_order.baseline);
  EXPECT_FALSE(std::is_sorted(scores.scores.begin(), scores.scores.end()));
  std::sort(scores.scores.begin(), scores.scores.end());
  EXPECT_EQ(scores.scores, result.artifact.rows.scores);
}

}  // namespace
}  // namespace fcp
