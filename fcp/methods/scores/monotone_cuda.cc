#include "fcp/methods/scores/monotone_cuda.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

#include "fcp/base/error.h"
#include "fcp/methods/scores/monotone_kernel.h"
#include "fcp/methods/scores/outputs.h"

namespace fcp {
namespace {

// The kernels' rows, and the tensors that they point into.
struct HeldMoved {
  torch::Tensor low, high, width;
  DeviceMovedRows rows;

  explicit HeldMoved(const MovedCuda& of)
      : low(of.low.contiguous()), high(of.high.contiguous()), width(of.width.contiguous()) {
    rows.low = low.data_ptr<double>();
    rows.high = high.data_ptr<double>();
    rows.width = width.data_ptr<double>();
    rows.from_zero = of.from_zero;
    rows.rows = of.prediction.size(0);
    rows.outputs = of.prediction.size(1);
  }
};

struct HeldGrown {
  torch::Tensor center, quantiles;
  DeviceGrownRows rows;

  explicit HeldGrown(const GrownCuda& of)
      : center(of.prediction.contiguous()), quantiles(of.quantiles.contiguous()) {
    rows.center = center.data_ptr<double>();
    rows.quantiles = quantiles.data_ptr<double>();
    rows.rows = of.prediction.size(0);
    rows.outputs = of.prediction.size(1);
    rows.levels = quantiles.size(1) / (rows.outputs > 0 ? rows.outputs : 1);
  }
};

void check_start(const char* wrong) {
  if (wrong) fail("the CUDA scores could not start: ", wrong);
}

template <typename Held>
std::vector<double> held_scores(const Held& held, const torch::Tensor& prediction,
                                const torch::Tensor& truth) {
  const c10::cuda::CUDAGuard device(prediction.device());
  const torch::Tensor y = truth_matrix(truth, prediction).contiguous();
  const torch::Tensor scores = torch::empty({prediction.size(0)}, prediction.options());
  check_start(launch_scores(held.rows, y.template data_ptr<double>(),
                            scores.template data_ptr<double>(),
                            c10::cuda::getCurrentCUDAStream().stream()));
  return plain_scores(scores);
}

template <typename Held>
Regions held_regions(const Held& held, const torch::Tensor& prediction,
                     const torch::Tensor& radius) {
  const c10::cuda::CUDAGuard device(prediction.device());
  const torch::Tensor column = radius_column(radius, prediction).contiguous();
  const torch::Tensor ends =
      torch::empty({2, prediction.size(0), prediction.size(1)}, prediction.options());
  check_start(launch_ends(held.rows, column.template data_ptr<double>(),
                          ends.template data_ptr<double>(),
                          c10::cuda::getCurrentCUDAStream().stream()));
  return {prediction, ends[0], ends[1], {}, {}};
}

}  // namespace

std::vector<double> scores_cuda(const MovedCuda& rows, const torch::Tensor& truth) {
  return held_scores(HeldMoved(rows), rows.prediction, truth);
}

std::vector<double> scores_cuda(const GrownCuda& rows, const torch::Tensor& truth) {
  return held_scores(HeldGrown(rows), rows.prediction, truth);
}

Regions regions_cuda(const MovedCuda& rows, const torch::Tensor& radius) {
  return held_regions(HeldMoved(rows), rows.prediction, radius);
}

Regions regions_cuda(const GrownCuda& rows, const torch::Tensor& radius) {
  return held_regions(HeldGrown(rows), rows.prediction, radius);
}

}  // namespace fcp
