#include "fcp/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/parallel.h"
#include "fcp/base/text_table.h"
#include "fcp/calibrate/choose.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/calibrate/collect_scores.h"
#include "fcp/conformal/score_order.h"
#include "fcp/data/row_digest.h"
#include "fcp/distributed/packing.h"
#include "fcp/methods/calibrations/weighted.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/output_names.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/nn/runtime/rows_apart.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/distribution.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/version.h"

namespace fcp {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

void check_levels(const CalibrateSettings& settings) {
  if (settings.levels.empty()) return;
  const std::string& calibration = settings.method.calibration;
  if (!resolve(settings.method).calibration.traits().one_radius) {
    fail_option("levels", "applies only to split calibration: ", calibration, " needs all scores");
  }
}

// Of a score that was chosen: whether it suits the groups is known only now.
void check_groups(const CalibrationOptions& calibration, const ScoredNetwork& predictor) {
  if (!calibration.traits().by_group) return;
  if (!calibration.by_column() && predictor.score().classes() == 0) {
    fail_option("group", "'", calibration.value(field::group),
                "' applies only to scores of labels; the network predicts intervals");
  }
}

// Of a score that was chosen: whether it has probabilities to calibrate is known only now.
void check_probabilities(const ScoreOptions& score) {
  if (score.probabilities != kVennAbers || (score.traits().labels && score.pixels == 0)) return;
  fail_option("probabilities", "applies only to labels of rows; the network predicts ",
              score.traits().labels ? "labels of pixels" : "intervals");
}

// Everything that decides what is kept of a batch, but for its rows: the network and all settings
// as the artifact has them, the rows left out, and what was said of rows besides x and y.
std::string hash_of_work(const CalibrationArtifact& without_rows, const CalibrateSettings& settings,
                         const RowMask& left_out, size_t batch, torch::Device device) {
  Packer work;
  work.add(std::string(FCP_VERSION));
  work.add(serialize_onnx(artifact_graph(without_rows)));
  work.add(std::vector<char>(left_out.begin(), left_out.end()));
  work.add(settings.facts.groups.ids);
  for (const std::string& name : settings.facts.groups.names) work.add(name);
  work.add(settings.facts.weights);
  work.add(uint64_t{batch});
  work.add(static_cast<uint64_t>(at::get_num_threads()));  // may change the last bits of a score
  work.add(device.str());
  return sha256_hex(work.take());
}

// All ranks must have read and chosen the same.
void check_agreement(Communicator& ranks, const std::string& work) {
  const std::vector<std::string> all = ranks.gather(work);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == work) continue;
    fail("rank ", rank, " works on something else than rank 0: the hash of its inputs and options ",
         "is ", all[rank], ", expected ", work);
  }
}

// What there is to say of the rows when all are collected.
CalibrationFindings findings_of(const CollectedScores& collected, const ScoreOptions& score) {
  CalibrationFindings findings{
      .seen = collected.seen, .kept = collected.rows.count(), .steps = score.value(field::steps)};
  if (score.find(field::loss_weights)) {
    findings.reached = static_cast<double>(collected.reached) / static_cast<double>(collected.seen);
  }
  if (!collected.rows.weights.empty()) {
    findings.effective_rows = effective_sample_size(collected.rows.weights);
  }
  return findings;
}

// What a reader of a report wants to know, but for hashes.
std::map<std::string, std::string> provenance_of(const CalibrationArtifact& artifact,
                                                 const CalibrationFindings& findings,
                                                 const RowSource& source, uint64_t seed) {
  const ScoreOptions& score = artifact.method.score;
  std::map<std::string, std::string> facts;
  facts["fcp"] = FCP_VERSION;
  facts["score"] = score.name();
  facts["calibration"] = score.rectifier.empty() ? artifact.method.calibration.name() : kRectified;
  facts["cut"] = artifact.method.cut.empty() ? "network input" : artifact.method.cut;
  facts["calibration rows"] = std::to_string(findings.kept);
  facts["rows left out for choices"] = std::to_string(findings.seen - findings.kept);
  facts["seed"] = std::to_string(seed);
  if (score.pixels > 0) facts["pixels"] = format_number(score.pixels);
  if (score.searches()) facts["steps"] = std::to_string(score.value(field::steps));
  if (findings.reached) {
    facts["surrogates within 1 % of the truth"] = format_percent(*findings.reached);
  }
  if (findings.effective_rows) {
    facts["effective sample size"] = format_number(*findings.effective_rows);
  }
  if (!source.target_names().empty()) facts["target"] = join(source.target_names());
  return facts;
}

// Whether all rows are few enough to be kept for a hash that perhaps nobody asks for.
bool may_be_kept(const RowSource& source) {
  constexpr size_t kMostKept = size_t{1} << 25;  // bytes
  const size_t row = (element_count(source.row_shape()) + source.target_count()) * sizeof(float);
  return source.size() && *source.size() <= kMostKept / std::max<size_t>(1, row);
}

// Groups that are labels have numbers for names.
std::vector<std::string> group_names(const CalibrationOptions& calibration, const RowFacts& facts,
                                     const Score& score) {
  if (!calibration.traits().by_group) return {};
  std::vector<std::string> names = facts.groups.names;
  if (calibration.by_column()) return names;
  for (int64_t label = 0; label < score.classes(); ++label) names.push_back(std::to_string(label));
  return names;
}

// Scores of rows that the network was fitted to are too small: the guarantee would be void. Where
// rows repeat, equal ones are no proof.
void check_training_rows(const RowOverlap& overlap, const CalibrateSettings& settings,
                         std::vector<std::string>& warnings) {
  if (!more_than_chance(overlap)) return;
  const double share = overlap.filter_share();
  const std::string complaint =
      concat(settings.data_name, ": about ", format_percent(share, 0),
             " of the rows that the network was trained on are among these rows");
  if (!settings.allow_training_rows) {
    fail(complaint, "; calibrate on rows that it has not seen (or allow_training_rows)");
  }
  warnings.push_back(complaint + ": intervals will be too short");
}

// On the CPU, whatever the device, which may still be starting.
Network whole_network(const Graph& network, const ScoreOptions& score) {
  return Network(graph_for_score(without_heads(network), score));
}

// The first `wanted` rows, or those of the first batch where it has fewer.
torch::Tensor first_rows(RowSource& source, size_t wanted, bool of_one_batch) {
  std::vector<torch::Tensor> parts;
  source.rewind();
  for (Rows rows; wanted > 0;) {
    if (!source.next(std::min(wanted, source.usual_batch().value_or(wanted)), rows)) break;
    parts.push_back(view(rows.x).clone());
    wanted = of_one_batch ? 0 : wanted - rows.x.rows();
  }
  source.rewind();
  return parts.empty() ? torch::Tensor() : torch::cat(parts);
}

// A network whose rows depend on each other is refused; a few rows tell.
void check_first_rows(const Network& network, RowSource& source) {
  const torch::Tensor x = first_rows(source, 3, /*of_one_batch=*/true);
  if (x.defined() && x.size(0) >= 2) check_rows_apart(network, x);
}

// A cut that is given may be at a tensor that is no feature.
void check_first_features(const ScoredNetwork& predictor, RowSource& source) {
  const torch::Tensor x = first_rows(source, 2, /*of_one_batch=*/true);
  if (x.defined() && x.size(0) >= 2) checked_features(predictor, x);
}

// The artifact before it has rows.
CalibrationArtifact begin_artifact(const CalibrationPlan& plan, const ScoredNetwork& predictor,
                                   const CalibrateSettings& settings) {
  CalibrationArtifact artifact;
  artifact.network = plan.network;
  artifact.network.metadata.erase(kTrainingSketchKey);  // it gives targets away
  artifact.method = plan.method;
  artifact.method.cut = predictor.cut();
  artifact.ratio = plan.ratio;
  artifact.rows.levels = settings.levels;
  return artifact;
}

// Puts what was collected into the artifact and says what there is to say of it.
void add_rows(CollectedScores collected, const CalibrationPlan& plan, const RowSource& source,
              const CalibrateSettings& settings, const Context& context,
              UnfinishedCalibration& made, const Score& score) {
  CalibrateResult& result = *made.result;
  CalibrationArtifact& artifact = result.artifact;
  const size_t count = collected.rows.count();
  if (count < 2) fail(settings.data_name, ": calibration needs at least two rows, found ", count);
  check_facts(settings.facts, collected.seen);
  result.findings = findings_of(collected, plan.method.score);
  artifact.rows = std::move(collected.rows);
  // The score has compared each truth with as many outputs.
  artifact.outputs = score.classes() > 0 ? 1 : source.target_count();
  artifact.rows.group_names = group_names(plan.method.calibration, settings.facts, score);
  artifact.baseline = std::move(collected.baseline);
  if (plan.method.score.probabilities == kVennAbers) {
    artifact.chances = fit_chances(collected.chances, collected.labels);
  }
  made.first_scores = std::move(collected.first);
  artifact.tried = plan.choices.scores;
  artifact.provenance = provenance_of(artifact, result.findings, source, context.seed);
  for (const auto& [key, value] : settings.provenance) artifact.provenance.emplace(key, value);
  made.sha256 = std::move(collected.sha256);
  made.kept = std::move(collected.kept);
}

// Of the levels that are kept, or of the one that choices are made for.
void add_radius_warnings(const UnfinishedCalibration& made, const Level& usual,
                         std::vector<std::string>& warnings) {
  const CalibrationArtifact& artifact = made.result->artifact;
  std::vector<Level> levels = artifact.rows.levels;
  if (levels.empty()) levels.push_back(usual);
  for (const Level& level : levels) {
    const auto radius = made.predictor ? made.predictor->radius(level) : artifact.radius(level);
    for (std::string& text : level_warnings(artifact, level, radius)) {
      warnings.push_back(std::move(text));
    }
  }
}

// The radii at which regions are compared, from the scores of the first rows: these are known
// whether the file keeps all scores or the radii of some levels, and both are exported alike.
std::vector<double> radii_for_rounding(std::vector<double> scores) {
  std::erase_if(scores, [](double score) { return !std::isfinite(score); });
  std::sort(scores.begin(), scores.end());
  std::vector<double> radii;
  for (const double share : {0.5, 0.9, 0.99}) {
    if (scores.empty()) break;
    radii.push_back(scores[static_cast<size_t>(share * static_cast<double>(scores.size() - 1))]);
  }
  return radii;
}

// The rows of the batches that rounding is measured on.
torch::Tensor first_rows_of(const std::vector<Rows>& batches, size_t wanted) {
  std::vector<torch::Tensor> parts;
  for (const Rows& batch : batches) {
    const size_t count = std::min(wanted, batch.x.rows());
    if (count > 0) parts.push_back(view(batch.x).narrow(0, 0, static_cast<int64_t>(count)));
    wanted -= count;
  }
  return parts.empty() ? torch::Tensor() : torch::cat(parts);
}

// `untried`: whether rows depend on each other has not been looked at.
UnfinishedCalibration calibrate_plan(const CalibrationPlan& plan, RowSource& source,
                                     const CalibrateSettings& settings, const Context& context,
                                     const CalibrateInternals& internals, bool untried) {
  const torch::NoGradGuard no_grad;
  Communicator& ranks = *context.ranks;
  const auto network = std::make_shared<const ScoredNetwork>(plan.network, plan.method.score,
                                                             plan.method.cut, context.device);
  check_groups(plan.method.calibration, *network);
  check_probabilities(plan.method.score);
  if (untried && network->cut().empty() && context.device.is_cpu()) {
    check_first_rows(*network->shared_head(), source);
  } else if (untried) {
    check_first_rows(whole_network(plan.network, plan.method.score), source);
  }
  if (plan.method.score.traits().uses_features) check_first_features(*network, source);
  const bool alone = ranks.size() == 1 && !settings.checkpoint;
  CollectOptions collect{.data_name = settings.data_name,
                         .stage = "calibrate",
                         .levels = settings.levels,
                         .keeps_rows = internals.finish_later && alone && may_be_kept(source),
                         .checkpoint = settings.checkpoint};
  UnfinishedCalibration made;
  if (ranks.rank() == 0 && !collect.keeps_rows) {
    made.first_rows = first_rows(source, rounding_rows(plan.network), /*of_one_batch=*/false);
  }
  CalibrationArtifact& artifact = made.result->artifact;
  artifact = begin_artifact(plan, *network, settings);
  made.result->choices = plan.choices;
  if (!alone) {
    collect.work =
        hash_of_work(artifact, settings, plan.left_out, context.batch_for(source), context.device);
    check_agreement(ranks, collect.work);
  }
  const BatchScorer scorer(*network, plan, settings.facts);
  CollectedScores collected = collect_scores(scorer, source, collect, context);
  made.finished = ranks.rank() != 0;
  if (made.finished) return made;
  const RowOverlap trained = collected.training;
  add_rows(std::move(collected), plan, source, settings, context, made, network->score());
  if (internals.finish_later) {
    made.predictor = std::make_shared<const internal::PredictorCore>(
        std::shared_ptr<const CalibrationArtifact>(made.result, &artifact), context.device,
        network);
  } else {
    made.finish();
  }
  std::vector<std::string>& warnings = made.result->warnings;
  add_radius_warnings(made, settings.level, warnings);
  if (!internals.known_apart) check_training_rows(trained, settings, warnings);
  for (std::string& warning : source.warnings()) warnings.push_back(std::move(warning));
  return made;
}

}  // namespace

RowScores UnfinishedCalibration::row_scores() const {
  const CalibrationArtifact& artifact = result->artifact;
  return {artifact.rows.sides, artifact.rows.scores, artifact.baseline};
}

void UnfinishedCalibration::finish() {
  if (std::exchange(finished, true)) return;
  CalibrationArtifact& artifact = result->artifact;
  if (artifact.rows.levels.empty()) {
    const auto threads = static_cast<size_t>(at::get_num_threads());
    parallel_rows(2, 1, threads, [&](size_t first, size_t last) {
      const size_t each = last - first == 2 ? threads : (threads + 1) / 2;
      if (first == 0 && artifact.method.calibration.traits().one_radius)
        sort_sides(artifact.rows, each);
      if (last == 2) sort_scores(artifact.baseline, each);
    });
  }
  if (!kept.empty()) {
    Sha256 hash;
    for (const Rows& batch : kept) hash.add(hash_rows(batch));
    sha256 = hash.hex();
    first_rows = first_rows_of(kept, rounding_rows(artifact.network));
  }
  artifact.provenance[kDataHash] = sha256;
  artifact.provenance[kNetworkHash] = sha256_hex(serialize_onnx(artifact.network));
  if (first_rows.defined()) {
    artifact.rounding =
        measure_rounding(artifact.network, artifact.method.score, artifact.method.cut, first_rows,
                         radii_for_rounding(std::move(first_scores)));
  }
  kept = {};
  first_rows.reset();
}

UnfinishedCalibration begin_calibration(const CalibrationPlan& plan, RowSource& source,
                                        const CalibrateSettings& settings, const Context& context,
                                        const CalibrateInternals& internals) {
  return calibrate_plan(plan, source, settings, context, internals, /*untried=*/false);
}

UnfinishedCalibration begin_calibration(const Graph& network, RowSource& source,
                                        const CalibrateSettings& settings, const Context& context,
                                        const CalibrateInternals& internals) {
  const torch::NoGradGuard no_grad;
  Communicator& ranks = *context.ranks;
  check_options(settings.method);
  check_levels(settings);
  if (is_calibrated(network) && ranks.rank() == 0) {
    context.observer->warning(
        "the network carries a calibration of its own, whose settings and scores are not used");
  }
  CalibrateSettings asked = settings;
  ScoreOptions score = resolve(asked.method).score;
  const Graph named = with_column_outputs(network, score);
  const std::string taken = name_outputs(named, score);
  asked.method.set("output", score.output);
  if (const std::string* low = score.find(field::low)) asked.method.set("low", *low);
  if (const std::string* high = score.find(field::high)) asked.method.set("high", *high);
  if (!taken.empty()) context.observer->note(taken);
  const bool choosing = chooses_on_rows(named, asked);
  if (choosing) check_first_rows(whole_network(named, score), source);
  if (!taken.empty()) asked.provenance[kOutputsTaken] = taken;
  const CalibrationPlan plan = choose_options(named, source, asked, context);
  check_same_files(ranks);  // all have chosen on the same rows
  return calibrate_plan(plan, source, asked, context, internals, /*untried=*/!choosing);
}

CalibrateResult calibrate(const Graph& network, RowSource& source,
                          const CalibrateSettings& settings, const Context& context) {
  return std::move(*begin_calibration(network, source, settings, context, {}).result);
}

}  // namespace fcp
