#!/usr/bin/env python3
"""Puts what `fcp reproduce all --out OUT` found into docs/results.md:

    fcp reproduce all --data-dir DIR --seeds 5 --out OUT
    scripts/update_results.py OUT

OUT/results.md takes the place of everything before the chapter that is measured by hand."""

import pathlib
import sys

BY_HAND = "## Measured by hand\n"


def main():
    found = pathlib.Path(sys.argv[1], "results.md").read_text(encoding="utf-8")
    page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "results.md"
    kept = page.read_text(encoding="utf-8").partition(BY_HAND)
    page.write_text(found + kept[1] + kept[2], encoding="utf-8")


if __name__ == "__main__":
    main()
