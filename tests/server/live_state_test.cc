#include "apps/server/live_state.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"
#include "fcp/base/random.h"
#include "fcp/predictor/region_tensors.h"

#include "apps/server/repeated_request.h"
#include "apps/server/sql_database.h"
#include "tests/server/served_files.h"

namespace fcp {
namespace {

using testing::floats;
using testing::line_row;

class LiveStateTest : public ::testing::Test {
 protected:
  LiveStateTest() {
    write_artifact(testing::line_artifact(testing::line_rows(199, 1)), folder_.path("line.onnx"));
    models_ = std::make_unique<ModelStore>(std::vector<std::string>{folder_.path("line.onnx")},
                                           torch::kCPU, Batcher::Options{});
    start();
  }

  void start() {
    state_.reset();
    state_ = std::make_unique<LiveState>(
        [this] { return open_feedback_store(folder_.path("state"), limits_); }, *models_, options_,
        [this](const std::string& text) { heard_.push_back(text); });
  }

  bool remember(const std::string& id, internal::BatchData rows) {
    return kept_before(id, std::move(rows)).empty();
  }

  // With the answer; what was kept under the id already.
  LiveState::Kept kept_before(const std::string& id, internal::BatchData rows) {
    std::promise<LiveState::Kept> found;
    const auto model = models_->find("line")->model();
    const auto adapted = state_->adapted_level(*model);
    const std::vector<Level> levels = {adapted.value_or(options_.monitor.level)};
    const GivenAnswer given{model->tensors(model->answer(rows, levels)), levels, adapted,
                            static_cast<int64_t>(model->facts().version)};
    EXPECT_TRUE(state_->remember({model, id, std::move(rows), kept_answers(given), adapted},
                                 [&](const std::string& error, const LiveState::Kept& kept) {
                                   EXPECT_EQ(error, "");
                                   found.set_value(kept);
                                 }));
    return found.get_future().get();
  }

  // Replaces the file by another version of it, so that the server takes it.
  void put_version(const std::string& version, size_t rows) {
    CalibrationArtifact artifact = testing::line_artifact(testing::line_rows(rows, 1));
    artifact.provenance["version"] = version;
    write_artifact(artifact, folder_.path("line.onnx"));
    models_->reload([](const Reloaded& one) { EXPECT_EQ(one.error, ""); }, /*at_once=*/true);
    EXPECT_EQ(models_->find("line")->model()->version(), version);
  }

  TruthResult learn(const TruthReport& told) {
    std::promise<TruthResult> result;
    EXPECT_TRUE(state_->learn("line", {told}, nullptr,
                              [&](const std::vector<TruthResult>& results, const std::string&) {
                                result.set_value(results.at(0));
                              }));
    return result.get_future().get();
  }

  Folder folder_;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<LiveState> state_;
  std::vector<std::string> heard_;
  // The report once it has that many rows; reports are made twice a second.
  MonitorReport report_of(size_t rows) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (state_->report("line")->rows < rows && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return state_->report("line").value();
  }

  void tell_truths(size_t first, size_t last) {
    Random random(first);
    for (size_t i = first; i < last; ++i) {
      const std::string id = std::to_string(i);
      remember(id, line_row(static_cast<float>(random.normal()), 0));
      EXPECT_EQ(learn({id, 0, {static_cast<float>(random.normal())}}).status, "accepted");
    }
  }

  LiveOptions options_;
  StoreLimits limits_;
};

TEST_F(LiveStateTest, AnswersTruthsClearly) {
  EXPECT_TRUE(remember("a", line_row(1, 0)));
  EXPECT_FALSE(remember("a", line_row(1, 0)));
  EXPECT_EQ(learn({"nobody", 0, {1}}).status, "unknown");
  EXPECT_EQ(learn({"a", 1, {1}}).status, "unknown");
  EXPECT_EQ(learn({"a", 0, {1, 2}}).status, "wrong");
  const TruthResult accepted = learn({"a", 0, {2}});
  EXPECT_EQ(accepted.status, "accepted");
  EXPECT_TRUE(accepted.covered);
  EXPECT_EQ(learn({"a", 0, {2}}).status, "duplicate");
}

// Of a request whose id is taken no row is kept: neither those that are there nor the others.
TEST_F(LiveStateTest, KeepsAllRowsOfARequestOrNone) {
  EXPECT_TRUE(remember("a", line_row(1, 0)));
  EXPECT_FALSE(remember("a", internal::joined({line_row(1, 0), line_row(2, 0)})));
  EXPECT_EQ(learn({"a", 1, {1}}).status, "unknown");
  EXPECT_EQ(learn({"a", 0, {1}}).status, "accepted");
  const LiveState::Kept kept = kept_before("a", line_row(1, 0));  // it has its truth, and is there
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(read_answer(kept[0].answer).version, 1);
}

// Two versions later the first is served no longer. Its truths are judged by the answers that were
// given, and where the file is put back its monitor hears of them.
TEST_F(LiveStateTest, JudgesTruthsOfVersionsThatAreGone) {
  std::filesystem::copy_file(folder_.path("line.onnx"), folder_.path("first.onnx"));
  for (const char* id : {"near", "far", "wrong", "before"}) remember(id, line_row(1, 0));
  const double p_value = learn({"before", 0, {2.1f}}).p_value;
  EXPECT_GT(p_value, 0);
  put_version("2", 99);
  put_version("3", 149);
  EXPECT_THAT(models_->versions("line"), ::testing::ElementsAre("2", "3"));
  const TruthResult near = learn({"near", 0, {2.1f}});  // the line says 2
  EXPECT_EQ(near.status, "accepted");
  EXPECT_TRUE(near.covered);
  EXPECT_TRUE(std::isnan(near.p_value));
  const TruthResult far = learn({"far", 0, {50}});
  EXPECT_EQ(far.status, "accepted");
  EXPECT_FALSE(far.covered);
  EXPECT_EQ(learn({"wrong", 0, {1, 2}}).status, "wrong");
  EXPECT_EQ(learn({"near", 0, {2.1f}}).status, "duplicate");
  EXPECT_EQ(state_->report("line")->rows, 0u);  // of the third version
  std::filesystem::rename(folder_.path("first.onnx"), folder_.path("line.onnx"));
  models_->reload([](const Reloaded&) {}, /*at_once=*/true);
  start();
  EXPECT_EQ(state_->report("line")->rows, 3u);
  EXPECT_EQ(state_->report("line")->covered.hits, 2u);
  const auto recent = state_->live_report("line")->recent;
  ASSERT_EQ(recent.size(), 3u);
  EXPECT_EQ(recent[1].prediction.id, "near");
  EXPECT_EQ(recent[1].p_value, p_value);  // the same truth of the same row
}

// A store that is not there when the server starts is used from when it is.
TEST_F(LiveStateTest, BeginsWithoutAStoreWhereItIsOptional) {
  state_.reset();
  std::atomic<bool> there = false;
  const auto open = [&] {
    if (!there) fail("no store yet");
    return open_feedback_store(folder_.path("state"), limits_);
  };
  const auto hear = [](const std::string&) {};
  EXPECT_THROW(LiveState(open, *models_, options_, hear), Error);
  options_.optional = true;
  state_ = std::make_unique<LiveState>(open, *models_, options_, hear);
  EXPECT_FALSE(state_->is_healthy());
  std::promise<std::string> problem;
  state_->remember(
      {models_->find("line")->model(), "a", line_row(1, 0)},
      [&](const std::string& error, const LiveState::Kept&) { problem.set_value(error); });
  EXPECT_EQ(problem.get_future().get(), "no store yet");
  EXPECT_GE(state_->errors(), 1u);
  there = true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!state_->is_healthy() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(state_->is_healthy());
  EXPECT_TRUE(remember("a", line_row(1, 0)));
  EXPECT_EQ(learn({"a", 0, {2}}).status, "accepted");
}

// A thousand truths of one caller do not hold up what others want to remember: it comes between
// their pieces, and each truth is judged as if it had come alone.
TEST_F(LiveStateTest, LearnsManyTruthsInPieces) {
  const auto model = models_->find("line")->model();
  std::vector<float> x;
  std::vector<TruthReport> truths;
  for (int i = 0; i < 1'000; ++i) {
    x.insert(x.end(), {static_cast<float>(i % 13), 1});
    truths.push_back({"many", i, {static_cast<float>(i % 17)}});
  }
  ASSERT_TRUE(remember(
      "many", model->kept_rows(x, std::vector<int64_t>(1'000), std::vector<uint64_t>(1'000))));
  truths[300] = truths[299];   // told twice
  truths[500].truth = {1, 2};  // not one number
  truths[700].id = "nobody";
  std::promise<void> held, released;
  ASSERT_TRUE(state_->remember({model, "first", line_row(1, 1)},
                               [&](const std::string&, const LiveState::Kept&) {
                                 held.set_value();
                                 released.get_future().wait();
                               }));
  held.get_future().wait();
  std::vector<std::string> order;
  std::promise<std::vector<TruthResult>> learned;
  ASSERT_TRUE(state_->learn("line", truths, nullptr,
                            [&](const std::vector<TruthResult>& results, const std::string& error) {
                              EXPECT_EQ(error, "");
                              order.push_back("learned");
                              learned.set_value(results);
                            }));
  ASSERT_TRUE(state_->remember(
      {model, "second", line_row(1, 1)},
      [&](const std::string&, const LiveState::Kept&) { order.push_back("remembered"); }));
  released.set_value();
  const std::vector<TruthResult> results = learned.get_future().get();
  EXPECT_EQ(order, (std::vector<std::string>{"remembered", "learned"}));
  ASSERT_EQ(results.size(), 1'000u);
  for (size_t i = 0; i < results.size(); ++i) {
    const char* expected = i == 300   ? "duplicate"
                           : i == 500 ? "wrong"
                           : i == 700 ? "unknown"
                                      : "accepted";
    EXPECT_EQ(results[i].status, expected) << i;
    if (results[i].status != "accepted") continue;
    const ServedTruth alone = testing::judged(*model, line_row(x[2 * i], 1), truths[i].truth);
    EXPECT_EQ(results[i].p_value, alone.p_value) << i;
  }
  EXPECT_EQ(report_of(997).rows, 997u);
}

// Nobody waits: what is not yet taken is not taken.
TEST_F(LiveStateTest, LearnsNoMoreWhenNobodyWaits) {
  std::vector<TruthReport> truths(1'000, {"x", 0, {1}});
  const auto gone = std::make_shared<Deadline>(std::chrono::seconds(1'000));
  gone->cancel();
  std::promise<std::string> answer;
  ASSERT_TRUE(state_->learn(
      "line", truths, gone,
      [&](const std::vector<TruthResult>&, const std::string& error) { answer.set_value(error); }));
  EXPECT_EQ(answer.get_future().get(), Batcher::kTimeIsOver);
}

// Nothing comes after the last truth, and readers still hear of it.
TEST_F(LiveStateTest, ReportsTheLastTruth) {
  for (const char* id : {"a", "b", "c"}) {
    remember(id, line_row(1, 0));
    EXPECT_EQ(learn({id, 0, {2}}).status, "accepted");
  }
  EXPECT_EQ(report_of(3).rows, 3u);
  EXPECT_EQ(state_->truths(), 3u);
  EXPECT_EQ(state_->waiting(), 0u);
}

TEST_F(LiveStateTest, IsTheSameAfterARestart) {
  tell_truths(0, 60);
  const MonitorReport before = report_of(60);
  EXPECT_EQ(before.rows, 60u);
  start();
  const MonitorReport after = state_->report("line").value();
  EXPECT_EQ(after.rows, 60u);
  EXPECT_EQ(after.covered.hits, before.covered.hits);
  EXPECT_EQ(after.log_exchangeability, before.log_exchangeability);
  EXPECT_EQ(after.log_drift, before.log_drift);
  EXPECT_EQ(learn({"7", 0, {1}}).status, "duplicate");
}

// Of 100 truths the store keeps 20, and the monitor knows all of them.
TEST_F(LiveStateTest, IsTheSameAfterARestartThoughTruthsAreForgotten) {
  limits_.truths = 20;
  start();
  tell_truths(0, 100);
  const MonitorReport before = report_of(100);
  ASSERT_EQ(before.rows, 100u);
  ASSERT_EQ(state_->truths(), 20u);
  start();
  const MonitorReport after = state_->report("line").value();
  EXPECT_EQ(after.rows, 100u);
  EXPECT_EQ(after.alarms.size(), before.alarms.size());
  EXPECT_EQ(state_->live_report("line")->recent.at(0).prediction.id, "99");
  EXPECT_EQ(after.covered.hits, before.covered.hits);
  EXPECT_EQ(after.size.sum, before.size.sum);
  EXPECT_EQ(after.log_exchangeability, before.log_exchangeability);
  EXPECT_EQ(after.log_drift, before.log_drift);
  EXPECT_EQ(after.timeline.size(), before.timeline.size());
  tell_truths(100, 110);
  EXPECT_EQ(report_of(110).rows, 110u);
}

// Whether a region covered the truth was judged at a level; at another one there is a new monitor.
TEST_F(LiveStateTest, BeginsAnewAtAnotherLevel) {
  tell_truths(0, 20);
  EXPECT_EQ(report_of(20).rows, 20u);
  options_.monitor.level = Level(0.2);
  start();
  EXPECT_EQ(state_->report("line")->rows, 0u);
  EXPECT_EQ(learn({"7", 0, {1}}).status, "duplicate");
  tell_truths(20, 25);
  EXPECT_EQ(report_of(5).rows, 5u);
  options_.monitor.level = Level(0.1);
  start();
  EXPECT_EQ(state_->report("line")->rows, 20u);
}

// A state that cannot be read is said, and what is kept is replayed.
TEST_F(LiveStateTest, ReplaysWhereItsStateIsDamaged) {
  limits_.truths = 40;
  start();
  tell_truths(0, 60);
  EXPECT_EQ(report_of(60).rows, 60u);
  state_.reset();
  heard_.clear();
  {
    const auto store = open_feedback_store(folder_.path("state"), limits_);
    const std::string sha = models_->find("line")->model()->sha256();
    store->begin();
    store->put_monitor({"line", sha, "level 0.1, false alarms 0.01, seed 0"}, {1'000, "damaged"});
    store->commit();
  }
  start();
  ASSERT_FALSE(heard_.empty());
  EXPECT_THAT(heard_[0], ::testing::HasSubstr("state: line: its monitor begins anew: "));
  EXPECT_EQ(state_->report("line")->rows, 40u);
}

// The level goes where AdaptiveLevel goes with the same p-values, and stays there after a restart
// even where few truths are kept.
TEST_F(LiveStateTest, AdaptsTheLevel) {
  options_.adapt = AdaptOptions{};
  start();
  const auto level = [this] {
    return state_->adapted_level(*models_->find("line")->model())->value();
  };
  AdaptiveLevel expected(options_.monitor.level, *options_.adapt);
  Random random(5);
  size_t covered = 0;
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(level(), std::clamp(expected.level(), 1e-12, 1 - 1e-12));
    const double before = level();
    const std::string id = std::to_string(i);
    remember(id, line_row(0, 0));
    const TruthResult told = learn({id, 0, {static_cast<float>(3 * random.normal())}});
    expected.see(told.p_value);
    covered += told.p_value > before ? 1 : 0;
  }
  EXPECT_NE(level(), 0.1);
  const double last = level();
  start();
  EXPECT_EQ(level(), last);
  const MonitorReport report = state_->report("line").value();
  EXPECT_EQ(report.adapted_covered.rows, 200u);
  EXPECT_EQ(report.adapted_covered.hits, covered);
  state_.reset();
  const auto store = open_feedback_store(folder_.path("state"), {.waiting = 10, .truths = 10});
  store->begin();
  store->commit();
  EXPECT_EQ(store->truths(), 10u);
  EXPECT_EQ(store->levels_of(models_->find("line")->model()->sha256()).at(0).second.level,
            expected.level());
}

// A truth on an end of the interval that was answered is in it, also after a restart: it is judged
// by the centre that was drawn for the answer.
TEST_F(LiveStateTest, JudgesLocalizedTruthsByTheDrawOfTheAnswer) {
  state_.reset();
  CalibrationArtifact artifact = testing::line_artifact(testing::line_rows(199, 1));
  artifact.method.calibration = LocalizedOptions{.bandwidth = 1};
  artifact.method.cut = artifact.network.inputs[0].name;
  Random random(3);
  artifact.rows.features = torch::empty({199, 2});
  for (int64_t i = 0; i < artifact.rows.features.numel(); ++i) {
    artifact.rows.features.data_ptr<float>()[i] = static_cast<float>(random.normal());
  }
  write_artifact(artifact, folder_.path("line.onnx"));
  models_ = std::make_unique<ModelStore>(std::vector<std::string>{folder_.path("line.onnx")},
                                         torch::kCPU, Batcher::Options{});
  start();
  const auto model = models_->find("line")->model();
  std::set<float> lengths;
  std::vector<TruthReport> truths;
  for (int i = 0; i < 50; ++i) {
    internal::BatchData rows = internal::joined({line_row(1, 0), line_row(1, 0)});
    model->draw_places(rows);
    const Regions at = model->answer(rows, {options_.monitor.level}).host.at(0);
    const FloatEnds ends = float_ends(at.lower, at.upper);
    const std::vector<float> lower = floats(ends.lower), upper = floats(ends.upper);
    lengths.insert(upper[1] - lower[1]);
    truths.push_back({std::to_string(i), i % 2, {upper[static_cast<size_t>(i % 2)]}});
    ASSERT_TRUE(remember(truths.back().id, rows));
  }
  start();
  for (const TruthReport& truth : truths) EXPECT_TRUE(learn(truth).covered) << truth.id;
  EXPECT_GT(lengths.size(), 10u);  // of one and the same x
}

TEST_F(LiveStateTest, RaisesAlarms) {
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    remember(id, line_row(1, 0));
    learn({id, 0, {50}});
  }
  state_.reset();
  ASSERT_FALSE(heard_.empty());
  EXPECT_THAT(heard_[0], ::testing::HasSubstr("alarm: line: "));
}

}  // namespace
}  // namespace fcp
