// fcp man: the manual page, in the language of man(7), made of what --help says.
#include <iostream>
#include <sstream>

#include "fcp/version.h"

#include "apps/cli/synopsis.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {
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
