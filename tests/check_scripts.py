#!/usr/bin/env python3
"""What .ci/run calls beside the tests: scripts/lint.sh where nothing is to be linted, and
scripts/skipped-tests.py on runs with allowed skips and others."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

# Without what git sets for its hooks, which would lead to another repository.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fcp_scripts_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_in(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**PLAIN, **environment})


@unittest.skipIf(shutil.which("git") is None, "there is no git here")
class Lint(InFolder):
    def commit(self):
        for command in (("init", "-q"), ("add", "."),
                        ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "Change")):
            done = self.run_in("git", *command)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_commits_without_files_to_lint(self):
        (self.folder / "scripts").mkdir()
        shutil.copy(SCRIPTS / "lint.sh", self.folder / "scripts")
        self.write("docs/a.md", "one\n")
        self.commit()
        for changed in ("docs/a.md", "fcp/nn/graph/graph.cc", "fcp/base/CMakeLists.txt"):
            with self.subTest(changed):
                self.write(changed, "two\n")
                self.commit()
                done = self.run_in("scripts/lint.sh")
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (0, "lint: no file without libtorch changed\n", ""))


class SkippedTests(InFolder):
    def check(self, listed, **environment):
        """One whole test and two inside of others were skipped; the list allows `listed`."""
        self.write("CMakeCache.txt", f"FCP_PYTHON:FILEPATH={sys.executable}\nFCP_MPI:BOOL=OFF\n")
        self.write("tests.xml", '<testsuite><testcase name="whole"><skipped/></testcase>'
                                '<testcase name="run"/></testsuite>')
        self.write("Testing/Temporary/LastTest.log",
                   "1/3 Testing: google\n[  SKIPPED ] Suite.Name (0 ms)\n"
                   "2/3 Testing: python\ntest_it (Case) ... skipped 'why'\n")
        self.write("list.txt", "# what may be skipped\n" + listed)
        return self.run_in(sys.executable, SCRIPTS / "skipped-tests.py", self.folder,
                           self.folder / "list.txt", "tests.xml", **environment)

    def test_allowed(self):
        done = self.check("google/* unless data\nwhole unless build FCP_MPI\n"
                          "python/test_it unless module sys\npython/* unless module fcp_absent\n",
                          FCP_DATA_DIR="")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "skipped: google/Suite.Name (no data)\n"
                                      "skipped: python/test_it (no module fcp_absent)\n"
                                      "skipped: whole (no build FCP_MPI)\n")

    def test_not_in_the_list(self):
        done = self.check("google/* unless data\nwhole unless program fcp_absent\n", FCP_DATA_DIR="")
        self.assertEqual(done.returncode, 1)
        self.assertIn("list.txt: does not allow python/test_it to be skipped\n", done.stderr)

    def test_although_the_machine_has_it(self):
        done = self.check("google/* unless data\nwhole unless build FCP_MPI\n"
                          "python/* unless program fcp_absent\n", FCP_DATA_DIR="/data")
        self.assertEqual(done.returncode, 1)
        self.assertIn("list.txt: google/Suite.Name was skipped, although there is data\n",
                      done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
