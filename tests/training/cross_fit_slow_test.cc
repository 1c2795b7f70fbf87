// Coverage of CV+ over 100 draws of 50 rows, with networks that are cheap to train: about 20
// seconds of processor time. Where the environment has FCP_CROSS_ALL, over 500 draws of 50, 100 and
// 300 rows, which takes many minutes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/random.h"
#include "fcp/conformal/cross_guarantee.h"
#include "fcp/conformal/quantile.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/cross_fit.h"

namespace fcp {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct Draw {
  Array x, y;
};

// Friedman's first function: five columns that matter, five that do not, and normal noise.
Draw friedman(int64_t rows, Random& random) {
  Draw draw{zeros({rows, 10}), zeros({rows, 1})};
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
    double x[10];
    for (size_t j = 0; j < 10; ++j) {
      x[j] = random.uniform();
      draw.x.values[10 * i + j] = static_cast<float>(x[j]);
    }
    draw.y.values[i] =
        static_cast<float>(10 * std::sin(kPi * x[0] * x[1]) + 20 * (x[2] - 0.5) * (x[2] - 0.5) +
                           10 * x[3] + 5 * x[4] + random.normal());
  }
  return draw;
}

TabularOptions cheap_network(uint64_t seed) {
  TabularOptions options;
  options.members = 1;
  options.epochs = 20;
  options.layers = {16};
  options.seed = seed;
  return options;
}

struct DrawResult {
  double coverage = 0, length = 0;
};

DrawResult judge_draw(int64_t rows, int64_t folds, const Level& level, uint64_t seed) {
  constexpr int64_t kFresh = 200;
  Random random(seed);
  const Draw draw = friedman(rows, random);
  Draw fresh = friedman(kFresh, random);
  const CrossFit fitted = train_crossed(draw.x, draw.y, cheap_network(seed), folds);
  const torch::NoGradGuard no_gradients;
  const auto outputs =
      Network(fitted.graph).run({torch::from_blob(fresh.x.values.data(), {kFresh, 10})});
  const auto k = static_cast<int64_t>(conformal_rank(level, static_cast<size_t>(rows)));
  const torch::Tensor low = std::get<0>(outputs[1].sort(1)).select(1, rows - k);
  const torch::Tensor high = std::get<0>(outputs[2].sort(1)).select(1, k - 1);
  const torch::Tensor y = torch::from_blob(fresh.y.values.data(), {kFresh});
  const torch::Tensor in = (low <= y) & (y <= high);
  return {in.to(torch::kDouble).mean().item<double>(), (high - low).mean().item<double>()};
}

// By Hoeffding's inequality the mean of n numbers in [0, 1] lies √(ln(1/δ) / 2n) below its
// expectation with a probability of at most δ: one third of a millionth for each of three sizes.
TEST(CrossFitSlow, CoversOverDraws) {
  constexpr int64_t kFolds = 10;
  const Level level(0.1);
  const bool all = std::getenv("FCP_CROSS_ALL") != nullptr;
  const std::vector<int64_t> sizes =
      all ? std::vector<int64_t>{50, 100, 300} : std::vector<int64_t>{50};
  const double draws = all ? 500 : 100;
  const double slack = std::sqrt(std::log(3e6) / (2 * draws));
  for (const int64_t rows : sizes) {
    double coverage = 0, square = 0, length = 0;
    for (int64_t draw = 0; draw < static_cast<int64_t>(draws); ++draw) {
      const DrawResult one =
          judge_draw(rows, kFolds, level, static_cast<uint64_t>(1000 * rows + draw));
      coverage += one.coverage / draws;
      square += one.coverage * one.coverage / draws;
      length += one.length / draws;
    }
    const double variance = (square - coverage * coverage) * draws / (draws - 1);
    const double least = cross_guarantee(level, static_cast<size_t>(rows), kFolds);
    std::printf("rows %ld: coverage %.4f, deviation of a draw %.4f, length %.2f, guaranteed %.4f\n",
                static_cast<long>(rows), coverage, std::sqrt(variance), length, least);
    std::fflush(stdout);
    EXPECT_GT(coverage + slack, least);
  }
}

}  // namespace
}  // namespace fcp
