#include "fcp/training/adam.h"

#include <cmath>
#include <cstdint>

namespace fcp {

Adam::Adam(size_t parameters, const AdamOptions& options)
    : options_(options), mean_(parameters), square_(parameters) {}

void Adam::step(std::span<float> parameters, std::span<const float> gradient) {
  ++steps_;
  const double t = static_cast<double>(steps_);
  const float rate = static_cast<float>(options_.rate / (1 - std::pow(options_.beta1, t)));
  const float root = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
  const float decay = static_cast<float>(options_.weight_decay);
  const float beta1 = static_cast<float>(options_.beta1);
  const float beta2 = static_cast<float>(options_.beta2);
  const float rest1 = static_cast<float>(1 - options_.beta1);
  const float rest2 = static_cast<float>(1 - options_.beta2);
  const float epsilon = static_cast<float>(options_.epsilon);
  float* __restrict p = parameters.data();
  const float* __restrict slope = gradient.data();
  float* __restrict m = mean_.data();
  float* __restrict v = square_.data();
  const size_t count = mean_.size();
  for (size_t i = 0; i < count; ++i) {
    const float g = slope[i] + decay * p[i];
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    p[i] -= rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
  }
}

void adam_pass(float* parameters, const float* gradient, float* mean, float* square, int64_t count,
               float rate, float root);

void adam_pass(float* __restrict parameters, const float* __restrict gradient,
               float* __restrict mean, float* __restrict square, int64_t count, float rate,
               float root) {
  constexpr float kBeta1 = 0.9f, kRest1 = 0.1f, kBeta2 = 0.999f, kRest2 = 0.001f;
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    mean[i] = kBeta1 * mean[i] + kRest1 * g;
    square[i] = kBeta2 * square[i] + kRest2 * g * g;
    parameters[i] -= rate * mean[i] / (std::sqrt(square[i]) * root + 1e-8f);
  }
}

}  // namespace fcp
