#include "apps/report/page.h"

#include <algorithm>

#include "fcp/base/error.h"

#include "apps/report/embedded.h"
#include "apps/report/results.h"

namespace fcp {

namespace {

constexpr size_t kLongestNumber = 30;  // what is wider is a sentence

std::string class_attribute(std::string_view css_class) {
  return css_class.empty() ? std::string() : concat(" class=\"", css_class, "\"");
}

// JSON as an element of the page. Nothing inside ends it.
std::string data_element(const nlohmann::ordered_json& data, std::string_view attributes) {
  std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return concat("<script type=\"application/json\"", attributes, ">", text, "</script>");
}

std::string html_chart(const Figure& figure) {
  const nlohmann::ordered_json& data = figure.chart.data;
  const std::string at =
      data.is_string() ? concat(" data-at=\"", escape_text(data.get<std::string>()), "\"") : "";
  return concat("<div class=\"plot\" data-chart=\"", figure.chart.kind, "\" data-title=\"",
                escape_text(figure.caption), "\"", at, ">",
                at.empty() ? data_element(data, "") : "", "</div>\n");
}

std::string html_figure(const Figure& figure, bool alone) {
  const char* css_class = figure.wide ? "card wide" : alone ? "card wide alone" : "card";
  std::string html = concat("<figure class=\"", css_class, "\"><figcaption><h3>",
                            html_text(figure.caption), "</h3>");
  if (!figure.remark.empty()) html += html_paragraph(figure.remark, "remark");
  html += concat("</figcaption>\n", html_chart(figure));
  if (!figure.html.empty()) {
    html += alone ? concat("<div class=\"numbers\">", figure.html, "</div>\n")
                  : html_details("The numbers", figure.html);
  }
  return html + "</figure>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped = escape_text(text);
  for (size_t at = 0; (at = escaped.find(" %", at)) != std::string::npos;) {
    escaped.replace(at, 1, "&nbsp;");
  }
  return escaped;
}

std::string html_paragraph(std::string_view text, std::string_view css_class) {
  return concat("<p", class_attribute(css_class), ">", html_text(text), "</p>\n");
}

std::string html_tile(std::string_view label, std::string_view value, std::string_view remark,
                      std::string_view css_class) {
  const std::string classes = css_class.empty() ? "tile" : concat("tile ", css_class);
  return concat("<div class=\"", classes, "\"><span class=\"label\">", html_text(label),
                "</span><span class=\"value\">", html_text(value), "</span><span class=\"remark\">",
                html_text(remark), "</span></div>\n");
}

std::string html_table(std::span<const std::string> headers,
                       std::span<const std::vector<std::string>> rows,
                       std::span<const std::string> row_attributes) {
  std::vector<bool> prose(headers.size());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 1; i < std::min(row.size(), prose.size()); ++i) {
      if (display_width(row[i]) > kLongestNumber) prose[i] = true;
    }
  }
  const auto style = [&](size_t i) {
    return i < prose.size() && prose[i] ? " class=\"prose\"" : "";
  };
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\">"
      "<table><thead><tr>";
  for (size_t i = 0; i < headers.size(); ++i) {
    html += concat("<th scope=\"col\"", style(i), ">", html_text(headers[i]), "</th>");
  }
  html += "</tr></thead>\n<tbody>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<std::string>& row = rows[r];
    const bool marked = r < row_attributes.size() && !row_attributes[r].empty();
    html += marked ? concat("<tr ", row_attributes[r], ">") : "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      html += i == 0 ? concat("<th scope=\"row\">", html_text(row[i]), "</th>")
                     : concat("<td", style(i), ">", html_text(row[i]), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_pairs(std::span<const std::pair<std::string, std::string>> pairs) {
  std::string html = "<dl>\n";
  for (const auto& [term, value] : pairs) {
    html += concat("<div><dt>", html_text(term), "</dt><dd>", html_text(value), "</dd></div>\n");
  }
  return html + "</dl>\n";
}

std::string html_png(std::string_view png, std::string_view description) {
  return concat("<img src=\"data:image/png;base64,", base64_text(png), "\" alt=\"",
                escape_text(description), "\">\n");
}

std::string html_figures(std::span<const Figure> figures) {
  size_t narrow = 0;
  for (const Figure& figure : figures) narrow += !figure.wide;
  std::string html = "<div class=\"charts\">\n";
  size_t seen = 0;
  for (const Figure& figure : figures) {
    seen += !figure.wide;
    const bool alone = !figure.wide && seen == narrow && narrow % 2 == 1;
    html += html_figure(figure, alone);
  }
  return html + "</div>\n";
}

std::string html_details(std::string_view summary, std::string_view html,
                         std::string_view css_class) {
  return concat("<details", class_attribute(css_class), "><summary>", html_text(summary),
                "</summary>\n", html, "</details>\n");
}

std::string html_section(std::string_view id, std::string_view heading, std::string_view html) {
  return concat("<section id=\"", escape_text(id), "\">\n<h2>", html_text(heading), "</h2>\n", html,
                "</section>\n");
}

std::string html_page(std::string_view title, std::string_view subtitle, std::string_view html,
                      const nlohmann::ordered_json& data) {
  // The empty icon keeps the browser from asking a server for one.
  std::string page = concat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      escape_text(title), "</title>\n<style>\n", kPageStyle,
      "</style>\n</head>\n<body>\n<main>\n<header>\n<h1>", html_text(title), "</h1>\n",
      html_paragraph(subtitle, "subtitle"),
      "<noscript><p class=\"note\">The charts need JavaScript; the tables hold their "
      "numbers.</p></noscript>\n</header>\n",
      html, "</main>\n", data.is_null() ? "" : data_element(data, " id=\"report-data\""),
      "\n<script>");
  for (const std::string_view part : kPageScript) page += part;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace fcp
