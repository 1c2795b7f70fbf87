#include "fcp/calibration/artifact.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibration/artifact_settings.h"
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
CalibrationArtifact made_up() {
  torch::manual_seed(1);
  CalibrationArtifact artifact;
  artifact.network = make_mlp({3, 4, 2});
  artifact.network.metadata["author"] = "somebody";
  artifact.cut = "h1";
  ScoreOptions& score = artifact.score;
  score.name = "surrogate";
  score.output = "y";
  score.normalize = "spread";
  score.low = "bottom";
  score.high = "top";
  score.asymmetric = true;
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
  score.pixels = 0.99;
  score.double_log = true;
  artifact.calibration.group = "region";
  artifact.calibration.bandwidth = 1.0 / 7;
  artifact.calibration.seed = 0xfedcba9876543210u;
  artifact.calibration.paper = true;
  CalibrationScores& rows = artifact.rows;
  rows.sides = 2;
  rows.scores = {0, -1e-300, 0.1, 0.1, 2, kEndless};
  rows.groups = {1, 0, 1};
  rows.group_names = {"north \"1\"", "south"};
  rows.weights = {0.25, 0, 1e300};
  rows.features = torch::randn({3, 4});
  artifact.ratio = {torch::randn({5}, torch::kDouble), torch::rand({5}, torch::kDouble) + 1,
                    torch::randn({6}, torch::kDouble)};
  artifact.baseline = {-0.5, 1.0 / 3 + 1};
  artifact.provenance = {{"data", "rows \"a\".csv"}, {"rows", "6"}};
  return artifact;
}

void expect_same(const ScoreOptions& a, const ScoreOptions& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.normalize, b.normalize);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_EQ(a.asymmetric, b.asymmetric);
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
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_EQ(a.double_log, b.double_log);
  EXPECT_EQ(a.spread, b.spread);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.tail, b.tail);
  EXPECT_EQ(a.level_set, b.level_set);
  EXPECT_EQ(a.rectifier, b.rectifier);
}

void expect_same(const CalibrationOptions& a, const CalibrationOptions& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.bandwidth, b.bandwidth);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.paper, b.paper);
}

void expect_same(const CalibrationScores& a, const CalibrationScores& b) {
  EXPECT_EQ(a.sides, b.sides);
  EXPECT_EQ(a.scores, b.scores);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.group_names, b.group_names);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_TRUE(torch::equal(a.features, b.features));
}

class CalibratedOfKind : public testing::TestWithParam<const char*> {};

// Everything, whichever calibration asks for it.
TEST_P(CalibratedOfKind, ComesBackFromItsFile) {
  const Folder folder;
  CalibrationArtifact before = made_up();
  before.calibration.name = GetParam();
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  EXPECT_EQ(after.cut, before.cut);
  EXPECT_EQ(after.baseline, before.baseline);
  EXPECT_EQ(after.provenance, before.provenance);
  expect_same(after.score, before.score);
  expect_same(after.calibration, before.calibration);
  expect_same(after.rows, before.rows);
  ASSERT_TRUE(after.ratio.defined());
  EXPECT_TRUE(torch::equal(after.ratio.mean, before.ratio.mean));
  EXPECT_TRUE(torch::equal(after.ratio.deviation, before.ratio.deviation));
  EXPECT_TRUE(torch::equal(after.ratio.slope, before.ratio.slope));
  // Nothing of the calibration is left in the network itself.
  EXPECT_EQ(serialize_onnx(after.network), serialize_onnx(before.network));
  // Writing what was read gives the same file.
  EXPECT_EQ(serialize_onnx(artifact_graph(after)), read_file(folder.path("c.onnx")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CalibratedOfKind,
                         testing::Values("split", "grouped", "localized", "weighted"));

CalibrationArtifact crossed() {
  CalibrationArtifact artifact;
  artifact.network = made_up().network;
  artifact.score.name = kCrossScore;
  artifact.calibration.name = kCrossScore;
  artifact.calibration.folds = 2;
  artifact.rows.scores = {1, 2, 3, 4};
  return artifact;
}

TEST(CalibrationArtifact, FoldsOfCrossComeBack) {
  const Folder folder;
  const CalibrationArtifact before = crossed();
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  expect_same(after.score, before.score);
  expect_same(after.calibration, before.calibration);
  EXPECT_EQ(after.calibration.folds, 2u);
  EXPECT_EQ(after.rows.scores, before.rows.scores);
  EXPECT_TRUE(after.radius(Level(0.5)).empty());
  EXPECT_EQ(serialize_onnx(artifact_graph(after)), read_file(folder.path("c.onnx")));
}

TEST(CalibrationArtifact, CrossIsRefusedWhereRanksOrFoldsDoNotFit) {
  const auto complaint = [](const CalibrationArtifact& artifact) -> std::string {
    try {
      artifact_from_graph(artifact_graph(artifact), "c.onnx");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(crossed()), "");
  CalibrationArtifact artifact = crossed();
  artifact.rows.scores[1] = 2.5;
  EXPECT_EQ(complaint(artifact),
            "c.onnx: the scores of cross calibration are not the ranks of its rows");
  artifact = crossed();
  artifact.calibration.folds = 3;
  EXPECT_EQ(complaint(artifact),
            "c.onnx: cross calibration has 4 rows in 3 folds, expected at least 2 of equal size");
  artifact.calibration.folds = 0;  // then it is not written
  EXPECT_EQ(complaint(artifact), "c.onnx: its number of folds is missing or not a number");
}

TEST(CalibrationArtifact, OptionsOfHeadsAreKeptWhereTheyAreSet) {
  CalibrationArtifact artifact = made_up();
  artifact.calibration.name = "split";
  for (const char* name : {"level_set", "tail", "quantiles", "rectifier"}) {
    EXPECT_EQ(settings_text(artifact).find(name), std::string::npos) << "files stay what they were";
  }
  ScoreOptions& score = artifact.score;
  score.spread = "sigma";
  score.quantiles = "grid";
  score.tail = 0.07;
  score.level_set = true;
  for (const char* name : {"spread", "quantiles", "density"}) {
    score.name = name;
    CalibrationArtifact read;
    read_settings(settings_text(artifact), read);
    expect_same(score, read.score);
  }
  score.name = "residual";
  score.rectifier = "rho";
  CalibrationArtifact read;
  read_settings(settings_text(artifact), read);
  expect_same(score, read.score);
}

TEST(CalibrationArtifact, DefaultsAndEmptyListsComeBack) {
  const Folder folder;
  CalibrationArtifact before;
  before.network = make_mlp({2, 1});
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  EXPECT_EQ(after.rows.count(), 0u);
  EXPECT_EQ(after.rows.sides, 1);
  EXPECT_TRUE(after.rows.groups.empty());
  EXPECT_TRUE(after.rows.weights.empty());
  EXPECT_FALSE(after.rows.features.defined());
  EXPECT_FALSE(after.ratio.defined());
  EXPECT_TRUE(after.baseline.empty());
  EXPECT_EQ(after.calibration.name, "split");
  EXPECT_TRUE(after.provenance.empty());
  EXPECT_TRUE(after.cut.empty());
  EXPECT_EQ(after.score.name, "nested");
  EXPECT_EQ(after.score.bound.method, BoundMethod::kIbp);
  EXPECT_FALSE(after.score.bound.outward);
  EXPECT_THAT(after.radius(Level(0.1)), ElementsAre(kEndless));
}

TEST(CalibrationArtifact, FileIsStillTheNetwork) {
  const Folder folder;
  const CalibrationArtifact artifact = made_up();
  write_artifact(artifact, folder.path("c.onnx"));
  const torch::Tensor x = torch::randn({5, 3});
  const torch::Tensor expected = Network(artifact.network).forward(x);
  EXPECT_TRUE(torch::equal(Network(read_onnx(folder.path("c.onnx"))).forward(x), expected));
}

TEST(CalibrationArtifact, RadiusIsTheScoreOfTheRank) {
  CalibrationArtifact artifact;
  for (int i = 1; i <= 19; ++i) artifact.rows.scores.push_back(i);
  EXPECT_THAT(artifact.radius(Level(0.1)), ElementsAre(18));
  EXPECT_THAT(artifact.radius(Level(0.05)), ElementsAre(19));
  EXPECT_THAT(artifact.radius(Level(0.5)), ElementsAre(10));
  EXPECT_THAT(artifact.radius(Level(0.04)), ElementsAre(kEndless));
  artifact.calibration.paper = true;  // clamps the rank
  EXPECT_THAT(artifact.radius(Level(0.1)), ElementsAre(18));
  EXPECT_THAT(artifact.radius(Level(0.04)), ElementsAre(19));
}

TEST(CalibrationArtifact, RadiusIsOneASideAndOnlyWhereAllRowsShareIt) {
  CalibrationArtifact artifact;
  artifact.rows.sides = 2;
  for (int i = 1; i <= 19; ++i) {
    artifact.rows.scores.insert(artifact.rows.scores.end(), {1.0 * i, -10.0 * i});
  }
  EXPECT_THAT(artifact.radius(Level(0.1)), ElementsAre(19, -10));
  EXPECT_THAT(artifact.radius(Level(0.2)), ElementsAre(18, -20));
  artifact.calibration.name = "weighted";
  artifact.rows.weights.assign(19, 1);
  EXPECT_THAT(artifact.radius(Level(0.2)), testing::IsEmpty());
}

// The message on a file after `damage` to the artifact.
template <typename Damage>
std::string complaint_about(Damage damage, const std::string& kind = "split") {
  const Folder folder;
  CalibrationArtifact artifact = made_up();
  artifact.calibration.name = kind;
  Graph graph = artifact_graph(artifact);
  damage(graph);
  write_onnx(graph, folder.path("c.onnx"));
  return message_of(folder, [&] { read_artifact(folder.path("c.onnx")); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CalibrationArtifact, SaysWhatIsDamaged) {
  const std::string settings = "fcp.calibration";
  EXPECT_EQ(complaint_about([](Graph&) {}), "");
  EXPECT_EQ(complaint_about([&](Graph& graph) { graph.metadata.erase(settings); }),
            "c.onnx: is a network without calibration; run `fcp calibrate` on it first");
  EXPECT_EQ(complaint_about([](Graph& graph) { graph.initializers.erase("fcp.scores"); }),
            "c.onnx: its calibration has no 'fcp.scores'");
  const auto with_scores = [](const torch::Tensor& scores) {
    return complaint_about([&](Graph& graph) { graph.initializers["fcp.scores"] = scores; });
  };
  const char* const misshapen =
      "c.onnx: its 'fcp.scores' is not of the type and shape that a calibration has";
  EXPECT_EQ(with_scores(torch::full({1, 1}, std::nan(""), torch::kDouble)),
            "c.onnx: one of its scores is not a number");
  EXPECT_EQ(with_scores(torch::ones({2, 1})), misshapen);
  EXPECT_EQ(with_scores(torch::zeros({4}, torch::kDouble)), misshapen);
  EXPECT_EQ(with_scores(torch::zeros({4, 0}, torch::kDouble)), "c.onnx: its scores have no sides");
  EXPECT_EQ(complaint_about([](Graph& graph) {
              graph.initializers["fcp.baseline"] = torch::tensor({2.0, 1.0}, torch::kDouble);
            }),
            "c.onnx: the scores of its baseline are not in order");
  EXPECT_EQ(complaint_about([](Graph& graph) {
              graph.initializers["fcp.ratio"] = torch::zeros({2, 6}, torch::kDouble);
            }),
            "c.onnx: its likelihood ratio is damaged");
  const auto edited = [&](const std::string& from, const std::string& to) {
    return complaint_about([&](Graph& graph) {
      graph.metadata[settings] = replaced(graph.metadata[settings], from, to);
    });
  };
  EXPECT_EQ(edited("{", ""), "c.onnx: its calibration settings are damaged");
  EXPECT_EQ(edited("\"cut\":\"h1\",", ""), "c.onnx: its calibration settings have no 'cut'");
  EXPECT_EQ(edited("39", "\"many\""),
            "c.onnx: its 'steps' is \"many\", expected a whole number from 1 to 2147483647");
  EXPECT_EQ(edited("39", "1e99"),
            "c.onnx: its 'steps' is 1e+99, expected a whole number from 1 to 2147483647");
  EXPECT_EQ(edited("39", "-39"),
            "c.onnx: its 'steps' is -39, expected a whole number from 1 to 2147483647");
  EXPECT_EQ(edited("\"format\":2", "\"format\":1"),
            "c.onnx: its calibration has format 1, this fcp reads formats 2 and 3");
  EXPECT_EQ(edited("\"name\":\"split\"", "\"name\":\"spilt\""),
            "c.onnx: its 'name' is \"spilt\", expected split, grouped, localized, weighted, "
            "rectified or cross");
  EXPECT_EQ(edited("alpha-crown", "omega"),
            "c.onnx: its 'bound' is \"omega\", expected ibp, crown-ibp, crown or alpha-crown");
  EXPECT_EQ(edited("\"norm\":\"2\"", "\"norm\":\"3\""),
            "c.onnx: its 'norm' is \"3\", expected inf, 2 or 1");
  EXPECT_EQ(complaint_about([](Graph& graph) { graph.metadata["fcp.provenance"] = "[1"; }),
            "c.onnx: its calibration settings are damaged");
}

// Each kind of calibration misses what it needs.
TEST(CalibrationArtifact, SaysWhatAKindMisses) {
  const auto without = [](const char* kind, const char* name) {
    return complaint_about([&](Graph& graph) { graph.initializers.erase(name); }, kind);
  };
  for (const char* kind : {"grouped", "localized", "weighted"}) {
    EXPECT_EQ(without(kind, "fcp.baseline"), "") << kind;
  }
  EXPECT_EQ(without("grouped", "fcp.groups"),
            "c.onnx: grouped calibration found 0 groups for 3 rows");
  EXPECT_EQ(without("weighted", "fcp.weights"),
            "c.onnx: weighted calibration found 0 weights for 3 rows");
  EXPECT_EQ(without("localized", "fcp.features"),
            "c.onnx: localized calibration needs the features of its rows");
  const auto replaced_by = [](const char* kind, const char* name, const torch::Tensor& tensor) {
    return complaint_about([&](Graph& graph) { graph.initializers[name] = tensor; }, kind);
  };
  EXPECT_EQ(replaced_by("localized", "fcp.features", torch::zeros({2, 4})),
            "c.onnx: localized calibration found 2 features for 3 rows");
  EXPECT_EQ(replaced_by("grouped", "fcp.groups", torch::full({3}, 2, torch::kLong)),
            "c.onnx: group 2 is not one of the 2 groups");
  EXPECT_EQ(replaced_by("weighted", "fcp.weights", torch::full({3}, -1.0, torch::kDouble)),
            "c.onnx: weight of row 0 is -1; expected a finite number, not negative");
}

// Cut short anywhere, the file is refused in one line; never read as something else.
TEST(CalibrationArtifact, RefusesATruncatedFile) {
  const Folder folder;
  write_artifact(made_up(), folder.path("c.onnx"));
  const std::string bytes = read_file(folder.path("c.onnx"));
  for (size_t size = 0; size < bytes.size(); size += 7) {
    folder.write("short.onnx", bytes.substr(0, size));
    const std::string message =
        message_of(folder, [&] { read_artifact(folder.path("short.onnx")); });
    EXPECT_THAT(message, testing::StartsWith("short.onnx: ")) << size;
    EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n"))) << size;
  }
  EXPECT_EQ(message_of(folder, [&] { read_artifact(folder.path("absent.onnx")); }),
            "absent.onnx: no such file");
}

}  // namespace
}  // namespace fcp
