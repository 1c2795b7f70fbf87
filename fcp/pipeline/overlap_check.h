// Whether the rows that are evaluated are the very rows that were calibrated on, by the hash that a
// calibrated predictor carries of them. Then coverage says nothing: it is 1 − α by construction.
//
// The hash is one of batches, so rows in other batches (--batch) are not recognised.
//
// And whether calibration rows are rows of the training, or only equal to some because rows repeat.
// Tested by tests/pipeline/evaluate_test.cc, calibrate_test.cc and tests/cli/test_calibration.py.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/data/row_digest.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/packing.h"

namespace fcp {

class OverlapCheck {
 public:
  // Where the source says that it has another number of rows, nothing is hashed.
  OverlapCheck(const CalibrationArtifact& artifact, const RowSource& source);

  // On the rank whose batch it is, and on rank 0 in the order of the batches.
  void measure(const Rows& rows, Packer& packer) const;
  void take(Unpacker& unpacker);

  // After the last batch: what to say, if they are the same.
  std::optional<std::string> warning() const;

 private:
  std::string expected_;  // empty: they cannot be the same
  std::string hashes_;    // of the batches, as calibration joins them
};

// Whether `found`, the share of calibration rows that are among the training rows, or of training
// rows that are among these, is more than independent rows of the same world would give.
//
// Let q(m) be the chance that a row equals one of m others. It rises with m and is concave, so that
// q(N) ≤ max(1, N / (n − 1)) q(n − 1) for N training rows, and `repeated` estimates q(n − 1). For
// unknown N = 0 a training set four times as large is assumed. A difference below 0.3, or 2 / √n of
// few rows, passes for chance as well.
bool more_than_chance(double found, double repeated, size_t rows, size_t trained);

// The same of what a filter of training rows found, whose false hits must not explain it either.
// The rows that were compared tell how often they repeat.
bool more_than_chance(const RowOverlap& overlap);

}  // namespace fcp
