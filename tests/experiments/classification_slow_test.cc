// Label sets over the ImageNet ResNet-50 features: the figures of docs/results.md hold up.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "fcp/data/npy.h"
#include "fcp/nn/graph/onnx_reader.h"

#include "apps/experiments/classification.h"

namespace fcp {
namespace {

torch::Tensor tensor_of(const std::string& path) {
  const Array array = read_npy(path);
  torch::Tensor tensor = torch::empty(array.shape, torch::kFloat);
  std::copy(array.values.begin(), array.values.end(), tensor.data_ptr<float>());
  return tensor;
}

TEST(ClassificationSlow, MarginWithRankTermIsSmallerThanRapsOnImageNet) {
  const char* folder = std::getenv("FCP_DATA_DIR");
  if (folder == nullptr) GTEST_SKIP() << "FCP_DATA_DIR is not set: no ImageNet features";
  const std::string data_dir = folder;
  ClassificationData data;
  data.head = std::make_shared<const Network>(
      read_onnx(data_dir + "/../models/imagenet_resnet50_head.onnx"));
  data.features = tensor_of(data_dir + "/imagenet_val5000/resnet50_features.npy");
  data.labels = tensor_of(data_dir + "/imagenet_val5000/labels.npy").to(torch::kLong).flatten();
  ClassificationOptions options;
  options.methods = {"raps", "feature_margin+rank"};
  options.levels = {Level(0.1)};
  struct Means {
    double size = 0, coverage = 0, worst_stratum = 0;
    int halvings = 0;
  } raps, margin;
  for (const ClassificationCell& cell : run_classification(data, options)) {
    ASSERT_EQ(cell.failed, "");
    Means& means = cell.method == "raps" ? raps : margin;
    means.size += cell.size / 20;
    means.coverage += cell.coverage / 20;
    means.worst_stratum += cell.worst_stratum / 20;
    ++means.halvings;
  }
  EXPECT_EQ(margin.halvings, 20);
  EXPECT_LT(margin.size, 2.35);
  EXPECT_LT(margin.size, 0.9 * raps.size);
  EXPECT_GT(margin.worst_stratum, raps.worst_stratum);
  // One halving's coverage deviates by about 0.009, and the mean of 20 overlapping ones by less.
  EXPECT_NEAR(margin.coverage, 0.9, 0.045);
  EXPECT_NEAR(raps.coverage, 0.9, 0.045);
}

}  // namespace
}  // namespace fcp
