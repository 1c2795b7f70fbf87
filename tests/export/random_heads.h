// What must hold for every network that has bounds, tried on random ones: bands are sound and grow,
// the nested score obeys the law, and what is exported gives the same intervals.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/export/export.h"
#include "fcp/export/intervals.h"
#include "fcp/predictor/predictor_core.h"

#include "tests/bounds/heads.h"
#include "tests/export/run_exported.h"
#include "tests/methods/scores/heads.h"
#include "tests/support/random_heads.h"

namespace fcp {

struct HeadCounts {
  int bounded = 0;   // heads with interval bounds
  int linear = 0;    // with linear ones
  int exported = 0;  // whose intervals could be exported
  int law = 0;       // pairs held against the law
};

inline bool has_bounds(const std::shared_ptr<const Network>& head, const BoundOptions& options,
                       const Ball& ball) {
  try {
    make_bounds(head, options)->ranges(ball);
    return true;
  } catch (const Error&) {  // names the node without bounds
    return false;
  }
}

inline void expect_sound(const std::shared_ptr<const Network>& head, const Ball& ball,
                         BoundMethod method, uint64_t seed) {
  BoundOptions options;
  options.method = method;
  const Range range = make_bounds(head, options)->ranges(ball)[0];
  for (int i = 0; i < 12; ++i) {
    const torch::Tensor y = head->run({sample_ball(ball, i % 2)})[0];
    EXPECT_TRUE(contains(range, y)) << "head " << seed << " by " << bound_name(method);
  }
}

// To the last bit, in plain arithmetic, as nested needs it.
inline void expect_growing(const std::shared_ptr<const Network>& head, const Ball& ball,
                           uint64_t seed) {
  BoundOptions options;
  options.outward = false;
  const std::unique_ptr<HeadBounds> bounds = make_bounds(head, options);
  Range before = bounds->ranges({ball.center, ball.radius * 0, ball.norm, ball.scale})[0];
  for (const double share : {1e-7, 0.01, 0.1, 0.100001, 0.5, 1.0, 3.0}) {
    const Range now = bounds->ranges({ball.center, ball.radius * share, ball.norm, ball.scale})[0];
    EXPECT_TRUE((now.lower <= before.lower).logical_or(now.lower.isnan()).all().item<bool>())
        << "head " << seed << " at " << share;
    EXPECT_TRUE((now.upper >= before.upper).logical_or(now.upper.isnan()).all().item<bool>())
        << "head " << seed << " at " << share;
    before = now;
  }
}

inline int expect_law_of_head(const std::shared_ptr<const Network>& head, uint64_t seed) {
  Random random(seed + 17);
  const HeadRows rows = wild_rows(random, *head, 5);
  ScoreOptions options;
  options.set(field::norm, kAllNorms[seed % 3]);
  const std::unique_ptr<Score> score = make_score(options, head);
  const std::vector<double> scores = score->score(rows.features, rows.truth);
  for (const double one : scores) EXPECT_FALSE(std::isnan(one)) << "head " << seed;
  // The law is promised up to the largest ball: beyond it squares and products on the way overflow,
  // and bands need not grow.
  std::vector<double> radii = {0, 1, next_below(kLargestBall), kLargestBall, kForever};
  for (size_t i = 0; i < scores.size(); i += 2) {
    if (scores[i] > kLargestBall) continue;
    radii.push_back(scores[i]);
    radii.push_back(next_below(scores[i]));
  }
  return expect_law(*score, rows, scores, radii);
}

// The intervals of the exported graph hold those of fcp, and are not much wider.
inline bool expect_equal_export(const Graph& graph, uint64_t seed) {
  CalibrationArtifact artifact;
  artifact.network = graph;
  artifact.method.cut = "x";
  artifact.method.score.set(field::norm, Norm::kInf);
  for (int i = 1; i <= 40; ++i) artifact.rows.scores.push_back(0.02 * i);
  Graph exported;
  try {
    exported = export_artifact(artifact, {});
  } catch (const Error&) {  // names the operator whose ranges are not written
    return false;
  }
  const torch::Tensor x = torch::randn({6, graph.inputs[0].shape[1]});
  const auto found = run_exported(exported, x);
  const internal::PredictorCore predictor(artifact);
  const torch::NoGradGuard no_gradients;
  const Regions own = predictor.region(predictor.describe(x), Level(0.1));
  const torch::Tensor size =
      torch::cat({own.lower, own.upper, own.prediction}, 1).abs().amax(1, true) + 1;
  for (const bool upper : {false, true}) {
    const torch::Tensor& end = upper ? own.upper : own.lower;
    const torch::Tensor made = found.at(upper ? "upper" : "lower").flatten(1).to(torch::kDouble);
    const torch::Tensor wider = (upper ? made - end : end - made) / size;
    const torch::Tensor same = made == end;
    EXPECT_TRUE((wider > -1e-6).logical_or(same).all().item<bool>()) << "head " << seed;
    EXPECT_TRUE((wider < 1e-4).logical_or(same).all().item<bool>())
        << "head " << seed << ": " << wider;
  }
  return true;
}

inline std::string operators_of(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes) all += node.op + " ";
  return all;
}

inline HeadCounts check_random_heads(uint64_t first, uint64_t count) {
  HeadCounts counts;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    torch::manual_seed(seed);
    const Graph graph = random_head(seed);
    SCOPED_TRACE(concat("head ", seed, ": ", operators_of(graph)));
    const auto head = head_of(graph);
    const torch::NoGradGuard no_gradients;
    const Ball ball = {torch::randn({4, graph.inputs[0].shape[1]}),
                       torch::rand({4}) * 0.5,
                       kAllNorms[seed % 3],
                       {}};
    if (!has_bounds(head, {.method = BoundMethod::kIbp}, ball)) continue;
    ++counts.bounded;
    expect_sound(head, ball, BoundMethod::kIbp, seed);
    expect_growing(head, ball, seed);
    counts.law += expect_law_of_head(head, seed);
    if (has_bounds(head, {.method = BoundMethod::kCrown}, ball)) {
      ++counts.linear;
      expect_sound(head, ball, BoundMethod::kCrown, seed);
    }
    counts.exported += expect_equal_export(graph, seed) ? 1 : 0;
  }
  return counts;
}

}  // namespace fcp
