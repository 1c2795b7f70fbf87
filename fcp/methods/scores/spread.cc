#include "fcp/methods/scores/spread.h"

#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/monotone_cuda.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr double kLargestSpread = 1e150;  // a product with any radius that matters stays finite

struct SpreadRow {
  double center = 0, spread = 0;

  bool valid() const { return !std::isnan(center) && !std::isnan(spread); }

  Interval at(double radius) const {
    if (radius < 0) return {kInfinity, -kInfinity};
    return {center - spread * radius, center + spread * radius};
  }

  double guess(double y) const { return y == center ? 0 : std::abs(y - center) / spread; }
};

struct SpreadRows {
  torch::Tensor prediction, spread;  // [N, K]

  SpreadRow row(int64_t n, int64_t k) const {
    const int64_t place = n * prediction.size(1) + k;
    const double given = spread.data_ptr<double>()[place];
    const double kept = std::isnan(given) ? given : std::clamp(given, 0.0, kLargestSpread);
    return {prediction.data_ptr<double>()[place], kept};
  }
};

// Both outputs of a head.
class SpreadReader {
 public:
  SpreadReader(std::shared_ptr<const Network> head, const std::string& output,
               const std::string& spread)
      : head_(std::move(head)),
        output_(output_index(*head_, output)),
        spread_(output_index(*head_, spread)) {}

  bool on_cuda() const { return kCudaKernels && head_->device().is_cuda(); }

  // On the device where the kernels take it from there.
  SpreadRows read(const torch::Tensor& features, bool on_device) const {
    const Tensors outputs = run_apart(*head_, {features});
    const auto matrix = on_device ? output_matrix : plain_matrix;
    const SpreadRows rows{matrix(outputs[output_]), matrix(outputs[spread_])};
    if (rows.spread.size(1) != rows.prediction.size(1)) {
      fail("spread: output '", head_->outputs()[spread_].name, "' has ", rows.spread.size(1),
           " numbers per row, the prediction ", rows.prediction.size(1), "; expected as many");
    }
    return rows;
  }

 private:
  std::shared_ptr<const Network> head_;
  size_t output_, spread_;
};

class Spread : public Score {
 public:
  explicit Spread(SpreadReader reader) : reader_(std::move(reader)) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const SpreadRows rows = reader_.read(features, reader_.on_cuda());
    if constexpr (kCudaKernels) {
      if (reader_.on_cuda()) return scores_cuda(moved(rows), truth);
    }
    return monotone_scores(rows, truth);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const SpreadRows rows = reader_.read(features, reader_.on_cuda());
    if constexpr (kCudaKernels) {
      if (reader_.on_cuda()) return regions_cuda(moved(rows), radius);
    }
    return monotone_regions(rows, radius);
  }

 private:
  static MovedCuda moved(const SpreadRows& rows) {
    return {rows.prediction, rows.prediction, rows.prediction, rows.spread.clamp(0, kLargestSpread),
            /*from_zero=*/true};
  }

  SpreadReader reader_;
};

}  // namespace

std::vector<std::string> SpreadOptions::learned_outputs() const {
  return {spread.empty() ? kSpreadOutput : spread};
}

std::vector<Option> SpreadOptions::rows() {
  return {score_option(field::spread, {.name = "spread",
                                       .help = "The output that is the spread; by default the one "
                                               "that fcp learned",
                                       .storage = OptionStorage::kSet,
                                       .after = "asymmetric"})};
}

std::unique_ptr<Score> make_score(const SpreadOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  SpreadReader reader(std::move(head), shared.output, options.learned_outputs()[0]);
  if (!options.asymmetric && shared.side == BoundSide::kBoth) {
    return std::make_unique<Spread>(std::move(reader));
  }
  const auto read = [reader = std::move(reader)](const torch::Tensor& features) {
    const SpreadRows rows = reader.read(features, /*on_device=*/false);
    return EndPairs{rows.prediction, rows.prediction, rows.prediction, rows.spread};
  };
  return make_end_score(read, shared.side);
}

}  // namespace fcp
