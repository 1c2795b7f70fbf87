// ibp: a larger radius never gives a smaller range, to the last bit.
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/random.h"

#include "tests/bounds/heads.h"
#include "tests/bounds/operators.h"

namespace fcp {
namespace {

std::vector<NamedGraph> monotone_heads() {
  std::vector<NamedGraph> heads = activated_heads({5, 7, 6, 2});
  heads.push_back({"residual", make_residual_network()});
  heads.push_back({"mixed", make_mixed_head()});
  heads.push_back({"softmax", single("Softmax", {6})});
  heads.push_back({"log-softmax", single("LogSoftmax", {6})});
  const torch::Tensor scale = torch::randn({6}), shift = torch::randn({6});
  heads.push_back({"LayerNormalization",
                   single("LayerNormalization", {2, 6}, {}, {{"a", scale}, {"b", shift}})});
  heads.push_back({"RMSNormalization", single("RMSNormalization", {6}, {}, {{"a", scale}}, 23)});
  heads.push_back(
      {"GroupNormalization", single("GroupNormalization", {6, 4}, {{"num_groups", int64_t{2}}},
                                    {{"a", scale}, {"b", shift}}, 21)});
  Graph product = single("MatMul", {3, 4});
  product.nodes.insert(product.nodes.begin(), make_node("Tanh", {"x"}, {"t"}));
  product.nodes.insert(
      product.nodes.begin() + 1,
      make_node("Transpose", {"t"}, {"u"}, {{"perm", std::vector<int64_t>{0, 2, 1}}}));
  product.nodes[2].inputs = {"x", "u"};
  heads.push_back({"MatMul of two", product});
  for (const char* op : {"Sin", "Cos", "Floor"}) heads.push_back({op, single(op, {6})});
  for (NamedGraph& each : attention_cases()) heads.push_back(std::move(each));
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSumExp"}) {
    heads.push_back({op, single(op, {6}, {{"axes", std::vector<int64_t>{1}}})});
  }
  return heads;
}

TEST(Monotone, IbpInTheRadius) {
  torch::manual_seed(4);
  Random random(5);
  int pairs = 0;
  for (const NamedGraph& named : monotone_heads()) {
    const auto head = head_of(named.graph);
    std::vector<int64_t> shape = head->inputs()[0].shape;
    constexpr int64_t kRows = 4;
    shape[0] = kRows;
    for (const bool outward : {false, true}) {
      BoundOptions options;
      options.outward = outward;
      const auto bounds = make_bounds(head, options);
      ASSERT_TRUE(bounds->monotone());
      for (const Norm norm : kAllNorms) {
        const torch::Tensor center = torch::randn(shape);
        for (int trial = 0; trial < 8; ++trial) {
          // From far apart to neighbours among the floats.
          const float small = static_cast<float>(std::exp(random.normal() * 2 - 2));
          const float large = trial % 2 == 0
                                  ? std::nextafter(small, 1e30f)
                                  : small * static_cast<float>(1 + random.uniform() * 1e-3);
          const Range inner = bounds->ranges({center, torch::full({kRows}, small), norm, {}})[0];
          const Range outer = bounds->ranges({center, torch::full({kRows}, large), norm, {}})[0];
          EXPECT_TRUE((outer.lower <= inner.lower).all().item<bool>() &&
                      (outer.upper >= inner.upper).all().item<bool>())
              << named.name << " norm " << norm_name(norm) << " radii " << small << " " << large
              << " outward " << outward;
          pairs += kRows;
        }
      }
    }
  }
  EXPECT_GT(pairs, 4000);
}

}  // namespace
}  // namespace fcp
