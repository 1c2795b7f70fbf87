#include "apps/report/gallery.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/data/images/image.h"

#include "apps/report/format.h"
#include "page_checks.h"

namespace fcp {
namespace {

using testing::count_of;
using ::testing::HasSubstr;
using ::testing::Not;

Gallery sample_gallery() {
  const std::string png = encode_png(blank_image(4, 12, 3));
  return {.title = "Streets <& more>",
          .subtitle = "90 % bands",
          .tiles = {{"Coverage", "91.0 %", "of 100 images"}, {"Length", "3.70"}},
          .notes = {"Made of generated scenes."},
          .headers = {"Method", "Coverage"},
          .rows = {{"nested", "91.0 %"}, {"residual", "90.0 %"}},
          .table_remark = "At the same level.",
          .strips = {{"scene_1", {{"image", png}, {"truth", png}}, "99.2 % of its pixels"},
                     {"scene_\"2\"", {{"image", png}}, "", true}},
          .class_names = {"unlabelled", "road"},
          .scale_low = "0",
          .scale_high = "1",
          .provenance = {{"network", "mini.onnx"}}};
}

TEST(GalleryHtml, HoldsAllThatItIsGiven) {
  const Gallery gallery = sample_gallery();
  const std::string html = gallery_html(gallery);
  for (const char* id : {"headline", "methods", "gallery", "provenance"}) {
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + id + "\">"));
  }
  EXPECT_THAT(html, HasSubstr("<h1>Streets &lt;&amp; more&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("91.0&nbsp;%"));
  EXPECT_THAT(html, HasSubstr("Made of generated scenes."));
  EXPECT_THAT(html, HasSubstr("alt=\"scene_&quot;2&quot;: image\""));
  EXPECT_EQ(count_of(html, base64_text(gallery.strips[0].pictures[0].png)), 3u);
  EXPECT_EQ(count_of(html, "<span>image</span>"), 2u);
  EXPECT_EQ(count_of(html, "<figure class=\"card strip missed\">"), 1u);
  EXPECT_THAT(html, HasSubstr("<span style=\"background:#000000\"></span>unlabelled"));
  EXPECT_THAT(html, HasSubstr("<span style=\"background:#804080\"></span>road"));
  EXPECT_EQ(count_of(html, "<img "), 4u);  // three pictures and the scale
}

TEST(GalleryHtml, IsOneWellFormedFile) {
  const std::string html = gallery_html(sample_gallery());
  testing::expect_well_formed(html);
  testing::expect_self_contained(html);
}

TEST(GalleryHtml, LeavesOutWhatIsNotThere) {
  const std::string html = gallery_html({.title = "empty", .subtitle = "nothing"});
  testing::expect_well_formed(html);
  EXPECT_THAT(html, Not(HasSubstr("<section")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
}

TEST(GalleryHtml, OpensInABrowser) {
  const std::string program = testing::browser();
  if (program.empty()) GTEST_SKIP() << "no browser is installed";
  testing::expect_opens(program, gallery_html(sample_gallery()),
                        std::array{"headline", "methods", "gallery", "provenance"});
}

}  // namespace
}  // namespace fcp
