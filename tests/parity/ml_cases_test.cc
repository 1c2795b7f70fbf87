// Models of scikit-learn, LightGBM and XGBoost, exported to ONNX, and operators of domain
// com.microsoft give ONNX Runtime's answers (make_ml_cases.py, make_contrib_cases.py), and so do
// quantised networks but for one step.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/parity/goldens.h"

namespace fcp {
namespace {

// Labels are equal, numbers within 1e-4. ONNX Runtime sums trees in single precision.
void expect_answers(const nlohmann::json& entry, const Network& network, const Tensors& found,
                    const std::string& folder) {
  for (size_t k = 0; k < entry["outputs"].size(); ++k) {
    const torch::Tensor expected = read_tensor(concat(folder, "/output_", k, ".npy"));
    const std::string name = entry["outputs"][k];
    const auto& outputs = network.outputs();
    const auto place = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    ASSERT_NE(place, outputs.end()) << name;
    const torch::Tensor& answer = found[static_cast<size_t>(place - outputs.begin())];
    ASSERT_EQ(answer.sizes(), expected.sizes()) << name;
    EXPECT_TRUE(torch::allclose(answer.to(torch::kDouble), expected.to(torch::kDouble), 1e-4, 1e-4))
        << name << ": largest difference "
        << (answer.to(torch::kDouble) - expected.to(torch::kDouble)).abs().max().item<double>();
  }
}

void expect_cases(const nlohmann::json& index, const std::string& root) {
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : index) {
    const std::string name = entry["name"], folder = root + "/" + name;
    SCOPED_TRACE(name);
    try {
      const Graph graph = read_onnx(folder + "/model.onnx");
      const Network network(graph);
      Tensors inputs;
      for (size_t k = 0; k < entry["inputs"].size(); ++k) {
        inputs.push_back(read_tensor(concat(folder, "/input_", k, ".npy")));
      }
      expect_answers(entry, network, network.run(inputs), folder);
      const Network again(parse_onnx(serialize_onnx(graph), "again"));
      EXPECT_TRUE(torch::equal(again.run(inputs).back(), network.run(inputs).back()));
    } catch (const std::exception& problem) {
      ADD_FAILURE() << problem.what();
    }
  }
}

TEST(MlCases, AnswersAreThoseOfOnnxRuntime) {
  const std::string root = goldens_folder("ml");
  const nlohmann::json index = read_index(root);
  if (index.is_null()) GTEST_SKIP() << "no cases in " << root << "; see make_ml_cases.py";
  ASSERT_GT(index.size(), 25u);
  expect_cases(index, root);
}

TEST(ContribCases, AnswersAreThoseOfOnnxRuntime) {
  const std::string root = goldens_folder("contrib");
  const nlohmann::json index = read_index(root);
  if (index.is_null()) GTEST_SKIP() << "no cases in " << root << "; see make_contrib_cases.py";
  ASSERT_GT(index["nodes"].size(), 20u);
  expect_cases(index["nodes"], root);
}

// Random networks run in bytes alone; a number whose sum lies on the edge of two steps may fall on
// either side.
TEST(QuantizedNetworks, AnswersAreWithinOneStepOfOnnxRuntime) {
  const torch::NoGradGuard no_gradients;
  const std::string root = goldens_folder("contrib");
  const nlohmann::json index = read_index(root);
  if (index.is_null()) GTEST_SKIP() << "no cases in " << root << "; see make_contrib_cases.py";
  ASSERT_GT(index["quantized"].size(), 50u);
  int64_t off = 0, all = 0;
  for (const auto& entry : index["quantized"]) {
    const std::string name = entry["name"], folder = root + "/" + name;
    SCOPED_TRACE(name);
    const Network network(read_onnx(folder + "/model.onnx"));
    std::vector<std::string> ran;
    const auto note = [&](const Step& step, const Tensors&, const Tensors&) {
      ran.push_back(step.node.op);
    };
    const torch::Tensor expected = read_tensor(folder + "/output_0.npy");
    const torch::Tensor x = read_tensor(folder + "/input_0.npy");
    const torch::Tensor found = network.run_fused({x}, note)[0];
    ASSERT_EQ(found.sizes(), expected.sizes());
    EXPECT_TRUE(found.is_contiguous());
    EXPECT_TRUE(torch::equal(network.run({x.narrow(0, 1, 1)})[0], found.narrow(0, 1, 1)));
    EXPECT_LE((found - expected).abs().max().item<float>(), 1);
    EXPECT_GT(expected.max().item<float>() - expected.min().item<float>(), 100);
    off += (found != expected).sum().item<int64_t>();
    all += found.numel();
    for (const char* op : {"Conv", "Gemm", "MatMul", "Relu", "Clip"}) {
      EXPECT_EQ(std::count(ran.begin(), ran.end(), op), 0) << testing::PrintToString(ran);
    }
    EXPECT_EQ(std::count(ran.begin(), ran.end(), "QuantizeLinear"), 1)
        << testing::PrintToString(ran);
  }
  EXPECT_LE(off, all / 1000) << "of " << all;
}

}  // namespace
}  // namespace fcp
