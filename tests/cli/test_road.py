"""The road from a table to intervals, verb by verb, and that the verbs agree with each other."""
import json
import os
import re
import statistics
import struct
import unittest

import program
from program import TARGET, read_csv, read_npy, write_npy


def single(value):
    """The nearest float32, in which files hold numbers."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Road(program.Case):
    def evaluate(self, model, *arguments, data="test.csv"):
        return json.loads(self.fcp("evaluate", model, "--data", self.made(data), "--target", TARGET,
                                   "--json", *arguments))

    def check_rows(self, model, *arguments):
        text = self.fcp("check", model, "--data", self.made("test.csv"), "--target", TARGET,
                        *arguments)
        header, rows = program.parse_csv(text)
        self.assertEqual(header, ["score", "p_value", "in"])
        return rows

    def test_demo_leaves_every_file(self):
        self.assertEqual(sorted(os.listdir(self.demo)),
                         ["calibrated.onnx", "calibration.csv", "deliveries.csv", "intervals.csv",
                          "model.onnx", "new.csv", "report.html", "test.csv", "train.csv"])

    def test_demo_shows_commands_that_repeat_it(self):
        """The printed commands, typed, give the demo's intervals byte for byte and its numbers."""
        shown = self.fcp("demo", "--out", "demo")
        intervals = self.bytes_of("demo/intervals.csv")
        commands = [line[len("$ fcp "):].split() for line in shown.splitlines()
                    if line.startswith("$ fcp ")]
        self.assertEqual([command[0] for command in commands], ["fit", "predict"])
        os.remove(self.path("demo/model.onnx"))
        printed = [self.fcp(*command) for command in commands]
        self.assertEqual(self.bytes_of("demo/intervals.csv"), intervals)
        for line in printed[0].strip().splitlines():
            advice = line.startswith("watch: ")  # a command, with the options as they were typed
            self.assertIn(line.split("fcp fit")[0] if advice else line, shown)

    def test_same_seed_same_bytes(self):
        for seed, name in ((3, "a"), (3, "b"), (4, "c")):
            self.fcp("train", self.made("train.csv"), "--target", TARGET, "--epochs", 2, "--seed",
                     seed, "--out", name + ".onnx")
            self.fcp("calibrate", name + ".onnx", "--data", self.made("calibration.csv"), "--target",
                     TARGET, "--score", "nested", "--floor", 1, "--seed", seed, "--out",
                     name + "-calibrated.onnx")
        self.assertEqual(self.bytes_of("a.onnx"), self.bytes_of("b.onnx"))
        self.assertNotEqual(self.bytes_of("a.onnx"), self.bytes_of("c.onnx"))
        # Provenance names the network's file; all else must be the same.
        self.assertEqual(self.bytes_of("a-calibrated.onnx").replace(b"a.onnx", b"b.onnx"),
                         self.bytes_of("b-calibrated.onnx"))

    def test_train_learns(self):
        result = json.loads(self.fcp("train", self.made("train.csv"), "--target", TARGET, "--epochs",
                                     20, "--layers", "16,16", "--out", "m.onnx", "--json"))
        losses = result["networks"][0]["holdout_loss"]
        self.assertLess(min(losses), losses[0] / 2)
        self.assertEqual(result["out"], "m.onnx")

    def test_train_says_how_far_off_it_is(self):
        arguments = ("train", self.made("train.csv"), "--target", TARGET, "--epochs", 3, "--layers",
                     "8,8", "--members", 2, "--out", "m.onnx")
        text = self.fcp(*arguments, "--curve")
        self.assertIn("RMSE", text)
        self.assertIn("2 networks: m.onnx", text)
        holdout = json.loads(self.fcp(*arguments, "--json"))["holdout"]
        self.assertGreater(holdout["rmse"][0], 0)
        self.assertGreaterEqual(holdout["rmse"][0], holdout["mae"][0])

    def test_train_by_the_papers_recipe(self):
        arguments = ("train", self.made("train.csv"), "--target", TARGET, "--out", "m.onnx")
        self.fcp(*arguments, "--recipe", "paper", "--epochs", 1, "--weight-decay", 0)
        self.assertEqual(json.loads(self.fcp("inspect", "m.onnx", "--json"))["layers"], 4)

    def test_train_reads_missing_values(self):
        rows = ["a,b,y"] + [f"{i % 7},{i if i % 3 else ''},{i % 7 + (0 if i % 3 else 50)}"
                            for i in range(200)]
        self.write("gaps.csv", "\n".join(rows) + "\n")
        self.fcp("train", "gaps.csv", "--target", "y", "--members", 2, "--layers", "16,8", "--epochs",
                 60, "--out", "m.onnx")
        self.fcp("run", "m.onnx", "--data", "gaps.csv", "--out", "p.npy")
        _, found = read_npy(self.path("p.npy"))
        truth = [float(row.split(",")[2]) for row in rows[1:]]
        self.assertLess(statistics.mean(abs(a - b) for a, b in zip(found, truth, strict=True)), 10)

    def test_train_takes_options_before_the_data(self):
        self.fcp("train", "--target", TARGET, "--epochs", 1, "--layers", "8,8", "--members", 1,
                 "--no-heads", self.made("train.csv"), "--out", "m.onnx")
        report = json.loads(self.fcp("inspect", "m.onnx", "--json"))
        self.assertEqual(report["layers"], 3)

    def test_inspect(self):
        report = json.loads(self.fcp("inspect", self.made("model.onnx"), "--json"))
        self.assertEqual(report["layers"], 4)
        self.assertEqual(report["inputs"], [{"name": "input", "shape": [None, 8]}])
        self.assertEqual(report["parameters"],
                         sum(node["parameters"] for node in report["nodes"]))
        cuts = {cut["tensor"]: cut for cut in report["cuts"]}
        self.assertEqual(cuts["hidden2"]["size"], 64)
        self.assertEqual(cuts["hidden2"]["head_layers"], 2)
        text = self.fcp("inspect", self.made("model.onnx"))
        for name in ("layer1/Gemm", "hidden2", "Valid cuts"):
            self.assertIn(name, text)

    def test_run_parts_make_the_whole(self):
        model, data = self.made("model.onnx"), self.made("test.csv")
        self.fcp("run", model, "--data", data, "--out", "whole.csv")
        header, whole = read_csv(self.path("whole.csv"))
        self.assertEqual(header, ["prediction"])
        self.assertEqual(len(whole), len(self.truth()))
        write_npy(self.path("x.npy"), self.features())
        self.fcp("run", model, "--data", "x.npy", "--out", "whole.npy")
        shape, numbers = read_npy(self.path("whole.npy"))
        self.assertEqual(shape, (len(whole), 1))
        self.assert_close(whole, [[number] for number in numbers])
        for kind in ("npy", "csv"):
            with self.subTest(kind):
                self.fcp("run", model, "--data", data, "--to", "hidden2", "--out", "f." + kind)
                self.fcp("run", model, "--from", "hidden2", "--data", "f." + kind, "--out", "y.csv")
                self.assert_close(read_csv(self.path("y.csv"))[1], whole)
        self.assertEqual(read_npy(self.path("f.npy"))[0], (len(whole), 64))

    def test_run_takes_names_and_any_order(self):
        self.fcp("run", "--data", "input=" + self.made("test.csv"), self.made("model.onnx"), "--out",
                 "prediction=y.csv")
        self.assertEqual(len(read_csv(self.path("y.csv"))[1]), len(self.truth()))

    def test_predictions_are_those_of_the_network(self):
        self.fcp("run", self.made("model.onnx"), "--data", self.made("test.csv"), "--out", "y.csv")
        rows = self.predict(self.made("calibrated.onnx"))
        self.assert_close([[row[0]] for row in rows], read_csv(self.path("y.csv"))[1])
        for prediction, lower, upper in rows:
            self.assertTrue(lower <= prediction <= upper)

    def check_score(self, *arguments, law=True):
        """Calibrates, predicts, checks and evaluates: all must tell the same story."""
        self.calibrate("c.onnx", *arguments)
        intervals = self.predict("c.onnx", "--alpha", "0.1")
        truth = self.truth()
        inside = [lower <= y <= upper for (_, lower, upper), y in zip(intervals, truth, strict=True)]
        result = self.evaluate("c.onnx", "--alpha", "0.1")
        self.assertEqual(result["rows"], len(truth))
        self.assertEqual(result["covered"], sum(inside))
        self.assertAlmostEqual(result["coverage"], sum(inside) / len(truth), 12)
        length = statistics.fmean(upper - lower for _, lower, upper in intervals)
        self.assertAlmostEqual(result["length"] / length, 1, 5)
        self.assertEqual(result["guaranteed"], law)
        checked = self.check_rows("c.onnx", "--alpha", "0.1")
        if law:
            self.assertEqual([row[2] == 1 for row in checked], inside)
            # n = 2400 or 1920, 1200 test rows: six standard deviations of the coverage.
            self.assertGreater(result["coverage"], 0.83)
            self.assertLess(result["coverage"], 0.97)
            self.assertNotIn("detection_coverage", result)
        else:
            self.assertAlmostEqual(result["detection_coverage"],
                                   sum(row[2] for row in checked) / len(checked), 12)
        for score, p_value, is_in in checked:
            self.assertEqual(is_in == 1, p_value > 0.1, (score, p_value))
            self.assertEqual(is_in == 1, score <= single(result["radius"]), score)
        return result

    def test_residual(self):
        result = self.check_score("--score", "residual")
        self.assertAlmostEqual(result["length"], 2 * result["radius"], 4)

    def test_nested(self):
        result = self.check_score()
        self.assertEqual(result["method"], "nested")
        self.assertEqual(result["calibration_rows"], 2400)
        self.assertEqual(result["others"][0]["method"], "residual")

    def test_nested_with_floor_leaves_rows_out(self):
        self.assertEqual(self.check_score("--floor", "1")["calibration_rows"], 1920)

    def test_linearized(self):
        for norm in ("inf", "2", "1"):
            with self.subTest(norm):
                self.check_score("--score", "linearized", "--norm", norm)

    def test_nested_norms_and_bounds(self):
        for arguments in (("--norm", "2"), ("--norm", "1", "--bound", "crown-ibp"), ("--cut", "-1"),
                          ("--cut", "hidden1")):
            with self.subTest(arguments):
                self.check_score(*arguments)

    def test_surrogate_with_steps(self):
        result = self.check_score("--score", "surrogate", "--steps", "5", "--rate", "0.001",
                                  law=False)
        self.assertEqual(result["calibration_rows"], 2400)
        self.assertGreater(result["detection_coverage"], 0.83)

    def test_surrogate_chooses_steps_on_rows_it_drops(self):
        result = self.check_score("--score", "surrogate", law=False)
        self.assertEqual(result["calibration_rows"], 1920)

    def test_paper_keeps_the_rows(self):
        self.calibrate("c.onnx", "--score", "surrogate", "--paper")
        result = self.evaluate("c.onnx")
        self.assertEqual(result["calibration_rows"], 2400)
        self.assertIn("detection_coverage", result)

    def test_cut_by_name_and_by_number_are_the_same(self):
        by_name = self.fcp("calibrate", self.made("model.onnx"), "--data",
                           self.made("calibration.csv"), "--target", TARGET, "--out", "n.onnx",
                           "--score", "nested", "--cut", "hidden3", "--json")
        by_number = self.fcp("calibrate", self.made("model.onnx"), "--data",
                             self.made("calibration.csv"), "--target", TARGET, "--out", "n.onnx",
                             "--score", "nested", "--cut", "-1", "--json")
        self.assertEqual(json.loads(by_name), json.loads(by_number))
        self.assertEqual(json.loads(by_name)["cut"], "hidden3")

    def test_cut_auto_says_what_it_tried(self):
        done = self.run_program("calibrate", self.made("model.onnx"), "--data",
                                self.made("calibration.csv"), "--target", TARGET, "--cut", "auto",
                                "--score", "linearized", "--out", "c.onnx", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["rows"], 1920)
        chosen = [line for line in done.stderr.splitlines() if line.endswith("chosen")]
        self.assertEqual(len(chosen), 1)
        self.assertEqual(chosen[0].split()[0], result["cut"])

    def test_levels_are_nested(self):
        model = self.made("calibrated.onnx")
        last = None
        for alpha in ("0.5", "0.2", "0.1", "0.05", "0.01"):
            rows = self.predict(model, "--alpha", alpha)
            if last:
                for inner, outer in zip(last, rows, strict=True):
                    self.assertTrue(outer[1] <= inner[1] <= inner[2] <= outer[2])
                self.assertGreater(sum(row[2] - row[1] for row in rows),
                                   sum(row[2] - row[1] for row in last))
            last = rows

    def test_npy_holds_what_the_csv_holds(self):
        model = self.made("calibrated.onnx")
        rows = self.predict(model)
        write_npy(self.path("x.npy"), self.features())
        self.fcp("predict", model, "--data", "x.npy", "--out", "i.npy")
        shape, numbers = read_npy(self.path("i.npy"))
        self.assertEqual(shape, (len(rows), 1, 3))
        self.assertEqual([[single(value) for value in row] for row in rows],
                         [list(numbers[i:i + 3]) for i in range(0, len(numbers), 3)])

    def test_npy_road_is_the_csv_road(self):
        write_npy(self.path("x.npy"), self.features("calibration.csv"))
        write_npy(self.path("y.npy"), self.truth("calibration.csv"))
        from_npy = json.loads(self.fcp("calibrate", self.made("model.onnx"), "--data", "x.npy",
                                       "--target", "y.npy", "--score", "nested", "--out", "n.onnx",
                                       "--json"))
        from_csv = json.loads(self.calibrate("c.onnx", "--json"))
        self.assertEqual(from_npy["radius"], from_csv["radius"])

    def test_several_outputs(self):
        self.fcp("train", self.made("train.csv"), "--target", "minutes,distance_km", "--epochs", 2,
                 "--out", "two.onnx")
        self.fcp("calibrate", "two.onnx", "--data", self.made("calibration.csv"), "--target",
                 "minutes,distance_km", "--out", "two-c.onnx")
        text = self.fcp("predict", "two-c.onnx", "--data", self.made("test.csv"))
        header, rows = program.parse_csv(text)
        self.assertEqual(header, ["prediction_minutes", "lower_minutes", "upper_minutes",
                                  "prediction_distance_km", "lower_distance_km",
                                  "upper_distance_km"])
        names, truth = read_csv(self.made("test.csv"))
        at = (names.index("minutes"), names.index("distance_km"))
        inside = sum(all(row[3 * k + 1] <= y[at[k]] <= row[3 * k + 2] for k in range(2))
                     for row, y in zip(rows, truth, strict=True))
        result = json.loads(self.fcp("evaluate", "two-c.onnx", "--data", self.made("test.csv"),
                                     "--target", "minutes,distance_km", "--json"))
        self.assertEqual(result["covered"], inside)
        self.assertEqual(result["outputs"], 2)
        self.fcp("predict", "two-c.onnx", "--data", self.made("test.csv"), "--out", "two.npy")
        self.assertEqual(read_npy(self.path("two.npy"))[0], (len(rows), 2, 3))

    def test_joint(self):
        """A radius for each target, and an ellipsoid for all: check, predict and evaluate agree."""
        targets = "minutes,distance_km"
        rows = ("--data", self.made("test.csv"), "--target", targets)
        self.fcp("train", self.made("train.csv"), "--target", targets, "--epochs", 2, "--members",
                 1, "--out", "two.onnx")
        inside = {}
        for joint in ("each", "volume"):
            self.fcp("calibrate", "two.onnx", "--data", self.made("calibration.csv"), "--target",
                     targets, "--joint", joint, "--out", joint + ".onnx")
            header, inside[joint] = program.parse_csv(self.fcp("check", joint + ".onnx", *rows))
            result = json.loads(self.fcp("evaluate", joint + ".onnx", *rows, "--json"))
            self.assertEqual(len(result["by_output"]), 2)
            self.assertGreater(result["volume_per_dimension"], 0)
            told = json.loads(self.fcp("check", joint + ".onnx", *rows, "--json", "--out", "c.csv"))
            _, intervals = program.parse_csv(
                self.fcp("predict", joint + ".onnx", "--data", self.made("test.csv")))
            names, truth = read_csv(self.made("test.csv"))
            at = (names.index("minutes"), names.index("distance_km"))
            boxed = [[row[3 * k + 1] <= y[at[k]] <= row[3 * k + 2] for k in range(2)]
                     for row, y in zip(intervals, truth, strict=True)]
            self.fcp("export", joint + ".onnx", "--out", "plain.onnx")
            if joint == "each":
                self.assertEqual(header, [f"{name}_{target}" for target in targets.split(",")
                                          for name in ("score", "p_value", "in")])
                own = [[row[2] == 1, row[5] == 1] for row in inside[joint]]
                self.assertEqual(own, boxed)
                self.assertEqual([[row[1] > 0.1, row[4] > 0.1] for row in inside[joint]], own)
                self.assertEqual(told["in_by_target"], [sum(column) for column in zip(*own)])
                self.assertEqual(told["in"], sum(map(all, own)))
                said = self.run_program("check", "each.onnx", *rows, "--out", "c.csv").stderr
                self.assertIn(f"  minutes: {told['in_by_target'][0]} rows\n", said)
                self.assertAlmostEqual(result["joint_coverage"], told["in"] / told["rows"])
                for k, one in enumerate(result["by_output"]):
                    self.assertAlmostEqual(one["coverage"], told["in_by_target"][k] / told["rows"])
            else:
                self.assertEqual(header, ["score", "p_value", "in"])
                member = [row[2] == 1 for row in inside[joint]]
                self.assertEqual(told["in"], sum(member))
                self.assertEqual(result["covered"], sum(member))
                for one, box in zip(member, boxed, strict=True):  # the box holds the ellipsoid
                    self.assertTrue(all(box) or not one)
                self.assertLess(sum(member), sum(map(all, boxed)))
        for arguments in (("monitor", "each.onnx", *rows),
                          ("check", "each.onnx", *rows, "--outliers")):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn("calibrate with joint all or volume", done.stderr)

    def test_threads_and_batches_do_not_matter(self):
        model = self.made("calibrated.onnx")
        rows = self.predict(model)
        self.assert_close(self.predict(model, "--batch", "7"), rows)
        self.assert_close(self.predict(model, threads=2), rows)
        one = json.loads(self.calibrate("one.onnx", "--json"))
        # Matrix products of few rows round differently; a score is a small difference of their
        # results and feels it more than an end of an interval does.
        for name, arguments, tolerance in (("threads", ("--threads", "2"), 1e-6),
                                           ("batch", ("--batch", "7"), 1e-5)):
            with self.subTest(name):
                other = json.loads(self.fcp(
                    "calibrate", self.made("model.onnx"), "--data", self.made("calibration.csv"),
                    "--target", TARGET, "--score", "nested", "--out", "two.onnx", "--json", *arguments,
                    threads=None if name == "threads" else 1))
                for alpha, radius in one["radius"].items():
                    self.assertLessEqual(abs(other["radius"][alpha] - radius), tolerance * radius)

    def test_evaluate_by_group(self):
        result = self.evaluate(self.made("calibrated.onnx"), "--group", "weekday")
        rows = self.predict(self.made("calibrated.onnx"))
        header, table = read_csv(self.made("test.csv"))
        for group in result["groups"]:
            mine = [low <= line[header.index(TARGET)] <= high
                    for line, (_, low, high) in zip(table, rows, strict=True)
                    if line[header.index("weekday")] == float(group["name"])]
            self.assertEqual((group["rows"], group["covered"]), (len(mine), sum(mine)))
        self.assertEqual(sum(group["rows"] for group in result["groups"]), len(table))

    def test_report_stands_alone(self):
        self.fcp("evaluate", self.made("calibrated.onnx"), "--data", self.made("test.csv"),
                 "--target", TARGET, "--report", "report.html")
        page = self.bytes_of("report.html").decode()
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        self.assertIn('data-chart="sample"', page)
        self.assertIn("calibration.csv", page)  # provenance
        loaded = re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)[^"']*|@import|url\((?!#|data:)""",
                            page)
        self.assertEqual(loaded, [])

    def test_reproduce(self):
        cells = json.loads(self.fcp("reproduce", "regression", "--sets", "synthetic", "--seeds", 1,
                                    "--methods", "residual,linearized", "--json"))
        self.assertEqual([cell["method"] for cell in cells], ["residual", "linearized"])
        for cell in cells:
            self.assertGreater(cell["coverage"], 0.83)
            self.assertLess(cell["coverage"], 0.97)


if __name__ == "__main__":
    program.main()
