#include "fcp/pipeline/calibrate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/checkpoint.h"
#include "fcp/base/error.h"
#include "fcp/base/number_text.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/weighted.h"
#include "fcp/distributed/packing.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/score_collector.h"
#include "fcp/pipeline/select_options.h"
#include "fcp/pipeline/shared_batches.h"

namespace fcp {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

void check_settings(const CalibrateSettings& settings, const ScoredNetwork& predictor) {
  const CalibrationOptions& calibration = settings.calibration;
  if (calibration.name != "grouped") return;
  const bool by_label = calibration.group == kByPrediction || calibration.group == kByLabel;
  if (calibration.group.empty()) fail("--calibration grouped needs --group");
  if (by_label && predictor.score().classes() == 0) {
    fail("--group ", calibration.group, " is for scores of labels; '", settings.score.name,
         "' is one of intervals");
  }
}

// What a reader of a report wants to know.
std::map<std::string, std::string> provenance_of(const CalibrateSettings& settings,
                                                 const ScoredNetwork& predictor,
                                                 const ScoreCollector& collector, size_t kept,
                                                 uint64_t seed) {
  std::map<std::string, std::string> facts = settings.provenance;
  facts["fcp"] = FCP_VERSION;
  facts["score"] = settings.score.name;
  facts["calibration"] = settings.calibration.name;
  facts["cut"] = predictor.cut().empty() ? "network input" : predictor.cut();
  facts["calibration rows"] = std::to_string(kept);
  facts["rows left out for choices"] = std::to_string(collector.seen() - kept);
  facts["seed"] = std::to_string(seed);
  if (searches_surrogate(settings.score)) facts["steps"] = std::to_string(settings.score.steps);
  return facts;
}

std::string hash_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
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
  return hash_of(work.take());
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
// shares are whole batches. A packed file may promise what it does not hold.
size_t expected_rows(const RowSource& source, size_t batch, const Communicator& ranks) {
  const size_t rows = std::min(source.size().value_or(0), size_t{1} << 27);
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
  if (!settings.checkpoint.empty() && ranks.rank() == 0) {
    checkpoint.emplace(settings.checkpoint, work);
  }
  uint64_t done = checkpoint ? checkpoint->records().size() : 0;
  ranks.all_reduce(std::span(&done, 1), Reduce::kMax);
  if (done > 0)
    context.observer->note(concat(settings.checkpoint, ": goes on after ", done, " batches"));
  Stage stage(context, "calibrate", source.size().value_or(0));
  uint64_t taken = 0;
  share_batches(
      ranks, source, batch,
      [&](size_t number, const Rows& rows) {
        if (number < done) {
          return ScoredBatch{.sha256 = hash_rows(rows), .seen = rows.x.rows()}.pack();
        }
        ScoredBatch fresh = scorer.score(rows);
        if (!settings.levels.empty()) {
          collected.keep(fresh);
          if (settings.checkpoint.empty()) fresh.scores = fresh.baseline = {};
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
        collected.take(made);
        stage.advance(made.seen);
        ++taken;
      });
  if (checkpoint && taken < done) {
    fail(checkpoint->path(), ": is of more rows: it has ", done, " batches, ", settings.data_name,
         " has ", taken);
  }
}

// What there is to say of the rows when all are collected; the notable part on stderr too.
void add_findings(const ScoreCollector& collected, const Context& context,
                  CalibrationArtifact& artifact) {
  artifact.provenance["calibration data sha256"] = collected.sha256();
  if (artifact.score.name == "surrogate") {
    const double share =
        static_cast<double>(collected.reached()) / static_cast<double>(collected.seen());
    artifact.provenance["surrogates within 1 % of the truth"] = format_percent(share);
    context.observer->note(concat("surrogate: after ", artifact.score.steps, " steps ",
                                  format_percent(share),
                                  " of the rows predict the truth within 1 %"));
  }
  if (!artifact.rows.weights.empty()) {
    const std::string rows = format_number(effective_sample_size(artifact.rows.weights));
    artifact.provenance["effective sample size"] = rows;
    context.observer->note(
        concat("weights: ", artifact.rows.count(), " rows are worth ", rows, " unweighted ones"));
  }
}

}  // namespace

CalibrationArtifact calibrate_rows(const Graph& network, RowSource& source,
                                   const CalibrateSettings& asked, const Context& context) {
  torch::NoGradGuard no_grad;
  CalibrateSettings settings = asked;
  settings.calibration.paper = settings.score.paper;
  CalibrationArtifact artifact;
  const RowMask left_out = settle(network, source, context, settings, artifact.ratio);
  check_same_files(*context.ranks);  // all have chosen on the same rows
  const ScoredNetwork predictor(network, settings.score, settings.cut, context.device);
  check_settings(settings, predictor);
  artifact.network = network;
  artifact.score = settings.score;
  artifact.calibration = settings.calibration;
  artifact.cut = predictor.cut();
  artifact.rows.levels = settings.levels;
  const size_t batch = context.batch_for(source);
  const bool alone = context.ranks->size() == 1 && settings.checkpoint.empty();
  const std::string work =
      alone ? "" : hash_of_work(artifact, settings, left_out, batch, context.device);
  check_agreement(*context.ranks, work);
  ScoreCollector collected(settings, predictor, expected_rows(source, batch, *context.ranks),
                           *context.ranks);
  collect_rows(BatchScorer(settings, predictor, artifact.ratio, left_out), source, batch, settings,
               work, context, collected);
  collected.finish(*context.ranks, artifact);
  if (context.ranks->rank() != 0) return artifact;

  artifact.provenance =
      provenance_of(settings, predictor, collected, artifact.rows.count(), context.seed);
  add_findings(collected, context, artifact);
  artifact.provenance["network sha256"] = hash_of(serialize_onnx(network));
  if (!source.target_names().empty()) artifact.provenance["target"] = join(source.target_names());
  return artifact;
}

}  // namespace fcp
