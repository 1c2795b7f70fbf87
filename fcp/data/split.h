// Cutting the rows of a table into parts: at random, stratified by a column, with the rows of a
// group together, or by time with the oldest first.
//
// By time with groups together, a group stands where its newest row does: no row of a part is newer
// than the newest row of any group of a later part, and what a later part has of older rows is of
// groups that go on after that.
//
// What the guarantee then speaks of: at random, of new rows like these; by group, of rows of new
// groups, as far as groups are alike; by time, of later rows, as far as they are like earlier ones.
//
// Tested by tests/data/split_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/csv.h"

namespace fcp {

struct SplitColumns {
  std::vector<std::string> strata{};  // of each row; where they are given, nothing else is
  std::vector<std::string> groups{};
  std::vector<double> times{};
};

// One part for each share, disjoint, all rows used, in the order of the rows. Shares are positive
// and of any sum. Of strata each part has its share up to two rows, and every row has the same
// chance to be in a part, but rows of one stratum are less likely together in it than by chance: a
// guarantee that is exact wants parts at random; groups go, in random order, to the
// part that lacks most; rows of the same time may be parted.
std::vector<std::vector<size_t>> split_rows(size_t rows, const std::vector<double>& shares,
                                            uint64_t seed, const SplitColumns& columns = {});

// The rows from the oldest to the newest, those of a group side by side.
std::vector<size_t> order_by_time(const std::vector<double>& times,
                                  const std::vector<std::string>& groups);

// "2:2:1"; an OptionError `shares` where it is something else.
std::vector<double> parse_shares(const std::string& text);

// A column as times: numbers or dates, whichever it holds. An Error names a row that has neither.
std::vector<double> read_time_column(const std::string& path, const std::string& column,
                                     const CsvOptions& options = {});

// Writes each part of the file's rows, as text and below the header, to its own file: all files or
// none. `parts` are numbered without the rows that options.refused passes over.
void write_parts(const std::string& path, const std::vector<std::vector<size_t>>& parts,
                 const std::vector<std::string>& out, const CsvOptions& options = {});

// Cutting a data set into folds at random, the same for the same seed.
//
// Tested by tests/data/split_test.cc.

struct Folds {
  std::vector<size_t> training;
  std::vector<size_t> calibration;
  std::vector<size_t> test;
};

// The paper's 2 : 2 : 1. A fifth of the rows (rounded up) is the test fold; the rest is permuted
// and halved into training and calibration, an odd row dropped.
Folds paper_folds(size_t rows, uint64_t seed);

// Rows in a random order in which those of one group follow each other; groups[i] is that of row i.
struct GroupedOrder {
  std::vector<size_t> rows;
  std::vector<size_t> first;  // for each place of the order, the place where its group begins
};
GroupedOrder grouped_order(std::span<const int64_t> groups, uint64_t seed);

}  // namespace fcp
