"""Jobs of several ranks under mpirun: python test_mpirun.py PROGRAM check RANKS | failures.

Exits with 77, which ctest shows as skipped, where there is no mpirun or no MPI in the build."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
LONGEST = 300  # seconds for one job, on a busy machine


def job(ranks, *arguments, folder="."):
    command = ["mpirun", "-q", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), PROGRAM]
    return subprocess.run(command + list(arguments), capture_output=True, text=True, cwd=folder,
                          timeout=LONGEST)


def said(done):
    """What fcp wrote on stderr. mpirun's event loop sometimes adds warnings of its own there."""
    return [line for line in done.stderr.splitlines() if line.startswith("fcp: ")]


class Failures(unittest.TestCase):
    def test_a_rank_that_throws_ends_the_job_with_one_line(self):
        for rank in (0, 3):
            done = job(4, "throw", str(rank))
            self.assertEqual(done.returncode, 1)
            self.assertEqual(said(done), [f"fcp: rank {rank} of 4: row 17 of scores.npy is NaN"])
            self.assertEqual(done.stdout, "")

    def test_a_complaint_all_ranks_share_is_heard_once(self):
        done = job(4, "throw_all")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(said(done), ["fcp: rank 0 of 4: scores.npy is missing"])

    def test_bad_usage_has_its_own_exit_code(self):
        done = job(2, "usage", "1")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(said(done), ["fcp: rank 1 of 2: no such option"])

    def test_one_rank_alone_needs_no_number(self):
        done = job(1, "throw", "0")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(said(done), ["fcp: row 17 of scores.npy is NaN"])

    def test_a_rank_that_is_killed_ends_the_job_without_an_artifact(self):
        with tempfile.TemporaryDirectory() as folder:
            done = job(3, "kill", "1", folder=folder)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("artifact", os.listdir(folder))


def main():
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun on this machine")
        return 77
    if subprocess.run([PROGRAM, "mpi"], check=False).returncode != 0:
        print("skipped: fcp was built without MPI")
        return 77
    if sys.argv[2] == "check":
        done = job(sys.argv[3], "check")
        print(done.stdout + done.stderr)
        return 0 if done.stdout == f"checked on {sys.argv[3]} ranks\n" else 1
    sys.argv[1:] = []
    unittest.main(verbosity=2)


if __name__ == "__main__":
    sys.exit(main())
