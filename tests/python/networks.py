"""Networks, rows and the program, for the tests of the Python package.

Untrained networks do: coverage needs exchangeable rows, not good predictions."""

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

import fcp

PROGRAM = os.environ.get("FCP_PROGRAM", "")


def perceptron(inputs, outputs, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 24),
        torch.nn.ReLU(),
        torch.nn.Linear(24, 24),
        torch.nn.ReLU(),
        torch.nn.Linear(24, outputs),
    )


class Branches(torch.nn.Module):
    """Two outputs, called low and high; submodules with names."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.backbone = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU())
        self.low = torch.nn.Linear(16, 1)
        self.width = torch.nn.Linear(16, 1)

    def forward(self, x):
        feature = self.backbone(x)
        low = self.low(feature)
        return low, low + torch.nn.functional.relu(self.width(feature)) + 0.5


def regression_rows(rows, outputs=1, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3)).astype(np.float32)
    noise = random.normal(size=(rows, outputs)) * (0.5 + np.abs(x[:, :1]))
    y = (x.sum(axis=1, keepdims=True) + noise).astype(np.float32)
    return x, (y[:, 0] if outputs == 1 else y)


def label_rows(rows, classes=4, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3)).astype(np.float32)
    return x, random.integers(classes, size=rows)


def model_for(network, inputs=3, **options):
    return fcp.from_torch(network, torch.zeros(1, inputs), **options)


class Case(unittest.TestCase):
    """A test with a folder of its own. One thread, so that the program gives the same bits."""

    def setUp(self):
        torch.set_num_threads(1)
        folder = tempfile.TemporaryDirectory(prefix="fcp-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, *arguments):
        """Runs the program fcp in the folder; what it prints."""
        if not PROGRAM:
            self.skipTest("FCP_PROGRAM does not name the program fcp")
        threads = () if arguments[0] in ("show", "split") else ("--threads", "1")  # these take none
        done = subprocess.run(
            [PROGRAM, *map(str, arguments), *threads],
            cwd=self.folder, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def assert_error(self, pattern):
        """The block fails with an fcp.Error of one line that matches."""
        return self.assertRaisesRegex(fcp.Error, rf"^[^\n]*{pattern}[^\n]*$")


def main():
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
