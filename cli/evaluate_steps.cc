// Prediction and evaluation of rows; see steps.h.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/base/random.h"
#include "fcp/calibration/grouped.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/conformal/rank.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/encoding_text.h"
#include "fcp/data/npy.h"
#include "fcp/report/console.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"

#include "cli/answers.h"
#include "cli/method_stream.h"
#include "cli/overlap_check.h"
#include "cli/shared_batches.h"
#include "cli/steps.h"

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

std::vector<std::string> target_names(const Graph& network, size_t outputs) {
  const auto found = network.metadata.find(kTargetsKey);
  if (found != network.metadata.end()) {
    const auto names = nlohmann::json::parse(found->second, nullptr, false);
    if (names.is_array() && names.size() == outputs) return names.get<std::vector<std::string>>();
  }
  std::vector<std::string> names;
  for (size_t k = 0; k < outputs; ++k) names.push_back(std::to_string(k));
  return names;
}

std::vector<std::string> interval_columns(const Graph& network, size_t outputs) {
  if (outputs == 1) return {"prediction", "lower", "upper"};
  std::vector<std::string> columns;
  for (const std::string& name : target_names(network, outputs)) {
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

nlohmann::ordered_json radius_json(const CalibrationArtifact& artifact, const Level& level) {
  const std::vector<double> radius = artifact.radius(level);
  if (radius.empty()) return nullptr;
  if (radius.size() == 1) return json_number(radius[0]);
  nlohmann::ordered_json sides = nlohmann::ordered_json::array();
  for (const double side : radius) sides.push_back(json_number(side));
  return sides;
}

CalibrationArtifact read_artifact_for(const std::string& path, std::span<const Level> levels) {
  CalibrationArtifact artifact = read_artifact(path);
  for (const Level& level : levels) {
    const auto missing = missing_level(artifact.rows.levels, level);
    if (missing) fail(path, ": ", *missing);
  }
  return artifact;
}

std::optional<std::string> infinite_radius_warning(const CalibrationArtifact& artifact,
                                                   const Level& level) {
  if (artifact.calibration.name == "grouped") {
    return small_groups_warning(artifact.calibration, artifact.rows, level);
  }
  const std::vector<double> radius = artifact.radius(level);
  const auto finite = [](double value) { return std::isfinite(value); };
  if (std::all_of(radius.begin(), radius.end(), finite)) return std::nullopt;
  const size_t n = artifact.rows.count();
  const Level side = side_level(level, artifact.rows.sides, artifact.calibration);
  if (conformal_rank(side, n) <= n) {
    return "the radius is infinite, because too many calibration scores are: every interval is "
           "infinite";
  }
  return concat("the radius is infinite: alpha ", level.text(), " needs at least ",
                least_calibration_rows(side), " calibration rows, this predictor has ", n,
                "; every interval is infinite");
}

namespace {

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

IntervalReport evaluate_rows(const CalibrationArtifact& artifact, RowSource& source, size_t batch,
                             const Level& level, const RowFacts& facts, torch::Device device,
                             const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, device);
  const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact);
  std::optional<TensorPredictor> plain_predictor;
  if (plain) plain_predictor.emplace(*plain, device);
  const std::vector<std::string>& names = facts.shown.names;
  MethodStream method(artifact, predictor, source, level, names);
  std::optional<MethodStream> baseline;
  if (plain) baseline.emplace(*plain, *plain_predictor, source, level, names);
  RowSampler sampler(common.seed);
  OverlapCheck same(artifact, source);
  size_t done = 0;
  Progress progress("evaluate", source.size().value_or(0), !common.quiet);
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
    progress.advance(count);
  };
  share_batches(*common.ranks, source, batch, measure, take);
  IntervalReport report;
  if (common.ranks->rank() != 0) return report;
  check_facts(facts, done);
  report.level = level;
  report.calibration_rows = artifact.rows.count();
  report.sample = sampler.take_sample();
  MethodResult result = method.finish();
  result.lengths = sampler.take_lengths();
  report.response = target_names(artifact.network, result.evaluation.outputs)[0];
  if (result.evaluation.outputs == 1 && report.response == "0") report.response = "y";
  report.methods.push_back(std::move(result));
  if (baseline) report.methods.push_back(baseline->finish());
  report.provenance.assign(artifact.provenance.begin(), artifact.provenance.end());
  for (const auto& warning : {infinite_radius_warning(artifact, level), same.warning()}) {
    if (warning) report.notes.push_back(*warning);
  }
  return report;
}

void print_methods(const IntervalReport& report) {
  for (const MethodResult& method : report.methods) {
    std::cout << (&method == &report.methods.front() ? "" : "\n") << method.name << '\n';
    if (method.detection) {
      std::cout << "detection       " << format_percent(method.detection->rate)
                << "  scores within the radius: what is guaranteed, but not of the intervals\n";
    }
    print_evaluation(std::cout, method.evaluation, {.level = report.level});
  }
}

size_t predict_rows(const CalibrationArtifact& artifact, RowSource& source, size_t batch,
                    const Level& level, const RowFacts& facts, const std::string& out,
                    torch::Device device, const CommonOptions& common) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, device);
  std::unique_ptr<IntervalWriter> writer;
  Rows rows;
  size_t done = 0;
  Progress progress("predict", source.size().value_or(0), !common.quiet);
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
    progress.advance(count);
  }
  if (!writer) fail("the data has no rows to predict");
  check_facts(facts, done);
  writer->close();
  return done;
}

}  // namespace fcp
