"""What goes to stdout and what to stderr, help, versions, and the report in a real browser."""
import json
import os
import re
import shutil
import subprocess
import unittest

import program
from program import TARGET

VERBS = ("demo", "train", "inspect", "run", "calibrate", "check", "predict", "evaluate", "reproduce")


class Console(program.Case):
    def commands(self):
        """One command for each verb, its rows going to a file."""
        calibrated = (self.made("calibrated.onnx"), "--data", self.made("test.csv"))
        commands = {
            "demo": ("demo", "--out", "demo"),
            "train": ("train", self.made("train.csv"), "--target", TARGET, "--epochs", 1, "--out",
                      "m.onnx"),
            "inspect": ("inspect", self.made("model.onnx")),
            "run": ("run", self.made("model.onnx"), "--data", self.made("test.csv"), "--out", "y.csv"),
            # Choosing the cut prints a table of candidates to stderr, unless quiet.
            "calibrate": ("calibrate", self.made("model.onnx"), "--data",
                          self.made("calibration.csv"), "--target", TARGET, "--score", "linearized",
                          "--cut", "auto", "--out", "c.onnx"),
            "check": ("check", *calibrated, "--target", TARGET, "--out", "k.csv"),
            # The level is too small for the rows, which is warned about, unless quiet.
            "predict": ("predict", *calibrated, "--alpha", "0.0001", "--out", "i.csv"),
            "evaluate": ("evaluate", *calibrated, "--target", TARGET, "--alpha", "0.0001"),
            "reproduce": ("reproduce", "regression", "--sets", "synthetic", "--seeds", 1,
                          "--methods", "residual"),
        }
        self.assertEqual(tuple(commands), VERBS)
        return commands

    def test_quiet_json_on_every_verb(self):
        for verb, command in self.commands().items():
            with self.subTest(verb):
                done = self.run_program(*command, "--json", "--quiet")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr, "")
                json.loads(done.stdout, parse_constant=lambda name: self.fail(f"bare {name}"))

    def test_json_is_not_mixed_with_messages(self):
        for verb in ("calibrate", "predict", "evaluate"):
            with self.subTest(verb):
                done = self.run_program(*self.commands()[verb], "--json")
                json.loads(done.stdout)
                self.assertNotEqual(done.stderr, "")

    def test_rows_alone_on_stdout(self):
        done = self.run_program("predict", self.made("calibrated.onnx"), "--data",
                                self.made("test.csv"))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "prediction,lower,upper")
        self.assertEqual(len(lines), 1 + len(self.truth()))
        self.assertEqual(done.stderr, "predicted 1200 rows at alpha 0.1\n")

    def test_help_of_every_verb_has_an_example(self):
        for verb in VERBS:
            with self.subTest(verb):
                done = self.run_program(verb, "--help-all", threads=None)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, rf"Examples?:\n  fcp {verb}\b")
                for option in ("--json", "--quiet", "--threads"):
                    self.assertIn(option, done.stdout)

    def test_help_lists_the_verbs(self):
        text = self.run_program("--help", threads=None).stdout
        for verb in VERBS:
            self.assertRegex(text, rf"\n  {verb} ")

    def test_version(self):
        done = self.run_program("--version", threads=None)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^fcp \d+\.\d+\.\d+\n$")


class Browser(program.Case):
    def test_report_opens_without_console_errors(self):
        browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser",
                                                       "google-chrome"))), None)
        if browser is None:
            self.skipTest("there is no Chromium here")
        infinite = self.path("infinite.html")
        self.fcp("evaluate", self.made("calibrated.onnx"), "--data", self.made("test.csv"),
                 "--target", TARGET, "--alpha", "0.0001", "--report", infinite)
        for page in (self.made("report.html"), infinite):
            with self.subTest(os.path.basename(page)):
                done = subprocess.run(
                    [browser, "--headless", "--no-sandbox", "--disable-gpu",
                     "--enable-logging=stderr", "--user-data-dir=" + self.path("profile"),
                     "--dump-dom", "file://" + page],
                    capture_output=True, text=True, timeout=program.LONGEST, check=True)
                console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
                self.assertEqual(console, [])
                self.assertGreaterEqual(len(re.findall("<svg", done.stdout)), 3)
                self.assertIn("</html>", done.stdout)
                self.assertNotRegex(done.stdout, r'="[^"]*\b(NaN|nan|inf|Infinity)\b[^"]*"')


if __name__ == "__main__":
    program.main()
