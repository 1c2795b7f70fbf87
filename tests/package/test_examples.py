"""The examples do what they say."""
import os
import shutil
import subprocess
import sys

import package
from package import BUILD, PROGRAM, run

sys.path.insert(0, os.path.join(package.SOURCE, "tests", "cli"))
sys.argv[1] = PROGRAM
from program import demo_folder, read_csv, write_npy  # pylint: disable=wrong-import-position

EXAMPLES = os.path.join(BUILD, "examples")


class Examples(package.Case):
    def test_intervals(self):
        """What it prints is what the program says of the file that it leaves."""
        demo = demo_folder()
        shutil.copy(os.path.join(demo, "model.onnx"), self.path("model.onnx"))
        shutil.copy(os.path.join(demo, "calibration.csv"), self.path("cal.csv"))
        lower, upper = run(os.path.join(EXAMPLES, "1_intervals"), cwd=self.folder).split()
        write_npy(self.path("row.npy"), [[3.2, 17, 4, 2, 0, 0.7, 1, 12]])
        rows = run(PROGRAM, "predict", self.path("calibrated.onnx"), "--data", self.path("row.npy"),
                   "--quiet").splitlines()
        _, expected_lower, expected_upper = map(float, rows[1].split(","))
        self.assertAlmostEqual(float(lower), expected_lower, delta=1e-3)
        self.assertAlmostEqual(float(upper), expected_upper, delta=1e-3)

    def rows(self, folder, name):
        header, rows = read_csv(os.path.join(folder, name))
        at = header.index("minutes")
        return [row[:at] + row[at + 1:] for row in rows], [row[at] for row in rows]

    def test_your_model_and_a_service(self):
        demo = demo_folder()
        x, y = self.rows(demo, "calibration.csv")
        write_npy(self.path("x.npy"), x)
        write_npy(self.path("y.npy"), y)
        made = run(os.path.join(EXAMPLES, "2_your_onnx_model"), os.path.join(demo, "model.onnx"),
                   self.path("x.npy"), self.path("y.npy"), self.path("c.onnx"))
        self.assertIn("2400 rows, cut at hidden2", made)
        # The program and the example agree to the last bit on the artifact's scores, so they agree
        # on intervals; the service prints six digits of them.
        new, _ = self.rows(demo, "test.csv")
        write_npy(self.path("new.npy"), new[:20])
        expected = run(PROGRAM, "predict", self.path("c.onnx"), "--data", self.path("new.npy"),
                       "--alpha", "0.2", "--quiet", "--threads", 1).splitlines()[1:]
        lines = [" ".join(map(str, row)) for row in new[:20]]
        lines.insert(5, "one 2 3")
        lines.insert(6, "1 2 3")
        done = subprocess.run([os.path.join(EXAMPLES, "3_service"), self.path("c.onnx"), "0.2"],
                              input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True,
                              check=True).stdout.splitlines()
        self.assertEqual(done.pop(5), "error: expected numbers, found 'one 2 3'")
        self.assertTrue(done.pop(5).startswith("error: "))
        self.assertEqual(len(done), 20)
        for ours, theirs in zip(done, expected):
            for a, b in zip(ours.split(), theirs.split(","), strict=True):
                self.assertAlmostEqual(float(a), float(b), delta=1e-4 * (1 + abs(float(b))))

    def test_wrong_files_are_one_line(self):
        done = subprocess.run([os.path.join(EXAMPLES, "3_service"), "none.onnx", "0.1"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    package.main()
