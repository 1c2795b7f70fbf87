// Reading ONNX files with all operators at hand.
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/ops/ml/text_inputs.h"

namespace fcp {
namespace {

const OnnxOperators& all_operators() {
  static const OnnxOperators operators = [] {
    OnnxOperators made;
    made.value = value_by_shapes;
    made.number_texts = number_texts;
    return made;
  }();
  return operators;
}

}  // namespace

Graph read_onnx(const std::string& path) { return read_onnx(path, all_operators()); }

Graph parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder) {
  return parse_onnx(bytes, name, folder, all_operators());
}

}  // namespace fcp
