"""fcp show, update and compare."""
import hashlib
import json
import os

import program
from program import TARGET


class Update(program.Case):
    def show(self, model):
        return json.loads(self.fcp("show", model, "--json"))

    def update(self, *arguments, model=None):
        return self.run_program("update", model or self.made("calibrated.onnx"), "--target", TARGET,
                                "--out", "next.onnx", *arguments)

    def test_show_tells_what_the_file_is(self):
        model = self.made("calibrated.onnx")
        shown = self.show(model)
        self.assertEqual(shown["score"], "nested")
        self.assertEqual(shown["calibration"], "split")
        self.assertEqual(shown["version"], 1)
        self.assertGreater(shown["radius"]["0.05"], shown["radius"]["0.1"])
        self.assertEqual(shown["provenance"]["calibration data"], "calibration.csv")
        with open(model, "rb") as file:
            self.assertEqual(shown["sha256"], hashlib.sha256(file.read()).hexdigest())
        text = self.fcp("show", model)
        for word in ("nested", "radius", shown["sha256"], "calibration.csv"):
            self.assertIn(word, text)
        self.assertRegex(text, r"(?m)^norm +inf$")
        self.assertRegex(text, r"(?m)^calibration\.name +split$")
        self.assertNotIn("{", text)
        for line in text.splitlines():
            self.assertTrue(len(line) <= 80 or "sha256" in line, line)
        done = self.run_program("show", self.made("model.onnx"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("fcp calibrate", done.stderr)

    def test_update_merges_and_keeps_settings(self):
        before = self.show(self.made("calibrated.onnx"))
        done = self.update("--data", self.made("test.csv"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        after = self.show("next.onnx")
        self.assertEqual(after["version"], 2)
        self.assertEqual(after["rows"], told["rows"])
        self.assertEqual(after["rows"], before["rows"] + len(self.truth()))
        self.assertEqual(after["settings"], before["settings"])
        self.assertEqual(after["provenance"]["updated from sha256"], before["sha256"])
        self.assertIn("1: ", after["provenance"]["history"])
        self.assertEqual(after["radius"]["0.1"], told["radius"]["0.1"])
        self.predict("next.onnx")
        again = self.run_program("update", "next.onnx", "--data", self.made("test.csv"), "--target",
                                 TARGET, "--out", "third.onnx")
        self.assertEqual(again.returncode, 1)
        self.assertIn("calibrated on these rows already", again.stderr)
        self.assertFalse(os.path.exists(self.path("third.onnx")))
        with open(self.made("test.csv")) as file:
            header, *lines = file.read().splitlines()
        with open(self.path("shuffled.csv"), "w") as file:
            file.write("\n".join([header, *reversed(lines), lines[0]]) + "\n")
        again = self.run_program("update", "next.onnx", "--data", self.path("shuffled.csv"),
                                 "--target", TARGET, "--out", "third.onnx")
        self.assertEqual(again.returncode, 1)
        self.assertIn("shuffled.csv: the predictor is calibrated on these rows already",
                      again.stderr)

    def test_update_slides(self):
        done = self.update("--data", self.made("test.csv"), "--window", 120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.show("next.onnx")["rows"], 120)
        with open(self.made("test.csv")) as file:
            lines = file.read().splitlines()
        rows = [lines[0] + ",t", *(f"{line},{i}" for i, line in enumerate(lines[1:]))]
        self.write("log.csv", "\n".join(rows) + "\n")
        done = self.update("--data", "log.csv", "--time", "t", "--since", 100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.show("next.onnx")["rows"], len(rows) - 1 - 100)

    def test_update_says_what_is_wrong(self):
        for arguments, code, message in (
                (("--since", "3"), 2, "--time"),
                (("--window", "9", "--since", "3", "--time", "t"), 2, "excludes"),
                (("--since", "x", "--time", TARGET), 1, "expected a number or a date")):
            with self.subTest(arguments):
                done = self.update("--data", self.made("test.csv"), *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertFalse(os.path.exists(self.path("next.onnx")))

    def test_compare(self):
        self.calibrate("plain.onnx", "--score", "residual")
        arguments = ("--data", self.made("test.csv"), "--target", TARGET)
        found = json.loads(self.fcp("compare", self.made("calibrated.onnx"), "plain.onnx",
                                    *arguments, "--json"))
        for model, name in ((self.made("calibrated.onnx"), "a"), ("plain.onnx", "b")):
            evaluated = json.loads(self.fcp("evaluate", model, *arguments, "--json"))
            self.assertAlmostEqual(found["coverage"][name], evaluated["coverage"], places=9)
            self.assertAlmostEqual(found["size"][name], evaluated["length"], places=4)
        self.assertIn(found["better"], ("a", "b", None))
        same = self.fcp("compare", "plain.onnx", "plain.onnx", *arguments)
        self.assertIn("none is better", same)


if __name__ == "__main__":
    program.main()
