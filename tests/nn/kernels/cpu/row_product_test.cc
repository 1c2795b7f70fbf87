// The bits of a row are the same in batches of any size, at any place in them.
#include "fcp/nn/kernels/cpu/row_product.h"

#include <limits>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/base/parallel.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

TEST(RowProduct, EqualsTheProductInDoublePrecision) {
  torch::manual_seed(1);
  for (const auto& [n, k, m] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 1}, {7, 5, 3}, {6, 64, 64}, {13, 17, 65}, {100, 3, 130}, {4, 0, 2}, {0, 3, 2}}) {
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const torch::Tensor a = torch::randn({n, k}, type), b = torch::randn({k, m}, type);
      const torch::Tensor exact = torch::matmul(a.to(torch::kDouble), b.to(torch::kDouble));
      const torch::Tensor found = row_product(a, b);
      ASSERT_EQ(found.sizes(), exact.sizes());
      EXPECT_EQ(found.scalar_type(), type);
      EXPECT_TRUE(torch::allclose(found.to(torch::kDouble), exact, 1e-5, 1e-5)) << n << " " << m;
      EXPECT_TRUE(torch::equal(row_product(a, b.t().contiguous().t()), found)) << "transposed";
    }
  }
}

TEST(RowProduct, GradientsFlowAndAreRowProducts) {
  torch::manual_seed(2);
  const torch::Tensor b = torch::randn({5, 4}, torch::kDouble);
  const torch::Tensor a = torch::randn({3, 5}, torch::kDouble).requires_grad_();
  const torch::Tensor weight = torch::randn({3, 4}, torch::kDouble).requires_grad_();
  const torch::Tensor first =
      torch::autograd::grad({row_product(a, b)}, {a}, {weight}, true, /*create_graph=*/true)[0];
  EXPECT_TRUE(torch::allclose(first, torch::matmul(weight, b.t())));
  const torch::Tensor second = torch::autograd::grad({first.sum()}, {weight})[0];
  EXPECT_TRUE(torch::allclose(second, b.sum(0).expand({3, 4})));
}

TEST(RowProduct, ACacheFollowsItsMatrix) {
  PackedCache cache;
  torch::Tensor b = torch::ones({2, 3});
  const torch::Tensor a = torch::ones({1, 2});
  EXPECT_EQ(row_product(a, b, &cache)[0][0].item<float>(), 2);
  b.fill_(3);
  EXPECT_EQ(row_product(a, b, &cache)[0][0].item<float>(), 6);
  EXPECT_EQ(row_product(a, torch::full({2, 3}, 5.0f), &cache)[0][0].item<float>(), 10);
}

// Each row alone, in batches of several sizes and at every place: equal bits.
void expect_equal_bits(const std::function<torch::Tensor(const torch::Tensor&)>& f,
                       const torch::Tensor& rows, const std::string& what) {
  std::vector<torch::Tensor> alone;
  for (int64_t i = 0; i < rows.size(0); ++i) alone.push_back(f(rows.narrow(0, i, 1)));
  const torch::Tensor expected = torch::cat(alone);
  for (const int64_t size : {2, 3, 5, 8, 31, 64, 1000}) {
    std::vector<torch::Tensor> parts;
    for (int64_t first = 0; first < rows.size(0); first += size) {
      const int64_t count = std::min(size, rows.size(0) - first);
      parts.push_back(f(rows.narrow(0, first, count)));
    }
    EXPECT_TRUE(torch::equal(torch::cat(parts), expected)) << what << ", batches of " << size;
  }
}

TEST(RowProduct, BitsOfARowDoNotDependOnItsBatch) {
  torch::manual_seed(3);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    for (const int64_t width : {1, 3, 64, 100}) {
      const torch::Tensor b = torch::randn({width, 7}, type),
                          rows = torch::randn({200, width}, type);
      expect_equal_bits([&](const torch::Tensor& x) { return row_product(x, b); }, rows, "product");
      expect_equal_bits([&](const torch::Tensor& x) { return sum_rows(x); }, rows, "sums");
    }
  }
}

TEST(SumAlong, EqualsTheSumInDoublePrecisionAlongAnyAxes) {
  torch::manual_seed(8);
  const torch::Tensor x = torch::randn({4, 3, 70, 2});
  for (const std::vector<int64_t>& axes : std::vector<std::vector<int64_t>>{
           {0}, {1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}, {1, 2, 3}, {0, 1, 2, 3}}) {
    for (const bool keep : {false, true}) {
      const torch::Tensor exact = x.to(torch::kDouble).sum(axes, keep);
      const torch::Tensor found = sum_along(x, axes, keep);
      ASSERT_EQ(found.sizes(), exact.sizes());
      EXPECT_TRUE(torch::allclose(found.to(torch::kDouble), exact, 1e-5, 1e-5));
      const torch::Tensor wide = x.to(torch::kDouble).requires_grad_();
      const torch::Tensor slope =
          torch::autograd::grad({sum_along(wide, axes, keep).square().sum()}, {wide})[0];
      EXPECT_TRUE(torch::allclose(slope, (2 * x.to(torch::kDouble).sum(axes, true)).expand_as(x)));
    }
  }
}

TEST(RunApart, SumsAndSoftmaxAreBatchFree) {
  torch::manual_seed(9);
  for (const std::string op : {"ReduceMean", "ReduceSum", "Softmax", "LogSoftmax"}) {
    Graph graph;
    graph.opset = 17;
    graph.inputs = {make_info("x", {kDynamic, 5, 19})};
    graph.outputs = {make_info("y", {kDynamic, kDynamic, kDynamic})};
    if (op == "ReduceSum") graph.initializers["axes"] = torch::tensor({1}, torch::kLong);
    const bool softmax = op.find("Softmax") != std::string::npos;
    const std::map<std::string, Attribute> attributes =
        softmax              ? std::map<std::string, Attribute>{{"axis", int64_t{1}}}
        : op == "ReduceMean" ? std::map<std::string, Attribute>{{"axes", std::vector<int64_t>{2}}}
                             : std::map<std::string, Attribute>{};
    std::vector<std::string> inputs = {"x"};
    if (op == "ReduceSum") inputs.push_back("axes");
    graph.nodes = {make_node(op, inputs, {"y"}, attributes)};
    const Network network(graph);
    EXPECT_TRUE(is_batch_free(network)) << op;
    expect_equal_bits([&](const torch::Tensor& x) { return network.forward(x); },
                      torch::randn({300, 5, 19}) * 3, op);
  }
}

TEST(EachAlike, BitsOfANumberDoNotDependOnItsPlace) {
  torch::manual_seed(4);
  const std::vector<std::pair<std::string, std::map<std::string, Attribute>>> functions = {
      {"Celu", {}},
      {"Elu", {}},
      {"Erf", {}},
      {"Exp", {}},
      {"Gelu", {}},
      {"Mish", {}},
      {"Selu", {}},
      {"Sigmoid", {}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"Tanh", {}},
      {"HardSwish", {}},
      {"Gelu", {{"approximate", std::string("tanh")}}}};
  for (const auto& [op, attributes] : functions) {
    Graph graph;
    graph.opset = 20;
    graph.inputs = {make_info("x", {kDynamic, 7})};
    graph.outputs = {make_info("y", {kDynamic, 7})};
    graph.nodes = {make_node(op, {"x"}, {"y"}, attributes)};
    const Network network(graph);
    EXPECT_TRUE(is_batch_free(network)) << op;
    expect_equal_bits([&](const torch::Tensor& x) { return network.forward(x); },
                      torch::randn({500, 7}) * 3, op);
  }
  // More numbers than a tile, and than libtorch keeps on one thread.
  const auto sigmoid = [](const torch::Tensor& x) { return torch::sigmoid(x); };
  const torch::Tensor many = torch::randn({70001}), found = each_alike(sigmoid, many);
  for (const int64_t at : {0, 1, 16383, 16384, 35000, 70000}) {
    EXPECT_TRUE(torch::equal(found.narrow(0, at, 1), each_alike(sigmoid, many.narrow(0, at, 1))));
  }
}

TEST(EachAlike, PaddingLeavesGradientsAlone) {
  const torch::Tensor x = torch::tensor({0.0f, 4.0f, 9.0f}).requires_grad_();
  const torch::Tensor y = each_alike([](const torch::Tensor& t) { return torch::sqrt(t); }, x);
  const torch::Tensor weight = torch::tensor({1.0f, 1.0f, 6.0f});
  const torch::Tensor gradient = torch::autograd::grad({y}, {x}, {weight})[0];
  EXPECT_EQ(gradient[0].item<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(gradient[1].item<float>(), 0.25f);
  EXPECT_EQ(gradient[2].item<float>(), 1.0f);
}

Graph with_activation(Graph graph, const std::string& op) {
  for (Node& node : graph.nodes) {
    if (node.op == "Relu") node.op = op;
  }
  return graph;
}

TEST(RunApart, PerceptronsAreBatchFree) {
  torch::manual_seed(5);
  for (const std::string op : {"Relu", "Tanh", "Sigmoid", "Gelu", "Mish"}) {
    Graph graph = with_activation(make_mlp({2, 64, 33, 3}), op);
    graph.opset = 20;
    const Network network(graph);
    EXPECT_TRUE(is_batch_free(network)) << op;
    expect_equal_bits([&](const torch::Tensor& x) { return run_apart(network, {x})[0]; },
                      torch::randn({100, 2}), op);
  }
}

// x [N, 6, 8] through layer normalisation, attention and GELU. `rows` of the first reshape: 0 keeps
// what comes in, any other number is what a careless export wrote down.
Graph make_attention(int64_t rows) {
  Graph graph;
  graph.opset = 17;
  graph.inputs = {make_info("x", {kDynamic, 6, 8})};
  graph.outputs = {make_info("y", {kDynamic, 6, 8})};
  graph.initializers["scale"] = torch::randn({8});
  graph.initializers["shift"] = torch::randn({8});
  graph.initializers["w"] = torch::randn({8, 8}) * 0.5;
  graph.initializers["split"] = torch::tensor({rows, int64_t{6}, int64_t{2}, int64_t{4}});
  graph.initializers["join"] = torch::tensor({int64_t{0}, int64_t{6}, int64_t{8}});
  const auto axes = [](std::vector<int64_t> order) {
    return std::map<std::string, Attribute>{{"perm", std::move(order)}};
  };
  graph.nodes = {make_node("LayerNormalization", {"x", "scale", "shift"}, {"n"}),
                 make_node("MatMul", {"n", "w"}, {"m"}),
                 make_node("Reshape", {"m", "split"}, {"h"}),
                 make_node("Transpose", {"h"}, {"q"}, axes({0, 2, 1, 3})),
                 make_node("Transpose", {"h"}, {"k"}, axes({0, 2, 3, 1})),
                 make_node("MatMul", {"q", "k"}, {"s"}),
                 make_node("Softmax", {"s"}, {"p"}),
                 make_node("MatMul", {"p", "q"}, {"a"}),
                 make_node("Transpose", {"a"}, {"t"}, axes({0, 2, 1, 3})),
                 make_node("Reshape", {"t", "join"}, {"j"}),
                 make_node("Erf", {"j"}, {"e"}),
                 make_node("Add", {"x", "e"}, {"y"})};
  return graph;
}

TEST(RunApart, AttentionIsBatchFreeAndRunsInPieces) {
  torch::manual_seed(11);
  const Network network(make_attention(0));
  EXPECT_TRUE(is_batch_free(network));
  const torch::Tensor rows = torch::randn({60, 6, 8});
  const auto run = [&](const torch::Tensor& x) { return run_apart(network, {x})[0]; };
  expect_equal_bits(run, rows, "attention");
  EXPECT_TRUE(torch::equal(run(rows), network.forward(rows)));
  set_memory_budget(size_t{1} << 16);  // a few rows at a time
  const torch::Tensor pieces = run(rows);
  set_memory_budget(0);
  EXPECT_TRUE(torch::equal(pieces, network.forward(rows)));
}

TEST(RunApart, AttentionWrittenForOneRowRunsRowByRow) {
  torch::manual_seed(12);
  const Graph graph = make_attention(1);
  const Network network(graph);
  const torch::Tensor rows = torch::randn({9, 6, 8});
  EXPECT_THROW(network.forward(rows), Error);
  std::vector<torch::Tensor> alone;
  for (int64_t i = 0; i < 9; ++i) alone.push_back(network.forward(rows.narrow(0, i, 1)));
  EXPECT_TRUE(torch::equal(run_apart(network, {rows})[0], torch::cat(alone)));
}

TEST(RunApart, ConvolutionsAreBatchFreeAndRunInPieces) {
  torch::manual_seed(6);
  const Network network(make_residual_network());
  EXPECT_TRUE(is_batch_free(network));
  expect_equal_bits([&](const torch::Tensor& x) { return run_apart(network, {x})[0]; },
                    torch::randn({40, 3, 6, 6}), "convolutions");
}

TEST(RunApart, OtherNetworksRunRowByRow) {
  torch::manual_seed(6);
  Graph graph;
  graph.inputs = {make_info("x", {kDynamic, 4, 6, 6})};
  graph.outputs = {make_info("y", {kDynamic, 8, 4, 4})};
  graph.initializers["w"] = torch::randn({8, 2, 3, 3});
  graph.nodes = {make_node("Conv", {"x", "w"}, {"y"}, {{"group", int64_t{2}}})};
  const Network network(graph);
  EXPECT_FALSE(is_batch_free(network));
  expect_equal_bits([&](const torch::Tensor& x) { return run_apart(network, {x})[0]; },
                    torch::randn({40, 4, 6, 6}), "convolutions in groups");
}

TEST(RunApart, RowsSharedAmongThreadsHaveTheSameBitsAndGradients) {
  torch::manual_seed(7);
  const Network network(make_residual_network());
  const int before = at::get_num_threads(), blas_before = blas_threads();
  std::vector<torch::Tensor> answers, slopes;
  const torch::Tensor rows = torch::randn({40, 3, 6, 6});
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    set_blas_threads(threads);
    const int blas = blas_threads();
    const torch::Tensor x = rows.detach().clone().requires_grad_();
    answers.push_back(run_apart(network, {x})[0]);
    slopes.push_back(torch::autograd::grad({answers.back().square().sum()}, {x})[0]);
    const torch::NoGradGuard no_gradients;
    EXPECT_FALSE(run_apart(network, {x})[0].requires_grad());
    EXPECT_EQ(at::get_num_threads(), threads) << "the caller's threads come back";
    EXPECT_EQ(blas_threads(), blas);
  }
  {
    // Memory for one row at a time.
    const torch::NoGradGuard no_gradients;
    set_memory_budget(size_t{1} << 16);
    EXPECT_TRUE(torch::equal(run_apart(network, {rows})[0], answers[0]));
    set_memory_budget(0);
  }
  at::set_num_threads(before);
  set_blas_threads(blas_before);
  EXPECT_TRUE(torch::equal(answers[0], answers[1]));
  EXPECT_TRUE(torch::equal(slopes[0], slopes[1]));
}

}  // namespace
}  // namespace fcp
