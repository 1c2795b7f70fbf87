// Operators of domain com.microsoft against the standard ones they stand for.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/network/op_testing.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;

Node contrib_node(const std::string& op, size_t inputs,
                  std::map<std::string, Attribute> attributes = {}) {
  Node made = node(op, inputs, std::move(attributes));
  made.domain = "com.microsoft";
  return made;
}

TEST(Contrib, GeluAndItsRelatives) {
  const torch::Tensor x = random_tensor({3, 4}) * 3, b = random_tensor({4});
  const auto gelu = [](const torch::Tensor& v) {
    return v * (1 + torch::erf(v / std::sqrt(2.0))) / 2;
  };
  expect_close(run(contrib_node("Gelu", 1), {x}), gelu(x));
  expect_close(run(contrib_node("BiasGelu", 2), {x, b}), gelu(x + b));
  expect_close(run(contrib_node("FastGelu", 2), {x, b}),
               run(node("Gelu", 1, {{"approximate", std::string("tanh")}}), {x + b}, 20));
  expect_close(run(contrib_node("QuickGelu", 1, {{"alpha", 2.0f}}), {x}),
               x * torch::sigmoid(2 * x));
  expect_gradient(contrib_node("FastGelu", 1), {x});
  expect_gradient(contrib_node("QuickGelu", 1), {x});
  EXPECT_EQ(make_op(contrib_node("Gelu", 1), 17)->bounds({false}), BoundSupport::kLinear);
}

TEST(Contrib, FusedProductsTransposeAndScale) {
  const torch::Tensor a = random_tensor({2, 5, 3}), b = random_tensor({2, 5, 4});
  expect_close(
      run(contrib_node("FusedMatMul", 2, {{"transA", int64_t{1}}, {"alpha", 0.5f}}), {a, b}),
      torch::matmul(a.transpose(1, 2), b) / 2);
  const torch::Tensor c = random_tensor({7, 2, 3}), d = random_tensor({2, 3, 4});
  expect_close(run(contrib_node("FusedMatMul", 2, {{"transBatchA", int64_t{1}}}), {c, d}),
               torch::matmul(c.permute({1, 0, 2}), d));
  const torch::Tensor w = random_tensor({3, 4}), v = random_tensor({4});
  const torch::Tensor rows = random_tensor({5, 3});
  expect_close(
      run(contrib_node("FusedGemm", 3,
                       {{"activation", std::string("LeakyRelu")}, {"activation_alpha", 0.25f}}),
          {rows, w, v}),
      torch::leaky_relu(torch::matmul(rows, w) + v, 0.25));
  EXPECT_THAT(
      error_of(contrib_node("FusedGemm", 3, {{"activation", std::string("Cube")}}), {rows, w, v}),
      HasSubstr("attribute 'activation' is 'Cube', expected Relu"));
}

TEST(Contrib, NormalisationsOfSums) {
  const torch::Tensor x = random_tensor({2, 3, 4}), skip = random_tensor({2, 3, 4});
  const torch::Tensor gamma = random_tensor({4}), beta = random_tensor({4}),
                      bias = random_tensor({4});
  const torch::Tensor sum = x + skip + bias;
  const auto op = make_op(contrib_node("SkipLayerNormalization", 5, {{"epsilon", 0.01f}}), 17);
  const Tensors found = op->forward({x, skip, gamma, beta, bias});
  expect_close(found[0], torch::layer_norm(sum, {4}, gamma, beta, static_cast<double>(0.01f)));
  expect_close(found[3], sum);
  const torch::Tensor power = (sum.square().mean(-1, true) + static_cast<double>(0.01f)).sqrt();
  expect_close(run(contrib_node("SkipSimplifiedLayerNormalization", 4, {{"epsilon", 0.01f}}),
                   {x, skip, gamma, bias}),
               sum / power * gamma);
  Node stray = node("SimplifiedLayerNormalization", 2, {{"epsilon", 0.01f}});  // in ONNX's domain
  expect_close(run(stray, {sum, gamma}), sum / power * gamma);
  EXPECT_THAT(error_of(contrib_node("SkipLayerNormalization", 3), {x, skip, random_tensor({3})}),
              HasSubstr("gamma"));
}

TEST(Contrib, EmbeddedWordsAreAddedAndNormalised) {
  const torch::Tensor words = random_tensor({9, 4}), places = random_tensor({6, 4});
  const torch::Tensor parts = random_tensor({2, 4}), gamma = random_tensor({4}),
                      beta = random_tensor({4});
  const torch::Tensor ids = torch::tensor({{3, 0, 8}, {1, 1, 2}}, torch::kInt);
  const torch::Tensor segments = torch::tensor({{0, 1, 1}, {0, 0, 1}}, torch::kInt);
  const Tensors found = make_op(contrib_node("EmbedLayerNormalization", 7), 17)
                            ->forward({ids, segments, words, places, parts, gamma, beta});
  const torch::Tensor sum = words.index({ids.to(torch::kLong)}) + places.narrow(0, 0, 3) +
                            parts.index({segments.to(torch::kLong)});
  expect_close(found[0], torch::layer_norm(sum, {4}, gamma, beta, static_cast<double>(1e-12f)));
  EXPECT_THAT(error_of(contrib_node("EmbedLayerNormalization", 7),
                       {ids + 7, segments, words, places, parts, gamma, beta}),
              HasSubstr("it"));
}

// softmax(Q Kᵀ / √d + bias) V, head by head.
torch::Tensor attended(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       int64_t heads, const torch::Tensor& bias) {
  Tensors parts;
  const int64_t size = q.size(2) / heads;
  for (int64_t h = 0; h < heads; ++h) {
    const auto head = [&](const torch::Tensor& x) { return x.narrow(2, h * size, size); };
    const torch::Tensor scores =
        torch::matmul(head(q), head(k).transpose(1, 2)) / std::sqrt(static_cast<double>(size)) +
        bias;
    parts.push_back(torch::matmul(torch::softmax(scores, -1), head(v)));
  }
  return torch::cat(parts, 2);
}

TEST(Contrib, AttentionByHeads) {
  const torch::Tensor x = random_tensor({2, 3, 4}), w = random_tensor({4, 12}),
                      b = random_tensor({12});
  const torch::Tensor mask = torch::tensor({{1, 1, 0}, {1, 1, 1}}, torch::kInt);
  const torch::Tensor hidden = (1 - mask.to(torch::kDouble)).unsqueeze(1) * -10000;
  const auto qkv = (torch::matmul(x, w) + b).split(4, 2);
  const std::map<std::string, Attribute> heads = {{"num_heads", int64_t{2}}};
  const torch::Tensor expected = attended(qkv[0], qkv[1], qkv[2], 2, hidden);
  expect_close(run(contrib_node("Attention", 4, heads), {x, w, b, mask}), expected);
  expect_close(
      run(contrib_node("Attention", 4, heads), {x, w, b, torch::tensor({2, 3}, torch::kInt)}),
      expected);
  std::map<std::string, Attribute> causal = heads;
  causal["unidirectional"] = int64_t{1};
  const torch::Tensor later = torch::ones({3, 3}, torch::kDouble).triu(1) * -1e9;
  expect_close(run(contrib_node("Attention", 3, causal), {x, w, b}),
               attended(qkv[0], qkv[1], qkv[2], 2, later));
  const auto bare = torch::matmul(x, w).split(4, 2);
  expect_close(
      run(contrib_node("MultiHeadAttention", 5, heads), {bare[0], bare[1], bare[2], b, mask}),
      expected);
  expect_gradient(contrib_node("Attention", 3, heads), {x, w, b});
  EXPECT_THAT(error_of(contrib_node("Attention", 5, heads), {x, w, b, mask, x}),
              HasSubstr("has a past, which is not supported"));
  EXPECT_THAT(error_of(contrib_node("Attention", 3), {x, w, b}), HasSubstr("num_heads is 0"));
}

TEST(Contrib, DistancesOfEveryTwoRows) {
  const torch::Tensor a = random_tensor({3, 5}), b = random_tensor({4, 5});
  const torch::Tensor found =
      run(contrib_node("CDist", 2, {{"metric", std::string("euclidean")}}), {a, b});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(found[i][j].item<double>(), (a[i] - b[j]).norm().item<double>(), 1e-12);
    }
  }
}

TEST(Contrib, OtherOperatorsOfTheDomainAreRefused) {
  EXPECT_THAT(error_of(contrib_node("BeamSearch", 1), {random_tensor({1})}),
              HasSubstr("operator BeamSearch of domain 'com.microsoft' is not supported"));
}

}  // namespace
}  // namespace fcp
