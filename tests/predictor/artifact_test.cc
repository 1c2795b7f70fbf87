#include "fcp/predictor/artifact.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/artifact_settings.h"

#include "tests/nn/graphs.h"
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
  artifact.method.cut = "h1";
  const BoundOptions bound = {
      .method = BoundMethod::kAlphaCrown, .iterations = 7, .rate = 1.0 / 3, .outward = true};
  artifact.method.score = ScoreOptions(SurrogateOptions{.norm = Norm::kTwo,
                                                        .bound = bound,
                                                        .steps = 39,
                                                        .step_rate = 0.02,
                                                        .adam = true,
                                                        .paper = true,
                                                        .loss_weights = {0.1, 2}},
                                       {.output = "y", .pixels = 0.99});
  artifact.method.calibration.seed = 0xfedcba9876543210u;
  artifact.method.calibration.paper = true;
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
  before.method.calibration = CalibrationOptions(GetParam(), before.method.calibration);
  if (std::string* group = before.method.calibration.find(field::group)) *group = "region";
  if (double* width = before.method.calibration.find(field::bandwidth)) *width = 1.0 / 7;
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  EXPECT_EQ(after.method.cut, before.method.cut);
  EXPECT_EQ(after.baseline, before.baseline);
  EXPECT_EQ(after.provenance, before.provenance);
  EXPECT_EQ(after.method, before.method);
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
  artifact.method.score = CrossOptions{};
  artifact.method.calibration = CrossFoldOptions{.folds = 2};
  artifact.rows.scores = {1, 2, 3, 4};
  return artifact;
}

TEST(CalibrationArtifact, FoldsOfCrossComeBack) {
  const Folder folder;
  const CalibrationArtifact before = crossed();
  write_artifact(before, folder.path("c.onnx"));
  const CalibrationArtifact after = read_artifact(folder.path("c.onnx"));
  EXPECT_EQ(after.method, before.method);
  EXPECT_EQ(after.method.calibration.value(field::folds), 2u);
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
  artifact.method.calibration.set(field::folds, 3);
  EXPECT_EQ(complaint(artifact),
            "c.onnx: cross calibration has 4 rows in 3 folds, expected at least 2 of equal size");
  artifact.method.calibration.set(field::folds, 0);  // then it is not written
  EXPECT_EQ(complaint(artifact), "c.onnx: its number of folds is missing or not a number");
}

TEST(CalibrationArtifact, OptionsOfHeadsAreKeptWhereTheyAreSet) {
  CalibrationArtifact artifact = made_up();
  artifact.method.calibration = SplitOptions{};
  for (const char* name : {"level_set", "tail", "quantiles", "rectifier"}) {
    EXPECT_EQ(settings_text(artifact).find(name), std::string::npos) << "files stay what they were";
  }
  const std::vector<ScoreOptions> scores = {SpreadOptions{.spread = "sigma"},
                                            QuantilesOptions{.quantiles = "grid", .tail = 0.07},
                                            DensityOptions{.quantiles = "grid", .level_set = true},
                                            ScoreOptions(ResidualOptions{}, {.rectifier = "rho"})};
  for (const ScoreOptions& score : scores) {
    artifact.method.score = score;
    CalibrationArtifact read;
    read_settings(settings_text(artifact), read);
    EXPECT_EQ(read.method, artifact.method) << read.method << " is not " << artifact.method;
  }
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
  EXPECT_EQ(after.method.calibration.name(), "split");
  EXPECT_TRUE(after.provenance.empty());
  EXPECT_TRUE(after.method.cut.empty());
  EXPECT_EQ(after.method.score.name(), "nested");
  EXPECT_EQ(after.method.score.find(field::bound)->method, BoundMethod::kIbp);
  EXPECT_FALSE(after.method.score.find(field::bound)->outward);
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
  artifact.method.calibration.paper = true;  // clamps the rank
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
  artifact.method.calibration = WeightedOptions{};
  artifact.rows.weights.assign(19, 1);
  EXPECT_THAT(artifact.radius(Level(0.2)), testing::IsEmpty());
}

// The message on a file after `damage` to the artifact.
template <typename Damage>
std::string complaint_about(Damage damage, const std::string& kind = "split") {
  const Folder folder;
  CalibrationArtifact artifact = made_up();
  artifact.method.calibration = CalibrationOptions(kind);
  if (double* width = artifact.method.calibration.find(field::bandwidth)) *width = 1.0 / 7;
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
