// The command line as data: every verb and option with its words, as the parser itself knows them,
// so that the completion and the manual page cannot forget one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fcp::cli {

struct OptionWords {
  std::vector<std::string> names;  // "-h", "--help"; the name alone where it is a position
  bool positional = false;
  bool required = false;
  std::string value;                 // "TEXT", "FLOAT"; empty for a flag
  std::vector<std::string> choices;  // all values it takes, where they are few; else empty
  std::string preset;                // what it is where it is not given; may be empty
  std::string text;
};

struct VerbWords {
  std::string name;
  std::string text;
  std::string footer;
  std::vector<OptionWords> options;
};

// The options of an app or a verb, and the verbs of an app, in the order of its help.
std::vector<OptionWords> options_of(const CLI::App& app);
std::vector<VerbWords> verbs_of(const CLI::App& app);

// The command as it was given, as a shell takes it, but for some options.
std::string command_without(const CLI::App& verb, const std::vector<std::string>& options);

// What the launcher (launcher.cc) says without fcp-core: the output of commands that is known when
// the program is built.

// C++ source with the words and the output of each such command of `app`. `run` runs a command and
// gives its exit code; what it prints to std::cout is its output. An Error where one fails.
std::string answers_source(const CLI::App& app,
                           const std::function<int(const std::vector<std::string>&)>& run);

}  // namespace fcp::cli
