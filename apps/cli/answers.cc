#include "apps/cli/answers.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "fcp/base/error.h"

namespace fcp::cli {
namespace {

using Command = std::vector<std::string>;

// The help of `app` and of all verbs under it; `words` lead to it.
void add_helps(const CLI::App& app, const Command& words, std::vector<Command>& commands) {
  for (const char* flag : {"--help", "-h", "--help-all"}) {
    commands.push_back(words);
    commands.back().push_back(flag);
  }
  commands.push_back({"help"});
  commands.back().insert(commands.back().end(), words.begin(), words.end());
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    Command longer = words;
    longer.push_back(verb->get_name());
    add_helps(*verb, longer, commands);
  }
}

std::string output_of(const Command& command, const std::function<int(const Command&)>& run) {
  std::ostringstream output;
  std::streambuf* const usual = std::cout.rdbuf(output.rdbuf());
  int code = 1;
  try {
    code = run(command);
  } catch (...) {
    std::cout.rdbuf(usual);
    throw;
  }
  std::cout.rdbuf(usual);
  if (code != 0) fail("fcp ", command.back(), ": ended with ", code, ", expected 0");
  return output.str();
}

}  // namespace

std::string answers_source(const CLI::App& app, const std::function<int(const Command&)>& run) {
  std::vector<Command> commands = {{"--version"},
                                   {"completion", "bash"},
                                   {"completion", "zsh"},
                                   {"completion", "fish"},
                                   {"man"}};
  add_helps(app, {}, commands);
  std::vector<std::string> texts;
  std::string table;
  for (const Command& command : commands) {
    const std::string text = output_of(command, run);
    const auto place = std::find(texts.begin(), texts.end(), text) - texts.begin();
    if (place == std::ssize(texts)) texts.push_back(text);
    std::string words;
    for (const std::string& word : command) words += (words.empty() ? "" : "\\n") + word;
    table += concat("    {\"", words, "\", ", place, "},\n");
  }
  std::string source = "constexpr std::string_view kTexts[] = {\n";
  for (const std::string& text : texts) source += concat("R\"answer(", text, ")answer\",\n");
  return concat(source, "};\nconstexpr Answer kAnswers[] = {\n", table, "};\n");
}

}  // namespace fcp::cli
