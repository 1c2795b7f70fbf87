// What a page can do besides being read: draw its charts (charts.js), show the values under the
// pointer, sort tables, choose the level and the target, show covered or missed rows alone. Every
// number is one of the report's JSON, which the page carries.
(() => {
  "use strict";
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  document.documentElement.classList.add("js");

  // ---- values under the pointer, or by the arrow keys -------------------------------------------

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);

  const hideTip = () => tip.classList.remove("on");
  const showTip = (text, x, y) => {
    if (tip.textContent !== text) tip.textContent = text;
    tip.classList.add("on");
    const box = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const left = Math.min(Math.max(8, x + 14), wide - box.width - 8);
    const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  };
  // Across comes before up and down: charts are read by columns.
  const nearest = (chart, x, y) => {
    let best = null, least = Infinity;
    for (const mark of all("[data-tip]", chart)) {
      const box = mark.getBoundingClientRect();
      const across = Math.max(box.left - x, 0, x - box.right);
      const along = Math.max(box.top - y, 0, y - box.bottom);
      if (across > 14 || along > 90 || 6 * across + along >= least) continue;
      least = 6 * across + along;
      best = mark;
    }
    return best;
  };
  let marked = null;
  const mark = (element) => {
    if (marked) marked.classList.remove("marked");
    marked = element;
    if (marked) marked.classList.add("marked");
  };
  const listen = (chart) => {
    if (!chart.querySelector("[data-tip]")) return;
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", chart.dataset.title);
    chart.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight");
    chart.addEventListener("pointermove", (event) => {
      mark(nearest(chart, event.clientX, event.clientY));
      marked ? showTip(marked.dataset.tip, event.clientX, event.clientY) : hideTip();
    });
    for (const end of ["pointerleave", "blur"]) {
      chart.addEventListener(end, () => { mark(null); hideTip(); });
    }
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hideTip();
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const marks = all("[data-tip]", chart);
      const at = marks.indexOf(marked);
      mark(marks[at < 0 ? (step > 0 ? 0 : marks.length - 1)
                        : (at + step + marks.length) % marks.length]);
      const box = marked.getBoundingClientRect();
      showTip(marked.dataset.tip, (box.left + box.right) / 2, (box.top + box.bottom) / 2);
    });
  };

  // ---- tables -----------------------------------------------------------------------------------

  const plain = (text) =>
    text.replace(/[\s\u00a0,]/g, "").replace("−", "-").replace("∞", "Infinity");
  const sortTable = (table, column, up) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => {
      const text = row.cells[column] ? row.cells[column].textContent.trim() : "";
      return { row, text, value: parseFloat(plain(text)) };
    });
    rows.sort((a, b) => {
      if (isNaN(a.value) !== isNaN(b.value)) return isNaN(a.value) ? 1 : -1;
      const order = isNaN(a.value) ? a.text.localeCompare(b.text, "en", { numeric: true })
                                   : a.value === b.value ? 0 : a.value - b.value;
      return up ? order : -order;
    });
    body.append(...rows.map((entry) => entry.row));
    table.sorted = { column, up };
    [...table.tHead.rows[0].cells].forEach((cell, i) => {
      i === column ? cell.setAttribute("aria-sort", up ? "ascending" : "descending")
                   : cell.removeAttribute("aria-sort");
    });
  };
  const sortable = (table) => {
    if (!table.tHead || (table.tBodies[0].rows.length < 2 && !("rows" in table.dataset))) return;
    [...table.tHead.rows[0].cells].forEach((cell, i) => {
      if (!cell.textContent) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      button.addEventListener("click", () => {
        sortTable(table, i, cell.getAttribute("aria-sort") !== "ascending");
      });
      cell.append(button);
    });
  };
  all("table").forEach(sortable);

  // ---- charts -----------------------------------------------------------------------------------

  const source = document.getElementById("report-data");
  const data = source ? JSON.parse(source.textContent) : {};
  const slider = document.getElementById("alpha");
  const target = document.getElementById("target");
  const own = slider ? Number(slider.defaultValue) : 0;
  const state = { level: own, show: "all" };
  const plots = all(".plot");
  // What a JSON pointer points to.
  const find = (pointer) => pointer.split("/").slice(1)
    .reduce((at, key) => at[key.replace(/~1/g, "/").replace(/~0/g, "~")], data);
  // A chart from the data that its place holds, or points to, as wide as its place.
  const draw = (place) => {
    const held = place.querySelector("script");
    if (held) place.values = JSON.parse(held.textContent);
    place.drawn = place.clientWidth;
    const plot = fcpCharts.kinds[place.dataset.chart](
      { data: place.values ?? find(place.dataset.at), root: data, state,
        width: Math.max(240, place.drawn || 420) });
    plot.svg.setAttribute("aria-label", place.dataset.title);
    place.replaceChildren(plot.svg);
  };
  const redraw = (wanted) => {
    mark(null);
    hideTip();
    plots.filter(wanted).forEach(draw);
  };

  // ---- the level, the target, and which rows are shown ------------------------------------------

  const table = document.querySelector("table[data-rows]");
  const fields = all("[data-field]");
  const levelRows = all("tr[data-level]");
  const sampled = () => data.sample[target ? Number(target.value) : 0];
  const fillTable = () => {
    const { number, rowAt, wanted } = fcpCharts;
    const rows = sampled().rows.map((row) => rowAt(row, state.level))
      .filter((row) => wanted(row, state.show));
    table.tBodies[0].replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = row.name;
      line.append(head);
      const numbers = [row.prediction, row.lower, row.upper, row.truth].map((v) => number(v));
      for (const text of [...numbers, row.covered ? "covered" : "missed"]) {
        line.insertCell().textContent = text;
      }
      return line;
    }));
    if (table.sorted) sortTable(table, table.sorted.column, table.sorted.up);
  };
  // A card of an example lists the labels of all levels' sets; those of this one are shown.
  const fillExample = (card) => {
    const labels = all("[data-last]", card);
    for (const label of labels) label.hidden = state.level > Number(label.dataset.last);
    const covered = card.dataset.covered[state.level] === "1";
    card.classList.toggle("missed", !covered);
    card.hidden = !fcpCharts.wanted({ covered }, state.show);
    card.querySelector(".mark").textContent = covered ? "✓ covered" : "✗ missed";
    const none = card.querySelector(".none");
    if (none) none.hidden = labels.some((label) => !label.hidden);
    for (const more of all(".more", card)) more.hidden = state.level !== own;
  };
  // The texts of a level are those of its row in the table of all levels.
  const update = () => {
    const row = levelRows[state.level];
    if (slider) slider.setAttribute("aria-valuetext", `α = ${row.cells[0].textContent}`);
    for (const field of fields) field.textContent = row.cells[field.dataset.field].textContent;
    levelRows.forEach((one) => one.classList.toggle("current", one === row));
    if (target) all("[data-chart=sample]")[0].dataset.at = `/sample/${target.value}`;
    if (table) fillTable();
    all(".example[data-covered]").forEach(fillExample);
  };
  const change = () => {
    update();
    redraw((plot) => ["sample", "scatter", "curve"].includes(plot.dataset.chart));
  };
  if (slider) {
    slider.addEventListener("input", () => { state.level = Number(slider.value); change(); });
    state.level = Number(slider.value);  // a browser may remember it
  }
  if (target) target.addEventListener("change", change);
  for (const button of all("input[name=show]")) {
    button.addEventListener("change", () => { state.show = button.value; change(); });
    if (button.checked) state.show = button.value;
  }
  update();
  redraw(() => true);
  plots.forEach(listen);
  addEventListener("resize", () => redraw((plot) => plot.drawn !== plot.clientWidth));

  // ---- on paper the numbers of all levels stand for the slider ----------------------------------

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("#levels details:not([open]):not(.scripted)");
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });
})();
