"""One-sided bounds, a known support, predictive distributions and outliers, as a user asks for them."""
import csv
import json

import program
from program import TARGET


class Distribution(program.Case):
    def refused(self, *arguments):
        """The one line of a command that must end with an error."""
        done = self.run_program(*arguments)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def answers(self, *options):
        text = self.fcp("predict", "c.onnx", "--data", self.made("test.csv"), *options)
        return list(csv.DictReader(text.splitlines()))

    def evaluate(self):
        return json.loads(self.fcp("evaluate", "c.onnx", "--data", self.made("test.csv"),
                                   "--target", TARGET, "--json"))

    def test_an_upper_bound_is_shorter_than_an_interval(self):
        self.calibrate("c.onnx", "--score", "residual")
        both = self.evaluate()
        self.calibrate("c.onnx", "--score", "residual", "--side", "upper")
        upper = self.evaluate()
        self.assertEqual(upper["side"], "upper")
        self.assertNotIn("side", both)
        self.assertEqual(upper["infinite_share"], 0)
        self.assertLess(upper["length"], both["length"] / 2)
        self.assertEqual(upper["verdict"], "as expected")
        rows = self.answers()
        self.assertEqual({row["lower"] for row in rows}, {"-inf"})
        shown = json.loads(self.fcp("show", "c.onnx", "--json"))
        self.assertEqual(shown["settings"]["side"], "upper")

    def test_a_support_cuts_intervals_and_refuses_rows_outside(self):
        self.calibrate("c.onnx", "--score", "residual", "--support", "0:")
        self.assertTrue(all(float(row["lower"]) >= 0 for row in self.answers("--alpha", "0.001")))
        message = self.refused("calibrate", self.made("model.onnx"), "--data",
                             self.made("calibration.csv"), "--target", TARGET, "--out", "d.onnx",
                             "--score", "residual", "--support", "1e6:")
        self.assertIn("--support: ", message)
        self.assertIn("expected one within 1e6:", message)

    def test_quantiles_probabilities_and_a_grid(self):
        self.calibrate("c.onnx", "--score", "residual", "--side", "upper")
        rows = self.answers("--quantiles", "0.05,0.5,0.95", "--above", "30", "--between", "10:30",
                            "--distribution", "grid.npy", "--point", "median")
        shape, numbers = program.read_npy(self.path("grid.npy"))
        self.assertEqual(shape, (len(rows), 99))
        for i, row in enumerate(rows):
            line = numbers[99 * i:99 * (i + 1)]
            self.assertEqual(sorted(line), list(line))
            number = {name: float(cell) for name, cell in row.items()}
            self.assertEqual(number["quantile_0.5"], number["prediction"])
            self.assertAlmostEqual(number["quantile_0.05"], line[4], delta=1e-5 * abs(line[4]))
            self.assertAlmostEqual(number["quantile_0.95"], line[94], delta=1e-5 * abs(line[94]))
            self.assertLessEqual(number["above_30_lower"], number["above_30_upper"])
            share = sum(value > 30 for value in line) / 99  # as the grid says, to a step of it
            self.assertLess(number["above_30_lower"], share + 0.011)
            self.assertGreater(number["above_30_upper"], share - 0.011)
            self.assertGreater(1.001 - number["above_30_lower"], number["between_10:30_lower"])

    def test_thresholds_are_a_column(self):
        self.calibrate("c.onnx", "--score", "residual", "--side", "upper")
        header, rows = program.read_csv(self.made("test.csv"))
        stock = [(20, 30, 45)[i % 3] for i in range(len(rows))]
        lines = [",".join([*header, "stock"])]
        lines += [",".join(map(str, [*row, number])) for row, number in zip(rows, stock)]
        self.write("shelves.csv", "\n".join(lines) + "\n")
        text = self.fcp("predict", "c.onnx", "--data", "shelves.csv", "--above", "stock,20,30,45",
                        "--below", "stock", "--batch", "64")
        for row, number in zip(csv.DictReader(text.splitlines()), stock):
            for end, other in (("lower", "upper"), ("upper", "lower")):
                self.assertEqual(row[f"above_stock_{end}"], row[f"above_{number}_{end}"])
                self.assertAlmostEqual(float(row[f"below_stock_{end}"]),
                                       1 - float(row[f"above_{number}_{other}"]), places=6)
        self.write("shelves.csv", "\n".join(lines[:2] + [lines[2].rsplit(",", 1)[0] + ","]) + "\n")
        message = self.refused("predict", "c.onnx", "--data", "shelves.csv", "--above", "stock")
        self.assertIn("row 1 (from 0), column 'stock': found '', expected a finite number", message)

    def test_what_has_no_distribution_says_so(self):
        self.calibrate("c.onnx", "--score", "residual")
        message = self.refused("predict", "c.onnx", "--data", self.made("test.csv"), "--above", "30")
        self.assertIn("calibrate with side upper", message)
        self.calibrate("c.onnx", "--score", "residual", "--side", "upper")
        message = self.refused("predict", "c.onnx", "--data", self.made("test.csv"), "--above", "a")
        self.assertIn("--above: found a, expected a number", message)

    def test_outliers_are_told_with_few_false_ones(self):
        self.calibrate("c.onnx", "--score", "residual")
        header, rows = program.read_csv(self.made("test.csv"))
        place = header.index(TARGET)
        for row in rows[:20]:
            row[place] += 1000
        lines = [",".join(header)] + [",".join(map(str, row)) for row in rows]
        self.write("odd.csv", "\n".join(lines) + "\n")
        command = ("check", "c.onnx", "--data", "odd.csv", "--target", TARGET)
        found = json.loads(self.fcp(*command, "--outliers", "--fdr", "0.1", "--out", "o.csv",
                                    "--json"))
        self.assertEqual(found["fdr"], 0.1)
        self.assertEqual(found["outliers"][:20], list(range(20)))
        self.assertLess(len(found["outliers"]), 40)
        told = [i for i, row in enumerate(program.read_csv(self.path("o.csv"))[1]) if row[3] == 1]
        self.assertEqual(told, found["outliers"])
        self.assertIn("--fdr: applies only to --outliers", self.refused(*command, "--fdr", "0.1"))
        # p-values of rows that are weighed may depend on each other in any way, which costs some.
        self.calibrate("l.onnx", "--score", "residual", "--calibration", "localized")
        fewer = json.loads(self.fcp("check", "l.onnx", *command[2:], "--outliers", "--fdr", "0.2",
                                    "--out", "o.csv", "--json"))
        self.assertEqual((found["rule"], fewer["rule"]),
                         ("benjamini-hochberg", "benjamini-yekutieli"))


if __name__ == "__main__":
    program.main()
