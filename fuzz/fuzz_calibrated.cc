// A calibrated network whose metadata is any text: the first line is the settings, the second the
// provenance, what follows the bytes of the scores. The ONNX file around them is sound, so that
// every step reaches the reader of the metadata.
#include <cstring>
#include <string_view>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/artifact.h"

#include "fuzz/input_file.h"

namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

torch::Tensor doubles(std::string_view bytes) {
  torch::Tensor tensor = torch::empty({static_cast<int64_t>(bytes.size() / 8)}, torch::kDouble);
  if (tensor.numel() > 0) std::memcpy(tensor.data_ptr(), bytes.data(), tensor.nbytes());
  return tensor;
}

fcp::Graph identity_network() {
  fcp::Graph graph;
  graph.nodes.push_back({"", "Relu", "", {"x"}, {"y"}, {}});
  graph.inputs.push_back({"x", torch::kFloat, true, {fcp::kDynamic, 2}, {"n", ""}});
  graph.outputs.push_back({"y", torch::kFloat, true, {fcp::kDynamic, 2}, {"n", ""}});
  return graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  fcp::Graph graph = identity_network();
  graph.metadata["fcp.calibration"] = take_line(text);
  graph.metadata["fcp.provenance"] = take_line(text);
  const torch::Tensor scores = doubles(text);
  graph.initializers["fcp.scores"] = scores.reshape({-1, 1});
  graph.initializers["fcp.baseline"] = scores;
  graph.initializers["fcp.groups"] = torch::zeros({scores.numel()}, torch::kLong);
  graph.initializers["fcp.weights"] = torch::ones({scores.numel()}, torch::kDouble);
  graph.initializers["fcp.features"] = torch::zeros({scores.numel(), 2});
  const std::string& path = file.write(nullptr, 0);
  fcp::write_onnx(graph, path);
  try {
    const fcp::CalibrationArtifact artifact = fcp::read_artifact(path);
    artifact.radius(fcp::Level(0.1));
  } catch (const fcp::Error&) {
  }
  return 0;
}
