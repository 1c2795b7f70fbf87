// The label sets' networks and data at hand: features of the ImageNet ResNet-50 with its last
// layer, and the CIFAR-10 ResNets and SqueezeNet with the images they are run on.
#pragma once

#include <string>
#include <vector>

#include "apps/experiments/classification.h"

namespace fcp {

// imagenet-resnet50, cifar10-resnet20, cifar10-resnet56, imagenet-squeezenet.
const std::vector<std::string>& classification_sets();

// From `data_dir`, with the networks in `models` beside it. The head is the network's last layer;
// of SqueezeNet, which ends in a pooling of maps, the logits themselves. An Error names the file
// that is missing. "drawn-labels" needs no files: normal features, a random linear head, and labels
// drawn by its softmax.
ClassificationData load_classification_set(const std::string& name, const std::string& data_dir);

// cifar10-resnet20 or -resnet56 with the last `layers` layers as the head, over the first `images`
// images.
ClassificationData load_cifar_cut(const std::string& name, const std::string& data_dir, int layers,
                                  int64_t images);

}  // namespace fcp
