// Predictor against slow references: each level asked of the score by itself, each form of rows
// against the others, files of before against files of now.
#include "fcp/predictor.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/tensors.h"

#include "tests/nn/graphs.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using internal::make_predictor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<Level> kLevels = {Level(0.05), Level(0.1), Level(0.5)};

// A network of two numbers with residuals of 0, 1, … 99 and all that any calibration needs.
CalibrationArtifact artifact_of(const std::string& calibration,
                                const std::string& score = "residual", int64_t outputs = 3) {
  torch::manual_seed(1);
  CalibrationArtifact artifact;
  artifact.network = make_mlp({2, 5, outputs});
  artifact.method.cut = "h1";
  artifact.method.score = ScoreOptions(score);
  artifact.method.calibration = CalibrationOptions(calibration);
  if (std::string* group = artifact.method.calibration.find(field::group)) *group = "column";
  if (double* width = artifact.method.calibration.find(field::bandwidth)) *width = 1;
  artifact.rows.group_names = {"even", "odd"};
  for (int i = 0; i < 100; ++i) {
    artifact.rows.scores.push_back(predicts_labels(score) ? i / 100.0 : i);
    artifact.rows.groups.push_back(i % 2);
    artifact.rows.weights.push_back(i < 50 ? 1 : 0.5);
  }
  artifact.rows.features = torch::randn({100, 5}).relu();
  return artifact;
}

std::vector<float> some_rows(size_t count) {
  const torch::Tensor x = torch::randn({static_cast<int64_t>(count), 2});
  return {x.data_ptr<float>(), x.data_ptr<float>() + x.numel()};
}

RowInfo info_for(const std::string& calibration, size_t rows) {
  RowInfo info;
  for (size_t i = 0; i < rows; ++i) {
    if (calibration == "grouped") info.groups.push_back(i % 3 == 0 ? "odd" : "even");
    if (calibration == "weighted") info.weights.push_back(0.5 + 0.01 * static_cast<double>(i));
    info.places.push_back(i * 7);
  }
  return info;
}

// What the score says at one level, by itself.
Regions reference(const Predictor& predictor, const Batch& batch, const Level& level) {
  const torch::NoGradGuard no_grad;
  const internal::PredictorCore& core = internal::Access::core(predictor);
  const internal::BatchData& data = internal::Access::data(batch);
  return core.region(core.describe(data.x, data.known), level);
}

TEST(Predictor, AllLevelsAreThoseOfEachByItself) {
  for (const char* calibration : {"split", "grouped", "localized", "weighted"}) {
    const Predictor predictor = make_predictor(artifact_of(calibration), torch::kCPU);
    for (const size_t rows : {1, 5, 200}) {  // alone, and shared among threads
      const Batch batch = predictor.schema().encode(some_rows(rows), info_for(calibration, rows));
      const Answer answer = predictor.predict(batch, kLevels);
      ASSERT_EQ(answer.rows(), rows);
      for (size_t level = 0; level < kLevels.size(); ++level) {
        const Regions wanted = reference(predictor, batch, kLevels[level]);
        const TensorRegions found = tensors(answer, level);
        EXPECT_TRUE(found.lower.equal(wanted.lower)) << calibration << rows;
        EXPECT_TRUE(found.upper.equal(wanted.upper)) << calibration << rows;
        EXPECT_TRUE(found.prediction.equal(wanted.prediction)) << calibration << rows;
        const Interval last = answer.interval(rows - 1, 2, level);
        EXPECT_EQ(last.lower, wanted.lower[-1][2].item<double>());
        EXPECT_EQ(last.upper, wanted.upper[-1][2].item<double>());
      }
      const Answer points = predictor.predict(predictor.schema().encode(some_rows(1)), {});
      EXPECT_EQ(points.outputs(), 3u);  // without groups or weights
    }
  }
}

TEST(Predictor, SetsOfLabelsAtAllLevels) {
  for (const char* score : {"lac", "aps", "raps", "saps"}) {
    const Predictor predictor = make_predictor(artifact_of("split", score, 4), torch::kCPU);
    EXPECT_THAT(predictor.classes(), ElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(predictor.outputs(), 1u);
    const Batch batch = predictor.schema().encode(some_rows(60), info_for("split", 60));
    const Answer answer = predictor.predict(batch, kLevels);
    EXPECT_EQ(answer.classes(), 4u);
    EXPECT_EQ(answer.pixels(), 1u);
    for (size_t level = 0; level < kLevels.size(); ++level) {
      const Regions wanted = reference(predictor, batch, kLevels[level]);
      for (size_t row = 0; row < 60; ++row) {
        std::vector<size_t> labels;
        for (int64_t k = 0; k < 4; ++k) {
          const auto place = static_cast<int64_t>(row);
          if (wanted.members[place][k].item<bool>()) labels.push_back(static_cast<size_t>(k));
        }
        EXPECT_EQ(answer.labels(row, level), labels) << score << row;
        EXPECT_EQ(answer.point(row),
                  wanted.prediction[static_cast<int64_t>(row)][0].item<double>());
      }
    }
    EXPECT_THAT([&] { (void)answer.interval(0); }, ThrowsMessage<Error>(HasSubstr("label sets")));
    EXPECT_THROW((void)answer.in_set(0, 4), std::out_of_range);
  }
}

TEST(Predictor, UnionsComeInParts) {
  CalibrationArtifact artifact = artifact_of("split", "density", 1);
  Graph& graph = artifact.network;  // a grid of two clusters, far apart
  graph.outputs.push_back(make_info(kQuantilesOutput, {kDynamic, 8}));
  graph.initializers["zeros"] = torch::zeros({5, 8});
  graph.initializers["grid"] = torch::tensor({-9.f, -8.9f, -8.8f, -8.7f, 8.7f, 8.8f, 8.9f, 9.f});
  graph.nodes.push_back(make_node("Gemm", {"h1", "zeros", "grid"}, {kQuantilesOutput}));
  artifact.method.score.set(field::level_set, true);
  for (double& score : artifact.rows.scores) score /= 100;
  const Predictor predictor = make_predictor(artifact, torch::kCPU);
  const Batch batch = predictor.schema().encode(some_rows(40));
  const Answer answer = predictor.predict(batch, kLevels);
  bool several = false;
  for (size_t level = 0; level < kLevels.size(); ++level) {
    for (size_t row = 0; row < 40; ++row) {
      const std::vector<Interval> parts = answer.parts(row, 0, level);
      several = several || parts.size() > 1;
      for (size_t i = 1; i < parts.size(); ++i) EXPECT_LT(parts[i - 1].upper, parts[i].lower);
      if (parts.empty()) continue;
      EXPECT_EQ(parts.front().lower, answer.interval(row, 0, level).lower);
      EXPECT_EQ(parts.back().upper, answer.interval(row, 0, level).upper);
    }
  }
  EXPECT_TRUE(several);
}

TEST(Predictor, JudgesByItsOwnRegions) {
  for (const char* calibration : {"split", "grouped", "localized", "weighted"}) {
    const Predictor predictor =
        make_predictor(artifact_of(calibration, "residual", 1), torch::kCPU);
    const Batch batch = predictor.schema().encode(some_rows(80), info_for(calibration, 80));
    const Answer answer = predictor.predict(batch, kLevels);
    std::vector<float> truth;
    for (size_t i = 0; i < 80; ++i) {
      truth.push_back(static_cast<float>(answer.point(i) + 1.4 * static_cast<double>(i)));
    }
    const Judgement judged = predictor.judge(batch, truth, kLevels);
    ASSERT_EQ(judged.in.size(), kLevels.size());
    size_t inside = 0;
    for (size_t level = 0; level < kLevels.size(); ++level) {
      for (size_t i = 0; i < 80; ++i) {
        const bool in = answer.interval(i, 0, level).contains(truth[i]);
        EXPECT_EQ(judged.in[level][i], in) << calibration << i;
        EXPECT_EQ(judged.p_values[i] > kLevels[level].value(), in) << calibration << i;
        inside += in ? 1 : 0;
      }
    }
    EXPECT_GT(inside, 40u);
    EXPECT_LT(inside, 220u);
    truth[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THAT([&] { (void)predictor.judge(batch, truth); },
                ThrowsMessage<Error>("y: row 3 (from 0) has NaN in column 0, expected a number"));
    truth.pop_back();
    EXPECT_THAT([&] { (void)predictor.judge(batch, truth); },
                ThrowsMessage<Error>("y: found 79 numbers for 80 rows, expected 80"));
  }
}

TEST(Predictor, KeptLevelsRefuseAllOthers) {
  CalibrationArtifact artifact = artifact_of("split", "residual", 1);
  const CalibrationArtifact all = artifact;
  artifact.rows.total = 100;
  artifact.rows.levels = {Level(0.1), Level(0.5)};
  artifact.rows.scores.clear();
  for (const uint64_t rank : SideRanks{.rows = 100}.ranks(artifact.rows.levels)) {
    artifact.rows.scores.push_back(static_cast<double>(rank) - 1);
  }
  const Folder folder;
  make_predictor(artifact, torch::kCPU).save(folder.path("kept.onnx"));
  const Predictor kept = Predictor::load(folder.path("kept.onnx"));
  EXPECT_THAT(kept.kept_levels(), ElementsAre(Level(0.1), Level(0.5)));
  EXPECT_EQ(kept.calibration_rows(), 100u);
  const Batch batch = kept.schema().encode(some_rows(9));
  const Answer found = kept.predict(batch, kept.kept_levels());
  const Answer wanted = make_predictor(all, torch::kCPU).predict(batch, kept.kept_levels());
  EXPECT_TRUE(std::ranges::equal(found.lower(1), wanted.lower(1)));
  const std::string sentence =
      "the calibration keeps the radii for levels 0.1, 0.5 alone (calibrate --levels)";
  EXPECT_THAT(
      [&] {
        (void)kept.predict(batch, {Level(0.1), Level(0.2)});
      },
      ThrowsMessage<Error>(sentence + "; found alpha 0.2"));
  const std::vector<float> truth(9, 0);
  EXPECT_THAT([&] { (void)kept.p_values(batch, truth); },
              ThrowsMessage<Error>(sentence + "; a p-value needs all scores"));
  const Judgement judged = kept.judge(batch, truth, {Level(0.1)});
  EXPECT_TRUE(judged.p_values.empty());
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(judged.in[0][i], found.interval(i).contains(0)) << i;
}

TEST(Predictor, GroupsAndWeightsAreMissedWhenRegionsAreAsked) {
  const Predictor grouped = make_predictor(artifact_of("grouped"), torch::kCPU);
  EXPECT_EQ(grouped.schema().group_column(), "column");
  EXPECT_THAT(grouped.schema().groups(), ElementsAre("even", "odd"));
  EXPECT_EQ(grouped.method("group"), "column");
  const std::vector<float> x = some_rows(2);
  const Batch without = grouped.schema().encode(x);
  EXPECT_EQ(grouped.predict(without, {}).rows(), 2u);
  EXPECT_THAT(
      [&] { (void)grouped.predict(without, kLevels); },
      ThrowsMessage<Error>(HasSubstr("groups: the predictor was calibrated by group: give")));
  EXPECT_THAT(
      [&] { (void)grouped.schema().encode(x, {.groups = {"odd"}}); },
      ThrowsMessage<Error>("groups: found 1 for 2 rows; the calibration needs one per row"));
  const Batch unknown = grouped.schema().encode(x, {.groups = {"odd", "west"}});
  const Answer answer = grouped.predict(unknown, kLevels);
  EXPECT_TRUE(std::isfinite(answer.interval(0).upper));
  EXPECT_TRUE(std::isinf(answer.interval(1).upper) && std::isinf(answer.interval(1).lower));

  const Predictor weighted = make_predictor(artifact_of("weighted"), torch::kCPU);
  EXPECT_TRUE(weighted.schema().needs_weights());
  EXPECT_THAT([&] { (void)weighted.predict(weighted.schema().encode(x), kLevels); },
              ThrowsMessage<Error>(
                  HasSubstr("weights: the predictor was calibrated with given likelihood")));
  EXPECT_THAT(
      [&] {
        (void)weighted.schema().encode(x, {.weights = {1, -1}});
      },
      ThrowsMessage<Error>(
          "weights: row 1 (from 0) is -1, expected a finite number, not negative"));
  EXPECT_THAT(
      [&] {
        (void)grouped.schema().encode(x, {.weights = {1, 1}});
      },
      ThrowsMessage<Error>("weights: found 2, but the calibration uses none"));
}

// Rows without places are numbered as they come; with places they are answered alike each time.
TEST(Predictor, LocalizedRowsDrawByTheirPlaces) {
  const Predictor predictor = make_predictor(artifact_of("localized"), torch::kCPU);
  const std::vector<float> x = some_rows(50);
  const auto lower = [&](const RowInfo& info) {
    const Answer answer = predictor.predict(predictor.schema().encode(x, info), {Level(0.3)});
    return std::vector<double>(answer.lower().begin(), answer.lower().end());
  };
  const std::vector<double> first = lower({}), second = lower({});
  EXPECT_NE(first, second);
  RowInfo placed;
  for (uint64_t i = 0; i < 50; ++i) placed.places.push_back(i);
  EXPECT_EQ(lower(placed), first);
  EXPECT_EQ(lower(placed), first);
  placed.places.pop_back();
  EXPECT_THAT([&] { lower(placed); }, ThrowsMessage<Error>("places: found 49 for 50 rows"));
}

TEST(Predictor, TheFileSaysHowManyOutputsThereAre) {
  const Folder folder;
  CalibrationArtifact artifact = artifact_of("split");
  const std::string before = folder.path("before.onnx"), now = folder.path("now.onnx");
  write_artifact(artifact, before);
  EXPECT_EQ(Predictor::load(before).outputs(), 3u);  // derived
  EXPECT_EQ(read_artifact(before).outputs, 0u);
  artifact.outputs = 3;
  write_artifact(artifact, now);
  EXPECT_EQ(read_artifact(now).outputs, 3u);
  EXPECT_EQ(read_onnx(now).metadata.at("fcp.outputs"), "3");
  EXPECT_FALSE(read_artifact(now).network.metadata.contains("fcp.outputs"));
  for (const char* wrong : {"", "0", "-1", "3x", "99999999999999999999999"}) {
    Graph graph = read_onnx(now);
    graph.metadata["fcp.outputs"] = wrong;
    write_onnx(graph, before);
    EXPECT_THAT([&] { (void)read_artifact(before); },
                ThrowsMessage<Error>(HasSubstr("before.onnx: its number of outputs is '")))
        << wrong;
  }
}

TEST(Predictor, AnswersThatAreNaNNameTheirRow) {
  const Predictor predictor = make_predictor(artifact_of("split", "residual", 1), torch::kCPU);
  std::vector<float> x = some_rows(3);
  x[2] = x[3] = std::numeric_limits<float>::infinity();
  const Batch batch = predictor.schema().encode(x);
  const std::string told =
      "x: row 1 (from 0): the network's answer is NaN, expected a number; do its numbers overflow "
      "there?";
  EXPECT_THAT([&] { (void)predictor.predict(batch, {}); }, ThrowsMessage<Error>(told));
  EXPECT_THAT([&] { (void)predictor.predict(batch, kLevels); }, ThrowsMessage<Error>(told));
  const std::vector<float> truth(3, 0);
  EXPECT_THAT([&] { (void)predictor.p_values(batch, truth); }, ThrowsMessage<Error>(told));
}

TEST(Predictor, TensorsAreRowsToo) {
  const Predictor predictor = make_predictor(artifact_of("split"), torch::kCPU);
  const std::vector<float> x = some_rows(6);
  const torch::Tensor rows = torch::tensor(x).reshape({6, 2});
  const Answer by_span = predictor.predict(predictor.schema().encode(x), kLevels);
  for (const torch::Tensor& same : {rows, rows.to(torch::kDouble), rows.t().contiguous().t()}) {
    const TensorRegions found = regions(predictor, same, kLevels[1]);
    EXPECT_TRUE(std::ranges::equal(std::span(found.lower.contiguous().data_ptr<double>(), 18),
                                   by_span.lower(1)));
  }
  EXPECT_EQ(features(predictor, rows).sizes(), (torch::IntArrayRef{6, 5}));
  EXPECT_EQ(scores(predictor, rows, torch::zeros({6, 3})).size(), 6u);
}

// One run of the network, whoever asks, while a RunOnce lives.
TEST(RunOnce, GivesTheSameAnswerAgain) {
  const torch::NoGradGuard no_grad;
  const Network network(make_mlp({2, 5, 3}));
  const torch::Tensor x = torch::randn({4, 2}), other = x.clone();
  const torch::Tensor before = run_apart(network, {x})[0];
  {
    const RunOnce once;
    const torch::Tensor first = run_apart(network, {x})[0];
    EXPECT_FALSE(first.is_same(before));
    {
      const RunOnce inner;
      EXPECT_TRUE(run_apart(network, {x})[0].is_same(first));
    }
    EXPECT_TRUE(run_apart(network, {x})[0].is_same(first));
    EXPECT_FALSE(run_apart(network, {other})[0].is_same(first));
    EXPECT_TRUE(run_apart(network, {other})[0].equal(first));
    const Network twin(make_mlp({2, 5, 3}));
    EXPECT_FALSE(run_apart(twin, {x})[0].is_same(first));
  }
  EXPECT_FALSE(run_apart(network, {x})[0].is_same(before));
}

}  // namespace
}  // namespace fcp
