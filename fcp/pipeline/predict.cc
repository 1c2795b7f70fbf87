#include "fcp/pipeline/predict.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/npy.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/method_stream.h"
#include "fcp/pipeline/open_data.h"

namespace fcp {
namespace {

std::vector<std::string> interval_columns(const Graph& network, size_t outputs) {
  if (outputs == 1) return {"prediction", "lower", "upper"};
  std::vector<std::string> columns;
  for (const std::string& name : target_names_of(network, outputs)) {
    for (const char* part : {"prediction_", "lower_", "upper_"}) columns.push_back(part + name);
  }
  return columns;
}

// Writes [N, K, 3] rows to an .npy file, or as 3 K columns to a CSV file.
class IntervalWriter {
 public:
  IntervalWriter(const std::string& out, const Graph& network, size_t outputs) {
    if (out.ends_with(".npy")) {
      npy_ =
          std::make_unique<NpyWriter>(out, std::vector<int64_t>{static_cast<int64_t>(outputs), 3});
    } else {
      csv_ = std::make_unique<CsvWriter>(out, interval_columns(network, outputs));
    }
  }

  void append(const Regions& regions) {
    const torch::Tensor rows =
        torch::stack({regions.prediction.to(torch::kFloat), round_outward(regions.lower, true),
                      round_outward(regions.upper, false)},
                     2)
            .to(torch::kCPU)
            .contiguous();  // [N, K, 3]
    const std::span<const float> all(rows.data_ptr<float>(), static_cast<size_t>(rows.numel()));
    if (npy_) {
      npy_->append(all);
      return;
    }
    const size_t width = all.size() / static_cast<size_t>(std::max<int64_t>(1, rows.size(0)));
    for (size_t i = 0; i < all.size(); i += width) csv_->row(all.subspan(i, width));
  }

  void close() {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

}  // namespace

size_t predict_rows(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                    const RowFacts& facts, const std::string& out, const Context& context) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const size_t batch = context.batch_for(source);
  std::unique_ptr<IntervalWriter> writer;
  Rows rows;
  size_t done = 0;
  Stage stage(context, "predict", source.size().value_or(0));
  while (source.next(batch, rows)) {
    check_interrupted();
    const size_t count = rows.x.rows();
    const TestInputs fresh = predictor.describe(
        view(rows.x), side_information(facts, artifact.rows.group_names.size(), done, count));
    const Regions regions = predictor.region(fresh, level);
    check_answers(regions, source, rows.first_row);
    if (!writer) {
      writer = std::make_unique<IntervalWriter>(out, artifact.network,
                                                static_cast<size_t>(regions.prediction.size(1)));
    }
    writer->append(regions);
    done += count;
    stage.advance(count);
  }
  if (!writer) fail("the data has no rows to predict");
  check_facts(facts, done);
  writer->close();
  return done;
}

}  // namespace fcp
