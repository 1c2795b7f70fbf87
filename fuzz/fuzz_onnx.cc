// Any bytes as an ONNX file: read, checked, its nodes made into operators and its constants folded,
// written and read again. What can be written must be readable.
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"

#include "fuzz/input_file.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  torch::set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fcp::InputFile file;
  fcp::Graph graph;
  try {
    graph = fcp::parse_onnx({reinterpret_cast<const char*>(data), size}, "model.onnx");
  } catch (const fcp::Error&) {
    return 0;
  }
  const std::string& path = file.write(nullptr, 0);
  fcp::write_onnx(graph, path);
  fcp::read_onnx(path);
  try {
    const fcp::Network network(std::move(graph));
  } catch (const fcp::Error&) {
  }
  return 0;
}
