"""What `predict` writes besides regions, what it says of rows unlike the training rows, files in
other encodings, and `explain`."""
import csv
import gzip
import json
import random
import unittest

import program

HEADER = "carat,cut,zip,price"


def table(rows, seed):
    """price follows carat; the noise is wide where cut is Fair."""
    rng = random.Random(seed)
    lines = [HEADER]
    for _ in range(rows):
        carat, cut = rng.uniform(0.2, 3), rng.choice(["Fair", "Good", "Ideal"])
        noise = rng.gauss(0, 8 if cut == "Fair" else 0.5)
        lines.append(f"{carat:.3f},{cut},{rng.choice(['02139', '98115', '10001'])},"
                     f"{10 * carat + noise:.3f}")
    return "\n".join(lines) + "\n"


class Predict(program.Case):
    shared = {}

    @classmethod
    def setUpClass(cls):
        pass  # the demo is not needed

    def setUp(self):
        super().setUp()
        if not self.shared:
            self.write("d.csv", table(1200, 1))
            # So many epochs that the network learns which rows are noisy.
            self.fcp("fit", "d.csv", "--target", "price", "--out", "m.onnx", "--members", 1,
                     "--epochs", 200, "--shares", "2:1:1")
            self.shared["m"] = self.bytes_of("m.onnx")
            lines = ["a,b,kind"]
            rng = random.Random(2)
            for _ in range(900):
                kind = rng.randrange(2)
                lines.append(f"{rng.gauss(4 * kind, 1):.4f},{rng.gauss(0, 1):.4f},{'xy'[kind]}")
            self.write("k.csv", "\n".join(lines) + "\n")
            self.fcp("fit", "k.csv", "--target", "kind", "--out", "k.onnx", "--members", 1,
                     "--epochs", 5, "--shares", "1:1:1", "--score", "lac")
            self.shared["k"] = self.bytes_of("k.onnx")
            self.shared["rows"] = "\n".join(lines[:60]) + "\n"
        with open(self.path("m.onnx"), "wb") as file:
            file.write(self.shared["m"])
        with open(self.path("k.onnx"), "wb") as file:
            file.write(self.shared["k"])
        self.write("k.csv", self.shared["rows"])

    def rows_of(self, *arguments):
        done = self.run_program("predict", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(done.stdout.splitlines())), done.stderr

    def test_rows_unlike_the_training_rows_are_flagged(self):
        self.write("new.csv", "carat,cut,zip\n1,Fair,02139\n,Good,98115\n2,Great,10001\n"
                              "40,Ideal,02139\n,Great,02139\n3.2,Good,02139\n")
        rows, said = self.rows_of("m.onnx", "--data", "new.csv", "--flags")
        self.assertEqual([row["flags"] for row in rows],
                         ["", "missing:carat", "unseen:cut", "range:carat",
                          "missing:carat|unseen:cut", ""])
        self.assertIn("4 of 6 rows have what no training row had (missing: carat in 2; unseen: cut "
                      "in 2; far outside the training range: carat in 1): the coverage guarantee "
                      "does not extend to them", said)
        plain, again = self.rows_of("m.onnx", "--data", "new.csv")
        self.assertEqual(said, again, "the warning does not need the column")
        self.assertNotIn("flags", plain[0])
        done = self.run_program("predict", "m.onnx", "--data", "new.npy", "--flags")
        self.assertEqual(done.returncode, 1)

    def test_zip_codes_are_categories(self):
        self.write("d.csv", table(40, 3))
        shown = json.loads(self.fcp("fit", "d.csv", "--target", "price", "--schema", "show", "--json"))
        self.assertEqual([column["type"] for column in shown["columns"]],
                         ["number", "category", "category", "number"])
        self.assertEqual(shown["target"], "numbers")
        text = self.fcp("fit", "k.csv", "--target", "kind", "--schema", "show")
        self.assertIn("target: classification", text)
        self.assertTrue(text.endswith("\n59 rows\n"), text)

    def test_json_gzip_and_all_columns(self):
        self.write("new.csv", table(5, 4))
        rows, _ = self.rows_of("m.onnx", "--data", "new.csv", "--keep", "all", "--alpha", "0.1,0.2")
        self.assertEqual(list(rows[0]), HEADER.split(",") + ["prediction", "lower_0.1", "upper_0.1",
                                                              "lower_0.2", "upper_0.2"])
        keep = ("--keep", "all", "--alpha", "0.1,0.2")
        self.fcp("predict", "m.onnx", "--data", "new.csv", *keep, "--out", "r.json")
        found = json.loads(self.bytes_of("r.json"))
        self.assertEqual([list(one) for one in found], [list(row) for row in rows])
        for one, row in zip(found, rows):
            self.assertEqual(one["cut"], row["cut"])
            self.assertEqual(one["lower_0.2"], float(row["lower_0.2"]))
        for name in ("r.csv.gz", "r.json.gz"):
            self.fcp("predict", "m.onnx", "--data", "new.csv", *keep, "--out", name)
        text = gzip.decompress(self.bytes_of("r.csv.gz")).decode()
        self.assertEqual(list(csv.DictReader(text.splitlines())), rows)
        self.assertEqual(json.loads(gzip.decompress(self.bytes_of("r.json.gz"))), found)

    def test_skipped_rows_leave_the_lines_of_the_others(self):
        self.write("new.csv", "carat,cut,zip\n1,Fair,02139\nbad,Good,98115\n2,Good,10001\n")
        rows, _ = self.rows_of("m.onnx", "--data", "new.csv", "--on-error", "skip")
        self.assertEqual([row["line"] for row in rows], ["2", "4"])
        with open(self.path("new.refused.csv"), encoding="utf-8") as file:
            self.assertEqual([row["fcp_line"] for row in csv.DictReader(file)], ["3"])

    def test_probabilities_agree_with_sets(self):
        rows, _ = self.rows_of("k.onnx", "--data", "k.csv", "--probabilities")
        self.assertEqual(list(rows[0]), ["prediction", "size", "labels", "p_x", "p_y"])
        for row in rows:
            chances = {"x": float(row["p_x"]), "y": float(row["p_y"])}
            self.assertAlmostEqual(sum(chances.values()), 1, places=5)
            self.assertEqual(row["prediction"], max(chances, key=chances.get))
            self.assertIn(row["prediction"], row["labels"].split("|"), "no set is empty")
        done = self.run_program("predict", "m.onnx", "--data", "k.csv", "--probabilities")
        self.assertEqual(done.returncode, 1)

    def test_empty_sets_are_asked_for(self):
        self.fcp("calibrate", "k.onnx", "--data", "k.csv", "--target", "kind", "--out", "e.onnx",
                 "--score", "lac", "--allow-empty")
        shown = json.loads(self.fcp("show", "e.onnx", "--json"))
        self.assertIn('"allow_empty": true', json.dumps(shown))
        rows, _ = self.rows_of("e.onnx", "--data", "k.csv", "--alpha", "0.5")
        self.assertIn("0", [row["size"] for row in rows])
        rows, _ = self.rows_of("k.onnx", "--data", "k.csv", "--alpha", "0.5")
        self.assertEqual({row["size"] for row in rows}, {"1"})

    def test_other_encodings_and_marks(self):
        text = table(60, 5).replace("Ideal", "Idéal").replace("\n1", "\n-")
        self.write("u.csv", text)
        answers = []
        for encoding in ("utf-8", "cp1252", "utf-16"):
            with open(self.path("e.csv"), "wb") as file:
                file.write(text.encode(encoding))
            done = self.run_program("fit", "e.csv", "--target", "price", "--schema", "show",
                                    "--encoding", encoding, "--missing", "-,unknown", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            answers.append(json.loads(done.stdout))
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        done = self.run_program("fit", "e.csv", "--target", "price", "--schema", "show")
        self.assertIn("--encoding utf-16", done.stderr)

    def test_evaluate_knows_the_target_and_says_the_error(self):
        self.write("new.csv", table(300, 7))
        text = self.fcp("evaluate", "m.onnx", "--data", "new.csv")
        self.assertRegex(text, r"error +[0-9.]+ +RMSE; MAE [0-9.]+, target SD [0-9.]+")
        self.assertEqual(text, self.fcp("evaluate", "m.onnx", "--data", "new.csv", "--target", "price"))
        self.assertRegex(self.fcp("evaluate", "k.onnx", "--data", "k.csv"), r"accuracy +[0-9.]+ %")

    def test_time_is_no_drift(self):
        text = table(600, 8).splitlines()
        rows = [f"{line},{2000 + i}" for i, line in enumerate(text[1:])]
        self.write("t.csv", "\n".join([text[0] + ",when", *rows]) + "\n")
        self.fcp("fit", "t.csv", "--target", "price", "--out", "t.onnx", "--members", 1, "--epochs",
                 3, "--shares", "1:1:1", "--schema", "when=number")
        log = "\n".join([text[0] + ",when", *rows[300:]]) + "\n"
        self.write("log.csv", log)
        found = self.run_program("monitor", "t.onnx", "--data", "log.csv", "--time", "when", "--json")
        kinds = [alarm["what"] for alarm in json.loads(found.stdout)["alarms"]]
        self.assertFalse([what for what in kinds if "when" in what], kinds)

    def test_explain(self):
        self.write("new.csv", table(200, 6))
        found = json.loads(self.fcp("explain", "m.onnx", "--data", "new.csv", "--json"))
        self.assertEqual(found["rows"], 200)
        self.assertEqual(found["means"], "training")
        columns = {one["column"]: one for one in found["columns"]}
        self.assertEqual(set(columns), {"carat", "cut", "zip"})
        self.assertEqual(found["columns"][0]["column"], "carat", "it makes the price")
        longest = max(found["columns"], key=lambda one: one["length"])
        self.assertEqual(longest["column"], "cut", "it makes the noise")
        for row in found["widest"]:
            self.assertRegex(row["row"], "^line [0-9]+$")
        text = self.fcp("explain", "m.onnx", "--data", "new.csv", "--report", "why.html")
        self.assertIn("widened by", text)
        self.assertIn("Importance of columns", self.bytes_of("why.html").decode())
        again = json.loads(self.fcp("explain", "m.onnx", "--data", "new.csv", "--json"))
        self.assertEqual(again, found)


if __name__ == "__main__":
    program.main()
