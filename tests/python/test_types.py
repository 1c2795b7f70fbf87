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

    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    def test_what_wrap_gives_has_its_functions(self):
        path = self.path("user.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "from typing import Any\n"
                "import fcp\n"
                "class Slope:\n"
                "    def predict(self, X: Any) -> Any: ...\n"
                "class Chance:\n"
                "    def predict_proba(self, X: Any) -> Any: ...\n"
                "def use(unknown: Any) -> None:\n"
                "    fcp.wrap(unknown).predict_interval([[1.0]], confidence_level=0.9)\n"
                "    fcp.wrap(unknown).predict_set([[1.0]])\n"
                "    fcp.wrap(Slope()).conformalize([[1.0]], [1.0]).predict_interval([[1.0]])\n"
                "    fcp.wrap(Chance()).predict_set([[1.0]], alpha=[0.1, 0.2])\n"
                "    fcp.wrap(Chance()).predict_interval([[1.0]])  # type: ignore[attr-defined]\n"
            )
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
             "--follow-imports=silent", "--cache-dir", self.folder, path],
            capture_output=True, text=True, timeout=600,
            env={**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(fcp.__file__))},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    networks.main()
