// Predictors in files, for the tests of the server.
#pragma once

#include <memory>
#include <string>

#include "apps/server/served_model.h"
#include "tests/calibrate/known_worlds.h"
#include "tests/support/files.h"

namespace fcp::testing {

// The network that knows the line y = 2 x0 − x1, calibrated on so many rows.
inline std::shared_ptr<const ServedModel> served_line(const std::string& path, size_t rows = 99) {
  write_artifact(line_artifact(line_rows(rows, 1)), path);
  return std::make_shared<const ServedModel>("line", path, torch::kCPU);
}

inline std::shared_ptr<const ServedModel> served_classes(const std::string& path) {
  write_artifact(class_artifact(class_rows(99, 1)), path);
  return std::make_shared<const ServedModel>("classes", path, torch::kCPU);
}

inline internal::BatchData row_of(const std::vector<float>& x) {
  return {.x = torch::tensor(x).unsqueeze(0), .placed = true};
}

inline internal::BatchData line_row(float a, float b) { return row_of({a, b}); }

inline ServedTruth judged(const ServedModel& model, const internal::BatchData& row,
                          const std::vector<float>& truth) {
  return model.judge(row, truth, Level(0.1)).at(0);
}

inline std::vector<float> floats(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.to(torch::kFloat).contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

}  // namespace fcp::testing
