#!/usr/bin/env python3
"""Prints the tests that the last ctest of a build folder skipped, and holds them against the list
that the repository allows: a test that skips unseen tests nothing.

    scripts/skipped-tests.py [FOLDER] [LIST] [REPORT]   build/release, tests/skipped.txt, tests.xml

Whole tests are told by FOLDER/REPORT, which ctest writes (--output-junit); tests inside of them by
the lines [  SKIPPED ] of googletest and "... skipped" of Python's unittest in ctest's log. The head
of tests/skipped.txt says what a line of the list is. Exit code 1, naming the test, where one was
skipped that the list does not name, or although this machine has what the list says it needs."""
import fnmatch
import functools
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOGLE = re.compile(r"^\[  SKIPPED \] (\w[\w/]*\.[\w/]+)(?: \(|$)")
UNITTEST = re.compile(r"^(test_\w+|setUpClass) \(")  # what happened may stand a line later


def whole_tests(report):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            yield case.get("name")


def tests_inside(log):
    test, name = "", ""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        begins = re.match(r"^\d+/\d+ Testing: (\S+)", line)
        test = begins[1] if begins else test
        google, unittest = GOOGLE.match(line), UNITTEST.match(line)
        name = unittest[1] if unittest else name
        if google:
            yield f"{test}/{google[1]}"
        elif re.search(r"\.\.\. skipped ['\"]", line):
            yield f"{test}/{name}"


def listed_tests(path):
    """The lines of the list: a pattern, and what its tests need."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, need = line.partition(" unless ")
            yield pattern.strip(), need.strip()


class Machine:
    """What this machine and the build have of what tests need."""

    def __init__(self, build):
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        self.variables = dict(re.findall(r"^(\w+):\w+=(.*)$", cache, re.MULTILINE))

    @functools.lru_cache(maxsize=None)
    def has(self, need):
        kind, _, name = need.partition(" ")
        if kind == "module":
            python = self.variables.get("FCP_PYTHON", sys.executable)
            return subprocess.run([python, "-c", f"import {name}"], capture_output=True,
                                  check=False).returncode == 0
        if kind == "program":
            return shutil.which(name) is not None
        if kind == "build":
            value = self.variables.get(name, "")
            return value not in ("", "OFF", "FALSE") and not value.endswith("NOTFOUND")
        return {
            "browser": lambda: any(map(shutil.which, ("chromium", "google-chrome"))),
            "cuda": lambda: os.path.exists("/dev/nvidia0"),
            "data": lambda: bool(os.environ.get("FCP_DATA_DIR")),
            "mount": lambda: subprocess.run(["unshare", "--mount", "true"], capture_output=True,
                                            check=False).returncode == 0,
            "postgresql": lambda: bool(glob.glob("/usr/lib/postgresql/*/bin/initdb")),
            "user": lambda: os.geteuid() != 0,
        }[need]()


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release")
    listed = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "tests/skipped.txt")
    report = build / (sys.argv[3] if len(sys.argv) > 3 else "tests.xml")
    log = build / "Testing/Temporary/LastTest.log"
    for file in (report, log):
        if not file.exists():
            sys.exit(f"{file}: no such file; run `make test` first")
    lines, machine, wrong = list(listed_tests(listed)), Machine(build), []
    skipped = sorted(set(whole_tests(report)) | set(tests_inside(log)))
    for name in skipped:
        needs = [need for pattern, need in lines if fnmatch.fnmatchcase(name, pattern)]
        absent = [need for need in needs if not machine.has(need)]
        print(f"skipped: {name}" + (f" (no {absent[0]})" if absent else ""))
        if not needs:
            wrong.append(f"{listed}: does not allow {name} to be skipped")
        elif not absent:
            wrong.append(f"{listed}: {name} was skipped, although there is {' and '.join(needs)}")
    if not skipped:
        print("skipped: none")
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
