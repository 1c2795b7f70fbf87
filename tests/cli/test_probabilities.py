"""Calibrated probabilities of classes, and outliers among rows without answers, verb by verb."""
import csv
import json
import math
import random

import program

SIZES = {2: ["0", "1"], 3: ["0", "1", "2"]}


class Probabilities(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo is not needed

    def make_table(self, name, rows, seed, classes):
        """Two columns around a place for each class, which is the label."""
        rng = random.Random(seed)
        lines = ["a,b,kind"]
        for _ in range(rows):
            kind = rng.randrange(classes)
            a, b = rng.gauss((0, 2, 1)[kind], 1.2), rng.gauss((0, 0, 1.7)[kind], 1.2)
            lines.append(f"{a:.4f},{b:.4f},{SIZES[classes][kind]}")
        return self.write(name, "\n".join(lines) + "\n")

    def calibrated(self, classes, *options):
        for name, rows, seed in (("train", 300, 1), ("cal", 500, 2), ("test", 300, 3)):
            self.make_table(f"{name}.csv", rows, seed, classes)
        self.fcp("train", "train.csv", "--target", "kind", "--loss", "cross-entropy", "--recipe",
                 "paper", "--layers", "12", "--epochs", "60", "--out", "model.onnx")
        self.calibrate_again("c.onnx", *options)

    def calibrate_again(self, out, *options):
        self.fcp("calibrate", "model.onnx", "--data", "cal.csv", "--target", "kind", "--score",
                 "lac", "--out", out, *options)

    def answers(self, model):
        text = self.fcp("predict", model, "--data", "test.csv", "--probabilities")
        return list(csv.DictReader(text.splitlines()))

    def refused(self, *arguments):
        done = self.run_program(*arguments)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_pairs_and_figures(self):
        for classes in SIZES:
            names = SIZES[classes]
            self.calibrated(classes, "--probabilities", "venn-abers")
            for row in self.answers("c.onnx"):
                pairs = [(float(row["p0_" + name]), float(row["p1_" + name])) for name in names]
                merged = [high / (1 - low + high) for low, high in pairs]
                for name, one in zip(names, merged):
                    self.assertAlmostEqual(float(row["p_" + name]), one / sum(merged), places=5)
                self.assertTrue(all(0 <= low < high <= 1 for low, high in pairs), pairs)
            shown = json.loads(self.fcp("show", "c.onnx", "--json"))
            self.assertEqual(shown["probabilities"]["method"], "venn-abers")
            self.assertEqual(len(shown["probabilities"]["steps"]), 1 if classes == 2 else 3)
            self.assertEqual(shown["settings"]["probabilities"], "venn-abers")
            self.assertIn("venn-abers, ", self.fcp("show", "c.onnx"))
            found = json.loads(self.fcp("evaluate", "c.onnx", "--data", "test.csv", "--target",
                                        "kind", "--json"))["probabilities"]
            self.assertEqual(found["of"], "1" if classes == 2 else "answer")
            self.assertEqual(found["rows"], 300)
            self.assertEqual(sum(one["rows"] for one in found["reliability"]), 300)
            self.assertLess(found["log_loss"], math.log(classes))
            self.assertLess(found["ece"], 0.15)
            self.assertGreater(found["mean_gap"], 0)
            self.assertIn("brier", found["softmax"])
            told = json.loads(self.fcp("export", "c.onnx", "--out", "e.onnx", "--json"))
            self.assertEqual(told["probabilities"], ["probability", "p0", "p1"])
            self.assertIn("p1 - p0", self.fcp("evaluate", "c.onnx", "--data", "test.csv",
                                              "--target", "kind"))

    def test_without_calibration_they_are_the_networks_own(self):
        self.calibrated(3)
        row = self.answers("c.onnx")[0]
        self.assertIn("p_1", row)
        self.assertNotIn("p0_1", row)
        found = json.loads(self.fcp("evaluate", "c.onnx", "--data", "test.csv", "--target", "kind",
                                    "--json"))["probabilities"]
        self.assertEqual(found["method"], "softmax")
        self.assertNotIn("softmax", found)

    def test_updates_replace_them_whole(self):
        self.calibrated(2, "--probabilities", "venn-abers")
        self.make_table("new.csv", 200, 9, 2)
        message = self.refused("update", "c.onnx", "--data", "new.csv", "--target", "kind",
                               "--out", "d.onnx")
        self.assertIn("--since: the file keeps of its calibrated probabilities the steps", message)
        with open(self.path("new.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.write("dated.csv", "\n".join([lines[0] + ",day"] + [
            f"{line},{i}" for i, line in enumerate(lines[1:])]) + "\n")
        self.fcp("update", "c.onnx", "--data", "dated.csv", "--target", "kind", "--time", "day",
                 "--since", "50", "--out", "d.onnx")
        self.calibrate_again("all.onnx", "--probabilities", "venn-abers")
        before, after = (json.loads(self.fcp("show", name, "--json"))
                         for name in ("all.onnx", "d.onnx"))
        self.assertEqual(after["rows"], 150)
        self.assertNotEqual(after["probabilities"]["steps"], before["probabilities"]["steps"])

    def test_of_numbers_there_are_none(self):
        self.write("line.csv", "a,y\n" + "".join(f"{i % 17},{i % 5}.5\n" for i in range(60)))
        self.fcp("train", "line.csv", "--target", "y", "--recipe", "paper", "--epochs", "1",
                 "--out", "line.onnx")
        message = self.refused("calibrate", "line.onnx", "--data", "line.csv", "--target", "y",
                               "--allow-training-rows", "--score", "residual", "--probabilities",
                               "venn-abers", "--out", "c.onnx")
        self.assertIn("--probabilities: ", message)

    def test_fit_calibrates_them_on_rows_of_their_own(self):
        self.make_table("rows.csv", 400, 4, 2)
        self.make_table("test.csv", 50, 5, 2)
        fit = ("fit", "rows.csv", "--target", "kind", "--probabilities", "venn-abers", "--members",
               "1", "--epochs", "3", "--no-trees", "--out", "fitted.onnx")
        shown = json.loads(self.fcp(*fit, "--json"))
        self.assertEqual(shown["calibration"], "split")
        for row in self.answers("fitted.onnx"):
            self.assertLess(float(row["p0_0"]), float(row["p1_0"]))
        message = self.refused(*fit, "--calibration", "cross")
        self.assertIn("calibrated probabilities take split", message)

    def test_outliers_without_answers(self):
        self.calibrated(2)
        rng = random.Random(5)
        rows = [(rng.gauss(0, 1.2), rng.gauss(0, 1.2)) for _ in range(60)]
        rows[:10] = [(40 + a, b - 30) for a, b in rows[:10]]
        self.write("new.csv", "id,a,b\n" + "".join(f"r{i},{a:.4f},{b:.4f}\n"
                                                   for i, (a, b) in enumerate(rows)))
        command = ("check", "c.onnx", "--data", "new.csv", "--outliers", "--reference", "cal.csv")
        for score in ("neighbours", "density"):
            found = json.loads(self.fcp(*command, "--fdr", "0.1", "--outlier-score", score,
                                        "--keep", "id", "--out", "o.csv", "--json"))
            self.assertEqual(found["rule"], "benjamini-hochberg")
            self.assertEqual(found["outliers"][:10], list(range(10)))
            self.assertLess(len(found["outliers"]), 20)
            self.assertEqual(found["reference_rows"] + found["calibration_rows"], 500)
            self.assertEqual([one["row"] for one in found["flagged"]], found["outliers"])
            with open(self.path("o.csv"), encoding="utf-8") as file:
                told = list(csv.DictReader(file))
            self.assertEqual([row["id"] for row in told if row["outlier"] == "1"],
                             [f"r{i}" for i in found["outliers"]])
            self.assertTrue(all(0 < float(row["p_value"]) <= 1 for row in told))
        done = self.run_program(*command, "--out", "o.csv")
        self.assertIn("are outliers at a false discovery rate of 0.1", done.stderr)
        self.assertIn("row 0 (from 0): score", done.stderr)

    def test_outliers_of_rows_that_have_moved(self):
        self.calibrated(2)
        with open(self.path("cal.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for name in ("usual", "fresh"):
            self.write(f"{name}.csv", "\n".join([lines[0] + ",w"] + [
                f"{line},{1 + i % 3}" for i, line in enumerate(lines[1:])]) + "\n")
        found = json.loads(self.fcp("check", "c.onnx", "--data", "fresh.csv", "--outliers",
                                    "--reference", "usual.csv", "--weights", "w", "--out", "o.csv",
                                    "--json"))
        self.assertEqual(found["rule"], "benjamini-yekutieli")

    def test_what_contradicts_is_refused(self):
        self.calibrated(2)
        labelled = ("check", "c.onnx", "--data", "test.csv", "--target", "kind")
        bare = ("check", "c.onnx", "--data", "test.csv")
        for arguments, message in (
                ((*labelled, "--outliers", "--neighbours", "5"), "apply only to --reference"),
                ((*labelled, "--outliers", "--seed", "5"), "--seed: applies only to --reference"),
                ((*labelled, "--keep", "a"), "--keep: applies only to --reference"),
                ((*bare, "--reference", "cal.csv"), "--reference: applies only to --outliers"),
                ((*labelled, "--outliers", "--reference", "cal.csv"), "--target: rows with answers"),
                ((*bare, "--outliers", "--reference", "cal.csv", "--alpha", "0.2"),
                 "--alpha: does not apply to --reference"),
                ((*bare, "--outliers", "--reference", "cal.csv", "--reference-weights", "w"),
                 "--reference-weights: applies only to --weights"),
                ((*bare, "--outliers", "--reference", "cal.csv", "--weights", "w.npy"),
                 "give --reference-weights too")):
            self.assertIn(message, self.refused(*arguments))


if __name__ == "__main__":
    program.main()
