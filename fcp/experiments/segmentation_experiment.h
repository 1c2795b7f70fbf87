// The paper's segmentation experiment: Cityscapes with the FCN beside it, or, quick, generated
// scenes and a small network.
#pragma once

#include <functional>

#include <torch/types.h>

#include "fcp/calibration/artifact.h"
#include "fcp/experiments/experiment.h"
#include "fcp/images/segmentation.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/segmentation_task.h"
#include "fcp/report/segment_report.h"

namespace fcp {

// How a calibrated segmenter does on labelled images, at one level.
using EvaluateSegmentation =
    std::function<SegmentReport(const CalibrationArtifact&, const SegmentTask&,
                                const SegmentationSet&, const Level&, const Context&)>;

Experiment segmentation_experiment(torch::Device device, EvaluateSegmentation evaluate);

}  // namespace fcp
