#!/usr/bin/env python3
"""fcp's Feature CP against eager PyTorch's, in turns on the same machine, weights and data.

    against_pytorch.py PROGRAM [--data DIR] [--threads 1 2] [--repeats 5] [--sets community star bio bike]

PROGRAM is the feature_cp that CMake builds; DIR holds the paper's data sets (FCP_DATA_DIR where it is
not given). Prints, for each job, the median processor time of both (user and system, all threads:
what other work on the machine does hardly matters), their ratio, the ratio of the medians on the wall,
and how far the results are apart. eager_feature_cp.py says what the baselines do.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

# A process that waits for its turn must not spin, and OpenBLAS has threads of its own that PyTorch
# does not count. Both have to be said before the libraries start, so that each number of threads
# gets a process of its own.
os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch
from torch import nn

import eager_feature_cp as eager

RATES = {"community": 0.01, "star": 0.01, "bio": 0.001, "bike": 0.001}  # the official step sizes


class Program:
    """The feature_cp that serves a folder."""

    def __init__(self, path, folder, threads):
        self.folder = folder
        self.process = subprocess.Popen([path, "serve", str(folder), str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, job):
        """Seconds of processor time, seconds on the wall, numbers."""
        self.process.stdin.write(job + "\n")
        self.process.stdin.flush()
        answer = [float(word) for word in self.process.stdout.readline().split()]
        return answer[0], answer[1], answer[2:]

    def result(self, name):
        return torch.from_numpy(np.load(self.folder / f"fcp_{name}.npy"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(work):
    processor, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - processor, time.perf_counter() - wall, result


def compare(program, job, work, repeats):
    """Medians of both, taken in turns after one round to warm up, and the results of both."""
    times = []
    for turn in range(repeats + 1):
        ours, theirs = program.ask(job), timed(work)
        if turn > 0:
            times.append((ours[0], theirs[0], ours[1], theirs[1]))
    return [statistics.median(column) for column in zip(*times)], ours[2], theirs[2]


def show(name, threads, medians, apart):
    ours, theirs, our_wall, their_wall = medians
    print(f"| {name} | {threads} | {1e3 * ours:.2f} | {1e3 * theirs:.1f} | {theirs / ours:.1f} "
          f"| {their_wall / our_wall:.1f} | {apart} |", flush=True)


def farthest(found, expected):
    return (found.double() - expected.double()).abs().max().item()


def run_set(program, name, folder, threads, repeats):
    backbone, head, folds = eager.load(folder)
    rate = RATES[name]
    for way in eager.WAYS:
        medians, ours, theirs = compare(
            program, f"stage {rate}", lambda: eager.stage(backbone, head, folds, rate, way), repeats)
        apart = (f"M {ours[0]:.0f} and {theirs[0]}, radius {abs(ours[1] - theirs[1]):.1e}, "
                 f"intervals {farthest(program.result('intervals'), theirs[3]):.1e}, "
                 f"detected {ours[2]:.0f} and {theirs[2]}")
        show(f"{name}: stage, {way}", threads, medians, apart)
    if name == "bio":
        medians, _, _ = compare(program, "nested",
                                lambda: eager.linearized(backbone, head, folds), repeats)
        show("bio: nested against eager linearized", threads, medians, "")
        medians, ours, theirs = compare(program, "linearized",
                                        lambda: eager.linearized(backbone, head, folds), repeats)
        apart = farthest(program.result("linearized"), theirs[1])
        show("bio: linearized", threads, medians, f"intervals {apart:.1e}")


def perceptron_head():
    torch.manual_seed(0)
    head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    z = torch.relu(torch.randn(20000, 64))
    with torch.no_grad():
        return head, z, head(z) + 0.5 * torch.randn(20000, 1)


def conv_head():
    """The FCN head at a quarter of its width: 512 → 128 3×3, BN, ReLU, 128 → 20 1×1."""
    torch.manual_seed(0)
    head = nn.Sequential(nn.Conv2d(512, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128),
                         nn.ReLU(), nn.Conv2d(128, 20, 1)).eval()
    head[1].running_mean.normal_(0, 0.2)
    head[1].running_var.uniform_(0.8, 1.5)
    return head, torch.relu(torch.randn(2, 512, 32, 64)), torch.randn(2, 20, 32, 64)


SEARCHES = {"20,000 × 64, M = 100": (perceptron_head, 0.01, 100),
            "FCN head at 1/4 width, M = 5": (conv_head, 0.1, 5)}


def run_search(path, title, threads, repeats, root):
    """Algorithm 2 at a fixed number of steps."""
    make, rate, steps = SEARCHES[title]
    head, z, y = make()
    folder = root / make.__name__
    folder.mkdir(exist_ok=True)
    np.save(folder / "z.npy", z.numpy())
    np.save(folder / "y.npy", y.numpy())
    torch.onnx.export(head, z[:2], str(folder / "head.onnx"), opset_version=13, input_names=["z"],
                      output_names=["y"], training=torch.onnx.TrainingMode.PRESERVE,
                      dynamic_axes={"z": {0: "batch"}, "y": {0: "batch"}})
    program = Program(path, folder, threads)

    def careful():
        *_, u = eager.careful_walk(head, z, y, rate, steps)
        return u

    for name, work in (("official", lambda: eager.official_walk(head, z, y, rate, steps)[0]),
                       ("careful", careful)):
        medians, _, theirs = compare(program, f"search {rate} {steps}", work, repeats)
        apart = f"features {farthest(program.result('features'), theirs):.1e}"
        show(f"Algorithm 2, {title}, {name}", threads, medians, apart)
    program.close()


def run_again(threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
    return subprocess.run([sys.executable, *sys.argv, "--threads", str(threads)],
                          env=environment).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--data", default=os.environ.get("FCP_DATA_DIR"))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(RATES))
    parser.add_argument("--folder", type=pathlib.Path, help="where prepared sets are kept")
    parser.add_argument("--without-searches", action="store_true")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    if eager.OFFICIAL not in eager.WAYS:
        print("auto_LiRPA is not installed: without the bounds of the official code", file=sys.stderr)
    if not arguments.data and arguments.sets:
        print("FCP_DATA_DIR is not set: without the paper's data sets", file=sys.stderr)
        arguments.sets = []
    if len(arguments.threads) > 1:
        return max(run_again(threads) for threads in arguments.threads)
    print("| job | threads | fcp ms | eager ms | ratio | ratio on the wall | apart |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.folder or pathlib.Path(scratch)
        root.mkdir(exist_ok=True)
        for name in arguments.sets:
            if not (root / name / "model.onnx").exists():
                (root / name).mkdir(exist_ok=True)
                subprocess.run([arguments.program, "prepare", name, str(root / name), arguments.data],
                               check=True)
        threads, = arguments.threads
        torch.set_num_threads(threads)
        for title in SEARCHES if not arguments.without_searches else ():
            run_search(arguments.program, title, threads, arguments.repeats, root)
        for name in arguments.sets:
            program = Program(arguments.program, root / name, threads)
            run_set(program, name, root / name, threads, arguments.repeats)
            program.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
