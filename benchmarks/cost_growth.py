"""How the cost of fcp grows on the CPU: with the rows of a calibration, with the members of an
ensemble that is trained, and with the number of columns.

    python benchmarks/cost_growth.py build/release/bin/fcp [--folder growth] [--rounds 3]
        [--only rows members features]

needs numpy. Files of random numbers are made in the folder and removed again; 10⁷ rows of 64 columns
take 2.6 GB. Each time is the least processor time of some rounds in which sizes take turns, one
thread, less that of the same command on 1,000 rows (rows, columns) or for no epoch but one
(members): what starting takes is not counted. Memory is the largest resident size of the process.
"""

import argparse
import os
import subprocess

import numpy as np

ROWS = (10**5, 10**6, 10**7)
MEMBERS = (1, 5, 10)
FEATURES = (64, 512, 4096)
NUMBERS = 82_000_000  # of a table, whatever its columns


def run(command):
    """Processor time in seconds and largest memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def least(commands, rounds):
    """Of each command by its name, in turns."""
    found = {}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds, memory = run(command)
            old = found.get(name, (seconds, memory))
            found[name] = min(old[0], seconds), max(old[1], memory)
    return found


class Tables:
    """Rows of random numbers, written piece by piece."""

    def __init__(self, folder):
        self.folder = folder
        self.files = []
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        path = os.path.join(self.folder, name)
        self.files.append(path)
        return path

    def make(self, rows, columns):
        x, y = self.path(f"x_{rows}_{columns}.npy"), self.path(f"y_{rows}_{columns}.npy")
        random = np.random.default_rng(0)
        some = random.normal(size=(min(rows, 10**5), columns)).astype(np.float32)
        answers = (some[:, 0] + np.abs(some[:, 1]) * random.normal(size=len(some))).astype("f4")
        for file, part, shape in ((x, some, (rows, columns)), (y, answers, (rows,))):
            with open(file, "wb") as out:
                header = dict(descr="<f4", fortran_order=False, shape=shape)
                np.lib.format.write_array_header_1_0(out, header)
                for first in range(0, rows, len(part)):
                    out.write(part[: rows - first].tobytes())
        return x, y

    def remove(self):
        for file in self.files:
            if os.path.exists(file):
                os.remove(file)


def network(program, tables, columns):
    x, y = tables.make(1000, columns)
    path = tables.path(f"network_{columns}.onnx")
    run([program, "train", x, "--target", y, "--out", path, "--recipe", "paper", "--epochs", "1",
         "--threads", "1", "--quiet"])  # fmt: skip
    return path


def calibrate(program, tables, model, rows, columns, score):
    x, y = tables.make(rows, columns)
    return [program, "calibrate", model, "--data", x, "--target", y, "--score", score, "--out",
            tables.path("calibrated.onnx"), "--threads", "1", "--quiet",
            "--allow-training-rows"]  # fmt: skip


def grow_rows(program, tables, rounds):
    model = network(program, tables, 64)
    commands = {n: calibrate(program, tables, model, n, 64, "nested") for n in (1000, *ROWS)}
    found = least(commands, rounds)
    start = found[1000][0]
    print("| rows | processor time, s | µs per row | memory, MB |\n|---|---|---|---|")
    for n in ROWS:
        seconds, memory = found[n]
        print(f"| {n} | {seconds:.2f} | {1e6 * (seconds - start) / n:.2f} | {memory:.0f} |")


def grow_members(program, tables, rounds):
    x, y = tables.make(8000, 20)
    commands = {
        (members, epochs): [program, "train", x, "--target", y, "--out", tables.path("m.onnx"),
                            "--members", str(members), "--epochs", str(epochs), "--patience",
                            "1000", "--threads", "1", "--quiet"]
        for members in MEMBERS for epochs in (1, 11)
    }  # fmt: skip
    found = least(commands, rounds)
    print("| members | ten epochs, s | per member, s |\n|---|---|---|")
    for members in MEMBERS:
        seconds = found[members, 11][0] - found[members, 1][0]
        print(f"| {members} | {seconds:.2f} | {seconds / members:.2f} |")


def grow_features(program, tables, rounds):
    commands = {}
    for columns in FEATURES:
        model = network(program, tables, columns)
        for n in (1000, NUMBERS // columns):
            for score in ("nested", "residual"):
                command = calibrate(program, tables, model, n, columns, score)
                commands[columns, n, score] = command
    found = least(commands, rounds)
    print("| columns | `nested`, µs per row | ns per number | `residual`, µs per row |\n"
          "|---|---|---|---|")  # fmt: skip
    for columns in FEATURES:
        rows = NUMBERS // columns
        nested, residual = (
            1e6 * (found[columns, rows, score][0] - found[columns, 1000, score][0]) / (rows - 1000)
            for score in ("nested", "residual")
        )
        print(f"| {columns} | {nested:.2f} | {1e3 * nested / columns:.1f} | {residual:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--folder", default="growth")
    parser.add_argument("--rounds", type=int, default=3)
    parts = dict(rows=grow_rows, members=grow_members, features=grow_features)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    options = parser.parse_args()
    for name in options.only:
        tables = Tables(options.folder)
        try:
            parts[name](options.program, tables, options.rounds)
        finally:
            tables.remove()
        print(flush=True)


if __name__ == "__main__":
    main()
