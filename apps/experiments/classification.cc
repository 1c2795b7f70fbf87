#include "apps/experiments/classification.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/calibrate/label_options.h"
#include "fcp/conformal/quantile.h"
#include "fcp/evaluate/measures/set_evaluation.h"

namespace fcp {
namespace {

constexpr int64_t kRowsOfAStream = 1000;  // scored and predicted at a time

struct HalvedRows {
  LabelledFeatures selection, calibration, test;
};

LabelledFeatures rows_at(const ClassificationData& data, const std::vector<size_t>& order,
                         size_t begin, size_t end) {
  const std::vector<int64_t> indices(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                     order.begin() + static_cast<std::ptrdiff_t>(end));
  const torch::Tensor index = torch::tensor(indices, torch::kLong);
  return {data.features.index_select(0, index), data.labels.index_select(0, index).unsqueeze(1)};
}

HalvedRows halve(const ClassificationData& data, const ClassificationOptions& options,
                 uint64_t seed) {
  const std::vector<size_t> order =
      Random(seed).permutation(static_cast<size_t>(data.features.size(0)));
  const size_t half = order.size() / 2;
  const size_t used =
      options.most_rows > 0 ? std::min(half, static_cast<size_t>(options.most_rows)) : half;
  const auto slice =
      static_cast<size_t>(std::lround(options.selection_share * static_cast<double>(used)));
  return {rows_at(data, order, 0, slice), rows_at(data, order, slice, used),
          rows_at(data, order, half, half + used)};
}

ScoreOptions chosen_options(const std::string& method, const ClassificationOptions& options,
                            const ClassificationData& data, const LabelledFeatures& selection,
                            const Level& level) {
  const std::shared_ptr<const Network>& head = data.head;
  ScoreOptions score(method.substr(0, method.find('+')), {.seed = options.seed});
  const bool sampled = score.find(field::samples) != nullptr;
  if (sampled) score.own = options.sampled;
  // As in the papers that are compared with.
  if (bool* allow_empty = score.find(field::allow_empty)) *allow_empty = true;
  if (score.find(field::temperature) != nullptr) {
    score = choose_temperature(score, head, selection);
  }
  const bool has_rank_term = score.find(field::rank_weight) != nullptr;
  if (has_rank_term && (!score.traits().uses_features || method == "feature_margin+rank")) {
    const bool cooler = score.find(field::temperature) != nullptr;
    score = choose_rank_term(score, head, selection, level, cooler);
  }
  if (sampled && options.sampled.steps == 0) {
    score = choose_sampled_steps(score, head, selection, level);
  }
  return score;
}

std::string note_of(const ScoreOptions& score) {
  std::ostringstream note;
  const double* temperature = score.find(field::temperature);
  const double* weight = score.find(field::rank_weight);
  if (temperature != nullptr) note << "T = " << *temperature;
  if (temperature != nullptr && weight != nullptr) note << ", ";
  if (weight != nullptr) {
    note << "rank weight " << *weight;
    if (const int64_t* free = score.find(field::rank_free)) note << ", free " << *free;
  }
  if (const int* steps = score.find(field::steps)) note << "M = " << *steps;
  return note.str();
}

std::vector<double> streamed_scores(const Score& score, const LabelledFeatures& rows) {
  std::vector<double> scores;
  for (int64_t first = 0; first < rows.features.size(0); first += kRowsOfAStream) {
    check_interrupted();
    const int64_t count = std::min(kRowsOfAStream, rows.features.size(0) - first);
    const std::vector<double> part =
        score.score(rows.features.narrow(0, first, count), rows.labels.narrow(0, first, count));
    scores.insert(scores.end(), part.begin(), part.end());
  }
  return scores;
}

SetEvaluation streamed_sets(const Score& score, const LabelledFeatures& rows, double radius) {
  SetEvaluator evaluator(static_cast<size_t>(score.classes()));
  for (int64_t first = 0; first < rows.features.size(0); first += kRowsOfAStream) {
    check_interrupted();
    const int64_t count = std::min(kRowsOfAStream, rows.features.size(0) - first);
    const torch::Tensor members = score.region(rows.features.narrow(0, first, count), radius)
                                      .members.to(torch::kByte)
                                      .contiguous();
    const torch::Tensor labels = rows.labels.narrow(0, first, count).contiguous();
    evaluator.add({{members.data_ptr<uint8_t>(), static_cast<size_t>(members.numel())},
                   {labels.data_ptr<int64_t>(), static_cast<size_t>(count)}});
  }
  return evaluator.finish();
}

void fill_in(ClassificationCell& cell, const std::string& method, const HalvedRows& halving,
             const ClassificationData& data, const ClassificationOptions& options,
             const Level& level) {
  const ScoreOptions chosen = chosen_options(method, options, data, halving.selection, level);
  cell.note = note_of(chosen);
  const std::unique_ptr<Score> score = make_score(chosen, data.head);
  const double radius = conformal_quantile(streamed_scores(*score, halving.calibration), level);
  const SetEvaluation sets = streamed_sets(*score, halving.test, radius);
  cell.coverage = sets.coverage.rate;
  cell.size = sets.mean_size;
  cell.worst_stratum = 1;
  for (const Stratum& stratum : sets.size_strata) {
    const double share = stratum.coverage.rate;
    cell.worst_stratum = std::min(cell.worst_stratum, share);
    cell.violation = std::max(cell.violation, std::abs(share - (1 - level.value())));
  }
  if (chosen.obeys_law()) return;
  const std::vector<double> scores = streamed_scores(*score, halving.test);
  const auto detected =
      std::count_if(scores.begin(), scores.end(), [&](double one) { return one <= radius; });
  cell.detection = static_cast<double>(detected) / static_cast<double>(scores.size());
}

}  // namespace

const std::vector<std::string>& classification_methods() {
  static const std::vector<std::string> methods = {
      "lac", "aps", "raps", "saps", "feature_sampled", "feature_margin", "feature_margin+rank"};
  return methods;
}

std::vector<ClassificationCell> run_classification(const ClassificationData& data,
                                                   const ClassificationOptions& options) {
  using Clock = std::chrono::steady_clock;
  const torch::NoGradGuard no_gradients;
  std::vector<ClassificationCell> cells;
  for (uint64_t i = 0; i < options.halvings; ++i) {
    const HalvedRows halving = halve(data, options, options.seed + i);
    for (const Level& level : options.levels) {
      for (const std::string& method : options.methods) {
        ClassificationCell cell;
        cell.method = method;
        cell.level = level.text();
        cell.halving = i;
        const Clock::time_point start = Clock::now();
        try {
          fill_in(cell, method, halving, data, options, level);
        } catch (const Error& error) {
          cell.failed = error.what();
        }
        cell.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

}  // namespace fcp
