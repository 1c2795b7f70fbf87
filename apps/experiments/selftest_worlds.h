// The populations of the self-test. A network's quality must not matter for coverage, so there are
// three: `even`, where the network knows the answers up to noise that it does not see grow;
// `heavy`, where some answers are far out and a third of the labels are wrong; and `blind`, where
// the network has nothing to do with the answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

struct SelftestWorld {
  std::string name;
  Graph mean, quantiles, logits;  // networks: one output, two quantiles, six classes
  Graph heads;                    // `mean` with heads on its features, of random weights
  Graph pair;                     // two outputs, the first that of `mean`, with such heads
  torch::Tensor x;                // [N, 4]
  torch::Tensor truth;            // [N, 1]
  torch::Tensor pairs;            // [N, 2]: the truth, and another one with the same noise
  torch::Tensor labels;           // [N, 1]
  std::vector<int64_t> groups;    // [N], of three
  std::vector<double> weights;    // [N], a likelihood ratio between 0.2 and 5
};

std::vector<SelftestWorld> selftest_worlds(size_t rows, uint64_t seed);

// The laws that the self-test holds coverage against; selftest.h says what they are.
// Tested by tests/experiments/selftest_test.cc.

// Of n exchangeable rows the one of rank k has the radius; m more rows are looked at.
struct CountLaw {
  size_t n = 0;
  size_t m = 0;
  size_t k = 0;
};

// P(count ≤ c) of the rows among the m whose score is at most the k-th smallest of the n.
double count_cdf(const CountLaw& law, size_t c);

// The randomised probability integral: uniform in [0, 1] where the count follows the law and u is
// uniform.
double uniform_of_count(const CountLaw& law, size_t c, double u);

// Upper bounds of the probability that independent uniform numbers are as unlike the uniform law,
// or lean as far to the low side, as these.
double chance_not_uniform(std::vector<double> values);
double chance_too_low(std::vector<double> values);

// Bets on numbers whose mean given the past is at most 0. The stake is a mixture of shares of the
// wealth, so that small and large means are both detected.
class Gambler {
 public:
  enum Side {
    kTooLow,   // of numbers that are −α or more
    kTooHigh,  // of numbers that are −1 or more
  };
  explicit Gambler(Side side);

  void bet(double number);
  // 1 / wealth, at most 1: P(chance ≤ δ) ≤ δ.
  double chance() const;

 private:
  std::vector<double> stakes_;
  std::vector<double> log_wealth_;
};

}  // namespace fcp
