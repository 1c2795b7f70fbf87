#include "fcp/pipeline/evaluate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/pipeline/candidates.h"
#include "fcp/pipeline/conditional_sample.h"
#include "fcp/pipeline/example_sampler.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_evaluator.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/overlap_check.h"
#include "fcp/pipeline/segmentation_rows.h"
#include "fcp/pipeline/shared_batches.h"

namespace fcp {
namespace {

constexpr size_t kIntervalExamples = 300;
constexpr size_t kLabelExamples = 200;  // of which the page shows the hardest
constexpr size_t kPictureExamples = 96;
constexpr size_t kLengths = 5000;

// The rows that the report shows, and of intervals a larger sample of their lengths.
class ReportSample {
 public:
  ReportSample(const MethodEvaluator& method, std::vector<size_t> sizes,
               std::optional<uint64_t> seed)
      : method_(method), sampler_(std::move(sizes), seed) {}

  void measure(const Rows& rows, const MeasuredRegions& measured, Packer& packer) {
    const auto drawn = sampler_.draw(rows.first_row, rows.x.rows());
    packer.add(places(drawn[0]));
    for (const DrawnRow& one : drawn[0]) {
      pack_example(method_.example(rows, measured, one.row), packer);
    }
    std::vector<double> found;
    for (size_t i = 0; drawn.size() > 1 && i < drawn[1].size(); ++i) {
      found.push_back(method_.length(measured.regions, drawn[1][i].row).value());
    }
    packer.add(drawn.size() > 1 ? places(drawn[1]) : std::vector<uint64_t>());
    packer.add(found);
  }

  void take(Unpacker& unpacker) {
    for (const uint64_t place : unpacker.numbers<uint64_t>()) {
      put_drawn(examples, place, unpack_example(unpacker));
    }
    const std::vector<uint64_t> at = unpacker.numbers<uint64_t>();
    const std::vector<double> found = unpacker.numbers<double>();
    for (size_t i = 0; i < at.size(); ++i) put_drawn(lengths, at[i], found.at(i));
  }

  std::vector<Example> examples;
  std::vector<double> lengths;

 private:
  static std::vector<uint64_t> places(const std::vector<DrawnRow>& drawn) {
    std::vector<uint64_t> result;
    for (const DrawnRow& one : drawn) result.push_back(one.place);
    return result;
  }

  const MethodEvaluator& method_;
  RowSampler sampler_;
};

// The groups that have a radius of their own, with the coverage of their test rows where these were
// told apart by the same groups.
std::vector<GuaranteedGroup> guaranteed_groups(const CalibrationArtifact& artifact,
                                               const EvaluateOptions& options,
                                               const MethodResult& main,
                                               const std::vector<std::string>& class_names) {
  std::vector<GuaranteedGroup> groups;
  if (artifact.calibration.name != "grouped") return groups;
  const std::string& by = artifact.calibration.group;
  const auto* sets = std::get_if<SetEvaluation>(&main.evaluation);
  const auto* intervals = std::get_if<IntervalEvaluation>(&main.evaluation);
  std::vector<GroupCoverage> seen;  // by the name of the group
  if (by == kByLabel && sets) {
    seen = sets->class_coverage;
  } else if (by != kByPrediction && options.facts.shown.ids == options.facts.groups.ids) {
    seen = sets ? sets->groups : intervals ? intervals->groups : seen;
  }
  if (artifact.rows.sides > 1) seen.clear();  // each side has a level of its own
  for (size_t id = 0; id < artifact.rows.group_names.size(); ++id) {
    const bool is_class = by == kByLabel || by == kByPrediction;
    const std::string name =
        is_class && id < class_names.size() ? class_names[id] : artifact.rows.group_names[id];
    GuaranteedGroup group{by == kByPrediction ? "predicted " + name : name};
    group.calibration_rows = static_cast<size_t>(std::count(
        artifact.rows.groups.begin(), artifact.rows.groups.end(), static_cast<int64_t>(id)));
    for (const GroupCoverage& part : seen) {
      if (part.name == name) group.coverage = part.coverage;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string response_name(const CalibrationArtifact& artifact, const MethodResult& main) {
  const auto* intervals = std::get_if<IntervalEvaluation>(&main.evaluation);
  if (intervals == nullptr) return "y";
  const std::string name = target_names_of(artifact.network, intervals->outputs)[0];
  return intervals->outputs == 1 && name == "0" ? "y" : name;
}

// The sizes of the samples, and whether they are random.
ReportSample sample_for(const MethodEvaluator& method, const EvaluateOptions& options,
                        const CalibrationArtifact& artifact, bool images, uint64_t seed) {
  if (images) return {method, {options.pictures}, std::nullopt};
  if (predicts_labels(artifact.score.name)) {
    return {method, {options.images ? kPictureExamples : kLabelExamples}, seed};
  }
  return {method, {kIntervalExamples, kLengths}, seed};
}

std::vector<std::string> report_classes(const CalibrationArtifact& artifact,
                                        const TensorPredictor& predictor,
                                        const SegmentationRows* images) {
  if (images) return class_names_of(artifact.network, static_cast<size_t>(images->task().classes));
  if (!predicts_labels(artifact.score.name)) return {};
  return class_names_of(artifact.network, static_cast<size_t>(predictor.score().classes()));
}

}  // namespace

EvaluationReport evaluate(const CalibrationArtifact& artifact, RowSource& source,
                          const EvaluateOptions& options, const Context& context) {
  torch::NoGradGuard no_grad;
  const auto* images = dynamic_cast<const SegmentationRows*>(&source);
  const TensorPredictor predictor(artifact, context.device);
  const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact);
  std::optional<TensorPredictor> plain_predictor;
  if (plain) plain_predictor.emplace(*plain, context.device);
  EvaluationReport report;
  report.class_names = report_classes(artifact, predictor, images);
  std::vector<std::unique_ptr<MethodEvaluator>> methods;
  methods.push_back(make_evaluator({artifact, predictor, source, options, report.class_names}));
  if (plain) {
    methods.push_back(make_evaluator(
        {*plain, *plain_predictor, source, options, report.class_names, /*main=*/false}));
  }
  ReportSample sample =
      sample_for(*methods.front(), options, artifact, images != nullptr, context.seed);
  ConditionalSample conditional(artifact, source, options, context);
  OverlapCheck same(artifact, source);
  size_t done = 0;
  Stage stage(context, "evaluate", source.size().value_or(0));
  const auto measure = [&](size_t, const Rows& rows) {
    const TestInputs inputs = predictor.describe(
        view(rows.x), side_information(options.facts, artifact.rows.group_names.size(),
                                       rows.first_row, rows.x.rows()));
    Packer packer;
    packer.add(uint64_t{rows.x.rows()});
    for (const auto& method : methods) {
      const MeasuredRegions measured = method->measure(inputs, rows, packer);
      if (method != methods.front()) continue;
      sample.measure(rows, measured, packer);
      conditional.measure(rows, measured.regions, packer);
    }
    same.measure(rows, packer);
    return packer.take();
  };
  const auto take = [&](size_t, std::string_view result) {
    Unpacker unpacker(result);
    const size_t count = unpacker.number();
    const auto ids = groups_of(options.facts.shown, done, count);
    for (const auto& method : methods) {
      method->take(unpacker, ids);
      if (method != methods.front()) continue;
      sample.take(unpacker);
      conditional.take(unpacker);
    }
    same.take(unpacker);
    done += count;
    stage.advance(count);
  };
  share_batches(*context.ranks, source, context.batch_for(source), measure, take);
  if (context.ranks->rank() != 0) return report;
  check_facts(options.facts, done);
  report.level = options.level;
  report.calibration_rows = artifact.rows.count();
  report.folds = artifact.calibration.folds;
  for (const auto& method : methods) report.methods.push_back(method->finish());
  MethodResult& main = report.methods.front();
  main.lengths = std::move(sample.lengths);
  main.conditional = conditional.finish();
  report.examples = std::move(sample.examples);
  report.response = response_name(artifact, main);
  report.guaranteed_groups = guaranteed_groups(artifact, options, main, report.class_names);
  report.guaranteed_classes =
      !report.guaranteed_groups.empty() && artifact.calibration.group == kByLabel;
  report.candidates = candidates_of(artifact);
  report.candidates_scored = chosen_by_interval_score(artifact);
  report.provenance.assign(artifact.provenance.begin(), artifact.provenance.end());
  report.notes = level_warnings(artifact, options.level);
  if (const auto warning = same.warning()) report.notes.push_back(*warning);
  for (const std::string& warning : source.warnings()) report.notes.push_back(warning);
  return report;
}

}  // namespace fcp
