#include "apps/cli/synopsis.h"

#include <algorithm>
#include <sstream>

#include "fcp/base/error.h"
#include "fcp/base/shell_word.h"

namespace fcp::cli {
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

}  // namespace fcp::cli
