#!/usr/bin/env python3
"""fcp's surrogate search against eager PyTorch's, in turns on the same machine.

    compare_search.py PROGRAM [--device cuda] [--threads N] [--heads mlp fcn]

PROGRAM is the search_walk that CMake builds. Eager PyTorch runs the paper's Algorithm 2 as a good
user writes it: weights frozen, autograd for the feature alone. Prints the median seconds of both,
how many times faster fcp is, the largest difference of the features found, relative to the largest
way any of them went, and for a few rows the root mean square of the distance of both from the same
search in double precision, relative to the way. On a CUDA device also the seconds of eager PyTorch
with TF32 allowed.
"""

import argparse
import copy
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

# A process that waits for its turn must not spin. Has to be said before OpenMP starts.
os.environ["OMP_WAIT_POLICY"] = "passive"

import numpy as np
import torch
from torch import nn


def make_mlp():
    head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return head, torch.randn(20000, 64).relu(), torch.randn(20000, 1), 200, 0.01


def make_convolutions(width, maps):
    head = nn.Sequential(nn.Conv2d(4 * width, width, 3, padding=1, bias=False),
                         nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 20, 1))
    head[1].running_mean.normal_(0, 0.2)
    head[1].running_var.uniform_(0.8, 1.5)
    return head, torch.randn(maps, 4 * width, 32, 64).relu(), torch.randn(maps, 20, 32, 64), 10, 0.1


EXACT = 4  # rows that are searched in double precision too

# name: (head, features, truth, steps, rate) and repetitions
HEADS = {
    "mlp": (make_mlp, 15),
    "fcn": (lambda: make_convolutions(512, 20), 5),  # the segmentation network's
    "fcn/4": (lambda: make_convolutions(128, 4), 5),
}


def export(head, features, path):
    names = {"input_names": ["feature"], "output_names": ["output"],
             "dynamic_axes": {"feature": {0: "batch"}, "output": {0: "batch"}}}
    if int(torch.__version__.split(".")[0]) >= 2:
        names["dynamo"] = False
    torch.onnx.export(head, features[:1], path, opset_version=13, **names)


def eager_search(head, features, truth, steps, rate):
    u = features.clone().requires_grad_(True)
    for _ in range(steps):
        error = (head(u) - truth).square().sum()
        gradient, = torch.autograd.grad(error, u)
        with torch.no_grad():
            u -= rate * gradient
    if u.is_cuda:
        torch.cuda.synchronize()
    return u.detach()


def compare(name, program, device, threads, folder):
    make, repetitions = HEADS[name]
    torch.manual_seed(0)
    head, features, truth, steps, rate = make()
    head.eval().requires_grad_(False)
    files = [str(folder / part) for part in ("head.onnx", "features.npy", "truth.npy", "found.npy")]
    export(head, features, files[0])
    np.save(files[1], features.numpy())
    np.save(files[2], truth.numpy())
    head, features, truth = head.to(device), features.to(device), truth.to(device)
    process = subprocess.Popen([program, *files[:3], str(steps), str(rate), device, str(threads),
                                files[3]], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{name}: {program} failed")
    theirs = eager_search(head, features, truth, steps, rate)
    ours = torch.from_numpy(np.load(files[3])).to(device)
    way = (theirs - features).abs().max().item()
    difference = (ours - theirs).abs().max().item() / way
    some = slice(0, EXACT)
    exact = eager_search(copy.deepcopy(head).double(), features[some].double(),
                         truth[some].double(), steps, rate)
    size = (exact - features[some]).square().mean().sqrt()
    errors = [((found[some] - exact).square().mean().sqrt() / size).item()
              for found in (ours, theirs)]
    fcp, eager, tf32 = [], [], []
    for _ in range(repetitions):
        process.stdin.write("go\n")
        process.stdin.flush()
        fcp.append(float(process.stdout.readline()))
        start = time.perf_counter()
        eager_search(head, features, truth, steps, rate)
        eager.append(time.perf_counter() - start)
        if device == "cuda":
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
            start = time.perf_counter()
            eager_search(head, features, truth, steps, rate)
            tf32.append(time.perf_counter() - start)
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    process.stdin.close()
    process.wait()
    return (statistics.median(fcp), statistics.median(eager),
            statistics.median(tf32) if tf32 else float("nan"), difference, *errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--heads", nargs="+", default=["mlp", "fcn/4"], choices=list(HEADS))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.allow_tf32 = False
    print(f"{'head':8} {'device':>6} {'fcp s':>10} {'eager s':>10} {'faster':>7} {'TF32 s':>10} "
          f"{'difference':>10} {'error':>9} {'eager':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.heads:
            fcp, eager, tf32, difference, error, their_error = compare(
                name, arguments.program, arguments.device, arguments.threads, pathlib.Path(folder))
            print(f"{name:8} {arguments.device:>6} {fcp:10.5f} {eager:10.5f} {eager / fcp:7.1f} "
                  f"{tf32:10.5f} {difference:10.1e} {error:9.1e} {their_error:9.1e}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
