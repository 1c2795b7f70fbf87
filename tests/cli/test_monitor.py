"""fcp monitor: a log with and without a change, alarms, exit codes, adapting, the report."""
import json

import program
from program import TARGET, read_csv


class Monitor(program.Case):
    def log(self, name, change=None, factor=8.0):
        """The demo's test rows with a column of days; from row `change` on truths are further off."""
        header, rows = read_csv(self.made("test.csv"))
        at = header.index(TARGET)
        lines = [",".join([*header, "day"])]
        for i, row in enumerate(rows):
            if change is not None and i >= change:
                row = [*row]
                row[at] += factor * (1 if i % 2 else -1) * (1 + abs(row[at]))
            lines.append(",".join([*(repr(value) for value in row),
                                   f"2026-{1 + i // 100:02d}-{1 + i % 100 // 4:02d}"]))
        return self.write(name, "\n".join(lines) + "\n")

    def monitor(self, log, *arguments, code=0):
        done = self.run_program("monitor", self.made("calibrated.onnx"), "--data", log, "--target",
                                TARGET, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_quiet_log_raises_nothing(self):
        found = json.loads(self.monitor(self.log("log.csv"), "--json", "--watch", "none").stdout)
        self.assertFalse(found["alarm"])
        self.assertEqual(found["alarms"], [])
        evaluated = json.loads(self.fcp("evaluate", self.made("calibrated.onnx"), "--data",
                                        "log.csv", "--target", TARGET, "--json"))
        self.assertEqual(found["coverage"], evaluated["coverage"])
        self.assertAlmostEqual(found["size"], evaluated["length"], places=4)
        self.assertLess(found["coverage_low"], found["coverage"])

    def test_a_change_is_named_and_ends_with_code_3(self):
        log = self.log("log.csv", change=150)
        done = self.monitor(log, "--time", "day", "--period", "month", "--report", "r.html",
                            "--watch", "none", code=3)
        self.assertRegex(done.stdout, r"ALARM coverage at row \d+ \(2026-\d\d-\d\d\), since about")
        self.assertIn("2026-02", done.stdout)
        with open(self.path("r.html")) as page:
            self.assertIn("Evidence of change", page.read())
        found = json.loads(self.monitor(log, "--json", "--watch", "none", code=3).stdout)
        self.assertTrue(found["alarm"])
        for alarm in found["alarms"]:
            self.assertGreaterEqual(alarm["row"], 150)
            self.assertLess(alarm["row"], 230)

    def test_adapting_wins_coverage_back(self):
        log = self.log("log.csv", change=100, factor=0.5)
        arguments = ("--json", "--watch", "none", "--every", "100", "--adapt")
        for adapt in (("dtaci",), ("aci", "--step", "0.05"), ("dtaci", "--window", "100")):
            done = self.run_program("monitor", self.made("calibrated.onnx"), "--data", log,
                                    "--target", TARGET, *arguments, *adapt)
            found = json.loads(done.stdout)
            self.assertGreater(found["adapted_coverage"], found["coverage"], adapt)
            if "--window" not in adapt:  # where the window has moved on, the level returns
                self.assertLess(min(row["level"] for row in found["timeline"]), 0.1)

    def test_online_evaluation_is_the_replay(self):
        """evaluate --calibration online: the numbers of monitor --adapt, and what they promise."""
        log = self.log("log.csv", change=100, factor=0.5)
        shared = (self.made("calibrated.onnx"), "--data", log, "--target", TARGET, "--json")
        for adapt in (("--adapt", "dtaci"), ("--adapt", "aci", "--step", "0.05", "--window", "90")):
            replayed = json.loads(self.run_program("monitor", *shared, *adapt).stdout)
            found = json.loads(self.fcp("evaluate", *shared, "--calibration", "online", *adapt))
            self.assertEqual(found["online"]["coverage"], replayed["adapted_coverage"])
            self.assertEqual(found["online"]["size"], replayed["adapted_size"])
            self.assertEqual(found["as_filed"]["coverage"], replayed["coverage"])
            self.assertIn("in the long run coverage tends to 90", found["promise"])
            self.assertEqual("for certain" in found["promise"], "aci" in adapt)
        for wrong in (("--adapt", "dtaci"), ("--calibration", "online", "--report", "r.html")):
            self.assertEqual(self.run_program("evaluate", *shared, *wrong).returncode, 2, wrong)

    def test_same_seed_same_report(self):
        log = self.log("log.csv")
        first = self.run_program("monitor", self.made("calibrated.onnx"), "--data", log, "--target",
                                 TARGET, "--json", "--seed", 3)
        again = self.run_program("monitor", self.made("calibrated.onnx"), "--data", log, "--target",
                                 TARGET, "--json", "--seed", 3)
        self.assertEqual(first.stdout, again.stdout)

    def test_what_is_wrong_is_said(self):
        log = self.log("log.csv")
        for arguments, code, message in (
                (("--time", "nowhere"), 1, "nowhere"),
                (("--time", "day", "--period", "hour"), 1, "expected a date that tells the hour"),
                (("--period", "month"), 2, "needs time"),
                (("--watch", "nothing"), 2, "no column 'nothing'"),
                (("--window", "9"), 2, "--window applies only to --adapt"),
                (("--alpha", "2"), 2, "--alpha")):
            with self.subTest(arguments):
                done = self.monitor(log, *arguments, code=code)
                self.assertIn(message, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        rows = self.bytes_of(log).decode().splitlines()
        self.write("late.csv", "\n".join([rows[0], *reversed(rows[1:])]) + "\n")
        self.assertIn("no earlier time", self.monitor("late.csv", "--time", "day", code=1).stderr)


if __name__ == "__main__":
    program.main()
