// How threads share rows of coefficients: a row is taken by a warp, or by a whole block where it is
// long. Every thread adds up the numbers a step apart, and the threads' sums are folded in halves:
// the same order for every row of that length.
#pragma once

#include <cuda_runtime.h>

#include "fcp/nn/kernels/cuda/line_rows_kernel.h"

namespace fcp {

constexpr int kTeamBlock = 256;  // threads
constexpr int kTeamWarp = 32;
constexpr int64_t kTeamLong = 1024;  // numbers that a block takes together

// The sum over the kTeam threads of a row; the first of them has it. All threads of a block call.
template <typename T, int kTeam>
__device__ T team_sum(T own) {
  for (int offset = kTeamWarp / 2; offset > 0; offset /= 2) {
    own += __shfl_xor_sync(0xffffffffu, own, offset);
  }
  if (kTeam == kTeamWarp) return own;
  __shared__ T parts[kTeamBlock / kTeamWarp];
  __syncthreads();  // of an earlier call
  if (threadIdx.x % kTeamWarp == 0) parts[threadIdx.x / kTeamWarp] = own;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < kTeamBlock / kTeamWarp; ++i) sum += parts[i];
  return sum;
}

// Which row a thread works on, and with which of its numbers it begins.
template <typename T, int kTeam>
struct TeamPlace {
  __device__ explicit TeamPlace(const DeviceRows<T>& a)
      : row(static_cast<int64_t>(blockIdx.x) * (kTeamBlock / kTeam) + threadIdx.x / kTeam),
        first(threadIdx.x % kTeam),
        exists(row < a.count * a.rows),
        n(exists ? row % a.rows : 0),
        from(a.numbers + (exists ? row / a.rows : 0) * a.count_step + n * a.row_step),
        width(exists ? a.width : 0) {}

  int64_t row;
  int64_t first;
  bool exists;
  int64_t n;
  const T* from;
  int64_t width;
};

template <typename T>
unsigned team_blocks(const DeviceRows<T>& a, int team) {
  const int64_t each = kTeamBlock / team;
  return static_cast<unsigned>((a.count * a.rows + each - 1) / each);
}

inline const char* launch_error() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace fcp
