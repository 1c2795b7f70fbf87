// The paper's segmentation experiment: Cityscapes with the FCN beside it, or, quick, generated
// scenes and a small network.
#pragma once

#include <torch/types.h>

#include "apps/experiments/experiment.h"

namespace fcp {

Experiment segmentation_experiment(torch::Device device);

}  // namespace fcp
