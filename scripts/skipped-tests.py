#!/usr/bin/env python3
"""Prints the tests that the last ctest of a build folder skipped, and holds them against the list
that the repository allows: a test that skips unseen tests nothing.

    scripts/skipped-tests.py [FOLDER] [LIST]        build/release, tests/skipped.txt

Whole tests are told by FOLDER/tests.xml, which `make test` has ctest write (--output-junit); tests
inside of them by the lines [  SKIPPED ] of googletest and "... skipped" of Python's unittest in
ctest's log. Exit code 1, with the difference, where the lists are not equal."""
import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSIDE = (re.compile(r"^\[  SKIPPED \] (\w[\w/]*\.[\w/]+)(?: \(|$)"),
          re.compile(r"^(test_\w+) \(.*\.\.\. skipped "))


def whole_tests(report):
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            yield case.get("name")


def tests_inside(log):
    test = ""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        begins = re.match(r"^\d+/\d+ Testing: (\S+)", line)
        test = begins[1] if begins else test
        for pattern in INSIDE:
            found = pattern.match(line)
            if found:
                yield f"{test}/{found[1]}"


def allowed_tests(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        name = line.split("#")[0].strip()
        if name:
            yield name


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release")
    listed = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "tests/skipped.txt")
    report, log = build / "tests.xml", build / "Testing/Temporary/LastTest.log"
    for file in (report, log):
        if not file.exists():
            sys.exit(f"{file}: no such file; run `make test` first")
    found = set(whole_tests(report)) | set(tests_inside(log))
    allowed = set(allowed_tests(listed))
    for name in sorted(found):
        print("skipped:", name)
    if not found:
        print("skipped: none")
    for name in sorted(found - allowed):
        print(f"{listed}: does not allow {name} to be skipped", file=sys.stderr)
    for name in sorted(allowed - found):
        print(f"{listed}: {name} was not skipped; take it out", file=sys.stderr)
    sys.exit(found != allowed)


if __name__ == "__main__":
    main()
