#!/usr/bin/env python3
"""Turns the JSON of `fcp reproduce regression --json` (files on the command line) into the Markdown
table of docs/results.md: mean and sample deviation over seeds."""

import json
import statistics
import sys


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def rows(cells):
    groups = {}
    for cell in cells:
        groups.setdefault((cell["set"], cell["method"]), []).append(cell)
    for (data, method), members in groups.items():
        done = [cell for cell in members if "failed" not in cell]
        failed = len(members) - len(done)
        if not done:
            yield f"| {data} | {method} | – | – | – | – | all {failed} seeds: no M |"
            continue
        detection = [100 * c["detection_coverage"] for c in done if "detection_coverage" in c]
        coverage = [100 * c["coverage"] for c in done]
        length = [float(c["length"]) for c in done]
        seconds = statistics.mean(c["seconds"] for c in done)
        yield (
            f"| {data} | {method} "
            f"| {f'{statistics.mean(detection):.1f}' if detection else ''} "
            f"| {statistics.mean(coverage):.1f} ± {spread(coverage):.1f} "
            f"| {statistics.mean(length):.3f} ± {spread(length):.3f} "
            f"| {seconds:.2f} "
            f"| {f'{failed} of {len(members)} seeds: no M' if failed else ''} |"
        )


def main():
    cells = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            cells += json.load(file)
    print("| set | method | detection % | interval coverage % | length | seconds | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows(cells):
        print(row)


if __name__ == "__main__":
    main()
