// Columns prepared and linear models of ai.onnx.ml: literals and messages.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

Node ml_node(const std::string& op, size_t inputs, std::map<std::string, Attribute> attributes) {
  Node made = node(op, inputs, std::move(attributes));
  made.domain = "ai.onnx.ml";
  return made;
}

torch::Tensor matrix(const Floats& values, int64_t columns) {
  return torch::tensor(values).reshape({-1, columns});
}

TEST(Features, AreScaledNormalisedAndImputed) {
  const torch::Tensor x = matrix({1, 2, 3, 4}, 2);
  EXPECT_TRUE(torch::equal(
      run(ml_node("Scaler", 1, {{"offset", Floats{1, 0}}, {"scale", Floats{2, -1}}}), {x}),
      matrix({0, -2, 4, -4}, 2)));
  EXPECT_TRUE(torch::allclose(run(ml_node("Normalizer", 1, {{"norm", std::string("L2")}}), {x}),
                              x / x.norm(2, 1, true)));
  EXPECT_TRUE(torch::equal(
      run(ml_node("Normalizer", 1, {{"norm", std::string("L1")}}), {matrix({0, 0, -1, 3}, 2)}),
      matrix({0, 0, -0.25f, 0.75f}, 2)));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(torch::equal(
      run(ml_node("Imputer", 1,
                  {{"imputed_value_floats", Floats{7, 8}}, {"replaced_value_float", nan}}),
          {matrix({nan, 2, 3, nan}, 2)}),
      matrix({7, 2, 3, 8}, 2)));
  EXPECT_THAT(error_of(ml_node("Imputer", 1, {{"imputed_value_floats", Floats{7, 8, 9}}}), {x}),
              HasSubstr("has 3 numbers for X of shape [2, 2]"));
}

TEST(Features, AreEncodedAndPicked) {
  const torch::Tensor x = torch::tensor({5, 9, 5}, torch::kLong).reshape({3, 1});
  EXPECT_TRUE(torch::equal(run(ml_node("OneHotEncoder", 1, {{"cats_int64s", Integers{9, 5}}}), {x}),
                           matrix({0, 1, 1, 0, 0, 1}, 2).reshape({3, 1, 2})));
  EXPECT_THAT(
      error_of(ml_node("OneHotEncoder", 1, {{"cats_int64s", Integers{9}}, {"zeros", int64_t{0}}}),
               {x}),
      HasSubstr("a category that the network does not know"));
  EXPECT_TRUE(torch::equal(run(ml_node("LabelEncoder", 1,
                                       {{"keys_int64s", Integers{9, 1, 1}},
                                        {"values_floats", Floats{0.5f, 3, 4}},
                                        {"default_float", -1.0f}}),
                               {torch::tensor({1, 9, 2}, torch::kLong)}),
                           torch::tensor({4.0f, 0.5f, -1.0f})));
  EXPECT_THAT(error_of(ml_node("LabelEncoder", 1,
                               {{"keys_strings", std::vector<std::string>{"a"}},
                                {"values_int64s", Integers{1}}}),
                       {x}),
              HasSubstr("maps strings"));
  EXPECT_TRUE(
      torch::equal(run(ml_node("ArrayFeatureExtractor", 2, {}),
                       {matrix({1, 2, 3, 4, 5, 6}, 3), torch::tensor({2, 0}, torch::kLong)}),
                   matrix({3, 1, 6, 4}, 2)));
  EXPECT_TRUE(
      torch::equal(run(ml_node("FeatureVectorizer", 2, {}), {matrix({1, 2}, 1), x.narrow(0, 0, 2)}),
                   matrix({1, 5, 2, 9}, 2)));
}

TEST(Linear, RegressesAndClassifies) {
  const torch::Tensor x = matrix({1, 2, -1, 0.5f}, 2);
  const Node regressor = ml_node("LinearRegressor", 1,
                                 {{"coefficients", Floats{1, 2, 3, 4}},
                                  {"intercepts", Floats{10, 20}},
                                  {"targets", int64_t{2}}});
  EXPECT_TRUE(torch::allclose(run(regressor, {x}), matrix({15, 31, 10, 19}, 2)));
  const Node classifier = ml_node("LinearClassifier", 1,
                                  {{"coefficients", Floats{-1, -2, 1, 2}},
                                   {"intercepts", Floats{0, 0}},
                                   {"classlabels_ints", Integers{7, 9}},
                                   {"post_transform", std::string("LOGISTIC")}});
  const Tensors found = make_op(classifier, 17)->forward({x});
  EXPECT_TRUE(torch::equal(found[0], torch::tensor({9, 7}, torch::kLong)));
  EXPECT_NEAR(found[1][0][1].item<double>(), 1 / (1 + std::exp(-5.0)), 1e-6);
  EXPECT_THAT(error_of(regressor, {matrix({1, 2, 3}, 3)}), HasSubstr("expected 2 columns"));
}

TEST(Svm, SumsItsKernels) {
  const torch::Tensor x = matrix({1, 2, -1, 0.5f}, 2);
  const Floats vectors = {0, 1, 2, -1}, weights = {0.5f, -2};
  const Node made = ml_node("SVMRegressor", 1,
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Floats{0.3f, 0, 0}},
                             {"support_vectors", vectors},
                             {"coefficients", weights},
                             {"n_supports", int64_t{2}},
                             {"rho", Floats{0.25f}}});
  const torch::Tensor y = run(made, {x});
  for (int64_t row = 0; row < 2; ++row) {
    double expected = 0.25;
    for (size_t i = 0; i < 2; ++i) {
      const double a = x[row][0].item<double>() - vectors[2 * i];
      const double b = x[row][1].item<double>() - vectors[2 * i + 1];
      expected += weights[i] * std::exp(-0.3f * (a * a + b * b));
    }
    EXPECT_NEAR(y[row][0].item<double>(), expected, 1e-5);
  }
}

// Three classes on a line with one support vector each at −1, 0 and 1, and a linear kernel.
Node svm_of_three(std::map<std::string, Attribute> more = {}) {
  std::map<std::string, Attribute> attributes = {{"support_vectors", Floats{-1, 0, 1}},
                                                 {"vectors_per_class", Integers{1, 1, 1}},
                                                 {"coefficients", Floats{2, 3, 5, 7, 11, 13}},
                                                 {"rho", Floats{0.5f, -0.25f, 0.125f}},
                                                 {"classlabels_ints", Integers{4, 5, 6}}};
  attributes.merge(more);
  return ml_node("SVMClassifier", 1, attributes);
}

TEST(Svm, EveryTwoClassesAreCompared) {
  // k = (−x, 0, x): s01 = 2 k0 + 3 k1 + 0.5, s02 = 7 k0 + 5 k2 − 0.25, s12 = 11 k1 + 13 k2 + 0.125.
  const Tensors found = make_op(svm_of_three(), 17)->forward({matrix({1, -1}, 1)});
  EXPECT_TRUE(
      torch::allclose(found[1], matrix({-1.5f, -2.25f, 13.125f, 2.5f, 1.75f, -12.875f}, 3)));
  EXPECT_TRUE(torch::equal(found[0], torch::tensor({5, 4}, torch::kLong)));
}

// Where r_ab = p_a / (p_a + p_b) holds for some p, coupling finds it, up to where it stops.
TEST(Svm, CoupledChancesAreTheProbabilitiesBehindThem) {
  const double p[] = {0.5, 0.3, 0.2};
  const auto logit = [&](int a, int b) { return static_cast<float>(std::log(p[b] / p[a])); };
  const Node made = svm_of_three(
      {{"prob_a", Floats{0, 0, 0}}, {"prob_b", Floats{logit(0, 1), logit(0, 2), logit(1, 2)}}});
  const torch::Tensor found = make_op(made, 17)->forward({matrix({1, -1}, 1)})[1];
  EXPECT_TRUE(torch::allclose(found.sum(1), torch::ones({2})));
  for (int64_t a = 0; a < 3; ++a) {
    EXPECT_NEAR(found[1][a].item<double>(), p[static_cast<size_t>(a)], 0.01);
  }
  EXPECT_THAT(error_of(svm_of_three({{"prob_a", Floats{0, 0, 0}}}), {matrix({1}, 1)}),
              HasSubstr("has one of prob_a and prob_b"));
}

}  // namespace
}  // namespace fcp
