// CSV files with a row per image: scores of calibration images, figures of test images.
#pragma once

#include <optional>
#include <string>

#include "fcp/data/csv_writer.h"
#include "fcp/images/segmentation_folds.h"
#include "fcp/pipeline/calibrate.h"
#include "fcp/pipeline/evaluate.h"

namespace fcp {

void write_image_scores(const std::string& path, const SegmentationSet& set, const RowScores& rows);

// The figures of each image, a row per method.
class ImageFiguresFile {
 public:
  explicit ImageFiguresFile(const std::string& path);  // empty: nothing is written

  void add(const EvaluatedImage& image);
  void close();

 private:
  std::optional<CsvWriter> csv_;
};

}  // namespace fcp
