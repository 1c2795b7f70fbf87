// Reads a calibrated predictor and prints the interval of a row of zeros, by spans and by tensors.
#include <cstdio>

#include "every_header.h"

extern const void* every_name[];

int main(int, char** argv) {
  if (every_name[0] == nullptr) return 1;
  try {
    fcp::Predictor::load("none.onnx");
    return 1;
  } catch (const fcp::Error&) {  // as what it was thrown across the library's border
  }
  const auto predictor = fcp::Predictor::load(argv[1]);
  const fcp::Level level = fcp::Level::parse(argv[2]);
  const size_t size = predictor.schema().row_size();
  const std::vector<float> zeros(size, 0);
  const fcp::Batch batch = predictor.schema().encode(zeros);
  const fcp::Interval interval = predictor.predict(batch, {level}).interval(0);
  const fcp::TensorRegions regions =
      fcp::regions(predictor, torch::zeros({1, static_cast<int64_t>(size)}), level);
  std::printf("%.9g %.9g %.9g %.9g\n", interval.lower, interval.upper, regions.lower.item<double>(),
              regions.upper.item<double>());
  return 0;
}
