// Prediction of label sets; see predict.h.
#include <memory>
#include <span>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/npy.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/label_sets.h"
#include "fcp/pipeline/predict.h"

namespace fcp {
namespace {

class SetWriter {
 public:
  SetWriter(const std::string& out, std::vector<std::string> names) : names_(std::move(names)) {
    if (out.ends_with(".npy")) {
      npy_ = std::make_unique<NpyWriter>(
          out, std::vector<int64_t>{static_cast<int64_t>(names_.size())}, NpyWriter::Type::kBool);
    } else {
      csv_ = std::make_unique<CsvWriter>(out,
                                         std::vector<std::string>{"prediction", "size", "labels"});
    }
  }

  void append(const Regions& regions) {
    const torch::Tensor members = host_members(regions);
    if (npy_) {
      npy_->append(std::span(members.data_ptr<bool>(), static_cast<size_t>(members.numel())));
      return;
    }
    const std::vector<int64_t> predicted = host_labels(regions.prediction);
    for (int64_t row = 0; row < members.size(0); ++row) {
      const std::vector<std::string> labels = member_names(members, row, names_);
      std::string joined;
      for (const std::string& label : labels) joined += (joined.empty() ? "" : "|") + label;
      csv_->cell(
          std::string_view(names_[static_cast<size_t>(predicted[static_cast<size_t>(row)])]));
      csv_->cell(static_cast<int64_t>(labels.size()));
      csv_->cell(std::string_view(joined));
      csv_->end_row();
    }
  }

  void close() {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  std::vector<std::string> names_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

}  // namespace

size_t predict_sets(const CalibrationArtifact& artifact, RowSource& source, const Level& level,
                    const RowFacts& facts, const std::string& out, const Context& context) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const size_t batch = context.batch_for(source);
  const auto classes = static_cast<size_t>(predictor.score().classes());
  SetWriter writer(out, class_names_of(artifact.network, classes));
  size_t done = 0;
  Stage stage(context, "predict", source.size().value_or(0));
  for (Rows rows; source.next(batch, rows);) {
    check_interrupted();
    const size_t count = rows.x.rows();
    const TestInputs fresh = predictor.describe(
        view(rows.x), side_information(facts, artifact.rows.group_names.size(), done, count));
    const Regions regions = predictor.region(fresh, level);
    check_answers(regions, source, rows.first_row);
    writer.append(regions);
    done += count;
    stage.advance(count);
  }
  if (done == 0) fail("the data has no rows to predict");
  check_facts(facts, done);
  writer.close();
  return done;
}

}  // namespace fcp
