#include "apps/experiments/experiment.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/base/parallel.h"
#include "fcp/distributed/packing.h"
#include "fcp/predictor/context.h"

#include "apps/experiments/result_rows.h"
#include "apps/report/json.h"
#include "apps/report/results.h"

namespace fcp {
namespace {

constexpr uint64_t kSeedsOfReadings = 5;

// The readings are about this run and no other.
bool is_full_run(const ExperimentOptions& options) {
  return !options.quick && options.seed == 0 && options.seeds == kSeedsOfReadings &&
         options.sets.empty() && options.methods.empty() && options.epochs == 0 &&
         options.rate == 0 && options.level == Level(0.1);
}

}  // namespace

std::string CellKey::text() const {
  return part.empty() ? concat(set, "-", seed) : concat(set, "-", part);
}

std::vector<std::string> sets_of(const Experiment& experiment, const ExperimentOptions& options) {
  if (!options.sets.empty()) return options.sets;
  return options.quick ? experiment.quick_sets : experiment.sets;
}

std::vector<std::string> methods_of(const Experiment& experiment,
                                    const ExperimentOptions& options) {
  return options.methods.empty() ? experiment.methods : options.methods;
}

std::vector<CellKey> cells_of(const Experiment& experiment, const ExperimentOptions& options) {
  std::vector<CellKey> cells;
  for (const std::string& set : sets_of(experiment, options)) {
    if (experiment.shape == CellShape::kSet) cells.push_back({set, options.seed});
    if (experiment.shape == CellShape::kSetAndSeed) {
      const uint64_t seeds = options.quick ? 1 : options.seeds;
      for (uint64_t i = 0; i < seeds; ++i) cells.push_back({set, options.seed + i});
    }
    if (experiment.shape == CellShape::kSetAndMethod) {
      for (const std::string& method : methods_of(experiment, options)) {
        cells.push_back({set, options.seed, method});
      }
    }
  }
  return cells;
}

ResultSection section_of(const Experiment& experiment, const ExperimentOptions& options,
                         const Json& rows) {
  ResultSection section;
  section.id = experiment.name;
  section.title = experiment.title;
  section.claim = experiment.claim;
  if (is_full_run(options)) section.readings = experiment.readings;
  if (!rows.empty()) experiment.present(rows, options, section);
  return section;
}

namespace {

void check_names(const char* option, const std::vector<std::string>& given,
                 std::vector<std::string> known, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty()) fail_option(option, "this experiment has none to choose from");
    std::string names;
    for (const std::string& other : known) names += (names.empty() ? "" : ", ") + other;
    fail_option(option, "this experiment has no '", name, "', only ", names);
  }
}

}  // namespace

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      worked_example(),     regression_experiment(), cqr_experiment(),
      coverage_levels(),    untrained_networks(),    cut_ablation(),
      cubic_conditions(),   score_distribution(),    zero_quantile(),
      length_variance(),    length_convergence(),    classification_experiment(),
      classification_cuts()};
  return all;
}

const Experiment* find_experiment(const std::string& name, const std::vector<Experiment>& among) {
  for (const Experiment& experiment : among) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

std::vector<const Experiment*> choose_experiments(const std::string& name,
                                                  const ExperimentOptions& options,
                                                  const std::vector<Experiment>& among) {
  if (name != "all") {
    const Experiment& experiment = *find_experiment(name, among);
    check_names("sets", options.sets, experiment.sets, experiment.quick_sets);
    check_names("methods", options.methods, experiment.methods, {});
    if (options.quick && experiment.quick_sets.empty()) {
      fail_option("quick", "all of ", name, " needs external data");
    }
    return {&experiment};
  }
  if (!options.sets.empty()) fail_option("sets", "goes with one experiment, not with all");
  if (!options.methods.empty()) fail_option("methods", "goes with one experiment, not with all");
  std::vector<const Experiment*> chosen;
  for (const Experiment& experiment : among) {
    if (!options.quick || !experiment.quick_sets.empty()) chosen.push_back(&experiment);
  }
  return chosen;
}

namespace {

std::string cell_path(const CellTask& task, const RunOptions& options) {
  return concat(options.folder, "/cells/", task.experiment->name, "/", task.key.text(), ".json");
}

// All that decides what a cell holds; where the data lie does not.
Json cell_options(const CellTask& task, const ExperimentOptions& options) {
  return {{"experiment", task.experiment->name},
          {"set", task.key.set},
          {"seed", task.key.seed},
          {"part", task.key.part},
          {"alpha", options.level.text()},
          {"methods", methods_of(*task.experiment, options)},
          {"epochs", options.epochs},
          {"halvings", options.halvings},
          {"rate", options.rate},
          {"quick", options.quick}};
}

void keep_cell(const CellTask& task, const RunOptions& options, const CellResult& result) {
  const std::string path = cell_path(task, options);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) fail(path, ": its folder could not be made: ", error.message());
  const Json json = {{"options", cell_options(task, options.experiment)},
                     {"seconds", result.seconds},
                     {"rows", result.rows}};
  write_file(path, json_text(json) + "\n");
}

CellResult run_cell(const CellTask& task, const RunOptions& options) {
  CellResult result;
  const auto start = std::chrono::steady_clock::now();
  try {
    result.rows = task.experiment->run(task.key, options.experiment);
  } catch (const MissingData& missing) {
    result.left_out = missing.what();
    return result;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  keep_cell(task, options, result);
  return result;
}

}  // namespace

std::vector<CellTask> tasks_of(std::span<const Experiment* const> experiments,
                               const ExperimentOptions& options) {
  std::vector<CellTask> tasks;
  for (const Experiment* experiment : experiments) {
    for (CellKey& key : cells_of(*experiment, options)) tasks.push_back({experiment, key});
  }
  return tasks;
}

std::optional<CellResult> read_cell(const CellTask& task, const RunOptions& options) {
  std::ifstream file(cell_path(task, options));
  if (!file) return std::nullopt;
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("rows") || !json.contains("seconds") ||
      json.value("options", Json()) != cell_options(task, options.experiment)) {
    return std::nullopt;
  }
  return CellResult{json["rows"], json["seconds"].get<double>(), ""};
}

std::vector<CellResult> run_cells(std::span<const CellTask> tasks, const RunOptions& options) {
  std::vector<CellResult> results(tasks.size());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto work = [&] {
    at::set_num_threads(1);
    for (size_t i; (i = next++) < tasks.size();) {
      try {
        check_interrupted();
        const std::optional<CellResult> kept =
            options.resume ? read_cell(tasks[i], options) : std::nullopt;
        results[i] = kept ? *kept : run_cell(tasks[i], options);
        const std::lock_guard lock(mutex);
        if (options.observe) options.observe(tasks[i], results[i]);
      } catch (...) {
        next = tasks.size();
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
      }
    }
  };
  set_blas_threads(1);
  const size_t threads = std::min(tasks.size(), static_cast<size_t>(std::max(1, options.threads)));
  std::vector<std::thread> pool;
  for (size_t i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  if (failed) std::rethrow_exception(failed);
  return results;
}

std::vector<CellResult> share_cells(const std::vector<CellTask>& tasks, const RunOptions& run,
                                    Communicator& ranks) {
  const auto size = static_cast<size_t>(ranks.size());
  std::vector<CellTask> own;
  for (auto i = static_cast<size_t>(ranks.rank()); i < tasks.size(); i += size) {
    own.push_back(tasks[i]);
  }
  Packer packer;
  for (const CellResult& result : run_cells(own, run)) {
    packer.add(result.rows.dump());
    packer.add(std::vector<double>{result.seconds});
    packer.add(result.left_out);
  }
  const std::vector<std::string> packed = ranks.gather(packer.take());
  std::vector<CellResult> results(packed.empty() ? 0 : tasks.size());
  for (size_t rank = 0; rank < packed.size(); ++rank) {
    Unpacker unpacker(packed[rank]);
    for (size_t i = rank; i < tasks.size(); i += size) {
      results[i].rows = Json::parse(unpacker.text());
      results[i].seconds = unpacker.numbers<double>().at(0);
      results[i].left_out = unpacker.text();
    }
  }
  return results;
}

namespace {

// The page is for other people and machines: a whole path of this one is not told.
std::string without_folder(std::string line, const std::string& folder) {
  constexpr std::string_view kInstead = "DATA-DIR";
  if (!folder.starts_with('/')) return line;
  for (size_t at = 0; (at = line.find(folder, at)) != std::string::npos; at += kInstead.size()) {
    line.replace(at, folder.size(), kInstead);
  }
  return line;
}

}  // namespace

std::vector<ExperimentResult> gather_results(std::span<const CellTask> tasks,
                                             std::span<const CellResult> results) {
  std::vector<ExperimentResult> gathered;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (gathered.empty() || gathered.back().experiment != tasks[i].experiment) {
      gathered.emplace_back();
      gathered.back().experiment = tasks[i].experiment;
    }
    ExperimentResult& result = gathered.back();
    if (!results[i].left_out.empty()) {
      const std::string line = concat(tasks[i].key.set, " is left out: ", results[i].left_out);
      const auto known = std::find(result.left_out.begin(), result.left_out.end(), line);
      if (known == result.left_out.end()) result.left_out.push_back(line);
      continue;
    }
    ++result.cells;
    result.seconds += results[i].seconds;
    for (const Json& row : results[i].rows) result.rows.push_back(row);
  }
  return gathered;
}

ResultPage page_of(std::span<const ExperimentResult> results, const ExperimentOptions& options) {
  ResultPage page;
  page.title = "Results";
  page.subtitle =
      "The tables and figures of “Predictive Inference with Feature Conformal Prediction” (the "
      "paper), measured again, with our own scores beside the paper's.";
  page.provenance = {{"α", options.level.text()},
                     {"seeds", options.quick ? "1" : std::to_string(options.seeds)},
                     {"first seed", std::to_string(options.seed)}};
  if (options.quick) page.provenance.push_back({"quick", "built-in sets, few rows"});
  for (const ExperimentResult& result : results) {
    page.sections.push_back(section_of(*result.experiment, options, result.rows));
    for (const std::string& line : result.left_out) {
      page.sections.back().notes.push_back(without_folder(line, options.data_dir));
    }
    page.provenance.push_back(
        {result.experiment->name, concat(format_count(result.cells, "cell"), ", ",
                                         format_number(result.seconds, 3), " s of cells")});
  }
  return page;
}

void publish(const std::string& folder, std::span<const ExperimentResult> results,
             const ResultPage& page) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder, ": the folder could not be made: ", error.message());
  for (const ExperimentResult& result : results) {
    const std::string stem = concat(folder, "/", result.experiment->name);
    write_file(stem + ".csv", rows_csv(result.rows));
    write_file(stem + ".json", json_text(result.rows) + "\n");
  }
  write_file(folder + "/results.md", results_markdown(page));
  write_file(folder + "/index.html", results_html(page));
}

}  // namespace fcp
