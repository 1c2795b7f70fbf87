// Which rows are whose: how N rows (or C cells of an experiment) are shared over ranks.
//
// Each rank gets one contiguous range, in rank order, and sizes differ by at most one: with
// N = qR + m the first m ranks get q + 1 rows and the others q. Several files are one long list of
// rows, file after file; a rank reads the pieces of them that its range meets.
//
// Tested by tests/distributed/shards_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fcp {

struct RowRange {
  size_t begin = 0;  // rows begin … end - 1
  size_t end = 0;

  size_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

// The rows of `rank` among `rows` shared by `ranks`. Empty for the last ranks where there are more
// ranks than rows.
RowRange share_of(size_t rows, int rank, int ranks);

// A piece of one file: rows of that file, the first of which is `first_row` of all files together.
struct FilePiece {
  size_t file = 0;
  RowRange rows;
  size_t first_row = 0;

  friend bool operator==(const FilePiece&, const FilePiece&) = default;
};

// The pieces of `rank`, in order, none of them empty. O(files).
std::vector<FilePiece> pieces_of(std::span<const size_t> rows_of_files, int rank, int ranks);

}  // namespace fcp
