// Tells whether two sets of rows are the same, or share rows: a network remembers the rows it was
// trained on, and calibration must not use them again.
//
//   RowSample training;                             RowFilter filter(text);
//   training.add(row_codes(x));                     RowSample rows;
//   text = training.filter();                       rows.add(row_codes(x));
//                                                   filter.overlap(rows).share();
//
// A filter is one bit for each of 1.25 to 2.5 places per distinct row: the bit at the place that
// the hash of a row's inputs names is set. Targets are not part of it. A row that was never added
// finds a set bit with probability 0.33 to 0.55 (RowFilter::false_hits says which), so a set bit
// does not tell that a row was added, and of several guesses for one value of a known row about
// half remain. The share of hundreds of rows is still known well, since its false hits can be
// subtracted. Of more than 2^16 distinct rows a sample is kept, chosen by their hashes.
// Tested by tests/data/row_digest_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fcp/base/hash.h"
#include "fcp/data/array.h"

namespace fcp {

// Keys under which training keeps the digest and the filter in the network's metadata. Export drops
// every key that begins with "fcp.training." or "fcp.calibration". Earlier versions kept a sketch
// instead of a filter, 64-bit hashes of 64 rows with their targets. It is still searched for but no
// longer written, since targets can be recovered from it.
constexpr char kTrainingDigestKey[] = "fcp.training.sha256";
constexpr char kTrainingFilterKey[] = "fcp.training.filter";
constexpr char kTrainingSketchKey[] = "fcp.training.sketch";

// SHA-256 of all rows in their order, however they are batched.
class RowDigest {
 public:
  // The next rows: x [n, …], y [n, K].
  void add(const Array& x, const Array& y);

  std::string sha256();  // 64 hexadecimal digits; call it once, after the last rows

 private:
  Sha256 all_;
};

// A 32-bit hash of each row's inputs, ascending, so that they do not tell the order of the rows.
std::vector<uint64_t> row_codes(const Array& x, size_t threads = 1);

// Distinct rows by their codes and how often each occurs. Memory is bounded: of more than 2^16
// distinct rows those are kept whose code ends in enough zero bits.
class RowSample {
 public:
  void add(std::span<const uint64_t> codes);

  // Keeps only the codes that end in so many zero bits, at least.
  void thin(size_t halvings);

  uint64_t rows() const { return rows_; }  // all that were added
  size_t halvings() const { return halvings_; }
  const std::unordered_map<uint64_t, uint64_t>& counts() const { return counts_; }

  // The text of their filter.
  std::string filter() const;

 private:
  std::unordered_map<uint64_t, uint64_t> counts_;
  uint64_t rows_ = 0;
  size_t halvings_ = 0;
};

// How many of the rows that were compared with a filter found a set bit, after thinning. Rows that
// are equal share one bit, so estimates count distinct rows.
struct RowOverlap {
  uint64_t rows = 0, row_hits = 0;  // with repetitions
  uint64_t distinct = 0, distinct_hits = 0;
  uint64_t once = 0, once_hits = 0;  // rows that occur once among those compared
  double filter_rows = 0;      // rows of the filter at the same thinning, with repetitions, about
  double filter_distinct = 0;  // distinct ones
  double false_hits = 0;       // the probability of a hit of a row that is not in the filter

  // The share of the distinct rows that are in the filter: unbiased, so it may lie below 0.
  // 0 where the filter cannot tell.
  double share() const;

  // The share of the filter's distinct rows that are among these, about; from 0 to 1.
  double filter_share() const;

  // The probability of at least so many hits if none of the distinct rows were in the filter.
  double chance() const;
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

class RowFilter {
 public:
  RowFilter() = default;                        // of no rows
  explicit RowFilter(const std::string& text);  // an Error where it is damaged

  bool empty() const { return bits_.empty(); }
  uint64_t rows() const { return rows_; }  // that were added, with repetitions
  double false_hits() const;
  RowOverlap overlap(RowSample sample) const;

 private:
  bool holds(uint64_t code) const;

  uint64_t rows_ = 0, distinct_ = 0;
  size_t halvings_ = 0;
  std::vector<bool> bits_;
};

// The rows that a network says it was trained on, looked for among others.
class TrainingRows {
 public:
  // By the filter in a network's metadata, or the sketch of an earlier version.
  explicit TrainingRows(const std::map<std::string, std::string>& metadata);

  // What add() needs of these rows, ascending, which several threads may share; nothing where the
  // network does not say what it was trained on.
  std::vector<uint64_t> codes(const Array& x, const Array& y, size_t threads = 1) const;

  void add(std::span<const uint64_t> codes);

  // Of all that were added.
  RowOverlap overlap() const;

 private:
  RowFilter filter_;
  std::vector<uint64_t> sketch_;  // ascending
  RowSample sample_;
};

}  // namespace fcp
