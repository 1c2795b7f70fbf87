// Your own network, from whatever made it, and calibration rows as .npy: makes the file that
// `fcp predict`, `fcp export` and 3_service take. The rows are streamed; memory holds their scores.
//
//   $ 2_your_onnx_model model.onnx x.npy y.npy calibrated.onnx [CUT]
#include <cstdio>

#include <fcp/fcp.h>

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) {
    std::fprintf(stderr, "usage: %s model.onnx x.npy y.npy calibrated.onnx [CUT]\n", argv[0]);
    return 2;
  }
  try {
    const fcp::Predictor predictor = fcp::calibrate(
        argv[1], argv[2], argv[3], {.score = "nested", .cut = argc == 6 ? argv[5] : ""});
    predictor.save(argv[4]);
    std::printf("%s: %zu rows, cut at %s, radius %g at 90 %%\n", argv[4],
                predictor.calibration_rows(), predictor.method("cut").c_str(),
                predictor.radius(fcp::Level(0.1)).at(0));
    return 0;
  } catch (const fcp::Error& error) {  // names the file and what is wrong with it
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
