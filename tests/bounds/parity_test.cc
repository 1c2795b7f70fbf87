// Bounds against those of auto_LiRPA 0.2, in plain arithmetic.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "fcp/data/npz.h"

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

constexpr double kTolerance = 1e-5;

class BoundParity : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FCP_DATA_DIR");
    if (folder == nullptr) GTEST_SKIP() << "FCP_DATA_DIR is not set";
    folder_ = std::string(folder) + "/../golden/";
  }

  torch::Tensor golden(const std::string& name) const {
    const Array array = read_npz(folder_ + file_, name);
    return torch::tensor(array.values).view(array.shape);
  }

  // max |found − golden| of both ends; where `tighter`, an end may lie inside of the golden range.
  void compare(const std::shared_ptr<const Network>& head, const torch::Tensor& center,
               BoundMethod method, const std::string& name, Norm norm, double radius,
               bool tighter = false) const {
    BoundOptions options;
    options.method = method;
    options.outward = false;
    const Ball ball = {center, torch::full({center.size(0)}, radius), norm, {}};
    const Range found = make_bounds(head, options)->ranges(ball)[0];
    const torch::Tensor lower = golden(name + "_lb") - found.lower;
    const torch::Tensor upper = found.upper - golden(name + "_ub");
    const double outside = std::max(lower.max().item<double>(), upper.max().item<double>());
    const double inside = -std::min(lower.min().item<double>(), upper.min().item<double>());
    RecordProperty(name, std::to_string(std::max(outside, inside)));
    EXPECT_LT(outside, kTolerance) << name;
    if (!tighter) {
      EXPECT_LT(inside, kTolerance) << name;
    }
  }

  std::string folder_, file_;
};

TEST_F(BoundParity, PerceptronHeadOfTheCommunityData) {
  file_ = "com_seed0.npz";
  Graph graph = make_mlp({64, 64, 1});
  for (const char* number : {"0", "1"}) {
    const std::string to = std::to_string(std::stoi(number) + 1);
    graph.initializers["w" + to] = golden(std::string("g_W") + number);
    graph.initializers["b" + to] = golden(std::string("g_b") + number).reshape({-1});
  }
  const auto head = head_of(graph);
  const torch::Tensor z = golden("z_pred64");
  EXPECT_LT((head->forward(z) - golden("y_pred64").view({64, 1})).abs().max().item<double>(), 1e-5);
  const std::vector<std::pair<BoundMethod, std::string>> methods = {
      {BoundMethod::kIbp, "ibp"},
      {BoundMethod::kCrown, "crown"},
      {BoundMethod::kCrownIbp, "crownibp"}};
  for (const auto& [method, name] : methods) {
    compare(head, z, method, name + "_inf_0.05", Norm::kInf, 0.05);
    compare(head, z, method, name + "_inf_0.2", Norm::kInf, 0.2);
    compare(head, z, method, name + "_inf_0.5", Norm::kInf, 0.5);
    compare(head, z, method, name + "_l2_0.2", Norm::kTwo, 0.2);
  }
  compare(head, z, BoundMethod::kAlphaCrown, "acrown_inf_0.2", Norm::kInf, 0.2);
}

// In plain arithmetic our ℓ2 interval of a convolution knows the zero padding, theirs does not.
TEST_F(BoundParity, ConvolutionalHead) {
  file_ = "conv_head.npz";
  Graph graph;
  graph.inputs = {make_info("z", {kDynamic, 8, 6, 10})};
  graph.outputs = {make_info("y")};
  for (const char* name : {"conv0_W", "bn_weight", "bn_bias", "bn_running_mean", "bn_running_var",
                           "conv1_W", "conv1_b"}) {
    graph.initializers[name] = golden(name);
  }
  const torch::Tensor z = golden("z");
  graph.nodes = {
      make_node("Conv", {"z", "conv0_W"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}),
      make_node("BatchNormalization",
                {"c", "bn_weight", "bn_bias", "bn_running_mean", "bn_running_var"}, {"n"},
                {{"epsilon", 1e-5f}}),
      make_node("Relu", {"n"}, {"r"}),
      make_node("Conv", {"r", "conv1_W", "conv1_b"}, {"y"}),
  };
  for (const bool fold : {true, false}) {
    NetworkOptions options;
    options.fold_batch_norm = fold;
    const auto head = std::make_shared<const Network>(graph, options);
    EXPECT_LT((head->forward(z) - golden("y")).abs().max().item<double>(), 1e-5);
    compare(head, z, BoundMethod::kIbp, "ibp_inf_0.1", Norm::kInf, 0.1);
    compare(head, z, BoundMethod::kCrown, "crown_inf_0.1", Norm::kInf, 0.1);
    compare(head, z, BoundMethod::kCrownIbp, "crownibp_inf_0.1", Norm::kInf, 0.1);
    compare(head, z, BoundMethod::kIbp, "ibp_l2_0.2", Norm::kTwo, 0.2, /*tighter=*/true);
    compare(head, z, BoundMethod::kCrown, "crown_l2_0.2", Norm::kTwo, 0.2);
    compare(head, z, BoundMethod::kCrownIbp, "crownibp_l2_0.2", Norm::kTwo, 0.2, /*tighter=*/true);
  }
}

}  // namespace
}  // namespace fcp
