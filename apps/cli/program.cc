#include "apps/cli/program.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <iterator>
#include <limits>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/output_file.h"
#include "fcp/base/text.h"
#include "fcp/data/file_witness.h"
#include "fcp/distributed/communicator.h"
#include "fcp/methods/options.h"
#include "fcp/nn/runtime/libtorch_error.h"
#include "fcp/predictor/context.h"

#include "apps/cli/common.h"
#include "apps/cli/help.h"
#include "apps/cli/version.h"

namespace fcp::cli {
namespace {

int report(const std::string& message, int code) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::cerr << "fcp: " << printable(line) << '\n';
  return code;
}

int report_interrupted(const Interrupted& signal) {
  const size_t files = files_written();
  const std::string checkpoint = checkpoint_in_use();
  if (!checkpoint.empty() && files == 0) {
    return report(concat("interrupted; ", checkpoint, " keeps what was done, and the same ",
                         "command goes on from it; nothing else was written"),
                  signal.exit_code());
  }
  const std::string before = files == 0 ? "nothing was written"
                                        : concat(files, files == 1 ? " file was" : " files were",
                                                 " written before, whole; nothing else was");
  return report("interrupted; " + before, signal.exit_code());
}

// Under mpirun all ranks find the same, and rank 0 is heard: the others wait until it has ended the
// job. Where commands differ from rank to rank it may have found nothing, so they do not wait long.
[[noreturn]] void fail_usage(Communicator& ranks, const std::string& message) {
  constexpr int kTenths = 20;
  for (int i = 0; i < kTenths && ranks.rank() > 0; ++i) {
    check_interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw UsageError(message);
}

// `verb` as typed, with that of `segment` after a space.
bool is_shared(const std::string& verb) {
  constexpr std::string_view kShared[] = {"calibrate", "evaluate", "reproduce", "segment calibrate",
                                          "segment evaluate"};
  return std::find(std::begin(kShared), std::end(kShared), verb) != std::end(kShared);
}

// The verb that the command line names, as far down as it goes.
const CLI::App& typed_verb(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

// Bad usage, or help.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& verb,
                 const std::vector<std::string>& arguments) {
  const bool help = error.get_exit_code() == 0;
  const std::string meant = help ? "" : did_you_mean(arguments, typed_verb(app));
  const auto tell = [&] {
    if (meant.empty()) {
      app.exit(error);
    } else {
      std::cerr << "fcp: " << meant << '\n';
    }
    return help ? 0 : 2;
  };
  const bool alone = !verb.starts_with('-') && !is_shared(verb);  // by check_verb
  if (alone) return tell();
  return run_ranks([&](Communicator& ranks) {
    if (ranks.size() > 1 && !help) {
      fail_usage(ranks, concat(error.what(), meant.empty() ? "" : "; ", meant, "; see --help"));
    }
    if (ranks.rank() == 0) tell();
    return help ? 0 : 2;
  });
}

std::string other_verb(const CLI::App& app, const std::string& verb) {
  std::vector<std::string> names;
  for (const VerbWords& one : verbs_of(app)) names.push_back(one.name);
  const std::string meant = nearest_word(verb, names);
  return meant.empty() ? "; `fcp --help` lists them" : "; did you mean " + meant + "?";
}

// CLI11 would only say that a subcommand is required. And under mpirun every rank is started with
// the same command; a verb that does not share its work would do all of it on each of them.
void check_verb(const CLI::App& app, const std::string& verb) {
  const std::string first = verb.substr(0, verb.find(' '));
  const auto named = [&](const CLI::App* one) { return one->get_name() == first; };
  const bool known = !app.get_subcommands(named).empty();
  if (verb.starts_with('-') || (known && (is_shared(verb) || !started_by_mpirun()))) return;
  run_ranks([&](Communicator& ranks) -> int {
    if (!known) fail_usage(ranks, concat("unknown verb '", verb, "'", other_verb(app, verb)));
    if (ranks.size() == 1) return 0;
    fail_usage(ranks, concat("'", verb, "' is for one process; mpirun is for calibrate, ",
                             "evaluate, reproduce, segment calibrate and segment evaluate"));
  });
}

void add_verbs(CLI::App& app) {
  for (const auto add : {add_fit,      add_demo,      add_split,   add_train,      add_inspect,
                         add_run,      add_calibrate, add_check,   add_predict,    add_evaluate,
                         add_explain,  add_show,      add_compare, add_update,     add_monitor,
                         add_serve,    add_state,     add_export,  add_segment,    add_reproduce,
                         add_selftest, add_doctor,    add_help,    add_completion, add_man}) {
    add(app);
  }
}

template <typename Number>
std::string number_complaint(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && next == end) return "";
  return concat("found ", text, ", expected a whole number from ",
                std::numeric_limits<Number>::min(), " to ", std::numeric_limits<Number>::max());
}

// Whether the flag is made from the option table, which knows its range.
bool is_of_table(const CLI::Option& flag) {
  const std::vector<Option>& table = option_table();
  return std::any_of(table.begin(), table.end(), [&](const Option& option) {
    std::string name = option.name;
    std::replace(name.begin(), name.end(), '_', '-');
    const bool asked =
        option.access == OptionAccess::kAsked || option.access == OptionAccess::kImages;
    return asked && flag.check_lname(name);
  });
}

// CLI11 reads numbers by strtoull, which takes -3 for 2^64 - 3 and whatever is too large for the
// largest number.
void check_whole_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (is_of_table(*option)) continue;
    const std::string type = option->get_type_name().substr(0, option->get_type_name().find(':'));
    if (type == "UINT") option->check(CLI::Validator(number_complaint<uint64_t>, ""));
    if (type == "INT") option->check(CLI::Validator(number_complaint<int64_t>, ""));
  }
  for (CLI::App* verb : app.get_subcommands({})) check_whole_numbers(*verb);
}

int end_output(int exit_code) {
  std::cout.flush();
  return std::cout ? exit_code : report("cannot write to standard output", 1);
}

// Whether a device is asked for that takes long to start. What else is wrong with the words is said
// later.
bool names_cuda(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--device=cuda" ||
        (word == "cuda" && argv[i - 1] == std::string_view("--device"))) {
      return true;
    }
  }
  return false;
}

constexpr std::string_view kWriteAnswers = "--write-answers";

int run_verb(int argc, char** argv);

// fcp-core --write-answers FILE, when fcp is built.
int write_answers(const CLI::App& app, const std::string& path) {
  const auto run = [](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"fcp"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return run_verb(static_cast<int>(all.size()), arguments.data());
  };
  write_file(path, answers_source(app, run));
  return 0;
}

int run_verb(int argc, char** argv) {
  CLI::App app(
      "fcp adds prediction intervals and sets to any trained model: for rows like those of\n"
      "calibration they hold the truth with probability at least 1 - alpha.",
      "fcp");
  CLI::Option* version = app.set_version_flag(
      "--version", [&app] { return version_text(app.count("--json") > 0); },
      "Print the version and exit");
  const std::string about_json = "With --version: the compiler and the libraries, as JSON";
  app.add_flag("--json", about_json)->needs(version);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  format_help(app);
  add_verbs(app);
  group_options(app);
  check_whole_numbers(app);
  if (argc == 3 && argv[1] == kWriteAnswers) return write_answers(app, argv[2]);
  if (argc < 2) throw UsageError("no verb given, such as fit; `fcp --help` lists them");
  std::string verb = argv[1];
  if (verb == "segment" && argc > 2) verb = concat(verb, " ", argv[2]);
  check_verb(app, verb);
  const OneReading reading;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, verb, {argv + 1, argv + argc});
  }
  return end_output(0);
}

}  // namespace

int run_program(int argc, char** argv) {
  catch_interrupts();
  if (names_cuda(argc, argv)) start_cuda_ahead();
  std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then a failed write, which says so
  try {
    return run_verb(argc, argv);
  } catch (const Alarm&) {
    return end_output(3);
  } catch (const OptionError& error) {
    return report(flag_complaint(error), 2);
  } catch (const UsageError& error) {
    return report(error.what(), 2);
  } catch (const Interrupted& signal) {
    return report_interrupted(signal);
  } catch (const TableError& error) {
    return report(table_complaint(error), 1);
  } catch (const Error& error) {
    return report(error.what(), 1);
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (const std::system_error& error) {  // a thread that could not be started, above all
    return report(concat("the system refused what fcp needs: ", error.what()), 1);
  } catch (const c10::Error& error) {  // its what() has a call stack of many lines
    if (is_out_of_memory(error)) end_out_of_memory();
    return report(concat("the network cannot be computed: ", libtorch_text(error)), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

void end_out_of_memory() {
  std::cerr << "fcp: out of memory; try a smaller --batch or fewer --threads, or allow more memory "
               "(ulimit -v)\n";
  _exit(1);
}

std::string did_you_mean(const std::vector<std::string>& arguments, const CLI::App& verb) {
  std::vector<std::string> names;
  for (const OptionWords& option : options_of(verb)) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  for (const std::string& argument : arguments) {
    const std::string word = argument.substr(0, argument.find('='));
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end()) {
      continue;
    }
    const std::string meant = nearest_word(word, names);
    if (!meant.empty()) return word + " is not an option; did you mean " + meant + "?";
  }
  return "";
}

}  // namespace fcp::cli
