#include "fcp/data/record.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/data/number.h"

namespace fcp {
namespace {

float record_number(const std::string& text, const CellFormat& format, const std::string& where,
                    const std::string& column) {
  double value = 0;
  if (!parse_cell(text, format, value)) {
    fail(where, ", column '", column, "': expected ", expected_text(format.kind), ", found '", text,
         "'");
  }
  const auto number = static_cast<float>(value);
  if (std::isinf(number)) {
    fail(where, ", column '", column, "': found '", text, "', expected a finite float32");
  }
  return number;
}

}  // namespace

std::string trimmed_text(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool accepts_missing(const CsvEncoding& encoding) {
  return std::any_of(encoding.means.begin(), encoding.means.end(),
                     [](float mean) { return std::isnan(mean); });
}

std::vector<float> encode_record(const CsvEncoding& encoding,
                                 const std::map<std::string, std::string>& record,
                                 const std::string& where, std::string* flags) {
  std::vector<float> features;
  const auto flag = [&](Novelty novelty, size_t column) {
    if (flags == nullptr || novelty == Novelty::kNone) return;
    add_flag(novelty_flag(novelty, encoding.columns[column]), *flags);
  };
  for (size_t i = 0; i < encoding.columns.size(); ++i) {
    const std::string& column = encoding.columns[i];
    const auto found = record.find(column);
    const std::string text = found == record.end() ? "" : trimmed_text(found->second);
    const std::vector<std::string>& marks = encoding.missing;
    const bool missing =
        is_missing(text) || std::find(marks.begin(), marks.end(), text) != marks.end();
    if (missing && encoding.means.empty()) {
      fail(where, ", column '", column,
           "': ", found == record.end() ? "is not there" : "is missing",
           "; the network was trained without missing values");
    }
    if (missing) flag(encoding.novelty_of_missing(i), i);
    const std::vector<std::string>& categories = encoding.categories[i];
    if (!encoding.is_category(i)) {
      features.push_back(missing ? encoding.means[i]
                                 : record_number(text, encoding.format(i), where, column));
      if (!missing) flag(encoding.novelty_of(i, static_cast<double>(features.back())), i);
      continue;
    }
    const size_t first = features.size();
    features.resize(first + encoding.width_of(i), 0);
    if (missing) continue;
    const auto category = std::find(categories.begin(), categories.end(), text);
    if (category != categories.end()) {
      features[first + static_cast<size_t>(category - categories.begin())] = 1;
    } else {
      if (encoding.has_other(i)) features.back() = 1;
      flag(encoding.novelty_of(i, text), i);
    }
  }
  return features;
}

}  // namespace fcp
