#include <cuda_runtime.h>

#include "fcp/methods/scores/least_radius.h"
#include "fcp/methods/scores/monotone_kernel.h"

namespace fcp {
namespace {

constexpr int kThreads = 128;
constexpr int kTailPieces = 24;  // of density.h, as all that has to do with tails

struct Ends {
  double lower, upper;
  __device__ bool contains(double y) const { return lower <= y && y <= upper; }
};

__device__ Ends everything() { return {-INFINITY, INFINITY}; }
__device__ Ends nothing() { return {INFINITY, -INFINITY}; }

// The rows of spread.cc and quantiles.cc.
struct MovedRow {
  double low, high, width;
  bool from_zero;

  __device__ MovedRow(const DeviceMovedRows& rows, int64_t place)
      : low(rows.low[place]),
        high(rows.high[place]),
        width(rows.width[place]),
        from_zero(rows.from_zero) {}

  __device__ bool valid() const { return !isnan(low) && !isnan(high) && !isnan(width); }

  __device__ Ends at(double radius) const {
    if (from_zero && radius < 0) return nothing();
    return {low - radius * width, high + radius * width};
  }

  __device__ double guess(double y) const {
    const double below = low - y, above = y - high;
    return (below < above ? above : below) / width;
  }
};

// The rows of density.cc. In place of lists of all steps, the steps are taken again for every
// question, by the same arithmetic.
struct GrownRow {
  struct Step {
    double count, lower, upper;
  };

  double center;
  const double* quantiles;
  int64_t levels;
  int64_t first = 0;  // the densest gap
  double left_scale = 0, right_scale = 0;
  // Where the steps are.
  int64_t left = 0, right = 0;  // pieces taken on each side
  Step step{};

  __device__ GrownRow(const DeviceGrownRows& rows, int64_t place)
      : center(rows.center[place]),
        quantiles(rows.quantiles + place * rows.levels),
        levels(rows.levels) {
    if (!valid()) return;
    const int64_t gaps = levels - 1, middle = gaps / 2;
    for (int64_t i = 1; i < gaps; ++i) {
      const double own = length(i), best = length(first);
      const int64_t away = i < middle ? middle - i : i - middle;
      const int64_t least = first < middle ? middle - first : first - middle;
      if (own < best || (own == best && away < least)) first = i;
    }
    const double mean = (quantiles[gaps] - quantiles[0]) / static_cast<double>(gaps);
    left_scale = fmax(length(0), mean / 64);
    right_scale = fmax(length(gaps - 1), mean / 64);
  }

  __device__ double length(int64_t gap) const { return quantiles[gap + 1] - quantiles[gap]; }
  __device__ bool valid() const { return !isnan(center) && !isnan(quantiles[0]); }

  __device__ void begin() {
    const double lower = quantiles[first], upper = quantiles[first + 1];
    const double middle = lower + (upper - lower) / 2;
    step = {0, middle, middle};
    left = right = -1;
  }

  // Takes the next piece; false where there is none.
  __device__ bool advance() {
    if (left < 0) {  // the first gap
      left = right = 0;
      step = {1, quantiles[first], quantiles[first + 1]};
      return true;
    }
    const int64_t below = first, above = levels - 2 - first;  // quantiles still to come
    const bool no_left = left == below + kTailPieces, no_right = right == above + kTailPieces;
    if (no_left && no_right) return false;
    const auto left_tail = static_cast<int>(left - below);
    const auto right_tail = static_cast<int>(right - above);
    const double left_gap = left < below ? fabs(quantiles[first - 1 - left] - step.lower)
                                         : left_scale * ldexp(1.0, 3 * left_tail + 1);
    const double right_gap = right < above ? fabs(quantiles[first + 2 + right] - step.upper)
                                           : right_scale * ldexp(1.0, 3 * right_tail + 1);
    if (no_right || (!no_left && left_gap <= right_gap)) {
      step.count += left < below ? 1 : tail_count(left_tail);
      step.lower = left < below ? quantiles[first - 1 - left]
                                : step.lower - left_scale * ldexp(1.0, 2 * left_tail);
      ++left;
    } else {
      step.count += right < above ? 1 : tail_count(right_tail);
      step.upper = right < above ? quantiles[first + 2 + right]
                                 : step.upper + right_scale * ldexp(1.0, 2 * right_tail);
      ++right;
    }
    return true;
  }

  __device__ static double tail_count(int piece) { return fmax(ldexp(1.0, -piece - 1), 1.0 / 16); }

  __device__ Ends at(double radius) {
    if (radius < 0) return nothing();
    begin();
    Step before = step;
    for (bool more = advance(); step.count <= radius; more = advance()) {
      if (!more) return everything();
      before = step;
    }
    const double share = (radius - before.count) / (step.count - before.count);
    const double lower = before.lower + share * (step.lower - before.lower);
    const double upper = before.upper + share * (step.upper - before.upper);
    return {center + fmax(lower, step.lower), center + fmin(upper, step.upper)};
  }

  __device__ double guess(double y) {
    const double residual = y - center;
    begin();
    if (step.lower == residual) return 0;
    Step before = step;
    while (advance()) {
      if (step.lower <= residual && residual <= step.upper) {
        const bool below = residual < before.lower;
        const double from = below ? before.lower : before.upper;
        const double to = below ? step.lower : step.upper;
        return before.count + (residual - from) / (to - from) * (step.count - before.count);
      }
      before = step;
    }
    return before.count;
  }
};

template <typename Row>
__device__ double score_of(Row row, double y) {
  if (!row.valid() || isnan(y)) return nan("");
  return least_radius([&](double radius) { return row.at(radius).contains(y); }, row.guess(y));
}

// A thread takes a row.
template <typename Row, typename Rows>
__global__ void __launch_bounds__(kThreads)
    find_scores(Rows rows, const double* truth, double* scores) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= rows.rows) return;
  double largest = -INFINITY;
  for (int64_t k = 0; k < rows.outputs && !isnan(largest); ++k) {
    const int64_t place = n * rows.outputs + k;
    const double own = score_of(Row(rows, place), truth[place]);
    largest = isnan(own) || largest < own ? own : largest;
  }
  scores[n] = largest;
}

// Nothing at −∞ and everything at +∞, whatever the row says.
template <typename Row, typename Rows>
__global__ void __launch_bounds__(kThreads)
    find_ends(Rows rows, const double* radius, double* ends) {
  const int64_t place = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t all = rows.rows * rows.outputs;
  if (place >= all) return;
  const double asked = radius[place / rows.outputs];
  Ends found = asked > 0 ? everything() : nothing();
  if (!isinf(asked)) {
    Row row(rows, place);
    found = row.valid() ? row.at(asked) : Ends{nan(""), nan("")};
  }
  ends[place] = found.lower;
  ends[all + place] = found.upper;
}

const char* said(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

unsigned blocks_of(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

template <typename Row, typename Rows>
const char* start_scores(const Rows& rows, const double* truth, double* scores, void* stream) {
  if (rows.rows == 0) return nullptr;
  find_scores<Row><<<blocks_of(rows.rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      rows, truth, scores);
  return said(cudaGetLastError());
}

template <typename Row, typename Rows>
const char* start_ends(const Rows& rows, const double* radius, double* ends, void* stream) {
  const int64_t all = rows.rows * rows.outputs;
  if (all == 0) return nullptr;
  find_ends<Row><<<blocks_of(all), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      rows, radius, ends);
  return said(cudaGetLastError());
}

}  // namespace

const char* launch_scores(const DeviceMovedRows& rows, const double* truth, double* scores,
                          void* stream) {
  return start_scores<MovedRow>(rows, truth, scores, stream);
}

const char* launch_scores(const DeviceGrownRows& rows, const double* truth, double* scores,
                          void* stream) {
  return start_scores<GrownRow>(rows, truth, scores, stream);
}

const char* launch_ends(const DeviceMovedRows& rows, const double* radius, double* ends,
                        void* stream) {
  return start_ends<MovedRow>(rows, radius, ends, stream);
}

const char* launch_ends(const DeviceGrownRows& rows, const double* radius, double* ends,
                        void* stream) {
  return start_ends<GrownRow>(rows, radius, ends, stream);
}

}  // namespace fcp
