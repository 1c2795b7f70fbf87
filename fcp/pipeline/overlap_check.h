// Whether the rows that are evaluated are the very rows that were calibrated on, by the hash that a
// calibrated predictor carries of them. Then coverage says nothing: it is 1 − α by construction.
//
// The hash is one of batches, so rows in other batches (--batch) are not recognised.
// Tested by tests/pipeline/evaluate_test.cc and tests/cli/test_calibration.py.
#pragma once

#include <optional>
#include <string>

#include "fcp/calibration/artifact.h"
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

}  // namespace fcp
