// The probabilities of classes against the predictors of each class, asked one by one, and files.
#include "fcp/predictor/class_probabilities.h"

#include <cmath>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"

#include "tests/methods/scores/heads.h"

namespace fcp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct KnownClasses {
  CalibrationArtifact artifact;
  torch::Tensor x;              // [N, C], the logits
  std::vector<int64_t> labels;  // of the largest of x and noise
};

// Calibrated on these rows by their labels.
KnownClasses known_classes(int64_t classes, int64_t rows, double temperature = 1) {
  Random random(21 + static_cast<uint64_t>(classes));
  KnownClasses made;
  made.artifact.network = linear_head(torch::eye(classes), torch::zeros({classes}));
  made.artifact.method.score = LacOptions{.temperature = temperature};
  made.artifact.rows.scores = {0.1, 0.2, 0.3};
  made.x = random_normal(random, {rows, classes});
  const torch::Tensor noisy = made.x + random_normal(random, {rows, classes});
  const torch::Tensor answer = noisy.argmax(1);
  made.labels = {answer.data_ptr<int64_t>(), answer.data_ptr<int64_t>() + rows};
  made.artifact.method.score.probabilities = "venn-abers";
  const ScoredNetwork network(made.artifact.network, made.artifact.method.score, "");
  const torch::Tensor scores = LogitShares(network, made.artifact.method.score).scores(made.x);
  made.artifact.chances =
      fit_chances({scores.data_ptr<double>(), static_cast<size_t>(scores.numel())}, made.labels);
  return made;
}

double softmax_of(const torch::Tensor& logits, int64_t k, double temperature) {
  double sum = 0;
  for (int64_t j = 0; j < logits.size(0); ++j) {
    sum += std::exp(logits[j].item<double>() / temperature);
  }
  return std::exp(logits[k].item<double>() / temperature) / sum;
}

TEST(ClassProbabilities, EachClassStandsAgainstTheRest) {
  for (const int64_t classes : {2, 3, 5}) {
    const double temperature = classes == 3 ? 1.7 : 1;
    const KnownClasses known = known_classes(classes, 300, temperature);
    EXPECT_EQ(known.artifact.chances.size(), classes == 2 ? 1u : static_cast<size_t>(classes));
    const ScoredNetwork network(known.artifact.network, known.artifact.method.score, "");
    const ClassProbabilities probabilities(network, known.artifact);
    Random random(5);
    const torch::Tensor x = random_normal(random, {40, classes});
    const ClassChances found = probabilities.of(x);
    // Fitted here once more, of every class.
    for (int64_t k = 0; k < classes; ++k) {
      std::vector<double> scores;
      std::vector<bool> hits;
      for (int64_t i = 0; i < 300; ++i) {
        scores.push_back(softmax_of(known.x[i], k, temperature));
        hits.push_back(known.labels[static_cast<size_t>(i)] == k);
      }
      const VennAbers own(scores, hits);
      for (int64_t i = 0; i < 40; ++i) {
        const VennAbersPair pair = own.at(softmax_of(x[i], k, temperature));
        EXPECT_NEAR(found.p0[i][k].item<double>(), pair.p0, 1e-9);
        EXPECT_NEAR(found.p1[i][k].item<double>(), pair.p1, 1e-9);
        const double share = found.merged[i][k].item<double>() / pair.merged();
        EXPECT_NEAR(share,
                    found.merged[i][0].item<double>() /
                        (found.p1[i][0] / (1 - found.p0[i][0] + found.p1[i][0])).item<double>(),
                    1e-9);
      }
    }
    EXPECT_TRUE(found.merged.sum(1).allclose(torch::ones({40}, torch::kDouble)));
    EXPECT_EQ(found.columns().size(1), 3 * classes);
  }
}

TEST(ClassProbabilities, AreTheSoftmaxWhereNoneAreCalibrated) {
  KnownClasses known = known_classes(3, 50);
  known.artifact.chances.clear();
  const ScoredNetwork network(known.artifact.network, known.artifact.method.score, "");
  const ClassChances found = ClassProbabilities(network, known.artifact).of(known.x);
  EXPECT_FALSE(found.calibrated());
  EXPECT_TRUE(found.merged.allclose(torch::softmax(known.x.to(torch::kDouble), 1)));
  EXPECT_EQ(found.columns().size(1), 3);
}

TEST(ClassProbabilities, FilesKeepThem) {
  for (const int64_t classes : {2, 4}) {
    const KnownClasses known = known_classes(classes, 200);
    const Graph graph = artifact_graph(known.artifact);
    const CalibrationArtifact read = artifact_from_graph(graph, "file");
    ASSERT_EQ(read.chances.size(), known.artifact.chances.size());
    for (size_t k = 0; k < read.chances.size(); ++k) {
      EXPECT_EQ(read.chances[k].steps(), known.artifact.chances[k].steps());
    }
    EXPECT_EQ(read.method.score.probabilities, "venn-abers");
    const auto damaged = [&](const torch::Tensor& matrix) {
      Graph other = artifact_graph(known.artifact);
      other.initializers["fcp.probabilities"] = matrix;
      return [other] { artifact_from_graph(other, "file"); };
    };
    const torch::Tensor good = graph.initializers.at("fcp.probabilities");
    EXPECT_THAT(damaged(good.narrow(1, 0, 3).contiguous()),
                ThrowsMessage<Error>(HasSubstr("are damaged")));
    EXPECT_THAT(damaged(good.narrow(0, 1, good.size(0) - 1).contiguous()),
                ThrowsMessage<Error>(HasSubstr("not in order")));
    torch::Tensor second = good.clone();
    second[0][0] = 1;
    EXPECT_THAT(damaged(second), ThrowsMessage<Error>(HasSubstr("not in order")));
  }
}

TEST(ClassProbabilities, SaysWhatHasNone) {
  CalibrationArtifact intervals;
  intervals.network = linear_head(torch::ones({1, 1}), torch::zeros({1}));
  intervals.method.score = ResidualOptions{};
  const ScoredNetwork network(intervals.network, intervals.method.score, "");
  EXPECT_THAT([&] { ClassProbabilities(network, intervals); },
              ThrowsMessage<Error>(HasSubstr("residual gives intervals")));
  KnownClasses other = known_classes(3, 50);
  other.artifact.chances.pop_back();
  const ScoredNetwork three(other.artifact.network, other.artifact.method.score, "");
  EXPECT_THAT([&] { ClassProbabilities(three, other.artifact); },
              ThrowsMessage<Error>(HasSubstr("are of 2 classes, its network answers 3")));
  EXPECT_THAT([] { fit_chances({}, {}); }, ThrowsMessage<Error>(HasSubstr("need rows")));
}

}  // namespace
}  // namespace fcp
