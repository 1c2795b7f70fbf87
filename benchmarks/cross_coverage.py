"""Coverage of `fcp fit --calibration cross` over many draws of few rows.

    python benchmarks/cross_coverage.py build/release/bin/fcp [--draws 500] [--rows 50,100,300]
        [--members 1 --epochs 30]

Each draw is a table of Friedman's first function (five columns that matter, five that do not, normal
noise) with n rows that train and calibrate and 1,000 that test. Without --members and --epochs the
networks are those of `fcp fit` itself, which take much longer. Printed for each n: the mean coverage
over the draws with its standard error, the 5 % and 95 % quantiles over the draws, the mean length,
and what is guaranteed. Only the standard library is needed.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import tempfile

TEST_ROWS = 1000


def write_draw(path, rows, seed):
    chance = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join([f"x{j}" for j in range(10)] + ["y"]) + "\n")
        for _ in range(rows + TEST_ROWS):
            x = [chance.random() for _ in range(10)]
            y = (10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3]
                 + 5 * x[4] + chance.gauss(0, 1))
            file.write(",".join(f"{value:.6f}" for value in [*x, y]) + "\n")


def fit_draw(program, folder, rows, seed, options):
    """Coverage, mean length and guarantee of one draw."""
    path = os.path.join(folder, "draw.csv")
    write_draw(path, rows, 1000 * rows + seed)
    half = rows // 2
    out = subprocess.run(
        [program, "fit", path, "--target", "y", "--out", os.path.join(folder, "draw.onnx"),
         "--calibration", "cross", "--shares", f"{half}:{rows - half}:{TEST_ROWS}", "--seed",
         str(seed), "--quiet", "--json", *options],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(out)
    assert found["training_rows"] == rows, found["training_rows"]
    main = found["evaluation"]
    return main["coverage"], main["length"], found["guaranteed_coverage"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--rows", default="50,100,300")
    parser.add_argument("--members", help="of each ensemble; by default those of fcp fit")
    parser.add_argument("--epochs", help="at most; by default those of fcp fit")
    parser.add_argument("--threads", default="1")
    given = parser.parse_args()
    options = ["--threads", given.threads]
    for name in ("members", "epochs"):
        if getattr(given, name):
            options += ["--" + name, getattr(given, name)]
    print("| rows | draws | coverage % | ± | 5 % of draws below | 95 % below | length | guaranteed % |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in map(int, given.rows.split(",")):
            found = [fit_draw(given.program, folder, rows, seed, options)
                     for seed in range(given.draws)]
            coverage = sorted(one[0] for one in found)
            error = statistics.stdev(coverage) / math.sqrt(len(coverage))
            print(f"| {rows} | {len(found)} | {100 * statistics.mean(coverage):.1f} "
                  f"| {100 * error:.1f} | {100 * coverage[len(coverage) // 20]:.1f} "
                  f"| {100 * coverage[-1 - len(coverage) // 20]:.1f} "
                  f"| {statistics.mean(one[1] for one in found):.3g} "
                  f"| {100 * found[0][2]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
