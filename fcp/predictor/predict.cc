#include "fcp/predictor/predict.h"

#include <algorithm>
#include <optional>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/predictor/class_probabilities.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/shared_batches.h"

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

}  // namespace fcp
