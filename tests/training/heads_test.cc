#include "fcp/training/heads.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/random.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/single_thread.h"
#include "fcp/training/loss.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

torch::Tensor normal_matrix(Random& random, int64_t rows, int64_t columns) {
  torch::Tensor values = torch::empty({rows, columns});
  for (int64_t i = 0; i < values.numel(); ++i) {
    values.data_ptr<float>()[i] = static_cast<float>(random.normal());
  }
  return values;
}

// Residuals of deviation exp(v_0) (of several outputs: exp(v_k)), whatever else v holds.
HeadMember noisy_member(Random& random, int64_t rows, int64_t columns, int64_t outputs = 1) {
  HeadMember member;
  member.features = normal_matrix(random, rows, columns);
  member.prediction = member.features.narrow(1, 0, outputs) * 3 + 100;
  member.residual =
      member.features.narrow(1, 0, outputs).exp() * normal_matrix(random, rows, outputs);
  return member;
}

double correlation(const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor x = a.flatten() - a.mean(), y = b.flatten() - b.mean();
  return ((x * y).mean() / (x.square().mean() * y.square().mean()).sqrt()).item<double>();
}

TEST(RisingQuantiles, StartAtTheGivenGridAndAlwaysRise) {
  Random random(1);
  const torch::Tensor grid = std::get<0>(normal_matrix(random, 2, 9).to(torch::kDouble).sort(1));
  const torch::Tensor floor = torch::full({1}, 1e-4);
  const torch::Tensor start = rising_start(grid, floor).reshape({1, 1, 18});
  const torch::Tensor same = rising_quantiles(start, 2, floor)[0][0];
  EXPECT_TRUE(same.to(torch::kDouble).allclose(grid, 1e-4, 1e-4));
  const torch::Tensor any =
      rising_quantiles(10 * normal_matrix(random, 50, 18).unsqueeze(0), 2, floor);
  EXPECT_TRUE((any.narrow(3, 1, 8) > any.narrow(3, 0, 8)).all().item<bool>());
}

TEST(RisingQuantiles, SumStepsAwayFromTheMedian) {
  const torch::Tensor parts = torch::tensor({{1.0F, 2.0F, 10.0F, 4.0F, 8.0F}});
  const torch::Tensor quantiles = torch::matmul(parts, rising_matrix(5));
  EXPECT_TRUE(quantiles.equal(torch::tensor({{7.0F, 8.0F, 10.0F, 14.0F, 22.0F}})));
}

TEST(RisingQuantiles, MarginalQuantilesAndTheirLoss) {
  const torch::Tensor values = torch::arange(0, 101, torch::kDouble).reshape({101, 1});
  const torch::Tensor grid = marginal_quantiles(values, 3);
  EXPECT_TRUE(grid.equal(torch::tensor({{25.0, 50.0, 75.0}}, torch::kDouble)));
  // One quantile at 1/2: half the distance. A second row on the other side.
  const torch::Tensor loss =
      pinball_loss(torch::zeros({1, 2, 1, 1}), torch::tensor({{{2.0F}, {-4.0F}}})).mean(1);
  EXPECT_FLOAT_EQ(loss.item<float>(), 1.5F);
}

// Of 15 % of the rows the residual is large; by weight of 2 %, or of 60 %.
TEST(Heads, RowsCountByTheirWeights) {
  Random random(6);
  const int64_t rows = 1000;
  HeadMember member{torch::empty({rows, 2}), torch::zeros({rows, 1}), torch::empty({rows, 1})};
  torch::Tensor heavy = torch::ones({rows}), light = torch::ones({rows});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < 2; ++j) member.features[i][j] = random.normal();
    const bool large = i % 5 == 0;
    member.residual[i][0] = (i % 2 == 0 ? 1 : -1) * (large ? 10.0 : 1.0);
    heavy[i] = large ? 8.0 : 1.0;
    light[i] = large ? 0.1 : 1.0;
  }
  const auto mean_spread = [&](const torch::Tensor& weight) {
    member.weight = weight;
    const FeatureHeads heads = fit_heads({member});
    return heads.spread_of(member.features, member.prediction).mean().item<double>();
  };
  EXPECT_GT(mean_spread(heavy), 8) << "two thirds are beyond the 85 % quantile";
  EXPECT_LT(mean_spread(light), 3);
}

TEST(Heads, LearnWhereTheNetworkErrs) {
  Random random(2);
  std::vector<HeadMember> members;
  for (int e = 0; e < 3; ++e) members.push_back(noisy_member(random, 1500, 4));
  const FeatureHeads heads = fit_heads(members);
  const HeadMember fresh = noisy_member(random, 2000, 4);
  const torch::Tensor joint = fresh.features.repeat({1, 3});
  const torch::Tensor spread = heads.spread_of(joint, fresh.prediction);
  EXPECT_GT(correlation(spread.log(), fresh.features.select(1, 0)), 0.9);
  const torch::Tensor quantiles = heads.quantiles_of(joint, fresh.prediction);  // [N, 49]
  EXPECT_TRUE((quantiles.narrow(1, 1, 48) > quantiles.narrow(1, 0, 48)).all().item<bool>());
  // Each level is met on fresh rows, and on those where the network errs most.
  const torch::Tensor below = (fresh.residual <= quantiles).to(torch::kDouble);
  const torch::Tensor rough = fresh.features.select(1, 0) > 0.7;
  for (const int64_t level : {4, 24, 44}) {
    const double wanted = static_cast<double>(level + 1) / 50;
    EXPECT_NEAR(below.select(1, level).mean().item<double>(), wanted, 0.05);
    EXPECT_NEAR(below.select(1, level).masked_select(rough).mean().item<double>(), wanted, 0.1);
  }
}

// The factor of u uᵀ, and the loss against the density of a t distribution by an inverse.
TEST(CholeskyFactors, StartAtTheCovarianceAndMeasureTheLikelihood) {
  Random random(12);
  const torch::Tensor shape =
      torch::tensor({{2.0F, 0.0F, 0.0F}, {1.0F, 1.0F, 0.0F}, {-1.0F, 0.5F, 3.0F}});
  const torch::Tensor u = normal_matrix(random, 4000, 3).matmul(shape.t());
  const torch::Tensor start = factor_start(u);
  const torch::Tensor factor = cholesky_factors(start.unsqueeze(0), start)[0];
  const torch::Tensor second = u.t().matmul(u) / 4000;
  EXPECT_TRUE(factor.matmul(factor.t()).allclose(second, 2e-3, 2e-3));
  const torch::Tensor z = u.narrow(0, 0, 50).matmul(torch::linalg_inv(factor).t());
  const torch::Tensor wanted =
      factor.diagonal().log().sum() + 4 * torch::log1p(z.square().sum(1) / 5);  // (5 + 3) / 2
  const torch::Tensor rows = u.narrow(0, 0, 50).unsqueeze(0);
  const torch::Tensor found = factor_loss(start.expand({1, 50, 9}), start, rows);
  EXPECT_TRUE(found[0].allclose(wanted, 1e-4, 1e-4));
}

// Errors of two outputs that go together where v_2 > 0 and against each other elsewhere.
TEST(Heads, LearnHowErrorsGoTogether) {
  Random random(13);
  const auto draw = [&](int64_t rows) {
    HeadMember member = noisy_member(random, rows, 3, 2);
    const torch::Tensor first = normal_matrix(random, rows, 1),
                        second = normal_matrix(random, rows, 1);
    const torch::Tensor rho = 0.9 * member.features.narrow(1, 2, 1).sign();
    member.residual = torch::cat({first, rho * first + std::sqrt(1 - 0.81) * second}, 1);
    return member;
  };
  const FeatureHeads heads = fit_heads({draw(3000)}, {.quantiles = 7, .factors = true});
  const HeadMember fresh = draw(500);
  const torch::Tensor factors =
      heads.factors_of(fresh.features, fresh.prediction).reshape({-1, 2, 2});
  const torch::Tensor covariance = factors.matmul(factors.transpose(1, 2));
  const torch::Tensor rho =
      covariance.select(1, 0).select(1, 1) /
      (covariance.select(1, 0).select(1, 0) * covariance.select(1, 1).select(1, 1)).sqrt();
  const torch::Tensor together = fresh.features.select(1, 2) > 0;
  EXPECT_GT(rho.masked_select(together).mean().item<double>(), 0.7);
  EXPECT_LT(rho.masked_select(together.logical_not()).mean().item<double>(), -0.7);
}

TEST(Heads, GraphAnswersWhatTheHeadsAnswer) {
  Random random(3);
  for (const int64_t opset : {9, 13, 18}) {
    for (const int64_t outputs : {1, 2}) {
      std::vector<HeadMember> members = {noisy_member(random, 200, 3, outputs),
                                         noisy_member(random, 200, 3, outputs)};
      const bool factors = outputs > 1;
      const FeatureHeads heads = fit_heads(members, {.quantiles = 7, .factors = factors});
      Graph graph = make_mlp({5, 6, outputs});
      graph.opset = opset;
      graph.metadata["kept"] = "yes";
      append_heads(graph, "h1", "y", heads);
      append_heads(graph, "h1", "y", heads);  // replaces the first ones
      ASSERT_EQ(graph.outputs.size(), factors ? 4U : 3U);
      EXPECT_EQ(graph.metadata.at("kept"), "yes");
      const torch::Tensor x = normal_matrix(random, 11, 5);
      const torch::NoGradGuard no_gradients;
      const Tensors answers = Network(graph).run({x});
      const torch::Tensor feature = Network(cut(graph, "h1").backbone).forward(x);
      const torch::Tensor spread = heads.spread_of(feature, answers[0]);
      const torch::Tensor quantiles = heads.quantiles_of(feature, answers[0]);
      EXPECT_TRUE(answers[1].allclose(spread, 1e-5, 1e-6)) << opset;
      EXPECT_TRUE(answers[2].allclose(quantiles, 1e-5, 1e-5)) << opset;
      EXPECT_EQ(answers[2].size(1), outputs * 7);
      if (factors) {
        const torch::Tensor factor = heads.factors_of(feature, answers[0]);
        EXPECT_TRUE(answers[3].allclose(factor, 1e-5, 1e-5)) << opset;
        EXPECT_EQ(answers[3].size(1), outputs * outputs);
      }
      EXPECT_FALSE(find_leak(graph, "h1").has_value());
    }
  }
}

TEST(Heads, WideFeaturesKeepTheColumnsThatVary) {
  Random random(4);
  HeadMember member = noisy_member(random, 400, 50);
  member.features *= 0.01;
  member.features.select(1, 7).copy_(member.residual.select(1, 0).abs());
  member.features = member.features.reshape({400, 5, 10});
  const FeatureHeads heads = fit_heads({member, member}, {.quantiles = 5, .most_columns = 10});
  ASSERT_EQ(heads.columns.numel(), 20);
  EXPECT_TRUE((heads.columns == 7).any().item<bool>());
  EXPECT_TRUE((heads.columns == 57).any().item<bool>());
  Graph graph = make_mlp({4, 100, 1});
  append_heads(graph, "h1", "y", heads);
  const torch::Tensor x = normal_matrix(random, 3, 4);
  const torch::NoGradGuard no_gradients;
  const Tensors answers = Network(graph).run({x});
  const torch::Tensor feature = Network(cut(graph, "h1").backbone).forward(x);
  EXPECT_TRUE(answers[1].allclose(heads.spread_of(feature, answers[0]), 1e-5, 1e-6));
}

TEST(Heads, AreTheSameForTheSameSeed) {
  Random random(5);
  const std::vector<HeadMember> members = {noisy_member(random, 100, 3)};
  const auto weight = [&](uint64_t seed) {
    HeadOptions options{.quantiles = 5};
    options.fit.seed = seed;
    return fit_heads(members, options).quantiles.feature_weight;
  };
  EXPECT_TRUE(weight(1).equal(weight(1)));
  EXPECT_FALSE(weight(1).equal(weight(2)));
}

// Whatever there is to learn from, the answers are finite, positive and rising.
TEST(Heads, NeverExplode) {
  Random random(6);
  std::vector<HeadMember> cases;
  cases.push_back(noisy_member(random, 2, 3));
  cases.push_back(noisy_member(random, 5, 40));
  cases.push_back(noisy_member(random, 60, 3));
  cases.back().residual.zero_();
  cases.push_back(noisy_member(random, 60, 3));
  cases.back().residual *= 1e20;
  cases.push_back(noisy_member(random, 60, 3));
  cases.back().features.zero_();
  cases.push_back(noisy_member(random, 60, 3));
  cases.back().residual = cases.back().residual.pow(9);
  for (size_t i = 0; i < cases.size(); ++i) {
    const FeatureHeads heads = fit_heads({cases[i]}, {.quantiles = 9});
    const torch::Tensor far = cases[i].features * 1000 + 1e6;
    for (const torch::Tensor& v : {cases[i].features, far}) {
      const torch::Tensor spread = heads.spread_of(v, cases[i].prediction);
      const torch::Tensor quantiles = heads.quantiles_of(v, cases[i].prediction);
      EXPECT_TRUE(spread.isfinite().all().item<bool>()) << i;
      EXPECT_TRUE((spread > 0).all().item<bool>()) << i;
      EXPECT_TRUE(quantiles.isfinite().all().item<bool>()) << i;
      EXPECT_TRUE((quantiles.narrow(1, 1, 8) >= quantiles.narrow(1, 0, 8)).all().item<bool>()) << i;
    }
  }
}

TEST(Heads, SayWhatIsWrong) {
  Random random(7);
  HeadMember member = noisy_member(random, 20, 3);
  EXPECT_THROW(fit_heads({}), Error);
  EXPECT_THROW(fit_heads({member}, {.quantiles = 4}), Error);
  EXPECT_THROW(fit_heads({member, noisy_member(random, 20, 4)}), Error);
  Graph graph = make_mlp({2, 3, 1});
  const FeatureHeads heads = fit_heads({member}, {.quantiles = 3});
  EXPECT_THROW(append_heads(graph, "nowhere", "y", heads), Error);
  EXPECT_THROW(append_heads(graph, "h1", "h1", heads), Error);
  member.residual[3][0] = std::nanf("");
  EXPECT_THROW(fit_heads({member}), Error);
}

TEST(Rectifier, LearnsTheQuantileOfAScore) {
  Random random(8);
  for (const bool difference : {false, true}) {
    const auto drawn = [&](int64_t rows) {
      HeadMember member = noisy_member(random, rows, 4);
      if (!difference) member.residual = member.residual.abs();
      return member;
    };
    const Rectifier rectifier = fit_rectifier(drawn(4000), 0.9, difference);
    const HeadMember fresh = drawn(4000);
    const torch::Tensor rho = rectifier.answer(fresh.features, fresh.prediction);
    const torch::Tensor in = (fresh.residual <= rho).to(torch::kDouble).flatten();
    EXPECT_NEAR(in.mean().item<double>(), 0.9, 0.03);
    for (const bool rough : {false, true}) {
      const torch::Tensor where = (fresh.features.select(1, 0) > 0) == rough;
      EXPECT_NEAR(in.masked_select(where).mean().item<double>(), 0.9, 0.05) << difference << rough;
    }
    Graph graph = make_mlp({5, 4, 1});
    append_rectifier(graph, "h1", "y", rectifier);
    const torch::Tensor x = normal_matrix(random, 6, 5);
    const torch::NoGradGuard no_gradients;
    const Tensors answers = Network(graph).run({x});
    const torch::Tensor feature = Network(cut(graph, "h1").backbone).forward(x);
    EXPECT_TRUE(answers[1].allclose(rectifier.answer(feature, answers[0]), 1e-5, 1e-6));
  }
}

// A network's input may have missing numbers, in the rows of the fit and in others; a column may be
// missing altogether.
TEST(Rectifier, ReadsMissingNumbers) {
  Random random(10);
  HeadMember member = noisy_member(random, 200, 3);
  member.residual = member.residual.abs();
  EXPECT_NO_THROW(fit_rectifier(member, 0.9, false, {.missing = true}));
  member.features[5][0] = std::nanf("");
  member.features.select(1, 2).fill_(std::nanf(""));
  EXPECT_THROW(fit_rectifier(member, 0.9, false), Error);
  const Rectifier rectifier = fit_rectifier(member, 0.9, false, {.missing = true});
  Graph graph = make_mlp({3, 4, 1});
  append_rectifier(graph, "x", "y", rectifier);
  torch::Tensor x = normal_matrix(random, 4, 3);
  x[1][1] = std::nanf("");
  const torch::NoGradGuard no_gradients;
  const torch::Tensor answer = rectifier.answer(x, torch::zeros({4, 1}));
  EXPECT_TRUE(answer.isfinite().all().item<bool>());
  const Tensors answers = Network(graph).run({x});
  const torch::Tensor whole = rectifier.answer(x, answers[0]);  // the network's own answer is NaN
  for (const int64_t row : {0, 2, 3}) EXPECT_TRUE(answers[1][row].allclose(whole[row], 1e-5, 1e-6));
}

TEST(Rectifier, TakesInfiniteScoresAndRefusesOthers) {
  Random random(9);
  HeadMember member = noisy_member(random, 50, 2);
  member.residual[0][0] = std::numeric_limits<float>::infinity();
  EXPECT_NO_THROW(fit_rectifier(member, 0.9, false));
  EXPECT_THROW(fit_rectifier(member, 1, false), Error);
  member.residual[1][0] = std::nanf("");
  EXPECT_THROW(fit_rectifier(member, 0.9, false), Error);
}

// Short steps take one thread of libtorch and of OpenBLAS; whatever there was before comes back.
TEST(Heads, GiveTheThreadsBack) {
  const int torch_before = at::get_num_threads(), blas_before = blas_threads();
  at::set_num_threads(3);
  set_blas_threads(2);
  const int blas = blas_threads();  // 0 without OpenBLAS
  Random random(61);
  fit_heads({noisy_member(random, 60, 3)});
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(blas_threads(), blas);
  at::set_num_threads(torch_before);
  set_blas_threads(blas_before);
}

// What the guards do while they are in scope, which the fit does not show.
TEST(SingleThread, IsOneThreadInScopeWhereWanted) {
  const int torch_before = at::get_num_threads(), blas_before = blas_threads();
  at::set_num_threads(2);
  set_blas_threads(2);
  const int blas = blas_threads();
  for (const bool wanted : {true, false}) {
    {
      const SingleThread one_thread(wanted);
      { const SingleThread again(wanted); }  // the outer one is still in scope
      EXPECT_EQ(at::get_num_threads(), wanted ? 1 : 2);
      EXPECT_EQ(blas_threads(), wanted && blas > 0 ? 1 : blas);
    }
    EXPECT_EQ(at::get_num_threads(), 2);
    EXPECT_EQ(blas_threads(), blas);
  }
  at::set_num_threads(torch_before);
  set_blas_threads(blas_before);
}

}  // namespace
}  // namespace fcp
