#include "fcp/experiments/classification_sets.h"

#include <algorithm>
#include <memory>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/image_rows.h"
#include "fcp/data/npy.h"
#include "fcp/network/cut.h"
#include "fcp/network/onnx_reader.h"

namespace fcp {
namespace {

constexpr size_t kImageBatch = 100;

torch::Tensor tensor_of_array(const Array& array) {
  torch::Tensor tensor = torch::empty(array.shape, torch::kFloat);
  std::copy(array.values.begin(), array.values.end(), tensor.data_ptr<float>());
  return tensor;
}

// A head that answers its feature, [N, classes].
Graph identity_head(int64_t classes) {
  Graph graph;
  TensorInfo logits;
  logits.name = "logits_in";
  logits.shape = {kDynamic, classes};
  graph.inputs.push_back(logits);
  logits.name = "logits_out";
  graph.outputs.push_back(logits);
  Node node;
  node.op = "Identity";
  node.inputs = {"logits_in"};
  node.outputs = {"logits_out"};
  graph.nodes.push_back(node);
  return graph;
}

// The features of all images, and their labels.
ClassificationData run_images(RowSource& source, const Network& backbone, const Graph& head) {
  torch::NoGradGuard no_grad;
  Tensors features, labels;
  for (Rows rows; source.next(kImageBatch, rows);) {
    check_interrupted();
    features.push_back(backbone.run_rows({tensor_of_array(rows.x)})[0].flatten(1));
    labels.push_back(tensor_of_array(rows.y).flatten().to(torch::kLong));
  }
  return {std::make_shared<const Network>(head), torch::cat(features), torch::cat(labels)};
}

ClassificationData cifar(const std::string& data_dir, const std::string& network) {
  ImageOptions options;
  options.transform.resize = 0;
  options.transform.crop = 0;
  options.labels = data_dir + "/cifar10_test/labels.npy";
  const auto source = open_images(data_dir + "/cifar10_test/images.npy", options);
  const Graph graph = read_onnx(data_dir + "/../models/cifar10_" + network + ".onnx");
  const CutGraph parts = cut(graph, resolve_cut(graph, "-1"));
  return run_images(*source, Network(parts.backbone), parts.head);
}

}  // namespace

const std::vector<std::string>& classification_sets() {
  static const std::vector<std::string> names = {"imagenet-resnet50", "cifar10-resnet20",
                                                 "cifar10-resnet56", "imagenet-squeezenet"};
  return names;
}

ClassificationData load_classification_set(const std::string& name, const std::string& data_dir) {
  const std::string models = data_dir + "/../models/";
  if (name == "imagenet-resnet50") {
    const std::string folder = data_dir + "/imagenet_val5000/";
    return {std::make_shared<const Network>(read_onnx(models + "imagenet_resnet50_head.onnx")),
            tensor_of_array(read_npy(folder + "resnet50_features.npy")),
            tensor_of_array(read_npy(folder + "labels.npy")).flatten().to(torch::kLong)};
  }
  if (name == "cifar10-resnet20") return cifar(data_dir, "resnet20");
  if (name == "cifar10-resnet56") return cifar(data_dir, "resnet56");
  if (name == "imagenet-squeezenet") {
    const auto source = open_images(data_dir + "/imagenet_val1000/labels.csv");
    return run_images(*source, Network(read_onnx(models + "imagenet_squeezenet11.onnx")),
                      identity_head(1000));
  }
  fail("there is no set '", name, "' of labels");
}

}  // namespace fcp
