// From data to intervals in one program: train a small network, calibrate it on rows it has not
// seen, and count how often its intervals hold the truth. Needs no files.
//
//   $ 1_intervals
//   90 % intervals: 0.898 of 1200 truths are inside, mean length 14.6 minutes
#include <cstdio>
#include <exception>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/calibration/selection.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/folds.h"
#include "fcp/experiments/synthetic.h"
#include "fcp/training/train.h"

namespace {

// The rows of an array as a tensor of its own.
torch::Tensor tensor(const fcp::Array& array) {
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat)
      .clone();
}

void run() {
  const fcp::DataSet data = fcp::demo_set(/*seed=*/1);
  const fcp::Folds folds = fcp::paper_folds(data.x.rows(), /*seed=*/1);
  const auto x = [&](const std::vector<size_t>& rows) { return fcp::take_rows(data.x, rows); };
  const auto y = [&](const std::vector<size_t>& rows) { return fcp::take_rows(data.y, rows); };

  const fcp::TrainResult trained =
      fcp::train_network(x(folds.training), y(folds.training), {.epochs = 20, .seed = 1});

  // The score of the calibration rows is all that calibration keeps.
  torch::NoGradGuard no_grad;
  fcp::CalibrationArtifact artifact;
  artifact.network = trained.graph;
  artifact.score.name = "nested";
  artifact.cut = fcp::default_cut(trained.graph);
  const fcp::ScoredNetwork scorer(artifact.network, artifact.score, artifact.cut);
  artifact.rows.scores = scorer.score().score(scorer.features(tensor(x(folds.calibration))),
                                              tensor(y(folds.calibration)));

  const fcp::TensorPredictor predictor(artifact);
  const torch::Tensor truth = tensor(y(folds.test));
  const fcp::Regions regions =
      predictor.region(predictor.describe(tensor(x(folds.test))), fcp::Level(0.1));
  const torch::Tensor inside = (regions.lower <= truth) & (truth <= regions.upper);
  std::printf("90 %% intervals: %.3f of %zu truths are inside, mean length %.1f minutes\n",
              inside.to(torch::kDouble).mean().item<double>(), folds.test.size(),
              (regions.upper - regions.lower).mean().item<double>());
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
