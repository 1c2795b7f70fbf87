// A growing list of numbers that takes four bytes for each as long as all are float32 numbers, and
// eight from the first on that is not: none is ever rounded.
// Tested by tests/evaluation/interval_evaluation_test.cc.
#pragma once

#include <span>
#include <vector>

namespace fcp {

class CompactNumbers {
 public:
  void add(double number) {
    if (are_floats_ && static_cast<double>(static_cast<float>(number)) != number) widen();
    if (are_floats_) {
      floats_.push_back(static_cast<float>(number));
    } else {
      doubles_.push_back(number);
    }
  }

  // Which of the two lists has them.
  bool are_floats() const { return are_floats_; }
  std::span<const float> floats() const { return floats_; }
  std::span<const double> doubles() const { return doubles_; }

 private:
  void widen() {
    doubles_.assign(floats_.begin(), floats_.end());
    floats_ = {};
    are_floats_ = false;
  }

  bool are_floats_ = true;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

}  // namespace fcp
