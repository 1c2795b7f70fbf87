// The weight of each channel in the surrogate's squared error of pixels: classes that are seldom
// weigh more.
//
// Tested by tests/pipeline/segmentation_rows_test.cc, tests/cli/test_segment.py.
#pragma once

#include <string>
#include <vector>

#include "fcp/images/segmentation.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/segmentation_task.h"

namespace fcp {

// ENet's weights (loss_weights of fcp/images/segmentation_target.h) of the labels of a set.
std::vector<double> channel_weights(const SegmentationSet& set, const SegmentTask& task,
                                    const Context& context);

// From a CSV file with the columns class and loss_weight; class 0 need not be there unless it has a
// channel.
std::vector<double> read_channel_weights(const std::string& csv, const SegmentTask& task);

}  // namespace fcp
