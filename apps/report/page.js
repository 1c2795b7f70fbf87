// What a page can do besides being read: show the values under the pointer, sort tables, choose the
// level, show covered or missed rows alone. Every number was written by the program; here the rows
// of the chart are only counted.
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
    const left = Math.min(Math.max(8, x + 14), document.documentElement.clientWidth - box.width - 8);
    const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  };
  // The titles of marks become tips: a browser's own come late, and never by key.
  const takeTips = (from) => {
    for (const title of all("title", from)) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    }
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
  for (const chart of all("svg.chart")) {
    const texts = all(":scope > title, :scope > desc", chart);
    chart.setAttribute("aria-label", texts.map((text) => text.textContent).join(". "));
    for (const text of texts) text.remove();  // or it would be a tip of the whole chart
    takeTips(chart);
    listen(chart);
  }

  // ---- tables -------------------------------------------------------------------------------------

  const plain = (text) => text.replace(/[\s\u00a0,]/g, "").replace("−", "-").replace("∞", "Infinity");
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

  // ---- the level, and which rows are shown ---------------------------------------------------

  const source = document.getElementById("report-data");
  if (source) {
    const data = JSON.parse(source.textContent);
    const slider = document.getElementById("alpha");
    const chart = document.getElementById("sample");
    const curve = document.getElementById("curve");
    const table = document.querySelector("table[data-rows]");
    const escaped = document.createElement("i");
    const safe = (text) => {
      escaped.textContent = text;
      return escaped.innerHTML.replace(/"/g, "&quot;");
    };
    let level = data.own, show = "all";
    const wanted = (covered) => show === "all" || (show === "covered") === covered;
    const plotOf = (svg) => {
      const [left, right, top, bottom, x0, x1, y0, y1] = svg.dataset.plot.split(" ").map(Number);
      const place = (value, from, to, start, end) =>
        start + Math.min(1, Math.max(0, (value - from) / (to - from))) * (end - start);
      return { x: (v) => place(v, x0, x1, left, right).toFixed(1),
               y: (v) => place(v, y0, y1, bottom, top).toFixed(1), top, bottom };
    };
    // Of a row: its name, at which levels it is covered, and its numbers as they are shown.
    const rowAt = ([name, covered, numbers]) => {
      const [prediction, truth, ...ends] = numbers;
      return { name, prediction, truth, lower: ends[2 * level], upper: ends[2 * level + 1],
               covered: covered[level] === "1" };
    };
    const rows = (data.rows || []).map(([name, covered, numbers]) =>
      [name, covered, numbers.split(" ")]);

    const drawRows = () => {
      const plot = plotOf(chart);
      let html = "";
      rows.map(rowAt).forEach((row, i) => {
        if (!wanted(row.covered)) return;
        const x = plot.x(i + 1), y = plot.y(parseFloat(plain(row.truth)));
        const text = safe(`${row.name}: prediction ${row.prediction}, interval ${row.lower} to ` +
                          `${row.upper}, truth ${row.truth}, ${row.covered ? "covered" : "missed"}`);
        html += `<line class="interval${row.covered ? "" : " missed"}" data-tip="${text}" x1="${x}" ` +
                `x2="${x}" y1="${plot.y(parseFloat(plain(row.lower)))}" ` +
                `y2="${plot.y(parseFloat(plain(row.upper)))}"/>`;
        html += row.covered
          ? `<circle class="truth" cx="${x}" cy="${y}" r="1.6"/>`
          : `<path class="cross miss" d="M${x - 3} ${y - 3}l6 6m-6 0l6 -6"/>`;
      });
      chart.querySelector(".rows").innerHTML = html;
      for (const text of all("text.own", chart)) {  // said of the report's own level alone
        text.setAttribute("visibility", level === data.own ? "visible" : "hidden");
      }
      const missed = rows.filter((row) => row[1][level] !== "1").length;
      chart.querySelector("text.missed").textContent =
        `truth outside: ${missed} of ${rows.length} rows`;
    };
    const fillTable = () => {
      table.tBodies[0].innerHTML = rows.map(rowAt).filter((row) => wanted(row.covered))
        .map((row) => `<tr><th scope="row">${safe(row.name)}</th><td>${row.prediction}</td>` +
                      `<td>${row.lower}</td><td>${row.upper}</td><td>${row.truth}</td>` +
                      `<td>${row.covered ? "covered" : "missed"}</td></tr>`).join("");
      if (table.sorted) sortTable(table, table.sorted.column, table.sorted.up);
    };
    const moveCursor = () => {
      const plot = plotOf(curve);
      const line = curve.querySelector(".cursor");
      const x = plot.x(Number(data.levels[level][5]));
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    };
    // A card of an example lists the labels of all levels' sets; those of this one are shown.
    const fillExample = (card) => {
      const labels = all("[data-last]", card);
      for (const label of labels) label.hidden = level > Number(label.dataset.last);
      const covered = card.dataset.covered[level] === "1";
      card.classList.toggle("missed", !covered);
      card.hidden = !wanted(covered);
      card.querySelector(".mark").textContent = covered ? "✓ covered" : "✗ missed";
      const none = card.querySelector(".none");
      if (none) none.hidden = labels.some((label) => !label.hidden);
      for (const more of all(".more", card)) more.hidden = level !== data.own;
    };
    const update = () => {
      if (slider) slider.setAttribute("aria-valuetext", `α = ${data.levels[level][0]}`);
      for (const field of all("[data-field]")) {
        field.textContent = data.levels[level][Number(field.dataset.field)];
      }
      all("tr[data-level]").forEach((row) =>
        row.classList.toggle("current", Number(row.dataset.level) === level));
      if (chart && rows.length) drawRows();
      if (table) fillTable();
      if (curve && curve.querySelector(".cursor")) moveCursor();
      all(".example[data-covered]").forEach(fillExample);
    };
    if (slider) {
      slider.addEventListener("input", () => { level = Number(slider.value); update(); });
    }
    for (const button of all("input[name=show]")) {
      button.addEventListener("change", () => { show = button.value; update(); });
      if (button.checked) show = button.value;
    }
    if (slider) level = Number(slider.value);  // a browser may remember it
    update();
  }

  // ---- on paper the numbers of all levels stand for the slider ---------------------------------

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("#levels details:not([open]):not(.scripted)");
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of folded) part.open = false; });
})();
