// A page of pictures: headline figures, a table of methods, then images with the pictures that
// belong to them, side by side. One HTML file with everything inside it, like the other reports.
// What the figures are is the caller's; here they are only set.
// Tested by tests/report/gallery_test.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fcp {

struct GalleryTile {
  std::string label;
  std::string value;
  std::string remark = {};
};

struct GalleryPicture {
  std::string caption;
  std::string png;  // the bytes of the file
};

struct GalleryStrip {
  std::string name;
  std::vector<GalleryPicture> pictures = {};
  std::string caption = {};
  bool missed = false;  // marked
};

struct Gallery {
  std::string title;
  std::string subtitle;
  std::string opening = {};  // markup before the tiles
  std::vector<GalleryTile> tiles = {};
  std::vector<std::string> notes = {};    // below the tiles
  std::vector<std::string> headers = {};  // of the table; the first column names its rows
  std::vector<std::vector<std::string>> rows = {};
  std::string table_remark = {};
  std::vector<GalleryStrip> strips = {};
  std::vector<std::string> class_names = {};  // of class 0, 1, …: a legend of their colours
  std::string scale_low = {};                 // what the darkest and the lightest colour of a heat
  std::string scale_high = {};                // map stand for; empty: no scale
  std::string closing = {};                   // markup before the provenance
  std::vector<std::pair<std::string, std::string>> provenance = {};
};

std::string gallery_html(const Gallery& gallery);

}  // namespace fcp
