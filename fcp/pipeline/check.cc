#include "fcp/pipeline/check.h"

#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/coverage_counts.h"
#include "fcp/pipeline/open_data.h"

namespace fcp {

CheckResult check(const CalibrationArtifact& artifact, RowSource& source,
                  const CheckOptions& options, const Context& context,
                  const std::function<void(const CheckedRow&)>& take) {
  if (const auto missing = missing_scores(artifact.rows.levels)) {
    fail("the calibration ", *missing, "; the p-values of check need all scores");
  }
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const auto sides = static_cast<size_t>(predictor.score().sides());
  const size_t batch = context.batch_for(source);
  CheckResult result;
  Stage stage(context, "check", source.size().value_or(0));
  for (Rows rows; source.next(batch, rows);) {
    check_interrupted();
    SideInformation known = side_information(options.facts, artifact.rows.group_names.size(),
                                             result.rows, rows.x.rows());
    known.first += options.first;
    const TestInputs inputs = predictor.describe(view(rows.x), known);
    const torch::Tensor truth = view(rows.y);
    const Conformity judged = judge_numbers(predictor, inputs, truth, source, rows.first_row);
    const std::vector<bool> in =
        within_radii(predictor, inputs, truth, judged.scores, options.level, artifact.score.paper);
    for (size_t i = 0; i < in.size(); ++i) {
      take({rows.first_row + i, std::span(judged.scores).subspan(i * sides, sides),
            judged.p_values[i], in[i]});
      result.in += in[i] ? 1 : 0;
    }
    result.rows += in.size();
    stage.advance(in.size());
  }
  check_facts(options.facts, result.rows);
  if (result.rows == 0) fail("the data has no rows to check");
  return result;
}

}  // namespace fcp
