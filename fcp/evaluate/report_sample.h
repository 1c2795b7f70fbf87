// A uniform sample of the rows of a stream, to be shown (Vitter's algorithm R), drawn by several
// ranks alike: which rows are drawn follows from their numbers alone. A rank draws for all rows,
// and makes the examples of its own. Several samples of different sizes are drawn side by side.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/judge.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/evaluate/measures/probability_evaluation.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/predictor/distribution.h"

namespace fcp {

// A row that was drawn: where it stands in its batch, and in the sample.
struct DrawnRow {
  size_t row = 0;
  size_t place = 0;
};

class RowSampler {
 public:
  // Without a seed the first rows are kept.
  RowSampler(std::vector<size_t> sizes, std::optional<uint64_t> seed);

  // The rows of a batch that are drawn, for each sample. Batches come in their order; those of
  // other ranks may be left out.
  std::vector<std::vector<DrawnRow>> draw(size_t first_row, size_t count);

 private:
  std::vector<size_t> places_of(size_t row);

  std::vector<size_t> sizes_;
  std::optional<Random> random_;
  size_t drawn_ = 0;
};

// An item of a row that was drawn.
template <typename Item>
struct Drawn {
  uint64_t place = 0;  // in the sample
  Item item{};
};

template <typename Archive, typename Item>
void visit_fields(Archive& archive, Drawn<Item>& drawn) {
  archive(drawn.place, drawn.item);
}

// Puts items where they were drawn to, in place of those before them.
template <typename Item>
void put_drawn(std::vector<Item>& sample, std::vector<Drawn<Item>> drawn) {
  for (Drawn<Item>& one : drawn) {
    if (one.place >= sample.size()) sample.resize(one.place + 1);
    sample[one.place] = std::move(one.item);
  }
}

// The rows that the report shows and, of intervals, a larger sample of their lengths.
class ReportSample {
 public:
  // `images`: of pixels, shown from the first on.
  ReportSample(const MethodEvaluator& method, const EvaluateOptions& options, bool labels,
               bool images, uint64_t seed);

  void measure(const Rows& rows, const MeasuredRegions& measured, Packer& packer);
  void take(Unpacker& unpacker);

  std::vector<Example> examples;
  std::vector<double> lengths;

 private:
  const MethodEvaluator& method_;
  RowSampler sampler_;
};

// Predictive distributions on a stream of rows, where the predictor has them: what their figures
// (fcp/evaluate/measures/probability_evaluation.h) need of each row.
// Tested by tests/evaluate/evaluate_test.cc.

class DistributionSample {
 public:
  // Rows of several outputs, and predictors without distributions, have no figures.
  DistributionSample(const CalibrationArtifact& artifact, const RowSource& source,
                     const EvaluateOptions& options, const Context& context);

  void measure(const Rows& rows, Packer& packer) const;
  void take(Unpacker& unpacker);

  std::optional<DistributionEvaluation> finish() const;

 private:
  std::optional<PredictiveDistribution> distribution_;
  const EvaluateOptions& options_;
  size_t groups_;  // of the calibration
  size_t calibration_rows_;
  uint64_t seed_;
  DistributionEvaluator evaluator_;
  bool any_ = false;
};

// Probabilities of classes on a stream of rows, where the predictor has them: what their figures
// (fcp/evaluate/measures/probability_evaluation.h) need of each row.
// Tested by tests/evaluate/evaluate_test.cc.

class ProbabilitySample {
 public:
  // Predictors of intervals and of pixels have no figures. The judge must outlive this.
  ProbabilitySample(const Judge& judge, std::vector<std::string> class_names);

  void measure(const JudgedRows& rows, Packer& packer) const;
  void take(Unpacker& unpacker);

  std::optional<ProbabilityEvaluation> finish() const;

 private:
  std::vector<std::string> class_names_;
  std::optional<ClassProbabilities> probabilities_;
  ProbabilityEvaluator evaluator_, softmax_;
  double gaps_ = 0;
};

}  // namespace fcp
