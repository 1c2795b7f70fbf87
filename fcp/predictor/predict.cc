#include "fcp/predictor/predict.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/open_data.h"

namespace fcp {
namespace {

// `done` rows of the whole data came before these.
internal::BatchData batch_at(const Rows& rows, const RowFacts& facts,
                             const internal::PredictorCore& predictor, size_t done) {
  const size_t groups = predictor.artifact().rows.group_names.size();
  return internal::batch_of(rows, side_information(facts, groups, done, rows.x.rows()));
}

// The numbers of a distribution, and its point in place of the network's.
torch::Tensor added_columns(const internal::BatchData& batch, DistributionColumns* distribution,
                            std::vector<Regions>& regions) {
  if (distribution == nullptr) return {};
  const torch::NoGradGuard no_grad;
  const TestInputs rows = distribution->describe(batch.x, batch.known);
  const torch::Tensor points = distribution->points(rows);
  for (Regions& one : regions) {
    if (points.defined()) one.prediction = points;
  }
  return distribution->columns(rows);
}

}  // namespace

size_t predict(const internal::PredictorCore& predictor, RowSource& source,
               const PredictOptions& options, const Context& context, RegionWriter& writer) {
  size_t first = 0;
  std::optional<ClassProbabilities> probabilities;
  if (options.probabilities) {
    probabilities.emplace(predictor.network(), predictor.artifact());
  }
  const size_t done = each_batch(source, context, "predict", [&](const Rows& rows) {
    const internal::BatchData batch = batch_at(rows, options.facts, predictor, first);
    std::vector<Regions> regions = predictor.predict(batch, options.levels).regions;
    const torch::Tensor more = probabilities ? probabilities->of(batch.x).columns()
                                             : added_columns(batch, options.distribution, regions);
    writer.append(rows, regions, more);
    first += rows.x.rows();
  });
  if (done == 0) fail("the data has no rows to predict");
  check_facts(options.facts, done);
  for (const std::string& warning : source.warnings()) context.observer->warning(warning);
  writer.close();
  if (options.distribution != nullptr) options.distribution->close();
  return done;
}

std::optional<std::string> no_discoveries(const CalibrationArtifact& artifact) {
  const CalibrationOptions& calibration = artifact.method.calibration;
  if (artifact.rows.targets > 1) {
    return "each target has a p-value of its own (joint each), and an outlier is a row; calibrate "
           "with joint all or volume";
  }
  if (!calibration.traits().made_by_fit) return std::nullopt;
  return concat("a rate of false outliers is known where rows of their own calibrate; this one is ",
                calibration.name());
}

Dependence p_value_dependence(const CalibrationArtifact& artifact) {
  const CalibrationTraits traits = artifact.method.calibration.traits();
  const bool counts = traits.one_radius || (traits.by_group && !traits.by_feature);
  return counts ? Dependence::kPositive : Dependence::kAny;
}

CheckResult check(const internal::PredictorCore& predictor, RowSource& source,
                  const CheckOptions& options, const Context& context,
                  const std::function<void(const CheckedRow&)>& take) {
  predictor.check_all_scores();
  CheckResult result;
  each_batch(source, context, "check", [&](const Rows& rows) {
    const internal::BatchData some = batch_at(rows, options.facts, predictor, result.rows);
    const Judgement judged = predictor.judge(some, view(rows.y), {&options.level, 1});
    const std::vector<bool>& in = judged.in.front();
    const size_t targets = judged.targets;
    if (targets > 1) result.targets_in.resize(targets);
    for (size_t i = 0; i * targets < in.size(); ++i) {
      const auto first = in.begin() + static_cast<std::ptrdiff_t>(i * targets);
      const std::vector<bool> own(first, first + static_cast<std::ptrdiff_t>(targets));
      take({rows.first_row + i, std::span(judged.scores).subspan(i * judged.sides, judged.sides),
            std::span(judged.p_values).subspan(i * targets, targets), own});
      result.in += std::find(own.begin(), own.end(), false) == own.end() ? 1 : 0;
      for (size_t k = 0; k < result.targets_in.size(); ++k) result.targets_in[k] += own[k] ? 1 : 0;
    }
    result.rows += in.size() / targets;
  });
  check_facts(options.facts, result.rows);
  if (result.rows == 0) fail("the data has no rows to check");
  return result;
}

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
