#include "fcp/pipeline/predict.h"

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/open_data.h"

namespace fcp {

size_t predict(const CalibrationArtifact& artifact, RowSource& source,
               const PredictOptions& options, const Context& context, RegionWriter& writer) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const size_t batch = context.batch_for(source);
  size_t done = 0;
  Stage stage(context, "predict", source.size().value_or(0));
  for (Rows rows; source.next(batch, rows);) {
    check_interrupted();
    const size_t count = rows.x.rows();
    const TestInputs inputs = predictor.describe(
        view(rows.x),
        side_information(options.facts, artifact.rows.group_names.size(), done, count));
    std::vector<Regions> regions{predictor.region(inputs, options.level)};
    for (const Level& level : options.further) regions.push_back(predictor.region(inputs, level));
    for (const Regions& one : regions) check_answers(one, source, rows.first_row);
    writer.append_levels(rows, regions);
    done += count;
    stage.advance(count);
  }
  if (done == 0) fail("the data has no rows to predict");
  check_facts(options.facts, done);
  for (const std::string& warning : source.warnings()) context.observer->warning(warning);
  writer.close();
  return done;
}

}  // namespace fcp
