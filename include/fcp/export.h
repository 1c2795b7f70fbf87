// Export: a Predictor as a plain ONNX network with its regions as extra outputs, for any runtime.
// Tested by tests/api/api_test.cc and tests/export/export_test.cc.
#pragma once

#include <string>
#include <vector>

#include "fcp/level.h"

namespace fcp {

class Predictor;

struct ExportOptions {
  std::vector<Level> levels = {Level(0.1)};  // several: outputs are called lower_0.1, …
  std::string prefix{};                      // of the names of the new outputs
};

// Writes `lower` and `upper` in the shape of the output, or `in_set` [N, classes]. An existing file
// is replaced whole or not at all. An Error says why where a calibration cannot be exported.
// Thread-safe.
void export_onnx(const Predictor& predictor, const std::string& path,
                 const ExportOptions& options = {});

}  // namespace fcp
