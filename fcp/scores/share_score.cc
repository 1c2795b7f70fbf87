#include "fcp/scores/share_score.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"

namespace fcp {
namespace {

constexpr size_t kThreadLogits = size_t{1} << 14;  // below, a thread costs more than it does
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();
constexpr double kForeignScore = std::numeric_limits<double>::infinity();

}  // namespace

void check_temperature(double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    fail("the temperature of a softmax must be positive; it was ", temperature);
  }
}

// Calls work(row, its Row, whether it has shares), rows shared among threads.
template <typename Work>
void ShareScore::each_row(const torch::Tensor& features, const torch::Tensor& logits,
                          const Work& work) const {
  check_temperature(temperature_);
  const torch::Tensor random = randoms(features);
  const auto classes = static_cast<size_t>(logits.size(1));
  const auto rows = static_cast<size_t>(logits.size(0));
  const size_t least = std::max<size_t>(1, kThreadLogits / classes);
  const auto threads = static_cast<size_t>(at::get_num_threads());
  const float* const all = logits.data_ptr<float>();
  const double* const drawn = random.defined() ? random.data_ptr<double>() : nullptr;
  parallel_rows(rows, least, threads, [&](size_t first, size_t last) {
    std::vector<double> shares(classes), numbers(classes);
    std::vector<uint64_t> room;
    size_t expected = 0;
    for (size_t row = first; row < last; ++row) {
      const std::span<const float> own(all + row * classes, classes);
      const bool some = softmax_row(own, temperature_, shares.data());
      const double number = drawn != nullptr ? drawn[row] : 0;
      work(static_cast<int64_t>(row), Row{own, shares, number, numbers, room, expected}, some);
    }
  });
}

std::vector<double> ShareScore::score(const torch::Tensor& features,
                                      const torch::Tensor& truth) const {
  const torch::Tensor labels = labels_of(truth, features.size(0), classes());
  std::vector<double> scores(static_cast<size_t>(features.size(0)));
  const int64_t* const label_of = labels.data_ptr<int64_t>();
  each_row(features, logits_of(head(), features), [&](int64_t row, const Row& own, bool some) {
    const int64_t label = label_of[row];
    scores[static_cast<size_t>(row)] = !some || label == -1     ? kNoScore
                                       : label == kForeignLabel ? kForeignScore
                                                                : score_of(own, label);
  });
  return scores;
}

Regions ShareScore::region(const torch::Tensor& features, const torch::Tensor& radius) const {
  const torch::Tensor radii = label_radii(radius, features.size(0), classes());
  const torch::Tensor logits = logits_of(head(), features);
  torch::Tensor answers = torch::full({logits.size(0), 1}, -1, torch::kLong);
  torch::Tensor members = torch::zeros(logits.sizes(), torch::kBool);
  int64_t* const answer_of = answers.data_ptr<int64_t>();
  bool* const all_members = members.data_ptr<bool>();
  const double* const all_radii = radii.data_ptr<double>();
  const int64_t each = radii.size(1);
  each_row(features, logits, [&](int64_t row, const Row& own, bool some) {
    if (!some) return;
    answer_of[row] = first_largest(own.logits);
    bool* const in = all_members + row * classes();
    const double* const r = all_radii + row * each;
    if (each == 1 && classes() > 1) return find_members(own, *r, in);
    scores_of(own, own.numbers.data());
    for (size_t k = 0; k < own.numbers.size(); ++k) in[k] = own.numbers[k] <= r[k];
  });
  return {answers, {}, {}, members};
}

torch::Tensor ShareScore::label_scores(const torch::Tensor& features,
                                       const torch::Tensor& logits) const {
  torch::Tensor scores = torch::full(logits.sizes(), kNoScore, torch::kDouble);
  each_row(features, logits, [&](int64_t row, const Row& own, bool some) {
    if (some) scores_of(own, scores.data_ptr<double>() + row * logits.size(1));
  });
  return scores;
}

}  // namespace fcp
