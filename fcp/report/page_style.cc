// The looks of charts and page. Text on its background has a contrast of at least 4.5 in both
// schemes; what a colour says is also said by a shape, a dash or a word.
#include <string>
#include <string_view>

#include "fcp/base/error.h"
#include "fcp/report/page.h"
#include "fcp/report/svg.h"

namespace fcp {

namespace {

constexpr std::string_view kChartStyle = R"css(
:root {
  --paper: #f7f7f5; --card: #ffffff; --ink: #1d2125; --soft: #5d6670; --rule: #e3e4e1;
  --grid: #ececea; --axis: #9aa1a8; --main: #1f5fa8; --fill: #a9c6e8; --band: #dbe8f6;
  --expected: #e2e2dc; --second: #8a5a00; --third: #5a3e99; --miss: #b3401a; --loud: #fdeee7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1c2024; --ink: #e8eaec; --soft: #a3acb5; --rule: #31373d;
    --grid: #2a2f34; --axis: #6b757f; --main: #7db4f0; --fill: #375f8c; --band: #26405c;
    --expected: #33383d; --second: #e0b050; --third: #b9a2ee; --miss: #ff9466; --loud: #3a241b;
  }
}
.chart { display: block; width: 100%; height: auto; }
.chart text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.chart .name, .chart .value, .chart .legend { fill: var(--ink); }
.chart .axis { stroke: var(--axis); }
.chart .grid { stroke: var(--grid); }
.chart .target { stroke: var(--ink); stroke-dasharray: 5 4; stroke-width: 1.2; }
.chart .series0 { --hue: var(--main); }
.chart .series1 { --hue: var(--second); }
.chart .series2 { --hue: var(--third); }
.chart .series3 { --hue: var(--soft); }
.chart .miss { --hue: var(--miss); }
.chart .line { fill: none; stroke: var(--hue, var(--main)); stroke-width: 1.8; }
.chart .line.series1 { stroke-dasharray: 7 3; }
.chart .line.series2 { stroke-dasharray: 2 3; }
.chart .line.series3 { stroke-dasharray: 9 3 2 3; }
.chart .line.prediction { stroke: var(--ink); stroke-width: 1.2; }
.chart .mean { stroke: var(--hue); stroke-width: 2; }
.chart .mean.series1 { stroke-dasharray: 7 3; }
.chart .mean.series2 { stroke-dasharray: 2 3; }
.chart .mean.series3 { stroke-dasharray: 9 3 2 3; }
.chart .radius { stroke: var(--ink); stroke-width: 2; }
.chart .dot { fill: var(--hue); stroke: var(--card); stroke-width: 1; }
.chart .whisker { stroke: var(--hue); stroke-width: 2; stroke-linecap: round; opacity: .6; }
.chart .confidence { fill: var(--fill); opacity: .6; }
.chart .expected { fill: var(--expected); }
.chart .bar { fill: var(--fill); }
.chart .bar.outside { fill: var(--card); stroke: var(--miss); stroke-width: 1; }
.chart .interval { stroke: var(--fill); stroke-width: 1.8; }
.chart .interval.missed { stroke: var(--miss); opacity: .45; }
.chart .truth { fill: var(--main); }
.chart .cross { fill: none; stroke: var(--hue); stroke-width: 1.8; stroke-linecap: round; }
)css";

constexpr std::string_view kPageStyle = R"css(
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui,
  -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; -webkit-text-size-adjust: 100%; }
main { max-width: 1060px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -.01em; margin: 0; }
h2 { font-size: 1.12rem; font-weight: 650; margin: 44px 0 14px; }
h3 { font-size: .95rem; font-weight: 600; margin: 0; }
p { margin: 0 0 .7em; }
.subtitle { color: var(--soft); margin: 6px 0 28px; }
.remark { color: var(--soft); font-size: .84rem; line-height: 1.4; margin: 2px 0 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 14px; }
.tile, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: 14px 18px 15px; display: flex; flex-direction: column; }
.tile .remark { white-space: pre-line; }
.tile .label { color: var(--soft); font-size: .84rem; }
.tile .value { font-size: 1.8rem; font-weight: 600; line-height: 1.3; letter-spacing: -.01em;
  font-variant-numeric: tabular-nums; }
.tile.main { border-top: 3px solid var(--main); padding-top: 12px; }
.tile.bad { border-top: 3px solid var(--miss); padding-top: 12px; }
.card { padding: 18px 20px; margin: 0; min-width: 0; }
.alarm { background: var(--loud); border: 2px solid var(--miss); border-radius: 10px;
  padding: 16px 20px 10px; margin: 0 0 20px; }
.alarm strong { color: var(--miss); font-size: 1.1rem; display: block; margin-bottom: 4px; }
.verdict { margin: 16px 2px 0; }
.note { border-left: 3px solid var(--axis); padding: 2px 0 2px 14px; margin: 14px 2px 0; }
.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; }
.wide { grid-column: 1 / -1; }
figcaption { margin-bottom: 12px; }
.alone { display: grid; grid-template: auto 1fr / repeat(2, minmax(0, 1fr)); gap: 0 40px; }
.alone > .scroll { grid-column: 2; grid-row: 1 / span 2; }
.outputs { margin-top: 16px; }
.outputs > h3 { margin-bottom: 8px; }
.claim { border-left: 3px solid var(--main); padding-left: 14px; }
.readings { margin: 0 0 18px; padding-left: 1.15em; }
.readings li { margin-bottom: .35em; }
code { font-size: .9em; background: var(--grid); border-radius: 4px; padding: 0 4px; }
a { color: var(--main); }
.contents ul { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 18px; margin: 0;
  padding: 0; font-size: .92rem; }
.scroll { overflow-x: auto; }
.examples { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr));
  gap: 14px; margin-bottom: 10px; }
.example { display: flex; gap: 14px; align-items: flex-start; padding: 14px; }
.example.missed { border: 2px dashed var(--miss); padding: 13px; }
.example img { flex: none; width: 96px; height: 96px; object-fit: contain; border-radius: 6px;
  background: var(--grid); }
.example > div { min-width: 0; flex: 1; overflow-wrap: anywhere; }
.example .mark { font-size: .84rem; font-weight: 600; color: var(--main); margin: 0; }
.example.missed .mark { color: var(--miss); }
.labels { list-style: none; display: flex; flex-wrap: wrap; gap: 5px; margin: 8px 0 0; padding: 0; }
.labels li { font-size: .8rem; line-height: 1.35; padding: 1px 8px; border: 1px solid var(--rule);
  border-radius: 9px; }
.labels .truth { font-weight: 650; border: 1px solid var(--main); background: var(--band); }
.labels .more { border-color: transparent; color: var(--soft); padding: 1px 0; }
.strip { margin-bottom: 14px; }
.strip img { display: block; width: 100%; image-rendering: pixelated; border-radius: 6px; }
.parts { display: flex; color: var(--soft); font-size: .84rem; }
.parts span { flex: 1; text-align: center; }
.swatches { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0 0 12px;
  padding: 0; font-size: .84rem; }
.swatches span { display: inline-block; width: .9em; height: .9em; margin-right: .45em;
  border: 1px solid var(--axis); border-radius: 3px; vertical-align: -.1em; }
.ramp { color: var(--soft); font-size: .84rem; }
.ramp img { width: 160px; height: .8em; margin: 0 6px; border-radius: 3px; vertical-align: -.05em; }
.promise { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; }
.promise p, .promise ul { font-size: .95rem; }
.promise h3 { margin-bottom: 6px; }
.promise ul { margin: 0; padding-left: 1.15em; }
.promise li { margin-bottom: .35em; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 12px; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; padding-left: 2px; }
thead th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--axis); }
tbody th { font-weight: 500; }
tbody tr + tr > * { border-top: 1px solid var(--rule); }
details { margin-top: 12px; font-size: .92rem; }
summary { color: var(--soft); cursor: pointer; }
dl { margin: 0; display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 2px 36px; }
dl div { display: flex; gap: 14px; padding: 5px 0; border-bottom: 1px solid var(--rule); }
dt { color: var(--soft); flex: 0 0 38%; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
@media (max-width: 760px) {
  main { padding: 24px 12px 48px; }
  .charts, .promise, dl { grid-template-columns: minmax(0, 1fr); }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; }
  .tile { padding: 11px 13px; }
  .tile:last-child:nth-child(odd) { grid-column: 1 / -1; }
  .examples { grid-template-columns: minmax(0, 1fr); }
  .tile .value { font-size: 1.4rem; }
  .card { padding: 14px 12px; }
  .alone { display: block; }
  .wide:not(.alone) .chart { min-width: 700px; }
}
@media print { body { background: none; } .card, .tile { break-inside: avoid; } }
)css";

}  // namespace

std::string_view chart_style() { return kChartStyle; }
std::string_view page_style() { return kPageStyle; }

std::string standalone_svg(const std::string& chart) {
  const size_t start = chart.find('>') + 1;
  return concat(chart.substr(0, start), "\n<style>", kChartStyle, "</style>", chart.substr(start));
}

}  // namespace fcp
