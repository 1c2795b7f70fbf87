// What a column had in the training rows, and whether a new cell is of another kind: the coverage
// guarantee speaks of rows like those of calibration, and not of what was never seen.
//
//   missing   a cell without a value, where every training row had one
//   unseen    a category that no training row had; rare ones, which are read together, are not
//   range     a number beyond the range of the training rows by more than a quarter of its width
//
// Rare categories are kept as hashes, so that a network does not carry their texts.
//
// Tested by tests/data/column_facts_test.cc and csv_types_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fcp {

struct ColumnFacts {
  bool missing = false;                                    // some cell had no value
  double low = std::numeric_limits<double>::infinity();    // of numbers and dates; above `high`:
  double high = -std::numeric_limits<double>::infinity();  // there were none
  std::vector<uint64_t> rare{};                            // hashes of categories, ascending
  bool more = false;  // there were more categories than were told apart

  // The numbers that are not far from those of the training rows; all, where there were none.
  std::pair<double, double> usual() const;
  bool is_far(double value) const;
  bool has_rare(std::string_view category) const;
  friend bool operator==(const ColumnFacts&, const ColumnFacts&) = default;
};

uint64_t category_hash(std::string_view category);

enum class Novelty { kNone, kMissing, kUnseen, kRange };

// "missing:carat".
std::string novelty_flag(Novelty novelty, const std::string& column);
// Adds it to the flags of a row, which '|' separates.
void add_flag(const std::string& flag, std::string& flags);

// The rows of a file that have what no training row had.
class NoveltyCounts {
 public:
  // The flags of one row.
  void add(const std::string& flags);
  void add(const NoveltyCounts& more);

  bool none() const { return rows_ == 0; }
  // "3 of 50 rows have what no training row had (missing: carat in 2; …): the coverage guarantee
  // does not extend to them".
  std::string text(size_t of) const;

 private:
  size_t rows_ = 0;
  std::map<std::string, size_t> flags_;  // how many rows have each
};

}  // namespace fcp
