// fcp reproduce: the paper's experiments.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"

#include "apps/cli/common.h"
#include "apps/experiments/experiment.h"
#include "apps/experiments/segmentation_experiment.h"
#include "apps/report/json.h"

namespace fcp::cli {
namespace {

struct ReproduceOptions {
  CommonOptions common;
  std::string name;
  std::string alpha = "0.1";
  RunOptions run;
};

std::vector<Experiment> all_experiments(torch::Device device) {
  std::vector<Experiment> all = experiments();
  all.push_back(segmentation_experiment(device));
  return all;
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

// Tells of cells as they are done, and once of each reason to leave some out.
class CellTeller {
 public:
  CellTeller(const CommonOptions& common, size_t cells)
      : common_(common), progress_("cells", cells, !common.quiet) {}

  void tell(const CellTask& task, const CellResult& result) {
    progress_.advance(1, [&] { return concat(task.experiment->name, " ", task.key.text()); });
    const std::string& reason = result.left_out;
    if (reason.empty() || std::find(said_.begin(), said_.end(), reason) != said_.end()) return;
    said_.push_back(reason);
    say(common_, concat(task.key.set, " is left out: ", reason));
  }

 private:
  const CommonOptions& common_;
  Progress progress_;
  std::vector<std::string> said_;
};

void run_reproduce(ReproduceOptions& options) {
  const std::vector<Experiment> all = all_experiments(start(options.common).device);
  RunOptions& run = options.run;
  run.experiment.seed = options.common.seed;
  run.experiment.level = parse_level(options.alpha);
  run.threads = options.common.threads > 0
                    ? options.common.threads
                    : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::vector<const Experiment*> chosen =
      choose_experiments(options.name, run.experiment, all);
  const std::vector<CellTask> tasks = tasks_of(chosen, run.experiment);
  std::optional<CellTeller> teller;
  run.observe = [&](const CellTask& task, const CellResult& result) {
    if (!teller) teller.emplace(options.common, tasks.size() / options.common.ranks->size());
    teller->tell(task, result);
  };
  const std::vector<CellResult> cells = share_cells(tasks, run, *options.common.ranks);
  if (options.common.ranks->rank() != 0) return;
  const std::vector<ExperimentResult> results = gather_results(tasks, cells);
  if (std::all_of(results.begin(), results.end(),
                  [](const ExperimentResult& result) { return result.cells == 0; })) {
    fail("none of the sets could be run: ", cells.back().left_out);
  }
  const ResultPage page = page_of(results, run.experiment);
  publish(run.folder, results, page);
  print_results(options, results, page);
  say(options.common, concat("wrote ", run.folder, "/index.html"));
}

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const Experiment& experiment : all_experiments(torch::kCPU))
    names.push_back(experiment.name);
  names.push_back("all");
  return names;
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto options = std::make_shared<ReproduceOptions>();
  options->run.folder = "results";
  ExperimentOptions& experiment = options->run.experiment;
  CLI::App* verb = app.add_subcommand("reproduce", "Repeat the paper's experiments");
  verb->footer(
      "Examples:\n  fcp reproduce all --quick\n  fcp reproduce all --data-dir data --seeds 5 --out "
      "results\n  fcp reproduce regression --data-dir data --sets community,synthetic\n"
      "  mpirun -n 4 fcp reproduce all --data-dir data --threads 1 --out results");
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
  verb->callback([options] { run_shared(options->common, [&] { run_reproduce(*options); }); });
}

}  // namespace fcp::cli
