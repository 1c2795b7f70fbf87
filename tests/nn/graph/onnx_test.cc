#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_tensor.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::HasSubstr;

std::string complaint(const onnx::ModelProto& model, const std::string& folder = "") {
  try {
    parse_onnx(model.SerializeAsString(), "m.onnx", folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

onnx::ModelProto parsed(const Graph& graph) {
  onnx::ModelProto model;
  model.ParseFromString(serialize_onnx(graph));
  return model;
}

// Neither waits for a writer that never comes, nor reads gigabytes to refuse them.
TEST(Onnx, RefusesPipesAndHugeFilesUnread) {
  const Folder folder;
  const std::string pipe = folder.path("pipe.onnx"), huge = folder.path("huge.onnx");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message_of(folder, [&] { read_onnx(pipe); }),
            "pipe.onnx: not a regular file, expected an ONNX file");
  std::ofstream(huge).close();
  std::filesystem::resize_file(huge, uint64_t{1} << 42);  // a hole: takes no room
  EXPECT_EQ(message_of(folder, [&] { read_onnx(huge); }),
            "huge.onnx: has 4398046511104 bytes, more than an ONNX file can (2 GiB); store the "
            "weights as external data");
}

TEST(Onnx, WhatIsTooLargeToWriteNamesTheFile) {
  const Folder folder;
  Graph graph = make_mlp({2, 2});
  graph.initializers["many"] = torch::empty({int64_t{1} << 31}, torch::kByte);  // never touched
  const std::string path = folder.path("large.onnx");
  EXPECT_THAT(message_of(folder, [&] { write_onnx(graph, path); }),
              testing::AllOf(testing::StartsWith("large.onnx: the network has 2147483"),
                             HasSubstr("more than an ONNX file can (2 GiB)")));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Onnx, WritingAndReadingKeepsEverything) {
  torch::manual_seed(0);
  Graph graph = make_residual_network();
  graph.metadata = {{"key", "value"}, {"a", "b"}};
  graph.inputs[0].dimension_names[0] = "batch";
  graph.nodes[0].attributes["floats"] = std::vector<float>{1.5f, -2};
  graph.nodes[0].attributes["texts"] = std::vector<std::string>{"x", "y"};
  graph.nodes[0].attributes["tensor"] = torch::tensor({1, 2, 3}, torch::kInt);
  for (const torch::ScalarType type :
       {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
        torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    graph.initializers[concat("of type ", type)] = (torch::rand({2, 3}) * 100 - 20).abs().to(type);
  }
  graph.initializers["scalar"] = torch::tensor(3.5f);
  graph.initializers["empty"] = torch::zeros({0, 4});
  const std::string bytes = serialize_onnx(graph);
  const Graph again = parse_onnx(bytes, "again");
  EXPECT_EQ(serialize_onnx(again), bytes);
  EXPECT_EQ(parsed(graph).SerializeAsString(), bytes);  // protobuf would write no other
  EXPECT_EQ(again.metadata, graph.metadata);
  EXPECT_EQ(again.inputs[0].dimension_names[0], "batch");
  ASSERT_EQ(again.initializers.size(), graph.initializers.size());
  for (const auto& [name, tensor] : graph.initializers) {
    const torch::Tensor& other = again.initializers.at(name);
    EXPECT_EQ(other.scalar_type(), tensor.tensor().scalar_type()) << name;
    EXPECT_TRUE(torch::equal(other, tensor)) << name;
  }
}

TEST(Onnx, WeightsThatAreNoFiniteNumbersAreNamed) {
  for (const torch::ScalarType type : {torch::kFloat, torch::kDouble, torch::kHalf}) {
    Graph graph = make_mlp({2, 3, 1});
    const std::string name = graph.nodes[0].inputs[1];
    torch::Tensor weight = graph.initializers.at(name).tensor().to(type).contiguous();
    graph.initializers[name] = weight;
    EXPECT_EQ(complaint(parsed(graph)), "");
    weight.view(-1)[4] = -std::numeric_limits<double>::infinity();
    const std::string expected =
        concat("m.onnx: ", describe(graph.nodes[0]), ": its weight '", name);
    EXPECT_EQ(complaint(parsed(graph)),
              expected + "' is infinite at element 4 (from 0), expected a finite number");
    weight.view(-1)[2] = std::nan("");
    EXPECT_EQ(complaint(parsed(graph)),
              expected + "' is NaN at element 2 (from 0), expected a finite number");
  }
  // What no layer multiplies with may be infinite.
  Graph graph = make_mlp({2, 3, 1});
  graph.initializers["mask"] = torch::full({2}, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(complaint(parsed(graph)), "");
}

TEST(Onnx, TypedDataIsReadLikeRawData) {
  onnx::ModelProto model = parsed(make_mlp({2, 2, 1}));
  auto* graph = model.mutable_graph();
  const auto add = [&](const char* name, int type) {
    auto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->add_dims(2);
    return tensor;
  };
  auto* floats = add("float", onnx::TensorProto::FLOAT);
  floats->add_float_data(1.5f), floats->add_float_data(-2);
  auto* doubles = add("double", onnx::TensorProto::DOUBLE);
  doubles->add_double_data(1e300), doubles->add_double_data(-2);
  auto* halves = add("half", onnx::TensorProto::FLOAT16);
  halves->add_int32_data(0x3e00), halves->add_int32_data(0xc000);  // 1.5, -2
  auto* brains = add("bfloat", onnx::TensorProto::BFLOAT16);
  brains->add_int32_data(0x3fc0), brains->add_int32_data(0xc000);  // 1.5, -2
  auto* longs = add("long", onnx::TensorProto::INT64);
  longs->add_int64_data(int64_t{1} << 40), longs->add_int64_data(-2);
  auto* bytes = add("byte", onnx::TensorProto::UINT8);
  bytes->add_int32_data(200), bytes->add_int32_data(2);
  auto* flags = add("flag", onnx::TensorProto::BOOL);
  flags->add_int32_data(1), flags->add_int32_data(0);
  const Graph read = parse_onnx(model.SerializeAsString(), "m.onnx");
  const auto value = [&](const char* name) {
    return read.initializers.at(name).tensor().to(torch::kDouble);
  };
  const torch::Tensor expected = torch::tensor({1.5, -2.0}, torch::kDouble);
  EXPECT_TRUE(torch::equal(value("float"), expected));
  EXPECT_TRUE(torch::equal(value("half"), expected));
  EXPECT_TRUE(torch::equal(value("bfloat"), expected));
  EXPECT_TRUE(torch::equal(value("double"), torch::tensor({1e300, -2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(value("long"), torch::tensor({1099511627776.0, -2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(value("byte"), torch::tensor({200.0, 2.0}, torch::kDouble)));
  EXPECT_TRUE(torch::equal(value("flag"), torch::tensor({1.0, 0.0}, torch::kDouble)));
}

TEST(Onnx, DeclaredSizesAreCheckedBeforeAllocation) {
  onnx::ModelProto model = parsed(make_mlp({2, 2, 1}));
  auto* tensor = model.mutable_graph()->mutable_initializer(0);
  tensor->clear_dims();
  tensor->add_dims(int64_t{1} << 40);
  EXPECT_THAT(complaint(model), HasSubstr("its shape needs 4398046511104"));
  tensor->add_dims(int64_t{1} << 40);
  EXPECT_THAT(complaint(model), HasSubstr("its shape overflows"));
  tensor->add_dims(-1);
  EXPECT_THAT(complaint(model), HasSubstr(": "));
  tensor->clear_dims();
  tensor->add_dims(-3);
  EXPECT_THAT(complaint(model), HasSubstr("has a negative dimension -3"));
  tensor->clear_dims();
  tensor->add_dims(int64_t{1} << 40);
  tensor->clear_raw_data();
  EXPECT_THAT(complaint(model), HasSubstr("has 0 values, its shape needs 1099511627776"));
}

TEST(Onnx, FaultyFilesAreNamed) {
  const onnx::ModelProto good = parsed(make_mlp({2, 2, 1}));
  EXPECT_EQ(complaint(good), "");
  EXPECT_THROW(parse_onnx("this is no protobuf", "m.onnx"), Error);
  EXPECT_THROW(read_onnx("/nonexistent/m.onnx"), Error);

  onnx::ModelProto model = good;
  model.mutable_opset_import(0)->set_version(6);
  EXPECT_EQ(complaint(model), "m.onnx: uses ONNX operator set 6, supported are 7 to 24");
  model.mutable_opset_import(0)->set_version(25);
  EXPECT_EQ(complaint(model), "m.onnx: uses ONNX operator set 25, supported are 7 to 24");
  model.clear_opset_import();
  EXPECT_EQ(complaint(model), "m.onnx: not an ONNX model (it names no operator set)");
  model = good;
  model.clear_graph();
  EXPECT_EQ(complaint(model), "m.onnx: not an ONNX model (it has no graph)");
  model = good;
  model.mutable_graph()->mutable_initializer(0)->set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(complaint(model), HasSubstr("element type 8 is not supported"));
  model = good;
  auto* attribute = model.mutable_graph()->mutable_node(1)->add_attribute();
  attribute->set_name("body");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  EXPECT_EQ(complaint(model),
            "m.onnx: Relu node 'h1_node': in its 'body', the network has no output");
  attribute->set_type(onnx::AttributeProto::GRAPHS);
  EXPECT_EQ(complaint(model),
            "m.onnx: Relu node 'h1_node': attribute 'body' is of a type that is not supported");
  model = good;
  model.mutable_graph()->mutable_node(1)->set_input(0, "h1");
  EXPECT_EQ(complaint(model), "m.onnx: Relu node 'h1_node': is part of a cycle");
}

// As scikit-learn's classifiers are exported: labels that are strings, and probabilities in maps.
TEST(Onnx, MapsBecomeTensorsAndStringsAreLeftOut) {
  onnx::ModelProto model = parsed(make_mlp({3, 4, 2}));
  auto* graph = model.mutable_graph();
  auto* names = graph->add_initializer();
  names->set_name("names");
  names->set_data_type(onnx::TensorProto::STRING);
  names->add_dims(2);
  names->add_string_data("a");
  names->add_string_data("b");
  auto* label = graph->add_node();
  label->set_op_type("ArrayFeatureExtractor");
  label->set_domain("ai.onnx.ml");
  label->add_input("names");
  label->add_input("y");
  label->add_output("label");
  auto* zip = graph->add_node();
  zip->set_op_type("ZipMap");
  zip->set_domain("ai.onnx.ml");
  zip->add_input("y");
  zip->add_output("maps");
  auto* classes = zip->add_attribute();
  classes->set_name("classlabels_strings");
  classes->set_type(onnx::AttributeProto::STRINGS);
  classes->add_strings("a");
  classes->add_strings("b");
  graph->clear_output();
  auto* strings = graph->add_output();
  strings->set_name("label");
  strings->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  auto* maps = graph->add_output();
  maps->set_name("maps");
  maps->mutable_type()->mutable_sequence_type();
  auto* import = model.add_opset_import();
  import->set_domain("ai.onnx.ml");
  import->set_version(3);
  const Graph read = parse_onnx(model.SerializeAsString(), "m.onnx");
  ASSERT_EQ(read.outputs.size(), 1u);
  EXPECT_EQ(read.outputs[0].name, "maps");
  EXPECT_THAT(read.outputs[0].shape, testing::ElementsAre(kDynamic, 2));
  EXPECT_EQ(read.domains.at("ai.onnx.ml"), 3);
  EXPECT_EQ(Network(read).forward(torch::ones({5, 3})).sizes(), torch::IntArrayRef({5, 2}));
  EXPECT_EQ(parse_onnx(serialize_onnx(read), "again").domains, read.domains);

  graph->mutable_output()->DeleteSubrange(1, 1);
  EXPECT_THAT(complaint(model), HasSubstr("'label' has strings, expected numbers"));
}

// y = shape(x)[1] = 5 ? −z : z, where both branches read z from outside.
onnx::ModelProto model_with_if(int64_t asked, bool by_value) {
  Graph graph = make_mlp({5, 3});
  graph.nodes[0].outputs = {"z"};
  graph.initializers["one"] = torch::tensor(1, torch::kLong);
  graph.initializers["asked"] = torch::tensor(asked, torch::kLong);
  graph.nodes.push_back(make_node("Shape", {"x"}, {"shape"}));
  graph.nodes.push_back(make_node("Gather", {"shape", "one"}, {"columns"}));
  graph.nodes.push_back(make_node("Equal", {"columns", "asked"}, {"condition"}));
  if (by_value) {
    graph.nodes.push_back(make_node("ReduceMax", {"x"}, {"most"}, {{"keepdims", int64_t{0}}}));
    graph.nodes.push_back(make_node("IsNaN", {"most"}, {"missing"}));
  }
  graph.nodes.push_back(make_node("Identity", {"z"}, {"y"}));
  onnx::ModelProto model = parsed(graph);
  auto* node = model.mutable_graph()->mutable_node(model.graph().node_size() - 1);
  node->set_op_type("If");
  node->set_name("choice");
  node->set_input(0, by_value ? "missing" : "condition");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto* attribute = node->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto* inner = attribute->mutable_g();
    auto* first = inner->add_node();
    first->set_op_type(branch[0] == 't' ? "Neg" : "Identity");
    first->add_input("z");
    first->add_output("shape");  // a name that the graph around has too
    inner->add_output()->set_name("shape");
  }
  return model;
}

TEST(Onnx, AnIfThatShapesDecideIsItsBranch) {
  const torch::Tensor x = torch::randn({4, 5});
  for (const int64_t asked : {5, 6}) {
    torch::manual_seed(1);
    const Network network(parse_onnx(model_with_if(asked, false).SerializeAsString(), "m.onnx"));
    torch::manual_seed(1);
    const torch::Tensor z = Network(make_mlp({5, 3})).forward(x);
    EXPECT_TRUE(torch::equal(network.forward(x), asked == 5 ? -z : z));
  }
}

TEST(Onnx, AnIfThatTheInputsDecideIsRun) {
  const Graph graph = parse_onnx(model_with_if(5, true).SerializeAsString(), "m.onnx");
  EXPECT_EQ(graph.nodes.back().captured, 1u);
  const Network network(graph), again(parse_onnx(serialize_onnx(graph), "again"));
  const torch::Tensor x = torch::randn({4, 5});
  const torch::Tensor z = network.forward(x);
  EXPECT_TRUE(torch::equal(again.forward(x), z));
  torch::Tensor missing = x.clone();
  missing[3][0] = std::nanf("");
  const torch::Tensor flipped = network.forward(missing).narrow(0, 0, 3);
  EXPECT_TRUE(torch::equal(flipped, -z.narrow(0, 0, 3)));
  EXPECT_TRUE(torch::equal(again.forward(missing).narrow(0, 0, 3), flipped));
}

TEST(Onnx, OldFilesListInitializersAsInputs) {
  onnx::ModelProto model = parsed(make_mlp({2, 2, 1}));
  auto* input = model.mutable_graph()->add_input();
  input->set_name("w1");
  input->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  const Graph graph = parse_onnx(model.SerializeAsString(), "m.onnx");
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].name, "x");
}

class ExternalData : public testing::Test {
 protected:
  ExternalData() {
    std::filesystem::create_directory(folder_ / "model");
    model_ = parsed(make_mlp({2, 2, 1}));
    tensor_ = model_.mutable_graph()->mutable_initializer(0);
    bytes_ = tensor_->raw_data();
    tensor_->clear_raw_data();
    tensor_->set_data_location(onnx::TensorProto::EXTERNAL);
    std::ofstream(folder_ / "model" / "weights.bin", std::ios::binary) << "1234" << bytes_;
    std::ofstream(folder_ / "outside.bin", std::ios::binary) << "1234" << bytes_;
  }

  void set(const std::string& key, const std::string& value) {
    auto* entry = tensor_->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }

  std::string read() const { return complaint(model_, (folder_ / "model").string()); }

  Folder temporary_;
  std::filesystem::path folder_ = temporary_.path();
  onnx::ModelProto model_;
  onnx::TensorProto* tensor_;
  std::string bytes_;
};

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  set("location", "weights.bin");
  set("offset", "4");
  set("length", std::to_string(bytes_.size()));
  const std::string path = (folder_ / "model" / "m.onnx").string();
  std::ofstream(path, std::ios::binary) << model_.SerializeAsString();
  const Graph graph = read_onnx(path);
  const torch::Tensor& read = graph.initializers.at(tensor_->name());
  EXPECT_EQ(std::memcmp(read.data_ptr(), bytes_.data(), bytes_.size()), 0);
}

TEST_F(ExternalData, CannotLeaveTheFolder) {
  for (const std::string& location :
       {std::string("../outside.bin"), std::string("a/../../outside.bin"),
        (folder_ / "outside.bin").string()}) {
    tensor_->clear_external_data();
    set("location", location);
    set("offset", "4");
    EXPECT_THAT(read(), HasSubstr("lies outside the model's folder")) << location;
  }
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  tensor_->clear_external_data();
  set("location", "link.bin");
  EXPECT_THAT(read(), HasSubstr("lies outside the model's folder"));
}

TEST_F(ExternalData, MustHoldTheBytes) {
  set("location", "weights.bin");
  set("offset", "5");
  EXPECT_THAT(read(), HasSubstr("needs bytes 5 to "));
  tensor_->clear_external_data();
  set("location", "weights.bin");
  set("offset", "18446744073709551615");
  EXPECT_THAT(read(), HasSubstr("external data has a bad number"));
  tensor_->clear_external_data();
  set("location", "missing.bin");
  EXPECT_THAT(read(), HasSubstr("cannot read external data"));
  EXPECT_THAT(complaint(model_), HasSubstr("external data needs a model read from a file"));
}

// Every prefix and many single-byte changes of a file: an answer or an Error, never a crash.
TEST(Onnx, DamagedFilesNeverCrash) {
  torch::manual_seed(0);
  const std::string bytes = serialize_onnx(make_mlp({2, 3, 1}));
  size_t refused = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      Graph graph = parse_onnx(damaged, "m.onnx");
      Network network(std::move(graph));
      network.run({torch::zeros({1, 2})});
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t length = 0; length < bytes.size(); ++length) attempt(bytes.substr(0, length));
  EXPECT_GT(refused, bytes.size() / 2);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      attempt(damaged);
    }
  }
}

// y = x · DequantizeLinear(w) by a constant of an element type that libtorch lacks.
onnx::ModelProto narrow_model(int type, const std::string& bytes, const std::string& zero,
                              int64_t columns) {
  Graph graph;
  graph.opset = 21;
  graph.inputs = {make_info("x", {kDynamic, columns})};
  graph.outputs = {make_info("y", {kDynamic, columns})};
  graph.initializers["scale"] = torch::tensor(0.5f);
  graph.nodes.push_back(make_node("DequantizeLinear", {"w", "scale", "zero"}, {"weights"}));
  graph.nodes.push_back(make_node("Mul", {"x", "weights"}, {"y"}));
  onnx::ModelProto model = parsed(graph);
  for (const auto& [name, data] : {std::pair("w", bytes), std::pair("zero", zero)}) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    if (name[0] == 'w') tensor->add_dims(columns);
    tensor->set_raw_data(data);
  }
  return model;
}

TEST(Onnx, ReadsConstantsOfNarrowTypes) {
  using namespace std::string_literals;
  const auto answer = [](const onnx::ModelProto& model) {
    const Graph graph = parse_onnx(model.SerializeAsString(), "m.onnx");
    // Written again, every tensor has the type it had.
    const std::string again = serialize_onnx(graph);
    EXPECT_EQ(again, serialize_onnx(parse_onnx(again, "again")));
    onnx::ModelProto written;
    written.ParseFromString(again);
    int casts = 0;
    for (const auto& node : written.graph().node()) {
      if (node.op_type() != "Cast") continue;
      ++casts;
      const auto& to = node.attribute(node.attribute_size() - 1);
      EXPECT_EQ(to.name(), "to");
      EXPECT_EQ(to.i(), model.graph().initializer(1).data_type());
    }
    EXPECT_EQ(casts, 2);
    const Network network(graph);
    EXPECT_EQ(network.steps().size(), 1u);  // the weights are a constant
    const int64_t columns = graph.inputs[0].shape[1];
    return network.forward(torch::ones({1, columns}))[0];
  };
  EXPECT_TRUE(torch::equal(answer(narrow_model(22, "\x8f\x07"s, "\x0f"s, 3)),
                           torch::tensor({0.0f, -3.5f, 4.0f})));  // -1, -8, 7 less -1
  EXPECT_TRUE(torch::equal(answer(narrow_model(21, "\x8f\x07"s, "\x01"s, 3)),
                           torch::tensor({7.0f, 3.5f, 3.0f})));
  EXPECT_TRUE(torch::equal(answer(narrow_model(4, "\xff\xff\x00\x80"s, "\x00\x80"s, 2)),
                           torch::tensor({16383.5f, 0.0f})));
  // 0x7e, 0xb8, 0x01 of E4M3FN: 448, -1, 2^-9.
  EXPECT_TRUE(torch::equal(answer(narrow_model(17, "\x7e\xb8\x01"s, "\0"s, 3)),
                           torch::tensor({224.0f, -0.5f, 0.0009765625f})));
  EXPECT_TRUE(torch::equal(answer(narrow_model(18, "\x7f\xc0"s, "\0"s, 2)),
                           torch::tensor({120.0f, -0.5f})));
  EXPECT_TRUE(torch::equal(answer(narrow_model(19, "\x7b\xbc\x7c"s, "\0"s, 3)),
                           torch::tensor({28672.0f, -0.5f, INFINITY})));
  EXPECT_TRUE(torch::equal(answer(narrow_model(20, "\x7f\xc0"s, "\0"s, 2)),
                           torch::tensor({28672.0f, -0.5f})));
  EXPECT_THAT(complaint(narrow_model(22, "\x8f"s, "\x0f"s, 3)),
              HasSubstr("has 1 bytes of data, its shape needs 2"));
  onnx::ModelProto adds = narrow_model(4, "\x01\x00\x02\x00"s, "\x00\x00"s, 2);
  adds.mutable_graph()->mutable_node(0)->set_op_type("Sub");
  EXPECT_THAT(complaint(adds),
              HasSubstr("computes with 'w' of ONNX's type number 4, whose numbers are moved"));
}

TEST(Onnx, TypedDataOfNarrowTypesIsReadLikeRawData) {
  using namespace std::string_literals;
  onnx::ModelProto model = narrow_model(22, ""s, "\x0f"s, 3);
  auto* tensor = model.mutable_graph()->mutable_initializer(1);
  tensor->clear_raw_data();
  tensor->add_int32_data(0x8f), tensor->add_int32_data(0x07);
  const Network network(parse_onnx(model.SerializeAsString(), "m.onnx"));
  EXPECT_TRUE(
      torch::equal(network.forward(torch::ones({1, 3}))[0], torch::tensor({0.0f, -3.5f, 4.0f})));
}

// x [N, 6] through sequences and back.
onnx::ModelProto sequence_model(const std::vector<Node>& nodes) {
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 6})};
  graph.outputs = {make_info("y", {})};
  for (int64_t i = -1; i < 4; ++i) {
    graph.initializers[concat("at", i)] = torch::tensor(i, torch::kLong);
  }
  graph.initializers["sizes"] = torch::tensor({1, 2, 3}, torch::kLong);
  graph.nodes = nodes;
  return parsed(graph);
}

TEST(Onnx, SequencesOfKnownLengthAreTheirTensors) {
  const torch::Tensor x = torch::randn({4, 6});
  const auto answer = [&](const std::vector<Node>& nodes) {
    const Graph graph = parse_onnx(sequence_model(nodes).SerializeAsString(), "m.onnx");
    const Network again(parse_onnx(serialize_onnx(graph), "again"));
    const torch::Tensor y = Network(graph).forward(x);
    EXPECT_TRUE(torch::equal(again.forward(x), y));
    return y;
  };
  const Node split = make_node("SplitToSequence", {"x", "sizes"}, {"s"}, {{"axis", int64_t{1}}});
  EXPECT_TRUE(torch::equal(answer({split, make_node("SequenceAt", {"s", "at1"}, {"y"})}),
                           x.narrow(1, 1, 2)));
  EXPECT_TRUE(torch::equal(answer({split, make_node("SequenceAt", {"s", "at-1"}, {"y"})}),
                           x.narrow(1, 3, 3)));
  const Node pairs = make_node("SplitToSequence", {"x", "at2"}, {"s"}, {{"axis", int64_t{1}}});
  EXPECT_TRUE(torch::equal(answer({pairs, make_node("SequenceAt", {"s", "at1"}, {"y"})}),
                           x.narrow(1, 2, 2)));
  EXPECT_EQ(answer({pairs, make_node("SequenceLength", {"s"}, {"y"})}).item<int64_t>(), 3);
  const Node each =
      make_node("SplitToSequence", {"x"}, {"s"}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  EXPECT_TRUE(
      torch::equal(answer({each, make_node("SequenceAt", {"s", "at-1"}, {"y"})}), x.select(1, 5)));
  EXPECT_TRUE(
      torch::equal(answer({each, make_node("ConcatFromSequence", {"s"}, {"y"},
                                           {{"axis", int64_t{1}}, {"new_axis", int64_t{1}}})}),
                   x));
  const std::vector<Node> built = {
      make_node("SequenceEmpty", {}, {"s0"}),
      make_node("SequenceInsert", {"s0", "x"}, {"s1"}),
      make_node("Neg", {"x"}, {"minus"}),
      make_node("SequenceInsert", {"s1", "minus", "at0"}, {"s2"}),
      make_node("SequenceConstruct", {"minus", "x", "x"}, {"s3"}),
      make_node("SequenceErase", {"s3"}, {"s4"}),
      make_node("ConcatFromSequence", {"s2"}, {"flat"}, {{"axis", int64_t{1}}}),
      make_node("ConcatFromSequence", {"s4"}, {"stack"},
                {{"axis", int64_t{1}}, {"new_axis", int64_t{1}}}),
      make_node("Flatten", {"stack"}, {"wide"}),
      make_node("Concat", {"flat", "wide"}, {"y"}, {{"axis", int64_t{1}}})};
  EXPECT_TRUE(torch::equal(answer(built), torch::cat({-x, x, -x, x}, 1)));
}

TEST(Onnx, SequencesOfUnknownLengthAreRefused) {
  const Node pairs = make_node("SplitToSequence", {"x", "at2"}, {"s"}, {{"axis", int64_t{1}}});
  EXPECT_EQ(complaint(sequence_model(
                {pairs, make_node("ConcatFromSequence", {"s"}, {"y"}, {{"axis", int64_t{0}}})})),
            "m.onnx: ConcatFromSequence node 'y_node': needs the length of a sequence of parts of "
            "'x', which is not known before the network runs");
  EXPECT_THAT(
      complaint(sequence_model({make_node("Cast", {"x"}, {"i"}, {{"to", int64_t{7}}}),
                                make_node("ReduceMax", {"i"}, {"j"}, {{"keepdims", int64_t{0}}}),
                                pairs, make_node("SequenceAt", {"s", "j"}, {"y"})})),
      HasSubstr("the place 'j' in a sequence is not known before the network runs"));
  EXPECT_THAT(complaint(sequence_model({make_node("SequenceConstruct", {"x"}, {"s"}),
                                        make_node("SequenceAt", {"s", "at1"}, {"y"})})),
              HasSubstr("place 1 lies outside a sequence of 1"));
  EXPECT_THAT(complaint(sequence_model(
                  {make_node("SequenceConstruct", {"x"}, {"s"}), make_node("Neg", {"s"}, {"y"})})),
              HasSubstr("reads the sequence 's', which is not supported"));
}

// A bag of embeddings as torch's exporter writes it: a sequence grows in a loop.
TEST(Onnx, ALoopThatGrowsASequenceIsWrittenOut) {
  Graph body;
  body.inputs = {make_info("i"), make_info("go"), make_info("grown")};
  body.inputs[0].type = ElementType::kInt64;
  body.inputs[1].type = ElementType::kBool;
  body.outputs = {make_info("on"), make_info("longer"), make_info("part")};
  body.outputs[0].type = ElementType::kBool;
  body.nodes = {make_node("Identity", {"go"}, {"on"}),
                make_node("Gather", {"x", "i"}, {"part"}, {{"axis", int64_t{1}}}),
                make_node("SequenceInsert", {"grown", "part"}, {"longer"})};
  const auto with_count = [&](const std::string& count) {
    Node loop = make_node("Loop", {count, "", "s0", "x"}, {"s", "parts"},
                          {{"body", std::make_shared<const Graph>([&] {
                              Graph whole = body;
                              whole.inputs.push_back(make_info("x"));
                              return whole;
                            }())}});
    loop.captured = 1;
    return sequence_model({make_node("SequenceEmpty", {}, {"s0"}),
                           make_node("ReduceMax", {"x"}, {"most"}, {{"keepdims", int64_t{0}}}),
                           make_node("Cast", {"most"}, {"many"}, {{"to", int64_t{7}}}), loop,
                           make_node("ConcatFromSequence", {"s"}, {"stack"},
                                     {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}}),
                           make_node("Sub", {"stack", "parts"}, {"zero"}),
                           make_node("Concat", {"stack", "zero"}, {"y"}, {{"axis", int64_t{0}}})});
  };
  const torch::Tensor x = torch::randn({4, 6});
  const torch::Tensor y =
      Network(parse_onnx(with_count("at3").SerializeAsString(), "m.onnx")).forward(x);
  const torch::Tensor parts = x.narrow(1, 0, 3).t();
  EXPECT_TRUE(torch::equal(y, torch::cat({parts, torch::zeros_like(parts)})));
  EXPECT_THAT(
      complaint(with_count("many")),
      HasSubstr("carries a sequence, and how often it runs (at most 4096 times) is not known"));
}

}  // namespace
}  // namespace fcp
