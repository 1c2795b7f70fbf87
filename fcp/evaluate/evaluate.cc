#include "fcp/evaluate/evaluate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/text_table.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/data/row_digest.h"
#include "fcp/evaluate/conditional_sample.h"
#include "fcp/evaluate/judge.h"
#include "fcp/evaluate/measures/coverage_law.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/evaluate/report_sample.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/provenance.h"

namespace fcp {
namespace {

// Targets with a radius of their own, each of one side, by split calibration.
std::vector<GuaranteedGroup> guaranteed_targets(const CalibrationArtifact& artifact,
                                                const MethodResult& main) {
  std::vector<GuaranteedGroup> targets;
  const CalibrationScores& rows = artifact.rows;
  const bool split = artifact.method.calibration.traits().one_radius;
  if (rows.targets == 1 || rows.sharing() > 1 || !split) return targets;
  const IntervalEvaluation& found = main.intervals();
  const std::vector<std::string> names = target_names_of(artifact.network, found.outputs);
  for (size_t k = 0; k < found.outputs; ++k) {
    const double covered = found.output_coverage.at(k) * static_cast<double>(found.rows);
    targets.push_back({"target " + names.at(k), rows.count(),
                       coverage_of(static_cast<size_t>(std::llround(covered)), found.rows)});
  }
  return targets;
}

// The groups that have a radius of their own, with the coverage of their test rows where these were
// told apart by the same groups.
std::vector<GuaranteedGroup> guaranteed_groups(const CalibrationArtifact& artifact,
                                               const EvaluateOptions& options,
                                               const MethodResult& main,
                                               const std::vector<std::string>& class_names) {
  std::vector<GuaranteedGroup> groups = guaranteed_targets(artifact, main);
  if (!artifact.method.calibration.traits().by_group) return groups;
  const std::string by = artifact.method.calibration.value(field::group);
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

std::vector<std::string> report_classes(const CalibrationArtifact& artifact, const Score& score,
                                        const SegmentTask* task) {
  if (task) return class_names_of(artifact.network, static_cast<size_t>(task->classes));
  if (!artifact.method.score.traits().labels) return {};
  return class_names_of(artifact.network, static_cast<size_t>(score.classes()));
}

// A number of the provenance; 0 where it is not there.
size_t provenance_count(const CalibrationArtifact& artifact, const std::string& name) {
  const auto found = artifact.provenance.find(name);
  size_t count = 0;
  if (found == artifact.provenance.end()) return count;
  const std::string& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

// Whether the rows that are evaluated are among those that the network was trained on, by its
// filter (row_digest.h), or the very rows that were calibrated on, by the hash that a calibrated
// predictor carries of them. Then coverage says nothing: it is 1 − α by construction. The hash is
// one of batches, so rows in other batches (--batch) are not recognised.
class SameRowsCheck {
 public:
  // Where the source says that it has another number of rows, nothing is hashed.
  SameRowsCheck(const CalibrationArtifact& artifact, const RowSource& source, bool known_apart)
      : known_apart_(known_apart), trained_(artifact.network.metadata) {
    if (known_apart) return;
    const auto found = artifact.provenance.find(kDataHash);
    if (found == artifact.provenance.end()) return;
    const size_t rows = provenance_count(artifact, "calibration rows") +
                        provenance_count(artifact, "rows left out for choices");
    if (source.size().value_or(rows) == rows) expected_ = found->second;
  }

  // On the rank whose batch it is, and on rank 0 in the order of the batches.
  void measure(const Rows& rows, Packer& packer) const {
    packer.add(expected_.empty() ? std::string() : hash_rows(rows));
    packer.add(known_apart_ ? std::vector<uint64_t>() : trained_.codes(rows.x, rows.y));
  }
  void take(Unpacker& unpacker) {
    hashes_ += unpacker.text();
    trained_.add(unpacker.numbers<uint64_t>());
  }

  // Of these rows with those that the network was trained on.
  RowOverlap trained() const { return trained_.overlap(); }

  bool same() const {
    Sha256 hash;
    hash.add(hashes_);
    return !expected_.empty() && hash.hex() == expected_;
  }

 private:
  bool known_apart_;  // the caller parted these rows from those that made the predictor
  TrainingRows trained_;
  std::string expected_;  // empty: they cannot be the same
  std::string hashes_;    // of the batches, as calibration joins them
};

// The confidence intervals of coverage, for rows that are alike within their groups.
void widen_intervals(EvaluationReport& report) {
  if (report.rows_alike == 1) return;
  const auto widen = [&](Coverage& coverage) {
    const Coverage fewer = worth(coverage, report.rows_alike);
    coverage.lower = std::min(fewer.lower, coverage.rate);
    coverage.upper = std::max(fewer.upper, coverage.rate);
  };
  for (MethodResult& method : report.methods) {
    std::visit([&](auto& any) { widen(any.coverage); }, method.evaluation);
    for (LevelResult& at : method.levels) widen(at.coverage);
  }
}

void add_candidates(const ScoresTried& tried, EvaluationReport& report) {
  report.candidates_scored =
      tried.by == ChosenBy::kIntervalScore || tried.by == ChosenBy::kSetScore;
  report.candidates_by_volume = tried.by == ChosenBy::kVolume;
  for (size_t i = 0; i < tried.candidates.size(); ++i) {
    const ScoreTried& one = tried.candidates[i];
    if (one.skipped.empty()) {
      report.candidates.push_back({one.name, tried.loss(one), i == tried.chosen});
    }
  }
}

}  // namespace

EvaluationReport evaluate(const CalibrationArtifact& artifact, RowSource& source,
                          const EvaluateOptions& options, const Context& context) {
  torch::NoGradGuard no_grad;
  const Judge judge(artifact, context.device);
  const std::optional<CalibrationArtifact> plain = baseline_predictor(artifact);
  std::optional<Judge> plain_judge;
  if (plain) plain_judge.emplace(*plain, context.device);
  const SegmentTask* const task = source.segmentation();
  EvaluationReport report;
  report.class_names = report_classes(artifact, judge.score(), task);
  std::vector<std::unique_ptr<MethodEvaluator>> methods;
  methods.push_back(make_evaluator({judge, source, options, report.class_names}));
  if (plain) {
    methods.push_back(
        make_evaluator({*plain_judge, source, options, report.class_names, /*main=*/false}));
  }
  ReportSample sample(*methods.front(), options, artifact.method.score.traits().labels,
                      task != nullptr, context.seed);
  ConditionalSample conditional(artifact, source, options, context);
  DistributionSample distribution(artifact, source, options, context);
  ProbabilitySample probabilities(judge, report.class_names);
  PartCoverage parts(source, options);
  SameRowsCheck same(artifact, source, options.origin != RowsOrigin::kUnknown);
  size_t done = 0;
  Stage stage(context, "evaluate", source.size().value_or(0));
  const auto measure = [&](size_t, const Rows& rows) {
    const JudgedRows judged = judge.run(rows, options.facts, rows.first_row);
    Packer packer;
    packer.add(uint64_t{rows.x.rows()});
    for (const auto& method : methods) {
      const MeasuredRegions measured = method->measure(judged, packer);
      if (method != methods.front()) continue;
      sample.measure(rows, measured, packer);
      conditional.measure(rows, measured.regions, packer);
      if (task == nullptr) parts.measure(rows, measured.regions, packer);
    }
    distribution.measure(rows, packer);
    probabilities.measure(judged, packer);
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
      if (task == nullptr) parts.take(unpacker);
    }
    distribution.take(unpacker);
    probabilities.take(unpacker);
    same.take(unpacker);
    done += count;
    stage.advance(count);
  };
  share_batches(*context.ranks, source, context.batch_for(source), measure, take);
  if (context.ranks->rank() != 0) return report;
  check_facts(options.facts, done);
  report.level = options.level;
  report.calibration_rows = artifact.rows.count();
  report.folds = artifact.method.calibration.value(field::folds);
  for (const auto& method : methods) report.methods.push_back(method->finish());
  MethodResult& main = report.methods.front();
  main.lengths = std::move(sample.lengths);
  main.conditional = conditional.finish();
  main.distribution = distribution.finish();
  main.probabilities = probabilities.finish();
  parts.finish(report);
  widen_intervals(report);
  report.origin = options.origin;
  report.examples = std::move(sample.examples);
  report.response = response_name(artifact, main);
  if (const auto* found = std::get_if<IntervalEvaluation>(&main.evaluation);
      found != nullptr && found->outputs > 1) {
    report.responses = target_names_of(artifact.network, found->outputs);
  }
  report.guaranteed_groups = guaranteed_groups(artifact, options, main, report.class_names);
  report.guaranteed_classes = !report.guaranteed_groups.empty() &&
                              artifact.method.calibration.value(field::group) == kByLabel;
  report.guaranteed_targets = artifact.rows.targets > 1;
  if (artifact.tried) add_candidates(*artifact.tried, report);
  const std::map<std::string, std::string> facts = artifact.facts();
  report.provenance.assign(facts.begin(), facts.end());
  report.notes = level_warnings(artifact, options.level);
  if (same.same()) {
    report.origin = RowsOrigin::kCalibrationRows;
    report.notes.push_back(
        "these are the calibration rows: their SHA-256 is that of the rows this predictor was "
        "calibrated on, so coverage here says nothing about new rows");
  }
  const RowOverlap trained = same.trained();
  if (more_than_chance(trained)) {
    report.origin = RowsOrigin::kTrainingRows;
    report.notes.push_back(concat("about ",
                                  format_percent(std::min(1.0, trained.filter_share()), 0),
                                  " of the rows that the network was trained on are among these: "
                                  "errors and coverage here say nothing about new rows"));
  }
  for (const std::string& warning : source.warnings()) report.notes.push_back(warning);
  return report;
}

}  // namespace fcp
