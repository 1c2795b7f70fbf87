#include "fcp/pipeline/score_collector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "fcp/base/any_nan.h"
#include "fcp/base/error.h"
#include "fcp/base/parallel.h"
#include "fcp/base/sha256.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/conformal/sort_scores.h"
#include "fcp/distributed/packing.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/context.h"
#include "fcp/scores/outputs.h"
#include "fcp/search/surrogate_search.h"

namespace fcp {
namespace {

// The radii at which regions are compared: at the level that choices are made for and at others.
std::vector<double> radii_for_rounding(const CalibrationArtifact& artifact) {
  std::vector<double> radii, scores;
  for (const double score : artifact.rows.scores) {
    if (std::isfinite(score)) scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end());
  for (const double share : {0.5, 0.9, 0.99}) {
    if (scores.empty()) break;
    radii.push_back(scores[static_cast<size_t>(share * static_cast<double>(scores.size() - 1))]);
  }
  return radii;
}

// The numbers of `count` rows from `first` on.
std::string_view bytes_of(const Array& rows, size_t first, size_t count) {
  const size_t width = rows.empty() ? 0 : rows.row_size();
  return {reinterpret_cast<const char*>(rows.values.data() + first * width),
          count * width * sizeof(float)};
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

// The paper's check of its search: rows whose surrogate feature predicts y with an error of less
// than 1 % of ‖y‖.
size_t count_reached(const ScoredNetwork& predictor, const ScoreOptions& score,
                     const torch::Tensor& features, const torch::Tensor& truth) {
  const SurrogateSearch search(
      predictor.shared_head(), output_index(*predictor.shared_head(), score.output),
      {.rate = score.step_rate, .adam = score.adam, .weights = score.loss_weights});
  const torch::Tensor found = search.walk(features, truth, score.steps);
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
  batch.reached = unpacker.number();
  batch.trained = unpacker.numbers<uint64_t>();
  return batch;
}

std::string hash_rows(const Rows& batch) {
  const size_t rows = batch.x.rows();
  const size_t block = usual_batch(batch.x.empty() ? 1 : batch.x.row_size());
  std::vector<std::string> hashes(std::max<size_t>(1, (rows + block - 1) / block));
  parallel_rows(hashes.size(), 1, static_cast<size_t>(at::get_num_threads()),
                [&](size_t begin, size_t end) {
                  for (size_t i = begin; i < end; ++i) {
                    const size_t count = std::min(block, rows - i * block);
                    Sha256 hash;
                    hash.add(bytes_of(batch.x, i * block, count));
                    hash.add(bytes_of(batch.y, i * block, count));
                    hashes[i] = hash.hex();
                  }
                });
  std::string all;
  for (const std::string& hash : hashes) all += hash;
  return all;
}

void measure_first_rows(const torch::Tensor& x, CalibrationArtifact& artifact) {
  artifact.rounding = measure_rounding(artifact.network, artifact.score, artifact.cut, x,
                                       radii_for_rounding(artifact));
}

void finish_artifact(std::span<const Rows> unhashed, CalibrationArtifact& artifact) {
  const auto threads = static_cast<size_t>(at::get_num_threads());
  parallel_rows(2, 1, threads, [&](size_t first, size_t last) {
    const size_t each = last - first == 2 ? threads : (threads + 1) / 2;
    if (first == 0 && artifact.calibration.name == "split") sort_sides(artifact.rows, each);
    if (last == 2) sort_scores(artifact.baseline, each);
  });
  if (unhashed.empty()) return;
  Sha256 hash;
  for (const Rows& batch : unhashed) hash.add(hash_rows(batch));
  artifact.provenance[kDataHash] = hash.hex();
  artifact.provenance[kNetworkHash] = sha256_hex(serialize_onnx(artifact.network));
  std::vector<torch::Tensor> first;
  for (size_t left = rounding_rows(artifact.network); const Rows& batch : unhashed) {
    const auto count = static_cast<int64_t>(std::min(left, batch.x.rows()));
    if (count > 0) first.push_back(view(batch.x).narrow(0, 0, count));
    left -= static_cast<size_t>(count);
  }
  if (!first.empty()) measure_first_rows(torch::cat(first), artifact);
}

BatchScorer::BatchScorer(const ScoredNetwork& predictor, const SelectedOptions& options,
                         const RowFacts& facts, const RowSource& source)
    : predictor_(predictor),
      options_(options),
      facts_(facts),
      source_(source),
      training_(options.network.metadata) {
  const std::string name = baseline_of(options.score.name);
  if (name.empty()) return;
  ScoreOptions plain = options.score;
  plain.name = name;
  plain.asymmetric = false;
  plain.rectifier.clear();
  baseline_ = make_score(plain, predictor.shared_head());
}

ScoredBatch BatchScorer::score(const Rows& batch, bool check_search) const {
  ScoredBatch out = score_at(batch, view(batch.x), check_search);
  out.trained = find_trained(batch);
  return out;
}

std::vector<uint64_t> BatchScorer::find_trained(const Rows& batch) const {
  return training_.codes(batch.x, batch.y, static_cast<size_t>(at::get_num_threads()));
}

ScoredBatch BatchScorer::score_at(const Rows& batch, const torch::Tensor& x,
                                  bool check_search) const {
  ScoredBatch out{.seen = batch.x.rows()};
  // What is wrong with a row that is alone in its batch and has a name, as an image does, is said
  // with that name.
  const std::string place = out.seen == 1 && !source_.row_name(batch.first_row).empty()
                                ? source_.row_place(batch.first_row)
                                : "";
  try {
    score_rows_of(batch, x, check_search, out);
  } catch (const OptionError&) {
    throw;
  } catch (const Error& error) {
    if (place.empty() || std::string_view(error.what()).starts_with(place)) throw;
    fail(place, ": ", error.what());
  }
  return out;
}

void BatchScorer::score_rows_of(const Rows& batch, const torch::Tensor& x, bool check_search,
                                ScoredBatch& out) const {
  const torch::Tensor y = view(batch.y);
  const torch::Tensor features = predictor_.features(x);
  const int64_t sides = predictor_.score().sides();
  std::vector<double> scores = predictor_.score().score(features, y);
  check_numbers(scores, sides, batch.first_row);
  out.scores = kept_scores(std::move(scores), sides, batch);
  if (baseline_) {
    std::vector<double> plain = baseline_->score(features, y);
    check_numbers(plain, 1, batch.first_row);
    out.baseline = kept_scores(std::move(plain), 1, batch);
  }
  if (options_.calibration.name != "split") add_facts(batch, features, out);
  if (check_search && options_.score.name == "surrogate") {
    out.reached = count_reached(predictor_, options_.score, features, y);
  }
}

void BatchScorer::check_numbers(const std::vector<double>& scores, int64_t score_sides,
                                size_t first_row) const {
  if (!any_nan(scores.data(), scores.size())) return;
  const auto sides = static_cast<size_t>(score_sides);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isnan(scores[i])) continue;
    fail(source_.row_place(first_row + i / sides),
         " has a score that is not a number: the network's answer is NaN there");
  }
}

bool BatchScorer::calibrates_by_label() const {
  return options_.calibration.name == "grouped" && options_.calibration.group == kByLabel;
}

std::vector<int64_t> BatchScorer::kept_rows(const Rows& batch) const {
  // A label that is none of the classes belongs to no group of its class.
  const bool by_label = calibrates_by_label();
  std::vector<int64_t> kept;
  for (size_t i = 0; i < batch.x.rows(); ++i) {
    if (by_label && std::isinf(batch.y.values[i])) continue;
    if (options_.left_out.empty() || !options_.left_out[batch.first_row + i]) {
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
  if (options_.left_out.empty() && !calibrates_by_label()) return all;
  std::vector<double> scores;
  for (const int64_t row : kept_rows(batch)) {
    const auto first = all.begin() + row * sides;
    scores.insert(scores.end(), first, first + sides);
  }
  return scores;
}

void BatchScorer::add_facts(const Rows& batch, const torch::Tensor& features,
                            ScoredBatch& out) const {
  const std::vector<int64_t> kept = kept_rows(batch);
  const CalibrationOptions& calibration = options_.calibration;
  if (calibration.name == "localized") {
    const torch::Tensor some = features.flatten(1)
                                   .to(torch::kCPU, torch::kFloat)
                                   .index_select(0, torch::tensor(kept, torch::kLong))
                                   .contiguous();
    out.features.assign(some.data_ptr<float>(), some.data_ptr<float>() + some.numel());
  }
  if (calibration.name == "grouped") {
    const std::vector<int64_t> groups = groups_for(batch, features);
    for (const int64_t row : kept) out.groups.push_back(groups[static_cast<size_t>(row)]);
  }
  if (calibration.name == "weighted") {
    const DensityRatio& ratio = options_.ratio;
    if (!ratio.defined() && facts_.weights.empty()) fail("weights: there are none");
    const std::vector<double> weights =
        ratio.defined() ? ratio.weights(ratio_input(view(batch.x), features))
                        : side_information(facts_, 0, batch.first_row, batch.x.rows()).weights;
    for (const int64_t row : kept) out.weights.push_back(weights[static_cast<size_t>(row)]);
  }
}

std::vector<int64_t> BatchScorer::groups_for(const Rows& batch,
                                             const torch::Tensor& features) const {
  const std::string& group = options_.calibration.group;
  if (group == kByPrediction) {
    return predicted_labels(predictor_, options_.score.output, features);
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

ScoreCollector::ScoreCollector(const CalibrateSettings& settings, const SelectedOptions& options,
                               const ScoredNetwork& predictor, size_t rows,
                               const Communicator& ranks)
    : settings_(settings),
      options_(options),
      predictor_(predictor),
      of_levels_(predictor.score().sides(),
                 settings.levels.empty() ? 0 : rows / static_cast<size_t>(ranks.size())),
      training_(options.network.metadata) {
  rows_.sides = predictor.score().sides();
  if (!settings.levels.empty() || ranks.rank() != 0) return;
  rows_.scores.reserve(rows * static_cast<size_t>(rows_.sides));
  if (!baseline_of(options.score.name).empty()) baseline_.reserve(rows);
}

void ScoreCollector::keep(const ScoredBatch& batch) {
  of_levels_.take(batch.scores, batch.baseline);
}

void ScoreCollector::take(ScoredBatch batch) {
  if (settings_.levels.empty()) {
    extend(rows_.scores, std::move(batch.scores));
    extend(baseline_, std::move(batch.baseline));
  }
  extend(rows_.groups, std::move(batch.groups));
  extend(rows_.weights, std::move(batch.weights));
  extend(features_, std::move(batch.features));
  hashes_ += batch.sha256;
  seen_ += batch.seen;
  reached_ += batch.reached;
  training_.add(batch.trained);
}

void ScoreCollector::finish(Communicator& ranks, CalibrateResult& result) {
  CalibrationArtifact& artifact = result.artifact;
  const bool some_levels = !settings_.levels.empty();
  if (some_levels) of_levels_.finish(ranks, artifact);
  if (ranks.rank() != 0) return;
  const size_t count = some_levels ? artifact.rows.count() : rows_.count();
  if (count < 2) fail(settings_.data_name, ": calibration needs at least two rows, found ", count);
  check_facts(settings_.facts, seen_);
  if (some_levels) return;
  if (settings_.keep_row_scores) result.row_scores = {rows_.sides, rows_.scores, baseline_};
  const CalibrationOptions& calibration = options_.calibration;
  if (calibration.name == "localized") {
    const auto n = static_cast<int64_t>(count), numbers = static_cast<int64_t>(features_.size());
    rows_.features = torch::from_blob(features_.data(), {n, numbers / n}, torch::kFloat).clone();
  }
  if (calibration.name == "grouped") name_groups();
  artifact.rows = std::move(rows_);
  artifact.baseline = std::move(baseline_);
  if (!settings_.keep_predictor) finish_artifact({}, artifact);
}

std::string ScoreCollector::sha256() const {
  Sha256 hash;
  hash.add(hashes_);
  return hash.hex();
}

// Groups that are labels have numbers for names.
void ScoreCollector::name_groups() {
  rows_.group_names = settings_.facts.groups.names;
  const std::string& group = options_.calibration.group;
  if (group != kByPrediction && group != kByLabel) return;
  for (int64_t label = 0; label < predictor_.score().classes(); ++label) {
    rows_.group_names.push_back(std::to_string(label));
  }
}

}  // namespace fcp
