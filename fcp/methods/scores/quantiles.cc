#include "fcp/methods/scores/quantiles.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"
#include "fcp/methods/scores/monotone_cuda.h"
#include "fcp/methods/scores/monotone_rows.h"
#include "fcp/methods/scores/one_sided.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/kernels/cuda/cuda_kernels.h"
#include "fcp/nn/runtime/batch_free.h"

namespace fcp {
namespace {

constexpr double kLargestQuantile = 1e150;

// In place: ascending, finite; all NaN where one is.
void make_ascending(double* quantiles, int64_t count) {
  const bool bad =
      std::any_of(quantiles, quantiles + count, [](double q) { return std::isnan(q); });
  for (int64_t i = 0; i < count; ++i) {
    quantiles[i] =
        bad ? std::nan("") : std::clamp(quantiles[i], -kLargestQuantile, kLargestQuantile);
  }
  if (!bad) std::sort(quantiles, quantiles + count);
}

}  // namespace

QuantileReader::QuantileReader(std::shared_ptr<const Network> head, const std::string& output,
                               const std::string& quantiles)
    : head_(std::move(head)),
      output_(output_index(*head_, output)),
      grid_(output_index(*head_, quantiles)) {}

QuantileRows QuantileReader::outputs_of(const torch::Tensor& features) const {
  const Tensors outputs = run_apart(*head_, {features});
  const QuantileRows rows{output_matrix(outputs[output_]), output_matrix(outputs[grid_])};
  const int64_t outputs_per_row = rows.prediction.size(1);
  if (rows.grid.size(1) % outputs_per_row != 0 || rows.grid.size(1) < 2 * outputs_per_row) {
    fail("output '", head_->outputs()[grid_].name, "' has ", rows.grid.size(1),
         " numbers per row, expected two or more quantiles for each of the ", outputs_per_row,
         " outputs");
  }
  return rows;
}

bool QuantileReader::on_cuda() const { return kCudaKernels && head_->device().is_cuda(); }

QuantileRows QuantileReader::read_cuda(const torch::Tensor& features) const {
  const QuantileRows rows = outputs_of(features);
  const torch::Tensor runs = rows.grid.reshape({-1, rows.levels()});
  const torch::Tensor sorted =
      std::get<0>(runs.clamp(-kLargestQuantile, kLargestQuantile).sort(/*dim=*/1));
  const torch::Tensor bad = runs.isnan().any(1, /*keepdim=*/true);
  return {rows.prediction, sorted.masked_fill(bad, std::nan("")).reshape(rows.grid.sizes())};
}

QuantileRows QuantileReader::read(const torch::Tensor& features) const {
  const QuantileRows outputs = outputs_of(features);
  QuantileRows rows{plain_matrix(outputs.prediction), plain_matrix(outputs.grid).clone()};
  for (int64_t i = 0; i < rows.grid.numel(); i += rows.levels()) {
    make_ascending(rows.grid.data_ptr<double>() + i, rows.levels());
  }
  return rows;
}

QuantilePlace quantile_place(size_t levels, double level) {
  const auto last = static_cast<double>(levels - 1);
  const double place = std::clamp(level * (last + 2) - 1, 0.0, last);
  const auto below = std::min(static_cast<size_t>(place), levels - 2);
  return {below, place - static_cast<double>(below)};
}

double quantile_at(std::span<const double> quantiles, double level) {
  const auto [below, share] = quantile_place(quantiles.size(), level);
  return quantiles[below] + share * (quantiles[below + 1] - quantiles[below]);
}

namespace {

struct QuantilePair {
  double low = 0, high = 0, width = 0;

  bool valid() const { return !std::isnan(low) && !std::isnan(high); }

  Interval at(double radius) const { return {low - radius * width, high + radius * width}; }

  double guess(double y) const { return std::max(low - y, y - high) / width; }
};

struct QuantilePairs {
  QuantileRows rows;
  double tail;
  torch::Tensor prediction = rows.prediction;

  QuantilePair row(int64_t n, int64_t k) const {
    const std::span<const double> quantiles = rows.quantiles(n, k);
    const double low = quantile_at(quantiles, tail), high = quantile_at(quantiles, 1 - tail);
    const double center = rows.center(n, k);
    return {center + low, center + high, high - low};
  }
};

// The same on a CUDA device, operation by operation.
MovedCuda moved_pairs(const QuantileRows& rows, double tail) {
  const torch::Tensor grid =
      rows.grid.reshape({rows.prediction.size(0), rows.prediction.size(1), rows.levels()});
  const auto at = [&](double level) {
    const auto [below, share] = quantile_place(static_cast<size_t>(rows.levels()), level);
    const torch::Tensor from = grid.select(2, static_cast<int64_t>(below));
    return from + share * (grid.select(2, static_cast<int64_t>(below) + 1) - from);
  };
  const torch::Tensor low = at(tail), high = at(1 - tail);
  return {rows.prediction, rows.prediction + low, rows.prediction + high, high - low};
}

// The same as matrices, for one-sided bounds.
EndPairs end_pairs(const QuantilePairs& pairs) {
  const torch::Tensor& prediction = pairs.prediction;
  EndPairs ends{prediction, torch::empty_like(prediction), torch::empty_like(prediction),
                torch::empty_like(prediction)};
  for (int64_t i = 0; i < prediction.numel(); ++i) {
    const QuantilePair pair = pairs.row(i / prediction.size(1), i % prediction.size(1));
    ends.low.data_ptr<double>()[i] = pair.low;
    ends.high.data_ptr<double>()[i] = pair.high;
    ends.width.data_ptr<double>()[i] = pair.width;
  }
  return ends;
}

void check_tail(double tail) {
  if (tail > 0 && tail < 0.5) return;
  fail("quantiles: the tail is ", tail, ", expected a number between 0 and 0.5");
}

class QuantilesScore : public Score {
 public:
  QuantilesScore(QuantileReader reader, double tail) : reader_(std::move(reader)), tail_(tail) {}

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    if constexpr (kCudaKernels) {
      if (reader_.on_cuda()) {
        return scores_cuda(moved_pairs(reader_.read_cuda(features), tail_), truth);
      }
    }
    return monotone_scores(QuantilePairs{reader_.read(features), tail_}, truth);
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    if constexpr (kCudaKernels) {
      if (reader_.on_cuda()) {
        return regions_cuda(moved_pairs(reader_.read_cuda(features), tail_), radius);
      }
    }
    return monotone_regions(QuantilePairs{reader_.read(features), tail_}, radius);
  }

 private:
  QuantileReader reader_;
  double tail_;
};

}  // namespace

std::vector<std::string> QuantilesOptions::learned_outputs() const {
  return {quantiles.empty() ? kQuantilesOutput : quantiles};
}

std::vector<Option> QuantilesOptions::rows() {
  return {
      score_option(field::quantiles,
                   {.name = "quantiles",
                    .help = "The output that holds the quantiles of the residual; by default the "
                            "one that fcp learned",
                    .storage = OptionStorage::kSet,
                    .after = "spread"}),
      score_option(field::tail,
                   {.name = "tail",
                    .help = "Level of the low quantile; that of the high one is 1 minus it",
                    .most = 0.5,
                    .above = true,
                    .storage = OptionStorage::kSet,
                    .after = "quantiles"}),
  };
}

std::unique_ptr<Score> make_score(const QuantilesOptions& options, const SharedOptions& shared,
                                  std::shared_ptr<const Network> head) {
  QuantileReader reader(std::move(head), shared.output, options.learned_outputs()[0]);
  check_tail(options.tail);
  if (!options.asymmetric && shared.side == BoundSide::kBoth) {
    return std::make_unique<QuantilesScore>(std::move(reader), options.tail);
  }
  const auto read = [reader = std::move(reader), tail = options.tail](const torch::Tensor& x) {
    return end_pairs(QuantilePairs{reader.read(x), tail});
  };
  return make_end_score(read, shared.side);
}

}  // namespace fcp
