#include "apps/server/served_model.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/nn/runtime/network.h"

#include "tests/nn/graphs.h"
#include "tests/server/served_files.h"

namespace fcp {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::judged;
using testing::line_artifact;
using testing::line_row;
using testing::line_rows;
using testing::row_of;
using testing::served_classes;
using testing::served_line;

TensorRequest request_of(std::vector<int64_t> shape, std::vector<double> data,
                         const std::string& name = "x") {
  TensorRequest request;
  request.inputs.push_back({name, std::move(data), std::move(shape)});
  return request;
}

template <typename Work>
std::string served_complaint(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ServedModel, AnswersWithIntervals) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  EXPECT_EQ(model->version(), "1");
  EXPECT_EQ(model->row_size(), 2u);
  EXPECT_EQ(model->outputs(), 1u);
  const double radius = model->artifact().radius(Level(0.1)).at(0);
  TensorRequest request = request_of({2, 2}, {1, 2, 3, 4}, model->inputs()[0].name);
  const auto levels = model->levels("0.1,0.5", Level(0.2));
  ASSERT_EQ(levels.size(), 2u);
  const internal::AnswerData answer = model->answer(model->rows_of(request), levels);
  EXPECT_THAT(floats(answer.points), ElementsAre(0, 2));
  const std::vector<float> wide = floats(answer.host[0].lower);
  EXPECT_NEAR(wide[1], 2 - radius, 1e-5);
  EXPECT_GT(floats(answer.host[1].lower)[0], wide[0]);
  const auto tensors = asked_tensors(model->tensors(answer), request);
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[1].name, "lower_0.1");
  request.outputs = {{"upper_0.5", true}, {"prediction", false}};
  const auto chosen = asked_tensors(model->tensors(answer), request);
  EXPECT_EQ(chosen[0].name, "upper_0.5");
  EXPECT_TRUE(chosen[0].binary);
  request.outputs = {{"nothing", false}};
  EXPECT_THAT(served_complaint([&] { asked_tensors(model->tensors(answer), request); }),
              HasSubstr("no output 'nothing'"));
}

TEST(ServedModel, AnswersWithSets) {
  const Folder folder;
  const auto model = served_classes(folder.path("classes.onnx"));
  ASSERT_GT(model->classes(), 1u);
  const internal::BatchData rows = row_of(std::vector<float>(model->row_size(), 0.5f));
  const internal::AnswerData answer = model->answer(rows, {Level(0.1)});
  EXPECT_EQ(answer.host[0].members.size(1), static_cast<int64_t>(model->classes()));
  EXPECT_EQ(answer.points.numel(), 1);
  const auto tensors = model->tensors(answer);
  EXPECT_EQ(tensors[1].name, "in_set");
  EXPECT_STREQ(datatype_of(tensors[1]), "BOOL");
  EXPECT_THAT(served_complaint([&] { judged(*model, rows, {1e6f}); }),
              HasSubstr("found label 1e+06, expected one of 0 to"));
}

TEST(ServedModel, AddsProbabilitiesAndDistributions) {
  const Folder folder;
  const auto classes = served_classes(folder.path("classes.onnx"));
  const internal::BatchData row = row_of({0.5f, 0.5f, 0.5f, 0.5f});
  TensorRequest request;
  EXPECT_TRUE(classes->added(request, row).empty());
  request.probabilities = true;
  const auto softmax = classes->added(request, row);
  ASSERT_EQ(softmax.size(), 1u);
  EXPECT_EQ(softmax[0].name, "probability");
  EXPECT_THAT(std::get<std::vector<float>>(softmax[0].data),
              ElementsAre(0.25f, 0.25f, 0.25f, 0.25f));
  request.quantiles = {"0.5"};
  EXPECT_THAT(served_complaint([&] { classes->added(request, {}); }), HasSubstr("answers labels"));

  CalibrationArtifact promise = line_artifact(line_rows(99, 1));
  promise.method.score.side = BoundSide::kUpper;
  write_artifact(promise, folder.path("promise.onnx"));
  const ServedModel line("promise", folder.path("promise.onnx"), torch::kCPU);
  TensorRequest asked;
  asked.quantiles = {"0.1", "0.9"};
  asked.above = {"-1000"};
  EXPECT_TRUE(line.added(asked, {}).empty());
  const auto found = line.added(asked, line_row(1, 0));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].name, "quantile_0.9");
  EXPECT_NEAR(std::get<std::vector<float>>(found[1].data).at(0),
              2 + line.artifact().radius(Level(0.1)).at(0), 1e-5);
  EXPECT_EQ(found[2].name, "above_-1000_lower");
  EXPECT_THAT(std::get<std::vector<float>>(found[3].data), ElementsAre(1));
  asked.probabilities = true;
  EXPECT_THAT(served_complaint([&] { line.added(asked, {}); }), HasSubstr("gives intervals"));
}

TEST(ServedModel, JudgesTruths) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  const double radius = model->artifact().radius(Level(0.1)).at(0);
  const ServedTruth near = judged(*model, line_row(1, 0), {2});
  EXPECT_TRUE(near.covered);
  EXPECT_NEAR(near.scores.at(0), 0, 1e-6);
  EXPECT_NEAR(near.size, 2 * radius, 1e-5);
  const ServedTruth far = judged(*model, line_row(1, 0), {200});
  EXPECT_FALSE(far.covered);
  EXPECT_NEAR(far.p_value, 0.01, 1e-9);
  EXPECT_THAT(served_complaint([&] {
                judged(*model, line_row(1, 0), {1, 2});
              }),
              HasSubstr("y: found 2 numbers for 1 rows, expected 1"));
}

// Many at once are judged as each alone.
TEST(ServedModel, JudgesTruthsTogether) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  std::vector<float> x, truth;
  for (int i = 0; i < 50; ++i) {
    x.insert(x.end(), {static_cast<float>(i) / 7, 1});
    truth.push_back(static_cast<float>(i % 11) - 5);
  }
  const std::vector<ServedTruth> all =
      model->judge(model->kept_rows(x, std::vector<int64_t>(50), std::vector<uint64_t>(50)), truth,
                   Level(0.1), Level(0.3));
  ASSERT_EQ(all.size(), 50u);
  for (size_t i = 0; i < all.size(); ++i) {
    const ServedTruth alone =
        model->judge(line_row(x[2 * i], 1), std::vector<float>{truth[i]}, Level(0.1), Level(0.3))
            .at(0);
    EXPECT_EQ(all[i].scores, alone.scores);
    EXPECT_EQ(all[i].p_value, alone.p_value);
    EXPECT_EQ(all[i].covered, alone.covered);
    EXPECT_EQ(all[i].size, alone.size);
    EXPECT_EQ(all[i].answered_size, alone.answered_size);
    EXPECT_LT(alone.answered_size, alone.size);
  }
}

// Where groups are labels, the group of a truth is the truth itself.
TEST(ServedModel, TellsTheGroupOfATruth) {
  const Folder folder;
  CalibrationArtifact artifact = testing::class_artifact(testing::class_rows(99, 1));
  artifact.method.calibration = GroupedOptions{.group = kByLabel};
  const auto plain = served_classes(folder.path("plain.onnx"));
  for (size_t i = 0; i < artifact.rows.scores.size(); ++i) {
    artifact.rows.groups.push_back(static_cast<int64_t>(i % plain->classes()));
  }
  for (const std::string& name : plain->class_names()) artifact.rows.group_names.push_back(name);
  write_artifact(artifact, folder.path("grouped.onnx"));
  const ServedModel model("grouped", folder.path("grouped.onnx"), torch::kCPU);
  const internal::BatchData row = row_of(std::vector<float>(model.row_size(), 0.5f));
  EXPECT_EQ(judged(model, row, {1}).group, 1);
  EXPECT_EQ(judged(*plain, row, {1}).group, 0);
}

TEST(ServedModel, TakesATensorPerInput) {
  const Folder folder;
  CalibrationArtifact artifact = testing::line_artifact(testing::line_rows(99, 1));
  const Graph several = make_several_inputs();
  artifact.network = pack_inputs(several, layout_of(several.inputs, {{3}, {2}, {}}));
  artifact.method.score = ResidualOptions{};
  artifact.method.cut.clear();
  write_artifact(artifact, folder.path("several.onnx"));
  const ServedModel model("several", folder.path("several.onnx"), torch::kCPU);
  ASSERT_EQ(model.inputs().size(), 3u);
  EXPECT_EQ(model.inputs()[0].datatype, "INT64");
  EXPECT_THAT(model.inputs()[0].shape, ElementsAre(-1, 3));
  TensorRequest request;
  request.inputs.push_back({"flag", std::vector<double>{1}, {1}});
  request.inputs.push_back({"ids", std::vector<double>{1, 2, 3}, {1, 3}});
  request.inputs.push_back({"scale", std::vector<double>{0.5, 0.25}, {1, 2}});
  const internal::BatchData rows = model.rows_of(request);
  EXPECT_THAT(floats(rows.x), ElementsAre(1, 2, 3, 0.5f, 0.25f, 1));
  const torch::Tensor expected =
      Network(several).run({torch::tensor({{1, 2, 3}}, torch::kLong),
                            torch::tensor({{0.5f, 0.25f}}), torch::tensor({true})})[0];
  EXPECT_NEAR(floats(model.answer(rows, {Level(0.1)}).points)[0], expected.item<float>(), 1e-5);
  const auto complaint = [&] { return served_complaint([&] { model.rows_of(request); }); };
  request.inputs[1].values = std::vector<double>{1, 2, 3.5};
  EXPECT_THAT(complaint(), HasSubstr("input 'ids': row 0, column 2 (both from 0): found 3.5"));
  request.inputs[1].values = std::vector<double>{1, 2, 16777217};
  const internal::BatchData exact = model.rows_of(request);
  EXPECT_EQ(exact.x[0][2].item<double>(), 16777217);
  EXPECT_THAT(
      served_complaint([&] { model.check_kept(exact); }),
      HasSubstr("row 0 (from 0): found about 1.67772e+07, which has more than the 24 bits"));
  model.check_kept(rows);
  request.inputs[1].values = std::vector<double>{1, 2, 0x1p63};
  EXPECT_THAT(complaint(), HasSubstr("beyond what int64 holds"));
  request.inputs[1].values = std::vector<double>{1, 2, 3};
  request.inputs[2].values = std::vector<double>{1, -1e300};
  EXPECT_THAT(complaint(), HasSubstr("input 'scale': row 0, column 1 (both from 0): found -1e+300, "
                                     "beyond what single precision holds"));
  request.inputs.pop_back();
  EXPECT_THAT(complaint(), HasSubstr("input 'scale' is missing"));
}

TEST(ServedModel, TakesMissingNumbersThatTheNetworkTakes) {
  const Folder folder;
  CalibrationArtifact artifact = line_artifact(line_rows(99, 1));
  Node imputer = make_node("Imputer", {"raw"}, {"x"},
                           {{"imputed_value_floats", std::vector<float>{3, 5}},
                            {"replaced_value_float", std::nanf("")}});
  imputer.domain = "ai.onnx.ml";
  artifact.network.domains["ai.onnx.ml"] = 3;
  artifact.network.nodes.insert(artifact.network.nodes.begin(), imputer);
  artifact.network.inputs[0].name = "raw";
  write_artifact(artifact, folder.path("imputed.onnx"));
  const ServedModel model("imputed", folder.path("imputed.onnx"), torch::kCPU);
  const internal::BatchData rows = model.rows_of(request_of({2, 2}, {NAN, 1, 2, NAN}, "raw"));
  EXPECT_THAT(floats(model.answer(rows, {Level(0.1)}).points), ElementsAre(2 * 3 - 1, 2 * 2 - 5));
}

TEST(ServedModel, SaysWhatIsWrongWithARequest) {
  const Folder folder;
  const auto model = served_line(folder.path("line.onnx"));
  const std::string x = model->inputs()[0].name;
  const auto complaint = [&](const TensorRequest& request) {
    return served_complaint([&] { model->rows_of(request); });
  };
  EXPECT_THAT(complaint(request_of({1, 3}, {1, 2, 3}, x)), HasSubstr("found the shape [1, 3]"));
  EXPECT_THAT(complaint(request_of({0, 2}, {}, x)), HasSubstr("at least one row"));
  EXPECT_THAT(complaint(request_of({1, 2}, {1, NAN}, x)),
              HasSubstr("row 0, column 1 (both from 0): found NaN"));
  EXPECT_THAT(complaint(request_of({1}, {1}, "other")), HasSubstr("expected '" + x + "'"));
  EXPECT_THAT(served_complaint([&] { model->levels("0.1,2", Level(0.1)); }), HasSubstr("2"));
  EXPECT_THAT(served_complaint([&] { model->levels("0.1,", Level(0.1)); }), HasSubstr("number"));
}

}  // namespace
}  // namespace fcp
