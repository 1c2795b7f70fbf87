// A service loop: one row of numbers a line on standard input, one line "prediction lower upper" on
// standard output at once, until the input ends. A bad line is answered with "error: …" and the
// service goes on: that is what a caller who sends many wants. The predictor is made once; any
// number of threads could share it.
//
//   $ 3_service calibrated.onnx 0.1
//   3.2 17 4 2 0 0.7 1 12
//   29.25 24.25 36.5
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/tensor_predictor.h"

namespace {

std::vector<float> parse_row(const std::string& line) {
  std::istringstream text(line);
  std::vector<float> row;
  for (float value; text >> value;) row.push_back(value);
  if (!text.eof()) fcp::fail("expected numbers, found '", line, "'");
  return row;
}

std::string answer(const fcp::TensorPredictor& predictor, const fcp::Level& level,
                   const std::string& line) {
  std::vector<float> row = parse_row(line);
  const torch::Tensor x =
      torch::from_blob(row.data(), {1, static_cast<int64_t>(row.size())}, torch::kFloat);
  const fcp::Regions regions = predictor.region(predictor.describe(x), level);
  std::ostringstream text;
  for (int64_t k = 0; k < regions.lower.size(1); ++k) {
    text << (k == 0 ? "" : " ") << regions.prediction[0][k].item<double>() << ' '
         << regions.lower[0][k].item<double>() << ' ' << regions.upper[0][k].item<double>();
  }
  return text.str();
}

void serve(const std::string& file, const fcp::Level& level) {
  torch::NoGradGuard no_grad;
  torch::set_num_threads(1);  // rows come one by one: threads would wait for each other
  const fcp::CalibrationArtifact artifact = fcp::read_artifact(file);
  if (fcp::predicts_labels(artifact.score.name)) {
    fcp::fail(file, ": predicts labels; this example prints intervals");
  }
  const fcp::TensorPredictor predictor(artifact);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(predictor, level, line) << std::endl;
    } catch (const fcp::Error& error) {
      std::cout << "error: " << error.what() << std::endl;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s calibrated.onnx ALPHA\n", argv[0]);
    return 2;
  }
  try {
    serve(argv[1], fcp::Level::parse(argv[2]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
