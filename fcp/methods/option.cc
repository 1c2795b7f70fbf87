#include "fcp/methods/option.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/base/text.h"

namespace fcp {
namespace {

std::string number_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string joined_choices(const std::vector<std::string>& names, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

std::string range_text(const Option& option) {
  const std::string least = number_text(option.least);
  if (std::isinf(option.most)) return (option.above ? " above " : " of at least ") + least;
  const std::string most = option.kind == OptionKind::kInteger
                               ? std::to_string(static_cast<uint64_t>(option.most))
                               : number_text(option.most);
  return option.above ? concat(" above ", least, " and up to ", most)
                      : concat(" from ", least, " to ", most);
}

bool in_range(const Option& option, double value) {
  const bool low = option.above ? value <= option.least : value < option.least;
  return !low && value <= option.most && std::isfinite(value);
}

std::vector<std::string> every_choice(const Option& option) {
  std::vector<std::string> choices = option.choices;
  choices.insert(choices.end(), option.only_made.begin(), option.only_made.end());
  return choices;
}

bool fits(const Option& option, const OptionValue& value) {
  if (std::holds_alternative<AutoValue>(value)) return option.may_be_auto;
  const auto* whole = std::get_if<uint64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  switch (option.kind) {
    case OptionKind::kFlag:
      return std::holds_alternative<bool>(value);
    case OptionKind::kInteger:
      return whole != nullptr && in_range(option, static_cast<double>(*whole));
    case OptionKind::kNumber:
      if (whole != nullptr) return in_range(option, static_cast<double>(*whole));
      return number != nullptr && in_range(option, *number);
    case OptionKind::kChoice:
      if (text == nullptr) return false;
      for (const std::string& choice : every_choice(option)) {
        if (choice == *text) return true;
      }
      return false;
    case OptionKind::kText:
      return text != nullptr;
    case OptionKind::kNumbers:
      break;
  }
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (numbers == nullptr) return false;
  for (const double each : *numbers) {
    if (!in_range(option, each)) return false;
  }
  return true;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<OptionValue> list_in(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::optional<double> number = number_in<double>(text.substr(0, comma));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

// The value that the text is, if it is one of the option's kind.
std::optional<OptionValue> value_of_text(const Option& option, const std::string& text) {
  if (option.may_be_auto && text == "auto") return AutoValue{};
  switch (option.kind) {
    case OptionKind::kFlag:
      if (text != "true" && text != "false") return std::nullopt;
      return text == "true";
    case OptionKind::kInteger:
      return number_in<uint64_t>(text);
    case OptionKind::kNumber:
      return number_in<double>(text);
    case OptionKind::kNumbers:
      return list_in(text);
    case OptionKind::kChoice:
    case OptionKind::kText:
      break;
  }
  return text;
}

// Texts become metadata of a network, which is UTF-8.
void check_utf8(const Option& option, const std::string& text) {
  if (!is_utf8(text)) fail_option(option.name, "found ", text, ", expected UTF-8");
}

struct TextOfValue {
  std::string operator()(const AutoValue&) const { return "auto"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<double>& values) const {
    std::string text;
    for (const double value : values) {
      if (!text.empty()) text += ',';
      text += number_text(value);
    }
    return text;
  }
};

void add_names(std::vector<std::string>& terms, const std::vector<std::string>& names,
               const std::string& what) {
  for (const std::string& name : names) terms.push_back(what + name);
}

}  // namespace

OptionValue default_value(const Option& option) {
  return option.auto_by_default ? AutoValue{} : option.usual;
}

OptionValue value_in(const Option& option, const Method& method) {
  const std::optional<OptionValue> value = option.get ? option.get(method) : std::nullopt;
  return value.value_or(option.usual);
}

std::string expected_value(const Option& option, bool resolved) {
  const std::string open = option.may_be_auto && !resolved ? "'auto' or " : "";
  switch (option.kind) {
    case OptionKind::kFlag:
      return open + "true or false";
    case OptionKind::kInteger:
      return open + "a whole number" + range_text(option);
    case OptionKind::kNumber:
      return open + "a number" + range_text(option);
    case OptionKind::kChoice:
      return open + joined_choices(resolved ? every_choice(option) : option.choices, " or ");
    case OptionKind::kText:
      return open + "text";
    case OptionKind::kNumbers:
      break;
  }
  return "a list of numbers, each" + range_text(option);
}

std::string option_text(const OptionValue& value) { return std::visit(TextOfValue{}, value); }

void check_value(const Option& option, const OptionValue& value) {
  check_utf8(option, option_text(value));
  if (fits(option, value)) return;
  fail_option(option.name, "found ", option_text(value), ", expected ", expected_value(option));
}

OptionValue parse_option(const Option& option, const std::string& text) {
  check_utf8(option, text);
  const std::optional<OptionValue> value = value_of_text(option, text);
  if (!value || !fits(option, *value)) {
    fail_option(option.name, "found ", text, ", expected ", expected_value(option));
  }
  return *value;
}

std::string scope_text(const OptionScope& scope) {
  std::vector<std::string> terms;
  add_names(terms, scope.scores, "");
  add_names(terms, scope.calibrations, "the calibration ");
  std::string text;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i > 0) text += i + 1 == terms.size() ? " and " : ", ";
    text += terms[i];
  }
  return text;
}

}  // namespace fcp
