#include "fcp/methods/scores/labels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/lanes.h"
#include "fcp/base/parallel.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/output_kind.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/nn/runtime/tensor_memory.h"

namespace fcp {
namespace {

// The numbers of one row of the output; 0: the file does not say.
int64_t declared_classes(const TensorInfo& output) {
  if (!output.known_rank || output.shape.size() < 2) return 0;
  int64_t classes = 1;
  for (size_t i = 1; i < output.shape.size(); ++i) {
    if (output.shape[i] == kDynamic) return 0;
    classes *= output.shape[i];
  }
  return classes;
}

int64_t classes_by_running(const Network& network, const TensorInfo& output) {
  const TensorInfo& input = network.inputs()[0];
  std::vector<int64_t> shape = input.shape;
  const bool known = input.known_rank && !shape.empty() &&
                     std::find(shape.begin() + 1, shape.end(), kDynamic) == shape.end();
  if (!known) {
    fail("output '", output.name,
         "' does not say how many classes it has, nor can it be tried: ", "the shape of '",
         input.name, "' is not known either");
  }
  if (shape[0] == kDynamic) shape[0] = 1;
  const torch::NoGradGuard no_gradients;
  return output_matrix(network.run({declared_zeros(shape, input.type, input.name)})[0]).size(1);
}

LogitHead head_of_logits(const std::shared_ptr<const Network>& head, const Graph& logits,
                         const std::string& output) {
  const TensorInfo& wanted = logits.outputs[0];
  LogitHead result{head, declared_classes(wanted)};
  if (head->outputs().size() > 1 || wanted.name != output) {
    NetworkOptions options;
    options.device = head->device();
    result.network = std::make_shared<const Network>(logits, options);
  }
  if (result.classes == 0) result.classes = classes_by_running(*result.network, wanted);
  return result;
}

}  // namespace

LogitHead logit_head(const std::shared_ptr<const Network>& head, const std::string& output) {
  const size_t index = output_index(*head, output);
  const std::string& name = head->outputs()[index].name;
  LogitHead result = head_of_logits(head, logits_graph(head->graph(), name), name);
  // One number per row is the logit of the second of two classes.
  if (result.classes < 2) {
    result = head_of_logits(head, logits_graph(head->graph(), name, /*one_logit=*/true), name);
  }
  return result;
}

torch::Tensor logits_of(const LogitHead& head, const torch::Tensor& features) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor output = run_apart(*head.network, {features})[0];
  const torch::Tensor logits = output.reshape({output.size(0), -1});
  if (logits.size(1) != head.classes) {
    fail("output '", head.network->outputs()[0].name, "': found ", logits.size(1),
         " numbers per row, expected ", head.classes);
  }
  return logits.to(torch::kCPU, torch::kFloat).contiguous();
}

torch::Tensor labels_of(const torch::Tensor& truth, int64_t rows, int64_t classes) {
  if (truth.numel() != rows) {
    fail("the target has ", truth.numel(), " numbers for ", rows, " rows; expected one label each");
  }
  const torch::Tensor numbers = truth.to(torch::kCPU, torch::kDouble).flatten().contiguous();
  torch::Tensor labels = torch::empty({rows}, torch::kLong);
  const double* from = numbers.data_ptr<double>();
  int64_t* to = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    if (std::isnan(from[i])) {
      to[i] = -1;
    } else if (std::isinf(from[i]) && from[i] > 0) {
      to[i] = kForeignLabel;
    } else if (from[i] >= 0 && from[i] < static_cast<double>(classes) &&
               from[i] == std::floor(from[i])) {
      to[i] = static_cast<int64_t>(from[i]);
    } else {
      fail("row ", i, ": found label ", from[i], ", expected one of 0 to ", classes - 1);
    }
  }
  return labels;
}

torch::Tensor label_radii(const torch::Tensor& radius, int64_t rows, int64_t classes) {
  const bool fits = radius.dim() == 2 && radius.size(0) == rows &&
                    (radius.size(1) == 1 || radius.size(1) == classes);
  if (!fits) {
    fail("a score of labels takes one radius per row, or one for each of its ", classes,
         " labels; found ", radius.sizes(), " for ", rows, " rows");
  }
  return radius.to(torch::kCPU, torch::kDouble).contiguous();
}

std::vector<double> label_plain_scores(const torch::Tensor& scores, const torch::Tensor& labels,
                                       const torch::Tensor& logits) {
  const torch::Tensor unknown = (labels == -1).logical_or(logits.isnan().any(1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return plain_scores(scores.to(torch::kDouble)
                          .masked_fill(labels == kForeignLabel, kInfinity)
                          .masked_fill(unknown, nan));
}

torch::Tensor answers_of(const torch::Tensor& logits) {
  const torch::Tensor unknown = logits.isnan().any(1, /*keepdim=*/true);
  return logits.argmax(1, /*keepdim=*/true).masked_fill(unknown, -1);
}

torch::Tensor label_ranks(const torch::Tensor& logits) {
  const torch::Tensor order = std::get<1>(torch::sort(logits, /*stable=*/true, 1, true));
  const torch::Tensor places = torch::arange(1, logits.size(1) + 1, torch::kLong);
  return torch::empty_like(order).scatter_(1, order, places.expand_as(order).contiguous());
}

RankTerm rank_term(double weight, int64_t free, const char* score) {
  if (!(weight >= 0) || !std::isfinite(weight) || free < 0) {
    fail(score, ": the weight of the rank (", weight, ") and the ranks free of it (", free,
         ") must be at least 0");
  }
  return {weight, free};
}

torch::Tensor rank_terms(const torch::Tensor& ranks, const RankTerm& term) {
  return (ranks - term.free).clamp_min(0).to(torch::kDouble) * term.weight;
}

std::vector<double> LabelScore::score(const torch::Tensor& features,
                                      const torch::Tensor& truth) const {
  const torch::Tensor labels = labels_of(truth, features.size(0), classes());
  const torch::Tensor all = label_scores(features);  // [N, C], NaN where a logit is
  const torch::Tensor own = all.gather(1, labels.clamp_min(0).unsqueeze(1)).squeeze(1);
  return label_plain_scores(own, labels, all);
}

Regions LabelScore::region(const torch::Tensor& features, const torch::Tensor& radius) const {
  const torch::Tensor radii = label_radii(radius, features.size(0), classes());
  const torch::Tensor logits = logits_of(head_, features);
  const torch::Tensor scores = label_scores(features, logits);
  // An infinite logit is a number, but no softmax has a share for it.
  const torch::Tensor unknown = scores.isnan().any(1, /*keepdim=*/true);
  return {answers_of(logits).masked_fill(unknown, -1), {}, {}, scores <= radii};
}

torch::Tensor LabelScore::with_answer(const torch::Tensor& scores,
                                      const torch::Tensor& logits) const {
  if (allow_empty_) return scores;
  const torch::Tensor unknown = scores.isnan().any(1, /*keepdim=*/true);
  return scores.scatter(1, logits.argmax(1, /*keepdim=*/true), kAnswerScore)
      .masked_fill(unknown, std::numeric_limits<double>::quiet_NaN());
}

torch::Tensor LabelScore::with_answer(const torch::Tensor& scores, const torch::Tensor& labels,
                                      const torch::Tensor& logits) const {
  return allow_empty_ ? scores : scores.masked_fill(labels == logits.argmax(1), kAnswerScore);
}

torch::Tensor LabelScore::members_with_answer(const torch::Tensor& members,
                                              const torch::Tensor& logits,
                                              const torch::Tensor& radii) const {
  if (allow_empty_) return members;
  const torch::Tensor answer = logits.argmax(1, /*keepdim=*/true);
  return members.scatter(1, answer,
                         radii.expand(members.sizes()).gather(1, answer) >= kAnswerScore);
}

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
    double& score = scores[static_cast<size_t>(row)];
    if (!some || label == -1) {
      score = kNoScore;
    } else if (label == kForeignLabel) {
      score = kForeignScore;
    } else {
      const bool answer = !allow_empty() && label == first_largest(own.logits);
      score = answer ? kAnswerScore : score_of(own, label);
    }
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
    if (each == 1) {
      find_members(own, *r, in);
    } else {
      scores_of(own, own.numbers.data());
      for (size_t k = 0; k < own.numbers.size(); ++k) in[k] = own.numbers[k] <= r[k];
    }
    if (allow_empty()) return;
    in[answer_of[row]] = kAnswerScore <= r[each == 1 ? 0 : answer_of[row]];
  });
  return {answers, {}, {}, members};
}

torch::Tensor ShareScore::plain_label_scores(const torch::Tensor& features,
                                             const torch::Tensor& logits) const {
  torch::Tensor scores = torch::full(logits.sizes(), kNoScore, torch::kDouble);
  each_row(features, logits, [&](int64_t row, const Row& own, bool some) {
    if (some) scores_of(own, scores.data_ptr<double>() + row * logits.size(1));
  });
  return scores;
}

namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

template <typename Doubles>
constexpr size_t kDoublesIn = sizeof(typename Doubles::Type) / sizeof(double);

// The largest of all logits but NaN; −∞ where there are none.
template <typename Doubles>
FCP_KERNEL float largest_logit(const float* logits, size_t count) {
  typedef typename Doubles::Floats Floats;
  constexpr size_t kStep = kDoublesIn<Doubles>;
  Floats largest = Floats{} + kNoLogit;
  size_t k = 0;
  for (; k + kStep <= count; k += kStep) {
    const Floats some = *reinterpret_cast<const Floats*>(logits + k);
    largest = some > largest ? some : largest;
  }
  float most = kNoLogit;
  for (size_t i = 0; i < kStep; ++i) most = largest[i] > most ? largest[i] : most;
  for (; k < count; ++k) most = logits[k] > most ? logits[k] : most;
  return most;
}

// Exponentials of `count` logits from `logits` on, at most a vector of them; what is beyond is 0.
template <typename Doubles>
FCP_KERNEL void exp_some(const float* logits, size_t count, double temperature, double largest,
                         typename Doubles::Type& out) {
  typedef typename Doubles::Floats Floats;
  typedef typename Doubles::Type Vector;
  Floats some;
  if (count >= kDoublesIn<Doubles>) {
    some = *reinterpret_cast<const Floats*>(logits);
  } else {
    some = Floats{} + kNoLogit;
    for (size_t i = 0; i < count; ++i) some[i] = logits[i];
  }
  out = __builtin_convertvector(some, Vector);
  if (temperature != 1) out /= temperature;
  out -= largest;
  exp_below_zero<Doubles>(out);
}

template <typename Doubles>
FCP_KERNEL double softmax(std::span<const float> logits, double temperature, double* shares) {
  typedef typename Doubles::Type Vector;
  constexpr size_t kStep = kDoublesIn<Doubles>;
  const double largest =
      static_cast<double>(largest_logit<Doubles>(logits.data(), logits.size())) / temperature;
  Vector sums = {}, some;
  size_t k = 0;
  for (; k + kStep <= logits.size(); k += kStep) {
    exp_some<Doubles>(logits.data() + k, kStep, temperature, largest, some);
    sums += some;
    *reinterpret_cast<Vector*>(shares + k) = some;
  }
  if (k < logits.size()) {
    exp_some<Doubles>(logits.data() + k, logits.size() - k, temperature, largest, some);
    sums += some;
    for (size_t i = 0; k + i < logits.size(); ++i) shares[k + i] = some[i];
  }
  double sum = 0;
  for (size_t i = 0; i < kStep; ++i) sum += sums[i];
  for (k = 0; k + kStep <= logits.size(); k += kStep) {
    *reinterpret_cast<Vector*>(shares + k) /= sum;
  }
  for (; k < logits.size(); ++k) shares[k] /= sum;
  return sum;
}

FCP_AVX512 double softmax_avx512(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles8>(z, temperature, shares);
}
FCP_AVX2 double softmax_avx2(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles4>(z, temperature, shares);
}
double softmax_plain(std::span<const float> z, double temperature, double* shares) {
  return softmax<Doubles2>(z, temperature, shares);
}

FCP_AVX2 float largest_avx2(std::span<const float> z) {
  return largest_logit<Doubles8>(z.data(), z.size());
}
float largest_plain(std::span<const float> z) {
  return largest_logit<Doubles4>(z.data(), z.size());
}

}  // namespace

bool softmax_row(std::span<const float> logits, double temperature, double* shares) {
  static const auto run = simd_width() == 512   ? softmax_avx512
                          : simd_width() == 256 ? softmax_avx2
                                                : softmax_plain;
  return !std::isnan(run(logits, temperature, shares));
}

int64_t first_largest(std::span<const float> logits) {
  static const auto run = simd_width() >= 256 ? largest_avx2 : largest_plain;
  const float largest = run(logits);
  size_t place = 0;
  while (place < logits.size() && logits[place] != largest) ++place;
  return place < logits.size() ? static_cast<int64_t>(place) : 0;
}

}  // namespace fcp
