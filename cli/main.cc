// The program fcp: parses the command line, runs one verb, and turns what went wrong into one line
// and an exit code: 0 done, 1 the data or model is wrong, 2 bad usage, 130 interrupted.
#include <exception>
#include <iostream>
#include <new>

#include <CLI/CLI.hpp>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/distributed/run_ranks.h"

#include "cli/verbs.h"

namespace {

int report(const std::string& message, int code) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::cerr << "fcp: " << line << '\n';
  return code;
}

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
  app.set_version_flag("--version", "fcp " FCP_VERSION);
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

  // CLI11 would only say that a subcommand is required.
  const auto named = [&](const CLI::App* verb) { return verb->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(named).empty()) {
    return report("unknown verb '" + std::string(argv[1]) + "'; `fcp --help` lists them", 2);
  }
  fcp::catch_interrupts();
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
    return report("out of memory; try a smaller --batch", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
