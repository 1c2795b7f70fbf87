// The verbs of the program. Each file of this folder defines one: it declares the verb's options on
// a subcommand and runs it when the command line names it.
#pragma once

#include <CLI/CLI.hpp>

namespace fcp::cli {

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

}  // namespace fcp::cli
