#include "fcp/predictor/network_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/export/export.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/predictor_core.h"

#include "tests/calibrate/memory_rows.h"
#include "tests/nn/graphs.h"
#include "tests/support/files.h"
#include "tests/support/zip.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kInputRows = 60, kLength = 3;

std::string npy_bytes(const torch::Tensor& tensor, const std::string& type) {
  std::string shape = "(";
  for (const int64_t size : tensor.sizes()) shape += std::to_string(size) + ", ";
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "), }";
  header.resize(118, ' ');
  const torch::Tensor plain = tensor.contiguous();
  return std::string("\x93NUMPY\x01\x00", 8) + little(118, 2) + header +
         std::string(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
}

class NetworkInputs : public ::testing::Test {
 protected:
  NetworkInputs() {
    torch::NoGradGuard no_grad;
    torch::manual_seed(1);
    graph_ = make_several_inputs();
    inputs_ = {torch::randint(0, 10, {kInputRows, kLength}, torch::kLong),
               torch::randn({kInputRows, 2}), torch::rand({kInputRows}) > 0.5};
    answer_ = Network(graph_).run(inputs_)[0];
    truth_ = answer_ + torch::randn_like(answer_);
  }

  std::string archive() {
    return folder_.write("rows.npz", zip({{"ids.npy", npy_bytes(inputs_[0], "<i8")},
                                          {"scale.npy", npy_bytes(inputs_[1], "<f4")},
                                          {"flag.npy", npy_bytes(inputs_[2], "|b1")},
                                          {"y.npy", npy_bytes(truth_, "<f4")}},
                                         {}));
  }

  // The columns in another order than the inputs.
  std::string table(const std::string& header) {
    std::string text = header + "\n";
    for (int64_t i = 0; i < kInputRows; ++i) {
      const auto number = [&](const torch::Tensor& value) {
        return concat(value.to(torch::kDouble).item<double>());
      };
      text += number(inputs_[2][i]) + "," + number(truth_[i][0]);
      for (int64_t k = 0; k < kLength; ++k) text += "," + number(inputs_[0][i][k]);
      for (int64_t k = 0; k < 2; ++k) text += "," + number(inputs_[1][i][k]);
      text += "\n";
    }
    return folder_.write("rows.csv", text);
  }

  CalibrationArtifact calibrated(const DataOptions& data, const std::string& score) {
    Graph network = graph_;
    pack_for_rows(data, network);
    const auto source = open_data(data, &network);
    CalibrateSettings settings;
    settings.method.score = score;
    return calibrate(network, *source, settings, {}).artifact;
  }

  Folder folder_;
  Graph graph_;
  Tensors inputs_;
  torch::Tensor answer_, truth_;
};

TEST_F(NetworkInputs, ComeFromAnArchiveAndGoIntoFilesAsTheyWere) {
  const DataOptions data{.data = archive(), .target = "y", .needs_target = true};
  for (const char* score : {"residual", "nested"}) {
    const CalibrationArtifact made = calibrated(data, score);
    write_artifact(made, folder_.path("c.onnx"));
    const Graph file = read_onnx(folder_.path("c.onnx"));
    ASSERT_EQ(file.inputs.size(), 3u);
    EXPECT_EQ(file.inputs[0].dimension_names[1], "length");
    const CalibrationArtifact artifact = read_artifact(folder_.path("c.onnx"));
    ASSERT_TRUE(is_packed(artifact.network));
    const auto source = open_data({.data = data.data, .target = ""}, &artifact.network);
    const Rows rows = read_all(*source);
    const internal::PredictorCore predictor(artifact, torch::kCPU);
    const Regions regions = predictor.region(predictor.describe(view(rows.x)), Level(0.1));
    EXPECT_TRUE(torch::allclose(regions.prediction, answer_.to(torch::kDouble), 1e-5, 1e-5));

    const Graph exported = export_artifact(artifact, {.levels = {Level(0.1)}});
    ASSERT_EQ(exported.inputs.size(), 3u);
    const Network network(exported);
    const Tensors outputs = network.run(inputs_);
    EXPECT_TRUE(torch::allclose(outputs[1].to(torch::kDouble), regions.lower, 1e-4, 1e-4)) << score;
    EXPECT_TRUE(torch::allclose(outputs[2].to(torch::kDouble), regions.upper, 1e-4, 1e-4)) << score;
  }
}

TEST_F(NetworkInputs, ComeFromColumnsByName) {
  const DataOptions arrays{.data = archive(), .target = "y"};
  Graph network = graph_;
  pack_for_rows(arrays, network);
  const Rows expected = read_all(*open_data(arrays, &network));
  const DataOptions columns{.data = table("flag,y,ids_0,ids_1,ids_2,scale_0,scale_1"),
                            .target = "y"};
  Graph by_columns = graph_;
  pack_for_rows(columns, by_columns);
  EXPECT_THAT(layout_of(by_columns)->places[0].shape, ElementsAre(kLength));
  const Rows found = read_all(*open_data(columns, &by_columns));
  ASSERT_EQ(found.x.shape, expected.x.shape);
  for (size_t i = 0; i < found.x.exact.size(); ++i) {
    EXPECT_NEAR(found.x.exact[i], expected.x.exact[i], 1e-4) << i;
  }
}

TEST_F(NetworkInputs, ComeFromColumnsInTheirOrder) {
  Graph network;
  network.inputs = {make_info("a", {kDynamic, 1}), make_info("b", {kDynamic, 2})};
  network.outputs = {make_info("y", {kDynamic, 2})};
  network.nodes = {make_node("Add", {"a", "b"}, {"y"})};
  const DataOptions data{.data = folder_.write("t.csv", "p,q,r\n1,2,3\n4,5,6\n"), .target = ""};
  pack_for_rows(data, network);
  const Rows rows = read_all(*open_data(data, &network));
  EXPECT_THAT(rows.x.values, ElementsAre(1, 2, 3, 4, 5, 6));
  const torch::Tensor y = Network(network).run({view(rows.x)})[0];
  EXPECT_TRUE(torch::equal(y, torch::tensor({{3.0f, 4.0f}, {9.0f, 10.0f}})));
}

TEST_F(NetworkInputs, WhatDoesNotFitIsNamed) {
  Graph network = graph_;
  EXPECT_THAT([&] { pack_for_rows({.data = table("f,y,a,b,c,d,e"), .target = "y"}, network); },
              ThrowsMessage<Error>(HasSubstr(
                  "the network has 3 inputs, found 6 columns; expected columns called after")));
  const std::string lone = folder_.write("x.npy", npy_bytes(inputs_[1], "<f4"));
  EXPECT_THAT([&] { pack_for_rows({.data = lone, .target = ""}, network); },
              ThrowsMessage<Error>(HasSubstr("holds one array, the network has 3 inputs")));
  const DataOptions data{.data = archive(), .target = "y"};
  pack_for_rows(data, network);
  inputs_[0] = torch::zeros({kInputRows, kLength + 1}, torch::kLong);
  const std::string longer = archive();
  EXPECT_THAT([&] { open_data({.data = longer, .target = ""}, &network); },
              ThrowsMessage<Error>(HasSubstr(
                  "entry 'ids': found rows of shape [4], expected [3] as in calibration")));
}

// y = id − 2^24 of one int64 input.
Graph network_of_ids() {
  Graph graph;
  graph.inputs = {make_info("id", {kDynamic, 1})};
  graph.inputs[0].type = ElementType::kInt64;
  graph.outputs = {make_info("y", {kDynamic, 1})};
  graph.initializers["base"] = torch::tensor({int64_t{1} << 24}, torch::kLong);
  graph.nodes = {make_node("Sub", {"id", "base"}, {"rest"}),
                 make_node("Cast", {"rest"}, {"y"}, {{"to", int64_t{1}}})};
  return graph;
}

TEST_F(NetworkInputs, IntegersKeepAllTheirDigits) {
  std::string text = "id,y\n";
  for (int i = 0; i < 40; ++i) text += concat((1 << 24) + i, ",", i, "\n");
  const DataOptions data{.data = folder_.write("ids.csv", text), .target = "y"};
  const Graph network = network_of_ids();
  const auto source = open_data(data, &network);
  CalibrateSettings settings;
  settings.method.score = "residual";
  const CalibrationArtifact artifact = calibrate(network, *source, settings, {}).artifact;
  EXPECT_EQ(artifact.radius(Level(0.1)).at(0), 0);  // every answer is right
}

TEST_F(NetworkInputs, NumbersThatAreNotOfTheTypeAreNamed) {
  const Graph network = network_of_ids();
  const auto complaint = [&](const std::string& cell) -> std::string {
    const std::string path = folder_.write("bad.csv", "id\n1\n" + cell + "\n");
    try {
      read_all(*open_data({.data = path, .target = ""}, &network));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint("2.5"), HasSubstr("bad.csv: row 1 (from 0), column 'id': found 2.5, "
                                          "expected a whole number of type int64 for the input "
                                          "'id'"));
  EXPECT_THAT(complaint("9007199254740993"),
              HasSubstr("found 9007199254740992, expected below 2^53, to be exact"));
  EXPECT_EQ(complaint("9007199254740991"), "");
  Graph narrow = network;
  narrow.inputs[0].type = ElementType::kUint8;
  EXPECT_THAT(
      [&] {
        read_all(
            *open_data({.data = folder_.write("b.csv", "id\n255\n256\n"), .target = ""}, &narrow));
      },
      ThrowsMessage<Error>(HasSubstr("found 256, expected a whole number of type uint8")));
}

}  // namespace
namespace {

using ::testing::ElementsAre;

std::unique_ptr<RowSource> two_pixels() {
  // Two rows of [3, 1, 2]: planes of red, green and blue.
  return std::make_unique<MemoryRows>(
      Array{{2, 3, 1, 2}, {1, 2, 3, 4, 5, 6, 7.0001f, 8, 9, 10, 11, 12}}, Array{});
}

TEST(ImageInputs, ChannelsComeLastWhereTheInputWantsThem) {
  const auto rows = images_for_input(two_pixels(), make_info("x", {kDynamic, 1, 2, 3}));
  EXPECT_THAT(rows->row_shape(), ElementsAre(1, 2, 3));
  Rows read;
  ASSERT_TRUE(rows->next(2, read));
  EXPECT_THAT(read.x.shape, ElementsAre(2, 1, 2, 3));
  EXPECT_THAT(read.x.values, ElementsAre(1, 3, 5, 2, 4, 6, 7.0001f, 9, 11, 8, 10, 12));
}

TEST(ImageInputs, PlanesAndPixels) {
  TensorInfo input = make_info("x", {kDynamic, 3, 1, 2});
  const auto same = images_for_input(two_pixels(), input);
  Rows read;
  ASSERT_TRUE(same->next(2, read));
  EXPECT_EQ(read.x.values[6], 7.0001f);
  input.type = ElementType::kUint8;
  EXPECT_TRUE(takes_pixels(input));
  const auto rounded = images_for_input(two_pixels(), input);
  ASSERT_TRUE(rounded->next(2, read));
  EXPECT_EQ(read.x.values[6], 7.0f);
}

}  // namespace
}  // namespace fcp
