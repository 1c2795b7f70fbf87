// fcp completion: a script that completes verbs, options and their values in a shell.

#include <iostream>
#include <memory>
#include <sstream>

#include "fcp/version.h"

#include "apps/cli/common.h"
#include "apps/cli/help.h"

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

// fcp man: the manual page, in the language of man(7), made of what --help says.

namespace {

// Text for man: hyphens that stay hyphens, and no line that begins like a command of its own.
std::string escaped(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins = c == '\n';
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void write_option(std::ostream& out, const OptionWords& option) {
  out << ".TP\n";
  for (size_t i = 0; i < option.names.size(); ++i) {
    out << (i == 0 ? "" : ", ")
        << (option.positional ? italic(option.names[i]) : bold(option.names[i]));
  }
  if (!option.positional && !option.value.empty()) {
    std::string choices;  // with places at which a line may break
    for (const std::string& choice : option.choices) {
      choices += (choices.empty() ? "" : "|\\:") + italic(choice);
    }
    out << ' ' << (choices.empty() ? italic(lower_case(option.value)) : choices);
  }
  out << '\n' << escaped(option.text);
  if (option.required && !option.positional) out << " (required)";
  if (!option.preset.empty()) out << " (default: " << escaped(option.preset) << ')';
  out << ".\n";
}

// The footer holds examples, indented, and remarks; both keep their lines.
void write_verb(std::ostream& out, const VerbWords& verb) {
  out << ".SS fcp " << escaped(verb.name);
  for (const OptionWords& option : verb.options) {
    if (option.positional) out << ' ' << option.names[0];
  }
  out << '\n' << escaped(verb.text) << ".\n";
  for (const OptionWords& option : verb.options) {
    const bool help = option.names.back().starts_with("--help");  // the same for all; told once
    if (!help) write_option(out, option);
  }
  if (verb.footer.empty()) return;
  out << ".PP\n.nf\n" << escaped(verb.footer) << "\n.fi\n";
}

void write_page(std::ostream& out, const CLI::App& app) {
  out << ".TH FCP 1 \"\" \"fcp " FCP_VERSION
         "\" \"User Commands\"\n"
         ".ad l\n"
      << ".SH NAME\nfcp \\- prediction intervals and label sets with guaranteed coverage\n"
      << ".SH SYNOPSIS\n.B fcp\n.I verb\n[options]\n"
      << ".SH DESCRIPTION\n"
      << escaped(app.get_description()) << "\n"
      << ".SH OPTIONS\n";
  for (const OptionWords& option : options_of(app)) write_option(out, option);
  out << ".SH VERBS\n";
  for (const VerbWords& verb : verbs_of(app)) write_verb(out, verb);
  out << ".SH EXIT STATUS\n"
         ".TP\n0\nDone.\n"
         ".TP\n1\nThe data, the model or a file is wrong; one line on standard error says what "
         "and where.\n"
         ".TP\n2\nBad usage.\n"
         ".TP\n3\nAn alarm of\n.B monitor\nor of\n.BR \"evaluate \\-\\-fail\\-below\" .\n"
         ".TP\n130, 143\nInterrupted by SIGINT or SIGTERM; no file is left half written.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B FCP_DATA_DIR\nFolder of the paper's data sets, which\n.B fcp doctor\nlooks at.\n"
         ".TP\n.B OMP_WAIT_POLICY, GOMP_SPINCOUNT\nHow idle threads wait; fcp keeps them from "
         "spinning where neither is set.\n";
}

}  // namespace

void add_man(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("man", "Write the manual page");
  verb->footer(
      "Examples:\n"
      "  fcp man > fcp.1\n"
      "  fcp man | man -l -");
  verb->callback([&app] { write_page(std::cout, app); });
}

}  // namespace fcp::cli
