#include "apps/experiments/classification_sets.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/data/images/image_rows.h"
#include "fcp/data/npy.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"

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

// The features of the first `most` images, and their labels.
ClassificationData run_images(RowSource& source, const Network& backbone, const Graph& head,
                              int64_t most = std::numeric_limits<int64_t>::max()) {
  torch::NoGradGuard no_grad;
  Tensors features, labels;
  int64_t seen = 0;
  for (Rows rows; seen < most && source.next(kImageBatch, rows);) {
    check_interrupted();
    features.push_back(backbone.run_rows({tensor_of_array(rows.x)})[0]);
    labels.push_back(tensor_of_array(rows.y).flatten().to(torch::kLong));
    seen += labels.back().size(0);
  }
  const int64_t kept = std::min(seen, most);
  return {std::make_shared<const Network>(head), torch::cat(features).narrow(0, 0, kept),
          torch::cat(labels).narrow(0, 0, kept)};
}

// Labels drawn by the softmax of a random linear head over normal features.
ClassificationData drawn_labels() {
  constexpr int64_t kRows = 2000, kFeatures = 5, kClasses = 8;
  Random random(1);
  const auto normal = [&](std::vector<int64_t> shape) {
    torch::Tensor tensor = torch::empty(shape, torch::kFloat);
    float* values = tensor.data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(random.normal());
    return tensor;
  };
  Graph graph = identity_head(kClasses);
  graph.inputs[0].shape = {kDynamic, kFeatures};
  graph.nodes[0].op = "Gemm";
  graph.nodes[0].inputs = {"logits_in", "weight", "bias"};
  graph.initializers["weight"] = normal({kFeatures, kClasses});
  graph.initializers["bias"] = normal({kClasses});
  ClassificationData data{std::make_shared<const Network>(graph), normal({kRows, kFeatures}),
                          torch::empty({kRows}, torch::kLong)};
  torch::NoGradGuard no_grad;
  const torch::Tensor shares = torch::softmax(data.head->forward(data.features), 1).cumsum(1);
  for (int64_t i = 0; i < kRows; ++i) {
    const auto drawn = static_cast<float>(random.uniform());
    const auto below = (shares[i] < drawn).sum().item<int64_t>();
    data.labels[i] = std::min(below, kClasses - 1);
  }
  return data;
}

}  // namespace

ClassificationData load_cifar_cut(const std::string& name, const std::string& data_dir, int layers,
                                  int64_t images) {
  ImageOptions options;
  options.transform.resize = 0;
  options.transform.crop = 0;
  options.labels = data_dir + "/cifar10_test/labels.npy";
  const auto source = open_images(data_dir + "/cifar10_test/images.npy", options);
  const std::string network = name.substr(name.find('-') + 1);
  const Graph graph = read_onnx(data_dir + "/../models/cifar10_" + network + ".onnx");
  const CutGraph parts = cut(graph, resolve_cut(graph, concat("-", layers)));
  return run_images(*source, Network(parts.backbone), parts.head, images);
}

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
  if (name == "cifar10-resnet20" || name == "cifar10-resnet56") {
    return load_cifar_cut(name, data_dir, 1, std::numeric_limits<int64_t>::max());
  }
  if (name == "drawn-labels") return drawn_labels();
  if (name == "imagenet-squeezenet") {
    const auto source = open_images(data_dir + "/imagenet_val1000/labels.csv");
    return run_images(*source, Network(read_onnx(models + "imagenet_squeezenet11.onnx")),
                      identity_head(1000));
  }
  fail("there is no set '", name, "' of labels");
}

}  // namespace fcp
