#!/usr/bin/env python3
"""fcp's bounds against auto_LiRPA's: widths and processor times on the same networks and balls.

    against_lirpa.py PROGRAM [--methods crown alpha-crown] [--nets acas mnist …] [--repeats 3]
                     [--device cuda] [--rows 1 256]
    against_lirpa.py PROGRAM --operators [--methods ibp crown]

PROGRAM is the bound_widths that CMake builds. Networks have random weights (seed 0) and the shapes of
known benchmarks; balls are ℓ∞. One thread each, in turns. Prints a table: width is the mean over rows and
outputs of fcp's width over auto_LiRPA's, worst the largest such ratio of a row's mean, faster auto_LiRPA's
processor time over fcp's, where auto_LiRPA is asked for its bounds once its network is built; times are
medians. On a CUDA device times are those of the clock. --rows takes several batch sizes.
With --operators the networks are one operator each between two linear layers, the ball is small (0.1) and
large (1), and the table has the widths alone.
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

os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch import nn
from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm

ITERATIONS = 20
THEIRS = {"ibp": "IBP", "crown-ibp": "CROWN-IBP", "crown": "CROWN", "alpha-crown": "CROWN-Optimized"}


def perceptron(widths, activation):
    layers = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        layers += [nn.Linear(inputs, outputs)] + ([activation()] if i + 2 < len(widths) else [])
    return nn.Sequential(*layers)


def convolutional():
    return nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(16 * 7 * 7, 50), nn.ReLU(), nn.Linear(50, 10))


class Block(nn.Module):
    """A block of a transformer, normalised by hand, which auto_LiRPA reads operator by operator."""

    def __init__(self, tokens=4, width=16):
        super().__init__()
        self.tokens, self.width = tokens, width
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.last = nn.Linear(tokens * width, 1)

    @staticmethod
    def norm(x):
        centered = x - x.mean(-1, keepdim=True)
        return centered / torch.sqrt((centered * centered).mean(-1, keepdim=True) + 1e-5)

    def forward(self, x):
        h = self.norm(x)
        shares = torch.softmax(torch.matmul(self.q(h), self.k(h).transpose(1, 2)) / 4.0, -1)
        x = x + self.o(torch.matmul(shares, self.v(h)))
        x = x + self.down(torch.relu(self.up(self.norm(x))))
        return self.last(torch.flatten(x, 1))


class Single(nn.Module):
    """x → Linear → operator → Linear."""

    def __init__(self, function, pairs=False, outputs=6):
        super().__init__()
        self.function, self.pairs = function, pairs
        self.first, self.second = nn.Linear(4, 6), nn.Linear(4, 6)
        self.last = nn.Linear(outputs, 3)

    def forward(self, x):
        inputs = [self.first(x), self.second(x)] if self.pairs else [self.first(x)]
        return self.last(torch.flatten(self.function(*inputs), 1))


def tokens(x):
    return x.view(-1, 2, 3)


OPERATORS = {
    "Relu": lambda: Single(torch.relu),
    "LeakyRelu": lambda: Single(nn.LeakyReLU(0.1)),
    "Tanh": lambda: Single(torch.tanh),
    "Sigmoid": lambda: Single(torch.sigmoid),
    "Gelu (by Erf)": lambda: Single(lambda x: x * (torch.erf(x * 0.70710678) + 1) * 0.5),
    "Exp": lambda: Single(torch.exp),
    "Log": lambda: Single(lambda x: torch.log(torch.exp(x) + 0.5)),
    "Sqrt": lambda: Single(lambda x: torch.sqrt(torch.exp(x) + 0.5)),
    "Reciprocal": lambda: Single(lambda x: torch.reciprocal(torch.exp(x) + 0.5)),
    "Sin": lambda: Single(torch.sin),
    "Cos": lambda: Single(torch.cos),
    "Pow 2": lambda: Single(lambda x: x ** 2),
    "Abs": lambda: Single(torch.abs),
    "Softmax": lambda: Single(lambda x: torch.softmax(x, -1)),
    "LayerNormalization, by parts": lambda: Single(Block.norm),
    "Mul of two": lambda: Single(lambda x, y: x * y, pairs=True),
    "Div of two": lambda: Single(lambda x, y: x / (torch.exp(y) + 0.5), pairs=True),
    "MatMul of two": lambda: Single(lambda x, y: torch.matmul(tokens(x), tokens(y).transpose(1, 2)),
                                    pairs=True, outputs=4),
    "Max of two": lambda: Single(torch.max, pairs=True),
    "MaxPool": lambda: Single(lambda x: nn.functional.max_pool2d(x.view(-1, 1, 2, 3), (2, 1)), outputs=3),
    "ReduceMax": lambda: Single(lambda x: tokens(x).max(-1)[0], outputs=2),
}


# name: network, shape of a row, radius, rows
NETS = {
    "acas": (lambda: perceptron([5] + [50] * 6 + [5], nn.ReLU), [5], 0.05, 8),
    "mnist": (lambda: perceptron([784] + [256] * 4 + [10], nn.ReLU), [784], 0.02, 2),
    "tanh": (lambda: perceptron([20] + [64] * 3 + [4], nn.Tanh), [20], 0.1, 8),
    "sigmoid": (lambda: perceptron([20] + [64] * 3 + [4], nn.Sigmoid), [20], 0.3, 8),
    "conv": (convolutional, [1, 28, 28], 0.02, 2),
    "block": (Block, [4, 16], 0.01, 4),
}


def grown(network):
    """Weights of a size that keeps activations alive through the layers."""
    for name, weight in network.named_parameters():
        if weight.dim() > 1:
            gain = 1.0 if isinstance(network, Block) else 1.6
            weight.data = torch.randn_like(weight) * gain / weight[0].numel() ** 0.5
        else:
            weight.data = torch.randn_like(weight) * 0.1
    return network


def seconds_on(device):
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def their_bounds(network, center, radius, method, repeats, options, device):
    network, center = network.to(device), center.to(device)
    module = BoundedModule(network, torch.zeros_like(center), verbose=False, device=device,
                           bound_opts={"optimize_bound_args": {"iteration": ITERATIONS}, **options})
    for turn in range(repeats + 1):
        ball = BoundedTensor(center, PerturbationLpNorm(norm=np.inf, eps=radius))
        start = seconds_on(device)
        lower, upper = module.compute_bounds(x=(ball,), method=THEIRS[method])
        seconds = seconds_on(device) - start
        if turn > 0:
            yield seconds, lower.detach().cpu().numpy(), upper.detach().cpu().numpy()


def our_bounds(program, folder, radius, method, device):
    out = folder / "bounds.npy"
    words = [program, folder / "net.onnx", folder / "x.npy", radius, method, ITERATIONS, 3, out, device]
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    ends = np.load(out)
    return float(done.stdout), ends[0], ends[1]


def write_network(network, center, folder):
    network.to("cpu")
    torch.onnx.export(network, center, str(folder / "net.onnx"), opset_version=13,
                      input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
                      **({"dynamo": False} if int(torch.__version__.split(".")[0]) >= 2 else {}))
    np.save(folder / "x.npy", center.numpy())


class Cell:
    """Bounds by both, in turns; or what auto_LiRPA had to say instead."""

    def __init__(self, program, network, center, radius, method, repeats, device="cpu"):
        self.error, times = None, []
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            write_network(network, center, folder)
            # Some networks are too much for its default way of keeping slopes.
            for options in ({}, {"sparse_features_alpha": False}):
                self.error = None
                try:
                    for theirs in their_bounds(network, center, radius, method, repeats, options,
                                               device):
                        ours = our_bounds(program, folder, radius, method, device)
                        times.append((ours[0], theirs[0]))
                    break
                except Exception as error:  # whatever it cannot do
                    self.error = f"{type(error).__name__} {str(error)[:60]}".replace("\n", " ")
        if self.error:
            return
        self.our_time, self.their_time = (statistics.median(each) for each in zip(*times))
        ratio = (ours[2] - ours[1]) / (theirs[2] - theirs[1])
        self.width, self.worst = ratio.mean(), ratio.mean(1).max()


def compare(program, name, methods, repeats, device, rows):
    make, shape, radius, usual = NETS[name]
    torch.manual_seed(0)
    network = grown(make()).eval()
    rows = rows or usual
    center = torch.randn([rows] + shape)
    for method in methods:
        cell = Cell(program, network, center, radius, method, repeats, device)
        if cell.error:
            print(f"| {name} | {rows} | {method} | auto_LiRPA: {cell.error} |||||", flush=True)
            continue
        print(f"| {name} | {rows} | {method} | {cell.width:.3f} | {cell.worst:.3f} "
              f"| {1e3 * cell.our_time:.1f} | {1e3 * cell.their_time:.1f} "
              f"| {cell.their_time / cell.our_time:.2f} |", flush=True)


def compare_operator(program, name, methods):
    words = []
    for radius in (0.1, 1.0):
        for method in methods:
            torch.manual_seed(0)
            network = grown(OPERATORS[name]()).eval()
            cell = Cell(program, network, torch.randn([16, 4]), radius, method, 1)
            words.append(f"{cell.width:.3f}" if not cell.error else f"– ({cell.error.split()[0]})")
    print("| " + " | ".join([name] + words) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--methods", nargs="*", default=["ibp", "crown", "alpha-crown"],
                        choices=list(THEIRS))
    parser.add_argument("--nets", nargs="*", default=list(NETS), choices=list(NETS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rows", type=int, nargs="*", default=[0],
                        help="batch sizes; 0: as many rows as NETS says")
    parser.add_argument("--operators", action="store_true", help="one operator each, widths alone")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    if arguments.operators:
        columns = [f"{method}, {radius}" for radius in (0.1, 1) for method in arguments.methods]
        print("| " + " | ".join(["operator"] + columns) + " |")
        print("|" + "---|" * (1 + len(columns)))
        for name in OPERATORS:
            compare_operator(arguments.program, name, arguments.methods)
        return
    print("| network | rows | method | width | worst | fcp ms | auto_LiRPA ms | faster |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.nets:
        for rows in arguments.rows:
            compare(arguments.program, name, arguments.methods, arguments.repeats,
                    arguments.device, rows)


if __name__ == "__main__":
    sys.exit(main())
