#include "apps/cli/option_flags.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/table_schema.h"
#include "fcp/fit/fit.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/paths.h"

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

namespace {

constexpr size_t kMostDigits = 15;

// The digits behind the point of a number in (0, 1): "0.90" is "90". Empty where it is none.
std::string decimals_of(const std::string& text) {
  const size_t point = text.find('.');
  if (point == std::string::npos || text.substr(0, point).find_first_not_of('0') < point) return "";
  const std::string digits = text.substr(point + 1);
  const bool plain = digits.find_first_not_of("0123456789") == std::string::npos;
  const bool zero = digits.find_first_not_of('0') == std::string::npos;
  return plain && !zero && digits.size() <= kMostDigits ? digits : "";
}

// "97.5%" as ".975".
std::string share_of_percent(std::string percent) {
  percent.pop_back();
  const size_t point = std::min(percent.find('.'), percent.size());
  std::string whole = percent.substr(0, point);
  while (whole.size() < 2) whole.insert(whole.begin(), '0');
  if (whole.size() > 2) return "";
  return "." + whole + (point < percent.size() ? percent.substr(point + 1) : "");
}

}  // namespace

std::string alpha_of_confidence(const std::string& confidence) {
  const std::string share = confidence.ends_with('%') ? share_of_percent(confidence) : confidence;
  std::string digits = decimals_of(share);
  if (digits.empty()) {
    throw UsageError(
        concat("--confidence: ", confidence, " is not a share between 0 and 1, as 0.9 or 90%"));
  }
  while (digits.back() == '0') digits.pop_back();
  for (char& digit : digits) digit = static_cast<char>('9' - (digit - '0'));
  ++digits.back();  // the complement to nines, and one: the last digit was not 0, so it fits
  return "0." + digits;
}

void add_levels(CLI::App& verb, LevelFlags& flags, bool several) {
  flags.several = several;
  CLI::Option* alpha = verb.add_option("--alpha", flags.alpha,
                                       several ? "Share of regions that may miss the truth; "
                                                 "several: 0.1,0.2, with columns for each. A file "
                                                 "of fcp fit brings its own"
                                               : "Share of regions that may miss the truth");
  alpha->delimiter(',')->allow_extra_args(false)->default_str("0.1");
  CLI::Option* confidence =
      verb.add_option("--confidence", flags.confidence,
                      "Share of regions that should hold the truth: 0.9 is --alpha 0.1");
  confidence->delimiter(',')->allow_extra_args(false)->excludes(alpha);
}

std::vector<Level> levels_of(const LevelFlags& flags) {
  std::vector<Level> levels;
  const bool confident = !flags.confidence.empty();
  const std::vector<std::string> usual = {"0.1"};
  const bool given = confident || !flags.alpha.empty();
  for (const std::string& text : confident ? flags.confidence : given ? flags.alpha : usual) {
    const Level level = parse_level(confident ? alpha_of_confidence(text) : text);
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) {
      throw UsageError(concat(confident ? "--confidence: " : "--alpha: ", text, " is given twice"));
    }
    levels.push_back(level);
  }
  if (!flags.several && levels.size() != 1) {
    throw UsageError("--alpha: several levels apply only to predict");
  }
  return levels;
}

CalibrationArtifact read_artifact_at(const std::string& path, const LevelFlags& flags,
                                     std::vector<Level>& levels) {
  levels = levels_of(flags);
  if (!flags.alpha.empty() || !flags.confidence.empty()) return read_artifact_for(path, levels);
  CalibrationArtifact artifact = read_artifact(path);
  const auto made_for = artifact.provenance.find(kUsualLevel);
  if (made_for != artifact.provenance.end()) levels = {Level::parse(made_for->second)};
  if (const auto missing = missing_level(artifact.rows.levels, levels[0])) {
    fail(path, ": ", *missing);
  }
  return artifact;
}

void say_lax_level(const CommonOptions& common, const Level& level) {
  if (const auto warning = lax_level_warning(level)) say(common, "warning: " + *warning);
}

namespace {

void add_images(CLI::App& verb, DataFlags& flags) {
  verb.add_flag(
      "--images", flags.images,
      "The data are images: a CSV of files and labels, or a uint8 .npy [N, height, width, "
      "3]; a folder always is");
  const auto given = [&flags](const std::string&) { flags.transform_given = true; };
  verb.add_option("--resize", flags.transform.resize,
                  "Images: length of the shorter side; 0: as they are")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--crop", flags.transform.crop, "Images: side of the middle square; 0: none")
      ->capture_default_str()
      ->each(given);
  verb.add_option("--mean", flags.transform.mean, "Images: mean of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--deviation", flags.transform.deviation,
                  "Images: deviation of each channel, in [0, 1]")
      ->delimiter(',')
      ->each(given);
  verb.add_option("--class-names", flags.class_names, "File of class names, one per line");
}

void add_table_flags(CLI::App& verb, DataFlags& flags) {
  verb.add_option("--schema", flags.schema,
                  flags.may_show
                      ? "CSV column types: 'show' prints those inferred and ends; COLUMN=TYPE,… "
                        "overrides them: number, number:comma, category, date, date:dmy, boolean, "
                        "identifier, text, drop"
                      : "CSV column types, for a network that brings none: COLUMN=TYPE,… with "
                        "number, number:comma, category, date, date:dmy, boolean, text or drop");
  verb.add_option("--on-error", flags.on_error,
                  "CSV rows that cannot be read: stop, or skip them and write them to a file")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  verb.add_option("--refused", flags.refused,
                  "File of the rows that --on-error skip leaves out [DATA.refused.csv]");
}

}  // namespace

void add_data(CLI::App& verb, DataFlags& flags, bool needs_target, TakesImages images) {
  flags.needs_target = needs_target;
  if (needs_target) {
    verb.add_option("--target", flags.target,
                    "Target: a CSV column by name or 0-based index (several: a,b), or an .npy "
                    "file; folders of images name it themselves");
  }
  verb.add_option("--separator", flags.separator,
                  "CSV separator: a character or 'tab'; inferred when absent");
  verb.add_option("--header", flags.header, "Whether the CSV has a header: auto, yes or no")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  verb.add_option("--drop", flags.drop, "CSV columns to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--categorical", flags.categorical,
                  "CSV columns to encode as categories (one-hot)")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--impute", flags.impute, "Replace missing CSV values by the column's mean");
  verb.add_option(
          "--missing", flags.missing,
          "CSV cells that mean a missing value, such as -,unknown; besides empty ones, NA, NaN, "
          "null and ?")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--encoding", flags.encoding, "Encoding of CSV text")
      ->check(CLI::IsMember(text_encoding_names()))
      ->capture_default_str();
  add_table_flags(verb, flags);
  verb.add_option("--batch", flags.batch, "Rows per batch; 0: automatic")->capture_default_str();
  if (images == TakesImages::kYes) add_images(verb, flags);
}

void add_facts(CLI::App& verb, FactOptions& options) {
  verb.add_option("--group", options.group,
                  "The group of each row: a CSV column, or an .npy file of group numbers");
  verb.add_option("--weights", options.weights,
                  "The likelihood ratio of each row: a CSV column or an .npy file");
}

char separator_of(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1)
    throw UsageError(concat("--separator ", text, ": expected one character or 'tab'"));
  return text[0];
}

namespace {

// The types that are told, and whether they are to be shown.
std::string split_show(const std::string& schema, bool& show) {
  show = schema == "show" || schema.starts_with("show,");
  if (!show) return schema;
  return schema.size() > 5 ? schema.substr(5) : "";
}

void add_types(const DataFlags& flags, DataOptions& options) {
  bool show = false;
  options.csv.types = parse_types(split_show(flags.schema, show));
  options.csv.find_types = !options.csv.types.empty();
  if (show && !flags.may_show) {
    throw UsageError("--schema show applies only to train, fit and split");
  }
  if (flags.on_error != "skip") {
    if (!flags.refused.empty()) throw UsageError("--refused applies only to --on-error skip");
    return;
  }
  options.refuse.problems = true;
  options.refused = flags.refused_rows;
  options.csv.refused = flags.refused_rows;
  options.refused_file = flags.refused;
  if (flags.refused.empty()) {
    const std::string first = flags.data == "-" ? "stdin" : file_list(flags.data)[0];
    options.refused_file = std::filesystem::path(first).stem().string() + ".refused.csv";
  }
}

}  // namespace

void take_target(const CalibrationArtifact& artifact, DataOptions& data) {
  if (!data.target.empty() || are_images(data) || holds_array(file_list(data.data)[0])) return;
  const auto facts = artifact.facts();
  const auto found = facts.find("target");
  if (found != facts.end()) data.target = found->second;
}

bool show_schema(const DataFlags& flags, const DataOptions& data, bool json) {
  bool show = false;
  split_show(flags.schema, show);
  if (!show) return false;
  const CsvOptions& csv = data.csv;
  const TableSchema schema = find_schema(file_list(data.data)[0], data.target,
                                         {.separator = csv.separator,
                                          .header = csv.header,
                                          .drop = csv.drop,
                                          .categorical = csv.categorical,
                                          .types = csv.types,
                                          .missing = csv.missing,
                                          .text_encoding = csv.text_encoding});
  const bool classes = takes_classes(schema, csv.labels);
  if (!json) {
    std::cout << schema_text(schema, concat("target: ", classes ? "classification" : "regression"));
    return true;
  }
  nlohmann::ordered_json all = {{"rows", schema.rows}};
  if (!data.target.empty()) all["target"] = classes ? "classes" : "numbers";
  for (const TableColumn& column : schema.columns) {
    all["columns"].push_back({{"name", column.name},
                              {"type", format_text(column.format)},
                              {"target", column.target},
                              {"read", is_read(column.format.kind) && !column.dropped},
                              {"missing", column.missing},
                              {"distinct", column.distinct}});
  }
  std::cout << all.dump(2) << '\n';
  return true;
}

DataOptions data_options(const DataFlags& flags) {
  DataOptions options{.data = flags.data == "-" ? standard_input_file() : flags.data,
                      .target = flags.target,
                      .needs_target = flags.needs_target,
                      .images = flags.images,
                      .class_names = flags.class_names};
  options.csv.separator = separator_of(flags.separator);
  options.csv.header = flags.header == "yes"  ? CsvHeader::kYes
                       : flags.header == "no" ? CsvHeader::kNo
                                              : CsvHeader::kAuto;
  options.csv.drop = flags.drop;
  options.csv.categorical = flags.categorical;
  options.csv.impute = flags.impute;
  options.csv.missing = flags.missing;
  options.csv.text_encoding = parse_text_encoding(flags.encoding);
  add_types(flags, options);
  if (flags.transform_given) options.transform = flags.transform;
  return options;
}

}  // namespace fcp::cli
