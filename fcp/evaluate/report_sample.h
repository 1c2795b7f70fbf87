// A uniform sample of the rows of a stream, to be shown (Vitter's algorithm R), drawn by several
// ranks alike: which rows are drawn follows from their numbers alone. A rank draws for all rows,
// and makes the examples of its own. Several samples of different sizes are drawn side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/distributed/packing.h"
#include "fcp/evaluation/evaluation_report.h"

namespace fcp {

// A row that was drawn: where it stands in its batch, and in the sample.
struct DrawnRow {
  size_t row = 0;
  size_t place = 0;
};

class RowSampler {
 public:
  // Without a seed the first rows are kept.
  RowSampler(std::vector<size_t> sizes, std::optional<uint64_t> seed);

  // The rows of a batch that are drawn, for each sample. Batches come in their order; those of
  // other ranks may be left out.
  std::vector<std::vector<DrawnRow>> draw(size_t first_row, size_t count);

 private:
  std::vector<size_t> places_of(size_t row);

  std::vector<size_t> sizes_;
  std::optional<Random> random_;
  size_t drawn_ = 0;
};

void pack_example(const Example& example, Packer& packer);
Example unpack_example(Unpacker& unpacker);

// Puts an item where it was drawn to, in place of the one before it.
template <typename T>
void put_drawn(std::vector<T>& sample, size_t place, T item) {
  if (place >= sample.size()) sample.resize(place + 1);
  sample[place] = std::move(item);
}

}  // namespace fcp
