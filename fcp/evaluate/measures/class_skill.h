// How well the class probabilities of a network do, whatever the sets of labels are.
//
//   log loss       mean of −log p(true label); p is at least 10⁻¹⁵
//   AUC of class c the chance that a row of class c has a larger p(c) than a row of another class,
//                  equal ones counted half: the area under the curve of c against the rest
//
// The AUC needs the probabilities of all rows: four bytes of each row and class, up to 2²⁴ of them;
// of more there is no AUC. Cost: a sort for each class. Reference: Hanley and McNeil, The Meaning
// and Use of the Area under a ROC Curve, Radiology 1982.
// Tested by tests/evaluate/measures/class_skill_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fcp {

class ClassSkill {
 public:
  explicit ClassSkill(size_t classes) : classes_(classes), numbers_(classes) {}

  // The logarithms of the probabilities of one row, [classes], and its label.
  void add(std::span<const float> log_probabilities, size_t label);

  std::optional<double> log_loss() const;
  // None of a class without rows, of one that all rows have, and of too many rows.
  std::optional<double> auc(size_t label) const;

 private:
  size_t classes_;
  std::vector<std::vector<float>> numbers_;  // of each class, of all rows
  std::vector<uint32_t> labels_;
  size_t rows_ = 0;
  double loss_ = 0;
};

}  // namespace fcp
