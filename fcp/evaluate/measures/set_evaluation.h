// Everything there is to say about label sets on rows whose label is known.
//
// Rows come in batches of any size; memory does not grow with their number, only with that of the
// pairs of classes that are confused and, where probabilities are given, as
// probability_evaluation.h says. Tested by tests/evaluate/measures/set_evaluation_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fcp/evaluate/measures/coverage.h"
#include "fcp/evaluate/measures/probability_evaluation.h"

namespace fcp {

// The label of a row whose truth is none of the classes, which no set holds: a miss.
inline constexpr int64_t kUnknownLabel = -1;

// A batch of rows. A label that is neither a class nor unknown is an error that names the row.
struct LabelSetBatch {
  std::span<const uint8_t> members;      // [rows × classes], row by row, nonzero where in the set
  std::span<const int64_t> truth;        // [rows], 0 … classes − 1, or kUnknownLabel
  std::span<const int64_t> groups = {};  // [rows], for all batches or for none
  std::span<const int64_t> prediction = {};       // [rows], the label the network answers; likewise
  std::span<const float> log_probabilities = {};  // [rows × classes], of the network; likewise
};

// Rows of one class that the network answers by another, and how many of their sets hold the truth
// all the same.
struct Confusion {
  std::string truth;
  std::string prediction;
  size_t rows = 0;
  size_t covered = 0;
};

// How the network's answers do for one class: right / predicted is the precision, right / rows the
// recall.
struct ClassAnswers {
  std::string name;
  size_t rows = 0;                 // of the class
  size_t predicted = 0;            // rows that the network answers by it
  size_t right = 0;                // both
  std::optional<double> auc = {};  // against all other classes, where probabilities are given
};

struct SetEvaluationOptions {
  double confidence = 0.95;  // of the confidence intervals of coverage
  uint32_t strata = 4;       // of coverage by set size
  std::vector<std::string> class_names = {};
  std::vector<std::string> group_names = {};
  size_t most_confusions = 20;
};

struct SetEvaluation {
  size_t rows = 0;
  size_t classes = 0;
  Coverage coverage;
  double mean_size = 0;
  std::vector<size_t> size_histogram;  // [classes + 1], rows whose set has 0, 1, … labels
  double empty_share = 0;
  double full_share = 0;    // sets of all labels, as an infinite radius gives
  size_t unknown_rows = 0;  // whose label is none of the classes: misses, and in no class below

  std::vector<GroupCoverage> class_coverage;  // by true label, the absent ones left out
  GroupCoverage worst_class;

  std::vector<GroupCoverage> groups;  // where groups are given
  std::optional<GroupCoverage> worst_group;

  std::vector<Stratum> size_strata;

  // Where predictions are given: the most frequent ones, and how many rows there are in all.
  std::vector<Confusion> confusions;
  size_t confused_rows = 0;
  std::vector<ClassAnswers> answers{};  // where predictions are given: of classes that occur
  std::optional<double> log_loss{};     // where probabilities are given (probability_evaluation.h)
  std::optional<double> auc{};          // the mean over the classes that have one
};

class SetEvaluator {
 public:
  explicit SetEvaluator(size_t classes, SetEvaluationOptions options = {});

  void add(const LabelSetBatch& batch);

  // Throws fcp::Error where no row was added.
  SetEvaluation finish() const;

 private:
  std::vector<Confusion> confusions() const;
  void finish_answers(SetEvaluation& result) const;

  size_t classes_;
  SetEvaluationOptions options_;
  size_t rows_ = 0;
  size_t covered_ = 0;
  size_t unknown_ = 0;
  bool grouped_ = false;
  std::vector<size_t> size_rows_;     // [classes + 1]
  std::vector<size_t> size_covered_;  // [classes + 1]
  GroupCounts class_counts_;
  GroupCounts groups_;
  std::map<std::pair<int64_t, int64_t>, GroupCounts::Count> confused_;  // truth, prediction
  std::map<int64_t, ClassAnswers> answers_;
  ClassSkill skill_;
};

// All rows at once.
SetEvaluation evaluate_sets(const LabelSetBatch& rows, size_t classes,
                            SetEvaluationOptions options = {});

// How the bands, or the sets of labels, of whole images do: image by image, pixel by pixel, value
// by value.
//
// An image has P pixels of C channels; its numbers are [C, P], channel by channel. A pixel is in
// where all its channels are within their bands, or its label within its set. What is guaranteed is
// a rate of images, those of which at least the share q of the pixels are in; beside it stand the
// rate of images that are in altogether, and the mean shares of pixels and of values, which say how
// far an image that is not in is from it.
//
// Lengths are means over channels and pixels; so are set sizes, over pixels. At boundaries and
// inside of objects they show whether the bands know where the network is unsure; so does the
// uncertainty, which is the length of the bands as probabilities. A band of one length on the scale
// of log(−log p) is short as a probability where the network is sure and long where it is not.
//
// Memory does not grow with the number of images. Tested by
// tests/evaluate/measures/set_evaluation_test.cc.

// Nonzero where one of the pixels up to `reach` steps above, below, left or right has another
// label. labels is [height, width].
std::vector<uint8_t> boundary_pixels(std::span<const uint8_t> labels, size_t height, size_t width,
                                     size_t reach = 2);

// Interval ends may be infinite.
struct ImageBands {
  std::span<const double> lower;       // [C, P]
  std::span<const double> upper;       // [C, P]
  std::span<const double> truth;       // [C, P]
  std::span<const double> weights;     // [C, P], summing to one (informative_weights)
  std::span<const uint8_t> boundary;   // [P]
  std::span<const float> uncertainty;  // [P], in [0, 1]
};

struct ImageSets {
  std::span<const bool> members;      // [C, P]
  std::span<const int64_t> labels;    // [P]; −1: none, and the pixel counts for its size alone
  std::span<const uint8_t> boundary;  // [P]
};

// A sum and the number of its terms.
struct MeanSums {
  double sum = 0;
  size_t count = 0;

  void add(double value) { sum += value, ++count; }
  void add(const MeanSums& other) { sum += other.sum, count += other.count; }
  double mean() const { return sum / static_cast<double>(count); }  // NaN of nothing
};

// One image.
struct ImageFigures {
  size_t pixels = 0;  // of sets: those with a label
  size_t pixels_in = 0;
  double values_in = 0;        // share; of bands alone
  double weighted_length = 0;  // of bands alone
  MeanSums boundary;           // lengths of bands, or sizes of sets
  MeanSums inside;
  MeanSums boundary_uncertainty;  // of bands alone
  MeanSums inside_uncertainty;

  double pixel_share() const;  // 1 where there is no pixel
  double length() const;       // mean over all pixels
};

// An Error where the sizes do not fit.
ImageFigures band_figures(const ImageBands& image, size_t channels);
ImageFigures set_figures(const ImageSets& image, size_t channels);

struct PixelEvaluation {
  double share = 1;                 // q, of the pixels that must be in
  bool sets = false;                // of labels; otherwise bands
  Coverage coverage;                // images with at least the share q of their pixels in
  Coverage whole;                   // images with all of them in
  double pixel_coverage = 0;        // mean over images of the share of pixels that are in
  double value_coverage = 0;        // the same of single values; of bands alone
  double length = 0;                // mean over images; of sets their size
  double weighted_length = 0;       // of bands alone
  double boundary_length = 0;       // over all pixels at boundaries; NaN where there is none
  double inside_length = 0;         // over all others
  double boundary_uncertainty = 0;  // of bands alone
  double inside_uncertainty = 0;
};

class PixelEvaluator {
 public:
  explicit PixelEvaluator(double share, bool sets = false) : share_(share), sets_(sets) {}

  void add(const ImageFigures& image);
  bool covers(const ImageFigures& image) const;  // at least the share q of its pixels
  PixelEvaluation finish() const;                // at least one image is required

 private:
  double share_;
  bool sets_;
  size_t images_ = 0;
  size_t covered_ = 0;
  size_t whole_ = 0;
  MeanSums pixels_, values_, length_, weighted_, boundary_, inside_, boundary_uncertainty_,
      inside_uncertainty_;
};

}  // namespace fcp
