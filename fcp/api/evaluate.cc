// The public fcp/evaluate.h and fcp/fit.h: options in, a few numbers of the report out.
#include "fcp/evaluate/evaluate.h"

#include <map>
#include <utility>

#include "fcp/api/method_options.h"
#include "fcp/base/error.h"
#include "fcp/calibrate/tensor_rows.h"
#include "fcp/evaluate.h"
#include "fcp/fit.h"
#include "fcp/fit/fit.h"
#include "fcp/nn/runtime/single_thread.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {

using internal::Access;
using internal::PredictorCore;

namespace {

EvaluationResult result_of(const EvaluationReport& report) {
  const MethodResult& method = report.methods.at(0);
  const Coverage& coverage = method.coverage();
  EvaluationResult result{.rows = coverage.rows,
                          .covered = coverage.covered,
                          .coverage = coverage.rate,
                          .coverage_low = coverage.lower,
                          .coverage_high = coverage.upper};
  if (const auto* sets = std::get_if<SetEvaluation>(&method.evaluation)) {
    result.size = sets->mean_size;
    result.accuracy = method.top1;
  } else if (const auto* pixels = std::get_if<PixelEvaluation>(&method.evaluation)) {
    result.size = pixels->length;
  } else {
    result.size = method.intervals().length.mean;
    result.interval_score = method.intervals().interval_score;
    for (const PointError& error : method.intervals().output_error) {
      result.rmse.push_back(error.rmse);
      result.mae.push_back(error.mae);
    }
  }
  return result;
}

EvaluationResult evaluated(const Predictor& predictor, RowSource& source, RowFacts facts,
                           const EvaluationOptions& options) {
  const ThreadLimit limit(options.threads);
  const PredictorCore& core = Access::core(predictor);
  const EvaluateOptions asked{.level = options.level, .facts = std::move(facts)};
  return result_of(evaluate(core.artifact(), source, asked, {.device = core.device()}));
}

FitRequest fit_request(const std::string& data, const std::string& target,
                       const FitOptions& options) {
  FitRequest request;
  request.data.data = data;
  request.data.target = target;
  request.task = task_named(options.task);
  request.calibration = fit_calibration_named(options.calibration);
  request.shares = options.shares;
  request.keep_together = options.keep_together.empty() ? options.group : options.keep_together;
  request.cover_each = options.cover_each;
  request.row_weights = options.row_weights;
  request.data.csv.drop = options.drop;
  request.data.csv.categorical = options.categorical;
  check_types(options.types);
  request.data.csv.types = options.types;
  request.data.csv.missing = options.missing;
  request.time = options.time;
  request.level = options.level;
  request.training.members = options.members;
  request.training.epochs = options.epochs;
  request.training.trees = options.trees;
  request.training.target_scale = target_scale_named(options.target_scale);
  std::map<std::string, std::string> texts = options.more;
  texts["score"] = options.score;
  request.method = internal::method_of(texts, options.seed);
  return request;
}

}  // namespace

EvaluationResult evaluate(const Predictor& predictor, const std::string& data,
                          const std::string& target, const EvaluationOptions& options) {
  const CalibrationArtifact& artifact = Access::core(predictor).artifact();
  const DataOptions rows{.data = data, .target = target, .needs_target = true};
  const auto source = open_data(rows, &artifact.network);
  return evaluated(predictor, *source,
                   read_facts_for(artifact, rows, {"", options.weights}, *silent_observer()),
                   options);
}

EvaluationResult evaluate(const Predictor& predictor, const Batch& batch,
                          std::span<const float> truth, const EvaluationOptions& options) {
  const internal::BatchData& rows = Access::data(batch);
  Access::core(predictor).schema().check_known(rows);
  internal::TensorRows source(rows.x, internal::answers_over(truth, rows.x.size(0)));
  RowFacts facts;
  facts.groups = {rows.known.groups, predictor.schema().groups()};
  facts.weights = rows.known.weights;
  return evaluated(predictor, source, std::move(facts), options);
}

FitResult fit(const std::string& data, const std::string& target, const FitOptions& options) {
  const ThreadLimit limit(options.threads);
  const Context context{.device = device_named(options.device), .seed = options.seed};
  FitOutcome fitted = fit_table(fit_request(data, target, options), context);
  std::vector<std::string> warnings = fit_warnings(fitted);
  return {
      .predictor = internal::make_predictor(std::move(fitted.calibrated.artifact), context.device),
      .evaluation = result_of(fitted.report),
      .training_rows = fitted.rows.training,
      .calibration_rows = fitted.rows.calibration,
      .test_rows = fitted.test_rows,
      .split = std::move(fitted.split.text),
      .warnings = std::move(warnings)};
}

}  // namespace fcp
