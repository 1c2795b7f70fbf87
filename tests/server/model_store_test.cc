#include "apps/server/model_store.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/served_files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelStoreTest : public ::testing::Test {
 protected:
  CalibrationArtifact line(const std::string& version, size_t rows = 99) const {
    CalibrationArtifact artifact = testing::line_artifact(testing::line_rows(rows, 1));
    artifact.provenance["version"] = version;
    return artifact;
  }

  void write(const CalibrationArtifact& artifact) const { write_artifact(artifact, path_); }

  // "name: version" or "name: what is wrong" of each file that was loaded.
  static std::vector<std::string> reload(ModelStore& models, bool at_once = false) {
    std::vector<std::string> heard;
    const auto hear = [&](const Reloaded& one) {
      heard.push_back(one.name + ": " + (one.model ? one.model->version() : one.error));
    };
    models.reload(hear, at_once);
    if (!at_once) models.reload(hear);  // sees that the file stays
    return heard;
  }

  Folder folder_;
  std::string path_ = folder_.path("line.onnx");
};

TEST_F(ModelStoreTest, TakesNewVersionsAndKeepsTheOneBefore) {
  write(line("1"));
  ModelStore models({path_, "other=" + path_}, torch::kCPU, {});
  EXPECT_THAT(models.names(), ElementsAre("line", "other"));
  EXPECT_EQ(models.find("line", "2"), nullptr);
  EXPECT_EQ(models.find("nobody"), nullptr);
  EXPECT_EQ(models.find("line", "x"), nullptr);
  EXPECT_TRUE(reload(models).empty());
  const auto old = models.find("line");
  write(line("2"));
  EXPECT_THAT(reload(models), ElementsAre("line: 2", "other: 2"));
  EXPECT_THAT(models.versions("line"), ElementsAre("1", "2"));
  EXPECT_EQ(models.find("line")->model()->version(), "2");
  EXPECT_EQ(models.find("line", "1"), old);
  write(line("3"));
  reload(models);
  EXPECT_THAT(models.versions("line"), ElementsAre("2", "3"));
  folder_.write("line.onnx", "not a network");
  EXPECT_THAT(reload(models).at(0), HasSubstr("line.onnx"));
  EXPECT_EQ(models.find("line")->model()->version(), "3");
}

// A file that is put back is what is served, though its version is the lower one.
TEST_F(ModelStoreTest, RollsBackWhereTheFileIsPutBack) {
  write(line("1"));
  ModelStore models({path_}, torch::kCPU, {});
  const auto first = models.find("line");
  std::filesystem::copy_file(path_, folder_.path("kept.onnx"));
  write(line("2"));
  reload(models);
  EXPECT_EQ(models.find("line")->model()->version(), "2");
  std::filesystem::rename(folder_.path("kept.onnx"), path_);
  EXPECT_THAT(reload(models), ElementsAre("line: 1"));
  EXPECT_EQ(models.find("line"), first);  // which was never away
  EXPECT_THAT(models.versions("line"), ElementsAre("1", "2"));
  write(line("3"));
  reload(models);
  EXPECT_EQ(models.find("line")->model()->version(), "3");
  EXPECT_THAT(models.versions("line"), ElementsAre("1", "3"));
}

TEST_F(ModelStoreTest, TakesOtherNumbersUnderTheSameVersion) {
  write(line("1"));
  ModelStore models({path_}, torch::kCPU, {});
  const std::string before = models.find("line")->model()->sha256();
  write(line("1", 199));
  EXPECT_THAT(reload(models), ElementsAre("line: 1"));
  EXPECT_NE(models.find("line")->model()->sha256(), before);
  std::filesystem::copy_file(path_, folder_.path("same.onnx"));
  std::filesystem::rename(folder_.path("same.onnx"), path_);
  EXPECT_TRUE(reload(models).empty());  // the same bytes
}

TEST_F(ModelStoreTest, RefusesAnotherTaskUnderTheSameVersion) {
  write(line("1"));
  ModelStore models({path_}, torch::kCPU, {});
  const auto served = models.find("line");
  CalibrationArtifact other = testing::class_artifact(testing::class_rows(99, 1));
  write(other);
  const std::string refusal = "line: " + path_ +
                              ": is version 1 of 'line' like the one that is served, but its task "
                              "is classification instead of regression; serve it under another "
                              "name";
  EXPECT_THAT(reload(models), ElementsAre(refusal));
  EXPECT_EQ(models.find("line"), served);
  EXPECT_TRUE(reload(models).empty());                                  // it is said once,
  EXPECT_THAT(reload(models, /*at_once=*/true), ElementsAre(refusal));  // or when one asks
  other.provenance["version"] = "2";
  write(other);
  EXPECT_THAT(reload(models), ElementsAre("line: 2"));
}

TEST_F(ModelStoreTest, RefusesOtherInputsUnderTheSameVersion) {
  write(line("1"));
  ModelStore models({path_}, torch::kCPU, {});
  CalibrationArtifact other = line("1");
  for (Node& node : other.network.nodes) {
    for (std::string& input : node.inputs) {
      if (input == other.network.inputs[0].name) input = "renamed";
    }
  }
  other.network.inputs[0].name = "renamed";
  write(other);
  EXPECT_THAT(reload(models), ElementsAre(HasSubstr("its inputs have other names or shapes")));
}

TEST_F(ModelStoreTest, RefusesAVersionThatAnotherFileHas) {
  write(line("1"));
  write_artifact(line("2"), folder_.path("second.onnx"));
  ModelStore models({path_, "line=" + folder_.path("second.onnx")}, torch::kCPU, {});
  EXPECT_EQ(models.find("line")->model()->version(), "2");
  write(line("2"));
  EXPECT_THAT(reload(models), ElementsAre(HasSubstr("and so is another file")));
  EXPECT_THAT(models.versions("line"), ElementsAre("1", "2"));
}

}  // namespace
}  // namespace fcp
