#include "fcp/pipeline/evaluate_sets.h"

#include <optional>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/distributed/packing.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/label_examples.h"
#include "fcp/pipeline/label_sets.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_stream.h"
#include "fcp/pipeline/overlap_check.h"
#include "fcp/pipeline/shared_batches.h"
#include "fcp/scores/labels.h"

namespace fcp {
namespace {

// One score of labels on a stream of rows.
class SetStream {
 public:
  SetStream(const CalibrationArtifact& artifact, const TensorPredictor& predictor,
            const RowSource& source, const Level& level, const std::vector<std::string>& names,
            const std::vector<std::string>& groups)
      : artifact_(artifact),
        predictor_(predictor),
        source_(source),
        level_(level),
        evaluator_(names.size(), {.class_names = names, .group_names = groups}) {}

  // Packs what take() needs of these rows, and returns their sets.
  Regions measure(const TestInputs& rows, size_t first_row, const torch::Tensor& truth,
                  Packer& packer) const {
    const Regions regions = predictor_.region(rows, level_);
    check_answers(regions, source_, first_row);
    const torch::Tensor members = host_members(regions);
    const bool all_scores = artifact_.rows.levels.empty();
    const Conformity judged = judge_rows(predictor_, rows, truth, all_scores);
    uint64_t detected = 0;
    for (const bool in :
         within_radii(predictor_, rows, truth, judged.scores, level_, artifact_.score.paper)) {
      detected += in ? 1 : 0;
    }
    packer.add(std::span(reinterpret_cast<const uint8_t*>(members.data_ptr<bool>()),
                         static_cast<size_t>(members.numel())));
    packer.add(judged.p_values);
    packer.add(count_within(artifact_, predictor_, rows, truth, judged.scores));
    packer.add(detected);
    return regions;
  }

  void take(Unpacker& unpacker, std::span<const int64_t> labels, std::span<const int64_t> groups) {
    const std::vector<uint8_t> members = unpacker.numbers<uint8_t>();
    evaluator_.add({.members = members, .truth = labels, .groups = groups});
    const std::vector<double> p_values = unpacker.numbers<double>();
    p_values_.insert(p_values_.end(), p_values.begin(), p_values.end());
    add_counts(within_, unpacker.numbers<uint64_t>());
    detected_ += unpacker.number();
    rows_ += labels.size();
  }

  LabelMethodResult finish() const {
    LabelMethodResult result;
    result.name = artifact_.score.name;
    result.evaluation = evaluator_.finish();
    const bool all_scores = artifact_.rows.levels.empty();
    if (artifact_.calibration.name == "split") {
      result.radius = artifact_.radius(level_)[0];
      if (all_scores) result.scores = artifact_.rows.scores;
    }
    result.curve = all_scores ? coverage_curve(p_values_, curve_levels())
                              : curve_of_levels(artifact_, within_, rows_);
    result.guaranteed = obeys_law(artifact_.score);
    if (!result.guaranteed) result.detection = coverage_of(detected_, rows_);
    return result;
  }

 private:
  const CalibrationArtifact& artifact_;
  const TensorPredictor& predictor_;
  const RowSource& source_;
  Level level_;
  SetEvaluator evaluator_;
  std::vector<double> p_values_;
  std::vector<uint64_t> within_;
  size_t detected_ = 0;
  size_t rows_ = 0;
};

// How often the true label is among the largest one or five logits.
class TopCounter {
 public:
  TopCounter(const TensorPredictor& predictor, const std::string& output)
      : head_(logit_head(predictor.predictor().shared_head(), output)) {}

  void measure(const torch::Tensor& features, const torch::Tensor& truth, Packer& packer) const {
    const torch::Tensor ranks = label_ranks(logits_of(head_, features));
    const torch::Tensor own = ranks.gather(1, truth.to(torch::kLong).reshape({-1, 1}));
    packer.add(std::vector<int64_t>{(own == 1).sum().item<int64_t>(),
                                    (own <= 5).sum().item<int64_t>(), own.size(0)});
  }

  void take(Unpacker& unpacker) {
    const std::vector<int64_t> counts = unpacker.numbers<int64_t>();
    first_ += counts.at(0);
    fifth_ += counts.at(1);
    rows_ += counts.at(2);
  }

  double top1() const { return static_cast<double>(first_) / static_cast<double>(rows_); }
  double top5() const { return static_cast<double>(fifth_) / static_cast<double>(rows_); }

 private:
  LogitHead head_;
  int64_t first_ = 0, fifth_ = 0, rows_ = 0;
};

}  // namespace

LabelReport evaluate_sets(const CalibrationArtifact& artifact, RowSource& source,
                          const DataOptions& data, const Level& level, const RowFacts& facts,
                          const Context& context) {
  torch::NoGradGuard no_grad;
  const TensorPredictor predictor(artifact, context.device);
  const auto names =
      class_names_of(artifact.network, static_cast<size_t>(predictor.score().classes()));
  const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact);
  std::optional<TensorPredictor> plain_predictor;
  if (plain) plain_predictor.emplace(*plain, context.device);
  SetStream method(artifact, predictor, source, level, names, facts.shown.names);
  std::optional<SetStream> baseline;
  if (plain) baseline.emplace(*plain, *plain_predictor, source, level, names, facts.shown.names);
  TopCounter top(predictor, artifact.score.output);
  std::optional<ImageTransform> transform;
  if (are_images(data)) transform = transform_for(data, &artifact.network);
  ExampleSampler sampler(source, names, transform, context.seed);
  OverlapCheck same(artifact, source);
  size_t done = 0;
  Stage stage(context, "evaluate", source.size().value_or(0));
  const auto measure = [&](size_t, const Rows& rows) {
    const TestInputs fresh = predictor.describe(
        view(rows.x),
        side_information(facts, artifact.rows.group_names.size(), rows.first_row, rows.x.rows()));
    const torch::Tensor truth = view(rows.y);
    Packer packer;
    packer.add(host_labels(truth));
    const Regions regions = method.measure(fresh, rows.first_row, truth, packer);
    if (baseline) baseline->measure(fresh, rows.first_row, truth, packer);
    top.measure(fresh.features, truth, packer);
    sampler.measure(rows, regions, packer);
    same.measure(rows, packer);
    return packer.take();
  };
  const auto take = [&](size_t, std::string_view result) {
    Unpacker unpacker(result);
    const std::vector<int64_t> labels = unpacker.numbers<int64_t>();
    const auto ids = groups_of(facts.shown, done, labels.size());
    method.take(unpacker, labels, ids);
    if (baseline) baseline->take(unpacker, labels, ids);
    top.take(unpacker);
    sampler.take(unpacker);
    same.take(unpacker);
    done += labels.size();
    stage.advance(labels.size());
  };
  share_batches(*context.ranks, source, context.batch_for(source), measure, take);
  LabelReport report;
  if (context.ranks->rank() != 0) return report;
  check_facts(facts, done);
  report.level = level;
  report.calibration_rows = artifact.rows.count();
  report.methods.push_back(method.finish());
  report.methods.front().top1 = top.top1();
  report.methods.front().top5 = top.top5();
  if (baseline) report.methods.push_back(baseline->finish());
  report.examples = sampler.take();
  report.class_names = names;
  report.provenance.assign(artifact.provenance.begin(), artifact.provenance.end());
  for (const auto& warning : {infinite_radius_warning(artifact, level), same.warning()}) {
    if (warning) report.notes.push_back(*warning);
  }
  return report;
}

}  // namespace fcp
