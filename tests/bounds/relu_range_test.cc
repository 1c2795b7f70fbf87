// The closed form of ibp for Linear–ReLU–Linear heads against the walk, and its inverse against
// what the word "smallest" says.
#include "fcp/bounds/relu_range.h"

#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "tests/bounds/heads.h"

namespace fcp {
namespace {

constexpr BoundOptions kPlainIbp = {.outward = false};

// The same head less 0, which is not recognised: it goes the general way.
Graph unrecognised(Graph graph) {
  graph.outputs[0].name = "same";
  graph.initializers["zero"] = torch::zeros({1});
  graph.nodes.push_back(make_node("Sub", {"y", "zero"}, {"same"}));
  return graph;
}

TEST(ReluRange, AgreesWithTheWalk) {
  torch::manual_seed(1);
  for (const std::vector<int64_t>& widths :
       {std::vector<int64_t>{64, 64, 1}, {5, 17, 3}, {1, 1, 1}, {40, 100, 10}}) {
    const Graph graph = make_mlp(widths);
    const auto fast = make_bounds(head_of(graph), kPlainIbp);
    const auto general = make_bounds(head_of(unrecognised(graph)), kPlainIbp);
    EXPECT_TRUE(fast->monotone());
    const torch::Tensor center = torch::randn({50, widths[0]});
    for (const Norm norm : kAllNorms) {
      for (const torch::Tensor& scale : {torch::Tensor(), torch::rand({widths[0]}) + 0.1}) {
        const torch::Tensor radius = torch::rand({50}) * 2;
        const Range found = fast->ranges({center, radius, norm, scale})[0];
        const Range expected = general->ranges({center, radius, norm, scale})[0];
        EXPECT_TRUE(torch::allclose(found.lower, expected.lower, 1e-5, 1e-5));
        EXPECT_TRUE(torch::allclose(found.upper, expected.upper, 1e-5, 1e-5));
      }
    }
  }
}

TEST(ReluRange, TwoOutputsAndOtherShapes) {
  torch::manual_seed(2);
  Graph graph = make_mlp({4, 6, 1});
  graph.initializers["other"] = torch::randn({6, 2});
  graph.nodes.push_back(make_node("MatMul", {"h1", "other"}, {"second"}));
  graph.outputs.push_back(make_info("second"));
  const auto bounds = make_bounds(head_of(graph), kPlainIbp);
  const torch::Tensor center = torch::randn({3, 4});
  const std::vector<Range> ranges = bounds->ranges({center, torch::full({3}, 0.5), Norm::kInf, {}});
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[1].lower.sizes(), torch::IntArrayRef({3, 2}));
  EXPECT_THROW(bounds->ranges({torch::randn({3, 5}), torch::ones({3}), Norm::kInf, {}}), Error);
  EXPECT_THROW(bounds->ranges({center, -torch::ones({3}), Norm::kInf, {}}), Error);
  EXPECT_THROW(bounds->ranges({center, torch::ones({2}), Norm::kInf, {}}), Error);
}

// One head with its rows, to ask the kernel directly.
struct RangeCase {
  RangeCase(int64_t features, int64_t units, int64_t outputs, int64_t count) {
    torch::manual_seed(features + units + outputs);
    const Network network(make_mlp({features, units, outputs}));
    head = make_relu_rows(*match_relu_head(network, 0));
    moves = unit_moves(head, Norm::kInf, nullptr);
    const torch::Tensor v = torch::randn({count, features});
    hidden.emplace(head, static_cast<size_t>(count));
    hidden->fill(head, v.data_ptr<float>(), 0, static_cast<size_t>(count));
    answer = network.forward(v).to(torch::kDouble);
  }

  RangeRows rows(double widening = 0) const {
    return {head, moves, *hidden, 0, static_cast<size_t>(answer.size(0)), widening};
  }

  Range at(const torch::Tensor& radius, double widening = 0) const {
    Range ends = {torch::empty_like(answer), torch::empty_like(answer)};
    ranges_at(rows(widening), radius.data_ptr<float>(), ends.lower.data_ptr<double>(),
              ends.upper.data_ptr<double>());
    return ends;
  }

  torch::Tensor radii(const torch::Tensor& y, double widening) const {
    torch::Tensor found = torch::empty({answer.size(0)}, torch::kDouble);
    radii_reaching(rows(widening), y.contiguous().data_ptr<double>(), found.data_ptr<double>());
    return found;
  }

  bool inside(const torch::Tensor& y, const torch::Tensor& radius, double widening,
              int64_t row) const {
    const Range ends = at(radius, widening);
    return ((ends.lower[row] <= y[row]).all() & (y[row] <= ends.upper[row]).all()).item<bool>();
  }

  ReluRows head;
  std::vector<float> moves;
  std::optional<HiddenBlocks> hidden;
  torch::Tensor answer;
};

TEST(ReluRange, MonotoneToTheLastBit) {
  const RangeCase test(12, 40, 2, 20);
  torch::Tensor radius = torch::rand({20}) * torch::rand({20});
  Range before = test.at(radius);
  for (int step = 0; step < 200; ++step) {
    radius = torch::nextafter(radius, torch::full({20}, 100.0f));
    if (step % 20 == 19) radius = radius * 1.01f;
    const Range now = test.at(radius);
    EXPECT_TRUE((now.lower <= before.lower).all().item<bool>());
    EXPECT_TRUE((now.upper >= before.upper).all().item<bool>());
    before = now;
  }
  const Range point = test.at(torch::zeros({20}));
  EXPECT_TRUE(torch::equal(point.lower, point.upper));
}

TEST(ReluRange, RadiusIsTheSmallest) {
  for (const int64_t outputs : {1, 3}) {
    const RangeCase test(8, 30, outputs, 60);
    for (const double widening : {0.0, 0.7}) {
      for (const double far : {1e-6, 0.1, 3.0, 1e4}) {
        const torch::Tensor y = test.answer + far * torch::randn_like(test.answer);
        const torch::Tensor radius = test.radii(y, widening).to(torch::kFloat);
        const torch::Tensor less = torch::nextafter(radius, torch::full({60}, -1.0f));
        for (int64_t row = 0; row < 60; ++row) {
          ASSERT_TRUE(std::isfinite(radius[row].item<float>()));
          EXPECT_TRUE(test.inside(y, radius, widening, row)) << far;
          if (radius[row].item<float>() > 0) {
            EXPECT_FALSE(test.inside(y, less.clamp_min(0), widening, row)) << far;
          }
        }
      }
    }
  }
}

TEST(ReluRange, NothingReachedAndNotANumber) {
  RangeCase test(4, 8, 1, 3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(test.radii(torch::full({3, 1}, nan, torch::kDouble), 0).isnan().all().item<bool>());
  const Range point = test.at(torch::zeros({3}));
  EXPECT_TRUE((test.radii(point.lower, 0) == 0).all().item<bool>());
  std::fill(test.moves.begin(), test.moves.end(), 0.0f);  // no unit moves
  EXPECT_TRUE(test.radii(point.lower + 1, 0).isinf().all().item<bool>());
  const torch::Tensor by_floor = test.radii(point.lower + 1, 0.5);
  EXPECT_TRUE(torch::allclose(by_floor, torch::full({3}, 2.0, torch::kDouble), 1e-6, 0));
}

}  // namespace
}  // namespace fcp
