// The paper's segmentation experiment for `fcp reproduce`: Cityscapes with the FCN beside it, or,
// quick, generated scenes and a small network. It stands here, and not in fcp/experiments, because
// it takes the steps of `fcp segment`.
#pragma once

#include <torch/types.h>

#include "fcp/experiments/experiment.h"

namespace fcp {

Experiment segmentation_experiment(torch::Device device);

}  // namespace fcp
