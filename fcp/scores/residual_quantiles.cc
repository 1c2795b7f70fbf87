#include "fcp/scores/residual_quantiles.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/network/batch_free.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/monotone_cuda.h"
#include "fcp/scores/monotone_rows.h"

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

QuantileReader::QuantileReader(const ScoreOptions& options, std::shared_ptr<const Network> head)
    : head_(std::move(head)),
      output_(output_index(*head_, options.output)),
      grid_(output_index(*head_, quantiles_output(options))) {}

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

bool QuantileReader::on_cuda() const { return head_->device().is_cuda() && has_monotone_cuda(); }

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

}  // namespace fcp
