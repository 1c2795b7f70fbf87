"""`calibrate --levels` keeps the radii of a few levels: at those every verb answers as with all
scores, byte by byte; anything else is refused in one line."""
import json
import os
import random

import program
from program import TARGET

LEVELS = "0.05,0.1,0.2"
KEPT = "c.onnx: keeps the radii for levels 0.05, 0.1, 0.2 alone (calibrate --levels); "


class Levels(program.Case):
    target = TARGET

    def both(self, *arguments, model=None):
        """all.onnx with all scores, c.onnx with those of the levels."""
        command = ("calibrate", model or self.made("model.onnx"), "--data",
                   self.made("calibration.csv"), "--target", self.target, "--json",
                   *program.scored(*arguments))
        every = json.loads(self.fcp(*command, "--out", "all.onnx"))
        some = json.loads(self.fcp(*command, "--levels", LEVELS, "--out", "c.onnx"))
        self.assertEqual(list(some["radius"]), ["0.2", "0.1", "0.05"])
        for level, radius in some["radius"].items():
            self.assertEqual(radius, every["radius"][level])
        self.assertEqual(some["rows"], every["rows"])
        return every["rows"]

    def evaluation(self, model, alpha):
        text = self.fcp("evaluate", model, "--data", self.made("test.csv"), "--target", self.target,
                        "--alpha", alpha, "--json", "--report", "r.html")
        report = json.loads(text.replace(model, "MODEL.onnx"))  # advice names it
        report.pop("distribution", None)  # needs all scores
        curves = [method.pop(name) for method in (report, *report.get("others", ()))
                  for name in ("curve", "levels") if name in method]
        return report, [{point["alpha"]: point for point in curve} for curve in curves]

    def assert_same_answers(self, alphas=("0.05", "0.1", "0.2")):
        for alpha in alphas:
            predict = [self.fcp("predict", model, "--data", self.made("test.csv"), "--alpha", alpha)
                       for model in ("all.onnx", "c.onnx")]
            self.assertEqual(*predict)
            (every, curves), (some, short) = (self.evaluation(model, alpha)
                                              for model in ("all.onnx", "c.onnx"))
            self.assertEqual(every, some)
            for whole, curve in zip(curves, short, strict=True):
                self.assertEqual(sorted(curve), [0.05, 0.1, 0.2])
                for level in set(curve) & set(whole):  # the whole one has even hundredths
                    if "radius" in whole[level] and whole[level]["radius"] is None:  # by p-values
                        curve[level]["radius"] = None
                    self.assertEqual(curve[level], whole[level])

    def test_answers_are_those_of_all_scores(self):
        self.both()
        self.assert_same_answers()
        for model in ("all", "c"):
            self.fcp("export", f"{model}.onnx", "--alpha", LEVELS, "--out", f"{model}.exported")
        self.assertEqual(self.bytes_of("all.exported"), self.bytes_of("c.exported"))
        self.assertLess(os.path.getsize(self.path("c.onnx")),
                        os.path.getsize(self.path("all.onnx")) - 2 * 8 * 2000)

    def test_two_sides_each_at_half_of_alpha(self):
        self.fcp("train", self.made("train.csv"), "--target", TARGET, "--loss", "quantile",
                 "--epochs", "3", "--out", "q.onnx")
        self.both("--score", "cqr", "--asymmetric", model="q.onnx")
        self.assert_same_answers(("0.1",))

    def test_rows_left_out_and_the_paper(self):
        self.assertLess(self.both("--cut", "auto", "--selection", "0.3"), 2000)
        self.assert_same_answers(("0.1",))
        self.both("--score", "surrogate", "--steps", "5", "--paper")
        self.assert_same_answers(("0.05",))

    def test_sets_of_labels(self):
        rng = random.Random(4)
        for name in ("train.csv", "calibration.csv", "test.csv"):
            points = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(400)]
            self.write(name, "a,b,kind\n" + "".join(
                f"{a:.3f},{b:.3f},{int(a + rng.gauss(0, 1) > 0) + int(b > 0.5)}\n" for a, b in points))
        self.demo, self.target = self.folder, "kind"
        self.fcp("train", "train.csv", "--target", "kind", "--loss", "cross-entropy",
                 "--epochs", "5", "--out", "k.onnx")
        self.both("--score", "feature_margin", "--rank-weight", "0", model="k.onnx")
        self.assert_same_answers(("0.1",))

    def test_too_few_rows(self):
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            self.write("few.csv", "".join(file.readlines()[:11]))
        command = ("calibrate", self.made("model.onnx"), "--data", "few.csv", "--target", TARGET,
                   "--score", "nested")
        self.fcp(*command, "--out", "all.onnx")
        done = self.run_program(*command, "--levels", LEVELS, "--out", "c.onnx")
        self.assertEqual(done.stderr, "warning: the radius is infinite: alpha 0.05 needs at least "
                                      "19 calibration rows, this predictor has 10; every interval "
                                      "is infinite\n")
        self.assertIn("95 %: ∞", done.stdout)
        self.assert_same_answers()

    def test_anything_else_is_one_line(self):
        self.both()
        rows = ("--data", self.made("test.csv"))
        truth = ("--target", TARGET)
        for verb, options, why in (
                ("predict", ("--alpha", "0.3"), "found alpha 0.3"),
                ("evaluate", (*truth, "--alpha", "0.01", "--report", "r.html"), "found alpha 0.01"),
                ("check", truth, "a p-value needs all scores"),
                ("check", (*truth, "--alpha", "0.15"), "found alpha 0.15")):
            done = self.run_program(verb, "c.onnx", *rows, *options)
            self.assertEqual((done.returncode, done.stderr), (1, f"fcp: {KEPT}{why}\n"), verb)
        done = self.run_program("export", "c.onnx", "--alpha", "0.1,0.3", "--out", "e.onnx")
        self.assertEqual((done.returncode, done.stderr), (1, f"fcp: {KEPT}found alpha 0.3\n"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["all.onnx", "c.onnx"])

    def test_bad_usage(self):
        command = ("calibrate", self.made("model.onnx"), "--data", self.made("calibration.csv"),
                   "--target", TARGET, "--out", "c.onnx", "--levels")
        for options, why in ((("0.1,0.2,0.10",), "0.10 is given twice"),
                             (("0.1,2",), "2"),
                             (("0.1", "--calibration", "localized"), "localized needs all scores")):
            done = self.run_program(*command, *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    program.main()
