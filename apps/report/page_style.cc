// The looks of charts and page and what the page does: chart.css, page.css and page.js, which the
// build embeds. Text on its
// background has a contrast of at least 4.5 in both schemes; what a colour says is also said by a
// shape, a dash or a word.
#include <string>
#include <string_view>

#include "fcp/base/error.h"

#include "apps/report/page.h"
#include "apps/report/style_text.h"
#include "apps/report/svg.h"

namespace fcp {

std::string_view chart_style() { return kChartStyle; }
std::string_view page_style() { return kPageStyle; }
std::string_view page_script() { return kPageScript; }

std::string standalone_svg(const std::string& chart) {
  const size_t start = chart.find('>') + 1;
  return concat(chart.substr(0, start), "\n<style>", kChartStyle, "</style>", chart.substr(start));
}

}  // namespace fcp
