// Options that most verbs take, and small things that several verbs share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fcp/base/error.h"
#include "fcp/data/table_problems.h"
#include "fcp/distributed/communicator.h"
#include "fcp/level.h"
#include "fcp/predictor/context.h"

#include "apps/cli/console_observer.h"

namespace fcp::cli {

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
