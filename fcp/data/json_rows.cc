#include "fcp/data/json_rows.h"

#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/number.h"

namespace fcp {
namespace {

constexpr size_t kFlushText = size_t{1} << 16;

std::string json_of(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

JsonRows::JsonRows(const std::string& path, const std::vector<std::string>& columns) : file_(path) {
  for (const std::string& column : columns) names_.push_back(json_of(column));
}

void JsonRows::begin_cell() {
  if (cells_in_row_ == names_.size()) {
    fail(file_.path(), ": a row of more cells than its ", names_.size(), " columns");
  }
  text_ += cells_in_row_ > 0 ? ", " : any_ ? ",\n {" : "\n {";
  text_ += names_[cells_in_row_++];
  text_ += ": ";
}

void JsonRows::cell(float value) { number_cell(value, number_text(value)); }

void JsonRows::cell(double value) {
  char text[kNumberLength];
  number_cell(value, {text, std::to_chars(text, text + sizeof text, value).ptr});
}

void JsonRows::number_cell(double value, const std::string& text) {
  begin_cell();
  text_ += std::isnan(value)   ? "null"
           : std::isinf(value) ? (value > 0 ? "\"inf\"" : "\"-inf\"")
                               : text;
}

void JsonRows::cell(int64_t value) {
  begin_cell();
  text_ += std::to_string(value);
}

void JsonRows::cell(std::string_view text) {
  begin_cell();
  text_ += json_of(text);
}

void JsonRows::list(const std::vector<std::string>& texts) {
  begin_cell();
  text_ += '[';
  for (size_t i = 0; i < texts.size(); ++i) text_ += (i > 0 ? ", " : "") + json_of(texts[i]);
  text_ += ']';
}

void JsonRows::end_row() {
  if (cells_in_row_ != names_.size()) {
    fail(file_.path(), ": a row of ", cells_in_row_, " cells, expected ", names_.size());
  }
  text_ += '}';
  cells_in_row_ = 0;
  any_ = true;
  if (text_.size() >= kFlushText) flush();
}

void JsonRows::flush() {
  file_.write(text_);
  text_.clear();
}

void JsonRows::close() {
  text_ += "\n]\n";
  flush();
  file_.commit();
}

}  // namespace fcp
