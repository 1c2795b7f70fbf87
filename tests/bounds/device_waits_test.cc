// What a walk does on a device, done on the CPU: it asks for no number, and gives the same bounds.
#include "fcp/nn/runtime/device_waits.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/bounds/operators.h"
#include "tests/bounds/soundness.h"
#include "tests/support/random_heads.h"

namespace fcp {
namespace {

// libtorch's operations that a device would have to be waited for, as far as they were called while
// this lived.
class WaitLog {
 public:
  WaitLog() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(note))) {
    found().clear();
  }
  ~WaitLog() { at::removeCallback(handle_); }

  static std::set<std::string>& found() {
    static thread_local std::set<std::string> names;
    return names;
  }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    static const std::set<std::string> kWaiting = {
        "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal",
        "aten::is_nonzero",          "aten::unique",  "aten::_unique2"};
    if (kWaiting.count(call.name()) > 0) found().insert(call.name());
    return nullptr;
  }

  at::CallbackHandle handle_;
};

std::vector<NamedGraph> all_heads() {
  std::vector<NamedGraph> heads = activated_heads({3, 5, 4, 2});
  for (NamedGraph& each : smooth_cases()) heads.push_back(std::move(each));
  heads.push_back({"mixed", make_mixed_head()});
  heads.push_back({"dense", make_dense_head(3, 4, 2, 2, 3)});
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    heads.push_back({concat("random head ", seed), random_head(seed)});
  }
  return heads;
}

Ball ball_for(const Network& head, int64_t rows, double radius) {
  std::vector<int64_t> shape = head.inputs()[0].shape;
  shape[0] = rows;
  return {torch::randn(shape), torch::rand({rows}) * radius, Norm::kInf, {}};
}

Range range_of(const std::shared_ptr<const Network>& head, const Ball& ball, BoundMethod method,
               bool outward = true) {
  BoundOptions options;
  options.method = method;
  options.iterations = 3;
  options.outward = outward;
  return make_bounds(head, options)->ranges(ball)[0];
}

Range range_as_on_a_device(const std::shared_ptr<const Network>& head, const Ball& ball,
                           BoundMethod method, bool outward = true) {
  const NoReadingBack as_on_a_device;
  return range_of(head, ball, method, outward);
}

// CROWN, which walks forwards like ibp as well; α-CROWN, which takes longer, of every fifth head.
std::vector<BoundMethod> methods_of(size_t head) {
  if (head % 5 == 0) return {BoundMethod::kCrown, BoundMethod::kAlphaCrown};
  return {BoundMethod::kCrown};
}

TEST(DeviceWaits, AWalkAsksForNoNumber) {
  torch::manual_seed(11);
  const std::vector<NamedGraph> heads = all_heads();
  for (size_t i = 0; i < heads.size(); ++i) {
    const NamedGraph& named = heads[i];
    const auto head = head_of(named.graph);
    const Ball ball = ball_for(*head, 3, 0.3);
    for (const BoundMethod method : methods_of(i)) {
      const NoReadingBack as_on_a_device;
      BoundOptions options;
      options.method = method;
      options.iterations = 2;
      const auto bounds = make_bounds(head, options);
      bounds->ranges(ball);  // looks at the network once: its cost, its constants
      const WaitLog log;
      bounds->ranges(ball);
      EXPECT_THAT(WaitLog::found(), ::testing::IsEmpty())
          << named.name << " by " << bound_name(method);
    }
  }
}

// The test above can fail: on the CPU, walks do look.
TEST(DeviceWaits, OnTheCpuAWalkLooks) {
  torch::manual_seed(12);
  const auto head = head_of(make_mixed_head());
  const WaitLog log;
  range_of(head, ball_for(*head, 2, 0.3), BoundMethod::kCrown);
  EXPECT_GT(WaitLog::found().count("aten::nonzero"), 0U);
  EXPECT_GT(WaitLog::found().count("aten::masked_select"), 0U);
  EXPECT_GT(WaitLog::found().count("aten::_local_scalar_dense"), 0U);
}

// Of the bounds' size and their width; an end that is infinite must be so in both.
double largest_difference(const Range& a, const Range& b) {
  double largest = 0;
  for (const auto& [one, other] : {std::pair(a.lower, b.lower), std::pair(a.upper, b.upper)}) {
    const torch::Tensor size = a.lower.abs() + a.upper.abs() + 1;
    const torch::Tensor apart = ((one - other).abs() / size).masked_fill(one == other, 0);
    largest = std::max(largest, apart.max().to(torch::kDouble).item<double>());
  }
  return largest;
}

TEST(DeviceWaits, PerceptronsOfHingesHaveTheSameBits) {
  torch::manual_seed(13);
  for (const char* op : {"Relu", "LeakyRelu"}) {
    const auto head = head_of(make_activated({6, 40, 40, 40, 3}, op));
    for (const double radius : {0.01, 0.2, 2.0}) {
      const Ball ball = ball_for(*head, 5, radius);
      for (const BoundMethod method : kAllMethods) {
        for (const bool outward : {false, true}) {
          const Range one = range_of(head, ball, method, outward);
          const Range other = range_as_on_a_device(head, ball, method, outward);
          EXPECT_TRUE(torch::equal(one.lower, other.lower) && torch::equal(one.upper, other.upper))
              << op << " by " << bound_name(method) << " at " << radius;
        }
      }
    }
  }
}

// Sums in another order and another last bit of a function change a bound by some roundings; of
// α-CROWN they may turn a gradient that is nearly 0, and with it the way of a slope.
TEST(DeviceWaits, BothFormsAgree) {
  torch::manual_seed(14);
  const std::vector<NamedGraph> heads = all_heads();
  for (size_t i = 0; i < heads.size(); ++i) {
    const NamedGraph& named = heads[i];
    const auto head = head_of(named.graph);
    const Ball ball = ball_for(*head, 4, 0.3);
    for (const BoundMethod method : methods_of(i)) {
      const double allowed = method == BoundMethod::kAlphaCrown ? 1e-3 : 1e-6;
      const double found = largest_difference(range_of(head, ball, method),
                                              range_as_on_a_device(head, ball, method));
      EXPECT_LE(found, allowed) << named.name << " by " << bound_name(method);
    }
  }
}

// Of all heads, in soundness_slow_test.cc.
TEST(DeviceWaits, NoPointLeavesTheBand) {
  torch::manual_seed(15);
  const NoReadingBack as_on_a_device;
  const SoundnessEffort effort = {.samples = 4, .searches = 2};
  for (const char* op : {"Relu", "Tanh", "Gelu"}) {
    check_soundness({op, make_activated({5, 8, 7, 3}, op)}, 6, effort);
  }
  check_soundness({"Softmax", single("Softmax", {5})}, 6, effort);
  check_soundness({"mixed", make_mixed_head()}, 2, effort);
}

// Slots with many open numbers are left as CROWN has them, row by row: another row does not matter.
TEST(DeviceWaits, ARowWithManyOpenNumbersDoesNotChangeAnother) {
  torch::manual_seed(16);
  const auto head = head_of(make_activated({4, 8, 2200, 1}, "Relu"));
  Ball ball = ball_for(*head, 2, 1);
  ball.radius = torch::tensor({0.002f, 5.0f});  // few numbers open, and nearly all of them
  const Ball alone = {ball.center.narrow(0, 0, 1), ball.radius.narrow(0, 0, 1), ball.norm, {}};
  const Range one = range_of(head, alone, BoundMethod::kAlphaCrown, false);
  const Range both = range_of(head, ball, BoundMethod::kAlphaCrown, false);
  const Range device = range_as_on_a_device(head, ball, BoundMethod::kAlphaCrown, false);
  for (const Range* other : {&both, &device}) {
    EXPECT_TRUE(torch::equal(one.lower, other->lower.narrow(0, 0, 1)));
    EXPECT_TRUE(torch::equal(one.upper, other->upper.narrow(0, 0, 1)));
  }
}

TEST(DeviceWaits, ARadiusBelowZeroHasNoBoundsWhereItIsNotLookedAt) {
  const auto head = head_of(make_activated({3, 5, 4, 1}, "Tanh"));
  Ball ball = ball_for(*head, 2, 0.3);
  ball.radius = torch::tensor({0.1f, -1.0f});
  EXPECT_THROW(range_of(head, ball, BoundMethod::kCrown), Error);
  const Range range = range_as_on_a_device(head, ball, BoundMethod::kCrown);
  EXPECT_TRUE(range.upper.isfinite()[0].all().item<bool>());
  EXPECT_TRUE(range.lower.isneginf()[1].all().item<bool>());
  EXPECT_TRUE(range.upper.isposinf()[1].all().item<bool>());
}

TEST(DeviceWaits, HostNumbersFollowTheConstant) {
  HostNumbers numbers;
  torch::Tensor constant = torch::tensor({1.5f, -2.0f});
  EXPECT_EQ(numbers.of(constant), (std::vector<double>{1.5, -2}));
  constant[1] = 7;  // in place
  EXPECT_EQ(numbers.of(constant), (std::vector<double>{1.5, 7}));
  EXPECT_EQ(numbers.single(torch::tensor(3.0)), 3);
  EXPECT_THROW(numbers.single(constant), Error);
}

}  // namespace
}  // namespace fcp
