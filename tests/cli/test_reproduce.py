"""`fcp reproduce`: everything that needs no external data, its files, its page in a browser, and
what --resume and missing data do."""
import glob
import json
import os
import re
import shutil
import subprocess

import program

program.LONGEST = 800  # seconds: all experiments in one command, on a busy machine

# Experiments that --quick runs, in the order of the page.
QUICK = ("example", "regression", "cqr", "levels", "untrained", "cuts", "cubic", "scores",
         "zero-quantile", "variance", "convergence", "classification",
         "segmentation")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

# Added to a copy of the page: what the browser makes of it.
PROBE = """<script>document.title = JSON.stringify({
  width: innerWidth, needed: document.documentElement.scrollWidth,
  sections: [...document.querySelectorAll("section")].map(s => s.id),
  charts: document.querySelectorAll("svg").length,
  background: getComputedStyle(document.body).backgroundColor,
  tall: [...document.querySelectorAll("section")].every(s => s.getBoundingClientRect().height > 40),
})</script>"""


class Reproduce(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo's files are not needed

    def reproduce(self, *arguments, **options):
        return self.fcp("reproduce", *arguments, "--quiet", **options)

    def quick(self):
        self.reproduce("all", "--quick", "--out", "out", threads=2)

    def test_quick_writes_everything(self):
        self.quick()
        page = self.bytes_of("out/index.html").decode()
        text = self.bytes_of("out/results.md").decode()
        self.assertEqual(re.findall('<section id="([^"]*)"', page), [*QUICK, "provenance"])
        self.assertEqual(text.count("\n## "), len(QUICK))
        for name in QUICK:
            rows = json.loads(self.bytes_of(f"out/{name}.json"))
            lines = self.bytes_of(f"out/{name}.csv").decode().splitlines()
            self.assertEqual(len(lines), len(rows) + 1)
            self.assertNotIn("seconds", lines[0])
        example = json.loads(self.bytes_of("out/example.json"))
        self.assertAlmostEqual(sum(row["feature_band"] for row in example) / 5, 3.1)
        self.resume()
        if BROWSER:
            self.open_page()

    def resume(self):
        """Only the cell that is gone is computed again, and the CSVs are the same."""
        before = {path: self.bytes_of(path) for path in self.files("out/*.csv")}
        cells = {path: os.stat(self.path(path)).st_mtime_ns for path in self.files("out/cells/*/*")}
        gone = "out/cells/regression/demo-0.json"
        os.remove(self.path(gone))
        self.reproduce("all", "--quick", "--out", "out", "--resume", threads=1)
        for path, content in before.items():
            self.assertEqual(self.bytes_of(path), content, path)
        for path, time in cells.items():
            self.assertEqual(os.stat(self.path(path)).st_mtime_ns == time, path != gone, path)

    def files(self, pattern):
        return sorted(glob.glob(pattern, root_dir=self.folder))

    def open_page(self):
        page = self.bytes_of("out/index.html").decode()
        self.write("probe.html", page.replace("</body>", PROBE + "</body>"))
        backgrounds = set()
        for width, *dark in ((1280,), (500, "--force-dark-mode")):
            with self.subTest(width=width):
                done = subprocess.run(
                    [BROWSER, *dark, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                     "--enable-logging=stderr", "--v=0", f"--window-size={width},900",
                     f"--user-data-dir={self.path('profile')}", "file://" + self.path("probe.html")],
                    capture_output=True, text=True, timeout=program.LONGEST)
                self.assertNotIn("CONSOLE", done.stderr)
                found = json.loads(re.search("<title>([^<]*)</title>", done.stdout)[1])
                self.assertEqual(found["sections"], [*QUICK, "provenance"])
                self.assertEqual(found["charts"], page.count('class="plot"'))
                self.assertTrue(found["tall"])
                self.assertLessEqual(found["needed"], found["width"], "the page scrolls sideways")
                backgrounds.add(found["background"])
        self.assertEqual(len(backgrounds), 2, "dark is as light")

    def test_missing_sets_are_left_out(self):
        done = self.run_program("reproduce", "scores", "--data-dir", "none", "--out", "out",
                                "--methods", "residual")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("community is left out: ", done.stderr)
        self.assertIn("facebook1 is left out: ", done.stderr)
        self.assertIn("community is left out: ", self.bytes_of("out/index.html").decode())
        rows = json.loads(self.bytes_of("out/scores.json"))
        self.assertEqual({row["set"] for row in rows}, {"synthetic"})
        self.assertEqual(self.files("out/cells/scores/*"), ["out/cells/scores/synthetic-0.json"])

    def test_same_seeds_same_csv(self):
        for threads in (1, 2):
            self.reproduce("zero-quantile", "--quick", "--seed", 3, "--out", f"out{threads}",
                           threads=threads)
        self.assertEqual(self.bytes_of("out1/zero-quantile.csv"),
                         self.bytes_of("out2/zero-quantile.csv"))

    def test_bad_usage(self):
        for arguments, word in ((("all", "--sets", "bio"), "--sets"),
                                (("regression", "--sets", "nothing"), "nothing"),
                                (("levels", "--methods", "nested"), "none to choose"),
                                (("classification-cuts", "--quick"), "--quick"),
                                (("nothing",), "nothing")):
            done = self.run_program("reproduce", *arguments, "--out", "out")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)
            self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    program.main()
