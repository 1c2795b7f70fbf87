// The steps of the verbs of `fcp segment`, as they and its demo share them. One image is one row:
// its truth is the target of all its channels and pixels, or the label of each pixel. Images are
// read, scored and forgotten, so that memory does not grow with their number.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/calibration/artifact.h"
#include "fcp/conformal/level.h"
#include "fcp/data/csv_writer.h"
#include "fcp/images/segmentation_folds.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/segmentation_rows.h"
#include "fcp/report/segment_report.h"

#include "cli/common.h"

namespace fcp {

// A calibrated segmenter that can tell the radius of a level; an Error where it has one radius per
// group.
CalibrationArtifact read_segmenter(const std::string& path, const Level& level);

// What `work` returns; its Errors name the image.
template <typename Work>
auto of_image(const SegmentImage& image, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail(image.path, ": ", error.what());
  }
}

struct SegmentEvaluateSettings {
  Level level = Level(0.1);
  size_t pictures = 0;    // images to be shown in the report
  std::string image_csv;  // the figures of each image; empty: not written
};

SegmentReport evaluate_images(const CalibrationArtifact& artifact, const SegmentTask& task,
                              const SegmentationSet& set, const SegmentEvaluateSettings& settings,
                              torch::Device device, const CommonOptions& common);

struct SegmentPredictSettings {
  Level level = Level(0.1);
  std::string folder;  // exists
  bool bands = false;  // .npy files as well
};

// Writes NAME.png, image | prediction | uncertainty, for each image; returns their number.
size_t predict_images(const CalibrationArtifact& artifact, const SegmentTask& task,
                      const SegmentationSet& set, const SegmentPredictSettings& settings,
                      torch::Device device, const CommonOptions& common);

// One number a pixel in [0, 1]: of bands their length as probabilities, averaged over the classes;
// of sets the share of all other labels that are in.
std::vector<float> uncertainty_of(const Regions& regions, const SegmentTask& task);

// One image with its regions as a strip: image | prediction | uncertainty.
struct SegmentPicture {
  Image strip;
  double largest = 0;  // uncertainty, which the map's lightest colour stands for
};
SegmentPicture segment_picture(const SegmentImage& image, const Regions& regions,
                               const SegmentTask& task);

// The truth as the score takes it: the target, or the labels of the pixels.
torch::Tensor truth_of(const SegmentImage& image, const SegmentTask& task,
                       const ScoreOptions& score);

// A double with all its digits, for CSV files.
std::string digits(double value);

}  // namespace fcp
