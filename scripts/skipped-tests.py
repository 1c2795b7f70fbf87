#!/usr/bin/env python3
"""Prints the tests that the last ctest of a build folder skipped, and holds them against the list
that the repository allows: a test that skips unseen tests nothing.

    scripts/skipped-tests.py [FOLDER] [LIST] [REPORT]   build/release, tests/skipped.txt, tests.xml

Whole tests are told by FOLDER/REPORT, which ctest writes (--output-junit); tests inside of them by
the lines [  SKIPPED ] of googletest and "... skipped" of Python's unittest in ctest's log. The list
names one per line: a test of ctest, or TEST/NAME inside of one, * for any text. A line that begins
with "?" is of a test that some machines skip and others do not. Exit code 1, with the difference,
where the lists are not equal."""
import fnmatch
import pathlib
import re
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
    """Those that must be skipped, and those that may be."""
    must, may = set(), set()
    for line in path.read_text(encoding="utf-8").splitlines():
        name = line.split("#")[0].strip()
        if name:
            (may if name[0] == "?" else must).add(name.lstrip("? "))
    return must, may


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release")
    listed = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "tests/skipped.txt")
    report = build / (sys.argv[3] if len(sys.argv) > 3 else "tests.xml")
    log = build / "Testing/Temporary/LastTest.log"
    for file in (report, log):
        if not file.exists():
            sys.exit(f"{file}: no such file; run `make test` first")
    found = set(whole_tests(report)) | set(tests_inside(log))
    must, may = listed_tests(listed)
    strange = [name for name in sorted(found)
               if not any(fnmatch.fnmatchcase(name, line) for line in must | may)]
    absent = [line for line in sorted(must)
              if not any(fnmatch.fnmatchcase(name, line) for name in found)]
    for name in sorted(found):
        print("skipped:", name)
    if not found:
        print("skipped: none")
    for name in strange:
        print(f"{listed}: does not allow {name} to be skipped", file=sys.stderr)
    for name in absent:
        print(f"{listed}: {name} was not skipped; take it out", file=sys.stderr)
    sys.exit(bool(strange or absent))


if __name__ == "__main__":
    main()
