// The operators do what the ONNX specification says: ONNX's own test of each, and cases for older
// and newer operator sets (make_op_cases.py, opset_cases.py). Cases that fcp does not take are
// named in refused_cases.txt with the reason, and must be refused with an Error, never computed
// wrongly.
#include <algorithm>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/parity/goldens.h"

namespace fcp {
namespace {

// Case name to reason.
std::map<std::string, std::string> read_refused() {
  std::ifstream file(FCP_PARITY_REFUSED);
  std::map<std::string, std::string> refused;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    refused[line.substr(0, space)] = space == std::string::npos ? "" : line.substr(space + 1);
  }
  return refused;
}

class OpCases : public testing::Test {
 protected:
  void SetUp() override {
    index_ = read_index(folder_);
    if (index_.is_null()) GTEST_SKIP() << "no cases in " << folder_ << "; see make_op_cases.py";
    ASSERT_GT(index_.size(), 400u);
  }

  std::string file(const nlohmann::json& entry, const std::string& name) const {
    return folder_ + "/" + entry["name"].get<std::string>() + "/" + name;
  }

  Tensors arrays(const nlohmann::json& entry, const std::string& kind) const {
    Tensors tensors;
    for (size_t k = 0; k < entry[kind + "s"].size(); ++k) {
      tensors.push_back(read_tensor(file(entry, concat(kind, "_", k, ".npy"))));
    }
    return tensors;
  }

  Tensors compute(const nlohmann::json& entry) const {
    const torch::NoGradGuard no_grad;
    const Network network(read_onnx(file(entry, "model.onnx")));
    return network.run(arrays(entry, "input"));
  }

  const std::string folder_ = goldens_folder("ops");
  const std::map<std::string, std::string> refused_ = read_refused();
  nlohmann::json index_;
};

// Type, shape and values; NaN equals NaN. What a file has in 16 bits is computed in 32.
void expect_equal(const torch::Tensor& found, const torch::Tensor& expected) {
  const bool widened = expected.scalar_type() == torch::kHalf;
  ASSERT_EQ(found.scalar_type(), widened ? torch::kFloat : expected.scalar_type());
  ASSERT_EQ(found.sizes(), expected.sizes());
  const bool equal = torch::allclose(found.to(torch::kDouble), expected.to(torch::kDouble),
                                     widened ? 2e-3 : 1e-4, widened ? 1e-3 : 1e-6, true);
  EXPECT_TRUE(equal) << "found\n" << found << "\nexpected\n" << expected;
}

TEST_F(OpCases, ResultsAreThoseOfTheSpecification) {
  for (const auto& entry : index_) {
    const std::string name = entry["name"];
    if (refused_.count(name)) continue;
    SCOPED_TRACE(name);
    try {
      const Tensors found = compute(entry);
      const Tensors expected = arrays(entry, "output");
      EXPECT_EQ(found.size(), expected.size());
      for (size_t k = 0; k < std::min(found.size(), expected.size()); ++k) {
        expect_equal(found[k], expected[k]);
      }
    } catch (const std::exception& problem) {
      ADD_FAILURE() << problem.what();
    }
  }
}

TEST_F(OpCases, WhatIsNotSupportedIsRefused) {
  size_t seen = 0;
  for (const auto& entry : index_) {
    const std::string name = entry["name"];
    if (!refused_.count(name)) continue;
    ++seen;
    SCOPED_TRACE(name + " (" + refused_.at(name) + ")");
    EXPECT_FALSE(refused_.at(name).empty());
    EXPECT_THROW(compute(entry), Error);
  }
  EXPECT_EQ(seen, refused_.size()) << "refused_cases.txt names a case that does not exist";
}

// Also leaves the files for check_written.py.
TEST_F(OpCases, WritingAndReadingAgainIsByteIdentical) {
  const std::filesystem::path written = std::filesystem::path(FCP_PARITY_DIR) / "written/ops";
  std::filesystem::remove_all(written);
  std::filesystem::create_directories(written);
  for (const auto& entry : index_) {
    const std::string name = entry["name"];
    if (refused_.count(name)) continue;
    SCOPED_TRACE(name);
    try {
      const Graph graph = read_onnx(file(entry, "model.onnx"));
      const std::string once = serialize_onnx(graph);
      EXPECT_TRUE(once == serialize_onnx(parse_onnx(once, "once")));
      write_onnx(graph, written / (name + ".onnx"));
    } catch (const std::exception& problem) {
      ADD_FAILURE() << problem.what();
    }
  }
}

}  // namespace
}  // namespace fcp
