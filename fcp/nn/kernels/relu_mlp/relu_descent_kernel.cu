#include <cuda_runtime.h>

#include "fcp/nn/kernels/relu_mlp/relu_descent_kernel.h"

namespace fcp {
namespace {

constexpr int kThreads = 128;

template <int kUnits>
__global__ void __launch_bounds__(kThreads) descend(ReluDescent descent) {
  extern __shared__ float shared[];
  float* gram = shared;                        // [kUnits, kUnits]
  float* moves = gram + kUnits * kUnits;       // [kUnits, kThreads]: each thread its own column
  float* weight = moves + kUnits * kThreads;   // [kUnits]
  for (int i = threadIdx.x; i < kUnits * kUnits; i += kThreads) gram[i] = descent.gram[i];
  for (int i = threadIdx.x; i < kUnits; i += kThreads) weight[i] = descent.weight[i];
  __syncthreads();
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= descent.rows) return;

  float p[kUnits], total[kUnits];
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    p[i] = descent.hidden[row * kUnits + i];
    total[i] = 0;
  }
  const float truth = descent.truth[row];
  for (int step = 0; step < descent.steps; ++step) {
    float output = descent.bias;
#pragma unroll
    for (int i = 0; i < kUnits; ++i) output = fmaf(weight[i], fmaxf(p[i], 0.0f), output);
    const float residual = descent.double_rate * (output - truth);
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const float move = p[i] > 0 ? residual * weight[i] : 0.0f;
      total[i] += move;
      moves[i * kThreads + threadIdx.x] = -move;
    }
#pragma unroll 4
    for (int j = 0; j < kUnits; ++j) {
      const float move = moves[j * kThreads + threadIdx.x];
      const float4* line = reinterpret_cast<const float4*>(gram + j * kUnits);
#pragma unroll
      for (int i = 0; i < kUnits / 4; ++i) {
        const float4 k = line[i];
        p[4 * i] = fmaf(move, k.x, p[4 * i]);
        p[4 * i + 1] = fmaf(move, k.y, p[4 * i + 1]);
        p[4 * i + 2] = fmaf(move, k.z, p[4 * i + 2]);
        p[4 * i + 3] = fmaf(move, k.w, p[4 * i + 3]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kUnits; ++i) descent.total[row * kUnits + i] = total[i];
}

template <int kUnits>
cudaError_t start(const ReluDescent& descent, cudaStream_t stream) {
  const int bytes = static_cast<int>(sizeof(float)) * (kUnits * kUnits + kUnits * kThreads + kUnits);
  const cudaError_t error = cudaFuncSetAttribute(
      descend<kUnits>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>((descent.rows + kThreads - 1) / kThreads);
  descend<kUnits><<<blocks, kThreads, bytes, stream>>>(descent);
  return cudaGetLastError();
}

}  // namespace

const char* launch_relu_descent(const ReluDescent& descent, void* stream) {
  if (descent.rows == 0) return nullptr;
  const auto on = static_cast<cudaStream_t>(stream);
  const cudaError_t error = descent.units == 32 ? start<32>(descent, on) : start<64>(descent, on);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace fcp
