#include "apps/experiments/selftest_worlds.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/random.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/training/export.h"
#include "fcp/training/mlp.h"

namespace fcp {
namespace {

constexpr int64_t kInputs = 4;
constexpr int64_t kClasses = 6;

// Random weights, larger than those training starts from: the answers vary.
Graph random_network(int64_t outputs, Loss loss, uint64_t seed) {
  Mlp mlp = initial_mlp({.inputs = kInputs, .hidden = {16, 16}, .outputs = outputs}, seed);
  for (float& weight : mlp.parameters()) weight *= 2;
  if (loss == Loss::kQuantile) {  // the low quantile is first, and below
    const DenseLayer& last = mlp.layers().back();
    last.weight[1].copy_(last.weight[0]);
    last.bias[0].sub_(0.5);
    last.bias[1].copy_(last.bias[0] + 1);
  }
  return export_mlp(mlp, {}, loss);
}

// Adds an output of softplus units on the last hidden layer.
void append_random_head(Graph& network, const std::string& name, int64_t columns, Random& random) {
  const std::string weight = name + ".weight", linear = name + ".linear";
  torch::Tensor values = torch::empty({16, columns});
  std::generate_n(values.data_ptr<float>(), values.numel(),
                  [&] { return static_cast<float>(random.normal()); });
  network.initializers[weight] = values;
  network.nodes.push_back({linear, "MatMul", "", {"hidden2", weight}, {linear}, {}});
  network.nodes.push_back({name, "Softplus", "", {linear}, {name}, {}});
  TensorInfo info = network.outputs[0];
  info.name = name;
  info.shape = {kDynamic, columns};
  network.outputs.push_back(info);
}

// Heads that learned nothing: the promise must not depend on them.
Graph with_random_heads(Graph network, uint64_t seed) {
  Random random(seed);
  append_random_head(network, kSpreadOutput, 1, random);
  append_random_head(network, kQuantilesOutput, 19, random);
  append_random_head(network, kRectifierOutput, 1, random);
  append_random_head(network, kCholeskyOutput, 1, random);
  sort_and_check(network);
  return network;
}

// Two outputs, of which the first is that of `mean`.
Graph with_random_pair(Graph network, uint64_t seed) {
  Random random(seed);
  append_random_head(network, "second", 1, random);
  const std::string first = network.outputs[0].name;
  network.nodes.push_back(
      {"pair", "Concat", "", {first, "second"}, {"pair"}, {{"axis", int64_t{1}}}});
  TensorInfo pair = network.outputs[0];
  pair.name = "pair";
  pair.shape = {kDynamic, 2};
  network.outputs = {pair};
  append_random_head(network, kSpreadOutput, 2, random);
  append_random_head(network, kCholeskyOutput, 4, random);
  sort_and_check(network);
  return network;
}

torch::Tensor answers(const Graph& network, const torch::Tensor& x) {
  return Network(network).run_rows({x})[0].to(torch::kDouble).contiguous();  // [N, outputs]
}

int64_t drawn_label(const double* logits, Random& random) {
  double total = 0;
  for (int64_t k = 0; k < kClasses; ++k) total += std::exp(logits[k]);
  double left = random.uniform() * total;
  for (int64_t k = 0; k + 1 < kClasses; ++k) {
    left -= std::exp(logits[k]);
    if (left < 0) return k;
  }
  return kClasses - 1;
}

void fill_world(SelftestWorld& world, size_t rows, Random& random) {
  const auto count = static_cast<int64_t>(rows);
  world.x = torch::empty({count, kInputs});
  std::generate_n(world.x.data_ptr<float>(), rows * kInputs,
                  [&] { return static_cast<float>(random.normal()); });
  const torch::Tensor mean = answers(world.mean, world.x), logits = answers(world.logits, world.x);
  world.truth = torch::empty({count, 1}, torch::kDouble);
  world.pairs = torch::empty({count, 2}, torch::kDouble);
  world.labels = torch::empty({count, 1}, torch::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const float* x = world.x.data_ptr<float>() + i * kInputs;
    double noise = (0.2 + std::abs(x[0])) * random.normal();
    int64_t label = drawn_label(logits.data_ptr<double>() + i * kClasses, random);
    if (world.name == "heavy") {
      noise *= noise * noise;
      if (random.below(3) == 0) label = static_cast<int64_t>(random.below(kClasses));
    }
    double truth = mean.data_ptr<double>()[i] + noise;
    if (world.name == "blind") {
      truth = std::sin(3 * x[0]) + x[1] * x[1] * (1 + noise * noise);
      label = std::clamp<int64_t>(static_cast<int64_t>(3 + x[2] + random.normal()), 0, 5);
    }
    world.truth.data_ptr<double>()[i] = truth;
    world.pairs.data_ptr<double>()[2 * i] = truth;
    world.pairs.data_ptr<double>()[2 * i + 1] = noise + x[2] * random.normal();
    world.labels.data_ptr<double>()[i] = static_cast<double>(label);
    world.groups.push_back(x[3] < -0.5 ? 0 : x[3] < 0.5 ? 1 : 2);
    world.weights.push_back(std::clamp(std::exp(static_cast<double>(x[1])), 0.2, 5.0));
  }
}

}  // namespace

std::vector<SelftestWorld> selftest_worlds(size_t rows, uint64_t seed) {
  Random random(seed);
  std::vector<SelftestWorld> worlds;
  for (const char* name : {"even", "heavy", "blind"}) {
    SelftestWorld& world = worlds.emplace_back();
    world.name = name;
    world.mean = random_network(1, Loss::kMse, random.bits());
    world.quantiles = random_network(2, Loss::kQuantile, random.bits());
    world.logits = random_network(kClasses, Loss::kCrossEntropy, random.bits());
    world.heads = with_random_heads(world.mean, seed);
    world.pair = with_random_pair(world.mean, seed);
    fill_world(world, rows, random);
  }
  return worlds;
}

namespace {

double log_choose(size_t n, size_t k) {
  const auto log_factorial = [](size_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// P(count = c): c of the m rows rank among the first k − 1 of the n, the others after it.
double count_probability(const CountLaw& law, size_t c) {
  const auto [n, m, k] = law;
  return std::exp(log_choose(c + k - 1, c) + log_choose(m - c + n - k, m - c) -
                  log_choose(n + m, m));
}

// The largest F_T(x) − x: how far the numbers lean to the low side.
double excess_below(const std::vector<double>& sorted) {
  double most = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(sorted.size());
    most = std::max(most, share - sorted[i]);
  }
  return most;
}

double tail(double distance, size_t count) {
  return std::exp(-2 * static_cast<double>(count) * distance * distance);
}

}  // namespace

double count_cdf(const CountLaw& law, size_t c) {
  double sum = 0;
  for (size_t i = 0; i <= c; ++i) sum += count_probability(law, i);
  return std::min(1.0, sum);
}

double uniform_of_count(const CountLaw& law, size_t c, double u) {
  return std::min(1.0, (c == 0 ? 0 : count_cdf(law, c - 1)) + u * count_probability(law, c));
}

double chance_too_low(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return tail(excess_below(values), values.size());
}

double chance_not_uniform(std::vector<double> values) {
  const double low = chance_too_low(values);
  for (double& value : values) value = 1 - value;
  return std::min(1.0, 2 * std::min(low, chance_too_low(values)));
}

// 1 + stake · number must stay positive.
Gambler::Gambler(Side side)
    : stakes_(side == kTooLow ? std::vector<double>{1, 2, 4, 8}
                              : std::vector<double>{0.2, 0.4, 0.8}),
      log_wealth_(stakes_.size()) {}

void Gambler::bet(double number) {
  for (size_t i = 0; i < stakes_.size(); ++i) log_wealth_[i] += std::log1p(stakes_[i] * number);
}

double Gambler::chance() const {
  double wealth = 0;
  for (const double log : log_wealth_) wealth += std::exp(log);
  return std::min(1.0, static_cast<double>(stakes_.size()) / wealth);
}

}  // namespace fcp
