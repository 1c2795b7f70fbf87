#include "apps/report/gallery.h"

#include <cstddef>

#include "fcp/base/error.h"
#include "fcp/data/images/heat_map.h"
#include "fcp/data/images/image.h"

#include "apps/report/page.h"
#include "apps/report/sections.h"

namespace fcp {
namespace {

std::string gallery_headline(const Gallery& gallery) {
  if (gallery.tiles.empty() && gallery.notes.empty() && gallery.opening.empty()) return "";
  std::string html = gallery.opening + "<div class=\"tiles\">\n";
  for (const GalleryTile& tile : gallery.tiles) {
    html += html_tile(tile.label, tile.value, tile.remark);
  }
  html += "</div>\n";
  for (const std::string& note : gallery.notes) html += html_paragraph(note, "note");
  return html_section("headline", "In short", html);
}

std::string css_colour(int label, const std::string& name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "#";
  for (const uint8_t value : class_colour(label, name)) {
    text += kDigits[value / 16];
    text += kDigits[value % 16];
  }
  return text;
}

std::string class_legend(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string html = "<ul class=\"swatches\">";
  for (size_t i = 0; i < names.size(); ++i) {
    html += concat("<li><span style=\"background:", css_colour(static_cast<int>(i), names[i]),
                   "\"></span>", html_text(names[i]), "</li>");
  }
  return html + "</ul>\n";
}

std::string heat_legend(const Gallery& gallery) {
  if (gallery.scale_low.empty() && gallery.scale_high.empty()) return "";
  std::vector<float> ramp(128);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const Image image = heat_map(ramp, 1, static_cast<int>(ramp.size()), 0, 127);
  return concat("<p class=\"ramp\">", html_text(gallery.scale_low), " ",
                html_png(encode_png(image), "the colours of the heat maps"), " ",
                html_text(gallery.scale_high), "</p>\n");
}

std::string strip_html(const GalleryStrip& strip) {
  std::string html = concat("<figure class=\"card strip", strip.missed ? " missed" : "",
                            "\"><figcaption><h3>", html_text(strip.name), "</h3>");
  if (!strip.caption.empty()) html += html_paragraph(strip.caption, "remark");
  html += "</figcaption>\n<div class=\"pictures\">\n";
  for (const GalleryPicture& picture : strip.pictures) {
    html += concat("<div>", html_png(picture.png, concat(strip.name, ": ", picture.caption)),
                   "<span>", html_text(picture.caption), "</span></div>\n");
  }
  return html + "</div></figure>\n";
}

std::string strips_section(const Gallery& gallery) {
  if (gallery.strips.empty()) return "";
  std::string html = class_legend(gallery.class_names) + heat_legend(gallery);
  for (const GalleryStrip& strip : gallery.strips) html += strip_html(strip);
  return html_section("gallery", "Image by image", html);
}

}  // namespace

std::string gallery_html(const Gallery& gallery) {
  std::string table;
  if (!gallery.rows.empty()) {
    table = methods_section(gallery.headers, gallery.rows, gallery.table_remark);
  }
  return html_page(gallery.title, gallery.subtitle,
                   concat(gallery_headline(gallery), table, strips_section(gallery),
                          gallery.closing, provenance_section(gallery.provenance)));
}

}  // namespace fcp
