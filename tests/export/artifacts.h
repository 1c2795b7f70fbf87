// Random networks calibrated on noise or on random labels, and their exported graphs held against
// PredictorCore.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/export/export.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/predictor_core.h"

#include "tests/export/run_exported.h"

namespace fcp {

inline torch::Tensor rows_for(const Graph& graph, int64_t rows = 40) {
  std::vector<int64_t> shape = graph.inputs[0].shape;
  shape[0] = rows;
  return torch::randn(shape);
}

// The network calibrated on rows whose truth is the prediction and noise; above it alone for a
// negative one, for networks that end in a Relu.
inline CalibrationArtifact calibrated_on_noise(const Graph& graph, const ScoreOptions& score,
                                               const std::string& cut, double noise = 1,
                                               size_t of_output = 0) {
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.method.score = score;
  artifact.method.cut = cut;
  const ScoredNetwork predictor(graph, score, cut);
  const torch::Tensor features = predictor.features(rows_for(graph));
  const torch::NoGradGuard no_gradients;
  const torch::Tensor mean =
      predictor.shared_head()->run({features})[of_output].flatten(1).to(torch::kDouble);
  artifact.rows.sides = predictor.score().sides();
  artifact.rows.targets = predictor.score().targets();
  const torch::Tensor normal = torch::randn_like(mean);
  artifact.rows.scores = predictor.score().score(
      features, mean + (noise < 0 ? -noise * normal.abs() : noise * normal));
  return artifact;
}

// The same, and what rounding does on rows [N, …] is measured, as calibration does.
inline CalibrationArtifact measured_on(CalibrationArtifact artifact, const torch::Tensor& x) {
  std::vector<double> radii;
  for (const Level& level : {Level(0.5), Level(0.1)}) {
    const std::vector<double> radius = artifact.radius(level);
    if (!radius.empty()) radii.push_back(radius[0]);
  }
  artifact.rounding =
      measure_rounding(artifact.network, artifact.method.score, artifact.method.cut, x, radii);
  return artifact;
}

// Largest difference of two ends, relative to `size` [N, 1].
inline double difference(const torch::Tensor& found, const torch::Tensor& expected,
                         const torch::Tensor& size) {
  const torch::Tensor wide = found.flatten(1).to(torch::kDouble);
  EXPECT_EQ(wide.sizes(), expected.sizes());
  return ((wide - expected).abs() / size).masked_fill(wide == expected, 0).max().item<double>();
}

inline void expect_same_intervals(const CalibrationArtifact& artifact,
                                  const ExportOptions& options = {}, double tolerance = 5e-5) {
  const Graph exported = export_artifact(artifact, options);
  const torch::Tensor x = rows_for(artifact.network, 25);
  const auto found = run_exported(exported, x);
  const internal::PredictorCore predictor(artifact);
  const TestInputs rows = predictor.describe(x);
  const torch::NoGradGuard no_gradients;
  const Tensors plain = Network(artifact.network).run({x});
  for (const Level& level : options.levels) {
    const Regions expected = predictor.region(rows, level);
    // An end near 0 is a difference of larger numbers: what counts is the largest of the row.
    Tensors numbers = {expected.lower, expected.upper};
    for (const torch::Tensor& output : plain) numbers.push_back(output.flatten(1));
    const torch::Tensor sizes = torch::cat(numbers, 1).abs();
    // Of one-sided bounds the other end is infinite on purpose.
    const bool one_end = artifact.method.score.side != BoundSide::kBoth;
    const torch::Tensor size =
        (one_end ? sizes.masked_fill(sizes.isinf(), 0) : sizes).amax(1, true);
    const std::vector<std::string> names = export_names(artifact, options, level);
    EXPECT_LT(difference(found.at(names[0]), expected.lower, size), tolerance) << names[0];
    EXPECT_LT(difference(found.at(names[1]), expected.upper, size), tolerance) << names[1];
    EXPECT_LT(artifact.radius(level)[0], 1e6);
  }
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found.at(artifact.network.outputs[i].name), plain[i], 1e-5, 1e-5));
  }
}

inline ScoreOptions score_named(const std::string& name) { return ScoreOptions(name); }

// Without the random share that no export has.
inline ScoreOptions exact_score(const std::string& name) {
  ScoreOptions score(name);
  if (bool* randomized = score.find(field::randomized)) *randomized = false;
  return score;
}

inline CalibrationArtifact calibrated_on_labels(const Graph& graph, const ScoreOptions& score,
                                                const std::string& cut,
                                                const std::string& group = "") {
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.method.score = score;
  artifact.method.cut = cut;
  const ScoredNetwork predictor(graph, score, cut);
  const int64_t classes = predictor.score().classes();
  const torch::Tensor features = predictor.features(rows_for(graph, 30 * classes));
  const torch::Tensor labels = torch::randint(classes, {30 * classes, 1}, torch::kLong);
  artifact.rows.scores = predictor.score().score(features, labels.to(torch::kDouble));
  if (group.empty()) return artifact;
  artifact.method.calibration = GroupedOptions{.group = group};
  for (int64_t i = 0; i < classes; ++i) artifact.rows.group_names.push_back(std::to_string(i));
  // The last class has no rows, and so an infinite radius.
  for (int64_t i = 0; i < 30 * classes; ++i) {
    artifact.rows.groups.push_back(labels[i].item<int64_t>() % (classes - 1));
  }
  return artifact;
}

inline void expect_same_sets(const CalibrationArtifact& artifact) {
  const ExportOptions options = {.levels = {Level(0.1), Level(0.5), Level(0.001)}};
  const torch::Tensor x = rows_for(artifact.network, 200);
  const auto found = run_exported(export_artifact(artifact, options), x);
  const internal::PredictorCore predictor(artifact);
  const TestInputs rows = predictor.describe(x);
  for (const Level& level : options.levels) {
    const torch::Tensor expected = predictor.region(rows, level).members;
    const torch::Tensor members = found.at("in_set_" + level.text());
    // Wider by a slack: all of fcp's labels, and hardly one more.
    EXPECT_EQ(expected.logical_and(members.logical_not()).sum().item<int64_t>(), 0) << level.text();
    EXPECT_LE((members != expected).sum().item<int64_t>(), 2) << level.text();
  }
}

}  // namespace fcp
