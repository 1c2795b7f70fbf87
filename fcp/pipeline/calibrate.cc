#include "fcp/pipeline/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/checkpoint.h"
#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/number_text.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/options.h"
#include "fcp/calibration/recalibration.h"
#include "fcp/calibration/selection.h"
#include "fcp/calibration/weighted.h"
#include "fcp/data/row_digest.h"
#include "fcp/distributed/packing.h"
#include "fcp/network/network.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/network/rows_apart.h"
#include "fcp/pipeline/ahead_batches.h"
#include "fcp/pipeline/candidates.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/overlap_check.h"
#include "fcp/pipeline/score_collector.h"
#include "fcp/pipeline/select_options.h"
#include "fcp/pipeline/shared_batches.h"
#include "fcp/scores/column_outputs.h"
#include "fcp/scores/head_outputs.h"
#include "fcp/scores/output_names.h"

namespace fcp {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

void check_levels(const CalibrateSettings& settings) {
  if (settings.levels.empty()) return;
  const std::string& calibration = settings.method.calibration.name;
  if (calibration != "split" && calibration != kRectified) {
    fail_option("levels", "applies only to split calibration: ", calibration, " needs all scores");
  }
  if (settings.keep_row_scores) {
    fail_option("levels", "keeps no scores of rows, which are asked for as well");
  }
}

// Of a score that was chosen: whether it suits the groups is known only now.
void check_groups(const CalibrationOptions& calibration, const ScoredNetwork& predictor) {
  if (calibration.name != "grouped") return;
  const bool by_label = calibration.group == kByPrediction || calibration.group == kByLabel;
  if (by_label && predictor.score().classes() == 0) {
    fail_option("group", "'", calibration.group,
                "' applies only to scores of labels; the network predicts intervals");
  }
}

// What a reader of a report wants to know.
std::map<std::string, std::string> provenance_of(const CalibrationArtifact& artifact,
                                                 const ScoreCollector& collector, uint64_t seed,
                                                 bool hashed) {
  const ScoreOptions& score = artifact.score;
  const size_t kept = artifact.rows.count();
  std::map<std::string, std::string> facts;
  facts["fcp"] = FCP_VERSION;
  facts["score"] = score.name;
  facts["calibration"] = score.rectifier.empty() ? artifact.calibration.name : kRectified;
  facts["cut"] = artifact.cut.empty() ? "network input" : artifact.cut;
  facts["calibration rows"] = std::to_string(kept);
  facts["rows left out for choices"] = std::to_string(collector.seen() - kept);
  if (hashed) {
    facts[kDataHash] = collector.sha256();
    facts[kNetworkHash] = sha256_hex(serialize_onnx(artifact.network));
  }
  facts["seed"] = std::to_string(seed);
  if (score.pixels > 0) facts["pixels"] = format_number(score.pixels);
  if (searches_surrogate(score)) facts["steps"] = std::to_string(score.steps);
  return facts;
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

// What to make room for, where the source knows: its rows, and a batch for each rank, because
// shares are whole batches. A packed file may promise what it does not hold. Of scores that come in
// one batch none: that batch is taken as it is.
size_t expected_rows(const RowSource& source, size_t batch, const CalibrateSettings& settings,
                     const Communicator& ranks) {
  const size_t rows = std::min(source.size().value_or(0), size_t{1} << 27);
  if (settings.levels.empty() && ranks.size() == 1 && rows <= batch) return 0;
  return rows + std::min(rows, batch) * static_cast<size_t>(ranks.size());
}

// A batch as the checkpoint has it, where its rows are still the same.
ScoredBatch recall(const Checkpoint& checkpoint, size_t number, const ScoredBatch& now,
                   const std::string& data_name, size_t first_row) {
  ScoredBatch then = ScoredBatch::unpack(checkpoint.records()[number]);
  if (then.sha256 != now.sha256) {
    fail(checkpoint.path(), ": is of other rows: those of ", data_name, " from row ", first_row,
         " (from 0) on had the hash ", then.sha256, ", now it is ", now.sha256);
  }
  return then;
}

// Scores all rows that the checkpoint, if there is one, does not have.
void collect_rows(const BatchScorer& scorer, RowSource& source, size_t batch,
                  const CalibrateSettings& settings, const std::string& work,
                  const Context& context, ScoreCollector& collected) {
  Communicator& ranks = *context.ranks;
  std::optional<Checkpoint> checkpoint;
  if (settings.checkpoint && ranks.rank() == 0) checkpoint.emplace(*settings.checkpoint, work);
  uint64_t done = checkpoint ? checkpoint->records().size() : 0;
  ranks.all_reduce(std::span(&done, 1), Reduce::kMax);
  if (done > 0) {
    context.observer->note(concat(*settings.checkpoint, ": goes on after ", done, " batches"));
  }
  Stage stage(context, "calibrate", source.size().value_or(0));
  uint64_t taken = 0;
  share_batches(
      ranks, source, batch,
      [&](size_t number, const Rows& rows) {
        if (number < done) {
          return ScoredBatch{.sha256 = hash_rows(rows), .seen = rows.x.rows()}.pack();
        }
        ScoredBatch fresh = scorer.score(rows);
        fresh.sha256 = hash_rows(rows);
        if (!settings.levels.empty()) {
          collected.keep(fresh);
          if (!settings.checkpoint) fresh.scores = fresh.baseline = {};
        }
        return fresh.pack();
      },
      [&](size_t number, std::string_view result) {
        ScoredBatch made = ScoredBatch::unpack(result);
        if (number < done) {
          made = recall(*checkpoint, number, made, settings.data_name, collected.seen());
          if (!settings.levels.empty()) collected.keep(made);
        } else if (checkpoint) {
          checkpoint->append(result);
        }
        stage.advance(made.seen);
        collected.take(std::move(made));
        ++taken;
      });
  if (checkpoint && taken < done) {
    fail(checkpoint->path(), ": is of more rows: it has ", done, " batches, ", settings.data_name,
         " has ", taken);
  }
}

// The same of one rank without a checkpoint: nothing is packed, and batches that are hashed later
// are handed on.
void collect_alone(const BatchScorer& scorer, RowSource& source, size_t batch,
                   const CalibrateSettings& settings, const Context& context,
                   ScoreCollector& collected, std::vector<Rows>& unhashed) {
  Stage stage(context, "calibrate", source.size().value_or(0));
  for (Rows rows; check_interrupted(), source.next(batch, rows);) {
    ScoredBatch scored = scorer.score(rows);
    if (!settings.hash_later) scored.sha256 = hash_rows(rows);
    if (!settings.levels.empty()) collected.keep(scored);
    stage.advance(scored.seen);
    collected.take(std::move(scored));
    if (settings.hash_later) unhashed.push_back(std::move(rows));
  }
  check_interrupted();
}

// The same where a device computes, and threads are free to make batches ready for it.
void collect_ahead(const BatchScorer& scorer, RowSource& source, size_t batch,
                   const CalibrateSettings& settings, const Context& context,
                   ScoreCollector& collected) {
  Stage stage(context, "calibrate", source.size().value_or(0));
  AheadBatches batches(
      source, batch, [&](const Rows& rows) { return scorer.find_trained(rows); }, context.device);
  for (ReadyBatch ready; check_interrupted(), batches.next(ready);) {
    ScoredBatch scored = scorer.score_at(ready.rows, ready.x);
    scored.sha256 = std::move(ready.sha256);
    scored.trained = std::move(ready.trained);
    if (!settings.levels.empty()) collected.keep(scored);
    collected.take(scored);
    stage.advance(scored.seen);
  }
  check_interrupted();
}

// What there is to say of the rows when all are collected.
CalibrationFindings findings_of(const ScoreCollector& collected,
                                const CalibrationArtifact& artifact) {
  CalibrationFindings findings{
      .seen = collected.seen(), .kept = artifact.rows.count(), .steps = artifact.score.steps};
  if (artifact.score.name == "surrogate") {
    findings.reached =
        static_cast<double>(collected.reached()) / static_cast<double>(collected.seen());
  }
  if (!artifact.rows.weights.empty()) {
    findings.effective_rows = effective_sample_size(artifact.rows.weights);
  }
  return findings;
}

void add_findings(const CalibrationFindings& findings, CalibrationArtifact& artifact) {
  if (findings.reached) {
    artifact.provenance["surrogates within 1 % of the truth"] = format_percent(*findings.reached);
  }
  if (findings.effective_rows) {
    artifact.provenance["effective sample size"] = format_number(*findings.effective_rows);
  }
}

// Scores of rows that the network was fitted to are too small: the guarantee would be void. Where
// rows repeat, equal ones are no proof.
void check_training_rows(const RowOverlap& overlap, const CalibrateSettings& settings,
                         std::vector<std::string>& warnings) {
  if (settings.known_apart || !more_than_chance(overlap)) return;
  const double share = overlap.filter_share();
  const std::string complaint =
      concat(settings.data_name, ": about ", format_percent(share, 0),
             " of the rows that the network was trained on are among these rows");
  if (!settings.allow_training_rows) {
    fail(complaint, "; calibrate on rows that it has not seen (or allow_training_rows)");
  }
  warnings.push_back(complaint + ": intervals will be too short");
}

// Of the levels that are kept, or of the one that choices are made for.
std::vector<std::string> radius_warnings(const CalibrationArtifact& artifact, const Level& usual,
                                         const TensorPredictor* predictor) {
  std::vector<Level> levels = artifact.rows.levels;
  if (levels.empty()) levels.push_back(usual);
  std::vector<std::string> warnings;
  for (const Level& level : levels) {
    const std::vector<double> radius =
        predictor != nullptr ? predictor->radius(level) : artifact.radius(level);
    for (std::string& warning : level_warnings(artifact, level, radius)) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

// On the CPU, whatever the device, which may still be starting.
Network whole_network(const Graph& network, const ScoreOptions& score) {
  return Network(graph_for_score(without_heads(network), score));
}

// A network whose rows depend on each other is refused; a few rows tell.
void check_first_rows(const Network& network, RowSource& source) {
  constexpr size_t kTried = 3;
  Rows rows;
  source.rewind();
  const bool some = source.next(std::min(kTried, source.usual_batch().value_or(kTried)), rows);
  source.rewind();
  if (some && rows.x.rows() >= 2) check_rows_apart(network, view(rows.x));
}

// The first rows, as many as rounding is measured on.
torch::Tensor rows_for_rounding(const Graph& network, RowSource& source) {
  const size_t wanted = rounding_rows(network);
  std::vector<torch::Tensor> parts;
  size_t found = 0;
  source.rewind();
  for (Rows rows; found < wanted;) {
    const size_t most = std::min(wanted - found, source.usual_batch().value_or(wanted));
    if (!source.next(most, rows)) break;
    found += rows.x.rows();
    parts.push_back(view(rows.x).clone());
  }
  source.rewind();
  return parts.empty() ? torch::Tensor() : torch::cat(parts);
}

// A cut that is given may be at a tensor that is no feature.
void check_first_features(const ScoredNetwork& predictor, RowSource& source) {
  Rows rows;
  source.rewind();
  const bool some = source.next(std::min<size_t>(2, source.usual_batch().value_or(2)), rows);
  source.rewind();
  if (some && rows.x.rows() >= 2) checked_features(predictor, view(rows.x));
}

// The artifact before it has rows.
CalibrationArtifact begin_artifact(const SelectedOptions& options, const ScoredNetwork& predictor,
                                   const CalibrateSettings& settings) {
  CalibrationArtifact artifact;
  artifact.network = options.network;
  artifact.network.metadata.erase(kTrainingSketchKey);  // it gives targets away
  artifact.score = options.score;
  artifact.calibration = options.calibration;
  artifact.cut = predictor.cut();
  artifact.ratio = options.ratio;
  artifact.rows.levels = settings.levels;
  return artifact;
}

// calibrate_selected; `untried`: whether rows depend on each other has not been looked at.
CalibrateResult calibrate_with(const SelectedOptions& options, RowSource& source,
                               const CalibrateSettings& settings, const Context& context,
                               bool untried) {
  torch::NoGradGuard no_grad;
  Communicator& ranks = *context.ranks;
  const auto network = std::make_shared<const ScoredNetwork>(options.network, options.score,
                                                             options.cut, context.device);
  const ScoredNetwork& predictor = *network;
  check_groups(options.calibration, predictor);
  if (untried && predictor.cut().empty() && context.device.is_cpu()) {
    check_first_rows(*predictor.shared_head(), source);
  } else if (untried) {
    check_first_rows(whole_network(options.network, options.score), source);
  }
  if (uses_features(options.score.name)) check_first_features(predictor, source);
  torch::Tensor few;  // where hashing is left for later, so is this
  if (ranks.rank() == 0 && !settings.hash_later) few = rows_for_rounding(options.network, source);
  CalibrateResult result;
  CalibrationArtifact& artifact = result.artifact;
  artifact = begin_artifact(options, predictor, settings);
  result.choices = options.choices;
  const size_t batch = context.batch_for(source);
  const bool alone = ranks.size() == 1 && !settings.checkpoint;
  const std::string work =
      alone ? "" : hash_of_work(artifact, settings, options.left_out, batch, context.device);
  check_agreement(ranks, work);
  ScoreCollector collected(settings, options, predictor,
                           expected_rows(source, batch, settings, ranks), ranks);
  const BatchScorer scorer(predictor, options, settings.facts, source);
  if (alone && context.device.is_cuda() && source.read_apart() && !settings.hash_later) {
    collect_ahead(scorer, source, batch, settings, context, collected);
  } else if (alone) {
    collect_alone(scorer, source, batch, settings, context, collected, result.unhashed);
  } else {
    collect_rows(scorer, source, batch, settings, work, context, collected);
  }
  collected.finish(ranks, result);
  if (ranks.rank() != 0) return result;

  if (few.defined()) measure_first_rows(few, artifact);
  result.findings = findings_of(collected, artifact);
  artifact.provenance = provenance_of(artifact, collected, context.seed, result.unhashed.empty());
  artifact.provenance.insert(settings.provenance.begin(), settings.provenance.end());
  add_findings(result.findings, artifact);
  if (result.choices.scores) {
    const bool scored = result.choices.by == ChosenBy::kIntervalScore;
    artifact.provenance[kCandidates] = candidates_text(*result.choices.scores, scored);
    if (scored) artifact.provenance[kObjective] = kByIntervalScore;
  }
  if (!source.target_names().empty()) artifact.provenance["target"] = join(source.target_names());
  if (settings.keep_predictor) {
    result.predictor = std::make_shared<const TensorPredictor>(network, artifact);
  }
  result.warnings = radius_warnings(artifact, settings.level, result.predictor.get());
  check_training_rows(collected.training_overlap(), settings, result.warnings);
  for (std::string& warning : source.warnings()) result.warnings.push_back(std::move(warning));
  return result;
}

}  // namespace

CalibrateResult calibrate(const Graph& network, RowSource& source,
                          const CalibrateSettings& settings, const Context& context) {
  torch::NoGradGuard no_grad;
  Communicator& ranks = *context.ranks;
  check_options(settings.method);
  check_levels(settings);
  if (is_calibrated(network) && ranks.rank() == 0) {
    context.observer->warning(
        "the network carries a calibration of its own, whose settings and scores are not used");
  }
  CalibrateSettings asked = settings;
  ScoreOptions& score = asked.method.score;
  const Graph named = with_column_outputs(network, score);
  const std::string taken = name_outputs(named, score, score.name == kAutoScore);
  if (!taken.empty()) context.observer->note(taken);
  const bool choosing = chooses_on_rows(named, asked);
  if (choosing) check_first_rows(whole_network(named, score), source);
  if (!taken.empty()) asked.provenance[kOutputsTaken] = taken;
  const SelectedOptions options = select_options(named, source, asked, context);
  check_same_files(ranks);  // all have chosen on the same rows
  return calibrate_with(options, source, asked, context, !choosing);
}

CalibrateResult calibrate_selected(const SelectedOptions& options, RowSource& source,
                                   const CalibrateSettings& settings, const Context& context) {
  return calibrate_with(options, source, settings, context, /*untried=*/false);
}

}  // namespace fcp
