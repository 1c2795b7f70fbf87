// Files of regions: CSV and .npy for rows, pictures and .npy for images of pixels.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/kept_columns.h"
#include "fcp/pipeline/segmentation_rows.h"
#include "fcp/scores/score.h"

namespace fcp {

class RegionWriter {
 public:
  virtual ~RegionWriter() = default;

  // The regions of the rows that the source gave last.
  virtual void append(const Rows& rows, const Regions& regions) = 0;
  // The same at several levels; here of the first alone.
  virtual void append_levels(const Rows& rows, std::span<const Regions> regions) {
    append(rows, regions.front());
  }
  // After the last rows; before it no file is whole.
  virtual void close() = 0;
};

// What a file of regions has besides one region per row.
struct RegionFileOptions {
  std::vector<Level> levels{};  // more than one: columns end in _ and the level
  KeptColumns kept{};           // come first, as they are
};

// One file. Intervals: [N, K, 3] = prediction, lower, upper in an .npy, or as 3 K columns in a CSV.
// Sets of labels: a boolean .npy [N, C], or a CSV of prediction, size and labels (by name where the
// network carries names, joined by '|'). "-" is a CSV on standard output. An .npy takes neither
// several levels nor columns of the data. The artifact must outlive the writer.
std::unique_ptr<RegionWriter> open_region_file(const std::string& out,
                                               const CalibrationArtifact& artifact,
                                               RegionFileOptions options = {});

// A folder that exists: NAME.png, image | prediction | uncertainty, for each image and, where
// `bands` are asked for, NAME.npy: lower and upper ends [2, C, H, W], or booleans [C, H, W] for
// sets. The images must outlive the writer.
std::unique_ptr<RegionWriter> open_region_folder(const std::string& folder, bool bands,
                                                 const SegmentationRows& images);

}  // namespace fcp
