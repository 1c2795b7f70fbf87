#include "fcp/evaluate/measures/set_evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/conformal/pixel_share.h"
#include "fcp/interval.h"

namespace fcp {
namespace {

// coverage_by_size from counts: a set size belongs to stratum ⌊strata · #{rows of smaller size} /
// rows⌋.
std::vector<Stratum> strata_of(const std::vector<size_t>& size_rows,
                               const std::vector<size_t>& size_covered, size_t rows,
                               uint32_t strata, double confidence) {
  std::vector<Stratum> result;
  size_t below = 0;
  uint64_t current = 0;
  for (size_t size = 0; size < size_rows.size(); ++size) {
    if (size_rows[size] == 0) continue;
    const uint64_t stratum = strata * static_cast<uint64_t>(below) / rows;
    if (result.empty() || stratum != current) {
      result.emplace_back().low = static_cast<double>(size);
      current = stratum;
    }
    result.back().high = static_cast<double>(size);
    result.back().coverage.covered += size_covered[size];
    result.back().coverage.rows += size_rows[size];
    below += size_rows[size];
  }
  for (Stratum& stratum : result) {
    stratum.coverage = coverage_of(stratum.coverage.covered, stratum.coverage.rows, confidence);
  }
  return result;
}

}  // namespace

SetEvaluator::SetEvaluator(size_t classes, SetEvaluationOptions options)
    : classes_(classes),
      options_(std::move(options)),
      size_rows_(classes + 1),
      size_covered_(classes + 1),
      skill_(classes) {
  if (classes == 0) fail("label sets over 0 classes cannot be evaluated");
  if (options_.strata == 0) fail("rows cannot be divided into 0 strata");
}

void SetEvaluator::add(const LabelSetBatch& batch) {
  const size_t rows = batch.truth.size();
  if (batch.members.size() != rows * classes_) {
    fail("found ", batch.members.size(), " marks of membership; expected ", rows, " rows of ",
         classes_, " classes");
  }
  if (rows_ == 0) grouped_ = !batch.groups.empty();
  if (batch.groups.size() != (grouped_ ? rows : 0)) {
    fail("found ", batch.groups.size(), " group ids; expected ", grouped_ ? rows : 0);
  }
  if (!batch.prediction.empty() && batch.prediction.size() != rows) {
    fail("found ", batch.prediction.size(), " predictions; expected ", rows);
  }
  if (!batch.log_probabilities.empty() && batch.log_probabilities.size() != rows * classes_) {
    fail("found ", batch.log_probabilities.size(), " probabilities; expected ", rows, " rows of ",
         classes_, " classes");
  }
  for (size_t row = 0; row < rows; ++row) {
    const int64_t label = batch.truth[row];
    const bool unknown = label == kUnknownLabel;
    if (!unknown && (label < 0 || static_cast<uint64_t>(label) >= classes_)) {
      fail("row ", rows_, ": label ", label, "; expected 0 to ", classes_ - 1);
    }
    const auto set = batch.members.subspan(row * classes_, classes_);
    const size_t size = static_cast<size_t>(
        std::count_if(set.begin(), set.end(), [](uint8_t member) { return member != 0; }));
    const bool covered = !unknown && set[static_cast<size_t>(label)] != 0;
    ++rows_;
    unknown_ += unknown;
    covered_ += covered;
    ++size_rows_[size];
    size_covered_[size] += covered;
    if (!unknown) class_counts_.add(label, covered);
    if (grouped_) groups_.add(batch.groups[row], covered);
    if (!unknown && !batch.log_probabilities.empty()) {
      skill_.add(batch.log_probabilities.subspan(row * classes_, classes_),
                 static_cast<size_t>(label));
    }
    if (!batch.prediction.empty()) {
      ++answers_[batch.prediction[row]].predicted;
      if (!unknown) ++answers_[label].rows;
      if (!unknown && batch.prediction[row] == label) ++answers_[label].right;
    }
    if (unknown || batch.prediction.empty() || batch.prediction[row] == label) continue;
    GroupCounts::Count& confused = confused_[{label, batch.prediction[row]}];
    ++confused.rows;
    confused.covered += covered;
  }
}

std::vector<Confusion> SetEvaluator::confusions() const {
  const auto name = [&](int64_t label) {
    const auto at = static_cast<size_t>(label);
    return at < options_.class_names.size() ? options_.class_names[at] : std::to_string(label);
  };
  std::vector<Confusion> all;
  for (const auto& [pair, count] : confused_) {
    all.push_back({name(pair.first), name(pair.second), count.rows, count.covered});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Confusion& a, const Confusion& b) { return a.rows > b.rows; });
  if (all.size() > options_.most_confusions) all.resize(options_.most_confusions);
  return all;
}

void SetEvaluator::finish_answers(SetEvaluation& result) const {
  double sum = 0, count = 0;
  for (const auto& [label, answers] : answers_) {
    const auto at = static_cast<size_t>(label);
    result.answers.push_back(answers);
    ClassAnswers& own = result.answers.back();
    own.name = at < options_.class_names.size() ? options_.class_names[at] : std::to_string(label);
    own.auc = skill_.auc(at);
    sum += own.auc.value_or(0);
    count += own.auc.has_value();
  }
  if (count > 0) result.auc = sum / count;
  result.log_loss = skill_.log_loss();
}

SetEvaluation SetEvaluator::finish() const {
  if (rows_ == 0) fail("no rows to evaluate");
  const double rows = static_cast<double>(rows_);
  const double confidence = options_.confidence;
  SetEvaluation result;
  result.rows = rows_;
  result.classes = classes_;
  result.coverage = coverage_of(covered_, rows_, confidence);
  size_t labels = 0;
  for (size_t size = 0; size <= classes_; ++size) labels += size * size_rows_[size];
  result.mean_size = static_cast<double>(labels) / rows;
  result.size_histogram = size_rows_;
  result.empty_share = static_cast<double>(size_rows_[0]) / rows;
  result.full_share = static_cast<double>(size_rows_[classes_]) / rows;
  result.class_coverage = group_coverage(class_counts_, options_.class_names, confidence);
  if (!result.class_coverage.empty()) result.worst_class = worst_group(result.class_coverage);
  result.unknown_rows = unknown_;
  if (grouped_) {
    result.groups = group_coverage(groups_, options_.group_names, confidence);
    result.worst_group = worst_group(result.groups);
  }
  result.size_strata = strata_of(size_rows_, size_covered_, rows_, options_.strata, confidence);
  result.confusions = confusions();
  finish_answers(result);
  for (const auto& [pair, count] : confused_) result.confused_rows += count.rows;
  return result;
}

SetEvaluation evaluate_sets(const LabelSetBatch& rows, size_t classes,
                            SetEvaluationOptions options) {
  SetEvaluator evaluator(classes, std::move(options));
  evaluator.add(rows);
  return evaluator.finish();
}

std::vector<uint8_t> boundary_pixels(std::span<const uint8_t> labels, size_t height, size_t width,
                                     size_t reach) {
  if (labels.size() != height * width) {
    fail("found ", labels.size(), " labels, expected ", height, " x ", width);
  }
  std::vector<uint8_t> boundary(labels.size(), 0);
  const auto meet = [&](size_t a, size_t b) {
    if (labels[a] != labels[b]) boundary[a] = boundary[b] = 1;
  };
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const size_t here = y * width + x;
      for (size_t step = 1; step <= reach; ++step) {
        if (x + step < width) meet(here, here + step);
        if (y + step < height) meet(here, here + step * width);
      }
    }
  }
  return boundary;
}

double ImageFigures::pixel_share() const {
  return pixels == 0 ? 1 : static_cast<double>(pixels_in) / static_cast<double>(pixels);
}

double ImageFigures::length() const {
  MeanSums all = boundary;
  all.add(inside);
  return all.mean();
}

ImageFigures band_figures(const ImageBands& image, size_t channels) {
  const size_t pixels = image.boundary.size(), values = channels * pixels;
  if (image.lower.size() != values || image.upper.size() != values ||
      image.truth.size() != values || image.weights.size() != values ||
      image.uncertainty.size() != pixels) {
    fail("the bands of an image have ", image.lower.size(), " numbers, its truth ",
         image.truth.size(), ", expected ", channels, " channels of ", pixels, " pixels");
  }
  std::vector<uint8_t> in(pixels, 1);
  std::vector<double> length(pixels, 0);
  size_t values_in = 0;
  double weighted = 0;
  for (size_t k = 0, pixel = 0; k < values; ++k, pixel = pixel + 1 == pixels ? 0 : pixel + 1) {
    const Interval band{image.lower[k], image.upper[k]};
    const bool holds = band.contains(image.truth[k]);
    values_in += holds;
    in[pixel] &= static_cast<uint8_t>(holds);
    length[pixel] += band.length();
    if (image.weights[k] > 0) weighted += image.weights[k] * band.length();  // 0 · ∞ is nothing
  }
  ImageFigures figures;
  figures.pixels = pixels;
  figures.pixels_in = static_cast<size_t>(std::count(in.begin(), in.end(), 1));
  figures.values_in = static_cast<double>(values_in) / static_cast<double>(values);
  figures.weighted_length = weighted;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    const double mean = length[pixel] / static_cast<double>(channels);
    const bool edge = image.boundary[pixel] != 0;
    (edge ? figures.boundary : figures.inside).add(mean);
    (edge ? figures.boundary_uncertainty : figures.inside_uncertainty)
        .add(image.uncertainty[pixel]);
  }
  return figures;
}

ImageFigures set_figures(const ImageSets& image, size_t channels) {
  const size_t pixels = image.boundary.size();
  if (image.members.size() != channels * pixels || image.labels.size() != pixels) {
    fail("the sets of an image have ", image.members.size(), " numbers, its labels ",
         image.labels.size(), ", expected ", channels, " classes of ", pixels, " pixels");
  }
  ImageFigures figures;
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    double size = 0;
    for (size_t channel = 0; channel < channels; ++channel) {
      size += image.members[channel * pixels + pixel] ? 1 : 0;
    }
    (image.boundary[pixel] ? figures.boundary : figures.inside).add(size);
    if (image.labels[pixel] < 0) continue;
    ++figures.pixels;
    figures.pixels_in += image.members[static_cast<size_t>(image.labels[pixel]) * pixels + pixel];
  }
  return figures;
}

bool PixelEvaluator::covers(const ImageFigures& image) const {
  const int64_t least = least_pixels(share_, static_cast<int64_t>(image.pixels));
  return static_cast<int64_t>(image.pixels_in) >= least;
}

void PixelEvaluator::add(const ImageFigures& image) {
  ++images_;
  covered_ += covers(image);
  whole_ += image.pixels_in == image.pixels;
  pixels_.add(image.pixel_share());
  values_.add(image.values_in);
  length_.add(image.length());
  weighted_.add(image.weighted_length);
  boundary_.add(image.boundary);
  inside_.add(image.inside);
  boundary_uncertainty_.add(image.boundary_uncertainty);
  inside_uncertainty_.add(image.inside_uncertainty);
}

PixelEvaluation PixelEvaluator::finish() const {
  PixelEvaluation result;
  result.share = share_;
  result.sets = sets_;
  result.coverage = coverage_of(covered_, images_);
  result.whole = coverage_of(whole_, images_);
  result.pixel_coverage = pixels_.mean();
  result.value_coverage = values_.mean();
  result.length = length_.mean();
  result.weighted_length = weighted_.mean();
  result.boundary_length = boundary_.mean();
  result.inside_length = inside_.mean();
  result.boundary_uncertainty = boundary_uncertainty_.mean();
  result.inside_uncertainty = inside_uncertainty_.mean();
  return result;
}

}  // namespace fcp
