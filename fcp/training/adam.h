// Adam (Kingma and Ba, 2015) over one flat block of parameters, in a single pass:
//
//   g ← gradient + λ p                     (weight decay as torch::optim::Adam does it)
//   m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
//   p ← p − rate / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
//
// Assumes that every parameter has a gradient at every step. Cost: one read and one write of four
// blocks per step; with all layers in one block there is no overhead per layer.
// Tested by tests/training/adam_test.cc against torch::optim::Adam.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fcp {

struct AdamOptions {
  double rate = 5e-4;
  double weight_decay = 1e-6;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

class Adam {
 public:
  Adam(size_t parameters, const AdamOptions& options = {});

  void step(std::span<float> parameters, std::span<const float> gradient);

  // Of the steps that follow.
  void set_rate(double rate) { options_.rate = rate; }

 private:
  AdamOptions options_;
  int64_t steps_ = 0;
  std::vector<float> mean_;    // m
  std::vector<float> square_;  // v
};

}  // namespace fcp
