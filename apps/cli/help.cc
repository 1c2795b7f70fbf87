// fcp help VERB: the same as fcp VERB --help.
#include <iostream>
#include <memory>

#include "fcp/base/error.h"

#include "apps/cli/suggestion.h"
#include "apps/cli/synopsis.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {
namespace {

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

void add_help(CLI::App& app) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = app.add_subcommand("help", "What a verb does and its options");
  verb->footer("Examples:\n  fcp help calibrate\n  fcp help segment evaluate");
  verb->add_option("verb", *words, "A verb; without one, all of them are listed");
  verb->callback([&app, words] { std::cout << help_of(app, *words); });
}

}  // namespace fcp::cli
