// Everything there is to say about label sets on rows whose label is known.
//
// Rows come in batches of any size; memory does not grow with their number, only with
// that of the pairs of classes that are confused.
// Tested by tests/evaluate/measures/set_evaluation_test.cc.
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

namespace fcp {

// The label of a row whose truth is none of the classes, which no set holds: a miss.
inline constexpr int64_t kUnknownLabel = -1;

// A batch of rows. A label that is neither a class nor unknown is an error that names the row.
struct LabelSetBatch {
  std::span<const uint8_t> members;      // [rows × classes], row by row, nonzero where in the set
  std::span<const int64_t> truth;        // [rows], 0 … classes − 1, or kUnknownLabel
  std::span<const int64_t> groups = {};  // [rows], for all batches or for none
  std::span<const int64_t> prediction = {};  // [rows], the label the network answers; likewise
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
  std::optional<double> log_loss{};     // where probabilities are given (class_skill.h)
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
};

// All rows at once.
SetEvaluation evaluate_sets(const LabelSetBatch& rows, size_t classes,
                            SetEvaluationOptions options = {});

}  // namespace fcp
