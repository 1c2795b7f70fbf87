#include "apps/cli/option_flags.h"

#include <algorithm>

#include "fcp/base/error.h"

namespace fcp::cli {
namespace {

bool is_on_by_default(const Option& option) {
  return option.kind == OptionKind::kFlag && std::get<bool>(default_value(option));
}

std::string type_text(const Option& option) {
  const std::string open = option.may_be_auto ? "|auto" : "";
  switch (option.kind) {
    case OptionKind::kInteger:
      return "INT" + open;
    case OptionKind::kNumber:
      return "FLOAT" + open;
    case OptionKind::kNumbers:
      return "FLOAT,...";
    default:
      return "TEXT" + open;
  }
}

// "aps, raps: Labels at …", so that a reader sees at once whether a line is for them.
std::string help_text(const Option& option) {
  std::string text;
  for (const auto* names : {&option.scope.scores, &option.scope.calibrations}) {
    for (const std::string& name : *names) text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? option.help : text + ": " + option.help;
}

// What is offered is said; what fcp fit alone makes is let through, for check_options to say so.
CLI::Validator offered_choices(const Option& option) {
  const CLI::IsMember offered(option.choices);
  const auto check = [offered, made = option.only_made](std::string& text) {
    return std::find(made.begin(), made.end(), text) == made.end() ? offered(text) : std::string();
  };
  return CLI::Validator(check, offered.get_description());
}

}  // namespace

std::string flag_name(const std::string& option) {
  std::string flag = option;
  for (const Option& known : option_table()) {
    if (known.name == option && is_on_by_default(known)) flag = "not-" + option;
  }
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

CLI::Option* add_option_flag(CLI::App& verb, MethodRequest& request, const Option& option) {
  const std::string flag = flag_name(option.name);
  if (option.kind == OptionKind::kFlag) {
    const bool value = !is_on_by_default(option);
    const auto put = [&request, option, value](int64_t) { request.put(option.name, value); };
    return verb.add_flag_function(flag, put, help_text(option));
  }
  const auto put = [&request, option, flag](const std::string& text) {
    try {
      request.put(option.name, parse_option(option, text));
    } catch (const OptionError& error) {
      throw CLI::ValidationError(flag, error.complaint());
    }
  };
  CLI::Option* made = verb.add_option_function<std::string>(flag, put, help_text(option));
  if (!option.choices.empty()) return made->check(offered_choices(option));
  return made->type_name(type_text(option));
}

void add_option_flags(CLI::App& verb, MethodRequest& request) {
  for (const Option& option : option_table()) {
    if (option.access != OptionAccess::kAsked) continue;
    CLI::Option* made = add_option_flag(verb, request, option);
    if (option.kind != OptionKind::kFlag) made->default_str(option_text(default_value(option)));
  }
}

}  // namespace fcp::cli
