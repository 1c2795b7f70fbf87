// Options that most verbs take, and small things that several verbs share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"
#include "fcp/data/table_schema.h"
#include "fcp/distributed/communicator.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"

namespace fcp::cli {

// The verbs of the program. Each file of this folder defines one: it declares the verb's options on
// a subcommand and runs it when the command line names it.

// How help looks: before verbs are added, and after.
void format_help(CLI::App& app);
void group_options(CLI::App& app);

void add_inspect(CLI::App& app);
void add_run(CLI::App& app);
void add_fit(CLI::App& app);
void add_split(CLI::App& app);
void add_train(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_check(CLI::App& app);
void add_predict(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_explain(CLI::App& app);
void add_show(CLI::App& app);
void add_compare(CLI::App& app);
void add_update(CLI::App& app);
void add_monitor(CLI::App& app);
void add_serve(CLI::App& app);
void add_export(CLI::App& app);
void add_state(CLI::App& app);
void add_segment(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_selftest(CLI::App& app);
void add_demo(CLI::App& app);
void add_doctor(CLI::App& app);
void add_help(CLI::App& app);
void add_completion(CLI::App& app);
void add_man(CLI::App& app);

// Tells on stderr what the pipeline does: a progress line, notes and warnings.

class ConsoleObserver : public Observer {
 public:
  explicit ConsoleObserver(bool quiet) : quiet_(quiet) {}

  void begin(std::string_view stage, size_t total) override;
  void advance(size_t count, const std::function<std::string()>& detail) override;
  void end() override;
  void chosen(const Choices& choices) override;
  void note(const std::string& text) override;
  void warning(const std::string& text) override;

 private:
  bool quiet_;
  std::optional<Progress> progress_;
};

struct CommonOptions {
  bool json = false;
  bool quiet = false;
  uint64_t seed = 0;
  int threads = 0;  // 0: all cores
  std::string device = "cpu";
  Communicator* ranks = serial_ranks();  // the processes that share the work

  // What the verb found is to end the program with code 3, after all else is done.
  void alarm() const { *alarmed = true; }
  std::shared_ptr<bool> alarmed = std::make_shared<bool>(false);
};

// Thrown where a verb has done its work and found what it was to look for: exit code 3.
struct Alarm {};

// Runs a verb that several processes share, as ranks of mpirun where that started them. All but
// rank 0 are quiet. Throws Alarm at the end where the verb has called for it.
void run_shared(CommonOptions& options, const std::function<void()>& verb);

// Which of the common options a verb takes, besides --quiet: only those that act there.
enum CommonFlags : unsigned {
  kTakesJson = 1,
  kTakesSeed = 2,
  kTakesThreads = 4,  // and --memory
  kTakesDevice = 8,
  kTakesAll = 15,
};

// Declares common options on a verb.
void add_common(CLI::App& verb, CommonOptions& options, unsigned takes = kTakesAll);

// The context of a verb, observed by the console; an Error where the device is not there.
Context start(const CommonOptions& options);

// What an option's error says on the command line.
std::string flag_complaint(const OptionError& error);

// What is wrong with a table, and the options that cure it.
std::string table_complaint(const TableError& error);

// The last part of a path, also where it ends in a slash.
std::string file_name_of(const std::string& path);

// A line to stderr, unless --quiet.
void say(const CommonOptions& options, const std::string& line);

// The level of --alpha; anything else is bad usage.
Level parse_level(const std::string& alpha);

// The levels of --levels, ascending.
std::vector<Level> parse_levels(const std::vector<std::string>& alphas);

}  // namespace fcp::cli
