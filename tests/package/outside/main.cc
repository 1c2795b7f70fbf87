// Reads a calibrated predictor and prints the interval of a row of zeros, by way of every room that
// brings a library of its own: network (ONNX), data (zlib, images), distributed (MPI).
#include <cstdio>

#include "every_header.h"

int main(int, char** argv) {
  const fcp::CalibrationArtifact artifact = fcp::read_artifact(argv[1]);
  const fcp::TensorPredictor predictor(artifact);
  const fcp::Regions regions =
      predictor.region(predictor.describe(torch::zeros({1, 8})), fcp::Level::parse(argv[2]));
  const std::string picture = fcp::encode_png(fcp::blank_image(2, 2, 3));
  std::printf("%.9g %.9g %zu %s\n", regions.lower.item<double>(), regions.upper.item<double>(),
              picture.size(), fcp::mpi_library().empty() ? "serial" : "mpi");
  return 0;
}
