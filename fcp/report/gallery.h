// A page of pictures: headline figures, a table of methods, then strips of image | prediction |
// uncertainty with their captions. One HTML file with everything inside it, like the other reports.
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

struct GalleryStrip {
  std::string name;
  std::string png;  // the bytes of the file
  std::string caption = {};
};

struct Gallery {
  std::string title;
  std::string subtitle;
  std::vector<GalleryTile> tiles = {};
  std::vector<std::string> notes = {};    // below the tiles
  std::vector<std::string> headers = {};  // of the table; the first column names its rows
  std::vector<std::vector<std::string>> rows = {};
  std::string table_remark = {};
  std::vector<std::string> parts = {};  // what the parts of every strip show, from the left
  std::vector<GalleryStrip> strips = {};
  std::vector<std::string> class_names = {};  // of class 0, 1, …: a legend of their colours
  std::string scale_low = {};                 // what the darkest and the lightest colour of a heat
  std::string scale_high = {};                // map stand for; empty: no scale
  std::vector<std::pair<std::string, std::string>> provenance = {};
};

std::string gallery_html(const Gallery& gallery);

}  // namespace fcp
