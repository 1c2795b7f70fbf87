#!/usr/bin/env python3
"""fcp's forward against eager PyTorch's, in turns on the same machine.

    compare_forward.py PROGRAM [--threads N] [--networks mlp resnet50] [--limit 1.10]

PROGRAM is the network_forward that CMake builds. Prints the median seconds of both and their ratio;
with --limit the exit code is 1 where a ratio is above it.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

# A process that waits for its turn must not spin. Has to be said before OpenMP starts.
os.environ["OMP_WAIT_POLICY"] = "passive"

import numpy as np
import torch

import eager_forward

REPETITIONS = {"mlp": 200, "resnet50": 15}


def ask(program, text):
    program.stdin.write(text + "\n")
    program.stdin.flush()
    return float(program.stdout.readline())


def compare(name, path, threads, folder):
    network, x = eager_forward.NETWORKS[name]()
    model, data = str(folder / f"{name}.onnx"), str(folder / f"{name}.npy")
    eager_forward.export(network, x, model)
    np.save(data, x.numpy())
    program = subprocess.Popen([path, model, data, str(threads)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ours = float(program.stdout.readline())
    theirs = eager_forward.mean_absolute_output(network, x)
    if abs(ours - theirs) > 1e-4 * theirs:
        sys.exit(f"{name}: the outputs differ: fcp {ours}, PyTorch {theirs}")
    eager_forward.seconds_of_forward(network, x)
    fcp, eager = [], []
    for _ in range(REPETITIONS[name]):
        fcp.append(ask(program, "go"))
        eager.append(eager_forward.seconds_of_forward(network, x))
    program.stdin.close()
    program.wait()
    return statistics.median(fcp), statistics.median(eager)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--networks", nargs="+", default=list(eager_forward.NETWORKS))
    parser.add_argument("--limit", type=float)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    worst = 0.0
    print(f"{'network':10} {'threads':>7} {'fcp s':>10} {'eager s':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.networks:
            fcp, eager = compare(name, arguments.program, arguments.threads, pathlib.Path(folder))
            worst = max(worst, fcp / eager)
            print(f"{name:10} {arguments.threads:7} {fcp:10.5f} {eager:10.5f} {fcp / eager:6.3f}",
                  flush=True)
    return 1 if arguments.limit and worst > arguments.limit else 0


if __name__ == "__main__":
    sys.exit(main())
