// Reads a calibrated predictor and prints the interval of a row of zeros, by spans and by tensors.
#include <cstdio>

#include "every_header.h"

int main(int, char** argv) {
  const auto predictor = fcp::ConformalPredictor::load(argv[1]);
  const fcp::Level level = fcp::Level::parse(argv[2]);
  const std::vector<float> zeros(predictor.row_size(), 0);
  const fcp::Interval interval = predictor.intervals(zeros, level).at(0);
  const fcp::TensorRegions regions =
      fcp::regions(predictor, torch::zeros({1, static_cast<int64_t>(predictor.row_size())}), level);
  std::printf("%.9g %.9g %.9g %.9g\n", interval.lower, interval.upper, regions.lower.item<double>(),
              regions.upper.item<double>());
  return 0;
}
