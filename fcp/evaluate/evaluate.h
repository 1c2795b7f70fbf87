// Evaluation of a calibrated predictor on a stream of rows with known answers: intervals, sets of
// labels, and images of pixels alike.
// Tested by tests/evaluate/evaluate_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"
#include "fcp/evaluate/measures/evaluation_report.h"
#include "fcp/level.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

// One image of pixels under one method.
struct EvaluatedImage {
  std::string name;
  std::string method;
  bool covered = false;
  ImageFigures figures;
};

struct EvaluateOptions {
  Level level = Level(0.1);
  // For a page whose reader chooses the level: coverage and length, or size, at further levels too.
  // Each costs as much as the regions. Images of pixels have none.
  bool all_levels = false;
  RowFacts facts{};
  RowGroups periods{};              // of each row, in order of time; empty: they are in none
  std::vector<int64_t> together{};  // groups whose rows are alike; empty: rows are independent
  RowsOrigin origin = RowsOrigin::kUnknown;
  // Predictors that were trained or calibrated again, whose intervals are compared with these.
  std::vector<const CalibrationArtifact*> refits{};
  // Labels: rows are images, shown with this transform undone.
  std::optional<ImageTransform> images{};
  // Images of pixels: how many are shown, from the first on.
  size_t pictures = 0;
  // Images of pixels: hears of each, on rank 0; may be left empty.
  std::function<void(const EvaluatedImage&)> on_image{};
};

// Coverage, lengths or sizes, and what the report shows, at one level. Ranks share the rows; the
// report is on rank 0, and the same for any number of ranks. Rows with segmentation() are
// evaluated image by image, whatever else row by row.
EvaluationReport evaluate(const CalibrationArtifact& artifact, RowSource& source,
                          const EvaluateOptions& options, const Context& context);

}  // namespace fcp
