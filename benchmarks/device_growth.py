#!/usr/bin/env python3
"""How the time of `fcp calibrate` grows with rows, features and members, on the CPU and on a device.

    device_growth.py PROGRAM [--devices cpu cuda] [--rows 100000 1000000 10000000]
                     [--features 64 512 4096] [--members 1 5 10] [--score nested] [--threads 8]
                     [--repeats 3] [--folder DIR]

PROGRAM is fcp. Rows are random float32 numbers in an .npy file; the network is an ensemble by
`fcp train`, of perceptrons of two hidden layers of 64 units, trained for one epoch, because weights do not
matter to time. Rows grow with the first number of features and of members, the others with the first
number of rows. Devices take turns. A cell is the median of the clock for the whole command less that for
1,000 rows, by row: what starting costs is in the last column. `growth` is the time of a row over that of
the line before: 1.00 is linear in rows.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

FEW = 1000
BLOCK = 65536


def write_rows(folder, rows, features):
    """x and y of so many rows; y is a function of x and noise."""
    random = np.random.default_rng([rows, features])
    x_file, y_file = folder / f"x{rows}x{features}.npy", folder / f"y{rows}x{features}.npy"
    if not y_file.exists():
        x = np.lib.format.open_memmap(x_file, "w+", np.float32, (rows, features))
        y = np.lib.format.open_memmap(y_file, "w+", np.float32, (rows, 1))
        for first in range(0, rows, BLOCK):
            block = random.standard_normal((min(BLOCK, rows - first), features), np.float32)
            x[first:first + BLOCK] = block
            y[first:first + BLOCK, 0] = np.abs(block[:, 0]) + 0.1 * block[:, 1] * block[:, 2]
    return x_file, y_file


def call(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in words)}\n{done.stderr}")


class Calibrations:
    """Commands on files that are made when they are asked for."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder

    def network(self, features, members):
        path = self.folder / f"net{features}x{members}.onnx"
        if not path.exists():
            x, y = write_rows(self.folder, 2 * FEW, features)
            call([self.arguments.program, "train", x, "--target", y, "--members", members, "--layers",
                  "64,64", "--epochs", 1, "--no-heads", "--quiet", "--out", path])
        return path

    def seconds(self, device, rows, features, members):
        x, y = write_rows(self.folder, rows, features)
        words = [self.arguments.program, "calibrate", self.network(features, members), "--data", x,
                 "--target", y, "--score", self.arguments.score, "--device", device, "--threads",
                 self.arguments.threads, "--quiet", "--out", self.folder / "out.onnx"]
        start = time.perf_counter()
        call(words)
        return time.perf_counter() - start

    def line(self, rows, features, members):
        """By device: seconds of the whole command, and of the start."""
        found = {}
        for _ in range(self.arguments.repeats):
            for device in self.arguments.devices:
                for count in (FEW, rows):
                    found.setdefault((device, count), []).append(
                        self.seconds(device, count, features, members))
        return {device: (statistics.median(found[device, rows]), statistics.median(found[device, FEW]))
                for device in self.arguments.devices}


def show(calibrations, lines):
    devices = calibrations.arguments.devices
    before = {}
    for rows, features, members in lines:
        cells, per_row, starts = [], [], []
        for device, (whole, start) in calibrations.line(rows, features, members).items():
            each = max(whole - start, 0) / (rows - FEW)
            growth = f"{each / before[device]:.2f}" if before.get(device) else ""
            before[device] = each
            cells += [f"{whole:.2f}", f"{1e6 * each:.2f}", growth]
            per_row.append(each)
            starts.append(f"{start:.2f}")
        ratio = f"{per_row[0] / per_row[1]:.2f}" if len(devices) > 1 and per_row[1] > 0 else ""
        print("| " + " | ".join([f"{rows:,}", str(features), str(members)] + cells +
                                ([ratio] if len(devices) > 1 else []) + starts) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--devices", nargs="*", default=["cpu"], choices=["cpu", "cuda"])
    parser.add_argument("--rows", type=int, nargs="*", default=[10**5, 10**6, 10**7])
    parser.add_argument("--features", type=int, nargs="*", default=[64, 512, 4096])
    parser.add_argument("--members", type=int, nargs="*", default=[1, 5, 10])
    parser.add_argument("--score", default="nested")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where the rows are written [a temporary folder]")
    arguments = parser.parse_args()
    if min(arguments.rows) <= FEW or min(arguments.features) < 3:
        parser.error(f"expected more than {FEW} rows, and 3 features or more")
    columns = ["rows", "features", "members"]
    for device in arguments.devices:
        columns += [f"{device} s", "µs per row", "growth"]
    columns += ["row, ratio"] * (len(arguments.devices) > 1)
    columns += [f"{device} start s" for device in arguments.devices]
    rows, features, members = arguments.rows, arguments.features, arguments.members
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        calibrations = Calibrations(arguments, pathlib.Path(place))
        for lines in ([(n, features[0], members[0]) for n in rows],
                      [(rows[0], d, members[0]) for d in features],
                      [(rows[0], features[0], m) for m in members]):
            print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
            show(calibrations, lines)
            print()


if __name__ == "__main__":
    sys.exit(main())
