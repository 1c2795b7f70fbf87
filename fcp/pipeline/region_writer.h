// Files of regions: CSV and .npy for rows, pictures and .npy for images of pixels.
#pragma once

#include <memory>
#include <string>

#include "fcp/calibration/artifact.h"
#include "fcp/data/rows.h"
#include "fcp/pipeline/segmentation_rows.h"
#include "fcp/scores/score.h"

namespace fcp {

class RegionWriter {
 public:
  virtual ~RegionWriter() = default;

  // The regions of the rows that the source gave last.
  virtual void append(const Rows& rows, const Regions& regions) = 0;
  // After the last rows; before it no file is whole.
  virtual void close() = 0;
};

// One file. Intervals: [N, K, 3] = prediction, lower, upper in an .npy, or as 3 K columns in a CSV.
// Sets of labels: a boolean .npy [N, C], or a CSV of prediction, size and labels (by name where the
// network carries names, joined by '|'). "-" is a CSV on standard output. The artifact must outlive
// the writer.
std::unique_ptr<RegionWriter> open_region_file(const std::string& out,
                                               const CalibrationArtifact& artifact);

// A folder that exists: NAME.png, image | prediction | uncertainty, for each image and, where
// `bands` are asked for, NAME.npy: lower and upper ends [2, C, H, W], or booleans [C, H, W] for
// sets. The images must outlive the writer.
std::unique_ptr<RegionWriter> open_region_folder(const std::string& folder, bool bands,
                                                 const SegmentationRows& images);

}  // namespace fcp
