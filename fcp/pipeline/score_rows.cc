#include "fcp/pipeline/score_rows.h"

#include <string_view>

#include <torch/utils.h>

#include "fcp/calibration/scored_network.h"
#include "fcp/pipeline/score_collector.h"
#include "fcp/pipeline/shared_batches.h"

namespace fcp {

RowScores score_rows(const Graph& network, RowSource& source, const ScoreOptions& score,
                     const std::string& cut, const Context& context) {
  torch::NoGradGuard no_grad;
  SelectedOptions options;
  options.score = score;
  options.cut = cut;
  const ScoredNetwork predictor(network, score, cut, context.device);
  const RowFacts no_facts;
  const BatchScorer scorer(predictor, options, no_facts, source);
  RowScores all{.sides = predictor.score().sides()};
  Stage stage(context, "score", source.size().value_or(0));
  share_batches(
      *context.ranks, source, context.batch_for(source),
      [&](size_t, const Rows& rows) { return scorer.score(rows, /*check_search=*/false).pack(); },
      [&](size_t, std::string_view result) {
        const ScoredBatch batch = ScoredBatch::unpack(result);
        all.scores.insert(all.scores.end(), batch.scores.begin(), batch.scores.end());
        all.baseline.insert(all.baseline.end(), batch.baseline.begin(), batch.baseline.end());
        stage.advance(batch.seen);
      });
  return all;
}

}  // namespace fcp
