#include "fcp/predictor/segmentation_task.h"

#include <limits>

#include <gmock/gmock.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/calibrate.h"
#include "fcp/data/images/scenes.h"
#include "fcp/data/images/segmentation.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/predict.h"
#include "fcp/predictor/region_writer.h"

#include "tests/nn/graphs.h"
#include "tests/support/files.h"
#include "tests/support/thread_ranks.h"

namespace fcp {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr int kHeight = 16, kWidth = 24;

// Images [N, 3, 16, 24] to a number for each class and pixel, by two layers.
Graph segmenter(int64_t height = kHeight) {
  torch::manual_seed(1);
  Graph graph = make_conv_head(3, 4, 3, 1);
  graph.initializers["w2"] = torch::randn({kSceneClasses, 4, 1, 1});
  graph.inputs = {make_info("x", {kDynamic, 3, height, kWidth})};
  graph.outputs = {make_info("y", {kDynamic, kSceneClasses, height, kWidth})};
  return graph;
}

class SegmentationRowsTest : public ::testing::Test {
 protected:
  SegmentationRowsTest() : network_(segmenter()) {
    write_scenes(folder_.path("streets"), 3, {2, 9, 3}, {.height = kHeight, .width = kWidth});
    task_ = prepare_network(network_, {}, kSceneClasses);
  }

  SegmentationSet open(const std::string& fold = "calibration") const {
    return open_labelled({.data = folder_.path("streets"), .folds = {}}, fold, kSceneClasses);
  }

  SegmentationRows rows(SegmentParts parts) const { return {open(), task_, parts}; }

  Folder folder_;
  Graph network_;
  SegmentTask task_;
};

TEST_F(SegmentationRowsTest, ChannelOfClassZeroIsCutOff) {
  EXPECT_EQ(task_.channels(), kSceneClasses - 1);
  EXPECT_EQ(network_.outputs[0].shape[1], kSceneClasses - 1);
  const SegmentTask parsed = parse_task(network_, "net.onnx");
  EXPECT_EQ(parsed.classes, task_.classes);
  EXPECT_EQ(parsed.first, 1);
  EXPECT_THROW(parse_task(segmenter(), "net.onnx"), Error);
  Graph kept = segmenter();
  EXPECT_EQ(prepare_network(kept, {.keep_unlabelled = true}, kSceneClasses).channels(),
            int{kSceneClasses});
}

TEST_F(SegmentationRowsTest, OneImageIsOneRow) {
  const int64_t pixels = kHeight * kWidth;
  SegmentationRows bands = rows(SegmentParts::kTargetAndWeights);
  EXPECT_EQ(bands.size(), 9u);
  EXPECT_EQ(bands.usual_batch(), 1u);
  EXPECT_EQ(Context{}.batch_for(bands), 1u);
  EXPECT_EQ(bands.target_count(), static_cast<size_t>(pixels * task_.channels()));
  const SegmentationSet set = open();
  Rows row;
  for (size_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(bands.next(1, row));
    EXPECT_EQ(row.first_row, i);
    EXPECT_EQ(row.x.shape, (std::vector<int64_t>{1, 3, kHeight, kWidth}));
    EXPECT_EQ(row.y.shape, (std::vector<int64_t>{1, pixels * task_.channels()}));
    const Array target =
        segmentation_target(read_segmentation(set, i).labels, {.classes = kSceneClasses});
    EXPECT_EQ(row.y.values, target.values);
    ASSERT_THAT(row.images, SizeIs(1));
    EXPECT_EQ(row.images[0]->name, set.pairs[i].name);
    EXPECT_THAT(row.images[0]->weights, SizeIs(row.y.values.size()));
    EXPECT_EQ(row.name(0), set.pairs[i].name);
    EXPECT_EQ(row.place(0), set.pairs[i].image);
  }
  EXPECT_FALSE(bands.next(1, row));
  SegmentationRows labels = rows(SegmentParts::kLabels);
  ASSERT_TRUE(labels.next(4, row));
  EXPECT_EQ(row.y.shape, (std::vector<int64_t>{4, pixels}));
  EXPECT_THAT(row.y.values,
              Each(::testing::AllOf(::testing::Ge(-1), ::testing::Lt(task_.channels()))));
  SegmentationRows images = rows(SegmentParts::kImage);
  EXPECT_EQ(images.target_count(), 0u);
  ASSERT_TRUE(images.next(1, row));
  EXPECT_TRUE(row.y.empty());
}

TEST_F(SegmentationRowsTest, SkippingAndRewindingGiveTheSameImages) {
  SegmentationRows images = rows(SegmentParts::kLabels);
  std::vector<std::vector<float>> all;
  Rows row;
  while (images.next(1, row)) all.push_back(row.x.values);
  ASSERT_THAT(all, SizeIs(9));
  images.rewind();
  for (size_t at = 1; at < 9; at += 3) {
    EXPECT_EQ(images.skip(at == 1 ? 1 : 2), at == 1 ? 1u : 2u);
    ASSERT_TRUE(images.next(1, row));
    EXPECT_EQ(row.first_row, at);
    EXPECT_EQ(row.x.values, all[at]);
  }
  EXPECT_EQ(images.skip(5), 1u);
  EXPECT_FALSE(images.next(1, row));
  images.rewind();
  ASSERT_TRUE(images.next(9, row));
  EXPECT_EQ(row.x.rows(), 9u);
}

TEST_F(SegmentationRowsTest, AnImageThatChangesBetweenIsRefused) {
  SegmentationRows images = rows(SegmentParts::kLabels);
  Rows row;
  ASSERT_TRUE(images.next(1, row));
  images.rewind();
  const SegmentationSet set = open();
  folder_.write("streets/images/" + set.pairs[0].name + ".png", read_file(set.pairs[1].image));
  try {
    images.next(1, row);
    FAIL() << "it went through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(set.pairs[0].image + ": it or its labels changed"));
  }
}

TEST_F(SegmentationRowsTest, WrongSizesAndFoldsAreNamed) {
  Graph tall = segmenter(kHeight + 4);
  SegmentationRows images(open(), prepare_network(tall, {}, kSceneClasses), SegmentParts::kImage);
  Rows row;
  try {
    images.next(1, row);
    FAIL() << "a wrong size went through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(open().pairs[0].image + ": 24 x 16 pixels, the network "
                                                                "takes 24 x 20"));
  }
  Graph resized = segmenter(kHeight + 4);
  SegmentationRows fitting(open(), prepare_network(resized, {.resize = true}, kSceneClasses),
                           SegmentParts::kLabels);
  ASSERT_TRUE(fitting.next(1, row));
  EXPECT_EQ(row.x.shape[2], kHeight + 4);
  EXPECT_THROW(open("validation"), Error);
}

TEST_F(SegmentationRowsTest, ChannelWeightsAreThoseOfTheLabels) {
  std::vector<uint64_t> counts(kSceneClasses, 0);
  const SegmentationSet set = open();
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    count_labels(read_segmentation(set, i).labels, counts);
  }
  std::vector<double> expected = loss_weights(counts);
  expected.erase(expected.begin());
  EXPECT_EQ(channel_weights(set, task_, {}), expected);
  const std::string csv = folder_.write("weights.csv", "class,loss_weight\n1,0.5\n");
  try {
    read_channel_weights(csv, task_);
    FAIL() << "weights are missing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no weight of class 2"));
  }
}

std::string bytes_on(const Graph& network, const SegmentationSet& set, const SegmentTask& task,
                     const CalibrateSettings& settings, int ranks) {
  std::string bytes;
  run_threads(ranks, [&](Communicator& communicator) {
    SegmentationRows rows(set, task, truth_parts(settings.method.score));
    Context context;
    context.ranks = &communicator;
    const CalibrateResult result = calibrate(network, rows, settings, context);
    if (communicator.rank() == 0) bytes = serialize_onnx(artifact_graph(result.artifact));
  });
  return bytes;
}

TEST_F(SegmentationRowsTest, RanksCalibrateToTheSameBytes) {
  CalibrateSettings bands;
  bands.method.score = "nested";
  bands.method.set("pixels", 0.9);
  bands.levels = {Level(0.2)};
  CalibrateSettings sets;
  sets.method.score = "lac";
  sets.method.set("pixels", 0.9);
  sets.method.set("double_log", true);
  sets.method.calibration = "grouped";
  sets.method.set("group", "groups.npy");
  sets.facts.groups = {{0, 1, 0, 1, 0, 1, 0, 1, 0}, {"day", "night"}};
  for (const CalibrateSettings& settings : {bands, sets}) {
    const std::string alone = bytes_on(network_, open(), task_, settings, 1);
    ASSERT_FALSE(alone.empty());
    EXPECT_TRUE(bytes_on(network_, open(), task_, settings, 3) == alone);
  }
}

TEST_F(SegmentationRowsTest, AnImageWhoseScoreIsNotANumberIsNamed) {
  network_.initializers["b1"].tensor().fill_(std::numeric_limits<float>::quiet_NaN());
  SegmentationRows images = rows(SegmentParts::kTarget);
  CalibrateSettings settings;
  settings.method.score = "residual";
  settings.method.set("pixels", 1);
  try {
    calibrate(network_, images, settings, {});
    FAIL() << "a NaN went through";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(open().pairs[0].image));
    EXPECT_THAT(error.what(), HasSubstr("not a number"));
  }
}

TEST_F(SegmentationRowsTest, AnImageWhoseAnswerIsNotANumberIsNamed) {
  SegmentationRows images = rows(SegmentParts::kTarget);
  CalibrateSettings settings;
  settings.method.score = "residual";
  settings.method.set("pixels", 1);
  CalibrationArtifact artifact = calibrate(network_, images, settings, {}).artifact;
  artifact.network.initializers["b1"].tensor().fill_(std::numeric_limits<float>::quiet_NaN());
  const std::string told = open().pairs[0].image + ": the network's answer is NaN";
  const auto writer = open_region_folder(folder_.path(""), false, images);
  images.rewind();
  EXPECT_THAT([&] { predict(internal::PredictorCore(artifact), images, {}, {}, *writer); },
              ThrowsMessage<Error>(HasSubstr(told)));
  images.rewind();
  EXPECT_THAT([&] { evaluate(artifact, images, {}, {}); }, ThrowsMessage<Error>(HasSubstr(told)));
}

}  // namespace
}  // namespace fcp
