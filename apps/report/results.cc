#include "apps/report/results.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"

namespace fcp {
namespace {

// Plain words with `code` in them, as markup.
std::string html_prose(std::string_view text) {
  std::string html;
  bool code = false;
  for (size_t from = 0; from <= text.size();) {
    const size_t tick = std::min(text.find('`', from), text.size());
    html += html_text(text.substr(from, tick - from));
    if (tick < text.size()) html += code ? "</code>" : "<code>";
    if (tick < text.size()) code = !code;
    from = tick + 1;
  }
  return code ? html + "</code>" : html;
}

std::string html_words(std::string_view text, std::string_view css_class) {
  if (text.empty()) return "";
  return concat("<p class=\"", css_class, "\">", html_prose(text), "</p>\n");
}

std::string html_result_table(const ResultTable& table) {
  const std::string body = html_table(table.headers, table.rows);
  if (table.folded) {
    return concat("<details class=\"card outputs\"><summary>", html_prose(table.caption),
                  "</summary>\n", body, "</details>\n");
  }
  return concat("<div class=\"card outputs\"><h3>", html_prose(table.caption), "</h3>\n", body,
                "</div>\n");
}

std::string html_list(const std::vector<std::string>& items, std::string_view css_class) {
  if (items.empty()) return "";
  std::string html = concat("<ul class=\"", css_class, "\">\n");
  for (const std::string& item : items) html += concat("<li>", html_prose(item), "</li>\n");
  return html + "</ul>\n";
}

std::string section_html(const ResultSection& section) {
  std::string html =
      html_words(section.claim.empty() ? "" : "The paper: " + section.claim, "claim");
  html += html_list(section.readings, "readings");
  if (!section.figures.empty()) html += html_figures(section.figures);
  for (const ResultTable& table : section.tables) html += html_result_table(table);
  html += html_words(section.setup, "remark");
  for (const std::string& note : section.notes) html += html_words(note, "note");
  return html_section(section.id, section.title, html);
}

std::string contents_html(const ResultPage& page) {
  std::string html = "<nav class=\"contents\"><ul>\n";
  for (const ResultSection& section : page.sections) {
    html += concat("<li><a href=\"#", html_text(section.id), "\">", html_text(section.title),
                   "</a></li>\n");
  }
  return html + "</ul></nav>\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += ' ';
    for (const char c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
    line += " |";
  }
  return line + "\n";
}

std::string markdown_of(const ResultTable& table) {
  std::string text = concat(table.caption, "\n\n", markdown_line(table.headers), "|");
  for (size_t i = 0; i < table.headers.size(); ++i) text += "---|";
  text += "\n";
  for (const std::vector<std::string>& row : table.rows) text += markdown_line(row);
  return text + "\n";
}

std::string markdown_of(const ResultSection& section) {
  std::string text = concat("## ", section.title, "\n\n");
  if (!section.claim.empty()) text += concat("The paper: ", section.claim, "\n\n");
  if (!section.setup.empty()) text += concat(section.setup, "\n\n");
  for (const ResultTable& table : section.tables) text += markdown_of(table);
  for (const std::string& reading : section.readings) text += concat("- ", reading, "\n");
  if (!section.readings.empty()) text += "\n";
  for (const std::string& note : section.notes) text += concat(note, "\n\n");
  return text;
}

}  // namespace

std::string results_html(const ResultPage& page) {
  std::string html = contents_html(page);
  for (const ResultSection& section : page.sections) html += section_html(section);
  html += html_section("provenance", "Where this comes from",
                       concat("<div class=\"card\">", html_pairs(page.provenance), "</div>\n"));
  return html_page(page.title, page.subtitle, html);
}

std::string results_markdown(const ResultPage& page) {
  std::string text = concat("# ", page.title, "\n\n", page.subtitle, "\n\n");
  for (const ResultSection& section : page.sections) text += markdown_of(section);
  return text;
}

std::string section_text(const ResultSection& section) {
  std::string text = concat(section.title, "\n\n");
  for (const ResultTable& table : section.tables) {
    if (table.folded) continue;
    Table lines(table.headers);
    for (const std::vector<std::string>& row : table.rows) lines.add_row(row);
    text += concat(table.caption, "\n", lines.text(), "\n");
  }
  for (const std::string& note : section.notes) text += note + "\n";
  return text;
}

namespace {

std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + "–" + high;
}

}  // namespace

std::string format_target(const Level& level) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), 100 * (1 - level.value()),
                                 std::chars_format::general, 6);
  return std::string(text, end.ptr) + " %";
}

std::string format_confidence(double confidence) { return format_percent(confidence, 0) + " CI"; }

std::string format_lengths(const Stratum& stratum) {
  return range_text(format_number(stratum.low, 3), format_number(stratum.high, 3));
}

std::string format_sizes(const Stratum& stratum) {
  return range_text(format_count(static_cast<size_t>(stratum.low)),
                    format_count(static_cast<size_t>(stratum.high)));
}

std::string format_stratum(const Stratum& stratum, bool sizes) {
  const bool one = stratum.low == 1 && stratum.high == 1;
  return sizes ? format_sizes(stratum) + (one ? " label" : " labels") : format_lengths(stratum);
}

std::string escape_text(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') escaped += c;
    }
  }
  return escaped;
}

std::string not_computed(size_t rows) {
  return concat("not computed: ", format_count(rows, "test row"), rows == 1 ? " is" : " are",
                " too few");
}

std::string base64_text(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;  // three bytes, those beyond the end zero
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63u] : '=';
    }
  }
  return text;
}

}  // namespace fcp
