// fcp reproduce: the paper's experiments.
#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"
#include "fcp/experiments/cell_runner.h"
#include "fcp/experiments/publish.h"
#include "fcp/experiments/registry.h"
#include "fcp/report/json.h"

#include "cli/common.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct ReproduceOptions {
  CommonOptions common;
  std::string name;
  std::string alpha = "0.1";
  RunOptions run;
};

void check_names(const char* option, const std::vector<std::string>& given,
                 std::vector<std::string> known, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty())
      throw UsageError(concat(option, ": this experiment has none to choose from"));
    std::string names;
    for (const std::string& other : known) names += (names.empty() ? "" : ", ") + other;
    throw UsageError(concat(option, ": this experiment has no '", name, "', only ", names));
  }
}

std::vector<const Experiment*> chosen_experiments(const ReproduceOptions& options) {
  const ExperimentOptions& asked = options.run.experiment;
  std::vector<const Experiment*> chosen;
  if (options.name != "all") {
    const Experiment& experiment = *find_experiment(options.name);
    check_names("--sets", asked.sets, experiment.sets, experiment.quick_sets);
    check_names("--methods", asked.methods, experiment.methods, {});
    if (asked.quick && experiment.quick_sets.empty()) {
      throw UsageError(concat("--quick: all of ", options.name, " needs external data"));
    }
    return {&experiment};
  }
  if (!asked.sets.empty() || !asked.methods.empty()) {
    throw UsageError("--sets and --methods go with one experiment, not with all");
  }
  for (const Experiment& experiment : experiments()) {
    if (!asked.quick || !experiment.quick_sets.empty()) chosen.push_back(&experiment);
  }
  return chosen;
}

void print_results(const ReproduceOptions& options, const std::vector<ExperimentResult>& results,
                   const ResultPage& page) {
  if (options.common.json) {
    Json json = Json::object();
    for (const ExperimentResult& result : results) json[result.experiment->name] = result.rows;
    std::cout << json_text(options.name == "all" ? json : results.front().rows) << '\n';
    return;
  }
  for (const ResultSection& section : page.sections) std::cout << section_text(section) << '\n';
}

void run_reproduce(ReproduceOptions& options) {
  start(options.common);
  RunOptions& run = options.run;
  run.experiment.seed = options.common.seed;
  run.experiment.level = parse_level(options.alpha);
  run.threads = options.common.threads > 0
                    ? options.common.threads
                    : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::vector<const Experiment*> chosen = chosen_experiments(options);
  const std::vector<CellTask> tasks = tasks_of(chosen, run.experiment);
  Progress progress("cells", tasks.size(), !options.common.quiet);
  std::vector<std::string> said;
  std::string left_out;
  run.observe = [&](const CellTask& task, const CellResult& result) {
    progress.advance(1, [&] { return concat(task.experiment->name, " ", task.key.text()); });
    if (result.left_out.empty()) return;
    left_out = result.left_out;
    if (std::find(said.begin(), said.end(), left_out) != said.end()) return;
    said.push_back(left_out);
    say(options.common, concat(task.key.set, " is left out: ", left_out));
  };
  const std::vector<ExperimentResult> results = gather_results(tasks, run_cells(tasks, run));
  if (std::all_of(results.begin(), results.end(),
                  [](const ExperimentResult& result) { return result.cells == 0; })) {
    fail("none of the sets could be run: ", left_out);
  }
  const ResultPage page = page_of(results, run.experiment);
  publish(run.folder, results, page);
  print_results(options, results, page);
  say(options.common, concat("wrote ", run.folder, "/index.html"));
}

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  names.push_back("all");
  return names;
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto options = std::make_shared<ReproduceOptions>();
  options->run.folder = "results";
  ExperimentOptions& experiment = options->run.experiment;
  CLI::App* verb = app.add_subcommand("reproduce", "The paper's experiments");
  verb->footer(
      "Examples:\n  fcp reproduce all --quick\n  fcp reproduce all --data-dir data --seeds 5 --out "
      "results\n  fcp reproduce regression --data-dir data --sets community,synthetic");
  verb->add_option("experiment", options->name, "Which experiment, or all")
      ->required()
      ->check(CLI::IsMember(experiment_names()));
  verb->add_option("--data-dir", experiment.data_dir,
                   "Folder of the data sets, with the networks in `models` beside it");
  verb->add_option("--out", options->run.folder, "Folder of the results")->capture_default_str();
  verb->add_flag("--resume", options->run.resume,
                 "Do not compute again the cells that --out holds already");
  verb->add_flag("--quick", experiment.quick, "One seed of small built-in sets, no external data");
  verb->add_option("--seeds", experiment.seeds, "Seeds, from --seed on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--alpha", options->alpha, "Share of intervals that may miss the truth")
      ->capture_default_str();
  verb->add_option("--sets", experiment.sets, "Data sets; all by default")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--methods", experiment.methods, "Scores; all by default")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--epochs", experiment.epochs,
                   "Epochs of training, at most; 0: those of the experiment")
      ->capture_default_str();
  verb->add_option("--halvings", experiment.halvings, "classification: random halvings of the rows")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--rate", experiment.rate,
                   "classification: step size of feature_sampled; 0: by the set")
      ->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_reproduce(*options); });
}

}  // namespace fcp
