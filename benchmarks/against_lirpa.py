#!/usr/bin/env python3
"""fcp's bounds against auto_LiRPA's: widths and processor times on the same networks and balls.

    against_lirpa.py PROGRAM [--methods crown alpha-crown] [--nets acas mnist …] [--repeats 3]
                     [--device cuda] [--rows 256]

PROGRAM is the bound_widths that CMake builds. Networks have random weights (seed 0) and the shapes of
known benchmarks; balls are ℓ∞. One thread each. Prints a table: width is the mean over rows and outputs
of fcp's width over auto_LiRPA's, worst the largest such ratio of a row's mean, time fcp's processor time
over auto_LiRPA's, which is asked for its bounds once its network is built. On a CUDA device times are
those of the clock.
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


def seconds(device):
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def their_bounds(network, center, radius, method, repeats, device):
    network, center = network.to(device), center.to(device)
    module = BoundedModule(network, torch.zeros_like(center), verbose=False, bound_opts={
        "optimize_bound_args": {"iteration": ITERATIONS}}, device=device)
    times = []
    for turn in range(repeats + 1):
        ball = BoundedTensor(center, PerturbationLpNorm(norm=np.inf, eps=radius))
        start = seconds(device)
        lower, upper = module.compute_bounds(x=(ball,), method=THEIRS[method])
        times += [seconds(device) - start] if turn > 0 else []
    return statistics.median(times), lower.detach().cpu().numpy(), upper.detach().cpu().numpy()


def our_bounds(program, folder, radius, method, repeats, device):
    out = folder / "bounds.npy"
    words = [program, folder / "net.onnx", folder / "x.npy", radius, method, ITERATIONS, repeats, out,
             device]
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
    ends = np.load(out)
    return float(done.stdout), ends[0], ends[1]


def compare(program, name, methods, repeats, device, rows):
    make, shape, radius, usual = NETS[name]
    rows = rows or usual
    torch.manual_seed(0)
    network = grown(make()).eval()
    center = torch.randn([rows] + shape)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        torch.onnx.export(network, center, str(folder / "net.onnx"), opset_version=13,
                          input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
                          **({"dynamo": False} if int(torch.__version__.split(".")[0]) >= 2 else {}))
        np.save(folder / "x.npy", center.numpy())
        for method in methods:
            ours = our_bounds(program, folder, radius, method, repeats, device)
            try:
                theirs = their_bounds(network, center, radius, method, repeats, device)
            except Exception as error:
                print(f"| {name} | {method} | auto_LiRPA: {type(error).__name__} "
                      f"{str(error)[:60]} |||||", flush=True)
                continue
            our_width, their_width = ours[2] - ours[1], theirs[2] - theirs[1]
            ratio = our_width / their_width
            print(f"| {name} | {method} | {ratio.mean():.3f} | {ratio.mean(1).max():.3f} "
                  f"| {1e3 * ours[0]:.1f} | {1e3 * theirs[0]:.1f} | {ours[0] / theirs[0]:.2f} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--methods", nargs="*", default=["ibp", "crown", "alpha-crown"],
                        choices=list(THEIRS))
    parser.add_argument("--nets", nargs="*", default=list(NETS), choices=list(NETS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rows", type=int, default=0, help="0: as many as the table says")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    print("| network | method | width | worst | fcp ms | auto_LiRPA ms | time |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.nets:
        compare(arguments.program, name, arguments.methods, arguments.repeats, arguments.device,
                arguments.rows)


if __name__ == "__main__":
    sys.exit(main())
