#include "fcp/calibrate/collect_scores.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/hash.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/calibrate/batch_stream.h"
#include "fcp/distributed/packing.h"
#include "fcp/distributed/selection.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/predictor/batch.h"

namespace fcp {
namespace {

// What to make room for, where the source knows: its rows, and a batch for each rank, because
// shares are whole batches. A packed file may promise what it does not hold. Of scores that come in
// one batch none: that batch is taken as it is.
size_t expected_rows(const RowSource& source, size_t batch, bool some_levels, int ranks) {
  const size_t rows = std::min(source.size().value_or(0), size_t{1} << 27);
  if (!some_levels && ranks == 1 && rows <= batch) return 0;
  return rows + std::min(rows, batch) * static_cast<size_t>(ranks);
}

// Where no room was made for more, these are all.
template <typename T>
void extend(std::vector<T>& all, std::vector<T>&& some) {
  if (all.capacity() == 0) {
    all = std::move(some);
  } else {
    all.insert(all.end(), some.begin(), some.end());
  }
}

// The scores of this rank's rows where levels are wanted, as keys in the order of the scores, which
// selection works on.
class ScoreKeys {
 public:
  ScoreKeys(int64_t sides, size_t rows) : sides_(static_cast<size_t>(sides)) {
    for (std::vector<uint64_t>& side : sides_) side.reserve(rows);
    baseline_.reserve(rows);
  }

  void take(const ScoredBatch& batch) {
    for (size_t i = 0; i < batch.scores.size(); ++i) {
      sides_[i % sides_.size()].push_back(ordered_key(batch.scores[i]));
    }
    for (const double score : batch.baseline) baseline_.push_back(ordered_key(score));
  }

  // On all ranks at once.
  void select(Communicator& ranks, const CalibrationOptions& calibration, CollectedScores& result) {
    CalibrationScores& rows = result.rows;
    uint64_t counts[] = {sides_[0].size(), baseline_.size()};
    ranks.all_reduce(counts, Reduce::kSum);
    rows.total = counts[0];
    const SideRanks ranked{rows.total, rows.sides, calibration.paper, rows.targets};
    const std::vector<uint64_t> ks = ranked.ranks(rows.levels);
    rows.scores.resize(ks.size() * sides_.size());
    for (size_t side = 0; side < sides_.size(); ++side) {
      const auto found = distributed_select(ranks, std::move(sides_[side]), ks);
      for (size_t i = 0; i < ks.size(); ++i) rows.scores[i * sides_.size() + side] = found[i];
    }
    if (counts[1] == 0) return;
    // The baseline has one side, and is never the paper's own form.
    const std::vector<uint64_t> plain = SideRanks{rows.total}.ranks(rows.levels);
    result.baseline = distributed_select(ranks, std::move(baseline_), plain);
  }

 private:
  std::vector<std::vector<uint64_t>> sides_;
  std::vector<uint64_t> baseline_;
};

// The batches that an interrupted run has left, and those of this one.
class KeptBatches {
 public:
  KeptBatches(const CollectOptions& options, const Context& context) : options_(options) {
    if (!options.checkpoint) return;
    Communicator& ranks = *context.ranks;
    if (ranks.rank() == 0) file_.emplace(*options.checkpoint, options.work);
    if (file_) done_ = file_->records().size();
    ranks.all_reduce(std::span(&done_, 1), Reduce::kMax);
    if (done_ == 0) return;
    context.observer->note(concat(*options.checkpoint, ": goes on after ", done_, " batches"));
  }

  // Whether the batch was scored before.
  bool has(size_t number) const { return number < done_; }

  // On rank 0: a batch as it was scored before, where its rows are still the same.
  ScoredBatch recall(size_t number, const ScoredBatch& now, size_t first_row) const {
    ScoredBatch then = ScoredBatch::unpack(file_->records()[number]);
    if (then.sha256 != now.sha256) {
      fail(file_->path(), ": is of other rows: those of ", options_.data_name, " from row ",
           first_row, " (from 0) on had the hash ", then.sha256, ", now it is ", now.sha256);
    }
    return then;
  }

  void append(const ScoredBatch& batch) {
    if (file_) file_->append(batch.pack());
  }

  void check_all_taken(size_t taken) const {
    if (!file_ || taken >= done_) return;
    fail(file_->path(), ": is of more rows: it has ", done_, " batches, ", options_.data_name,
         " has ", taken);
  }

 private:
  const CollectOptions& options_;
  std::optional<Checkpoint> file_;
  uint64_t done_ = 0;
};

// What rank 0 puts together.
class Collector {
 public:
  Collector(const BatchScorer& scorer, const TrainingRows& training) : training_(training) {
    result_.rows.sides = scorer.predictor().score().sides();
    result_.rows.targets = scorer.predictor().score().targets();
  }

  void reserve(size_t rows, bool baseline) {
    result_.rows.scores.reserve(rows * static_cast<size_t>(result_.rows.sides));
    if (baseline) result_.baseline.reserve(rows);
  }

  // `levels`: whether scores are kept as keys instead.
  void take(ScoredBatch batch, bool levels) {
    CalibrationScores& rows = result_.rows;
    if (result_.seen == 0) {
      const std::vector<double>& all = batch.scores;
      result_.first.assign(all.begin(), all.begin() + std::min<ptrdiff_t>(std::ssize(all), 1024));
    }
    if (levels) batch.scores = batch.baseline = {};
    extend(rows.scores, std::move(batch.scores));
    extend(result_.baseline, std::move(batch.baseline));
    extend(rows.groups, std::move(batch.groups));
    extend(rows.weights, std::move(batch.weights));
    extend(features_, std::move(batch.features));
    extend(result_.chances, std::move(batch.chances));
    extend(result_.labels, std::move(batch.labels));
    hashes_ += batch.sha256;
    result_.seen += batch.seen;
    result_.reached += batch.reached;
    training_.add(batch.trained);
  }

  size_t seen() const { return result_.seen; }

  CollectedScores finish() {
    Sha256 hash;
    hash.add(hashes_);
    result_.sha256 = hash.hex();
    result_.training = training_.overlap();
    if (features_.empty()) return std::move(result_);
    const auto n = static_cast<int64_t>(result_.rows.count());
    const auto numbers = static_cast<int64_t>(features_.size());
    result_.rows.features =
        torch::from_blob(features_.data(), {n, numbers / n}, torch::kFloat).clone();
    return std::move(result_);
  }

 private:
  CollectedScores result_;
  std::vector<float> features_;
  std::string hashes_;
  TrainingRows training_;
};

}  // namespace

CollectedScores collect_scores(const BatchScorer& scorer, RowSource& source,
                               const CollectOptions& options, const Context& context) {
  Communicator& ranks = *context.ranks;
  const CalibrationPlan& plan = scorer.plan();
  const int64_t sides = scorer.predictor().score().sides();
  const bool some_levels = !options.levels.empty();
  const size_t batch = context.batch_for(source);
  const size_t expected = expected_rows(source, batch, some_levels, ranks.size());
  const TrainingRows training(plan.network.metadata);
  ScoreKeys keys(sides, some_levels ? expected / static_cast<size_t>(ranks.size()) : 0);
  Collector collected(scorer, training);
  if (!some_levels && ranks.rank() == 0) {
    collected.reserve(expected, baseline_of(plan.method.score).has_value());
  }
  KeptBatches before(options, context);
  std::vector<Rows> kept;
  const bool ahead =
      ranks.size() == 1 && context.device.is_cuda() && source.can_prefetch() && !options.keeps_rows;
  BatchStream batches(source, training,
                      {.batch = batch,
                       .hashes = options.hashes && !options.keeps_rows,
                       .ahead = ahead,
                       .device = context.device});
  Stage stage(context, options.stage, source.size().value_or(0));
  ReadyBatch ready;
  size_t taken = 0;
  const auto make = [&](size_t number) -> std::optional<ScoredBatch> {
    check_interrupted();
    if (!batches.next(number, ready)) return std::nullopt;
    if (before.has(number)) return ScoredBatch{.sha256 = ready.sha256, .seen = ready.rows.x.rows()};
    ScoredBatch fresh = scorer.score(ready.rows, ready.x);
    fresh.sha256 = std::move(ready.sha256);
    fresh.trained = std::move(ready.trained);
    if (some_levels) keys.take(fresh);
    // Of the first batch rank 0 takes the scores all the same.
    if (some_levels && !options.checkpoint && number > 0) fresh.scores = fresh.baseline = {};
    if (options.keeps_rows) kept.push_back(std::move(ready.rows));
    return fresh;
  };
  const auto take = [&](size_t number, ScoredBatch made) {
    if (before.has(number)) {
      made = before.recall(number, made, collected.seen());
      if (some_levels) keys.take(made);
    } else {
      before.append(made);
    }
    stage.advance(made.seen);
    collected.take(std::move(made), some_levels);
    ++taken;
  };
  relay_batches<ScoredBatch>(ranks, make, take);
  check_same_files(ranks);
  check_interrupted();
  before.check_all_taken(taken);
  CollectedScores result = collected.finish();
  result.kept = std::move(kept);
  result.rows.levels = options.levels;
  if (some_levels) keys.select(ranks, plan.method.calibration, result);
  return result;
}

RowScores score_rows(const Graph& network, RowSource& source, const ScoreOptions& score,
                     const std::string& cut, const Context& context) {
  const torch::NoGradGuard no_grad;
  CalibrationPlan plan;
  plan.method.score = score;
  const ScoredNetwork predictor(network, score, cut, context.device);
  const RowFacts no_facts;
  const BatchScorer scorer(predictor, plan, no_facts, /*check_search=*/false);
  CollectedScores all = collect_scores(scorer, source, {.hashes = false}, context);
  return {all.rows.sides, std::move(all.rows.scores), std::move(all.baseline)};
}

}  // namespace fcp
