#include "fcp/nn/kernels/cuda/free_lines_kernel.h"
#include "fcp/nn/kernels/cuda/row_teams.cuh"

namespace fcp {
namespace {

template <typename T, int kTeam>
__global__ void free_lines_kernel(DeviceRows<T> a, DeviceFreeLines<T> lines, T* out, T* sums) {
  const TeamPlace<T, kTeam> at(a);
  const int64_t met = at.n * a.width, own = at.row * a.width;
  T sum = 0;
  for (int64_t i = at.first; i < at.width; i += kTeam) {
    const T c = at.from[i];
    const bool free = (c > 0) == lines.plus;
    out[own + i] = c * (free ? lines.slope[own + i] : lines.fixed_slope[met + i]);
    sum += c != 0 ? c * (free ? lines.bias : lines.fixed_bias)[met + i] : T(0);
  }
  sum = team_sum<T, kTeam>(sum);
  if (at.exists && at.first == 0) sums[at.row] = sum;
}

// A coefficient that is 0 has the slopes of those above it. An intercept may be infinite there.
template <typename T, int kTeam>
__global__ void free_slopes_kernel(DeviceRows<T> a, DeviceFreeLines<T> lines, const T* of_out,
                                   const T* of_sums, T* of_a, T* of_slope) {
  const TeamPlace<T, kTeam> at(a);
  const int64_t met = at.n * a.width, own = at.row * a.width;
  const T of_sum = at.exists ? of_sums[at.row] : T(0);
  for (int64_t i = at.first; i < at.width; i += kTeam) {
    const T c = at.from[i], of = of_out[own + i];
    const bool free = (c >= 0) == lines.plus;
    of_slope[own + i] = free ? of * c : T(0);
    if (of_a == nullptr) continue;
    const T bias = (free ? lines.bias : lines.fixed_bias)[met + i];
    const T slope = free ? lines.slope[own + i] : lines.fixed_slope[met + i];
    of_a[own + i] = of * slope + (c != 0 || isfinite(bias) ? of_sum * bias : T(0));
  }
}

}  // namespace

template <typename T>
const char* launch_free_lines(const DeviceRows<T>& a, const DeviceFreeLines<T>& lines, T* out,
                              T* sums, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (a.width >= kTeamLong) {
    free_lines_kernel<T, kTeamBlock>
        <<<team_blocks(a, kTeamBlock), kTeamBlock, 0, on>>>(a, lines, out, sums);
  } else {
    free_lines_kernel<T, kTeamWarp>
        <<<team_blocks(a, kTeamWarp), kTeamBlock, 0, on>>>(a, lines, out, sums);
  }
  return launch_error();
}

template <typename T>
const char* launch_free_slopes(const DeviceRows<T>& a, const DeviceFreeLines<T>& lines,
                               const T* of_out, const T* of_sums, T* of_a, T* of_slope,
                               void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  free_slopes_kernel<T, kTeamWarp><<<team_blocks(a, kTeamWarp), kTeamBlock, 0, on>>>(
      a, lines, of_out, of_sums, of_a, of_slope);
  return launch_error();
}

template const char* launch_free_lines(const DeviceRows<float>&, const DeviceFreeLines<float>&,
                                       float*, float*, void*);
template const char* launch_free_lines(const DeviceRows<double>&, const DeviceFreeLines<double>&,
                                       double*, double*, void*);
template const char* launch_free_slopes(const DeviceRows<float>&, const DeviceFreeLines<float>&,
                                        const float*, const float*, float*, float*, void*);
template const char* launch_free_slopes(const DeviceRows<double>&, const DeviceFreeLines<double>&,
                                        const double*, const double*, double*, double*, void*);

}  // namespace fcp
