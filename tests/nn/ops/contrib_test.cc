// Operators of domain com.microsoft against the standard ones they stand for.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

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

// Weights of a few bits against the same weights unpacked one by one.
TEST(Contrib, ProductsWithPackedWeights) {
  torch::manual_seed(5);
  const int64_t n = 3, k = 40, block = 16, blocks = 3;
  for (const int64_t bits : {2, 4, 8}) {
    const int64_t bytes = block * bits / 8, zero_bytes = (blocks * bits + 7) / 8;
    const torch::Tensor b = torch::randint(0, 256, {n, blocks, bytes}, torch::kByte);
    const torch::Tensor zeros = torch::randint(0, 256, {n, zero_bytes}, torch::kByte);
    const torch::Tensor scales = torch::rand({n * blocks}) + 0.1;
    const torch::Tensor a = torch::randn({2, 5, k}), bias = torch::randn({n});
    const auto packed = [&](const torch::Tensor& row, int64_t place) {
      const int64_t each = 8 / bits;
      return row[place / each].item<int64_t>() >> (place % each * bits) & ((1 << bits) - 1);
    };
    const Node made =
        contrib_node("MatMulNBits", 6, {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}});
    for (const bool given : {false, true}) {
      torch::Tensor w = torch::zeros({n, k});
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          const int64_t zero = given ? packed(zeros[i], j / block) : 1 << (bits - 1);
          w[i][j] = static_cast<double>(packed(b[i][j / block], j % block) - zero) *
                    scales[i * blocks + j / block].item<double>();
        }
      }
      Node node = made;
      node.inputs[4] = "";
      const torch::Tensor y =
          run(node, {a, b, scales, given ? zeros : torch::Tensor(), torch::Tensor(), bias});
      expect_close(y, torch::matmul(a, w.t()) + bias, 1e-2);
    }
    EXPECT_THAT(error_of(made, {a, b, scales, zeros, a, bias}), HasSubstr("reordered weights"));
  }
  EXPECT_THAT(
      error_of(
          contrib_node("MatMulNBits", 3,
                       {{"K", int64_t{1} << 40}, {"N", int64_t{1} << 40}, {"block_size", block}}),
          {torch::rand({1, 2}), torch::zeros({1}, torch::kByte), torch::rand({1})}),
      HasSubstr("MatMulNBits node 'it'"));
}

// Each product within a step of 8 bits of the plain one: so are the states.
TEST(Contrib, LstmWithWeightsOfEightBits) {
  torch::manual_seed(6);
  const int64_t hidden = 5, inputs = 4;
  const torch::Tensor w = torch::randint(-100, 100, {2, inputs, 4 * hidden}, torch::kChar);
  const torch::Tensor r = torch::randint(-100, 100, {2, hidden, 4 * hidden}, torch::kChar);
  const torch::Tensor bias = torch::randn({2, 8 * hidden}) * 0.2, x = torch::randn({6, 1, inputs});
  const torch::Tensor scale = torch::tensor({0.01f, 0.02f}),
                      zero = torch::tensor({3, -2}, torch::kChar);
  const std::map<std::string, Attribute> attributes = {{"hidden_size", hidden},
                                                       {"direction", std::string("bidirectional")}};
  Node made = contrib_node("DynamicQuantizeLSTM", 12, attributes);
  const torch::Tensor y = run(made, {x, w, r, bias, {}, {}, {}, {}, scale, zero, scale, zero});
  const auto plain = [&](const torch::Tensor& q) {
    const torch::Tensor centred = q.to(torch::kFloat) - zero.to(torch::kFloat).view({2, 1, 1});
    return (centred * scale.view({2, 1, 1})).transpose(1, 2).contiguous();
  };
  const torch::Tensor expected = run(node("LSTM", 4, attributes), {x, plain(w), plain(r), bias});
  expect_close(y, expected, 0.15);
  EXPECT_GT((y - expected).abs().max().item<double>(), 0);
  EXPECT_THAT(error_of(made, {x, w, r, bias, {}, {}, {}, {}, {}, zero, scale, zero}),
              HasSubstr("a scale is absent"));
}

}  // namespace
}  // namespace fcp
