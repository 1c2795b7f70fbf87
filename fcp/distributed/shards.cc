#include "fcp/distributed/shards.h"

#include <algorithm>

#include "fcp/base/error.h"

namespace fcp {

RowRange share_of(size_t rows, int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks) fail("there is no rank ", rank, " among ", ranks);
  const size_t each = rows / static_cast<size_t>(ranks);
  const size_t more = rows % static_cast<size_t>(ranks);  // this many ranks have one row more
  const auto begin = [&](size_t r) { return r * each + std::min(r, more); };
  const size_t r = static_cast<size_t>(rank);
  return {begin(r), begin(r + 1)};
}

std::vector<FilePiece> pieces_of(std::span<const size_t> rows_of_files, int rank, int ranks) {
  size_t total = 0;
  for (const size_t rows : rows_of_files) total += rows;
  const RowRange mine = share_of(total, rank, ranks);
  std::vector<FilePiece> pieces;
  size_t start = 0;  // of the file, among all rows
  for (size_t file = 0; file < rows_of_files.size(); ++file) {
    const size_t end = start + rows_of_files[file];
    const size_t first = std::max(mine.begin, start);
    const size_t last = std::min(mine.end, end);
    if (first < last) pieces.push_back({file, {first - start, last - start}, first});
    start = end;
  }
  return pieces;
}

}  // namespace fcp
