// Draws the charts of a page. Each place for one, of class "plot" with its kind, names where
// its data stands in the report's JSON (data-at, a JSON pointer) or holds data of its own.
//
// Any data can be drawn: none, one row, constant, infinite ("inf" in JSON), undefined (null). What
// cannot be drawn is counted in the legend, never dropped in silence. Tested in Chromium by
// tests/report/browser_test.cc.
const fcpCharts = (() => {
  "use strict";
  const { Plot, count, hue, make, markStyle, num, number, percent, percents, rangeOf, shapeOf,
          shortened, textWidth } = fcpPlot;

  // ---- coverage ---------------------------------------------------------------------------------

  // Coverage minus 1 − α over α. The first method carries its confidence band and, in grey, where
  // the coverage of one calibration lies nine times in ten.
  const curve = ({ width, data, root, state }) => {
    const series = [data, ...(data.others || [])].filter((one) => one.curve && one.curve.length)
      .map((one) => ({ name: one.method,
                       points: [...one.curve].sort((a, b) => a.alpha - b.alpha) }));
    const above = (coverage, point) => 100 * (coverage - (1 - point.alpha));
    const main = series.length ? series[0].points : [];
    const expected = main.length > 0 && main.every((point) => "expected_low" in point);
    const values = [0, ...series.flatMap((one) => one.points.map((p) => above(p.coverage, p))),
      ...main.flatMap((p) => [above(p.coverage_low, p), above(p.coverage_high, p)]),
      ...(expected ? main.flatMap((p) => [above(p.expected_low, p), above(p.expected_high, p)])
                   : [])];
    const last = Math.max(0, ...series.flatMap((one) => one.points.map((point) => point.alpha)));
    const legend = series.map((one, i) => ["line", `line ${hue(i)}`, one.name]);
    if (series.length) legend.push(["band", "confidence", "its confidence band"]);
    if (expected) {
      legend.push(["band", "expected", `expected, n = ${count(data.calibration_rows)} (5–95 %)`]);
    }
    const plot = new Plot({ width, legend, xLabel: "α",
                            yLabel: "coverage − (1 − α), percentage points" },
                          [0, last > 0 ? last * 1.03 : 1],
                          rangeOf(values.length > 1 ? values : [-5, 5]));
    const band = (low, high, style) => {
      const edge = (name) => main.map((p) => [plot.x(p.alpha), plot.y(above(p[name], p))]);
      if (main.length === 1) {
        const [[x, top]] = edge(high), [[, bottom]] = edge(low);
        return plot.bar(x - 4, top, 8, bottom - top, style);
      }
      plot.path([...edge(high), ...edge(low).reverse()], style, "polygon");
    };
    if (expected) band("expected_low", "expected_high", "expected");
    plot.yAxis((tick, plain) => (tick > 0 ? "+" : "") + plain);
    plot.xAxis();
    if (main.length) band("coverage_low", "coverage_high", "confidence");
    plot.horizontal(0, "target");
    if (data === root && root.levels) plot.vertical(root.levels[state.level].alpha, "cursor");
    for (let i = series.length - 1; i >= 0; --i) {
      const { name, points } = series[i];
      const places = points.map((p) => [plot.x(p.alpha), plot.y(above(p.coverage, p))]);
      plot.path(places, `line ${hue(i)}`);
      if (points.length > 25) continue;
      points.forEach((p, k) => plot.mark("dot", ...places[k], 2.6, `dot ${hue(i)}`,
        `${name}, α = ${number(p.alpha, 3)}: coverage ${percent(p.coverage)}, target ` +
        percent(1 - p.alpha)));
    }
    return plot;
  };

  // Coverage of each part of the rows with its confidence interval. Parts wholly below the target
  // are diamonds. Of many parts, and if `worst`, the worst come first.
  const parts = ({ width, data, root, worst = false }) => {
    const target = 1 - root.alpha, most = worst ? 15 : 24;
    const low = (part) => num(part.coverage_high) < target;
    let shown = data;
    const promised = number(100 * target, 6).replace(/\.?0+$/, "");
    const legend = [["line", "target", `target ${promised} %`]];
    if (shown.some(low)) legend.push(["diamond", "dot miss", "wholly below the target"]);
    if (worst || shown.length > most) {
      shown = [...shown].sort((a, b) => a.coverage - b.coverage ||
                                        a.coverage_high - b.coverage_high).slice(0, most);
      if (data.length > most) legend.push(["", "", `the worst ${most} of ${data.length}`]);
    }
    if ("coverage_low" in root) shown = [{ ...root, name: "all rows" }, ...shown];
    const names = shown.map((part) => shortened(part.name));
    const least = Math.min(target, ...shown.map((part) => part.coverage_low));
    const plot = new Plot({ width, legend, grows: true, height: 24 * Math.max(1, shown.length),
                            left: Math.max(40, ...names.map((name) => textWidth(name) + 14)),
                            right: 62, xTicks: 4 },
                          [Math.max(0, least - 0.05 * (1 - least)), 1]);
    plot.xAxis((tick) => percent(tick, 0));
    plot.vertical(target, "target");
    shown.forEach((part, i) => {
      const y = plot.top + 24 * i + 12, style = low(part) ? "miss" : hue(0);
      const tip = `${part.name}: ${count(part.covered)} of ${count(part.rows)} rows covered, ` +
        `${percent(part.coverage)} (${percents(part.coverage_low, part.coverage_high)})`;
      plot.text(plot.left - 10, y + 4, "end", "name", names[i], part.name);
      const from = plot.x(part.coverage_low), to = plot.x(part.coverage_high);
      plot.line(from, y, to, y, `whisker ${style}`, tip);
      const [shape, radius] = low(part) ? ["diamond", 5.5] : ["dot", 4.5];
      plot.mark(shape, plot.x(part.coverage), y, radius, `dot ${style}`, tip);
      plot.text(plot.end + 10, y + 4, "start", "value", percent(part.coverage));
    });
    return plot;
  };

  // ---- distributions ----------------------------------------------------------------------------

  // Bars between `low` and `high`, with a line at the mean of each method or at the radius, beyond
  // which bars are outlined, or a band in which chance leaves the bars.
  const histogram = ({ width, data }) => {
    const counts = data.counts, radius = "radius" in data ? num(data.radius) : undefined;
    const means = (data.means || []).map((one) => ({ name: one.method, mean: num(one.mean) }));
    const legend = means.map((one, i) =>
      ["line", `mean ${hue(i)}`, `mean ${one.name} ${number(one.mean, 3)}`]);
    if (radius !== undefined && !Number.isNaN(radius)) {
      legend.push(["line", "radius",
                   `radius ${number(radius)}${radius === Infinity ? ": beyond every score" : ""}`]);
    }
    if (data.band) legend.push(["band", "expected", "where chance leaves the bars (95 %)"]);
    if (data.infinite) legend.push(["", "", `${count(data.infinite)} infinite, not drawn`]);
    if (data.beyond) legend.push(["", "", `${count(data.beyond)} beyond the axis`]);
    const most = Math.max(1, ...counts, ...(data.band || []));
    const plot = new Plot({ width, legend, xLabel: data.x, yLabel: data.y, yTicks: 4,
                            xTicks: data.whole ? Math.min(6, data.high - data.low) : 6 },
                          [data.low, data.high], [0, 1.06 * most]);
    plot.yAxis();
    if (data.band) {
      const [low, high] = data.band.map((value) => plot.y(value));
      plot.bar(plot.left, high, plot.end - plot.left, low - high, "expected");
    }
    const edge = (i) => data.low * (1 - i / counts.length) + data.high * (i / counts.length);
    counts.forEach((rows, i) => {
      if (!rows) return;
      const from = edge(i), to = edge(i + 1), x0 = plot.x(from) + 0.5, x1 = plot.x(to) - 0.5;
      const first = Math.ceil(from), last = Math.floor(to);
      const what = !data.whole ? `${number(from, 3)} to ${number(to, 3)}`
        : first === last ? `size ${first}` : `size ${first}–${last}`;
      const split = Math.min(x1, Math.max(x0, plot.x(radius ?? Infinity)));
      const top = plot.y(rows), height = plot.bottom - top, tip = `${what}: ${count(rows)}`;
      if (split > x0) plot.bar(x0, top, split - x0, height, "bar", tip);
      if (split < x1) plot.bar(split, top, x1 - split, height, "bar outside", tip);
    });
    plot.xAxis();
    if (radius !== undefined && !Number.isNaN(radius)) {
      plot.vertical(radius, "radius", `radius ${number(radius)}`);
    }
    for (let i = means.length - 1; i >= 0; --i) {
      if (!Number.isFinite(means[i].mean)) continue;
      plot.vertical(means[i].mean, `mean ${hue(i)}`,
                    `mean of ${means[i].name}: ${number(means[i].mean)}`);
    }
    return plot;
  };

  // Where the truth fell in its predictive distribution, in ten bins.
  const pit = ({ width, data }) => histogram({ width, data: {
    low: 0, high: 1, counts: data.pit, band: [num(data.pit_low), num(data.pit_high)],
    x: "share of the distribution below the truth (PIT)", y: "test rows" } });

  // How often it happened over how probable it was said to be: thresholds of a distribution, or
  // bins of class probabilities, with what chance lets a calibrated one do as a whisker.
  const reliability = ({ width, data }) => {
    const points = (Array.isArray(data) ? data : data.reliability || [])
      .filter((p) => Number.isFinite(p.predicted) && Number.isFinite(p.observed));
    const chance = points.some((p) => "low" in p);
    const plot = new Plot({ width, right: 24, xTicks: 5, xLabel: "predicted", yLabel: "observed",
                            legend: [["dot", `dot ${hue(0)}`, "observed"],
                                     ["line", "line prediction", "equal"],
                                     ...(chance ? [["line", "whisker series3", "chance (95 %)"]]
                                                : [])] }, [0, 1], [0, 1]);
    plot.yAxis((tick) => percent(tick, 0));
    plot.xAxis((tick) => percent(tick, 0));
    plot.path([0, 1].map((end) => [plot.x(end), plot.y(end)]), "line prediction");
    for (const p of points) {
      const x = plot.x(p.predicted);
      const tip = `${"threshold" in p ? `above ${number(num(p.threshold))}: ` : ""}predicted ` +
        `${percent(p.predicted)}, observed ${percent(p.observed)}` +
        ("rows" in p ? `, ${count(p.rows)} rows` : "");
      if ("low" in p) plot.line(x, plot.y(p.low), x, plot.y(p.high), "whisker series3", tip);
      plot.mark("dot", x, plot.y(p.observed), 4, `dot ${hue(0)}`, tip);
    }
    return plot;
  };

  // ---- rows -------------------------------------------------------------------------------------

  // A row of the sample at the level that is shown.
  const rowAt = (row, level) => {
    const at = Math.min(level, row.lower.length - 1);
    return { name: row.row, prediction: num(row.prediction), truth: num(row.truth),
             lower: num(row.lower[at]), upper: num(row.upper[at]),
             covered: row.covered[at] === "1" };
  };
  const wanted = (row, show) => show === "all" || (show === "covered") === row.covered;
  const tipOf = (row) => (row.name ? row.name + ": " : "") +
    `prediction ${number(row.prediction)}, interval ${number(row.lower)} to ` +
    `${number(row.upper)}, truth ${number(row.truth)}, ` + (row.covered ? "covered" : "missed");

  // Intervals with the truth on them, in the order of the prediction; misses are crosses.
  const sample = ({ width, data, state }) => {
    const rows = data.rows.map((row) => rowAt(row, state.level)), range = data.interval_axis;
    const missed = rows.filter((row) => !row.covered).length;
    const infinite = rows.filter((row) => Math.abs(row.upper - row.lower) === Infinity).length;
    const beyond = rows.filter((row) => row.truth < range[0] || row.truth > range[1]).length;
    const legend = [["line", "interval", "interval"], ["line", "line prediction", "prediction"],
                    ["dot", "truth", "truth inside"],
                    ["cross", "cross miss", `truth outside: ${missed} of ${rows.length} rows`]];
    if (infinite) legend.push(["", "", `${count(infinite)} infinite, cut at the edge`]);
    if (beyond) legend.push(["", "", `${count(beyond)} truths beyond the axis`]);
    const plot = new Plot({ width, height: 340, legend, yLabel: data.name,
                            xLabel: "test rows, in the order of their prediction" },
                          [0, Math.max(1, rows.length) + 1], range);
    plot.yAxis();
    if (rows.length >= 10) plot.xAxis();
    const places = rows.map((row, i) => [plot.x(i + 1), plot.y(row.prediction)]);
    plot.parent = make("g", { class: "rows" });
    rows.forEach((row, i) => {
      if (!wanted(row, state.show)) return;
      const x = places[i][0], y = plot.y(row.truth);
      plot.line(x, plot.y(row.lower), x, plot.y(row.upper),
                row.covered ? "interval" : "interval missed", tipOf(row));
      if (row.covered) plot.mark("dot", x, y, 1.6, "truth");
      else plot.mark("cross", x, y, 3, "cross miss");
    });
    plot.svg.append(plot.parent);
    plot.parent = plot.svg;
    plot.path(places, "line prediction");
    return plot;
  };

  const scatter = ({ width, data, state }) => {
    const rows = data.rows.map((row) => rowAt(row, state.level)), range = data.truth_axis;
    const plot = new Plot({ width, xTicks: 5, xLabel: `predicted ${data.name}`,
                            yLabel: `true ${data.name}`,
                            legend: [["dot", "truth", "in its interval"],
                                     ["cross", "cross miss", "outside"],
                                     ["line", "line prediction", "equal"]] }, range, range);
    plot.yAxis();
    plot.xAxis();
    plot.path(range.map((end) => [plot.x(end), plot.y(end)]), "line prediction");
    for (const row of rows) {
      if (!wanted(row, state.show)) continue;
      plot.mark(row.covered ? "dot" : "cross", plot.x(row.prediction), plot.y(row.truth),
                row.covered ? 1.8 : 3, row.covered ? "truth" : "cross miss", tipOf(row));
    }
    return plot;
  };

  // ---- names and numbers beside each other ------------------------------------------------------

  // Of each row a bar for each of at most two series, as shares of the largest of its series.
  const bars = ({ width, data }) => {
    const styles = ["bar", "expected"], height = 14;
    const series = data.series.filter((one) => one.values.some(Number.isFinite));
    const names = data.rows.map((name) => shortened(name));
    const texts = series.flatMap((one) => one.texts);
    const row = height * series.length + 12;
    const plot = new Plot({ width, grows: true, height: row * Math.max(1, names.length),
                            legend: series.map((one, i) => ["band", styles[i], one.name]),
                            left: Math.max(40, ...names.map((name) => textWidth(name) + 14)),
                            right: Math.max(40, ...texts.map((text) => textWidth(text) + 14)) },
                          [0, 1]);
    names.forEach((name, i) => {
      const top = plot.top + i * row + 4;
      plot.text(plot.left - 10, top + row / 2 - 2, "end", "name", name, data.rows[i]);
      series.forEach((one, k) => {
        const largest = Math.max(0, ...one.values.filter(Number.isFinite));
        const share = largest > 0 && one.values[i] > 0 ? one.values[i] / largest : 0;
        plot.bar(plot.left, top + k * height, plot.x(share) - plot.left, height - 1, styles[k],
                 `${data.rows[i]}: ${one.name} ${one.texts[i]}`);
        plot.text(plot.end + 8, top + (k + 1) * height - 3, "start", "value", one.texts[i]);
      });
    });
    return plot;
  };

  // How far prediction and length (of labels: size) change where a column is shuffled.
  const importance = ({ width, data }) => {
    const columns = data.columns.slice(0, 20), size = "mean_size" in data ? "size" : "length";
    const series = (name, key, text) => ({ name, values: columns.map((one) => num(one[key])),
                                           texts: columns.map((one) => text(num(one[key]))) });
    return bars({ width, data: {
      rows: columns.map((one) => one.column),
      series: [series(`prediction (${data.unit})`, "prediction",
                      size === "size" ? percent : number), series(size, size, number)] } });
  };

  // Of each target the mean length of its intervals, in standard deviations of the target.
  const lengths = ({ width, data }) => {
    const share = data.map((one) => num(one.length) / num(one.deviation));
    return bars({ width, data: {
      rows: data.map((one) => one.name),
      series: [{ name: "mean length, in standard deviations of the target", values: share,
                 texts: data.map((one, i) =>
                   `${number(share[i], 3)} (${number(num(one.length))})`) }] } });
  };

  // One line a row, one mark a series, with a whisker as long as its deviation.
  const comparison = ({ width, data }) => {
    const at = (list, i) => (list && Number.isFinite(num(list[i])) ? num(list[i]) : 0);
    const values = [data.reference, ...data.series.flatMap((one) => one.values.flatMap((value, i) =>
      [num(value) - at(one.deviations, i), num(value) + at(one.deviations, i)]))];
    const names = data.rows.map((name) => shortened(name, width < 500 ? 14 : 30));
    const plot = new Plot({ width, grows: true, height: 30 * Math.max(1, names.length), xTicks: 7,
                            xLabel: data.x,
                            legend: data.series.map((one, i) => [shapeOf(i), markStyle(i), one.name]),
                            left: Math.max(40, ...names.map((name) => textWidth(name) + 14)) },
                          data.range || rangeOf(values.filter((value) => value !== undefined)));
    plot.xAxis();
    if (Number.isFinite(data.reference)) plot.vertical(data.reference, "target");
    data.rows.forEach((name, row) => {
      const middle = plot.top + 30 * row + 15;
      if (row) plot.line(plot.left, middle - 15, plot.end, middle - 15, "grid");
      plot.text(plot.left - 10, middle + 4, "end", "name", names[row], name);
      data.series.forEach((one, i) => {
        const value = num(one.values[row]), deviation = at(one.deviations, row);
        if (!Number.isFinite(value)) return;
        // The series of a row stand a little below each other, so that equal values both show.
        const y = middle + (i - (data.series.length - 1) / 2) * 5.5;
        const tip = `${name}, ${one.name}: ${number(value)}` +
          (one.deviations ? ` ± ${number(deviation, 2)}` : "");
        if (deviation > 0) {
          plot.line(plot.x(value - deviation), y, plot.x(value + deviation), y, `whisker ${hue(i)}`,
                    tip);
        }
        plot.mark(shapeOf(i), plot.x(value), y, 4, markStyle(i), tip);
      });
    });
    return plot;
  };

  // Precision, recall and AUC of the classes; of many the 24 of least recall.
  const answers = ({ width, data }) => {
    const shown = data.length <= 24 ? data
      : [...data].sort((a, b) => (a.recall ?? 2) - (b.recall ?? 2)).slice(0, 24);
    const all = [["precision", "precision"], ["recall", "recall"], ["auc", "AUC"]]
      .map(([key, name]) => ({ name, values: shown.map((one) => one[key] ?? null) }));
    return comparison({ width, data: { rows: shown.map((one) => one.label), range: [0, 1],
      x: "share of rows", series: all.filter((one) => one.values.some((v) => v !== null)) } });
  };

  // ---- lines ------------------------------------------------------------------------------------

  // Curves over a number, on plain or (both) logarithmic axes; what is not joined is marks alone.
  const lines = ({ width, data }) => {
    const log = data.logarithmic, back = (value) => (log ? 10 ** value : value);
    const series = data.lines.map((line) => ({ ...line, points: line.points
      .map((point) => point.map(num))
      .filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y) && (!log || (x > 0 && y > 0)))
      .map((point) => (log ? point.map(Math.log10) : point)) }));
    const all = series.flatMap((line) => line.points);
    const plot = new Plot({ width, height: 300, left: 56, xTicks: 5, xLabel: data.x, yLabel: data.y,
                            legend: series.map((line, i) => line.joined
                              ? ["line", `line ${hue(i)}`, line.name]
                              : [shapeOf(i), markStyle(i), line.name]) },
                          rangeOf(all.map(([x]) => x)), rangeOf(all.map(([, y]) => y)));
    const text = log ? (tick) => number(10 ** tick, 2) : undefined;
    plot.yAxis(text);
    plot.xAxis(text);
    series.forEach((line, i) => {
      const places = line.points.map(([x, y]) => [plot.x(x), plot.y(y)]);
      if (line.joined) plot.path(places, `line ${hue(i)}`);
      line.points.forEach(([x, y], k) => plot.mark(shapeOf(i), ...places[k], 3, markStyle(i),
        `${line.name}: ${number(back(x), 3)}, ${number(back(y), 3)}`));
    });
    return plot;
  };

  // Members of the monitor's timeline over its periods: series of [name, member].
  const timeline = ({ width, data, root }) => {
    const points = root.timeline;
    const series = data.series.map(([name, key]) => ({ name, of: points.map((p) => num(p[key])) }));
    const all = [...series.flatMap((one) => one.of), data.line, data.low, data.high]
      .filter((value) => value !== undefined);
    const range = rangeOf(all);
    if (data.most !== undefined) range[1] = Math.min(range[1], data.most);
    if (data.high !== undefined) range[1] = data.high;
    const plot = new Plot({ width, yLabel: data.y, legend: series.map((one, i) =>
                              ["line", `line ${hue(i)}`, one.name]) },
                          [-0.5, Math.max(0.5, points.length - 0.5)], range);
    const names = points.map((point) => shortened(point.period, 16));
    const room = (plot.end - plot.left) / (Math.max(8, ...names.map(textWidth)) + 14);
    const stride = Math.max(1, Math.ceil(points.length / room));
    plot.line(plot.left, plot.bottom, plot.end, plot.bottom, "axis");
    for (let i = 0; i < points.length; i += stride) {
      const half = textWidth(names[i]) / 2;
      const at = Math.max(half, Math.min(plot.x(i), width - half));
      plot.text(at, plot.bottom + 17, "middle", "tick", names[i]);
    }
    plot.yAxis();
    if (data.line !== undefined) plot.horizontal(data.line, "target");
    series.forEach((one, i) => {
      const known = one.of.map((value, k) => [value, k]).filter(([value]) => !Number.isNaN(value));
      plot.path(known.map(([value, k]) => [plot.x(k), plot.y(value)]), `line ${hue(i)}`);
      for (const [value, k] of known) {
        plot.mark("dot", plot.x(k), plot.y(value), 2.6, `dot ${hue(i)}`,
                  `${points[k].period}, ${one.name}: ${number(value)}`);
      }
    });
    return plot;
  };

  const kinds = { answers, comparison, curve, histogram, importance, lengths, lines, parts, pit,
                  reliability, sample, scatter, timeline,
                  worst_parts: (given) => parts({ ...given, worst: true }) };

  return { kinds, number, rowAt, wanted };
})();
