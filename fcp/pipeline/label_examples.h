// A sample of rows to be shown, with their pictures where the rows are images. Which rows are drawn
// follows from their numbers alone: a rank draws for all rows, and makes the examples of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/random.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/packing.h"
#include "fcp/images/image_transform.h"
#include "fcp/report/label_report.h"
#include "fcp/scores/score.h"

namespace fcp {

class ExampleSampler {
 public:
  // The source and the names of the classes must outlive this. Rows with a transform are images.
  ExampleSampler(const RowSource& source, const std::vector<std::string>& names,
                 std::optional<ImageTransform> transform, uint64_t seed)
      : source_(source), names_(names), transform_(std::move(transform)), random_(seed) {}

  // Packs the examples among these rows, on the rank whose batch it is.
  void measure(const Rows& rows, const Regions& regions, Packer& packer);
  // The same on rank 0, batch by batch.
  void take(Unpacker& unpacker);

  std::vector<LabelExample> take() { return std::move(examples_); }

 private:
  // The place of the next row in the sample; beyond its size: it is left out.
  size_t draw();
  // What the network saw, with the normalisation undone.
  std::string picture(const Array& x, size_t row) const;

  const RowSource& source_;
  const std::vector<std::string>& names_;
  std::optional<ImageTransform> transform_;
  Random random_;
  std::vector<LabelExample> examples_;
  size_t drawn_ = 0;
};

}  // namespace fcp
