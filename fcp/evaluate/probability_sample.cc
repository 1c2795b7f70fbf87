#include "fcp/evaluate/probability_sample.h"

#include <cmath>
#include <span>
#include <utility>

#include "fcp/methods/options.h"

namespace fcp {
namespace {

constexpr size_t kNumbersOfRow = 4;

void put_judged(const JudgedProbabilities& row, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {row.log_loss, row.brier, row.predicted, row.happened});
}

void add_judged(std::span<const double> numbers, ProbabilityEvaluator& evaluator) {
  for (size_t at = 0; at < numbers.size(); at += kNumbersOfRow) {
    evaluator.add({numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]});
  }
}

}  // namespace

ProbabilitySample::ProbabilitySample(const Judge& judge, std::vector<std::string> class_names)
    : class_names_(std::move(class_names)) {
  const ScoreOptions& score = judge.artifact().method.score;
  if (!score.traits().labels || score.pixels != 0) return;
  probabilities_.emplace(judge.predictor().network(), judge.artifact());
}

void ProbabilitySample::measure(const JudgedRows& rows, Packer& packer) const {
  if (!probabilities_) return;
  const torch::Tensor own = probabilities_->shares().of(rows.inputs.features);
  const ClassChances found = probabilities_->from(own);
  const auto width = static_cast<size_t>(own.size(1));
  const auto row_of = [&](const torch::Tensor& all, size_t row) {
    return std::span<const double>(all.data_ptr<double>() + row * width, width);
  };
  std::vector<double> judged, plain, gaps;
  for (size_t i = 0; i < rows.count(); ++i) {
    const float truth = rows.rows.y.values[i];
    if (std::isinf(truth) || std::isnan(row_of(own, i)[0])) continue;
    const auto label = static_cast<size_t>(truth);
    const JudgedProbabilities row = judge_probabilities(row_of(found.merged, i), label);
    put_judged(row, judged);
    if (!found.calibrated()) continue;
    put_judged(judge_probabilities(row_of(own, i), label), plain);
    gaps.push_back(row_of(found.p1, i)[row.event_class] - row_of(found.p0, i)[row.event_class]);
  }
  packer.add(judged);
  packer.add(plain);
  packer.add(gaps);
}

void ProbabilitySample::take(Unpacker& unpacker) {
  if (!probabilities_) return;
  add_judged(unpacker.numbers<double>(), evaluator_);
  add_judged(unpacker.numbers<double>(), softmax_);
  for (const double gap : unpacker.numbers<double>()) gaps_ += gap;
}

std::optional<ProbabilityEvaluation> ProbabilitySample::finish() const {
  if (evaluator_.rows() == 0) return std::nullopt;
  ProbabilityEvaluation found{.method = probabilities_->calibrated() ? kVennAbers : "softmax",
                              .of = class_names_.size() == 2 ? class_names_[1] : "answer",
                              .rows = evaluator_.rows(),
                              .figures = evaluator_.figures(),
                              .reliability = evaluator_.reliability()};
  if (!probabilities_->calibrated()) return found;
  found.mean_gap = gaps_ / static_cast<double>(found.rows);
  found.softmax = softmax_.figures();
  return found;
}

}  // namespace fcp
