// The drawing board of the charts (charts.js): numbers as text, ranges, ticks, axes, marks, legend.
//
// A chart is one <svg> as wide as its place: on a phone it has fewer ticks, not smaller letters.
// Text comes in as textContent and attributes alone, so that nothing in the data is ever read as
// markup. A scale maps what lies outside its range, infinite numbers too, to its edge.
const fcpPlot = (() => {
  "use strict";

  // ---- numbers as text, as fcp/base/text_table.h writes them -----------------------------------

  const num = (value) =>
    value === "inf" ? Infinity : value === "-inf" ? -Infinity : value ?? NaN;
  // With so many decimals; a tie goes to the even digit.
  const fixed = (value, decimals) => {
    const unit = 10 ** decimals;
    const tie = Number.isInteger(value * 2 ** (decimals + 1)) && (value * 2 * unit) % 2 === 1;
    return (tie ? 2 * Math.round(value * unit / 2) / unit : value).toFixed(decimals);
  };
  const grouped = (digits) => {
    const [whole, rest] = digits.split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "");
  };
  const count = (value) => grouped(String(value));
  const number = (value, digits = 4) => {
    if (Number.isNaN(value)) return "–";
    if (value < 0) return "−" + number(-value, digits);
    if (value === Infinity) return "∞";
    if (value === 0) return "0";
    if (value >= 1e9 || value < 1e-4) {
      return value.toExponential(digits - 1).replace("e+", "e").replace("e-", "e−");
    }
    return grouped(fixed(value, Math.max(0, digits - 1 - Math.floor(Math.log10(value)))));
  };
  const percent = (share, decimals = 1) =>
    !Number.isFinite(share) ? number(share)
      : share < 0 ? "−" + percent(-share, decimals) : fixed(100 * share, decimals) + " %";
  const percents = (low, high) => `${fixed(100 * low, 1)}–${fixed(100 * high, 1)} %`;
  const shortened = (name, most = 20) =>
    [...name].length <= most ? name : [...name].slice(0, most - 1).join("") + "…";

  // ---- ranges and ticks -------------------------------------------------------------------------

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
  const textWidth = (text) => pen.measureText(text).width;
  const padded = ([low, high]) => {
    const size = Math.max(Math.abs(low), Math.abs(high));
    if (size <= 1e-300 || high / 2 - low / 2 <= 0.5e-5 * size) {  // one value, but for rounding
      const room = size > 1e-300 ? 0.05 * size : 0.5;
      return [low - room, high + room];
    }
    const room = 0.1 * (high / 2 - low / 2);
    return [low - room, high + room];
  };
  // From the least to the greatest finite value, with room on both sides.
  const rangeOf = (values) => {
    const kept = values.filter(Number.isFinite)
      .map((value) => Math.min(1e300, Math.max(-1e300, value)));
    return kept.length ? padded([Math.min(...kept), Math.max(...kept)]) : [0, 1];
  };
  const ticksOf = ([low, high], about) => {
    const rough = (high / 2 - low / 2) / about * 2;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
    const first = Math.ceil(low / step - 1e-9);
    const steps = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: Math.min(Math.max(steps, 0), 2 * about + 2) },
                      (_, i) => (first + i) * step + 0);
  };
  const tickLabels = (ticks) => {
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
    const largest = Math.max(0, ...ticks.map(Math.abs));
    if (ticks.length < 2 || largest >= 1e9 || step < 1e-4) return ticks.map((t) => number(t, 3));
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return ticks.map((t) => (t < 0 ? "−" : "") + grouped(Math.abs(t).toFixed(decimals)));
  };

  // ---- the drawing board ------------------------------------------------------------------------

  const make = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === undefined || value === "") continue;
      element.setAttribute(key, typeof value === "number" ? value.toFixed(2) : value);
    }
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const hue = (i) => `series${Math.min(i, 3)}`;
  const shapeOf = (i) => ["dot", "diamond", "cross", "dot"][Math.min(i, 3)];
  // A cross is drawn by its stroke, the others are filled.
  const markStyle = (i) => `${shapeOf(i) === "cross" ? "cross" : "dot"} ${hue(i)}`;

  class Plot {
    // frame: width, height (`grows`: of the plot alone), legend of [shape, style, text], xLabel,
    // yLabel, room on the left and right at least, and about how many ticks.
    constructor(frame, x, y) {
      Object.assign(this, { left: 46, right: 12, height: 270, legend: [], xTicks: 6, yTicks: 5 },
                    frame);
      this.xRange = x;
      this.yRange = y;
      this.svg = make("svg", { class: "chart", role: "img" });
      this.parent = this.svg;
      this.bottom = this.height - (this.xLabel ? 40 : 24);
      this.top = this.drawLegend();
      if (this.yLabel) {
        this.top += this.legend.length ? 20 : 13;
        this.text(0, this.top, "start", "label", this.yLabel);
      }
      this.top += 10;
      if (this.grows) {  // the height that was asked for is that of the plot alone
        this.bottom = this.top + this.height;
        this.height = this.bottom + (this.xLabel ? 40 : 24);
      }
      this.svg.setAttribute("viewBox", `0 0 ${this.width.toFixed(2)} ${this.height.toFixed(2)}`);
      const labels = (range, about) => tickLabels(ticksOf(range, about)).map(textWidth);
      if (y) this.left = Math.max(this.left, ...labels(y, 5).map((wide) => wide + 14));
      if (x) this.right = Math.max(this.right, ...labels(x, 5).map((wide) => wide / 2 + 2));
      this.end = Math.max(this.left + 20, this.width - this.right);
      if (this.xLabel) {
        const middle = (this.left + this.end) / 2, half = textWidth(this.xLabel) / 2;
        const at = Math.max(half, Math.min(middle, this.width - half));
        this.text(at, this.height - 6, "middle", "label", this.xLabel);
      }
    }
    static place(value, [low, high], from, to) {
      const inside = Math.min(high, Math.max(low, value));
      return from + (to - from) * ((inside / 2 - low / 2) / (high / 2 - low / 2));
    }
    x(value) { return Plot.place(value, this.xRange, this.left, this.end); }
    y(value) { return Plot.place(value, this.yRange, this.bottom, this.top); }
    add(name, attributes, text) { this.parent.append(make(name, attributes, text)); }
    text(x, y, anchor, style, text, tip) {
      this.add("text", { class: style, x, y, "text-anchor": anchor, "data-tip": tip }, text);
    }
    line(x1, y1, x2, y2, style, tip) {
      this.add("line", { class: style, x1, y1, x2, y2, "data-tip": tip });
    }
    bar(x, y, width, height, style, tip) {
      this.add("rect", { class: style, x, y, width: Math.max(0, width),
                         height: Math.max(0, height), "data-tip": tip });
    }
    path(points, style, shape = "polyline") {
      if (!points.length) return;
      const text = points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
      this.add(shape, { class: style, points: text });
    }
    mark(shape, x, y, r, style, tip) {
      if (shape === "dot") {
        return this.add("circle", { class: style, cx: x, cy: y, r, "data-tip": tip });
      }
      const at = (dx, dy) => `${(x + r * dx).toFixed(2)} ${(y + r * dy).toFixed(2)}`;
      const d = shape === "cross" ? `M${at(-1, -1)}L${at(1, 1)}M${at(-1, 1)}L${at(1, -1)}`
                                  : `M${at(0, -1)}L${at(1, 0)}L${at(0, 1)}L${at(-1, 0)}Z`;
      this.add("path", { class: style, d, "data-tip": tip });
    }
    drawLegend() {
      let at = 0, top = 0;
      for (const [shape, style, text] of this.legend) {
        const wide = (shape ? 21 : 0) + textWidth(text);
        if (at > 0 && at + wide > this.width) at = 0;
        if (at === 0) top += 17;
        if (shape === "line") this.line(at, top - 5, at + 16, top - 5, style);
        else if (shape === "band") this.bar(at, top - 10, 16, 10, style);
        else if (shape) this.mark(shape, at + 8, top - 5, 4, style);
        this.text(at + (shape ? 21 : 0), top - 1, "start", "legend", text);
        at += wide + 16;
      }
      return top;
    }
    xAxis(text) {
      // As many ticks as there is room for their labels.
      const wide = Math.max(24, ...tickLabels(ticksOf(this.xRange, 5)).map(textWidth)) + 14;
      const room = Math.max(1, Math.floor((this.end - this.left) / wide));
      const ticks = ticksOf(this.xRange, Math.min(this.xTicks, room)), plain = tickLabels(ticks);
      this.line(this.left, this.bottom, this.end, this.bottom, "axis");
      ticks.forEach((tick, i) => {
        const at = this.x(tick);
        this.line(at, this.bottom, at, this.bottom + 4, "axis");
        this.text(at, this.bottom + 17, "middle", "tick", text ? text(tick, plain[i]) : plain[i]);
      });
    }
    yAxis(text) {
      const ticks = ticksOf(this.yRange, this.yTicks), plain = tickLabels(ticks);
      ticks.forEach((tick, i) => {
        const at = this.y(tick);
        this.line(this.left, at, this.end, at, "grid");
        this.text(this.left - 6, at + 4, "end", "tick", text ? text(tick, plain[i]) : plain[i]);
      });
    }
    vertical(value, style, tip) {
      this.line(this.x(value), this.top - 4, this.x(value), this.bottom, style, tip);
    }
    horizontal(value, style) {
      this.line(this.left, this.y(value), this.end, this.y(value), style);
    }
  }

  return { Plot, count, hue, make, markStyle, num, number, percent, percents, rangeOf, shapeOf,
           shortened, textWidth };
})();
