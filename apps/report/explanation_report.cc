#include "apps/report/explanation_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

#include "apps/report/json.h"
#include "apps/report/page.h"
#include "apps/report/results.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

constexpr size_t kMostShown = 20;  // columns of the text

std::string size_word(const Explanation& explanation) {
  return explanation.labels ? "size" : "length";
}

std::string prediction_text(const Explanation& explanation) {
  if (explanation.labels) return "answers changed";
  return explanation.scaled ? "prediction changes by (standard deviations)"
                            : "prediction changes by";
}

std::string prediction_value(const Explanation& explanation, const ColumnImportance& column) {
  return explanation.labels ? format_percent(column.prediction) : format_number(column.prediction);
}

std::string reasons_text(const WidenedRow& row) {
  std::string text;
  for (const WidenedRow::Reason& reason : row.reasons) {
    text += concat(text.empty() ? "" : ", ", reason.column, " +", format_number(reason.by));
  }
  return text.empty() ? "no single column" : text;
}

std::string mean_text(const Explanation& explanation) {
  return explanation.training ? "mean of the training rows" : "mean of these rows";
}

}  // namespace

std::string explanation_text(const Explanation& explanation) {
  const std::string size = size_word(explanation);
  std::string text = concat(format_count(explanation.rows, "row"), ", mean ", size, " ",
                            format_number(explanation.mean_length), " at alpha ", explanation.level,
                            "\n\nA column's values shuffled among the rows:\n");
  Table columns({"column", prediction_text(explanation), size + " changes by"});
  for (size_t i = 0; i < std::min(kMostShown, explanation.columns.size()); ++i) {
    const ColumnImportance& column = explanation.columns[i];
    columns.add_row(
        {column.column, prediction_value(explanation, column), format_number(column.length)});
  }
  text += columns.text(2);
  if (explanation.columns.size() > kMostShown) {
    text += concat("  and ", explanation.columns.size() - kMostShown, " more columns\n");
  }
  text += concat("\nThe rows with the largest ", size, ", and what widens them beside the ",
                 mean_text(explanation), ":\n");
  Table rows({"row", size, "widened by"});
  for (const WidenedRow& row : explanation.widest) {
    rows.add_row({row.name, format_number(row.length), reasons_text(row)});
  }
  return text + rows.text(2);
}

nlohmann::ordered_json explanation_json(const Explanation& explanation) {
  nlohmann::ordered_json json = {{"rows", explanation.rows}, {"alpha", explanation.level}};
  json["mean_" + size_word(explanation)] = json_number(explanation.mean_length);
  json["means"] = explanation.training ? "training" : "rows";
  json["unit"] = explanation.labels   ? "answers changed"
                 : explanation.scaled ? "standard deviations"
                                      : "the target's unit";
  json["columns"] = nlohmann::ordered_json::array();
  for (const ColumnImportance& column : explanation.columns) {
    json["columns"].push_back({{"column", column.column},
                               {"prediction", json_number(column.prediction)},
                               {size_word(explanation), json_number(column.length)}});
  }
  if (explanation.widest.empty()) return json;
  json["widest"] = nlohmann::ordered_json::array();
  for (const WidenedRow& row : explanation.widest) {
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const WidenedRow::Reason& reason : row.reasons) {
      reasons.push_back({{"column", reason.column}, {"by", json_number(reason.by)}});
    }
    json["widest"].push_back({{"row", row.name},
                              {size_word(explanation), json_number(row.length)},
                              {"widened_by", std::move(reasons)}});
  }
  return json;
}

std::string explanation_html(const Explanation& explanation,
                             const std::vector<std::pair<std::string, std::string>>& provenance) {
  const std::string size = size_word(explanation);
  const std::vector<Figure> figures = {
      {.caption = "Importance of columns",
       .remark = concat("How far the prediction and the ", size, " change where the values of a ",
                        "column are shuffled among the rows. Columns that depend on each other "
                        "share their importance, and none of it is a cause."),
       .chart = {"importance", ""},
       .wide = true}};
  std::vector<std::vector<std::string>> rows;
  for (const WidenedRow& row : explanation.widest) {
    rows.push_back({row.name, format_number(row.length), reasons_text(row)});
  }
  const std::vector<std::string> headers = {
      "row", size, concat("widened by, beside the ", mean_text(explanation))};
  const std::string tiles = html_tile("rows", format_count(explanation.rows), "") +
                            html_tile("mean " + size, format_number(explanation.mean_length),
                                      "at alpha " + explanation.level);
  return html_page(
      "Why are they wide?", "What predictions and the " + size + " of their regions depend on",
      concat(
          "<div class=\"tiles\">\n", tiles, "</div>\n",
          html_section("columns", "Columns", html_figures(figures)),
          html_section("rows", concat("Rows with the largest ", size), html_table(headers, rows)),
          provenance_section(provenance)),
      explanation_json(explanation));
}

}  // namespace fcp
