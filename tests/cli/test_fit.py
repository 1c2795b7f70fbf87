"""One command from a table to intervals: fcp fit, fcp split, and tables as people have them."""
import csv
import html
import json
import os
import random
import re
import shlex
import subprocess
import unittest

import program

FAST = ("--members", 2, "--epochs", 8, "--calibration", "split")
CROSS = (*FAST[:-1], "cross")


def messy_rows(count, seed=1):
    """Dates, decimal commas, categories, identifiers, missing cells: price in euros by what it is."""
    chance = random.Random(seed)
    rows = []
    for i in range(count):
        size, kind = chance.uniform(20, 200), chance.choice(["flat", "house", "loft"])
        price = 2 * size + {"flat": 0, "house": 80, "loft": 40}[kind] + chance.gauss(0, 5)
        rows.append([i, f"{chance.randint(1, 28):02d}.{chance.randint(1, 12):02d}.2023",
                     kind if chance.random() > 0.05 else "", f"{size:.1f}".replace(".", ","),
                     chance.choice(["True", "False"]), f"{price:.2f}".replace(".", ",")])
    return rows


def text_of(rows, header=("", "sold", "kind", "size", "lift", "price")):
    return "\n".join(";".join(map(str, row)) for row in [header, *rows]) + "\n"


class Fit(program.Case):
    @classmethod
    def setUpClass(cls):  # no demo needed
        pass

    def test_messy_table_to_intervals(self):
        rows = messy_rows(400)
        self.write("homes.csv", "\ufeff" + text_of(rows))
        done = self.run_program("fit", "homes.csv", "--target", "price", "--out", "m.onnx",
                                "--report", "r.html", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        lines = [line for line in lines if not line.startswith("watch: ")]
        self.assertEqual(len(lines), 3, done.stdout)
        self.assertRegex(lines[0], r"^coverage [\d.]+ % on 80 test rows, .*90 %; mean length [\d,.]+; "
                                   r"RMSE [\d,.]+, MAE [\d,.]+, target SD [\d,.]+; lowest coverage: "
                                   r"\w+ third of price, [\d.]+ % of \d+ rows$")
        self.assertIn("m.onnx: trained on 240 rows, calibrated on 80", lines[1])
        self.assertTrue(lines[2].startswith("next: fcp predict m.onnx --data"), lines[2])
        self.assertIn("has no name and counts the rows: left out", done.stderr)
        with open(self.path("r.html"), encoding="utf-8") as file:
            self.assertIn("homes.csv: price", file.read())
        # New rows: an unknown kind, a missing size, and no price at all.
        new = [row[:5] for row in messy_rows(20, seed=2)]
        new[0][2], new[1][3] = "castle", ""
        self.write("new.csv", text_of(new, ("", "sold", "kind", "size", "lift")))
        done = self.run_program("predict", "m.onnx", "--data", "new.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("new.csv: 2 of 20 rows have what no training row had (missing: size in 1; "
                      "unseen: kind in 1)", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 21)

    def test_scale_of_the_target(self):
        """By its logarithm where that is asked for, in the target's unit all the same."""
        self.write("homes.csv", text_of(messy_rows(400)))
        for scale in ("log", "identity"):
            found = json.loads(self.fcp("fit", "homes.csv", "--target", "price", "--out", "m.onnx",
                                        "--target-scale", scale, "--no-trees", "--json", *FAST))
            ensemble = found["evaluation"]["provenance"]["ensemble"]
            logarithm = ", of the target's logarithm" if scale == "log" else ""
            self.assertEqual(ensemble, "2 networks" + logarithm)
            self.assertLess(found["rmse"], found["deviation"])
        rows = messy_rows(400)
        for row in rows[:40]:
            row[5] = "-1,00"
        self.write("debts.csv", text_of(rows))
        done = self.run_program("fit", "debts.csv", "--target", "price", "--out", "m.onnx",
                                "--target-scale", "log", *FAST)
        self.assertEqual(done.returncode, 1)
        self.assertIn("takes one target without negative values", done.stderr)

    def test_errors_are_those_of_the_test_rows(self):
        """The first screen, JSON and the report say one error; that of training has its own name."""
        self.write("homes.csv", text_of(messy_rows(400)))
        found = json.loads(self.fcp("fit", "homes.csv", "--target", "price", "--out", "m.onnx",
                                    "--json", *FAST))
        evaluation = found["evaluation"]
        for name in ("rmse", "mae", "deviation"):
            self.assertEqual(found[name], evaluation[name], name)
        self.assertGreater(found["holdout"]["rmse"], 0)
        self.assertNotEqual(found["holdout"]["rmse"], found["rmse"])
        self.assertEqual(found["calibration_rows"] + found["selection_rows"], 80)
        self.assertEqual(found["calibration_rows"], found["evaluation"]["calibration_rows"])
        self.assertIn(found["verdict"], ("as expected", "too low", "too high"))

    def test_rows_without_a_target_are_left_out_and_predicted(self):
        rows = messy_rows(120)
        for row in rows[:20]:
            row[5] = ""
        self.write("homes.csv", text_of(rows))
        result = json.loads(self.fcp("fit", "homes.csv", "--target", "price", "--out", "m.onnx",
                                     "--json", *FAST))
        self.assertEqual(result["rows_without_target"], 20)
        self.assertEqual(sum(result[name + "_rows"] for name in ("training", "calibration", "test")),
                         100)
        self.assertEqual(len(self.fcp("predict", "m.onnx", "--data", "homes.csv").splitlines()), 121)

    def test_text_is_classes(self):
        chance = random.Random(3)
        lines = ["a,b,kind"]
        for _ in range(300):
            kind = chance.choice(["oak", "elm", "fir"])
            shift = {"oak": 0, "elm": 3, "fir": 6}[kind]
            lines.append(f"{chance.gauss(shift, 1):.3f},{chance.gauss(0, 1):.3f},{kind}")
        self.write("trees.csv", "\n".join(lines) + "\n")
        result = json.loads(self.fcp("fit", "trees.csv", "--target", "kind", "--out", "m.onnx",
                                     "--json", *FAST))
        self.assertEqual(result["task"], "classes")
        sets = list(csv.DictReader(self.fcp("predict", "m.onnx", "--data", "trees.csv").splitlines()))
        self.assertLessEqual({row["prediction"] for row in sets}, {"oak", "elm", "fir"})
        self.fcp("evaluate", "m.onnx", "--data", "trees.csv", "--target", "kind")

    def test_rows_that_repeat_are_no_training_rows(self):
        chance = random.Random(4)
        self.write("ship.csv", "class,sex,age,survived\n" + "".join(
            f"{chance.choice(['1st', '2nd', 'crew'])},{chance.choice('mf')},"
            f"{chance.choice(['child', 'adult'])},{chance.choice(['yes', 'no'])}\n"
            for _ in range(300)))
        done = self.run_program("fit", "ship.csv", "--target", "survived", "--out", "m.onnx", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("trained on are among", done.stderr)

    def test_missing_cells_with_every_calibration(self):
        chance = random.Random(6)
        lines = ["a,b,kind,y"]
        for i in range(400):
            a, b, kind = chance.gauss(0, 1), chance.gauss(0, 1), chance.choice(["oak", "elm"])
            lines.append(f"{a:.3f},{b:.3f},{kind},{a + 0.1 * chance.gauss(0, 1):.3f}")
        for line, column in ((7, 0), (50, 1), (51, 2), (90, 1), (120, 0), (140, 2)):
            cells = lines[line].split(",")
            lines[line] = ",".join("" if i == column else cell for i, cell in enumerate(cells))
        self.write("table.csv", "\n".join(lines) + "\n")
        self.write("new.csv", "\n".join([lines[0], *lines[80:]]) + "\n")
        where = ("--data", "new.csv", "--target", "y")
        for options in (("--calibration", "cross"), ("--calibration", "split")):
            done = self.run_program("fit", "table.csv", "--target", "y", "--out", "m.onnx",
                                    *FAST[:4], *options)
            self.assertEqual(done.returncode, 0, (options, done.stderr))
            self.fcp("evaluate", "m.onnx", *where)
        self.write("train.csv", "\n".join(lines[:81]) + "\n")
        self.fcp("train", "train.csv", "--target", "y", "--out", "t.onnx", *FAST[:4])
        for options in (("--score", "residual", "--calibration", "rectified"),
                        ("--score", "residual", "--calibration", "weighted", "--shifted", "new.csv"),
                        ("--score", "nested", "--calibration", "localized")):
            done = self.run_program("calibrate", "t.onnx", *where, "--out", "c.onnx", *options)
            self.assertEqual(done.returncode, 0, (options, done.stderr))
            self.fcp("evaluate", "c.onnx", *where)

    def test_labels_that_training_never_saw_are_misses(self):
        chance = random.Random(7)
        lines = ["a,b,kind"]
        for i in range(200):
            kind = f"once{i}" if i % 4 == 0 else chance.choice(["oak", "elm"])
            lines.append(f"{chance.gauss({'oak': 0}.get(kind, 3), 1):.3f},{chance.gauss(0, 1):.3f},"
                         f"{kind}")
        self.write("trees.csv", "\n".join(lines) + "\n")
        for calibration, name in ((FAST, "m.onnx"), (CROSS, "x.onnx")):
            done = self.run_program("fit", "trees.csv", "--target", "kind", "--out", name, "--json",
                                    "--seed", 1, *calibration)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("have a class that no training row has", done.stderr)
            report = json.loads(done.stdout)["evaluation"]
            # Every label of the test that comes once is a miss, whatever the sets hold.
            self.assertGreater(report["unknown_rows"], 0)
            self.assertLessEqual(report["coverage"], 1 - report["unknown_rows"] / 40)
        self.write("new.csv", "\n".join([lines[0], *lines[150:]]) + "\n")
        where = ("--data", "new.csv", "--target", "kind")
        found = json.loads(self.fcp("evaluate", "m.onnx", *where, "--json", "--report", "r.html"))
        self.assertGreater(found["unknown_rows"], 0)
        self.assertIn("rows whose label is none of the classes: misses",
                      self.fcp("evaluate", "m.onnx", *where))
        checked = self.run_program("check", "m.onnx", *where)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        done = self.run_program("calibrate", "m.onnx", *where, "--score", "lac", "--out", "c.onnx",
                                "--allow-training-rows")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("are none of the", done.stderr)
        self.write("none.csv", "a,b,kind\n1,2,fig\n2,3,yew\n")
        done = self.run_program("evaluate", "m.onnx", "--data", "none.csv", "--target", "kind")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none of the labels of the 2 test rows is one of the", done.stderr)

    def test_all_problems_in_one_line_and_skip(self):
        rows = messy_rows(100)
        rows[3][3] = "large"
        rows[5][5] = "soon"
        self.write("homes.csv", text_of(rows).replace("\n10;", "\n10;more;"))
        arguments = ("fit", "homes.csv", "--target", "price", "--out", "m.onnx", *FAST)
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()[-1:]), 1)
        message = done.stderr.splitlines()[-1]
        for part in ("3 problems in 3 rows", "line 5, column 'size': expected a number, found 'large'",
                     "line 7, column 'price'", "line 12: found 7 cells, expected 6",
                     "--schema 'size=category'", "--on-error skip"):
            self.assertIn(part, message)
        self.assertEqual(os.listdir(self.folder), ["homes.csv"])
        result = json.loads(self.fcp(*arguments, "--on-error", "skip", "--json"))
        self.assertEqual(result["rows_refused"], 3)
        with open(self.path("homes.refused.csv"), encoding="utf-8") as file:
            refused = list(csv.DictReader(file))
        self.assertEqual([row["fcp_line"] for row in refused], ["5", "7", "12"])

    def test_schema_is_shown_and_overridden(self):
        self.write("homes.csv", text_of(messy_rows(60)))
        shown = self.fcp("fit", "homes.csv", "--target", "price", "--schema", "show")
        for column, kind in (("sold", "date"), ("kind", "category"), ("size", "number:comma"),
                             ("lift", "boolean"), ("price", "number:comma")):
            self.assertRegex(shown, rf"(?m)^{column} +{kind} ")
        columns = json.loads(self.fcp("train", "homes.csv", "--target", "price", "--schema",
                                      "show,kind=drop", "--json"))["columns"]
        self.assertFalse(columns[2]["read"])
        done = self.run_program("fit", "homes.csv", "--target", "price", "--schema", "kind=colour")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'colour' is not a type", done.stderr)

    def test_splits_by_group_and_time(self):
        rows = messy_rows(200)
        self.write("homes.csv", text_of(rows))
        for option in (("--keep-together", "sold"), ("--time", "sold")):
            shares = ("--shares", "1:1:1")
            result = json.loads(self.fcp("fit", "homes.csv", "--target", "price", "--out", "m.onnx",
                                         "--json", *option, *shares, *FAST))
            self.assertGreater(result["test_rows"], 30)

    def test_split_writes_files(self):
        self.write("homes.csv", text_of(messy_rows(50)))
        self.fcp("split", "homes.csv", "--shares", "3:1:1", "--seed", 4)
        counts, seen = [], []
        for name in ("train", "calibration", "test"):
            with open(self.path(f"homes.{name}.csv"), encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            counts.append(len(rows))
            seen += [row[""] for row in rows]
        self.assertEqual(counts, [30, 10, 10])
        self.assertEqual(sorted(map(int, seen)), list(range(50)))
        done = self.run_program("split", "homes.csv", "--stratify", "kind", "--time", "sold")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--stratify excludes --keep-together and --time", done.stderr)
        done = self.run_program("split", "homes.csv", "--group", "sold", "--out", "1.csv,2.csv,3.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: --group is called --keep-together now", done.stderr)

    def test_thirty_rows(self):
        self.write("few.csv", text_of(messy_rows(30)))
        done = self.run_program("fit", "few.csv", "--target", "price", "--out", "m.onnx", *FAST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trained on 12 rows, calibrated on 12", done.stdout)

    def test_few_rows_train_and_calibrate(self):
        """CV+: below 1,000 rows by itself, and what is promised is said."""
        self.write("few.csv", text_of(messy_rows(60)))
        done = self.run_program("fit", "few.csv", "--target", "price", "--out", "m.onnx", "--report",
                                "r.html", *FAST[:-2])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("trained on 48 rows and calibrated on the same in 10 folds: at least 73.2 % is "
                      "guaranteed (cross), near 90 % is usual", done.stdout)
        with open(self.path("r.html"), encoding="utf-8") as file:
            self.assertTrue("with probability at least 73.2&nbsp;%" in file.read())
        shown = json.loads(self.fcp("show", "m.onnx", "--json"))
        self.assertEqual((shown["calibration"], shown["rows"]), ("cross", 40))
        self.assertAlmostEqual(shown["guaranteed"]["0.1"], 0.8 - 0.75 / 11)
        self.assertIn("90 % target: at least 73.2 %", self.fcp("show", "m.onnx"))
        found = json.loads(self.fcp("evaluate", "m.onnx", "--data", "few.csv", "--target", "price",
                                    "--json"))
        self.assertAlmostEqual(found["guaranteed_coverage"], 0.8 - 0.75 / 11)
        rows = program.parse_csv(self.fcp("predict", "m.onnx", "--data", "few.csv", "--alpha",
                                          "0.1,0.3"))[1]
        for _, low, high, inner_low, inner_high in rows:
            self.assertLessEqual(low, inner_low)
            self.assertGreaterEqual(high, inner_high)
        self.fcp("check", "m.onnx", "--data", "few.csv", "--target", "price", "--out", "k.csv")
        self.fcp("export", "m.onnx", "--alpha", "0.1", "--out", "e.onnx")
        with open(self.path("m.onnx"), "rb") as made, open(self.path("e.onnx"), "rb") as exported:
            text = made.read()
            self.assertIn(b"fcp.training.filter", text)
            self.assertNotIn(b"fcp.training.sketch", text)
            self.assertNotIn(b"fcp.training", exported.read())
        infinite = program.parse_csv(self.fcp("predict", "m.onnx", "--data", "few.csv", "--alpha",
                                              "0.01"))[1]
        self.assertEqual({row[2] for row in infinite}, {float("inf")})

    def test_cross_refuses_what_makes_no_sense_in_one_line(self):
        self.write("few.csv", text_of(messy_rows(60)))
        self.write("more.csv", text_of(messy_rows(80, seed=2)))
        self.fcp("fit", "few.csv", "--target", "price", "--out", "m.onnx", *CROSS)
        more = ("--data", "more.csv", "--target", "price")
        for verb, out in (("update", ("--out", "u.onnx")), ("monitor", ())):
            done = self.run_program(verb, "m.onnx", *more, *out)
            self.assertEqual(done.returncode, 1, verb)
            self.assertIn("calibrated by its training rows (cross)", done.stderr)
            self.assertIn("run fcp calibrate on it with the score auto", done.stderr)
            self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
        done = self.run_program("calibrate", "m.onnx", *more, "--out", "u.onnx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cross calibrates a network by the rows that train it", done.stderr)
        self.assertFalse(os.path.exists(self.path("u.onnx")))
        # Rows of their own calibrate its network by any other score.
        self.fcp("calibrate", "m.onnx", *more, "--score", "residual", "--out", "u.onnx")
        self.assertEqual(json.loads(self.fcp("show", "u.onnx", "--json"))["calibration"], "split")
        self.fcp("compare", "m.onnx", "u.onnx", *more)

    def test_few_rows_of_classes_train_and_calibrate(self):
        self.write("few.csv", text_of(messy_rows(60)))
        done = self.run_program("fit", "few.csv", "--target", "kind", "--out", "m.onnx", *FAST[:-2])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("10 folds: at least 73.2 % is guaranteed (cross)", done.stdout)
        test = ("m.onnx", "--data", "few.csv")
        small, large = (self.fcp("predict", *test, "--alpha", alpha).splitlines()
                        for alpha in ("0.5", "0.1"))
        self.assertEqual(len(small), 61)
        for narrow, wide in zip(small[1:], large[1:]):
            self.assertLessEqual(set(narrow.split(",")[-1].split("|")) - {""},
                                 set(wide.split(",")[-1].split("|")))
        # In the set exactly where the score is within the radius.
        known = (*test, "--target", "kind", "--on-error", "skip")
        self.fcp("check", *known, "--out", "k.csv")
        found = json.loads(self.fcp("evaluate", *known, "--json"))
        with open(self.path("k.csv"), encoding="utf-8") as file:
            inside = [row["in"] == "1" for row in csv.DictReader(file)]
        self.assertAlmostEqual(sum(inside) / len(inside), found["coverage"])
        done = self.run_program("export", "m.onnx", "--out", "e.onnx")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cross calibration of labels is not exported", done.stderr)

    def test_cross_says_what_contradicts_it(self):
        self.write("few.csv", text_of(messy_rows(60)))
        fit = ("fit", "few.csv", "--target", "price", "--out", "m.onnx", *CROSS)
        for more, what in ((("--time", "sold"), "not by time"), (("--keep-together", "kind"), "not by group"),
                           (("--cover-each", "kind"), "not one for each group"),
                           (("--score", "residual"), "which the score residual contradicts")):
            done = self.run_program(*fit, *more)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--calibration: cross", done.stderr)
            self.assertIn(what, done.stderr)


def patient_table(groups, each=20, seed=1, first=0):
    """Days in hospital: an effect of each patient, which nothing tells but who he is."""
    chance = random.Random(seed)
    lines = ["patient,age,height,weight,dose,days"]
    for group in range(first, first + groups):
        effect, age = chance.gauss(0, 5), chance.randint(20, 80)
        height, weight = chance.gauss(170, 10), chance.gauss(75, 12)
        for _ in range(each):
            dose = chance.uniform(0, 10)
            days = 20 + 0.5 * dose + effect + chance.gauss(0, 1)
            lines.append(f"p{group},{age},{height:.1f},{weight:.1f},{dose:.2f},{days:.2f}")
    return "\n".join(lines) + "\n"


def class_table(rows, seed=2):
    """Three classes of which one has 5 % of the rows and hides among the others."""
    chance = random.Random(seed)
    lines = ["a,b,region,kind"]
    for _ in range(rows):
        share = chance.random()
        kind, shift = (("common", 0) if share < 0.8 else ("less", 1.5) if share < 0.95 else ("rare", 1))
        lines.append(f"{chance.gauss(shift, 1):.3f},{chance.gauss(-shift, 1):.3f},"
                     f"{chance.choice(['north', 'south'])},{kind}")
    return "\n".join(lines) + "\n"


def leaky_table(rows, seed=3):
    chance = random.Random(seed)
    lines = ["a,leak,y"]
    for _ in range(rows):
        a = chance.gauss(0, 1)
        y = a + chance.gauss(0, 1)
        lines.append(f"{a:.3f},{2 * y + 1:.4f},{y:.4f}")
    return "\n".join(lines) + "\n"


def dated_table(rows, seed=4):
    """A level that rises with time."""
    chance = random.Random(seed)
    lines = ["day,a,y"]
    for i in range(rows):
        a = chance.gauss(0, 1)
        lines.append(f"{2001 + i // 336}-{1 + i % 336 // 28:02d}-{1 + i % 28:02d},{a:.3f},"
                     f"{a + 0.01 * i + 0.3 * chance.gauss(0, 1):.3f}")
    return "\n".join(lines) + "\n"


class Honest(program.Case):
    """What the first screen, the JSON and the report say is what is true, and it is the same."""

    @classmethod
    def setUpClass(cls):
        pass

    def fit(self, table, target, *options, epochs=8):
        """What the console, the JSON and the report say of one command."""
        command = ("fit", table, "--target", target, "--out", "m.onnx", "--report", "r.html",
                   "--members", 2, "--epochs", epochs, *options)
        done = self.run_program(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(self.fcp(*command, "--json"))
        with open(self.path("r.html"), encoding="utf-8") as file:
            page = file.read()
        return done, found, html.unescape(page).replace("\u00a0", " ")

    def covered(self, table, target):
        return json.loads(self.fcp("evaluate", "m.onnx", "--data", table, "--target", target,
                                   "--json"))["coverage"]

    def test_console_json_and_report_agree(self):
        """On every number of the first screen, and page and JSON on all, of twelve tables."""
        tables = [("patients.csv", patient_table(40), "days", ("--calibration", "split")),
                  ("patients.csv", patient_table(40), "days", ("--keep-together", "patient")),
                  ("patients.csv", patient_table(20), "days", ("--calibration", "cross")),
                  ("leak.csv", leaky_table(400), "y", ("--calibration", "split")),
                  ("leak.csv", leaky_table(300), "y", ("--alpha", "0.2")),
                  ("dated.csv", dated_table(400), "y", ("--time", "day")),
                  ("homes.csv", text_of(messy_rows(300)), "price", ("--calibration", "rectified")),
                  ("homes.csv", text_of(messy_rows(300)), "price", ("--cover-each", "lift")),
                  ("kinds.csv", class_table(600), "kind", ("--calibration", "split")),
                  ("kinds.csv", class_table(600), "kind", ("--cover-each", "label")),
                  ("kinds.csv", class_table(600), "kind", ("--cover-each", "region")),
                  ("kinds.csv", class_table(200), "kind", ("--calibration", "cross"))]
        for name, text, target, options in tables:
            with self.subTest(name=name, options=options):
                self.write(name, text)
                done, found, page = self.fit(name, target, *options)
                self.check_agreement(done.stdout, found, page)

    def check_agreement(self, console, found, page):
        evaluation, first = found["evaluation"], console.splitlines()[0]

        def number(pattern, text=first):
            match = re.search(pattern, text)
            self.assertTrue(match, (pattern, text))
            return match[1].replace(",", "")

        def same(shown, exact, scale=1):
            digits = len(shown.split(".")[1]) if "." in shown else 0
            self.assertAlmostEqual(float(shown), exact * scale, delta=0.51 * 10 ** -digits, msg=first)

        with open(self.path("r.html"), encoding="utf-8") as file:
            carried = re.search(r'id="report-data"[^>]*>(.*?)</script>', file.read(), re.DOTALL)[1]
        carried = json.loads(carried)
        carried.pop("sample", None)
        self.assertEqual(carried, evaluation)  # from which the page draws
        same(number(r"^coverage ([\d.]+) %"), evaluation["coverage"], 100)
        self.assertIn(number(r"^coverage ([\d.]+ %)"), page)
        self.assertEqual(int(number(r"on ([\d,]+) test row")), evaluation["rows"])
        self.assertEqual(found["test_rows"], evaluation["rows"])
        self.assertEqual(found["calibration_rows"], evaluation["calibration_rows"])
        self.assertIn(f"calibrated on {found['calibration_rows']:,}", page)
        self.assertEqual(found["verdict"], evaluation["verdict"])
        self.assertIn(evaluation["headline"], page)
        if found["task"] == "numbers":
            for word, key in (("mean length", "length"), ("RMSE", "rmse"), ("MAE", "mae"),
                              ("target SD", "deviation")):
                shown = number(word + r" ([\d,.]+\d)")
                same(shown, evaluation[key])
                self.assertIn(re.search(word + r" ([\d,.]+\d)", first)[1], page)
                self.assertEqual(found.get(key, evaluation[key]), evaluation[key])
            lowest = evaluation.get("worst_group") or evaluation["worst_third"]
        else:
            same(number(r"mean set size ([\d.]+)"), evaluation["size"])
            same(number(r"accuracy ([\d.]+) %"), found["accuracy"], 100)
            self.assertAlmostEqual(found["accuracy"], evaluation["top1"])
            self.assertIn(number(r"accuracy ([\d.]+ %)"), page)
            lowest = evaluation["worst_class"]
        self.assertIn(lowest["name"], first)
        same(number(r"lowest coverage: .*, ([\d.]+) %"), lowest["coverage"], 100)
        self.assertEqual(int(number(r"lowest coverage: .* of ([\d,]+) row")), lowest["rows"])
        for line in console.splitlines():
            if line.startswith("watch: "):
                self.assertIn(evaluation["watch"][0]["what"], line)
                self.assertIn(evaluation["watch"][0]["what"], page)
        rows = re.search(r"trained on ([\d,]+) rows.*?calibrated on ([\d,]+|the same)", console)
        made = found.get("refit", found)
        self.assertEqual(int(rows[1].replace(",", "")), made["training_rows"])
        if rows[2] != "the same":
            self.assertEqual(int(rows[2].replace(",", "")), made["calibration_rows"])
        if "guaranteed_coverage" in found:
            share = f"at least {100 * found['guaranteed_coverage']:.1f} %"
            self.assertIn(share, first)
            self.assertIn(share, page)

    def test_several_targets_by_name(self):
        chance = random.Random(4)
        lines = ["x,minutes,euros"]
        for _ in range(400):
            x = chance.gauss(0, 1)
            lines.append(f"{x:.3f},{x + chance.gauss(0, 0.2):.4f},{100 * x + chance.gauss(0, 50):.3f}")
        self.write("both.csv", "\n".join(lines) + "\n")
        done, found, page = self.fit("both.csv", "minutes,euros")
        self.assertEqual(found["targets"], ["minutes", "euros"])
        lines = done.stdout.splitlines()
        for k, name in enumerate(found["targets"]):
            line = next(line for line in lines if line.startswith(f"  {name}: "))
            output = found["evaluation"]["by_output"][k]
            self.assertEqual(output["rmse"], found["rmse"][k])
            for word, exact in (("coverage", 100 * output["coverage"]), ("mean length", output["length"]),
                                ("RMSE", output["rmse"]), ("MAE", output["mae"]),
                                ("target SD", output["deviation"])):
                shown = re.search(word + r" ([\d.,]*\d)", line)[1].replace(",", "")
                digits = len(shown.split(".")[1]) if "." in shown else 0
                self.assertAlmostEqual(float(shown), exact, delta=0.51 * 10 ** -digits)
            self.assertIn(name, page)
        self.assertGreater(found["deviation"][1], 50 * found["deviation"][0])

    def test_targets_far_from_zero_keep_their_spread(self):
        """From the cell to the interval's ends: float32 numbers are 64 apart there."""
        chance = random.Random(6)
        lines = ["x,y"]
        for _ in range(600):
            x = chance.gauss(0, 1)
            lines.append(f"{x:.4f},{1e9 + 3 * x + chance.gauss(0, 0.3):.4f}")
        self.write("far.csv", "\n".join(lines) + "\n")
        done, found, page = self.fit("far.csv", "y", "--calibration", "split", epochs=40)
        self.check_agreement(done.stdout, found, page)
        self.assertAlmostEqual(found["deviation"], 3, delta=0.7)
        self.assertLess(found["rmse"], 0.8)
        self.assertNotIn("--integer", done.stderr)
        again = json.loads(self.fcp("evaluate", "m.onnx", "--data", "far.csv", "--json"))
        self.assertLess(again["rmse"], 0.8)
        self.assertAlmostEqual(again["deviation"], 3, delta=0.3)
        truths = [float(line.split(",")[1]) for line in lines[1:]]
        for out in ("p.csv", "p.json"):
            self.fcp("predict", "m.onnx", "--data", "far.csv", "--out", out)
            with open(self.path(out), encoding="utf-8") as file:
                rows = json.load(file) if out.endswith("json") else list(csv.DictReader(file))
            inside = [float(r["lower"]) <= y <= float(r["upper"]) for r, y in zip(rows, truths)]
            self.assertGreater(sum(inside) / len(inside), 0.8)
            self.assertLess(max(float(r["upper"]) - float(r["lower"]) for r in rows), 20)
        done = self.run_program("predict", "m.onnx", "--data", "far.csv", "--out", "p.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("too coarse for a target", done.stderr)
        self.fcp("train", "far.csv", "--target", "y", "--out", "n.onnx", "--members", 2, "--epochs", 40)
        self.fcp("calibrate", "n.onnx", "--data", "far.csv", "--target", "y", "--out", "c.onnx",
                 "--score", "residual", "--allow-training-rows")
        again = json.loads(self.fcp("evaluate", "c.onnx", "--data", "far.csv", "--json"))
        self.assertLess(again["rmse"], 0.8)

    def test_rows_train_by_their_weights(self):
        lines = ["x,w,y"]
        for i in range(400):
            lines.append(f"{i % 7}.5," + ("90,-1" if i % 4 == 0 else "10,1") + f".{i % 3}")
        self.write("w.csv", "\n".join(lines) + "\n")
        done, found, _ = self.fit("w.csv", "y", "--row-weights", "w", "--calibration", "split",
                                  epochs=40)
        self.fcp("predict", "m.onnx", "--data", "w.csv", "--out", "p.csv")
        with open(self.path("p.csv"), encoding="utf-8") as file:
            answers = [float(row["prediction"]) for row in csv.DictReader(file)]
        self.assertLess(sum(answers) / 400, -0.2, "a quarter of the rows has 3/4 of the weight")
        self.assertIn("training alone", found["evaluation"]["provenance"]["row weights"])
        uses = {column["name"]: column["use"] for column in found["evaluation"]["columns"]}
        self.assertEqual(uses["w"], "left out: dropped")
        self.fcp("train", "w.csv", "--target", "y", "--row-weights", "w", "--out", "n.onnx",
                 "--members", 2, "--epochs", 40)
        self.fcp("run", "n.onnx", "--data", "w.csv", "--out", "r.csv")
        self.write("bad.csv", "\n".join(lines[:30] + ["1,0,2.5"] + lines[30:]) + "\n")
        for verb in ("fit", "train"):
            done = self.run_program(verb, "bad.csv", "--target", "y", "--row-weights", "w", "--out",
                                    "b.onnx")
            self.assertEqual(done.returncode, 1)
            self.assertIn("row weights w: row 29 (from 0) is 0, expected a finite number above 0",
                          done.stderr)
        done = self.run_program("train", "w.csv", "--target", "y", "--row-weights", "w", "--recipe",
                                "paper", "--out", "b.onnx")
        self.assertIn("--row-weights applies only to --recipe tabular", done.stderr)

    def test_patients_in_order_of_time(self):
        chance = random.Random(8)
        lines = ["patient,day,dose,days"]
        for visit in range(5):
            for patient in range(80):
                dose = chance.gauss(0, 1)
                lines.append(f"p{patient},2021-{1 + visit:02d}-{1 + patient % 28:02d},{dose:.3f},"
                             f"{dose + patient / 20 + chance.gauss(0, 0.3):.3f}")
        self.write("visits.csv", "\n".join(lines) + "\n")
        done, found, _ = self.fit("visits.csv", "days", "--time", "day", "--keep-together", "patient",
                                  "--score", "residual")
        self.assertIn("80 values of 'patient' together where the newest of them is", found["split"])
        self.assertEqual(found["evaluation"]["rows_are"], "later rows")
        self.assertEqual(found["test_rows"] % 5, 0, "whole patients")
        self.assertEqual(found["refit"]["training_rows"] % 5, 0)
        self.assertIn("rows split by 'day', the rows of each", done.stdout)
        self.fcp("split", "visits.csv", "--time", "day", "--keep-together", "patient")
        seen = []
        for part in ("train", "calibration", "test"):
            with open(self.path(f"visits.{part}.csv"), encoding="utf-8") as file:
                seen.append({row["patient"] for row in csv.DictReader(file)})
        self.assertEqual(sum(map(len, seen)), 80, "no patient is in two files")

    def test_new_patients(self):
        """What is seen on the test rows holds for new patients, or a warning says that it does not.
        Coverage of 100 new patients of 20 rows lies below 0.6 or above 0.65 with a chance of less than
        1e-6 on either side: they are alike within a patient, with a deviation of 0.03 at most."""
        self.write("patients.csv", patient_table(300))
        self.write("new.csv", patient_table(100, seed=2, first=1000))
        options = ("--members", 2, "--epochs", 30, "--score", "residual")
        fit = ("fit", "patients.csv", "--target", "days", "--out", "m.onnx", *options)
        done = self.run_program(*fit)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rows of one 'patient' look alike", done.stderr)
        self.assertIn("--keep-together patient", done.stderr)
        self.assertLess(self.covered("new.csv", "days"), 0.6)
        done = self.run_program(*fit, "--keep-together", "patient")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("look alike", done.stderr)
        self.assertGreater(self.covered("new.csv", "days"), 0.65)
        shown = json.loads(self.fcp("show", "m.onnx", "--json"))
        self.assertNotIn("patient", shown["columns"])
        self.assertIn("the 300 values of 'patient' together", shown["provenance"]["rows split"])

    def test_a_leak_is_named(self):
        self.write("leak.csv", leaky_table(400))
        done, found, page = self.fit("leak.csv", "y", "--calibration", "split")
        self.assertIn("column 'leak' alone explains 99 % or more of 'y'", done.stderr)
        self.assertIn("--drop leak", done.stderr)
        self.assertIn("column 'leak' alone explains", page)
        self.assertTrue([note for note in found["evaluation"]["notes"] if "'leak'" in note])
        done = self.fit("leak.csv", "y", "--calibration", "split", "--drop", "leak")[0]
        self.assertNotIn("leak", done.stderr)

    def test_advice_works_as_printed(self):
        self.write("kinds.csv", class_table(2000))
        done, found, page = self.fit("kinds.csv", "kind", "--score", "lac")
        watch = found["evaluation"]["watch"]
        rare = [one for one in watch if one["what"].startswith("class rare")]
        self.assertTrue(rare, watch)
        command = rare[0]["cure"].split(": ", 1)[1]
        self.assertTrue(command.endswith("--cover-each label"), command)
        self.assertIn(command, page)
        self.assertIn(command, done.stdout)
        again = self.run_program(*shlex.split(command)[1:], threads=None)
        self.assertEqual(again.returncode, 0, again.stderr)
        shown = json.loads(self.fcp("show", "m.onnx", "--json"))
        self.assertEqual((shown["calibration"], sorted(shown["groups"])), ("grouped", ["0", "1", "2"]))

    def test_parts_and_level_go_on(self):
        self.write("kinds.csv", class_table(900))
        done, found, _ = self.fit("kinds.csv", "kind", "--calibration", "split", "--keep-parts",
                                  "parts", "--alpha", "0.2")
        files = {name: f"parts/kinds.{name}.csv" for name in ("training", "calibration", "test")}
        rows = {}
        for name, path in files.items():
            with open(self.path(path), encoding="utf-8") as file:
                rows[name] = len(list(csv.DictReader(file)))
        self.assertEqual(rows["training"], found["training_rows"])
        self.assertEqual(rows["calibration"], found["calibration_rows"] + found["selection_rows"])
        self.assertEqual(rows["test"], found["test_rows"])
        again = json.loads(self.fcp("evaluate", "m.onnx", "--data", files["test"], "--target", "kind",
                                    "--json"))
        self.assertEqual(again["alpha"], 0.2, "the level that fit was asked for")
        self.assertEqual(again["covered"], found["evaluation"]["covered"])
        self.assertEqual(again["rows_are"], "unknown")
        known = json.loads(self.fcp("evaluate", "m.onnx", "--data", files["training"], "--target",
                                    "kind", "--json"))
        self.assertEqual((known["rows_are"], known["verdict"]), ("training rows", "unknown"))
        self.assertIn("trained on some of these rows", known["headline"])
        self.fcp("calibrate", "m.onnx", "--data", files["calibration"], "--target", "kind", "--score",
                 "lac", "--out", "c.onnx")
        same = json.loads(self.fcp("evaluate", "c.onnx", "--data", files["calibration"], "--target",
                                   "kind", "--json"))
        self.assertEqual(same["rows_are"], "calibration rows")
        self.assertIn("calibrated the predictor", same["headline"])

    def test_order_of_time_is_seen_and_told(self):
        self.write("dated.csv", dated_table(500))
        done = self.fit("dated.csv", "y", "--calibration", "split")[0]
        self.assertIn("--time day", done.stderr)
        done, found, page = self.fit("dated.csv", "y", "--time", "day")
        self.assertNotIn("use --time", done.stderr)
        self.assertEqual(found["evaluation"]["rows_are"], "later rows")
        self.assertEqual(sum(part["rows"] for part in found["evaluation"]["over_time"]), 100)
        self.assertIn("Over time", page)
        self.assertEqual(found["refit"]["training_rows"], 500 - sum(
            found["refit"][part] for part in ("calibration_rows", "selection_rows")))
        shown = " ".join(self.fcp("show", "m.onnx").split())
        self.assertRegex(shown, r"rows split by 'day': trained on 2001-01-01 to 2002-\d\d-\d\d, "
                                r"calibrated on 2002-\d\d-\d\d to 2002-06-24; evaluated before")

    def test_the_report_tells_columns_and_answers(self):
        self.write("homes.csv", text_of(messy_rows(300)))
        _, found, page = self.fit("homes.csv", "price", "--calibration", "split")
        uses = {one["name"]: one["use"] for one in found["evaluation"]["columns"]}
        self.assertEqual((uses["price"], uses["kind"]), ("target", "feature"))
        self.assertIn("counts the rows", uses["column 0"])
        for text in ("Rows were split at random", "Used as", "counts the rows", "Predicted against true"):
            self.assertIn(text, page)
        self.write("kinds.csv", class_table(600))
        _, found, page = self.fit("kinds.csv", "kind", "--calibration", "split")
        answers = found["evaluation"]["answers"]
        self.assertEqual(sum(one["rows"] for one in answers), found["test_rows"])
        self.assertEqual(sum(one["predicted"] for one in answers), found["test_rows"])
        self.assertIn("Precision", page)


class Predict(program.Case):
    """What predict and evaluate take and give besides one level."""

    def test_levels_and_kept_columns(self):
        test = ("predict", self.made("calibrated.onnx"), "--data", self.made("test.csv"))
        lines = self.fcp(*test, "--alpha", "0.1,0.2", "--keep", "hour,minutes").splitlines()
        self.assertEqual(lines[0], "hour,minutes,prediction,lower_0.1,upper_0.1,lower_0.2,upper_0.2")
        rows = program.parse_csv("\n".join(lines))[1]
        self.assertEqual([row[1] for row in rows], self.truth())
        one, two = self.predict(self.made("calibrated.onnx"), "--alpha", 0.1), self.predict(
            self.made("calibrated.onnx"), "--alpha", 0.2)
        self.assertEqual([row[2:] for row in rows], [a + b[1:] for a, b in zip(one, two)])
        done = self.run_program(*test, "--alpha", "0.1,0.2", "--out", "i.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("write CSV", done.stderr)

    def test_confidence_is_one_less_alpha(self):
        test = ("predict", self.made("calibrated.onnx"), "--data", self.made("test.csv"))
        wanted = self.fcp(*test, "--alpha", "0.05")
        self.assertEqual(self.fcp(*test, "--confidence", "0.95"), wanted)
        self.assertEqual(self.fcp(*test, "--confidence", "95%"), wanted)
        for bad in ("1", "95", "0", "abc", "1.5"):
            self.assertEqual(self.run_program(*test, "--confidence", bad).returncode, 2, bad)
        done = self.run_program(*test, "--alpha", "0.9")
        self.assertIn("did you mean a confidence of 0.9?", done.stderr)

    def test_pipes(self):
        with open(self.made("test.csv"), "rb") as file:
            done = subprocess.run([program.PROGRAM, "predict", self.made("calibrated.onnx"), "--data",
                                   "-", "--threads", "1"], stdin=file, stdout=subprocess.PIPE, check=True, text=True,
                                  env=program.ENVIRONMENT, timeout=program.LONGEST)
        self.assertEqual(done.stdout, self.fcp("predict", self.made("calibrated.onnx"), "--data",
                                               self.made("test.csv")))

    def test_other_formats_are_refused(self):
        self.write("x.parquet", b"PAR1\x15\x04")
        done = self.run_program("predict", self.made("calibrated.onnx"), "--data", "x.parquet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.parquet: is a Parquet file, which fcp does not read", done.stderr)
        for verb in (("fit", "x.parquet", "--target", "y", "--out", "m.onnx"),
                     ("split", "x.parquet"),
                     ("train", "x.parquet", "--target", "y", "--out", "m.onnx"),
                     ("evaluate", self.made("calibrated.onnx"), "--data", "x.parquet", "--target",
                      "y")):
            done = self.run_program(*verb)
            self.assertIn("is a Parquet file", done.stderr, verb)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        done = self.run_program("check", self.made("calibrated.onnx"), "--data",
                                self.made("test.csv"), "--target", "minutes", "--out", "k.parquet")
        self.assertIn("k.parquet: fcp does not write .parquet files", done.stderr)
        done = self.run_program("predict", self.made("calibrated.onnx"), "--data",
                                self.made("test.csv"), "--out", "i.parquet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("i.parquet: fcp does not write .parquet files; write CSV", done.stderr)
        self.assertFalse(os.path.exists(self.path("i.parquet")))

    def test_errors_lead_on(self):
        for typed, meant in ((("predict", "m.onnx", "--dta", "x.csv"), "--data"),
                             (("fit", "x.csv", "--target", "y", "--alfa", "0.2"), "--alpha"),
                             (("calibrte",), "calibrate"), (("help", "evalute"), "evaluate")):
            done = self.run_program(*typed, threads=None)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"^fcp: .*; did you mean {meant}\?\n$")
        done = self.run_program(threads=None)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "fcp: no verb given, such as fit; `fcp --help` lists them\n"))
        self.assertEqual(self.fcp("help", "calibrate", threads=None),
                         self.fcp("calibrate", "--help", threads=None))
        self.assertEqual(self.fcp("help", threads=None), self.fcp("--help", threads=None))
        self.assertIn("-l target", self.fcp("completion", "fish", threads=None))
        self.assertTrue(self.fcp("completion", "zsh", threads=None).startswith("#compdef fcp"))

    def test_interval_score_on_a_classifier_names_the_option(self):
        lines = ["a,b,kind"] + [f"{i % 17},{i % 5},{'xyz'[i % 3]}" for i in range(120)]
        self.write("k.csv", "\n".join(lines) + "\n")
        self.fcp("train", "k.csv", "--target", "kind", "--out", "m.onnx", *FAST[:-2])
        done = self.run_program("calibrate", "m.onnx", "--data", "k.csv", "--target", "kind",
                                "--score", "residual", "--allow-training-rows", "--out", "c.onnx")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--score: this one gives intervals, and the network answers 3", done.stderr)


if __name__ == "__main__":
    program.main()
