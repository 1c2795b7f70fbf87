// Drift of the inputs themselves: one conformal test martingale per column, and their mean.
//
// The strangeness of a row for a column is its value; the transducer compares it with the values
// before (those of `reference` rows, where there are some, and 20,000 of the rows since). The mean
// of the columns' capitals is a martingale again, so that one threshold serves all of them, and the
// column whose capital is largest is named. No truths are needed. A missing value (NaN) says
// nothing, and its column is passed over.
//
// Rows of more than 64 numbers are watched through 32 sums of their numbers with random signs, by
// the seed.
//
// O(columns) transducers per row. Tested by tests/monitoring/drift_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fcp/monitoring/martingale.h"
#include "fcp/monitoring/transducer.h"

namespace fcp {

class Drift {
 public:
  // `names` of the columns to watch; empty: numbers. `columns` are their places in a row.
  Drift(size_t row_size, std::vector<size_t> columns, std::vector<std::string> names,
        uint64_t seed);

  // A row from before, whose order does not matter; none after the first step.
  void add_reference(std::span<const float> row);
  void step(std::span<const float> row);

  double log_capital() const;
  // The name of the column whose capital is largest; "" where none is watched.
  std::string strangest() const;
  const std::vector<std::string>& names() const { return names_; }

  void exchange(SavedState& state);

 private:
  void look_at(std::span<const float> row);
  void begin();

  size_t row_size_;
  std::vector<size_t> columns_;
  std::vector<std::string> names_;
  std::vector<float> signs_;                    // [projections × row_size]; empty: plain columns
  std::vector<double> values_;                  // of the row looked at
  std::vector<std::vector<double>> reference_;  // until the first step
  std::vector<Transducer> transducers_;
  std::vector<Martingale> martingales_;
  uint64_t seed_;
};

}  // namespace fcp
