"""The types of the package hold, as mypy reads them; it looks at numpy and torch too, which takes
some seconds."""

import importlib.util
import os
import subprocess
import sys
import unittest

import fcp
import networks


class Types(networks.Case):
    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    def test_types_hold(self):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", self.folder,
             os.path.dirname(fcp.__file__)],
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    networks.main()
