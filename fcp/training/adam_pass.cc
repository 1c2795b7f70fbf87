#include <cmath>
#include <cstdint>

namespace fcp {

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
