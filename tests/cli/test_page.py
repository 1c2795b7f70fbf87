"""The report in a browser: the slider, the filter, sorting, and values by key, as a reader uses them.

A probe at the end of a copy of the page does what a reader would and leaves what it saw in the
title. About 20 s, most of it Chromium's start."""
import html
import json
import re
import shutil
import subprocess

import program
from program import TARGET

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)

HELPERS = """
const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const slide = (level) => {
  one("#alpha").value = level;
  one("#alpha").dispatchEvent(new Event("input", { bubbles: true }));
};
const show = (what) => one(`input[name=show][value=${what}]`).click();
const fields = () => [0, 2, 3, 4, 5].map((i) =>
  one(`.levels [data-field="${i}"]`).textContent.replaceAll("\\u00a0", " "));
const drawn = (kind) => one(`[data-chart=${kind}]`);
"""


class Page(program.Case):
    def probe(self, page, script, width=1280):
        """What `script`, the body of a function, returns in the page."""
        with open(page, encoding="utf-8") as file:
            text = file.read()
        path = self.path("probed.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", "<script>document.title = JSON.stringify((() => {" +
                                    HELPERS + script + "})())</script></body>"))
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--window-size={width},900", "--user-data-dir=" + self.path("profile"), "--dump-dom",
             "file://" + path],
            capture_output=True, text=True, timeout=program.LONGEST, check=True)
        self.assertEqual([line for line in done.stderr.splitlines() if ":CONSOLE" in line], [])
        return json.loads(html.unescape(re.search("<title>(.*?)</title>", done.stdout, re.S)[1]))

    def evaluation(self, alpha):
        return json.loads(self.fcp("evaluate", self.made("calibrated.onnx"), "--data",
                                   self.made("test.csv"), "--target", TARGET, "--alpha", alpha,
                                   "--json", "--quiet"))

    def test_the_slider_says_what_evaluate_says(self):
        seen = self.probe(self.made("report.html"), """
          const steps = [];
          for (let level = 0; level <= Number(one("#alpha").max); ++level) {
            slide(level);
            steps.push({ fields: fields(), spoken: one("#alpha").getAttribute("aria-valuetext"),
              cursor: Number(one(".cursor", drawn("curve")).getAttribute("x1")),
              intervals: all(".rows .interval", drawn("sample")).length,
              crosses: all(".rows .cross", drawn("sample")).length,
              outside: all("path.cross", drawn("scatter")).length,
              legend: drawn("sample").textContent,
              current: one("tr.current th").textContent });
          }
          return steps;
        """)
        self.assertEqual([step["fields"][0] for step in seen][:6],
                         ["0.01", "0.02", "0.03", "0.04", "0.05", "0.06"])
        for alpha in ("0.05", "0.1", "0.4"):
            step = next(step for step in seen if step["fields"][0] == alpha)
            found = self.evaluation(alpha)
            self.assertEqual(step["fields"][1], f"{100 * found['coverage']:.1f} %")
            shown = float(step["fields"][3].replace(",", ""))
            self.assertAlmostEqual(shown, found["length"], delta=5e-4 * found["length"])
            self.assertEqual(step["fields"][4], f"{found['rows'] - found['covered']:,} of "
                                                f"{found['rows']:,} rows missed")
        for step in seen:
            self.assertEqual(step["spoken"], "α = " + step["fields"][0])
            self.assertEqual(step["current"], step["fields"][0])
            self.assertEqual(step["intervals"], 300)
            self.assertIn(f"truth outside: {step['crosses']} of 300 rows", step["legend"])
            self.assertEqual(step["outside"], step["crosses"] + 1)  # one is in the legend
        crosses = [step["crosses"] for step in seen]
        self.assertEqual(crosses, sorted(crosses))  # regions are nested
        self.assertLess(crosses[0], crosses[-1])
        cursors = [step["cursor"] for step in seen]
        self.assertEqual(cursors, sorted(cursors))
        self.assertLess(cursors[0], cursors[-1])

    def test_filter_table_sort_and_keys(self):
        seen = self.probe(self.made("report.html"), """
          const rows = () => all("table[data-rows] tbody tr");
          const result = { all: rows().length };
          show("missed");
          result.missed = rows().map((row) => row.cells[5].textContent);
          result.drawn = all(".rows .interval", drawn("sample")).length;
          show("covered");
          result.covered = rows().length;
          const header = all("table[data-rows] thead button")[4];
          header.click();
          result.up = rows().map((row) => parseFloat(row.cells[4].textContent.replace(",", "")));
          result.sorted = header.parentNode.getAttribute("aria-sort");
          header.click();
          result.down = rows().map((row) => parseFloat(row.cells[4].textContent.replace(",", "")));
          slide(0);
          result.kept = header.parentNode.getAttribute("aria-sort");
          show("all");
          const chart = drawn("sample");
          chart.focus();
          result.focused = document.activeElement === chart;
          chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
          result.tip = one(".tip.on").textContent;
          result.titles = all("svg line > title").length;
          return result;
        """)
        self.assertEqual(seen["all"], 300)
        self.assertEqual(seen["missed"], ["missed"] * seen["drawn"])
        self.assertEqual(seen["covered"] + seen["drawn"], 300)
        self.assertEqual(seen["up"], sorted(seen["up"]))
        self.assertEqual(seen["down"], seen["up"][::-1])
        self.assertEqual((seen["sorted"], seen["kept"]), ("ascending", "descending"))
        self.assertTrue(seen["focused"])
        self.assertRegex(seen["tip"], r"^line \d+: prediction .*, interval .* to .*, truth .*, ")
        self.assertEqual(seen["titles"], 0)

    def test_a_phone_scrolls_tables_and_not_the_page(self):
        seen = self.probe(self.made("report.html"), """
          const root = document.documentElement;
          const boxes = all(".scroll").filter((box) => box.scrollWidth > box.clientWidth + 1);
          return { width: innerWidth, needed: root.scrollWidth, scrolled: boxes.length,
            reached: boxes.every((box) => box.tabIndex === 0),
            shadow: boxes.every((box) => getComputedStyle(box).backgroundImage !== "none") };
        """, width=480)
        self.assertLessEqual(seen["needed"], seen["width"])
        self.assertGreater(seen["scrolled"], 0)
        self.assertTrue(seen["reached"])
        self.assertTrue(seen["shadow"])

    def test_labels_come_and_go_with_the_level(self):
        lines = ["x1,x2,kind"] + [f"{i % 7},{i % 11},{'abc'[(i * i + i // 5) % 3]}"
                                  for i in range(400)]
        self.write("kinds.csv", "\n".join(lines) + "\n")
        self.fcp("fit", "kinds.csv", "--target", "kind", "--members", "2", "--epochs", "5",
                 "--score", "lac", "--out", "kinds.onnx", "--report", "kinds.html", "--quiet")
        seen = self.probe(self.path("kinds.html"), """
          const sets = () => all(".example").map((card) =>
            all("[data-last]:not([hidden])", card).length);
          const result = { own: sets(), steps: [] };
          for (let level = 0; level <= Number(one("#alpha").max); ++level) {
            slide(level);
            result.steps.push({ sets: sets(), missed: all(".example.missed").length,
              none: all(".none:not([hidden])").length,
              marks: all(".example .mark").filter((mark) => mark.textContent === "✗ missed").length });
          }
          show("missed");
          result.shown = all(".example:not([hidden])").length;
          return result;
        """)
        self.assertEqual(len(seen["own"]), 24)
        for before, after in zip(seen["steps"], seen["steps"][1:]):
            for larger, smaller in zip(before["sets"], after["sets"]):
                self.assertGreaterEqual(larger, smaller)
        self.assertGreater(sum(seen["steps"][0]["sets"]), sum(seen["steps"][-1]["sets"]))
        for step in seen["steps"]:
            self.assertEqual(step["marks"], step["missed"])
            self.assertEqual(step["none"], sum(size == 0 for size in step["sets"]))
        self.assertEqual(seen["shown"], seen["steps"][-1]["missed"])

    def test_the_same_rows_give_the_same_bytes(self):
        for name in ("a.html", "b.html"):
            self.fcp("evaluate", self.made("calibrated.onnx"), "--data", self.made("test.csv"),
                     "--target", TARGET, "--report", name, "--quiet")
        self.assertEqual(self.bytes_of("a.html"), self.bytes_of("b.html"))


if __name__ == "__main__":
    if BROWSER is None:
        print("there is no Chromium here")
        raise SystemExit(77)
    program.main()
