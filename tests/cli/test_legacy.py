"""Files of earlier versions, in tests/data/legacy: each is read, and answers as it did when its
answers were written down. Numbers may differ by what another processor rounds."""
import json
import math
import os
import tempfile

import program

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "legacy")
VERSIONS = ("0.1", "0.2", "0.3")
TOLERANCE = 2e-5  # relative, and below 1 absolute
# Where scores nearly tie, the last bit of another libtorch moves a p-value by some of 161 ranks.
TOLERANCE_OF_P = 5 / 161


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


class Legacy(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo is not needed

    def setUp(self):
        self.folder = FOLDER

    def answers(self, version):
        with open(os.path.join(FOLDER, version, "answers.json"), encoding="utf-8") as file:
            return [(entry["command"].split(), entry["answer"]) for entry in json.load(file)]

    def assert_same(self, found, wanted, where, tolerance=TOLERANCE):
        """Numbers nearly equal, texts equal; of objects, what was there then."""
        if isinstance(wanted, dict):
            for key, value in wanted.items():
                self.assertIn(key, found, where)
                self.assert_same(found[key], value, f"{where}, {key}")
        elif isinstance(wanted, list):
            self.assertEqual(len(found), len(wanted), where)
            for i, pair in enumerate(zip(found, wanted)):
                self.assert_same(*pair, f"{where}, {i}", tolerance)
        elif isinstance(wanted, float) or number(wanted) is not None and not isinstance(wanted, bool):
            left, right = number(found), number(wanted)
            self.assertIsNotNone(left, f"{where}: {found} and {wanted}")
            self.assertTrue(left == right or math.isclose(left, right, rel_tol=TOLERANCE,
                                                          abs_tol=tolerance),
                            f"{where}: {found} and {wanted}")
        else:
            self.assertEqual(found, wanted, where)

    def cells(self, lines):
        """Of a table, cells; of unions "low:high" and more of them, the ends too."""
        return [[piece for cell in line.split(",") for part in cell.split("|")
                 for piece in part.split(":")] for line in lines]

    def assert_same_checks(self, found, wanted, where):
        """Of `check`: rows of a table with a column of p-values."""
        self.assert_same(found[0], wanted[0], where)
        place = wanted[0].index("p_value")
        self.assert_same([row.pop(place) for row in found[1:]], [row.pop(place) for row in wanted[1:]],
                         f"{where}, p-values", TOLERANCE_OF_P)
        self.assert_same(found[1:], wanted[1:], where)

    def check_version(self, version):
        asked = set()
        for command, wanted in self.answers(version):
            with self.subTest(" ".join(command)):
                asked.add((command[0], os.path.basename(command[1])))
                found = self.fcp(*command, "--quiet")
                if command[0] == "show":
                    self.assert_same(json.loads(found), wanted, command[1])
                    continue
                same = self.assert_same_checks if command[0] == "check" else self.assert_same
                same(self.cells(found.splitlines()), self.cells(wanted), command[1])
        files = {name for name in os.listdir(os.path.join(FOLDER, version)) if name.endswith(".onnx")}
        self.assertEqual({name for verb, name in asked if verb == "predict"}, files)
        self.assertEqual({name for verb, name in asked if verb == "show"}, files)
        # A file of `calibrate --levels` has no p-values.
        self.assertEqual({name for verb, name in asked if verb == "check"}, files - {"levels.onnx"})

    def test_0_1(self):
        self.check_version("0.1")

    def test_0_2(self):
        self.check_version("0.2")

    def test_0_3(self):
        self.check_version("0.3")

    def test_no_version_is_left_out(self):
        folders = {name for name in os.listdir(FOLDER) if os.path.isdir(os.path.join(FOLDER, name))}
        self.assertEqual(folders, set(VERSIONS))

    def test_without_first_options_is_the_same(self):
        """The first files of 0.1 do not name the options that came later in it."""
        for alpha in ("0.05", "0.5"):
            answers = [self.fcp("predict", f"0.1/{name}.onnx", "--data", "rows.csv", "--alpha", alpha)
                       for name in ("linearized", "linearized_first")]
            self.assertEqual(*answers)

    def test_update_writes_the_form_of_today(self):
        """0.2 kept hashes of training rows with their targets; a file that is written now has none."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "next.onnx")
            for version in VERSIONS:
                nested = f"{version}/nested.onnx"
                rows = json.loads(self.fcp("show", nested, "--json"))["rows"]
                self.fcp("update", nested, "--data", "rows.csv", "--target", "y", "--out", path)
                self.assertEqual(json.loads(self.fcp("show", path, "--json"))["rows"], rows + 8)
                with open(path, "rb") as file:
                    self.assertNotIn(b"fcp.training.sketch", file.read())


if __name__ == "__main__":
    program.main()
