#include "fcp/calibration/calibrated.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/network/network.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"

#include "tests/network/graphs.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using testing::ElementsAre;

constexpr double kEndless = std::numeric_limits<double>::infinity();

// Every option away from its default.
Calibrated made_up() {
  torch::manual_seed(1);
  Calibrated calibrated;
  calibrated.network = make_mlp({3, 4, 2});
  calibrated.network.metadata["author"] = "somebody";
  calibrated.cut = "h1";
  ScoreOptions& score = calibrated.score;
  score.name = "surrogate";
  score.output = "y";
  score.normalize = "spread";
  score.norm = Norm::kTwo;
  score.bound.method = BoundMethod::kAlphaCrown;
  score.bound.iterations = 7;
  score.bound.rate = 1.0 / 3;
  score.bound.outward = true;
  score.floor = 0.1;
  score.slope = 1.7e-9;
  score.steps = 39;
  score.step_rate = 0.02;
  score.adam = true;
  score.paper = true;
  score.loss_weights = {0.1, 2};
  calibrated.scores = {0, 1e-300, 0.1, 0.1, 2, kEndless};
  calibrated.residuals = {0.5, 1.0 / 3 + 1};
  calibrated.provenance = {{"data", "rows \"a\".csv"}, {"rows", "6"}};
  return calibrated;
}

TEST(Calibrated, ComesBackFromItsFile) {
  const Folder folder;
  const Calibrated before = made_up();
  write_calibrated(before, folder.path("c.onnx"));
  const Calibrated after = read_calibrated(folder.path("c.onnx"));
  EXPECT_EQ(after.cut, before.cut);
  EXPECT_EQ(after.scores, before.scores);
  EXPECT_EQ(after.residuals, before.residuals);
  EXPECT_EQ(after.provenance, before.provenance);
  const ScoreOptions& a = after.score;
  const ScoreOptions& b = before.score;
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.normalize, b.normalize);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.bound.method, b.bound.method);
  EXPECT_EQ(a.bound.iterations, b.bound.iterations);
  EXPECT_EQ(a.bound.rate, b.bound.rate);
  EXPECT_EQ(a.bound.outward, b.bound.outward);
  EXPECT_EQ(a.floor, b.floor);
  EXPECT_EQ(a.slope, b.slope);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.step_rate, b.step_rate);
  EXPECT_EQ(a.adam, b.adam);
  EXPECT_EQ(a.paper, b.paper);
  EXPECT_EQ(a.loss_weights, b.loss_weights);
  // Nothing of the calibration is left in the network itself.
  EXPECT_EQ(serialize_onnx(after.network), serialize_onnx(before.network));
  // Writing what was read gives the same file.
  EXPECT_EQ(serialize_onnx(to_artefact(after)), read_file(folder.path("c.onnx")));
}

TEST(Calibrated, DefaultsAndEmptyListsComeBack) {
  const Folder folder;
  Calibrated before;
  before.network = make_mlp({2, 1});
  write_calibrated(before, folder.path("c.onnx"));
  const Calibrated after = read_calibrated(folder.path("c.onnx"));
  EXPECT_TRUE(after.scores.empty());
  EXPECT_TRUE(after.residuals.empty());
  EXPECT_TRUE(after.provenance.empty());
  EXPECT_TRUE(after.cut.empty());
  EXPECT_EQ(after.score.name, "nested");
  EXPECT_EQ(after.score.bound.method, BoundMethod::kIbp);
  EXPECT_FALSE(after.score.bound.outward);
  EXPECT_EQ(after.radius(Level(0.1)), kEndless);
}

TEST(Calibrated, FileIsStillTheNetwork) {
  const Folder folder;
  const Calibrated calibrated = made_up();
  write_calibrated(calibrated, folder.path("c.onnx"));
  const torch::Tensor x = torch::randn({5, 3});
  const torch::Tensor expected = Network(calibrated.network).forward(x);
  EXPECT_TRUE(torch::equal(Network(read_onnx(folder.path("c.onnx"))).forward(x), expected));
}

TEST(Calibrated, RadiusIsTheScoreOfTheRank) {
  Calibrated calibrated;
  for (int i = 1; i <= 19; ++i) calibrated.scores.push_back(i);
  EXPECT_EQ(calibrated.radius(Level(0.1)), 18);
  EXPECT_EQ(calibrated.radius(Level(0.05)), 19);
  EXPECT_EQ(calibrated.radius(Level(0.5)), 10);
  EXPECT_EQ(calibrated.radius(Level(0.04)), kEndless);
  calibrated.score.paper = true;  // clamps the rank
  EXPECT_EQ(calibrated.radius(Level(0.1)), 18);
  EXPECT_EQ(calibrated.radius(Level(0.04)), 19);
}

// The message on a file after `damage` to the artefact.
template <typename Damage>
std::string complaint_about(Damage damage) {
  const Folder folder;
  Graph graph = to_artefact(made_up());
  damage(graph);
  write_onnx(graph, folder.path("c.onnx"));
  return message_of(folder, [&] { read_calibrated(folder.path("c.onnx")); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Calibrated, SaysWhatIsDamaged) {
  const std::string settings = "fcp.calibration";
  EXPECT_EQ(complaint_about([](Graph&) {}), "");
  EXPECT_EQ(complaint_about([&](Graph& graph) { graph.metadata.erase(settings); }),
            "c.onnx: is a network without calibration; run `fcp calibrate` on it first");
  EXPECT_EQ(complaint_about([](Graph& graph) { graph.initializers.erase("fcp.scores"); }),
            "c.onnx: its calibration has no 'fcp.scores'");
  EXPECT_EQ(complaint_about([](Graph& graph) { graph.initializers.erase("fcp.residuals"); }),
            "c.onnx: its calibration has no 'fcp.residuals'");
  const auto with_scores = [](const torch::Tensor& scores) {
    return complaint_about([&](Graph& graph) { graph.initializers["fcp.scores"] = scores; });
  };
  EXPECT_EQ(with_scores(torch::tensor({2.0, 1.0}, torch::kDouble)),
            "c.onnx: its scores are not in order");
  EXPECT_EQ(with_scores(torch::tensor({std::nan("")}, torch::kDouble)),
            "c.onnx: its scores are not in order");
  EXPECT_EQ(with_scores(torch::tensor({1.0f, 2.0f})),
            "c.onnx: its scores must be doubles in one dimension");
  EXPECT_EQ(with_scores(torch::zeros({2, 2}, torch::kDouble)),
            "c.onnx: its scores must be doubles in one dimension");
  const auto edited = [&](const std::string& from, const std::string& to) {
    return complaint_about([&](Graph& graph) {
      graph.metadata[settings] = replaced(graph.metadata[settings], from, to);
    });
  };
  EXPECT_EQ(edited("{", ""), "c.onnx: its calibration settings are damaged");
  EXPECT_EQ(edited("\"cut\":\"h1\",", ""), "c.onnx: its calibration settings are damaged");
  EXPECT_EQ(edited("39", "\"many\""), "c.onnx: its calibration settings are damaged");
  EXPECT_EQ(edited("\"format\":1", "\"format\":2"),
            "c.onnx: its calibration has format 2, this fcp reads format 1");
  EXPECT_EQ(edited("alpha-crown", "omega"),
            "c.onnx: bound 'omega' is not known, expected ibp, crown-ibp, crown or alpha-crown");
  EXPECT_EQ(edited("\"norm\":\"2\"", "\"norm\":\"3\""),
            "c.onnx: norm '3' is not known, expected inf, 2 or 1");
  EXPECT_EQ(complaint_about([](Graph& graph) { graph.metadata["fcp.provenance"] = "[1"; }),
            "c.onnx: its calibration settings are damaged");
}

// Cut short anywhere, the file is refused in one line; never read as something else.
TEST(Calibrated, RefusesATruncatedFile) {
  const Folder folder;
  write_calibrated(made_up(), folder.path("c.onnx"));
  const std::string bytes = read_file(folder.path("c.onnx"));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    folder.write("short.onnx", bytes.substr(0, size));
    const std::string message =
        message_of(folder, [&] { read_calibrated(folder.path("short.onnx")); });
    EXPECT_THAT(message, testing::StartsWith("short.onnx: ")) << size;
    EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n"))) << size;
  }
  EXPECT_EQ(message_of(folder, [&] { read_calibrated(folder.path("absent.onnx")); }),
            "absent.onnx: no such file");
}

}  // namespace
}  // namespace fcp
