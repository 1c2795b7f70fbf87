// How help looks, and fcp help VERB, which is the same as fcp VERB --help.
//
// Options are grouped by topic. Those that most users want come first, in the group that CLI11
// calls "Options"; of verbs with many options, the other groups are shown by --help-all alone.
#include "apps/cli/help.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "fcp/base/error.h"
#include "fcp/base/text.h"
#include "fcp/methods/option.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/program.h"

namespace fcp::cli {
namespace {

constexpr const char* kCommon = "Options";
constexpr const char* kLimits = "Limits";

// The topics of options that are not made from the option table. Whatever is not here is common.
const std::map<std::string, std::vector<std::string>>& topics() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"Reading tables",
       {"separator", "header", "drop", "categorical", "impute", "schema", "on-error", "refused",
        "missing", "encoding", "batch"}},
      {"Predictive distributions", {"above", "below", "between", "point", "distribution"}},
      {"Images", {"images", "resize", "crop", "mean", "deviation", "class-names"}},
      {"Running",
       {"quiet", "seed", "threads", "device", "memory", "force", "checkpoint",
        "checkpoint-seconds"}},
      {kLimits,
       {"max-body", "max-rows", "max-connections", "max-per-client", "rate", "max-queue",
        "request-seconds", "idle-seconds"}}};
  return all;
}

// A verb with fewer options shows all of them.
constexpr size_t kMany = 20;

bool is_method_option(const CLI::Option& option) {
  const std::vector<Option>& table = option_table();
  return std::any_of(table.begin(), table.end(), [&](const Option& one) {
    return one.access == OptionAccess::kAsked && option.check_lname(flag_name(one.name).substr(2));
  });
}

// Method options that a user of calibrate is likely to set.
bool is_common_method_option(const CLI::Option& option) {
  const std::vector<std::string> common = {"score", "calibration", "cut", "objective", "side"};
  return std::any_of(common.begin(), common.end(),
                     [&](const std::string& name) { return option.check_lname(name); });
}

std::string topic_of(const CLI::App& verb, const CLI::Option& option) {
  for (const auto& [topic, names] : topics()) {
    if (topic == kLimits && verb.get_name() != "serve") continue;  // --rate is another elsewhere
    for (const std::string& name : names) {
      if (option.check_lname(name)) return topic;
    }
  }
  return is_method_option(option) && !is_common_method_option(option) ? "Method" : kCommon;
}

class TopicFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const bool many = app->get_options().size() > kMany;
    hides_ = mode == CLI::AppFormatMode::Normal && many;
    hidden_.clear();
    std::string text = CLI::Formatter::make_help(app, name, mode);
    for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text;
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (hides_ && !is_positional && group != kCommon) {
      hidden_ += (hidden_.empty() ? "" : ", ") + group;
      return "";
    }
    return CLI::Formatter::make_group(group, is_positional, options);
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = CLI::Formatter::make_footer(app);
    if (hidden_.empty()) return footer;
    return concat("\nMore options (", hidden_, "): --help-all\n", footer);
  }

 private:
  // Of the help that is being made.
  mutable bool hides_ = false;
  mutable std::string hidden_;
};

// As the verb's own --help, which names the program before the verb.
std::string help_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  std::string before;
  for (const std::string& word : words) {
    before += (before.empty() ? "" : " ") + found->get_name();
    const auto named = [&](const CLI::App* one) { return one->get_name() == word; };
    const auto verbs = found->get_subcommands(named);
    if (verbs.empty()) {
      std::vector<std::string> names;
      for (const VerbWords& verb : verbs_of(*found)) names.push_back(verb.name);
      const std::string meant = nearest_word(word, names);
      throw UsageError(
          concat("unknown verb '", word, "'",
                 meant.empty() ? "; `fcp --help` lists them" : "; did you mean " + meant + "?"));
    }
    found = verbs[0];
  }
  if (found != &app) return found->help(before);
  // app.help() would be that of the verb that was typed, which is `help`.
  return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

}  // namespace

void format_help(CLI::App& app) {
  app.set_help_all_flag("--help-all", "Print all options and exit");
  app.formatter(std::make_shared<TopicFormatter>());
}

void group_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) option->group(topic_of(app, *option));
  }
  for (CLI::App* verb : app.get_subcommands(nullptr)) group_options(*verb);
}

void add_help(CLI::App& app) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app.add_subcommand("help", "Show what a verb does and its options");
  verb->footer("Examples:\n  fcp help calibrate\n  fcp help segment evaluate");
  verb->add_option("verb", *words, "A verb; without one, all of them are listed");
  verb->callback([&app, words] { std::cout << help_of(app, *words); });
}

namespace {

// CLI11 writes a type and its checks as "TEXT:{cpu,cuda}", "UINT:INT in [0 - 4096]" or "FLOAT".
void read_type(const std::string& type, OptionWords& words) {
  const size_t colon = type.find(':');
  words.value = type.substr(0, colon);
  if (colon == std::string::npos || type.size() < colon + 3) return;
  if (type[colon + 1] != '{' || type.back() != '}') return;
  std::istringstream choices(type.substr(colon + 2, type.size() - colon - 3));
  for (std::string choice; std::getline(choices, choice, ',');) words.choices.push_back(choice);
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words;
  words.positional = option.get_positional();
  words.required = option.get_required();
  words.text = option.get_description();
  words.preset = option.get_default_str();
  if (words.positional) {
    words.names.push_back(option.get_name());
  } else {
    for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  }
  const bool flag = option.get_items_expected_max() == 0;
  if (!flag) read_type(option.get_type_name(), words);
  return words;
}

}  // namespace

std::vector<OptionWords> options_of(const CLI::App& app) {
  std::vector<OptionWords> words;
  for (const CLI::Option* option : app.get_options()) words.push_back(words_of(*option));
  return words;
}

std::vector<VerbWords> verbs_of(const CLI::App& app) {
  std::vector<VerbWords> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back({.name = verb->get_name(),
                     .text = verb->get_description(),
                     .footer = verb->get_footer(),
                     .options = options_of(*verb)});
  }
  return verbs;
}

std::string command_without(const CLI::App& verb, const std::vector<std::string>& options) {
  std::string command = concat("fcp ", verb.get_name());
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_single_name();
    const std::string flag = option->get_positional() ? "" : concat("--", name);
    if (option->count() == 0 || std::find(options.begin(), options.end(), flag) != options.end()) {
      continue;
    }
    if (!flag.empty()) command += concat(" ", flag);
    if (option->get_expected_max() == 0) continue;
    std::string value;
    for (const std::string& part : option->results()) value += (value.empty() ? "" : ",") + part;
    command += concat(" ", shell_word(value));
  }
  return command;
}

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
