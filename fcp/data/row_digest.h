// What tells whether two sets of rows are the same, or share rows: a network remembers the rows it
// was trained on, and calibration must not use them again.
//
// The digest is the SHA-256 of all rows in their order, however they are batched. The sketch keeps
// the 64 smallest of the rows' 64-bit hashes: a random sample of the distinct rows that is the same
// whatever the order, so that the share of it found among other rows estimates which share of the
// rows they hold (bottom-k sketch, Broder 1997); off by ±0.13 at most twice in a hundred.
// Tested by tests/data/row_digest_test.cc.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fcp/base/sha256.h"
#include "fcp/data/array.h"

namespace fcp {

// Keys under which training keeps both in the network's metadata.
constexpr char kTrainingDigestKey[] = "fcp.training.sha256";
constexpr char kTrainingSketchKey[] = "fcp.training.sketch";
constexpr char kTrainingRowsKey[] = "fcp.training.rows";  // their number

class RowDigest {
 public:
  // The next rows: x [n, …], y [n, K].
  void add(const Array& x, const Array& y);

  std::string sha256();        // 64 hexadecimal digits; call it once, after the last rows
  std::string sketch() const;  // hashes as hexadecimal digits with spaces between

 private:
  Sha256 all_;
  std::set<uint64_t> smallest_;
};

// Looks for the rows of a sketch among others.
class SketchSearch {
 public:
  explicit SketchSearch(const std::string& sketch);  // an Error where the text is damaged

  // The hashes of the sketch that are among these rows, which several threads may share.
  std::vector<uint64_t> find(const Array& x, const Array& y, size_t threads = 1) const;

  void add(const Array& x, const Array& y);
  void add(std::span<const uint64_t> found);

  // Which share of the rows that were sketched has been seen, about; 0 for an empty sketch.
  double share() const;

 private:
  std::set<uint64_t> wanted_;
  std::set<uint64_t> found_;
};

}  // namespace fcp
