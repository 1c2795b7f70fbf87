// Your own network, from whatever made it, and calibration rows as .npy: makes the file that
// `fcp predict`, `fcp export` and 3_service take. The rows are streamed; memory holds their scores.
//
//   $ 2_your_onnx_model model.onnx x.npy y.npy calibrated.onnx [CUT]
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/calibration/artifact.h"
#include "fcp/calibration/scored_network.h"
#include "fcp/calibration/selection.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/rows.h"
#include "fcp/network/onnx_reader.h"

namespace {

torch::Tensor view(fcp::Array& array) {
  return torch::from_blob(array.values.data(), array.shape, torch::kFloat);
}

void calibrate(const std::string& model, const std::string& x, const std::string& y,
               const std::string& out, const std::string& cut) {
  torch::NoGradGuard no_grad;
  fcp::CalibrationArtifact artifact;
  artifact.network = fcp::read_onnx(model);
  artifact.score.name = "nested";
  artifact.cut = cut.empty() ? fcp::default_cut(artifact.network) : cut;
  const fcp::ScoredNetwork predictor(artifact.network, artifact.score, artifact.cut);
  artifact.cut = predictor.cut();  // "-2" becomes the name of the tensor

  const auto source = fcp::open_rows(x, y);
  for (fcp::Rows rows; source->next(1024, rows);) {
    const std::vector<double> scores =
        predictor.score().score(predictor.features(view(rows.x)), view(rows.y));
    artifact.rows.scores.insert(artifact.rows.scores.end(), scores.begin(), scores.end());
  }
  artifact.rows.scores = fcp::sorted_scores(artifact.rows.scores);  // names a NaN's row
  artifact.provenance["made by"] = "examples/2_your_onnx_model.cc";
  fcp::write_artifact(artifact, out);
  std::printf("%s: %zu rows, cut at %s, radius %g at 90 %%\n", out.c_str(), artifact.rows.count(),
              artifact.cut.c_str(), artifact.radius(fcp::Level(0.1)).at(0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 6) {
    std::fprintf(stderr, "usage: %s model.onnx x.npy y.npy calibrated.onnx [CUT]\n", argv[0]);
    return 2;
  }
  try {
    calibrate(argv[1], argv[2], argv[3], argv[4], argc == 6 ? argv[5] : "");
    return 0;
  } catch (const std::exception& error) {  // an fcp::Error names the file and what is wrong with it
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
