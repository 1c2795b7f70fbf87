// The trained networks have the accuracy that was measured for them in PyTorch.
#include <filesystem>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/data/images/image_list.h"

#include "tests/parity/real_models.h"

namespace fcp {
namespace {

// [N, H, W, 3] bytes to [N, 3, H, W], normalised as in training.
torch::Tensor normalize(const torch::Tensor& images) {
  const torch::Tensor mean = torch::tensor({0.485, 0.456, 0.406}, torch::kFloat);
  const torch::Tensor deviation = torch::tensor({0.229, 0.224, 0.225}, torch::kFloat);
  return ((images.to(torch::kFloat) / 255 - mean) / deviation).permute({0, 3, 1, 2}).contiguous();
}

int64_t count_correct_cifar(const std::string& model) {
  const torch::NoGradGuard no_grad;
  const Network network(read_onnx(model_path(model)));
  const torch::Tensor images = read_tensor(data_folder() + "/cifar10_test/images.npy");
  const torch::Tensor labels = read_tensor(data_folder() + "/cifar10_test/labels.npy");
  int64_t correct = 0;
  constexpr int64_t kBatch = 250;
  for (int64_t first = 0; first < images.size(0); first += kBatch) {
    const torch::Tensor logits = network.forward(normalize(images.narrow(0, first, kBatch)));
    correct += count_correct(logits, labels.narrow(0, first, kBatch), 1);
  }
  return correct;
}

TEST(ModelsSlow, CifarResNet20HasItsAccuracy) {
  if (data_folder().empty()) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  EXPECT_EQ(count_correct_cifar("cifar10_resnet20"), 9173);  // 91.73 %
}

TEST(ModelsSlow, CifarResNet56HasItsAccuracy) {
  if (data_folder().empty()) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  EXPECT_EQ(count_correct_cifar("cifar10_resnet56"), 9339);  // 93.39 %
}

TEST(ModelsSlow, SqueezeNetHasItsAccuracy) {
  if (data_folder().empty()) GTEST_SKIP() << "FCP_DATA_DIR is not set";
  const torch::NoGradGuard no_grad;
  const Network network(read_onnx(model_path("imagenet_squeezenet11")));
  const auto images = open_images(data_folder() + "/imagenet_val1000/labels.csv",
                                  {.transform = {.resize = 0, .crop = 224}});
  int64_t top_1 = 0, top_5 = 0;
  for (Rows batch; images->next(50, batch);) {
    const torch::Tensor logits =
        network.forward(torch::from_blob(batch.x.values.data(), batch.x.shape));
    const torch::Tensor truth =
        torch::from_blob(batch.y.values.data(), batch.x.shape[0]).to(torch::kLong);
    top_1 += count_correct(logits, truth, 1);
    top_5 += count_correct(logits, truth, 5);
  }
  // 51.80 % and 75.40 % of 1,000; JPEG decoders differ by a grey level here and there.
  EXPECT_NEAR(static_cast<double>(top_1), 518, 3);
  EXPECT_NEAR(static_cast<double>(top_5), 754, 3);
}

// Images, labels and PyTorch's classes are made by make_segmentation.py.
TEST(ModelsSlow, SegmentationIsThatOfPyTorch) {
  const std::string folder = FCP_PARITY_DIR "/segmentation/";
  if (data_folder().empty() || !std::filesystem::exists(folder + "stamp.txt")) {
    GTEST_SKIP() << "FCP_DATA_DIR is not set, or make_segmentation.py was skipped";
  }
  const torch::NoGradGuard no_grad;
  const Network network(read_onnx(model_path("cityscapes_fcn_resnet50")));
  const torch::Tensor images = read_tensor(folder + "images.npy");
  const torch::Tensor labels = read_tensor(folder + "labels.npy");
  const torch::Tensor expected = read_tensor(folder + "classes.npy");
  torch::Tensor classes = torch::empty_like(expected);
  for (int64_t i = 0; i < images.size(0); ++i) {
    const torch::Tensor output = network.forward(normalize(images.narrow(0, i, 1)));
    classes[i] = output[0].narrow(0, 1, 19).argmin(0) + 1;  // channel 0 is not a class
  }
  const auto share = [](const torch::Tensor& of) {
    return of.to(torch::kDouble).mean().item<double>();
  };
  EXPECT_GE(share(classes == expected), 0.9999);
  // PyTorch has 92.43 % of the labelled pixels right on these 20 images, 92.90 % on 300.
  const torch::Tensor labelled = labels > 0;
  EXPECT_NEAR(share((classes == labels).masked_select(labelled)), 0.9243, 0.0005);
}

}  // namespace
}  // namespace fcp
