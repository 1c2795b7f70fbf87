#include "apps/experiments/cell_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <torch/utils.h>

#include "fcp/base/blas_threads.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/predictor/context.h"

#include "apps/report/json.h"

namespace fcp {
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

}  // namespace fcp
