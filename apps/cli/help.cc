// How help looks, and fcp help VERB, which is the same as fcp VERB --help.
//
// Options are grouped by topic. Those that most users want come first, in the group that CLI11
// calls "Options"; of verbs with many options, the other groups are shown by --help-all alone.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "fcp/base/error.h"
#include "fcp/base/nearest_word.h"
#include "fcp/methods/option.h"

#include "apps/cli/option_flags.h"
#include "apps/cli/suggestion.h"
#include "apps/cli/synopsis.h"
#include "apps/cli/verbs.h"

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

}  // namespace fcp::cli
