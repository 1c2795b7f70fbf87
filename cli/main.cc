// The program fcp: parses the command line, runs one verb, and turns what went wrong into one line
// and an exit code: 0 done, 1 the data or model is wrong, 2 bad usage, 130 interrupted.
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include <CLI/CLI.hpp>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/distributed/run_ranks.h"
#include "fcp/network/libtorch_error.h"

#include "cli/verbs.h"
#include "cli/version.h"

namespace {

int report(const std::string& message, int code) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::cerr << "fcp: " << line << '\n';
  return code;
}

constexpr char kOutOfMemory[] = "out of memory; try a smaller --batch";

// Under mpirun every rank is started with the same command; a verb that does not share its work
// would do all of it on each of them.
void refuse_several_ranks(const std::string& verb) {
  const bool shared = verb == "calibrate" || verb == "evaluate" || verb == "reproduce";
  if (shared || !fcp::started_by_mpirun()) return;
  fcp::run_ranks([&](fcp::Communicator& ranks) {
    if (ranks.size() == 1) return 0;
    throw fcp::UsageError(fcp::concat("'", verb, "' is for one process; mpirun is for calibrate, ",
                                      "evaluate and reproduce"));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "fcp turns a trained neural network into one that says how sure it is: prediction\n"
      "intervals that hold the truth with probability at least 1 - alpha.",
      "fcp");
  CLI::Option* version = app.set_version_flag(
      "--version", [&app] { return fcp::version_text(app.count("--json") > 0); },
      "Print the version and exit");
  const std::string about_json = "With --version: the compiler and the libraries, as JSON";
  app.add_flag("--json", about_json)->needs(version);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  fcp::add_demo(app);
  fcp::add_train(app);
  fcp::add_inspect(app);
  fcp::add_run(app);
  fcp::add_calibrate(app);
  fcp::add_check(app);
  fcp::add_predict(app);
  fcp::add_evaluate(app);
  fcp::add_export(app);
  fcp::add_segment(app);
  fcp::add_reproduce(app);
  fcp::add_selftest(app);
  fcp::add_doctor(app);
  fcp::add_completion(app);
  fcp::add_man(app);

  // CLI11 would only say that a subcommand is required.
  const auto named = [&](const CLI::App* verb) { return verb->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty()) {
    return report("unknown verb '" + std::string(argv[1]) + "'; `fcp --help` lists them", 2);
  }
  fcp::catch_interrupts();
  std::signal(SIGXFSZ, SIG_IGN);  // too large a file is then a failed write, which says so
  try {
    if (argc > 1) refuse_several_ranks(argv[1]);
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return report("cannot write to standard output", 1);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const fcp::UsageError& error) {
    return report(error.what(), 2);
  } catch (const fcp::Interrupted& signal) {
    return report("interrupted; nothing was written", signal.exit_code());
  } catch (const fcp::Error& error) {
    return report(error.what(), 1);
  } catch (const std::bad_alloc&) {
    return report(kOutOfMemory, 1);
  } catch (const std::system_error& error) {  // a thread that could not be started, above all
    return report(fcp::concat("the system refused what fcp needs: ", error.what()), 1);
  } catch (const c10::Error& error) {  // its what() has a call stack of many lines
    if (fcp::is_out_of_memory(error)) return report(kOutOfMemory, 1);
    return report(fcp::concat("libtorch: ", error.what_without_backtrace()), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
