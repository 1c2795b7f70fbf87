"""Quantile scores, and calibrations that give each row a radius of its own: the verbs agree with
each other, and say what they miss."""
import json
import math
import os
import random
import shutil
import subprocess
import tempfile
import unittest

import program
from program import TARGET, read_csv, write_npy

COLUMNS = ["a", "b", "region", "ratio", TARGET]


def make_rows(generator, count, shift=0.0):
    """The spread of the target is far larger in region 1; ratio is the likelihood ratio
    of rows shifted by 1."""
    rows = []
    for i in range(count):
        a, b, region = generator.gauss(shift, 1), generator.gauss(0, 1), i % 2
        noise = generator.gauss(0, 0.5 + 6 * region)
        rows.append([a, b, region, math.exp(a - 0.5), 2 * a + b * b + noise])
    return rows


def write_table(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(COLUMNS) + "\n")
        for row in rows:
            file.write(",".join(f"{value:.6g}" for value in row) + "\n")


class Calibration(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.demo = tempfile.mkdtemp(prefix="fcp-cli-calibration-")
        cls.addClassCleanup(shutil.rmtree, cls.demo, ignore_errors=True)
        generator = random.Random(5)
        for name, count, shift in (("train", 800, 0), ("calibration", 600, 0), ("test", 400, 0),
                                   ("shifted", 300, 1)):
            write_table(os.path.join(cls.demo, name + ".csv"), make_rows(generator, count, shift))
        for name, options in (("model", ()), ("quantiles", ("--loss", "quantile"))):
            subprocess.run([program.PROGRAM, "train", os.path.join(cls.demo, "train.csv"),
                            "--target", TARGET, "--drop", "region,ratio", "--layers", "16,16",
                            "--epochs", "10", "--threads", "1", "--quiet", "--out",
                            os.path.join(cls.demo, name + ".onnx"), *options],
                           env=program.ENVIRONMENT, check=True, stdout=subprocess.DEVNULL,
                           timeout=program.LONGEST)

    def run_calibrate(self, *arguments, model="model.onnx"):
        return self.run_program("calibrate", self.made(model), "--data",
                                self.made("calibration.csv"), "--target", TARGET, "--out", "c.onnx",
                                *program.scored(*arguments))

    def road(self, *arguments, facts=(), model="model.onnx", data="test.csv", law=True):
        """Calibrates, predicts, checks and evaluates: all must tell the same story."""
        done = self.run_calibrate(*arguments, model=model)
        self.assertEqual(done.returncode, 0, done.stderr)
        intervals = self.predict("c.onnx", *facts, data=data)
        truth = self.truth(data)
        inside = [low <= y <= high for (_, low, high), y in zip(intervals, truth, strict=True)]
        where = ("--data", self.made(data), "--target", TARGET)
        result = json.loads(self.fcp("evaluate", "c.onnx", *where, "--json", *facts))
        self.assertEqual(result["covered"], sum(inside))
        header, checked = program.parse_csv(self.fcp("check", "c.onnx", *where, *facts))
        self.assertEqual(header[-2:], ["p_value", "in"])
        if law:
            self.assertEqual([row[-1] == 1 for row in checked], inside)
            self.assertEqual([row[-2] > 0.1 for row in checked], inside)
            # 480 rows or more calibrate, 400 test: more than five deviations of the coverage.
            self.assertGreater(result["coverage"], 0.78)
            self.assertLess(result["coverage"], 0.995)
        self.assertEqual(result["guaranteed"], law)
        return result, intervals, done.stderr

    def test_cqr_and_feature_cqr(self):
        for score in ("cqr", "feature_cqr"):
            for arguments in ((), ("--asymmetric",)):
                with self.subTest((score, arguments)):
                    result, intervals, _ = self.road("--score", score, *arguments,
                                                     model="quantiles.onnx")
                    self.assertEqual(result["method"], score)
                    self.assertEqual([other["method"] for other in result.get("others", [])],
                                     ["cqr"] if score == "feature_cqr" else [])
                    self.assertGreater(len({round(high - low, 3) for _, low, high in intervals}), 50)

    def test_feature_cqr_of_the_paper(self):
        result, _, _ = self.road("--score", "feature_cqr", "--paper", "--steps", "3",
                                 model="quantiles.onnx", law=False)
        self.assertIn("detection_coverage", result)
        self.assertEqual(result["calibration_rows"], 600)

    def calibrate_by_default(self, data, *arguments):
        """What `calibrate` says on stderr where no score is named, and on stdout."""
        done = self.run_program("calibrate", self.made("model.onnx"), "--data", data, "--target",
                                TARGET, "--out", "c.onnx", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr, json.loads(done.stdout)

    def test_the_score_is_chosen_where_none_is_named(self):
        told, result = self.calibrate_by_default(self.made("calibration.csv"))
        lines = [line.split() for line in told.splitlines()]
        tried = {line[0]: line for line in lines if line}
        for score in ("residual", "linearized", "spread", "nested", "quantiles", "density"):
            self.assertIn(score, tried)
        self.assertEqual([line[0] for line in lines if line and line[-1] == "chosen"],
                         [result["score"]])
        self.assertIn("Scores by interval score on 120 selection rows, which are left out of calibration", told)
        self.assertEqual(result["rows"], 480)
        # Its tails are no scale for a rectifier.
        told, _ = self.calibrate_by_default(self.made("calibration.csv"), "--calibration",
                                            "rectified")
        self.assertIn("quantiles ", told)
        self.assertNotIn("density ", told)

    def test_too_few_rows_to_choose_a_score(self):
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            lines = file.readlines()
        self.write("few.csv", "".join(lines[:100]))
        told, result = self.calibrate_by_default("few.csv")
        self.assertEqual(told, "score: 99 rows are too few to choose one; taking residual\n")
        self.assertEqual((result["score"], result["rows"]), ("residual", 99))

    def test_too_few_rows_to_choose_a_cut(self):
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            lines = file.readlines()
        self.write("few.csv", "".join(lines[:61]))  # a slice of 12: halves of 6, too few for 90 %
        told, result = self.calibrate_by_default("few.csv", "--score", "nested", "--cut", "auto")
        self.assertEqual(told, "cut: 60 rows are too few to choose one; taking "
                         f"{result['cut']}\n")
        self.assertEqual((result["score"], result["rows"]), ("nested", 60))
        _, default = self.calibrate_by_default("few.csv", "--score", "nested")
        self.assertEqual(result["cut"], default["cut"])

    def test_conditional_coverage_is_told(self):
        self.assertEqual(self.run_calibrate("--score", "residual").returncode, 0)
        self.fcp("calibrate", self.made("model.onnx"), "--data", self.made("calibration.csv"),
                 "--target", TARGET, "--score", "linearized", "--out", "other.onnx")
        where = ("--data", self.made("test.csv"), "--target", TARGET)
        found = json.loads(self.fcp("evaluate", "c.onnx", *where, "--json", "--report", "r.html",
                                    "--refit", "c.onnx,other.onnx"))["conditional"]
        self.assertEqual(list(found), ["rows", "worst_slab", "excess_risk", "excess_risk_error",
                                       "coverage_gap", "squared_error", "squared_error_by_chance",
                                       "parts", "length_miss_correlation", "refits", "stability"])
        self.assertEqual(sum(part["rows"] for part in found["parts"]), 400)
        self.assertEqual((found["rows"], found["refits"]), (400, 2))
        # Of the three pairs one is of equal intervals.
        self.assertTrue(1 / 3 < found["stability"] < 1, found)
        self.assertEqual(found["length_miss_correlation"], 0)  # all lengths are the same
        text = self.fcp("evaluate", "c.onnx", *where)
        for line in ("worst slab", "excess risk", "coverage gap", "squared error", "length and miss"):
            self.assertIn("\n" + line, text)
        self.assertNotIn("stability", text)
        page = self.bytes_of("r.html").decode()
        for words in ("How even coverage is", "Cauchois", "Jaccard"):
            self.assertIn(words, page)
        done = self.run_program("evaluate", "c.onnx", *where, "--refit", "none.onnx")
        self.assertEqual((done.returncode, done.stderr), (1, "fcp: none.onnx: no such file\n"))

    def test_grouped(self):
        result, intervals, _ = self.road("--calibration", "grouped", "--group", "region", "--score",
                                         "residual")
        lengths = {}
        header, rows = read_csv(self.made("test.csv"))
        for row, (_, low, high) in zip(rows, intervals, strict=True):
            lengths.setdefault(row[header.index("region")], []).append(high - low)
        for region in (0, 1):  # one radius a region, and a longer one where the spread is
            self.assertAlmostEqual(min(lengths[region]), max(lengths[region]), 4)
        self.assertGreater(lengths[1][0], 1.5 * lengths[0][0])
        for group in result["groups"]:
            self.assertEqual(group["rows"], 200)
            self.assertGreater(group["covered"], 150)
        # Coverage may be shown by other groups than those of the calibration.
        write_npy(self.path("halves.npy"), [0] * 100 + [3] * 300)
        other = json.loads(self.fcp("evaluate", "c.onnx", "--data", self.made("test.csv"), "--target",
                                    TARGET, "--json", "--group", "halves.npy"))
        self.assertEqual(other["covered"], result["covered"])
        self.assertEqual([group["rows"] for group in other["groups"]], [100, 300])

    def test_groups_that_calibration_has_not_seen(self):
        rows = make_rows(random.Random(6), 4)
        rows[3][2] = 7
        write_table(self.path("new.csv"), rows)
        self.assertEqual(self.run_calibrate("--calibration", "grouped", "--group", "region")
                         .returncode, 0)
        done = self.run_program("predict", "c.onnx", "--data", "new.csv")
        self.assertIn("has not seen the group '7'", done.stderr)
        intervals = program.parse_csv(done.stdout)[1]
        self.assertEqual(intervals[3][1:], [-math.inf, math.inf])
        self.assertTrue(all(math.isfinite(value) for row in intervals[:3] for value in row))

    def test_groups_from_a_file_and_small_ones(self):
        write_npy(self.path("groups.npy"), [0] * 592 + [5] * 8)
        done = self.run_calibrate("--calibration", "grouped", "--group", "groups.npy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 group has an infinite radius, because alpha 0.1 needs 9 calibration rows "
                      "in each: '5' (8)", done.stderr)
        write_npy(self.path("few.npy"), [0] * 599)
        done = self.run_calibrate("--calibration", "grouped", "--group", "few.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("group: names 599 rows, the data has more", done.stderr)

    def test_localized(self):
        result, intervals, told = self.road("--calibration", "localized", "--score", "residual")
        self.assertEqual(result["calibration_rows"], 480)
        self.assertIn("chosen", told)
        self.assertGreater(len({high - low for _, low, high in intervals}), 20)
        result, intervals, _ = self.road("--calibration", "localized", "--bandwidth", "3")
        self.assertEqual(result["calibration_rows"], 600)
        self.assert_close(self.predict("c.onnx", "--batch", "7"), intervals, 1e-4)

    def test_weighted_by_given_ratios(self):
        _, _, told = self.road("--calibration", "weighted", "--weights", "ratio",
                               facts=("--weights", "ratio"), data="shifted.csv")
        self.assertIn("600 rows are worth", told)
        done = self.run_program("predict", "c.onnx", "--data", self.made("shifted.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--weights", done.stderr)

    def test_weighted_by_an_estimated_ratio(self):
        result, _, told = self.road("--calibration", "weighted", "--shifted",
                                    self.made("shifted.csv"), data="shifted.csv")
        self.assertEqual(result["calibration_rows"], 480)
        self.assertIn("against 300 shifted rows", told)

    def test_the_calibration_rows_are_known_again(self):
        warning = "warning: these are the calibration rows"
        for choices in ((), ("--cut", "auto")):
            self.assertEqual(self.run_calibrate(*choices).returncode, 0)
            for data in ("calibration.csv", "test.csv"):
                with self.subTest(data, choices=choices):
                    done = self.run_program("evaluate", "c.onnx", "--data", self.made(data),
                                            "--target", TARGET, "--report", "r.html")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(warning in done.stderr, data == "calibration.csv")
                    self.assertEqual(b"these are the calibration rows" in self.bytes_of("r.html"),
                                     data == "calibration.csv")

    def test_bad_usage(self):
        for arguments, said in (
                (("--calibration", "grouped"), "--group: is needed by the calibration grouped"),
                (("--calibration", "grouped", "--group", "label"),
                 "--group: 'label' applies only to scores of labels"),
                (("--group", "region"), "--group: applies only to the calibration grouped"),
                (("--bandwidth", "1"), "--bandwidth: applies only to the calibration localized"),
                (("--calibration", "weighted"), "takes one of --weights and --shifted"),
                (("--weights", "ratio"), "takes one of --weights and --shifted"),
                (("--calibration", "weighted", "--weights", "ratio", "--shifted", "x.csv"),
                 "takes one of --weights and --shifted"),
                (("--asymmetric",), "--asymmetric: applies only to residual, cqr, spread, quantiles and "
                 "feature_cqr"),
                (("--low", "y"), "--low: applies only to cqr, feature_cqr and auto"),
                (("--score", "cqr", "--paper"), "--paper: applies only to"),
                (("--score", "cqr", "--floor", "1"), "--floor: applies only to"),
                (("--score", "feature_cqr", "--steps", "3"),
                 "the score is feature_cqr without paper"),
                (("--floor", "-1"), "--floor: found -1, expected a number of at least 0"),
                (("--calibration", "mondrian"), "mondrian")):
            with self.subTest(arguments):
                done = self.run_calibrate(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse(os.path.exists(self.path("c.onnx")))

    def test_bad_data(self):
        for arguments, said in (
                (("--score", "cqr"), "two outputs"),
                (("--calibration", "grouped", "--group", "country"), "country"),
                (("--calibration", "weighted", "--weights", "a"), "not negative")):
            with self.subTest(arguments):
                done = self.run_calibrate(*arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertFalse(os.path.exists(self.path("c.onnx")))

    def test_a_shifted_world_is_told(self):
        """Coverage that is improbable under its law: console, JSON, and exit code 3 when asked."""
        self.assertEqual(self.run_calibrate("--score", "residual").returncode, 0)
        rows = make_rows(random.Random(9), 200)
        for row in rows:
            row[-1] += 15
        write_table(self.path("moved.csv"), rows)

        def evaluate(data, *arguments):
            return self.run_program("evaluate", "c.onnx", "--data", data, "--target", TARGET,
                                    *arguments)

        calm = evaluate(self.made("test.csv"), "--fail-below", "1e-6")
        self.assertEqual(calm.returncode, 0, calm.stderr)
        self.assertNotIn("verdict", calm.stdout)
        moved = evaluate("moved.csv")
        self.assertEqual(moved.returncode, 0, moved.stderr)
        self.assertIn("\nverdict: coverage is too low. With 600 calibration rows", moved.stdout)
        failed = evaluate("moved.csv", "--fail-below", "1e-6")
        self.assertEqual(failed.returncode, 3, failed.stderr)
        self.assertEqual(failed.stdout, moved.stdout)
        found = json.loads(evaluate("moved.csv", "--json").stdout)
        self.assertLess(found["p_coverage"], 1e-6)
        self.assertEqual(found["verdict"], "too low")
        self.assertEqual(evaluate("moved.csv", "--fail-below", "2").returncode, 2)

    def test_without_a_law_of_coverage_nothing_can_fail_below(self):
        self.assertEqual(self.run_calibrate("--calibration", "localized").returncode, 0)
        arguments = ("evaluate", "c.onnx", "--data", self.made("test.csv"), "--target", TARGET)
        done = self.run_program(*arguments, "--fail-below", "0.01")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--fail-below: no law of this coverage is known", done.stderr)
        found = json.loads(self.fcp(*arguments, "--json"))
        self.assertIsNone(found["p_coverage"])
        self.assertEqual(found["verdict"], "unknown")

    def test_a_grouped_report_lists_what_it_guarantees(self):
        self.assertEqual(self.run_calibrate("--calibration", "grouped", "--group",
                                            "region").returncode, 0)
        found = json.loads(self.fcp("evaluate", "c.onnx", "--data", self.made("test.csv"),
                                    "--target", TARGET, "--json", "--report", "r.html"))
        self.assertEqual([(group["name"], group["calibration_rows"])
                          for group in found["guaranteed_groups"]], [("0", 300), ("1", 300)])
        self.assertGreater(found["p_coverage"], 1e-6)
        with open(self.path("r.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("0 (300 calibration rows), 1 (300 calibration rows)", page)
        self.assertIn("holds for each group alone", page)
        self.assertNotIn("or for each group", page)


if __name__ == "__main__":
    program.main()
