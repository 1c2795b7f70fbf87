#!/usr/bin/env python3
"""fcp's forward against ONNX Runtime's, in turns, one thread each: processor time per row.

    against_onnxruntime.py PROGRAM FOLDER [--networks NAME …] [--batches N …] [--seconds 4]
                           [--profile] [--limit R]

PROGRAM is the forward_rows that CMake builds, FOLDER what forward_networks.py has made. fcp runs
the rows as its predictors do, so that the bits of a row do not depend on the batch; ONNX Runtime
runs them in batches of 1, 2, 4, … rows, and its best one counts. Medians; the outputs are compared
first. With --batches both run that many rows at a time instead. With --profile the operators on which fcp spends its time follow each line. With --limit the
exit code is 1 where a ratio is above it.
"""

import argparse
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnxruntime


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def seconds_per_row(session, inputs, batch):
    """Of whole batches, and at least a few milliseconds of them."""
    rows = len(next(iter(inputs.values())))
    done, start = 0, time.process_time()
    while done < rows or time.process_time() - start < 0.005:
        first = done % rows
        part = {name: values[first:first + batch] for name, values in inputs.items()}
        session.run(None, part)
        done += batch
    return (time.process_time() - start) / done


def batches(rows):
    size = 1
    while size <= rows:
        yield size
        size *= 2


def ask(program, text):
    program.stdin.write(text + "\n")
    program.stdin.flush()
    return program.stdout.readline()


def compare(path, folder, seconds, profile, batch):
    session = open_session(folder / "model.onnx")
    names = [each.name for each in session.get_inputs()]
    files = [str(folder / f"{name}.npy") for name in names]
    inputs = {name: np.load(file) for name, file in zip(names, files)}
    rows = len(inputs[names[0]])
    program = subprocess.Popen([path, str(folder / "model.onnx"), *files], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ours = float(program.stdout.readline() or "nan")
    theirs = float(np.abs(session.run(None, inputs)[0].astype(np.float64)).mean())
    if not abs(ours - theirs) <= 1e-4 * abs(theirs):
        sys.exit(f"{folder.name}: the outputs differ: fcp {ours}, ONNX Runtime {theirs}")
    best = batch or min(batches(rows), key=lambda size: min(seconds_per_row(session, inputs, size)
                                                            for _ in range(2)))
    order = f"batch {batch}" if batch else "go"
    fcp, runtime, start = [], [], time.monotonic()
    while len(fcp) < 3 or time.monotonic() - start < seconds:
        fcp.append(float(ask(program, order)) / rows)
        runtime.append(seconds_per_row(session, inputs, best))
    table = []
    if profile:
        line = ask(program, "profile")
        while line and line != "end\n":
            table.append("    " + line)
            line = program.stdout.readline()
    program.stdin.close()
    program.wait()
    return 1e3 * statistics.median(fcp), 1e3 * statistics.median(runtime), best, table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+")
    parser.add_argument("--batches", nargs="+", type=int, default=[None])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--limit", type=float)
    arguments = parser.parse_args()
    names = arguments.networks or sorted(each.parent.name
                                         for each in arguments.folder.glob("*/model.onnx"))
    worst = 0.0
    print(f"{'network':16} {'fcp ms':>9} {'runtime ms':>10} {'batch':>5} {'ratio':>6}")
    for name, batch in itertools.product(names, arguments.batches):
        fcp, runtime, best, table = compare(arguments.program, arguments.folder / name,
                                            arguments.seconds, arguments.profile, batch)
        worst = max(worst, fcp / runtime)
        print(f"{name:16} {fcp:9.4f} {runtime:10.4f} {best:5} {fcp / runtime:6.2f}")
        print("".join(table), end="", flush=True)
    return 1 if arguments.limit and worst > arguments.limit else 0


if __name__ == "__main__":
    sys.exit(main())
