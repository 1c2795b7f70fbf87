// LSTM, GRU and RNN against libtorch's own cells, and their options against what they mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/nn/ops/op_testing.h"

namespace fcp {
namespace {

using testing::HasSubstr;

struct Weights {
  torch::Tensor w, r, b;
};

Weights random_weights(int64_t directions, int64_t gates, int64_t inputs, int64_t hidden) {
  return {random_tensor({directions, gates * hidden, inputs}),
          random_tensor({directions, gates * hidden, hidden}),
          random_tensor({directions, 2 * gates * hidden})};
}

// libtorch orders gates i f g o (LSTM) and r z n (GRU), ONNX i o f c and z r h.
torch::Tensor reorder(const torch::Tensor& x, const std::vector<int64_t>& order) {
  const auto parts = x.chunk(static_cast<int64_t>(order.size()), 0);
  Tensors result;
  for (const int64_t i : order) result.push_back(parts[static_cast<size_t>(i)]);
  return torch::cat(result);
}

Tensors flat_weights(const Weights& weights, const std::vector<int64_t>& order) {
  Tensors flat;
  for (int64_t d = 0; d < weights.w.size(0); ++d) {
    const auto biases = weights.b[d].chunk(2);
    for (const torch::Tensor& each : {weights.w[d], weights.r[d], biases[0], biases[1]}) {
      flat.push_back(reorder(each, order));
    }
  }
  return flat;
}

TEST(Recurrent, BothDirectionsAreThoseOfLibtorch) {
  const torch::Tensor x = random_tensor({5, 3, 4});  // T, N, I
  const torch::Tensor h = random_tensor({2, 3, 6}), c = random_tensor({2, 3, 6});
  const std::map<std::string, Attribute> both = {{"direction", std::string("bidirectional")},
                                                 {"hidden_size", int64_t{6}}};
  const Weights lstm = random_weights(2, 4, 4, 6);
  const Tensors found = make_op(node("LSTM", 7, both), 17)
                            ->forward({x, lstm.w, lstm.r, lstm.b, torch::Tensor(), h, c});
  const auto [y, yh, yc] =
      torch::lstm(x, {h, c}, flat_weights(lstm, {0, 2, 3, 1}), true, 1, 0, false, true, false);
  expect_close(found[0].transpose(1, 2).flatten(2), y);
  expect_close(found[1], yh);
  expect_close(found[2], yc);

  const Weights gru = random_weights(2, 3, 4, 6);
  std::map<std::string, Attribute> attributes = both;
  attributes["linear_before_reset"] = int64_t{1};
  const Tensors gated = make_op(node("GRU", 6, attributes), 17)
                            ->forward({x, gru.w, gru.r, gru.b, torch::Tensor(), h});
  const auto [z, zh] =
      torch::gru(x, h, flat_weights(gru, {1, 0, 2}), true, 1, 0, false, true, false);
  expect_close(gated[0].transpose(1, 2).flatten(2), z);
  expect_close(gated[1], zh);
}

TEST(Recurrent, AnEndedSequenceKeepsItsState) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    SCOPED_TRACE(direction);
    const int64_t count = direction[0] == 'b' ? 2 : 1;
    const torch::Tensor x = random_tensor({5, 2, 4});
    const Weights weights = random_weights(count, 1, 4, 3);
    const auto op = make_op(node("RNN", 5, {{"direction", std::string(direction)}}), 17);
    const torch::Tensor lengths = torch::tensor({5, 3}, torch::kInt);
    const Tensors whole = op->forward({x, weights.w, weights.r, weights.b, lengths});
    const Tensors alone = op->forward(
        {x.narrow(0, 0, 3).narrow(1, 1, 1), weights.w, weights.r, weights.b, torch::Tensor()});
    expect_close(whole[0].narrow(0, 0, 3).narrow(2, 1, 1), alone[0]);
    expect_close(whole[1].narrow(1, 1, 1), alone[1]);
    EXPECT_FALSE(whole[0].narrow(0, 3, 2).narrow(2, 1, 1).any().item<bool>());
  }
}

TEST(Recurrent, LayoutsClippingAndActivations) {
  const torch::Tensor x = random_tensor({5, 2, 4});
  const Weights weights = random_weights(1, 4, 4, 3);
  const Tensors usual = make_op(node("LSTM", 4), 17)->forward({x, weights.w, weights.r, weights.b});
  const Tensors turned = make_op(node("LSTM", 4, {{"layout", int64_t{1}}}), 17)
                             ->forward({x.transpose(0, 1), weights.w, weights.r, weights.b});
  expect_close(turned[0].permute({1, 2, 0, 3}), usual[0]);
  expect_close(turned[1].transpose(0, 1), usual[1]);
  const Node named =
      node("LSTM", 4,
           {{"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}}, {"clip", 1e6f}});
  expect_close(run(named, {x, weights.w, weights.r, weights.b}), usual[0]);
  const Node hard = node("RNN", 4,
                         {{"activations", std::vector<std::string>{"Affine"}},
                          {"activation_alpha", std::vector<float>{2}},
                          {"activation_beta", std::vector<float>{1}},
                          {"clip", 0.25f}});
  const Weights one = random_weights(1, 1, 4, 3);
  const torch::Tensor y = run(hard, {x * 100, one.w, one.r, one.b});
  EXPECT_TRUE((y >= 0.5).logical_and(y <= 1.5).all().item<bool>());
  EXPECT_TRUE((y == 1.5).any().item<bool>());
}

// Float32 cells run by loops of our own, whose rows do not see each other: every kind and
// direction, a hidden size that fills no vector, more rows than go at once.
TEST(Recurrent, FloatRowsAreThoseOfDoublesAndDoNotSeeEachOther) {
  struct Kind {
    const char* op;
    int64_t gates;
    std::map<std::string, Attribute> attributes;
  };
  for (const Kind& kind :
       {Kind{"LSTM", 4, {}}, Kind{"GRU", 3, {}},
        Kind{"GRU", 3, {{"linear_before_reset", int64_t{1}}}}, Kind{"RNN", 1, {}}}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const int64_t count = std::string(direction) == "bidirectional" ? 2 : 1, hidden = 19;
      std::map<std::string, Attribute> attributes = kind.attributes;
      attributes["direction"] = std::string(direction);
      const std::unique_ptr<Op> op = make_op(node(kind.op, 6, attributes), 17);
      const Weights weights = random_weights(count, kind.gates, 5, hidden);
      const Tensors exact = {
          random_tensor({7, 101, 5}),         weights.w, weights.r, weights.b, torch::Tensor(),
          random_tensor({count, 101, hidden})};
      Tensors given;
      for (const torch::Tensor& each : exact) {
        given.push_back(each.defined() ? each.to(torch::kFloat) : each);
      }
      ASSERT_TRUE(op->batch_free(given, {false, true, true, true, true, false})) << kind.op;
      const Tensors found = op->forward(given), expected = op->forward(exact);
      expect_close(found[0].to(torch::kDouble), expected[0], 2e-5);
      expect_close(found[1].to(torch::kDouble), expected[1], 2e-5);
      for (const int64_t row : {0, 47, 48, 100}) {
        Tensors one = given;
        one[0] = given[0].narrow(1, row, 1);
        one[5] = given[5].narrow(1, row, 1);
        const Tensors alone = op->forward(one);
        EXPECT_TRUE(torch::equal(alone[0], found[0].narrow(2, row, 1))) << kind.op << row;
        EXPECT_TRUE(torch::equal(alone[1], found[1].narrow(1, row, 1))) << kind.op << row;
      }
      Tensors wanted = given;
      wanted[0] = given[0].clone().requires_grad_();
      const torch::Tensor with = op->forward(wanted)[0];
      EXPECT_TRUE(torch::equal(with, found[0]));
      with.sum().backward();
      EXPECT_GT(wanted[0].grad().abs().sum().item<double>(), 0);
    }
  }
}

// What the loops do not take runs row by row.
TEST(Recurrent, OtherCellsAreNotBatchFree) {
  const Weights exact = random_weights(1, 4, 4, 3);
  const Tensors inputs = {torch::Tensor(), exact.w.to(torch::kFloat), exact.r.to(torch::kFloat),
                          exact.b.to(torch::kFloat)};
  // The inputs from the fifth on are absent but for the last, which varies.
  const auto is_free = [&](const std::map<std::string, Attribute>& attributes, size_t count = 4) {
    Tensors all = inputs;
    all.resize(count);
    std::vector<bool> constant(count, true);
    constant[0] = false;
    if (count > 4) constant[count - 1] = false;
    return make_op(node("LSTM", count, attributes), 17)->batch_free(all, constant);
  };
  EXPECT_TRUE(is_free({}));
  EXPECT_FALSE(is_free({}, 5));  // sequence lengths
  EXPECT_TRUE(is_free({}, 6));   // a state
  EXPECT_FALSE(is_free({}, 8));  // peepholes
  EXPECT_FALSE(is_free({{"clip", 3.0f}}));
  EXPECT_FALSE(is_free({{"input_forget", int64_t{1}}}));
  EXPECT_FALSE(is_free({{"activations", std::vector<std::string>{"HardSigmoid", "Tanh", "Tanh"}}}));
  EXPECT_FALSE(make_op(node("LSTM", 4), 17)->batch_free(inputs, {false, true, false, true}));
}

TEST(Recurrent, HasGradientsAndMessages) {
  const torch::Tensor x = random_tensor({3, 2, 4});
  for (const auto& [op, gates] :
       std::map<std::string, int64_t>{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    const Weights weights = random_weights(1, gates, 4, 3);
    expect_gradient(node(op, 4), {x, weights.w, weights.r, weights.b});
    EXPECT_THAT(error_of(node(op, 4), {x, weights.w, weights.r, weights.b.narrow(1, 0, 3)}),
                HasSubstr("B has shape [1, 3]"));
    EXPECT_THAT(error_of(node(op, 4, {{"direction", std::string("up")}}),
                         {x, weights.w, weights.r, weights.b}),
                HasSubstr("attribute 'direction' is 'up'"));
  }
}

}  // namespace
}  // namespace fcp
