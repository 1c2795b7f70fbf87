#include <cuda_runtime.h>

#include "fcp/nn/kernels/relu_mlp/relu_range_kernel.h"

namespace fcp {
namespace {

constexpr int kWarps = 4;            // of a block
constexpr int kRows = 4;             // that a warp takes at a time
constexpr int kMostBlocks = 1 << 14;
constexpr int kMostShared = 96 << 10;
constexpr unsigned kAll = 0xffffffffu;
constexpr int kInfinityKey = 0x7f800000;  // the bit pattern of the float32 +∞
constexpr int kNewtonSteps = 8;

int shared_bytes(int64_t hidden, int64_t outputs) {
  return static_cast<int>(sizeof(float) * hidden * (2 * outputs + kWarps * kRows));
}

// One output around one row. Every function below is called by a whole warp and gives all of its
// threads the same number.
struct Output {
  const float* hidden;
  const float* moves;
  const float* weights;
  float shift;
  double widening;
  int units;
  int lane;
};

__device__ float sum_of_warp(float own) {
  for (int offset = 16; offset > 0; offset /= 2) {
    own = __fadd_rn(own, __shfl_xor_sync(kAll, own, offset));
  }
  return own;
}

// E(t), widened. By operations that the compiler neither fuses nor reorders: one and the same
// number wherever it is asked for.
__device__ double end_at(const Output& of, float t) {
  float sum = 0;
  for (int i = of.lane; i < of.units; i += 32) {
    const float unit = __fmaf_rn(t, of.moves[i], of.hidden[i]);
    sum = __fmaf_rn(of.weights[i], unit <= 0 ? 0.0f : unit, sum);
  }
  const float end = __fadd_rn(sum_of_warp(sum), of.shift);
  return __fma_rn(static_cast<double>(t), of.widening, static_cast<double>(end));
}

// A radius near the one at which the end of that sign reaches `target`, by Newton's steps.
__device__ float guess_radius(const Output& of, float target, float sign) {
  const auto widening = static_cast<float>(of.widening);
  float radius = 0;
  for (int step = 0; step < kNewtonSteps; ++step) {
    const float t = sign * radius;
    float shift = 0, slope = 0;
    for (int i = of.lane; i < of.units; i += 32) {
      const bool on = __fmaf_rn(t, of.moves[i], of.hidden[i]) > 0;
      shift += on ? of.weights[i] * of.hidden[i] : 0.0f;
      slope += on ? of.weights[i] * of.moves[i] : 0.0f;
    }
    shift = sum_of_warp(shift);
    slope = sum_of_warp(slope);
    const float end = shift + slope * t + of.shift;
    const float steep = slope + widening;
    const float missing = sign * (target - end) - radius * widening;
    const float next = radius + (steep > 0 ? missing / steep : radius);
    const float kept = next > 0 ? next : 0.0f;  // 0 where it is not a number
    const bool going = steep > 0 && fabsf(kept - radius) > 1e-4f * radius;
    radius = kept;
    if (!going) break;
  }
  return radius;
}

// The smallest float32 radius at which the output's range holds `wanted`: looks around the guess,
// ever farther, until the answer is enclosed, and bisects.
__device__ double radius_reaching(const Output& of, double wanted) {
  const double answer = end_at(of, 0.0f);
  if (isnan(wanted) || isnan(answer)) return nan("");
  const float sign = wanted > answer ? 1.0f : -1.0f;
  const float guess = guess_radius(of, static_cast<float>(wanted), sign);
  const auto arrived = [&](int key) {  // what is not a number is unbounded and has
    const double end = end_at(of, sign * __int_as_float(key));
    return !((wanted - end) * static_cast<double>(sign) > 0);
  };
  int below = -1, above = kInfinityKey;  // not there yet, and there
  const int middle = __float_as_int(guess < 3e38f ? guess : 3e38f);
  const bool first = arrived(middle);
  if (first) above = middle; else below = middle;
  bool outward = true;
  for (int reach = 2; above - below > 1; reach = reach < (1 << 28) ? 4 * reach : reach) {
    const int width = above - below;
    outward = outward && reach < width;
    const int key = !outward ? below + width / 2 : first ? above - reach : below + reach;
    const bool there = arrived(key);
    if (there) above = key; else below = key;
    outward = outward && there == first;
  }
  return above == kInfinityKey ? static_cast<double>(INFINITY)
                               : static_cast<double>(__int_as_float(above));
}

// p = W₁v + b₁ of up to kRows rows, each number by one sum, input by input.
__device__ void fill_hidden(const DeviceReluRange& range, int64_t first, int rows, int lane,
                            float* hidden) {
  for (int base = 0; base < range.hidden; base += 32) {
    const int unit = base + lane;
    const bool own = unit < range.hidden;
    float sum[kRows], v[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = own ? range.b1[unit] : 0.0f;
    for (int begin = 0; begin < range.width; begin += 32) {
      const int d = begin + lane;
      for (int r = 0; r < kRows; ++r) {
        v[r] = r < rows && d < range.width ? range.features[(first + r) * range.width + d] : 0.0f;
      }
      const int many = min(32, range.width - begin);
      for (int j = 0; j < many; ++j) {
        const float weight =
            own ? __ldg(range.w1 + static_cast<int64_t>(begin + j) * range.hidden + unit) : 0.0f;
        for (int r = 0; r < kRows; ++r) {
          sum[r] = __fmaf_rn(weight, __shfl_sync(kAll, v[r], j), sum[r]);
        }
      }
    }
    for (int r = 0; own && r < kRows; ++r) hidden[r * range.hidden + unit] = sum[r];
  }
}

// Shows every row with its hidden units to `work(row, output of index k)`, warp by warp.
template <typename Work>
__device__ void for_rows(const DeviceReluRange& range, const Work& work) {
  extern __shared__ float shared[];
  float* weights = shared;                                   // [outputs, hidden]
  float* moves = weights + range.outputs * range.hidden;     // the same
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float* hidden = moves + range.outputs * range.hidden + warp * kRows * range.hidden;
  for (int i = threadIdx.x; i < range.outputs * range.hidden; i += blockDim.x) {
    weights[i] = range.w2[i];
    moves[i] = range.moves[i];
  }
  __syncthreads();
  const int64_t stride = int64_t{gridDim.x} * kWarps * kRows;
  for (int64_t first = (int64_t{blockIdx.x} * kWarps + warp) * kRows; first < range.rows;
       first += stride) {
    const int rows = static_cast<int>(min(int64_t{kRows}, range.rows - first));
    fill_hidden(range, first, rows, lane, hidden);
    __syncwarp();
    for (int r = 0; r < rows; ++r) {
      work(first + r, lane, [&](int k) {
        return Output{hidden + r * range.hidden, moves + k * range.hidden,
                      weights + k * range.hidden, range.b2[k], range.widening, range.hidden, lane};
      });
    }
    __syncwarp();
  }
}

__global__ void __launch_bounds__(32 * kWarps)
    find_radii(DeviceReluRange range, const double* truth, double* radius) {
  for_rows(range, [&](int64_t row, int lane, const auto& output) {
    double largest = 0;
    for (int k = 0; k < range.outputs && !isnan(largest); ++k) {
      const double own = radius_reaching(output(k), truth[row * range.outputs + k]);
      if (isnan(own) || own > largest) largest = own;
    }
    if (lane == 0) radius[row] = largest;
  });
}

// Everything at an infinite radius, nothing at a negative one; otherwise at the largest float32
// that is at most the radius.
__global__ void __launch_bounds__(32 * kWarps)
    find_ranges(DeviceReluRange range, const double* radius, double* ends) {
  const int64_t all = range.rows * range.outputs;
  for_rows(range, [&](int64_t row, int lane, const auto& output) {
    const double asked = radius[row];
    const bool finite = asked >= 0 && asked < static_cast<double>(INFINITY);
    const float at = finite ? __double2float_rd(asked) : 0.0f;
    for (int k = 0; k < range.outputs; ++k) {
      const auto of = output(k);
      const double prediction = end_at(of, 0.0f);
      double lower = end_at(of, -at), upper = end_at(of, at);
      if (!finite || isnan(lower)) lower = asked < 0 ? INFINITY : -INFINITY;
      if (!finite || isnan(upper)) upper = asked < 0 ? -INFINITY : INFINITY;
      if (lane != 0) continue;
      const int64_t place = row * range.outputs + k;
      ends[place] = prediction;
      ends[all + place] = lower;
      ends[2 * all + place] = upper;
    }
  });
}

template <typename Kernel>
const char* start(Kernel* kernel, const DeviceReluRange& range, const double* in, double* out,
                  void* stream) {
  if (range.rows == 0) return nullptr;
  const int bytes = shared_bytes(range.hidden, range.outputs);
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) {
    const int64_t wanted = (range.rows + kWarps * kRows - 1) / (kWarps * kRows);
    const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
    kernel<<<blocks, 32 * kWarps, bytes, static_cast<cudaStream_t>(stream)>>>(range, in, out);
    error = cudaGetLastError();
  }
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

bool fits_relu_range(int64_t hidden, int64_t outputs) {
  constexpr int64_t kMost = 1 << 20;  // of each: the product below does not overflow
  return hidden <= kMost && outputs <= kMost &&
         hidden * (2 * outputs + kWarps * kRows) <= kMostShared / int64_t{sizeof(float)};
}

const char* launch_relu_radii(const DeviceReluRange& range, const double* truth, double* radius,
                              void* stream) {
  return start(find_radii, range, truth, radius, stream);
}

const char* launch_relu_ranges(const DeviceReluRange& range, const double* radius, double* ends,
                               void* stream) {
  return start(find_ranges, range, radius, ends, stream);
}

}  // namespace fcp
