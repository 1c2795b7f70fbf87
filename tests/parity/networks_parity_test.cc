// Networks exported from PyTorch give in fcp what they give in PyTorch: outputs, features at the
// cut, and gradients of the head. The references are made by make_networks.py.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/parity/goldens.h"

namespace fcp {
namespace {

constexpr double kForwardTolerance = 1e-4;
constexpr double kGradientTolerance = 1e-3;

class NetworksParity : public testing::Test {
 protected:
  void SetUp() override {
    index_ = read_index(folder_);
    if (index_.is_null()) GTEST_SKIP() << "no goldens in " << folder_ << "; see make_networks.py";
    ASSERT_GT(index_.size(), 60u);
  }

  // Calls check(name, folder of the network) for each network, those that cannot be cut included
  // where `all` is true. An exception is a failure of that network only.
  template <typename Check>
  void for_each_network(bool all, const Check& check) {
    for (const auto& entry : index_) {
      if (!all && !entry["separates"].get<bool>()) continue;
      const std::string name = entry["name"];
      SCOPED_TRACE(name);
      EXPECT_NO_THROW(check(name, folder_ + "/" + name));
    }
  }

  const std::string folder_ = goldens_folder("networks");
  nlohmann::json index_;
};

TEST_F(NetworksParity, OutputEqualsPyTorch) {
  const torch::NoGradGuard no_grad;
  for_each_network(true, [](const std::string&, const std::string& folder) {
    const Network network(read_onnx(folder + "/model.onnx"));
    const torch::Tensor found = network.forward(read_tensor(folder + "/input.npy"));
    EXPECT_LT(relative_error(found, read_tensor(folder + "/output.npy")), kForwardTolerance);
  });
}

TEST_F(NetworksParity, OutputEqualsPyTorchWithoutRewrites) {
  const torch::NoGradGuard no_grad;
  NetworkOptions options;
  options.fold_constants = false;
  options.fold_batch_norm = false;
  for_each_network(true, [&](const std::string&, const std::string& folder) {
    const Network network(read_onnx(folder + "/model.onnx"), options);
    const torch::Tensor found = network.forward(read_tensor(folder + "/input.npy"));
    EXPECT_LT(relative_error(found, read_tensor(folder + "/output.npy")), kForwardTolerance);
  });
}

// The files have a dynamic batch: the exporter saw more than one row, and one must do.
TEST_F(NetworksParity, OneRowAloneGivesItsRow) {
  const torch::NoGradGuard no_grad;
  for_each_network(true, [](const std::string&, const std::string& folder) {
    const Network network(read_onnx(folder + "/model.onnx"));
    const torch::Tensor found = network.forward(read_tensor(folder + "/input.npy").narrow(0, 0, 1));
    const torch::Tensor expected = read_tensor(folder + "/output.npy").narrow(0, 0, 1);
    EXPECT_LT(relative_error(found, expected), kForwardTolerance);
  });
}

TEST_F(NetworksParity, BackboneGivesTheFeatureAndHeadTheOutput) {
  const torch::NoGradGuard no_grad;
  for_each_network(false, [](const std::string&, const std::string& folder) {
    const CutGraph parts = cut(read_onnx(folder + "/model.onnx"), "feature");
    const torch::Tensor feature = read_tensor(folder + "/feature.npy");
    const torch::Tensor found = Network(parts.backbone).forward(read_tensor(folder + "/input.npy"));
    EXPECT_LT(relative_error(found, feature), kForwardTolerance);
    EXPECT_LT(
        relative_error(Network(parts.head).forward(feature), read_tensor(folder + "/output.npy")),
        kForwardTolerance);
  });
}

TEST_F(NetworksParity, GradientOfTheHeadEqualsPyTorch) {
  for_each_network(false, [](const std::string&, const std::string& folder) {
    const Network head(cut(read_onnx(folder + "/model.onnx"), "feature").head);
    const torch::Tensor v = read_tensor(folder + "/feature.npy").requires_grad_();
    const torch::Tensor weight = read_tensor(folder + "/weight.npy");
    (weight * head.forward(v)).sum().backward();
    ASSERT_TRUE(v.grad().defined());
    EXPECT_LT(relative_error(v.grad(), read_tensor(folder + "/gradient.npy")), kGradientTolerance);
  });
}

TEST_F(NetworksParity, SkipConnectionAroundTheCutIsRefused) {
  const Graph graph = read_onnx(folder_ + "/unet/model.onnx");
  EXPECT_TRUE(find_leak(graph, "feature").has_value());
  EXPECT_THROW(cut(graph, "feature"), Error);
}

// Also leaves the files for check_written.py, which asks ONNX whether they are sound.
TEST_F(NetworksParity, WritingAndReadingAgainIsByteIdentical) {
  const std::filesystem::path written = std::filesystem::path(FCP_PARITY_DIR) / "written/networks";
  std::filesystem::remove_all(written);
  std::filesystem::create_directories(written);
  for_each_network(true, [&](const std::string& name, const std::string& folder) {
    const Graph graph = read_onnx(folder + "/model.onnx");
    const std::string once = serialize_onnx(graph);
    EXPECT_TRUE(once == serialize_onnx(parse_onnx(once, "once")));
    constexpr size_t kSmall = 40 << 20;  // the large ones bring no operator that these do not have
    if (once.size() > kSmall) return;
    write_onnx(graph, written / (name + ".onnx"));
    if (!find_leak(graph, "feature")) {
      CutGraph parts = cut(graph, "feature");
      declare_feature(parts, {read_tensor(folder + "/input.npy")});
      write_onnx(parts.backbone, written / (name + ".backbone.onnx"));
      write_onnx(parts.head, written / (name + ".head.onnx"));
    }
  });
}

}  // namespace
}  // namespace fcp
