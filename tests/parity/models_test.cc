// Trained networks: the accuracy their makers measured, and cutting them. The longer ones are in
// models_slow_test.cc.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_writer.h"

#include "tests/parity/real_models.h"

namespace fcp {
namespace {

class Models : public testing::Test {
 protected:
  void SetUp() override {
    if (data_folder().empty()) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  }
  torch::NoGradGuard no_grad_;
};

TEST_F(Models, ImageNetHeadHasItsAccuracy) {
  const Network head(read_onnx(model_path("imagenet_resnet50_head")));
  const std::string folder = data_folder() + "/imagenet_val5000";
  const torch::Tensor features = read_tensor(folder + "/resnet50_features.npy").to(torch::kFloat);
  const torch::Tensor labels = read_tensor(folder + "/labels.npy");
  const torch::Tensor logits = head.forward(features);
  EXPECT_EQ(count_correct(logits, labels, 1), 3782);  // 75.64 % of 5,000
  EXPECT_EQ(count_correct(logits, labels, 5), 4608);  // 92.16 %
}

TEST_F(Models, SegmentationIsHeadAfterBackbone) {
  const Graph graph = read_onnx(model_path("cityscapes_fcn_resnet50"));
  torch::manual_seed(0);
  const torch::Tensor image = torch::randn({1, 3, 256, 512});
  const torch::Tensor whole = Network(graph).forward(image);
  EXPECT_EQ(whole.sizes(), (std::vector<int64_t>{1, 20, 256, 512}));
  EXPECT_TRUE(whole.isfinite().all().item<bool>());
  for (const std::string tensor : {"feature", "logits"}) {
    SCOPED_TRACE(tensor);
    const CutGraph parts = cut(graph, tensor);
    const torch::Tensor feature = Network(parts.backbone).forward(image);
    EXPECT_LT(relative_error(Network(parts.head).forward(feature), whole), 1e-5);
  }
}

TEST_F(Models, WritingAndReadingAgainIsByteIdentical) {
  for (const std::string name : {"cifar10_resnet20", "cifar10_resnet56", "cityscapes_fcn_resnet50",
                                 "imagenet_resnet50_head", "imagenet_squeezenet11"}) {
    SCOPED_TRACE(name);
    const std::string once = serialize_onnx(read_onnx(model_path(name)));
    EXPECT_TRUE(once == serialize_onnx(parse_onnx(once, name)));
  }
}

}  // namespace
}  // namespace fcp
