// fcp completion: a script that completes verbs, options and their values in a shell.
#include <iostream>
#include <memory>

#include "apps/cli/synopsis.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {
namespace {

void append_words(std::string& line, const std::vector<std::string>& words) {
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
}

std::string option_names(const std::vector<OptionWords>& options) {
  std::string line;
  for (const OptionWords& option : options) {
    if (!option.positional) append_words(line, option.names);
  }
  return line;
}

// What may stand where no option does: the choices of a position, else nothing, which leaves the
// word to the shell, and that completes files.
std::string position_choices(const std::vector<OptionWords>& options) {
  std::string line;
  for (const OptionWords& option : options) {
    if (option.positional) append_words(line, option.choices);
  }
  return line;
}

// One line for each option that takes a value: its choices, or none where it may be a file.
void write_value_cases(std::ostream& out, const VerbWords& verb) {
  for (const OptionWords& option : verb.options) {
    if (option.positional || option.value.empty()) continue;
    std::string pattern;
    for (const std::string& name : option.names) {
      pattern += (pattern.empty() ? "" : "|") + verb.name + ":" + name;
    }
    std::string choices;
    append_words(choices, option.choices);
    out << "    " << pattern << ") words='" << choices << "' ;;\n";
  }
}

void write_bash(std::ostream& out, const CLI::App& app) {
  const std::vector<VerbWords> verbs = verbs_of(app);
  std::string first = option_names(options_of(app));
  for (const VerbWords& verb : verbs) append_words(first, {verb.name});
  out << "# Completion of fcp for bash, made by `fcp completion bash`.\n"
         "_fcp() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local verb= words= word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    if [[ $word != -* ]]; then verb=$word; break; fi\n"
         "  done\n"
         "  case $verb:$before in\n";
  for (const VerbWords& verb : verbs) write_value_cases(out, verb);
  out << "    *) case $verb:$current in\n"
         "      :*) words='"
      << first << "' ;;\n";
  for (const VerbWords& verb : verbs) {
    out << "      " << verb.name << ":-*) words='" << option_names(verb.options) << "' ;;\n";
    const std::string choices = position_choices(verb.options);
    if (!choices.empty()) out << "      " << verb.name << ":*) words='" << choices << "' ;;\n";
  }
  out << "    esac ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "# Where there is no word of ours, bash completes files.\n"
         "complete -o bashdefault -o default -F _fcp fcp\n";
}

// In single quotes, for zsh and fish alike where there is no quote in it.
std::string quoted(const std::string& text) {
  std::string line = "'";
  for (const char c : text) {
    if (c == '\'') {
      line += "\\'";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c == '\n' ? ' ' : c;
    }
  }
  return line + "'";
}

// zsh offers bash's words through its own bashcompinit.
void write_zsh(std::ostream& out, const CLI::App& app) {
  out << "#compdef fcp\n"
         "# Completion of fcp for zsh, made by `fcp completion zsh`.\n"
         "autoload -Uz bashcompinit && bashcompinit\n";
  write_bash(out, app);
}

void write_fish(std::ostream& out, const CLI::App& app) {
  out << "# Completion of fcp for fish, made by `fcp completion fish`.\n";
  for (const VerbWords& verb : verbs_of(app)) {
    out << "complete -c fcp -n __fish_use_subcommand -f -a " << verb.name << " -d "
        << quoted(verb.text) << '\n';
    for (const OptionWords& option : verb.options) {
      if (option.positional && option.choices.empty()) continue;
      out << "complete -c fcp -n '__fish_seen_subcommand_from " << verb.name << "'";
      for (const std::string& name : option.names) {
        if (option.positional) continue;
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      std::string choices;
      append_words(choices, option.choices);
      if (!choices.empty()) out << " -x -a '" << choices << "'";
      if (choices.empty() && !option.value.empty()) out << " -r";
      out << " -d " << quoted(option.text) << '\n';
    }
  }
}

void write_script(const std::string& shell, std::ostream& out, const CLI::App& app) {
  if (shell == "bash") return write_bash(out, app);
  shell == "zsh" ? write_zsh(out, app) : write_fish(out, app);
}

}  // namespace

void add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "Write a script that completes fcp in a shell");
  verb->footer(
      "Examples:\n"
      "  fcp completion bash > ~/.local/share/bash-completion/completions/fcp\n"
      "  source <(fcp completion bash)\n"
      "  source <(fcp completion zsh)\n"
      "  fcp completion fish > ~/.config/fish/completions/fcp.fish");
  verb->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([&app, shell] { write_script(*shell, std::cout, app); });
}

}  // namespace fcp::cli
