#include "fcp/predictor/distribution_columns.h"

#include <span>
#include <utility>

#include "fcp/base/error.h"

namespace fcp {
namespace {

Level level_in(const char* option, const std::string& text) {
  try {
    return Level::parse(text);
  } catch (const Error&) {
    fail_option(option, "found ", text, ", expected a number between 0 and 1, such as 0.95");
  }
}

// The levels whose quantiles' mean is the point prediction.
std::vector<Level> point_levels(const std::string& point) {
  if (point.empty()) return {};
  if (point == "mean") return even_levels(kGridQuantiles);
  return {point == "median" ? Level::fraction(1, 2) : level_in("point", point)};
}

}  // namespace

bool DistributionRequest::empty() const {
  return quantiles.empty() && above.empty() && below.empty() && between.empty() && point.empty() &&
         grid.empty();
}

DistributionColumns::DistributionColumns(const CalibrationArtifact& artifact,
                                         const DistributionRequest& request, torch::Device device)
    : DistributionColumns(std::make_shared<const PredictiveDistribution>(artifact, device),
                          request) {}

DistributionColumns::DistributionColumns(std::shared_ptr<const PredictiveDistribution> distribution,
                                         const DistributionRequest& request)
    : distribution_(std::move(distribution)), point_(point_levels(request.point)) {
  for (const std::string& text : request.quantiles) {
    quantiles_.push_back(level_in("quantiles", text));
    names_.push_back("quantile_" + text);
  }
  const auto add = [&](const char* name, const std::vector<std::string>& texts,
                       Event (*event)(const std::string&)) {
    for (const std::string& text : texts) {
      const auto column = request.columns.find(text);
      if (column == request.columns.end()) {
        events_.push_back({.event = event(text)});
      } else {
        events_.push_back(
            {.event = {}, .above = event == event_above, .thresholds = column->second});
      }
      for (const char* end : {"_lower", "_upper"}) names_.push_back(concat(name, "_", text, end));
    }
  };
  add("above", request.above, event_above);
  add("below", request.below, event_below);
  add("between", request.between, event_between);
  if (request.grid.empty()) return;
  if (!request.grid.ends_with(".npy")) {
    fail_option("distribution", "found ", request.grid, ", expected the name of an .npy file");
  }
  grid_ = std::make_unique<NpyWriter>(request.grid,
                                      std::vector<int64_t>{static_cast<int64_t>(kGridQuantiles)});
}

std::vector<ProbabilityBand> DistributionColumns::bands_of(const Asked& asked,
                                                           const TestInputs& rows) const {
  if (asked.thresholds.empty()) return distribution_->probability(rows, asked.event);
  const auto count = static_cast<size_t>(rows.features.size(0));
  if (asked.thresholds.size() < done_ + count) {
    fail("found ", asked.thresholds.size(), " thresholds, the data has more rows");
  }
  const std::span own(asked.thresholds.data() + done_, count);
  return asked.above ? distribution_->above(rows, own) : distribution_->below(rows, own);
}

torch::Tensor DistributionColumns::columns(const TestInputs& rows) {
  if (grid_) {
    const torch::Tensor grid =
        distribution_->quantiles(rows, even_levels(kGridQuantiles)).to(torch::kFloat).contiguous();
    grid_->append({grid.data_ptr<float>(), static_cast<size_t>(grid.numel())});
  }
  const int64_t count = rows.features.size(0);
  std::vector<torch::Tensor> parts;
  if (!quantiles_.empty()) parts.push_back(distribution_->quantiles(rows, quantiles_));
  for (const Asked& asked : events_) {
    torch::Tensor ends = torch::empty({count, 2}, torch::kDouble);
    double* out = ends.data_ptr<double>();
    for (const ProbabilityBand& band : bands_of(asked, rows)) {
      *out++ = band.lower;
      *out++ = band.upper;
    }
    parts.push_back(std::move(ends));
  }
  done_ += static_cast<size_t>(count);
  return parts.empty() ? torch::empty({count, 0}, torch::kDouble)
                       : torch::cat(parts, 1).contiguous();
}

torch::Tensor DistributionColumns::points(const TestInputs& rows) const {
  if (point_.empty()) return {};
  return distribution_->quantiles(rows, point_).mean(1, /*keepdim=*/true);
}

void DistributionColumns::close() {
  if (grid_) grid_->close();
}

}  // namespace fcp
