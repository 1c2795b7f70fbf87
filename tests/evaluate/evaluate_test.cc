// evaluate, predict and check against what they are defined to be, row by row, on predictors whose
// regions can be written down.
#include "fcp/evaluate/evaluate.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/evaluate/report_sample.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/region_tensors.h"

#include "tests/calibrate/known_worlds.h"
#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

// Between the float32 numbers that are written lie those between the doubles, and no others: none
// where none does.
TEST(RegionTensors, FloatIntervalsHoldTheSameFloats) {
  const float one = 1, above = std::nextafter(one, 2.0f), below = std::nextafter(one, 0.0f);
  const auto holds = [](const FloatInterval& found, float y) {
    return found.lower <= y && y <= found.upper;
  };
  const double gap = static_cast<double>(above) - 1;
  const double ends[] = {1,
                         1 - gap / 9,
                         1 + gap / 9,
                         1 + gap / 3,
                         1 + gap / 2,
                         1 + 2 * gap / 3,
                         static_cast<double>(above),
                         static_cast<double>(below),
                         -1e300,
                         1e300,
                         -std::numeric_limits<double>::infinity(),
                         1e-60};
  for (const double lower : ends) {
    for (const double upper : ends) {
      const FloatInterval found = float_interval(lower, upper);
      for (const float y : {below, one, above, 0.0f, -3e38f, 3e38f, 1e-45f}) {
        EXPECT_EQ(holds(found, y), lower <= y && y <= upper) << lower << ' ' << upper << ' ' << y;
      }
    }
  }
  const FloatInterval none = float_interval(1 + gap / 3, 1 + gap / 2);
  EXPECT_EQ(none.lower, above);
  EXPECT_EQ(none.upper, one);
}

using testing::class_artifact;
using testing::class_rows;
using testing::class_score;
using ::testing::HasSubstr;
using testing::line_artifact;
using testing::line_residual;
using testing::line_rows;

Context small_batches() {
  Context context;
  context.batch = 7;
  return context;
}

template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Evaluate, IntervalsAsCountedByHand) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  const double radius = artifact.rows.scores[89];  // the 90th of 99
  MemoryRows rows = line_rows(200, 2);
  size_t covered = 0;
  for (size_t i = 0; i < 200; ++i) covered += line_residual(rows, i) <= radius;
  const EvaluationReport report = evaluate(artifact, rows, {}, small_batches());
  const MethodResult& main = report.methods.at(0);
  EXPECT_EQ(main.name, "residual");
  EXPECT_DOUBLE_EQ(main.radius.value(), radius);
  EXPECT_EQ(main.coverage().covered, covered);
  EXPECT_EQ(main.coverage().rows, 200u);
  EXPECT_NEAR(main.intervals().length.mean, 2 * radius, 1e-6);
  EXPECT_EQ(main.lengths.size(), 200u);
  EXPECT_EQ(report.calibration_rows, 99u);
  ASSERT_EQ(report.examples.size(), 200u);
  for (size_t i = 0; i < 200; ++i) {
    const Example& example = report.examples[i];
    EXPECT_NEAR(example.interval().upper - example.interval().prediction, radius, 1e-5);
    EXPECT_EQ(example.interval().truth, rows.y().values[i]);
    EXPECT_EQ(example.covered, line_residual(rows, i) <= radius) << i;
  }
}

TEST(Evaluate, LabelSetsAsCountedByHand) {
  const CalibrationArtifact artifact = class_artifact(class_rows(99, 1));
  const double radius = artifact.rows.scores[89];
  MemoryRows rows = class_rows(150, 2);
  size_t covered = 0, members = 0;
  for (size_t i = 0; i < 150; ++i) {
    covered += class_score(rows, i, static_cast<size_t>(rows.y().values[i])) <= radius;
    for (size_t k = 0; k < 4; ++k) members += class_score(rows, i, k) <= radius;
  }
  const EvaluationReport report = evaluate(artifact, rows, {}, small_batches());
  const MethodResult& main = report.methods.at(0);
  EXPECT_EQ(main.coverage().covered, covered);
  EXPECT_DOUBLE_EQ(main.sets().mean_size, static_cast<double>(members) / 150);
  EXPECT_GT(main.top1.value(), 0.3);
  EXPECT_EQ(report.class_names, (std::vector<std::string>{"0", "1", "2", "3"}));
  ASSERT_EQ(report.examples.size(), 150u);
  for (const Example& example : report.examples) {
    const std::vector<std::string>& set = example.labels().members;
    EXPECT_EQ(example.covered,
              std::find(set.begin(), set.end(), example.labels().truth) != set.end());
  }
}

// A label that is none of the classes is a miss at every level, and in the curve too: also where
// the radius is infinite and every set holds all classes.
// Of the network's own probabilities, and beside them where they are calibrated: four classes
// against the rest, merged and divided by their sum.
TEST(Evaluate, ProbabilitiesAsCountedByHand) {
  const MemoryRows seen = class_rows(300, 1);
  CalibrationArtifact artifact = class_artifact(seen);
  MemoryRows rows = class_rows(150, 2);
  const auto own = [](const MemoryRows& all, size_t i) {
    std::vector<double> p;
    for (size_t k = 0; k < 4; ++k) p.push_back(1 - class_score(all, i, k));
    return p;
  };
  const auto label = [](const MemoryRows& all, size_t i) {
    return static_cast<size_t>(all.y().values[i]);
  };
  ProbabilityEvaluator plain, calibrated;
  for (size_t i = 0; i < 150; ++i) plain.add(judge_probabilities(own(rows, i), label(rows, i)));
  const auto found = evaluate(artifact, rows, {}, small_batches()).methods[0].probabilities;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->method, "softmax");
  EXPECT_EQ(found->of, "answer");
  EXPECT_EQ(found->rows, 150u);
  EXPECT_NEAR(found->figures.log_loss, plain.figures().log_loss, 1e-9);
  EXPECT_NEAR(found->figures.ece, plain.figures().ece, 1e-9);
  EXPECT_FALSE(found->softmax || found->mean_gap);

  std::vector<double> scores;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < 300; ++i) {
    for (const double p : own(seen, i)) scores.push_back(p);
    labels.push_back(static_cast<int64_t>(label(seen, i)));
  }
  artifact.chances = fit_chances(scores, labels);
  double gaps = 0;
  for (size_t i = 0; i < 150; ++i) {
    std::vector<VennAbersPair> pairs;
    double sum = 0;
    for (size_t k = 0; k < 4; ++k) {
      pairs.push_back(artifact.chances[k].at(own(rows, i)[k]));
      sum += pairs[k].merged();
    }
    std::vector<double> merged;
    for (const VennAbersPair& pair : pairs) merged.push_back(pair.merged() / sum);
    const JudgedProbabilities judged = judge_probabilities(merged, label(rows, i));
    calibrated.add(judged);
    gaps += pairs[judged.event_class].p1 - pairs[judged.event_class].p0;
  }
  rows.rewind();
  const auto both = evaluate(artifact, rows, {}, small_batches()).methods[0].probabilities;
  ASSERT_TRUE(both && both->softmax && both->mean_gap);
  EXPECT_EQ(both->method, "venn-abers");
  EXPECT_NEAR(both->softmax->brier, plain.figures().brier, 1e-9);
  EXPECT_NEAR(both->figures.log_loss, calibrated.figures().log_loss, 1e-9);
  EXPECT_NEAR(both->figures.brier, calibrated.figures().brier, 1e-9);
  EXPECT_NEAR(*both->mean_gap, gaps / 150, 1e-9);
  EXPECT_EQ(both->reliability.size(), calibrated.reliability().size());
}

TEST(Evaluate, LabelsOfNoClassAreMisses) {
  const float infinity = std::numeric_limits<float>::infinity();
  const MemoryRows drawn = class_rows(60, 2);
  Array truths = drawn.y();
  for (size_t i = 0; i < 60; i += 4) truths.values[i] = infinity;
  const CalibrationArtifact finite = class_artifact(class_rows(99, 1));
  CalibrationArtifact infinite = finite;
  for (size_t i = 0; i < 20; ++i) {
    infinite.rows.scores[infinite.rows.scores.size() - 1 - i] = infinity;
  }
  const std::vector<const CalibrationArtifact*> artifacts = {&finite, &infinite};
  for (const CalibrationArtifact* artifact : artifacts) {
    MemoryRows rows(drawn.x(), truths);
    const EvaluationReport report =
        evaluate(*artifact, rows, {.all_levels = true}, small_batches());
    const MethodResult& main = report.methods.at(0);
    EXPECT_EQ(main.sets().unknown_rows, 15u);
    EXPECT_LE(main.coverage().covered, 45u);
    for (const LevelResult& level : main.levels) EXPECT_LE(level.coverage.covered, 45u);
    for (const CurvePoint& point : main.curve) EXPECT_LE(point.coverage.covered, 45u);
    EXPECT_EQ(report.examples.at(0).labels().truth, "(none of the classes)");
    EXPECT_FALSE(report.examples.at(0).covered);
    EXPECT_LE(main.top1.value(), 0.75);
    if (artifact == &infinite) {
      EXPECT_EQ(main.coverage().covered, 45u);
    }
  }
  Array none = truths;
  for (float& label : none.values) label = infinity;
  MemoryRows rows(drawn.x(), none);
  EXPECT_THAT(error_of([&] { evaluate(finite, rows, {}, {}); }),
              HasSubstr("none of the labels of the 60 test rows is one of the 4 classes"));
}

// At every level what an evaluation at that level says; examples too.
TEST(Evaluate, AllLevelsAreWhatEachOfThemIs) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(120, 2);
  const EvaluationReport report =
      evaluate(artifact, rows, {.level = Level(0.07), .all_levels = true}, small_batches());
  const MethodResult& main = report.methods.at(0);
  ASSERT_EQ(main.levels.size(), 16u);  // fifteen, and the report's own
  for (size_t i = 0; i < main.levels.size(); ++i) {
    const LevelResult& at = main.levels[i];
    if (i > 0) {
      EXPECT_LT(main.levels[i - 1].level.value(), at.level.value());
    }
    rows.rewind();
    const EvaluationReport alone = evaluate(artifact, rows, {.level = at.level}, small_batches());
    const MethodResult& expected = alone.methods.at(0);
    EXPECT_EQ(at.coverage.covered, expected.coverage().covered) << at.level.text();
    EXPECT_NEAR(at.size, expected.intervals().length.mean, 1e-9);
    for (size_t row = 0; row < 120; ++row) {
      const IntervalAtLevel& shown = report.examples[row].interval().at_levels.at(i);
      EXPECT_EQ(shown.interval.lower, alone.examples[row].interval().lower);
      EXPECT_EQ(shown.interval.upper, alone.examples[row].interval().upper);
      EXPECT_EQ(shown.covered, alone.examples[row].covered);
    }
  }
}

TEST(Evaluate, LabelsOfAllLevels) {
  const CalibrationArtifact artifact = class_artifact(class_rows(99, 1));
  MemoryRows rows = class_rows(60, 2);
  const EvaluationReport report = evaluate(artifact, rows, {.all_levels = true}, small_batches());
  const std::vector<LevelResult>& levels = report.methods.at(0).levels;
  for (const size_t i : {size_t{0}, size_t{7}, levels.size() - 1}) {
    rows.rewind();
    const EvaluationReport alone =
        evaluate(artifact, rows, {.level = levels.at(i).level}, small_batches());
    EXPECT_EQ(levels[i].coverage.covered, alone.methods.at(0).coverage().covered);
    EXPECT_DOUBLE_EQ(levels[i].size, alone.methods.at(0).sets().mean_size);
    for (size_t row = 0; row < 60; ++row) {
      std::set<std::string> in;
      for (const LabelAtLevels& label : report.examples[row].labels().at_levels) {
        if (label.last >= i) in.insert(label.name);
      }
      const std::vector<std::string>& members = alone.examples[row].labels().members;
      EXPECT_EQ(in, std::set<std::string>(members.begin(), members.end())) << row;
    }
  }
}

// The network knows the line: its error is the noise, counted by hand.
TEST(Evaluate, ErrorBesideTheSpreadOfTheTruth) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(80, 2);
  const EvaluationReport report = evaluate(artifact, rows, {}, small_batches());
  double squares = 0, distances = 0, mean = 0, spread = 0;
  for (size_t i = 0; i < 80; ++i) {
    squares += line_residual(rows, i) * line_residual(rows, i) / 80;
    distances += line_residual(rows, i) / 80;
    mean += rows.y().values[i] / 80;
  }
  for (size_t i = 0; i < 80; ++i) {
    spread += (rows.y().values[i] - mean) * (rows.y().values[i] - mean) / 80;
  }
  const std::vector<PointError>& error = report.methods.at(0).intervals().output_error;
  ASSERT_EQ(error.size(), 1u);
  EXPECT_NEAR(error[0].rmse, std::sqrt(squares), 1e-5);
  EXPECT_NEAR(error[0].mae, distances, 1e-5);
  EXPECT_NEAR(error[0].deviation, std::sqrt(spread), 1e-5);
}

// Residuals have one length, and noise that is the same everywhere: coverage is conditional.
TEST(Evaluate, ConditionalCoverageOfEvenNoise) {
  const CalibrationArtifact artifact = line_artifact(line_rows(999, 1));
  MemoryRows rows = line_rows(3000, 2);
  const EvaluationReport report = evaluate(artifact, rows, {}, {});
  const ConditionalCoverage& found = report.methods.at(0).conditional.value();
  EXPECT_EQ(found.rows, 3000u);
  EXPECT_EQ(found.correlation, 0);
  EXPECT_GT(found.worst_slab->rate, 0.8);  // of at least 300 rows: more than five deviations
  EXPECT_LT(found.excess_risk->value, 0.01);
  EXPECT_FALSE(found.stability.has_value());
}

// Rows far out are noisier by a factor: a slab there misses far more often than 1 in 10.
TEST(Evaluate, ConditionalCoverageSeesWhereNoiseIsLoud) {
  const CalibrationArtifact artifact = line_artifact(line_rows(999, 1));
  MemoryRows quiet = line_rows(3000, 2);
  Array x = quiet.x(), y = quiet.y();
  for (size_t i = 0; i < 3000; ++i) {
    if (x.row(i)[0] > 1) y.values[i] += i % 2 == 0 ? 3.0f : -3.0f;
  }
  MemoryRows rows(std::move(x), std::move(y));
  const EvaluationReport report = evaluate(artifact, rows, {}, {});
  const ConditionalCoverage& found = report.methods.at(0).conditional.value();
  EXPECT_LT(found.worst_slab->rate, 0.4);
  EXPECT_GT(found.excess_risk->value, 0.03);
}

// Figures that few rows do not determine are absent; none of them ends an evaluation.
TEST(Evaluate, FewRowsAreNoError) {
  const CalibrationArtifact line = line_artifact(line_rows(99, 1));
  const CalibrationArtifact classes = class_artifact(class_rows(99, 1));
  for (const size_t count : {1, 2, 5, 19, 50, 60}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      MemoryRows rows = line_rows(count, seed), labels = class_rows(count, seed);
      Context context;
      context.seed = seed;
      EvaluateOptions options;
      options.all_levels = true;
      options.refits = {&line};
      const EvaluationReport report = evaluate(line, rows, options, context);
      const ConditionalCoverage& found = report.methods.at(0).conditional.value();
      EXPECT_EQ(found.excess_risk.has_value(), count >= 50);
      EXPECT_EQ(found.stability.value(), 1);
      options.refits.clear();
      EXPECT_EQ(evaluate(classes, labels, options, context).methods.at(0).conditional->rows, count);
    }
  }
}

TEST(Evaluate, StabilityOverRefits) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  CalibrationArtifact wider = artifact;
  for (double& score : wider.rows.scores) score *= 2;
  MemoryRows rows = line_rows(60, 2);
  const auto stability = [&](std::vector<const CalibrationArtifact*> refits) {
    rows.rewind();
    const EvaluationReport report =
        evaluate(artifact, rows, {.refits = std::move(refits)}, small_batches());
    const ConditionalCoverage& found = report.methods.at(0).conditional.value();
    EXPECT_GT(found.refits, 0u);
    return found.stability.value();
  };
  EXPECT_DOUBLE_EQ(stability({&artifact}), 1);
  EXPECT_NEAR(stability({&wider}), 0.5, 1e-6);
  EXPECT_NEAR(stability({&artifact, &wider}), (1 + 0.5 + 0.5) / 3, 1e-6);
  const CalibrationArtifact labels = class_artifact(class_rows(99, 1));
  EXPECT_THAT(error_of([&] { stability({&labels}); }), HasSubstr("sets of labels"));
}

void expect_same(const EvaluationReport& a, const EvaluationReport& b) {
  ASSERT_EQ(a.methods.size(), b.methods.size());
  EXPECT_EQ(a.methods[0].coverage().covered, b.methods[0].coverage().covered);
  EXPECT_EQ(a.methods[0].lengths, b.methods[0].lengths);
  ASSERT_EQ(a.methods[0].curve.size(), b.methods[0].curve.size());
  for (size_t i = 0; i < a.methods[0].curve.size(); ++i) {
    EXPECT_EQ(a.methods[0].curve[i].coverage.covered, b.methods[0].curve[i].coverage.covered);
  }
  ASSERT_EQ(a.examples.size(), b.examples.size());
  for (size_t i = 0; i < a.examples.size(); ++i) EXPECT_EQ(a.examples[i].name, b.examples[i].name);
  EXPECT_EQ(a.notes, b.notes);
  ASSERT_EQ(a.methods[0].levels.size(), b.methods[0].levels.size());
  for (size_t i = 0; i < a.methods[0].levels.size(); ++i) {
    EXPECT_EQ(a.methods[0].levels[i].coverage.covered, b.methods[0].levels[i].coverage.covered);
    EXPECT_EQ(a.methods[0].levels[i].size, b.methods[0].levels[i].size);
  }
  ASSERT_TRUE(a.methods[0].conditional && b.methods[0].conditional);
  EXPECT_EQ(a.methods[0].conditional->rows, b.methods[0].conditional->rows);
  EXPECT_EQ(a.methods[0].conditional->worst_slab->covered,
            b.methods[0].conditional->worst_slab->covered);
  EXPECT_EQ(a.methods[0].conditional->excess_risk->value,
            b.methods[0].conditional->excess_risk->value);
}

// More rows than a sample holds, so that ranks must draw alike.
TEST(Evaluate, IsTheSameForAnyNumberOfRanks) {
  EvaluateOptions all;
  all.all_levels = true;
  const CalibrationArtifact line = line_artifact(line_rows(99, 1));
  const CalibrationArtifact classes = class_artifact(class_rows(99, 1));
  MemoryRows rows = line_rows(400, 2), labels = class_rows(260, 2);
  const EvaluationReport alone = evaluate(line, rows, all, small_batches());
  const EvaluationReport alone_labels = evaluate(classes, labels, all, small_batches());
  for (const int ranks : {2, 3}) {
    EvaluationReport shared, shared_labels;
    run_threads(ranks, [&](Communicator& communicator) {
      MemoryRows own = line_rows(400, 2), own_labels = class_rows(260, 2);
      Context context = small_batches();
      context.ranks = &communicator;
      EvaluationReport report = evaluate(line, own, all, context);
      EvaluationReport report_labels = evaluate(classes, own_labels, all, context);
      if (communicator.rank() != 0) return;
      shared = std::move(report);
      shared_labels = std::move(report_labels);
    });
    expect_same(alone, shared);
    expect_same(alone_labels, shared_labels);
    for (size_t i = 0; i < alone.examples.size(); ++i) {
      EXPECT_EQ(alone.examples[i].interval().truth, shared.examples[i].interval().truth);
      EXPECT_EQ(alone.examples[i].interval().at_levels[0].interval.lower,
                shared.examples[i].interval().at_levels[0].interval.lower);
    }
  }
}

TEST(Evaluate, SaysWhereTheRowsAreThoseOfCalibration) {
  MemoryRows rows = line_rows(20, 1);
  CalibrationArtifact artifact = line_artifact(rows);
  Sha256 hash;
  for (Rows batch; rows.next(7, batch);) hash.add(hash_rows(batch));
  artifact.provenance = {{"calibration data sha256", hash.hex()}, {"calibration rows", "20"}};
  rows.rewind();
  EXPECT_THAT(evaluate(artifact, rows, {}, small_batches()).notes,
              ::testing::ElementsAre(HasSubstr("these are the calibration rows")));
  MemoryRows others = line_rows(20, 2);
  EXPECT_THAT(evaluate(artifact, others, {}, small_batches()).notes, ::testing::IsEmpty());
}

TEST(Evaluate, ANaNNamesTheRow) {
  CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(20, 2);
  Array x = rows.x();
  x.values[2 * 11] = std::numeric_limits<float>::infinity();  // ∞ − ∞ in the network
  x.values[2 * 11 + 1] = std::numeric_limits<float>::infinity();
  MemoryRows broken(x, rows.y());
  for (const auto& work : std::vector<std::function<void()>>{
           [&] { evaluate(artifact, broken, {}, small_batches()); },
           [&] {
             check(internal::PredictorCore(artifact, torch::kCPU), broken, {}, small_batches(),
                   [](const CheckedRow&) {});
           }}) {
    broken.rewind();
    EXPECT_THAT(error_of(work), HasSubstr("row 11 (from 0): the network's answer is NaN"));
  }
}

TEST(Evaluate, OfNothingIsAnError) {
  CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows none = line_rows(0, 1);
  EXPECT_THAT(error_of([&] { evaluate(artifact, none, {}, {}); }), HasSubstr("no rows"));
  EXPECT_THAT(error_of([&] {
                check(internal::PredictorCore(artifact, torch::kCPU), none, {}, {},
                      [](const CheckedRow&) {});
              }),
              HasSubstr("no rows"));
}

// Groups of their own radii: both are listed with what was seen of them, and the drifted one shows.
TEST(Evaluate, ListsTheGroupsItGuarantees) {
  CalibrationArtifact artifact = line_artifact(line_rows(200, 1));
  artifact.method.calibration = GroupedOptions{};
  artifact.method.calibration.set(field::group, "colour");
  artifact.rows.group_names = {"red", "blue"};
  for (size_t i = 0; i < 200; ++i) artifact.rows.groups.push_back(i % 2);
  MemoryRows calm = line_rows(300, 2), drifted = line_rows(300, 2, 3);
  EvaluateOptions options;
  for (int64_t i = 0; i < 300; ++i) options.facts.groups.ids.push_back(i % 2);
  options.facts.groups.names = artifact.rows.group_names;
  options.facts.shown = options.facts.groups;
  const EvaluationReport report = evaluate(artifact, calm, options, small_batches());
  ASSERT_EQ(report.guaranteed_groups.size(), 2u);
  EXPECT_EQ(report.guaranteed_groups[0].name, "red");
  EXPECT_EQ(report.guaranteed_groups[0].calibration_rows, 100u);
  EXPECT_EQ(report.guaranteed_groups[1].coverage->rows, 150u);
  // Below 1e-6 by chance in less than one world of a million.
  EXPECT_GT(coverage_p_value(report).value(), 1e-6);
  const EvaluationReport shifted = evaluate(artifact, drifted, options, small_batches());
  EXPECT_LT(coverage_p_value(shifted).value(), 1e-6);
}

class CollectedRegions : public RegionWriter {
 public:
  using RegionWriter::append;
  void append(const Rows& rows, std::span<const Regions> levels,
              const torch::Tensor& /*more*/) override {
    const Regions& regions = levels.front();
    ASSERT_EQ(static_cast<int64_t>(rows.x.rows()), regions.prediction.size(0));
    if (regions.members.defined()) {
      parts.push_back(host_members(regions));
    } else {
      parts.push_back(torch::stack({regions.lower, regions.upper}, 2));
    }
  }
  void close() override { closed = true; }

  torch::Tensor all() const { return torch::cat(parts); }
  std::vector<torch::Tensor> parts;
  bool closed = false;
};

TEST(Predict, GivesTheRegionsOfAllRows) {
  const CalibrationArtifact line = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(30, 2);
  CollectedRegions intervals;
  EXPECT_EQ(
      predict(internal::PredictorCore(line, torch::kCPU), rows, {}, small_batches(), intervals),
      30u);
  EXPECT_TRUE(intervals.closed);
  for (int64_t i = 0; i < 30; ++i) {
    const std::span<const float> x = rows.x().row(static_cast<size_t>(i));
    const double center = 2 * x[0] - x[1];
    EXPECT_NEAR(intervals.all()[i][0][0].item<double>(), center - line.rows.scores[89], 1e-5);
    EXPECT_NEAR(intervals.all()[i][0][1].item<double>(), center + line.rows.scores[89], 1e-5);
  }
  const CalibrationArtifact classes = class_artifact(class_rows(99, 1));
  MemoryRows labels = class_rows(30, 2);
  CollectedRegions sets;
  predict(internal::PredictorCore(classes, torch::kCPU), labels, {}, small_batches(), sets);
  for (int64_t i = 0; i < 30; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      const double score = class_score(labels, static_cast<size_t>(i), static_cast<size_t>(k));
      EXPECT_EQ(sets.all()[i][k].item<bool>(), score <= classes.rows.scores[89]);
    }
  }
}

TEST(Predict, WithoutRowsClosesNothing) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows none = line_rows(0, 1);
  CollectedRegions writer;
  EXPECT_THAT(error_of([&] {
                predict(internal::PredictorCore(artifact, torch::kCPU), none, {}, {}, writer);
              }),
              HasSubstr("no rows"));
  EXPECT_FALSE(writer.closed);
}

TEST(Check, ScoresAndPValuesAsCountedByHand) {
  const CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  MemoryRows rows = line_rows(40, 2);
  size_t seen = 0, in = 0;
  const CheckResult result =
      check(internal::PredictorCore(artifact, torch::kCPU), rows, {}, small_batches(),
            [&](const CheckedRow& row) {
              EXPECT_EQ(row.row, seen++);
              const double score = line_residual(rows, row.row);
              EXPECT_NEAR(row.scores[0], score, 1e-5);
              size_t as_strange = 1;
              for (const double other : artifact.rows.scores) as_strange += other >= row.scores[0];
              EXPECT_NEAR(row.p_values[0], static_cast<double>(as_strange) / 100, 1e-12);
              EXPECT_EQ(row.in[0], row.scores[0] <= artifact.rows.scores[89]);
              in += row.in[0] ? 1 : 0;
            });
  EXPECT_EQ(result.rows, 40u);
  EXPECT_EQ(result.in, in);
}

TEST(Check, NeedsAllScores) {
  CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  artifact.rows.scores = {artifact.rows.scores[89]};
  artifact.rows.levels = {Level(0.1)};
  artifact.rows.total = 99;
  MemoryRows rows = line_rows(5, 2);
  EXPECT_THAT(error_of([&] {
                check(internal::PredictorCore(artifact, torch::kCPU), rows, {}, {},
                      [](const CheckedRow&) {});
              }),
              HasSubstr("a p-value needs all scores"));
}

// Every row is equally likely to be in the sample: of 4000 samples of 2 of 8 rows, each row is in
// 1000 with a deviation of 27; beyond 6 of them by chance in fewer than one of 1e7.
TEST(RowSampler, DrawsAllRowsAlike) {
  std::vector<int> hits(8);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    RowSampler sampler({2}, seed);
    std::vector<size_t> sample(2);
    for (size_t first = 0; first < 8; first += 4) {
      const auto drawn = sampler.draw(first, 4);
      for (const DrawnRow& one : drawn[0]) sample[one.place] = first + one.row;
    }
    for (const size_t row : sample) ++hits[row];
  }
  for (const int hit : hits) EXPECT_NEAR(hit, 1000, 165);
}

TEST(RowSampler, PassesOverRowsOfOthers) {
  RowSampler all({3, 5}, 4), own({3, 5}, 4), first({3}, std::nullopt);
  all.draw(0, 50);
  const auto expected = all.draw(50, 50), drawn = own.draw(50, 50);
  for (size_t sample = 0; sample < 2; ++sample) {
    ASSERT_EQ(drawn[sample].size(), expected[sample].size());
    for (size_t i = 0; i < drawn[sample].size(); ++i) {
      EXPECT_EQ(drawn[sample][i].row, expected[sample][i].row);
      EXPECT_EQ(drawn[sample][i].place, expected[sample][i].place);
    }
  }
  EXPECT_EQ(first.draw(0, 50)[0].size(), 3u);
}

}  // namespace
}  // namespace fcp
