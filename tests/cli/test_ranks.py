"""Ranks under mpirun share the rows, and the results are those of one process, byte by byte. Also
checkpoints, which a killed calibration goes on from.

Exits with 77, which ctest shows as skipped, where there is no mpirun or no MPI in the build."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import program
import test_labels
from program import TARGET

BATCH = 100  # of the demo's 2,400 rows: 24 batches


def mpirun(ranks, *arguments, quiet=True):
    options = ["-q"] if quiet else []
    return ["mpirun", *options, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks),
            program.PROGRAM, *map(str, arguments), "--threads", "1"]


def run_job(command, folder):
    """Runs mpirun, and takes out of stderr what its event loop sometimes warns of there: what fcp
    writes never begins like that."""
    done = subprocess.run(command, cwd=folder, env=program.ENVIRONMENT, capture_output=True, text=True,
                          timeout=program.LONGEST, check=False)
    done.stderr = re.sub(r"^\[warn\] .*\n", "", done.stderr, flags=re.MULTILINE)
    return done


class Jobs(program.Case):
    def job(self, ranks, *arguments, quiet=True):
        return run_job(mpirun(ranks, *arguments, quiet=quiet), self.folder)

    def calibration(self, out, *arguments, model=None, data=None, target=TARGET, batch=BATCH):
        return ("calibrate", model or self.made("model.onnx"), "--data",
                data or self.made("calibration.csv"), "--target", target, "--out", out, "--batch",
                batch, *program.scored(*arguments))


class Ranks(Jobs):
    def assert_same(self, ranks, *arguments):
        """The artifact of `ranks` ranks is that of one process."""
        self.fcp(*self.calibration("one.onnx", *arguments))
        for count in ranks:
            done = self.job(count, *self.calibration("many.onnx", *arguments))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"),
                             f"{arguments} on {count} ranks")
            self.assertEqual(done.stdout.count("calibrated on"), 1, done.stdout)

    def arrays(self):
        program.write_npy(self.path("x.npy"), self.features("calibration.csv"))
        program.write_npy(self.path("y.npy"), self.truth("calibration.csv"))
        return "x.npy", "y.npy"

    def test_split_on_any_number_of_ranks(self):
        self.assert_same((1, 2, 4, 8))

    def test_the_radii_of_levels_alone(self):
        """No scores are brought together, and the radii are still those of one process."""
        self.assert_same((1, 2, 4, 8), "--levels", "0.05,0.1,0.2")
        self.assert_same((3,), "--levels", "0.01", "--cut", "auto")
        self.fcp(*self.calibration("one.onnx", "--levels", "0.1", batch=2000))
        done = self.job(4, *self.calibration("many.onnx", "--levels", "0.1", batch=2000))
        self.assertEqual(done.returncode, 0, done.stderr)  # two ranks have no batch
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"))

    def test_what_is_chosen_on_a_slice(self):
        self.assert_same((2, 4), "--cut", "auto", "--selection", "0.3")
        self.assert_same((3,), "--score", "surrogate")

    def test_calibrations_that_keep_the_order_of_rows(self):
        self.assert_same((3,), "--calibration", "localized", "--bandwidth", "2")
        program.write_npy(self.path("w.npy"), [1 + i % 7 for i in range(2400)])
        self.assert_same((4,), "--calibration", "weighted", "--weights", "w.npy")
        program.write_npy(self.path("g.npy"), [i % 3 for i in range(2400)])
        self.assert_same((2,), "--calibration", "grouped", "--group", "g.npy")

    def test_a_range_of_an_array_for_each_rank(self):
        x, y = self.arrays()
        self.fcp(*self.calibration("one.onnx", data=x, target=y))
        done = self.job(4, *self.calibration("many.onnx", data=x, target=y))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"))

    def test_rows_in_several_files(self):
        """Shards are one list of rows, and batches span them: the scores are those of one file."""
        x, y = self.features("calibration.csv"), self.truth("calibration.csv")
        ends = (0, 130, 1999, 2400)
        for i, (begin, end) in enumerate(zip(ends, ends[1:])):
            program.write_npy(self.path(f"x{i}.npy"), x[begin:end])
            program.write_npy(self.path(f"y{i}.npy"), y[begin:end])
        names = ("x0.npy,x1.npy,x2.npy", "y0.npy,y1.npy,y2.npy")
        self.fcp(*self.calibration("one.onnx", data=names[0], target=names[1]))
        done = self.job(2, *self.calibration("many.onnx", data=names[0], target=names[1]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"))
        self.arrays()
        self.fcp(*self.calibration("whole.onnx", data="x.npy", target="y.npy"))
        command = ("check", "--data", "x.npy", "--target", "y.npy")
        self.assertEqual(self.fcp(command[0], "whole.onnx", *command[1:]),
                         self.fcp(command[0], "one.onnx", *command[1:]))

    def test_evaluation(self):
        self.calibrate("c.onnx")
        command = ("evaluate", "c.onnx", "--data", self.made("test.csv"), "--target", TARGET,
                   "--batch", BATCH, "--report", "r.html")
        for form in ((), ("--json",)):
            one = self.fcp(*command, *form)
            page = self.bytes_of("r.html")
            for count in (2, 4, 8):
                os.remove(self.path("r.html"))
                done = self.job(count, *command, *form)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, one)
                self.assertEqual(self.bytes_of("r.html"), page)

    def test_images_and_their_labels(self):
        """Sets, and the examples of the report with their pictures."""
        self.write("net.onnx", test_labels.colour_network())
        rng = random.Random(3)
        for kind in range(3):
            os.makedirs(self.path(f"photos/{kind}"))
        for i in range(90):
            colour = [rng.randrange(256) for _ in range(3)]
            kind = colour.index(max(colour)) if rng.random() < 0.8 else rng.randrange(3)
            self.write(f"photos/{kind}/{i}.png", test_labels.png([[colour] * 6] * 6))
        images = ("--resize", 0, "--crop", 0, "--mean", "0,0,0", "--deviation", "1,1,1")
        calibration = ("calibrate", "net.onnx", "--data", "photos", "--score", "feature_margin",
                       "--rank-weight", 0, "--batch", 7, *images)
        self.fcp(*calibration, "--out", "one.onnx")
        done = self.job(3, *calibration, "--out", "many.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"))
        evaluation = ("evaluate", "one.onnx", "--data", "photos", "--batch", 7, "--json")
        one = self.fcp(*evaluation, "--report", "one.html")
        done = self.job(3, *evaluation, "--report", "many.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, one)
        self.assertEqual(self.bytes_of("one.html"), self.bytes_of("many.html"))
        self.assertIn(b"data:image/png", self.bytes_of("one.html"))

    def test_cells_of_experiments(self):
        command = ("reproduce", "regression", "--quick", "--epochs", "1", "--out")
        self.fcp(*command, "one")
        done = self.job(3, *command, "many")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("regression.csv", "results.md"):
            self.assertEqual(self.bytes_of(f"one/{name}"), self.bytes_of(f"many/{name}"))

    def test_more_ranks_than_batches(self):
        self.fcp(*self.calibration("one.onnx", batch=2000))
        done = self.job(4, *self.calibration("many.onnx", batch=2000))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("many.onnx"))

    def test_an_error_on_one_rank_ends_the_job(self):
        x, y = self.arrays()
        answers = self.truth("calibration.csv")
        answers[550] = float("nan")  # in batch 5, which rank 1 reads; rank 0 looks at the first rows
        program.write_npy(self.path(y), answers)
        done = self.job(4, *self.calibration("c.onnx", data=x, target=y))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "fcp: rank 1 of 4: y.npy: row 550, element 0 (both from 0): "
                                      "found NaN, expected a number\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["x.npy", "y.npy"])

    def test_a_killed_rank_ends_the_job_without_an_artifact(self):
        command = mpirun(3, *self.calibration("c.onnx", "--score", "nested", "--bound", "alpha-crown",
                                              "--iterations", "500"), quiet=False)
        process = subprocess.Popen(command, cwd=self.folder, env=program.ENVIRONMENT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        victim = self.rank_of(process.pid, 2)
        self.wait_for_work(victim)
        os.kill(victim, signal.SIGKILL)
        output, messages = process.communicate(timeout=program.LONGEST)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(output, "")
        self.assertRegex(messages, r"rank 2 .*exited on signal 9")
        self.assertEqual(os.listdir(self.folder), [])

    def rank_of(self, starter, rank):
        """The process that is this rank of the job."""
        mark = f"OMPI_COMM_WORLD_RANK={rank}".encode()
        for _ in range(600):
            for name in os.listdir("/proc"):
                try:
                    with open(f"/proc/{name}/status", encoding="utf-8") as file:
                        parent = re.search(r"PPid:\s*(\d+)", file.read()).group(1)
                    with open(f"/proc/{name}/environ", "rb") as file:
                        marks = file.read().split(b"\0")
                except (OSError, AttributeError):
                    continue
                if int(parent) == starter and mark in marks:
                    return int(name)
            time.sleep(0.1)
        self.fail("the rank never started")

    def wait_for_work(self, process):
        """Until it has computed for a second, of its own time: it is beyond MPI_Init then."""
        ticks = os.sysconf("SC_CLK_TCK")
        used = 0
        while used < ticks:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                used = int(file.read().rsplit(")", 1)[1].split()[11])
            time.sleep(0.02)

    def test_verbs_that_are_not_shared_say_so(self):
        self.calibrate("c.onnx")
        done = self.job(2, "predict", "c.onnx", "--data", self.made("test.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("predict", done.stderr)
        self.assertEqual(done.stdout, "")


    def test_bad_usage_of_one_rank_alone_ends_the_job(self):
        """Commands may differ from rank to rank; the wrong one waited for the others for ever."""
        good = [*map(str, self.calibration("c.onnx")), "--threads", "1"]
        command = ["mpirun", "-q", "--oversubscribe", "--allow-run-as-root", "-n", "1",
                   program.PROGRAM, *good, ":", "-n", "1", program.PROGRAM, "calibrate", "--bogus"]
        done = run_job(command, self.folder)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("fcp: rank 1 of 2: ", done.stderr)

    def test_bad_usage_is_said_once(self):
        for arguments, message in (
                (("calibrat", "m.onnx"), "unknown verb 'calibrat'; did you mean calibrate?"),
                (("calibrate", "m.onnx", "--data", "x.csv", "--out", "c.onnx", "--colour", "red"),
                 "The following arguments were not expected: red --colour; see --help"),
                (("evaluate", "--data", "x.csv"), "model is required; see --help"),
                (("predict", "c.onnx", "--data", "x.csv"), "'predict' is for one process; ")):
            with self.subTest(arguments):
                done = self.job(4, *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"fcp: rank 0 of 4: {message}", done.stderr)
        for verb in ("calibrate", "--help"):
            done = self.job(4, verb, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stdout.count("Usage:"), 1)


class Checkpoints(Jobs):
    SLOW = ("--score", "nested", "--bound", "crown")

    def killed_after(self, records, command):
        """Runs a command until its checkpoint has at least so many batches, then kills it."""
        process = subprocess.Popen(command, cwd=self.folder, env=program.ENVIRONMENT,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = self.path("k.checkpoint")
        while process.poll() is None:
            # A batch has two doubles per row, and a last one may be written in part.
            if os.path.exists(path) and os.path.getsize(path) > (records + 1) * 16 * BATCH:
                break
        process.kill()
        process.wait()

    def interrupted(self, *arguments):
        """An artifact, and the checkpoint of the same calibration killed on the way. On a busy
        machine it may be done before this process gets to kill it; then once more."""
        self.fcp(*self.calibration("one.onnx", *self.SLOW, *arguments))
        command = [program.PROGRAM,
                   *map(str, self.calibration("k.onnx", *self.SLOW, *arguments, "--checkpoint",
                                              "k.checkpoint", "--threads", "1"))]
        for _ in range(20):
            self.killed_after(3, command)
            if not os.path.exists(self.path("k.onnx")):
                return
            os.remove(self.path("k.onnx"))
        self.fail("it was always done before it could be killed")

    def test_goes_on_to_the_same_artifact(self):
        self.interrupted()
        done = self.run_program(*self.calibration("k.onnx", *self.SLOW, "--checkpoint",
                                                  "k.checkpoint"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"k.checkpoint: goes on after \d+ batches")
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("k.onnx"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["k.onnx", "one.onnx"])

    def test_goes_on_with_another_number_of_ranks(self):
        self.interrupted()
        done = self.job(3, *self.calibration("k.onnx", *self.SLOW, "--checkpoint", "k.checkpoint"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("k.onnx"))

    def test_levels_go_on_too(self):
        """Rank 0 has the scores of the batches before, every rank those it makes now."""
        levels = ("--levels", "0.05,0.1,0.2")
        for ranks in (1, 3):
            self.interrupted(*levels)
            done = self.job(ranks, *self.calibration("k.onnx", *self.SLOW, *levels, "--checkpoint",
                                                     "k.checkpoint"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"goes on after \d+ batches")
            self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("k.onnx"))
            os.remove(self.path("k.onnx"))

    def test_refuses_other_options_and_other_rows(self):
        self.interrupted()
        other = self.run_program(*self.calibration("k.onnx", *self.SLOW, "--floor", "0.1",
                                                   "--checkpoint", "k.checkpoint"))
        self.assertEqual(other.returncode, 1)
        self.assertRegex(other.stderr, r"^fcp: k.checkpoint: is the checkpoint of other work, "
                                       r"whose hash is [0-9a-f]{64}; .* is [0-9a-f]{64}\n$")
        with open(self.made("calibration.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        lines[1 + BATCH] = lines[BATCH]  # row 100, the first of batch 1
        self.write("changed.csv", "\n".join(lines) + "\n")
        changed = self.run_program(*self.calibration("k.onnx", *self.SLOW, "--checkpoint",
                                                     "k.checkpoint", data="changed.csv"))
        self.assertEqual(changed.returncode, 1)
        self.assertRegex(changed.stderr, r"fcp: k.checkpoint: is of other rows: those of "
                                         r"changed.csv from row 100 ")
        self.assertFalse(os.path.exists(self.path("k.onnx")))


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        skip("there is no mpirun on this machine")
    tried = subprocess.run(mpirun(2, "calibrate", "none.onnx", "--data", "none.csv", "--target", "y",
                                  "--out", "none"), capture_output=True, text=True, check=False)
    if "built without MPI" in tried.stderr:
        skip("fcp was built without MPI")
    program.main()
