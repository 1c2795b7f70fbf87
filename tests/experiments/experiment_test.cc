#include "apps/experiments/experiment.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace fcp {
namespace {

// Counts its runs; the set "absent" is not there, and "wrong" is broken.
struct Counting {
  std::atomic<int> runs{0};
  Experiment experiment;

  Counting() {
    experiment.name = "counting";
    experiment.title = "Counting";
    experiment.sets = {"a", "absent", "b"};
    experiment.quick_sets = {"a"};
    experiment.run = [this](const CellKey& key, const ExperimentOptions& options) {
      if (key.set == "absent") throw MissingData("no file" + options.data_dir);
      if (key.set == "wrong") fail("broken");
      ++runs;
      return Json::array({{{"set", key.set}, {"seed", key.seed}, {"x", options.epochs}}});
    };
    experiment.present = [](const Json& rows, const ExperimentOptions&, ResultSection& section) {
      section.tables.push_back({"Rows", {"n"}, {{std::to_string(rows.size())}}});
    };
  }
};

TEST(CellRunner, CellsAreSetsAndSeeds) {
  Counting counting;
  ExperimentOptions options;
  options.seed = 7;
  options.seeds = 2;
  std::vector<std::string> keys;
  for (const CellKey& key : cells_of(counting.experiment, options)) keys.push_back(key.text());
  EXPECT_THAT(keys, testing::ElementsAre("a-7", "a-8", "absent-7", "absent-8", "b-7", "b-8"));
  options.quick = true;
  EXPECT_EQ(cells_of(counting.experiment, options).size(), 1u);
  counting.experiment.shape = CellShape::kSetAndMethod;
  counting.experiment.methods = {"m", "n"};
  EXPECT_EQ(cells_of(counting.experiment, options).at(1).text(), "a-n");
}

TEST(CellRunner, ResumesByTheSameOptionsOnly) {
  const Folder folder;
  Counting counting;
  const Experiment* const chosen[] = {&counting.experiment};
  RunOptions options;
  options.folder = folder.path("out");
  options.threads = 3;
  options.experiment.seeds = 4;
  const std::vector<CellTask> tasks = tasks_of(chosen, options.experiment);
  const std::vector<CellResult> first = run_cells(tasks, options);
  EXPECT_EQ(counting.runs, 8);
  EXPECT_EQ(first.at(4).left_out, "no file");

  options.resume = true;
  const std::vector<CellResult> second = run_cells(tasks, options);
  EXPECT_EQ(counting.runs, 8);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].rows, second[i].rows);

  std::filesystem::remove(options.folder + "/cells/counting/b-2.json");
  std::ofstream(options.folder + "/cells/counting/b-3.json") << "{\"rows\": [";
  run_cells(tasks, options);
  EXPECT_EQ(counting.runs, 10);

  options.experiment.epochs = 5;
  EXPECT_EQ(run_cells(tasks, options).at(0).rows[0]["x"], 5);
  EXPECT_EQ(counting.runs, 18);
  options.resume = false;
  run_cells(tasks, options);
  EXPECT_EQ(counting.runs, 26);
}

TEST(CellRunner, AnErrorEndsTheRunAndKeepsWhatIsDone) {
  const Folder folder;
  Counting counting;
  const Experiment* const chosen[] = {&counting.experiment};
  RunOptions options;
  options.folder = folder.path("out");
  options.experiment.seeds = 1;
  options.experiment.sets = {"a", "wrong", "b"};
  EXPECT_THROW(run_cells(tasks_of(chosen, options.experiment), options), Error);
  EXPECT_EQ(counting.runs, 1);
  EXPECT_TRUE(std::filesystem::exists(options.folder + "/cells/counting/a-0.json"));
}

TEST(CellRunner, PublishesTheSameFilesHoweverManyThreads) {
  const Folder folder;
  Counting counting;
  const Experiment* const chosen[] = {&counting.experiment};
  std::vector<std::string> csvs;
  for (const int threads : {1, 4}) {
    RunOptions options;
    options.folder = folder.path("out" + std::to_string(threads));
    options.threads = threads;
    const std::vector<CellTask> tasks = tasks_of(chosen, options.experiment);
    const auto results = gather_results(tasks, run_cells(tasks, options));
    ASSERT_EQ(results.size(), 1u);
    EXPECT_THAT(results[0].left_out, testing::ElementsAre("absent is left out: no file"));
    publish(options.folder, results, page_of(results, options.experiment));
    csvs.push_back(read_file(options.folder + "/counting.csv"));
    EXPECT_THAT(read_file(options.folder + "/index.html"),
                testing::HasSubstr("<section id=\"counting\">"));
    EXPECT_THAT(read_file(options.folder + "/results.md"), testing::HasSubstr("| 10 |"));
    EXPECT_TRUE(Json::accept(read_file(options.folder + "/counting.json")));
  }
  EXPECT_EQ(csvs[0], csvs[1]);
  EXPECT_THAT(csvs[0], testing::StartsWith("set,seed,x\na,0,0\na,1,0\n"));
}

TEST(CellRunner, ThePageDoesNotTellWhereTheDataLie) {
  const Folder folder;
  Counting counting;
  const Experiment* const chosen[] = {&counting.experiment};
  RunOptions options;
  options.folder = folder.path("out");
  options.experiment.data_dir = "/home/me/data";
  const std::vector<CellTask> tasks = tasks_of(chosen, options.experiment);
  const auto results = gather_results(tasks, run_cells(tasks, options));
  EXPECT_THAT(results[0].left_out, testing::ElementsAre(testing::HasSubstr("/home/me")));
  EXPECT_THAT(page_of(results, options.experiment).sections[0].notes,
              testing::ElementsAre("absent is left out: no fileDATA-DIR"));
}

TEST(Registry, NamesAreDifferentAndEverythingIsSaid) {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) {
    EXPECT_THAT(names, testing::Not(testing::Contains(experiment.name)));
    names.push_back(experiment.name);
    EXPECT_FALSE(experiment.title.empty()) << experiment.name;
    EXPECT_FALSE(experiment.claim.empty()) << experiment.name;
    EXPECT_FALSE(experiment.sets.empty()) << experiment.name;
    EXPECT_TRUE(experiment.run && experiment.present) << experiment.name;
    EXPECT_EQ(find_experiment(experiment.name), &experiment);
  }
  EXPECT_EQ(find_experiment("nothing"), nullptr);
}

}  // namespace
}  // namespace fcp
