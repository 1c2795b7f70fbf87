#include "fcp/pipeline/evaluate.h"

#include <optional>
#include <span>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_stream.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/overlap_check.h"
#include "fcp/pipeline/shared_batches.h"

namespace fcp {
namespace {

constexpr size_t kSampleRows = 300;
constexpr size_t kSampleLengths = 5000;

// Keeps a uniform sample of a stream (Vitter's algorithm R): returns the place of item number
// `index` in the sample, or `size` where it is left out.
size_t sample_place(size_t index, size_t size, Random& random) {
  if (index < size) return index;
  const uint64_t place = random.below(index + 1);
  return place < size ? static_cast<size_t>(place) : size;
}

template <typename T>
void keep(std::vector<T>& sample, size_t place, size_t size, T item) {
  if (place >= size) return;
  if (place == sample.size()) {
    sample.push_back(item);
  } else {
    sample[place] = item;
  }
}

// Draws what the report shows of the rows: a sample of intervals and of their lengths.
class RowSampler {
 public:
  explicit RowSampler(uint64_t seed) : random_(seed) {}

  void add(const MethodBatch& batch, std::span<const double> truth) {
    for (size_t at = 0; at < truth.size(); at += batch.outputs(), ++rows_) {
      // The first output stands for the row.
      const SampleRow row{batch.prediction[at], batch.lower[at], batch.upper[at], truth[at]};
      keep(sample_, sample_place(rows_, kSampleRows, random_), kSampleRows, row);
      keep(lengths_, sample_place(rows_, kSampleLengths, random_), kSampleLengths,
           row.upper - row.lower);
    }
  }

  std::vector<SampleRow> take_sample() { return std::move(sample_); }
  std::vector<double> take_lengths() { return std::move(lengths_); }

 private:
  std::vector<SampleRow> sample_;
  std::vector<double> lengths_;
  Random random_;
  size_t rows_ = 0;
};

}  // namespace

IntervalReport evaluate_rows(const CalibrationArtifact& artifact, RowSource& source,
                             const Level& level, const RowFacts& facts, const Context& context) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact);
  std::optional<TensorPredictor> plain_predictor;
  if (plain) plain_predictor.emplace(*plain, context.device);
  const std::vector<std::string>& names = facts.shown.names;
  MethodStream method(artifact, predictor, source, level, names);
  std::optional<MethodStream> baseline;
  if (plain) baseline.emplace(*plain, *plain_predictor, source, level, names);
  RowSampler sampler(context.seed);
  OverlapCheck same(artifact, source);
  size_t done = 0;
  Stage stage(context, "evaluate", source.size().value_or(0));
  const auto measure = [&](size_t, const Rows& rows) {
    const TestInputs fresh = predictor.describe(
        view(rows.x),
        side_information(facts, artifact.rows.group_names.size(), rows.first_row, rows.x.rows()));
    const torch::Tensor truth = view(rows.y).to(torch::kDouble);
    Packer packer;
    packer.add(numbers(truth));
    method.measure(fresh, rows.first_row, truth).pack(packer);
    if (baseline) baseline->measure(fresh, rows.first_row, truth).pack(packer);
    same.measure(rows, packer);
    return packer.take();
  };
  const auto take = [&](size_t, std::string_view result) {
    Unpacker unpacker(result);
    const std::vector<double> truth = unpacker.numbers<double>();
    const MethodBatch measured = MethodBatch::unpack(unpacker);
    const size_t count = measured.rows;
    const auto ids = groups_of(facts.shown, done, count);
    sampler.add(measured, truth);
    method.take(measured, truth, ids);
    if (baseline) baseline->take(MethodBatch::unpack(unpacker), truth, ids);
    same.take(unpacker);
    done += count;
    stage.advance(count);
  };
  share_batches(*context.ranks, source, context.batch_for(source), measure, take);
  IntervalReport report;
  if (context.ranks->rank() != 0) return report;
  check_facts(facts, done);
  report.level = level;
  report.calibration_rows = artifact.rows.count();
  report.sample = sampler.take_sample();
  MethodResult result = method.finish();
  result.lengths = sampler.take_lengths();
  report.response = target_names_of(artifact.network, result.evaluation.outputs)[0];
  if (result.evaluation.outputs == 1 && report.response == "0") report.response = "y";
  report.methods.push_back(std::move(result));
  if (baseline) report.methods.push_back(baseline->finish());
  report.provenance.assign(artifact.provenance.begin(), artifact.provenance.end());
  for (const auto& warning : {infinite_radius_warning(artifact, level), same.warning()}) {
    if (warning) report.notes.push_back(*warning);
  }
  return report;
}

}  // namespace fcp
