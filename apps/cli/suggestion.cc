#include "apps/cli/suggestion.h"

#include <algorithm>

#include "fcp/base/nearest_word.h"

#include "apps/cli/synopsis.h"

namespace fcp::cli {
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
