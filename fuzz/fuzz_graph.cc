// Any bytes as an ONNX file, without libtorch: read, checked, cut and written. What can be written
// must be readable, and is then written the same.
#include <cstdlib>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/graph/output_kind.h"

namespace {

void cut_everywhere(const fcp::Graph& graph) {
  const auto as_it_is = [](const fcp::Graph& whole, const std::string&) { return whole; };
  for (const std::string& tensor : fcp::valid_cuts(graph)) {
    try {
      fcp::cut(graph, tensor, as_it_is);
    } catch (const fcp::Error&) {  // shapes from before the cut
    }
  }
  for (const fcp::TensorInfo& output : graph.outputs) fcp::output_meaning(graph, output.name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fcp::Graph graph;
  try {
    graph = fcp::parse_onnx({reinterpret_cast<const char*>(data), size}, "model.onnx", "", {});
  } catch (const fcp::Error&) {
    return 0;
  }
  const std::string bytes = fcp::serialize_onnx(graph);
  if (fcp::serialize_onnx(fcp::parse_onnx(bytes, "again.onnx", "", {})) != bytes) std::abort();
  try {
    cut_everywhere(graph);
  } catch (const fcp::Error&) {
  }
  return 0;
}
