#include "fcp/calibrate/batch_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/special_numbers.h"
#include "fcp/base/text_table.h"
#include "fcp/distributed/packing.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/provenance.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

constexpr size_t kThreadCopied = size_t{1} << 21;  // bytes; fewer are not worth a thread
constexpr size_t kCopyingThreads = 4;

// A copy of the numbers in memory that the device reads by itself, without the processor.
torch::Tensor pinned(const torch::Tensor& host) {
  const torch::Tensor copy = torch::empty(host.sizes(), host.options().pinned_memory(true));
  const auto* from = static_cast<const char*>(host.data_ptr());
  auto* to = static_cast<char*>(copy.data_ptr());
  const size_t threads = std::min(kCopyingThreads, static_cast<size_t>(at::get_num_threads()));
  parallel_rows(host.nbytes(), kThreadCopied, threads, [=](size_t first, size_t last) {
    std::memcpy(to + first, from + first, last - first);
  });
  return copy;
}

// Copies on a stream of its own.
class Uploader {
 public:
  explicit Uploader(torch::Device device) : device_(device) {}

  torch::Tensor copy(const torch::Tensor& host) {
    if (!device_.is_cuda()) return host;
    if (!stream_) {  // waits until the device has started
      const c10::impl::VirtualGuardImpl guard(device_.type());
      stream_ = guard.getStreamFromGlobalPool(guard.getDevice());
    }
    const c10::StreamGuard own(*stream_);
    return pinned(host).to(device_);
  }

 private:
  torch::Device device_;
  std::optional<c10::Stream> stream_;
};

}  // namespace

BatchStream::BatchStream(RowSource& source, const TrainingRows& training,
                         const BatchStreamOptions& options)
    : source_(source), training_(training), options_(options) {
  if (!options.ahead) return;
  hashed_.emplace(kHashedAhead, [this, number = size_t{0}](ReadyBatch& out) mutable {
    out.x = torch::Tensor();
    return read(number++, out);
  });
  ready_.emplace(1, [this, uploader = Uploader(options.device)](ReadyBatch& out) mutable {
    const torch::NoGradGuard no_grad;
    if (!hashed_->next(out)) return false;
    out.x = uploader.copy(view(out.rows.x));
    return true;
  });
}

bool BatchStream::read(size_t number, ReadyBatch& batch) {
  if (number > place_) source_.skip((number - place_) * options_.batch);
  place_ = number + 1;
  if (!source_.next(options_.batch, batch.rows)) return false;
  if (options_.hashes) batch.sha256 = hash_rows(batch.rows);
  const auto threads = static_cast<size_t>(at::get_num_threads());
  batch.trained = training_.codes(batch.rows.x, batch.rows.y, threads);
  return true;
}

bool BatchStream::next(size_t number, ReadyBatch& batch) {
  if (!ready_) {
    if (!read(number, batch)) return false;
    batch.x = view(batch.rows.x);
    return true;
  }
  if (!ready_->next(batch)) return false;
  if (batch.x.is_cuda()) {  // its memory is not given to the next copy before this stream is done
    const c10::impl::VirtualGuardImpl guard(batch.x.device().type());
    batch.x.record_stream(guard.getStream(batch.x.device()));
  }
  return true;
}

namespace {

// The paper's check of its search: rows whose surrogate feature predicts y with an error of less
// than 1 % of ‖y‖.
size_t count_reached(const ScoredNetwork& predictor, const ScoreOptions& score,
                     const torch::Tensor& features, const torch::Tensor& truth) {
  const SurrogateSearch search(predictor.shared_head(),
                               output_index(*predictor.shared_head(), score.output),
                               {.rate = score.value(field::step_rate),
                                .adam = score.value(field::adam),
                                .weights = score.value(field::loss_weights)});
  const torch::Tensor found = search.walk(features, truth, score.value(field::steps));
  const torch::Tensor size = truth.to(torch::kDouble).flatten(1).square().sum(1);
  const torch::Tensor error = search.error(found, truth).to(torch::kCPU, torch::kDouble);
  return static_cast<size_t>((error < 1e-4 * size).sum().item<int64_t>());
}

}  // namespace

std::string ScoredBatch::pack() const {
  Packer packer;
  packer.add(sha256);
  packer.add(seen);
  packer.add(scores);
  packer.add(baseline);
  packer.add(groups);
  packer.add(weights);
  packer.add(features);
  packer.add(chances);
  packer.add(labels);
  packer.add(reached);
  packer.add(trained);
  return packer.take();
}

ScoredBatch ScoredBatch::unpack(std::string_view bytes) {
  Unpacker unpacker(bytes);
  ScoredBatch batch;
  batch.sha256 = unpacker.text();
  batch.seen = unpacker.number();
  batch.scores = unpacker.numbers<double>();
  batch.baseline = unpacker.numbers<double>();
  batch.groups = unpacker.numbers<int64_t>();
  batch.weights = unpacker.numbers<double>();
  batch.features = unpacker.numbers<float>();
  batch.chances = unpacker.numbers<double>();
  batch.labels = unpacker.numbers<int64_t>();
  batch.reached = unpacker.number();
  batch.trained = unpacker.numbers<uint64_t>();
  return batch;
}

BatchScorer::BatchScorer(const ScoredNetwork& predictor, const CalibrationPlan& plan,
                         const RowFacts& facts, bool check_search)
    : predictor_(predictor),
      plan_(plan),
      facts_(facts),
      support_(parse_support(plan.method.score.support, plan.method.score.integer)),
      check_search_(check_search) {
  const std::optional<ScoreOptions> plain = baseline_of(plan.method.score);
  if (plain) baseline_ = make_score(*plain, predictor.shared_head());
  if (plan.method.score.probabilities == kVennAbers) shares_.emplace(predictor, plan.method.score);
}

ScoredBatch BatchScorer::score(const Rows& batch, const torch::Tensor& x) const {
  ScoredBatch out{.seen = batch.x.rows()};
  // What is wrong with a row that is alone in its batch and has a name, as an image does, is said
  // with that name.
  const std::string place = out.seen == 1 && !batch.name(0).empty() ? batch.place(0) : "";
  try {
    score_rows_of(batch, x, out);
  } catch (const OptionError&) {
    throw;
  } catch (const Error& error) {
    if (place.empty() || std::string_view(error.what()).starts_with(place)) throw;
    fail(place, ": ", error.what());
  }
  return out;
}

void BatchScorer::score_rows_of(const Rows& batch, const torch::Tensor& x, ScoredBatch& out) const {
  const torch::Tensor y = view(batch.y);
  const torch::Tensor features = predictor_.features(x);
  const int64_t sides = predictor_.score().sides();
  std::vector<double> scores = predictor_.score().score(features, y);
  check_numbers(scores, sides, batch);
  check_support(batch);
  out.scores = kept_scores(std::move(scores), sides, batch);
  if (baseline_) {
    std::vector<double> plain = baseline_->score(features, y);
    check_numbers(plain, 1, batch);
    out.baseline = kept_scores(std::move(plain), 1, batch);
  }
  if (shares_) add_chances(batch, features, out);
  if (!plan_.method.calibration.traits().one_radius) add_facts(batch, features, out);
  if (check_search_ && plan_.method.score.find(field::loss_weights)) {
    out.reached = count_reached(predictor_, plan_.method.score, features, y);
  }
}

void BatchScorer::check_numbers(const std::vector<double>& scores, int64_t score_sides,
                                const Rows& batch) const {
  if (!any_nan(scores.data(), scores.size())) return;
  const auto sides = static_cast<size_t>(score_sides);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) continue;
    fail(batch.place(i / sides),
         " has a score that is not a number: the network's answer is NaN there");
  }
}

void BatchScorer::check_support(const Rows& batch) const {
  if (!support_.known()) return;
  const ScoreOptions& score = plan_.method.score;
  const size_t width = batch.y.values.size() / std::max<size_t>(1, batch.x.rows());
  for (size_t i = 0; i < batch.y.values.size(); ++i) {
    const double y = batch.y.exact.empty() ? batch.y.values[i] : batch.y.exact[i];
    if (support_.holds(y)) continue;
    const bool fraction = score.integer && y != std::floor(y);
    fail_option(fraction ? "integer" : "support", batch.place(i / width), " has the target ",
                format_number(y), ", expected ",
                fraction ? "a whole number" : concat("one within ", score.support));
  }
}

bool BatchScorer::calibrates_by_label() const {
  return plan_.method.calibration.value(field::group) == kByLabel;
}

std::vector<int64_t> BatchScorer::kept_rows(const Rows& batch) const {
  // A label that is none of the classes belongs to no group of its class.
  const bool by_label = calibrates_by_label();
  std::vector<int64_t> kept;
  for (size_t i = 0; i < batch.x.rows(); ++i) {
    if (by_label && std::isinf(batch.y.values[i])) continue;
    if (plan_.left_out.empty() || !plan_.left_out[batch.first_row + i]) {
      kept.push_back(static_cast<int64_t>(i));
    }
  }
  return kept;
}

// Those of the rows that are calibrated on. + 0.0 makes −0.0 the 0.0 that it equals: which of the
// two is the k-th is then no question.
std::vector<double> BatchScorer::kept_scores(std::vector<double> all, int64_t sides,
                                             const Rows& batch) const {
  for (double& score : all) score += 0.0;
  if (plan_.left_out.empty() && !calibrates_by_label()) return all;
  std::vector<double> scores;
  for (const int64_t row : kept_rows(batch)) {
    const auto first = all.begin() + row * sides;
    scores.insert(scores.end(), first, first + sides);
  }
  return scores;
}

void BatchScorer::add_chances(const Rows& batch, const torch::Tensor& features,
                              ScoredBatch& out) const {
  const torch::Tensor all = shares_->scores(features);
  const auto width = static_cast<size_t>(all.size(1));
  for (const int64_t row : kept_rows(batch)) {
    const auto at = static_cast<size_t>(row);
    if (std::isinf(batch.y.values[at])) continue;
    const std::span own(all.data_ptr<double>() + at * width, width);
    if (any_nan(own.data(), own.size())) {
      fail(batch.place(at), " has infinite logits, which have no probabilities");
    }
    out.chances.insert(out.chances.end(), own.begin(), own.end());
    out.labels.push_back(static_cast<int64_t>(batch.y.values[at]));
  }
}

void BatchScorer::add_facts(const Rows& batch, const torch::Tensor& features,
                            ScoredBatch& out) const {
  const std::vector<int64_t> kept = kept_rows(batch);
  const CalibrationTraits calibration = plan_.method.calibration.traits();
  if (calibration.by_feature) {
    const torch::Tensor some = features.flatten(1)
                                   .to(torch::kCPU, torch::kFloat)
                                   .index_select(0, torch::tensor(kept, torch::kLong))
                                   .contiguous();
    out.features.assign(some.data_ptr<float>(), some.data_ptr<float>() + some.numel());
  }
  if (calibration.by_group) {
    const std::vector<int64_t> groups = groups_for(batch, features);
    for (const int64_t row : kept) out.groups.push_back(groups[static_cast<size_t>(row)]);
  }
  if (calibration.by_weight) {
    const DensityRatio& ratio = plan_.ratio;
    if (!ratio.defined() && facts_.weights.empty()) fail("weights: there are none");
    const std::vector<double> weights =
        ratio.defined() ? ratio.weights(ratio_input(view(batch.x), features))
                        : side_information(facts_, 0, batch.first_row, batch.x.rows()).weights;
    for (const int64_t row : kept) out.weights.push_back(weights[static_cast<size_t>(row)]);
  }
}

std::vector<int64_t> BatchScorer::groups_for(const Rows& batch,
                                             const torch::Tensor& features) const {
  const std::string group = plan_.method.calibration.value(field::group);
  if (group == kByPrediction) {
    return predictor_.predicted_labels(plan_.method.score.output, features);
  }
  if (group == kByLabel) {
    const torch::Tensor plain = view(batch.y).flatten();
    const torch::Tensor labels = plain.masked_fill(plain.isinf(), 0).to(torch::kLong).contiguous();
    return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + labels.numel()};
  }
  if (facts_.groups.ids.empty()) fail("group ", group, ": names no rows");
  const auto ids = groups_of(facts_.groups, batch.first_row, batch.x.rows());
  return {ids.begin(), ids.end()};
}

}  // namespace fcp
