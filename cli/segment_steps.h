// The steps of the verbs of `fcp segment`, as they and its demo share them. One image is one row:
// its truth is the target of all its channels and pixels, or the label of each pixel. Images are
// read, scored and forgotten, so that memory does not grow with their number.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/data/csv_writer.h"
#include "fcp/images/segmentation_folds.h"
#include "fcp/pipeline/channel_weights.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/segmentation_rows.h"

#include "cli/common.h"

namespace fcp {

// What `work` returns; its Errors name the image.
template <typename Work>
auto of_image(const SegmentImage& image, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail(image.path, ": ", error.what());
  }
}

struct SegmentSettings {
  ScoreOptions score;
  std::string cut;                                // empty: two layers before the output
  std::map<std::string, std::string> provenance;  // of the caller: file names
  std::string scores_csv;                         // the score of each image; empty: not written
};

// `network` is prepared (prepare_network). A surrogate's weights stand in the settings.
CalibrationArtifact calibrate_images(const Graph& network, const SegmentTask& task,
                                     const SegmentationSet& set, const SegmentSettings& settings,
                                     torch::Device device, const CommonOptions& common);

// The truth as the score takes it: the target, or the labels of the pixels.
torch::Tensor truth_of(const SegmentImage& image, const SegmentTask& task,
                       const ScoreOptions& score);

// A double with all its digits, for CSV files.
std::string digits(double value);

}  // namespace fcp
