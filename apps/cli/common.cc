#include "apps/cli/common.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/base/parallel.h"
#include "fcp/base/text.h"
#include "fcp/distributed/communicator.h"

#include "apps/cli/option_flags.h"
#include "apps/cli/paths.h"
#include "apps/report/choices_text.h"

namespace fcp::cli {

void add_common(CLI::App& verb, CommonOptions& options, unsigned takes) {
  if (takes & kTakesJson) verb.add_flag("--json", options.json, "Print the result as JSON");
  verb.add_flag("--quiet", options.quiet, "No messages and no progress on stderr");
  if (takes & kTakesSeed) {
    verb.add_option("--seed", options.seed, "Random seed")->capture_default_str();
  }
  if (takes & kTakesThreads) {
    verb.add_option("--threads", options.threads,
                    "Threads; 0: all cores, or those that the container may use")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
  }
  if (takes & kTakesDevice) {
    verb.add_option(
            "--device", options.device,
            "Where networks run: cpu, cuda, or auto: cuda where it is expected to be faster")
        ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
        ->capture_default_str();
  }
  if ((takes & kTakesThreads) && verb.get_option_no_throw("--memory") == nullptr) {
    verb.add_option_function<size_t>("--memory", set_memory_budget,
                                     "Bytes for the tensors of networks, as 4GB or 500MB; by "
                                     "default half of what is free")
        ->transform(CLI::AsSizeValue(false));
  }
  guard_paths(verb);
}

void run_shared(CommonOptions& options, const std::function<void()>& verb) {
  run_ranks([&](Communicator& ranks) {
    options.ranks = &ranks;
    options.quiet = options.quiet || ranks.rank() > 0;
    try {
      verb();
    } catch (const OptionError& error) {
      throw UsageError(flag_complaint(error));
    } catch (const TableError& error) {
      throw Error(table_complaint(error));
    }
    options.ranks = serial_ranks();
    return 0;
  });
  if (*options.alarmed) throw Alarm();
}

std::string flag_complaint(const OptionError& error) {
  return concat(flag_name(error.option()), ": ", error.complaint());
}

namespace {

void advise_threads(const CommonOptions& options, int threads) {
  const auto cores = static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const int ranks = local == nullptr ? 1 : std::atoi(local);
  if (threads == 1 || ranks * threads <= cores) return;
  say(options,
      concat("note: ", ranks, " ranks of ", threads, " threads share the ", cores,
             " cores of this machine; --threads ", std::max(1, cores / ranks), " is faster"));
}

// OpenMP's threads wait for each other by spinning, which makes a busy machine crawl, and libgomp
// reads its environment before main() could change it. But it hardly spins where there are more
// threads than cores (its manual, at GOMP_SPINCOUNT): so there is one more team of them, asleep.
void keep_threads_from_spinning(int cores) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  std::promise<void> promise;
  std::future<void> asleep = promise.get_future();
  std::thread([cores, promise = std::move(promise)]() mutable {
    try {
      at::set_num_threads(cores);
      torch::ones({int64_t{cores} << 15});  // large enough for every core to get a share
      promise.set_value();
    } catch (...) {  // out of memory
      promise.set_exception(std::current_exception());
      return;
    }
    for (;;) pause();
  }).detach();
  asleep.get();
}

// mpirun binds ranks to a few cores each. The number of threads must not follow that: it can change
// the last bits of a score, and those are to be the same for any number of ranks.
int cores_for(const Communicator& ranks) {
  if (ranks.size() == 1) {
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    return static_cast<int>(std::min(cores, processor_limit().value_or(cores)));
  }
  return static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
}

// Of the whole process, which is the program's alone.
void set_process(const CommonOptions& options) {
  const int cores = cores_for(*options.ranks);
  const int threads = options.threads > 0 ? options.threads : cores;
  keep_freed_memory();
  keep_threads_from_spinning(cores);
  at::set_num_threads(threads);
  set_blas_threads(threads);
  set_usual_threads(static_cast<size_t>(threads));
}

}  // namespace

Context start(const CommonOptions& options) {
  static std::optional<ConsoleObserver> console;
  console.emplace(options.quiet);
  set_process(options);
  const bool choose = options.device == "auto";
  Context context{.device = device_named(choose ? "cpu" : options.device),
                  .choose_device = choose,
                  .ranks = options.ranks,
                  .observer = &*console};
  context.seed = options.seed;
  if (options.ranks->size() > 1) advise_threads(options, at::get_num_threads());
  return context;
}

std::string table_complaint(const TableError& error) {
  std::string text = error.what();
  for (const std::string& column : error.text_columns()) {
    text += concat("; --schema '", column, "=category' or =drop");
  }
  return text + "; --on-error skip leaves such rows out";
}

std::string file_name_of(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

void say(const CommonOptions& options, const std::string& line) {
  if (!options.quiet) std::cerr << printable(line) << '\n';
}

Level parse_level(const std::string& alpha) {
  try {
    return Level::parse(alpha);
  } catch (const Error& error) {
    throw UsageError(concat("--alpha: ", error.what()));
  }
}

std::vector<Level> parse_levels(const std::vector<std::string>& alphas) {
  std::vector<Level> levels;
  for (const std::string& alpha : alphas) levels.push_back(parse_level(alpha));
  const auto less = [](const Level& a, const Level& b) { return a.value() < b.value(); };
  std::sort(levels.begin(), levels.end(), less);
  for (size_t i = 1; i < levels.size(); ++i) {
    if (!less(levels[i - 1], levels[i])) {
      throw UsageError(concat("--levels: ", levels[i].text(), " is given twice"));
    }
  }
  return levels;
}

void ConsoleObserver::begin(std::string_view stage, size_t total) {
  progress_.emplace(std::string(stage), total, !quiet_);
}

void ConsoleObserver::advance(size_t count, const std::function<std::string()>& detail) {
  if (progress_) progress_->advance(count, detail);
}

void ConsoleObserver::end() { progress_.reset(); }

void ConsoleObserver::chosen(const Choices& choices) {
  for (const std::string& text : choices_text(choices)) note(text);
}

void ConsoleObserver::note(const std::string& text) {
  if (!quiet_) std::cerr << printable(text) << '\n';
}

void ConsoleObserver::warning(const std::string& text) { note("warning: " + text); }

}  // namespace fcp::cli
