#include "fcp/nn/kernels/cuda/row_teams.cuh"

namespace fcp {
namespace {

template <typename T, int kTeam>
__global__ void lines_kernel(DeviceRows<T> a, DeviceLines<T> lines, T* out, T* sums) {
  const TeamPlace<T, kTeam> at(a);
  const int64_t met = at.n * a.width;
  T sum = 0;
  for (int64_t i = at.first; i < at.width; i += kTeam) {
    const T c = at.from[i];
    const bool plus = c > 0;
    out[at.row * a.width + i] = c * (plus ? lines.plus_slope : lines.minus_slope)[met + i];
    sum += c != 0 ? c * (plus ? lines.plus_bias : lines.minus_bias)[met + i] : T(0);
  }
  sum = team_sum<T, kTeam>(sum);
  if (at.exists && at.first == 0) sums[at.row] += sum;
}

template <typename T, int kTeam>
__global__ void reach_kernel(DeviceRows<T> a, const T* x, const T* scale, T* value, T* reach,
                             T* size) {
  const TeamPlace<T, kTeam> at(a);
  const int64_t met = at.n * a.width;
  T values = 0, reaches = 0, sizes = 0;
  for (int64_t i = at.first; i < at.width; i += kTeam) {
    const T c = at.from[i];
    const T product = c != 0 ? c * x[met + i] : T(0);
    values += product;
    reaches += fabs(scale != nullptr ? c * scale[i] : c);
    sizes += fabs(product);
  }
  values = team_sum<T, kTeam>(values);
  reaches = team_sum<T, kTeam>(reaches);
  sizes = team_sum<T, kTeam>(sizes);
  if (!at.exists || at.first != 0) return;
  value[at.row] = values;
  reach[at.row] = reaches;
  if (size != nullptr) size[at.row] = sizes;
}

}  // namespace

template <typename T>
const char* launch_lines(const DeviceRows<T>& a, const DeviceLines<T>& lines, T* out, T* sums,
                         void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (a.width >= kTeamLong) {
    lines_kernel<T, kTeamBlock>
        <<<team_blocks(a, kTeamBlock), kTeamBlock, 0, on>>>(a, lines, out, sums);
  } else {
    lines_kernel<T, kTeamWarp>
        <<<team_blocks(a, kTeamWarp), kTeamBlock, 0, on>>>(a, lines, out, sums);
  }
  return launch_error();
}

template <typename T>
const char* launch_reach(const DeviceRows<T>& a, const T* x, const T* scale, T* value, T* reach,
                         T* size, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (a.width >= kTeamLong) {
    reach_kernel<T, kTeamBlock>
        <<<team_blocks(a, kTeamBlock), kTeamBlock, 0, on>>>(a, x, scale, value, reach, size);
  } else {
    reach_kernel<T, kTeamWarp>
        <<<team_blocks(a, kTeamWarp), kTeamBlock, 0, on>>>(a, x, scale, value, reach, size);
  }
  return launch_error();
}

template const char* launch_lines(const DeviceRows<float>&, const DeviceLines<float>&, float*,
                                  float*, void*);
template const char* launch_lines(const DeviceRows<double>&, const DeviceLines<double>&, double*,
                                  double*, void*);
template const char* launch_reach(const DeviceRows<float>&, const float*, const float*, float*,
                                  float*, float*, void*);
template const char* launch_reach(const DeviceRows<double>&, const double*, const double*, double*,
                                  double*, double*, void*);

}  // namespace fcp
