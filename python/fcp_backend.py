"""The build backend of `pip install .` (pyproject.toml): scikit-build-core's, which compiles for the
torch of the interpreter. That torch is no fixed requirement of the build: where one is installed
that one is taken, where none is pip brings one, and either way the wheel asks for the same minor
version, because libtorch keeps no binary interface beyond it."""

import subprocess
import sys
from typing import List, Optional, Tuple

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403  the hooks that are not changed below

FIND = """
import importlib.util, os, runpy
folder = list(importlib.util.find_spec("torch").submodule_search_locations)[0]
print(os.path.realpath(os.path.join(folder, "lib", "libc10.so")))
print(runpy.run_path(os.path.join(folder, "version.py"))["__version__"])
"""


def installed_torch() -> Optional[Tuple[str, str]]:
    """libc10.so and the version of the interpreter's torch, which CMake finds likewise
    (cmake/FcpPythonTorch.cmake): outside of pip's build environment first."""
    for outside in ("-E", "-B"):
        done = subprocess.run(
            [sys.executable, outside, "-c", FIND], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            library, version = done.stdout.split()
            return library, version
    return None


def get_requires_for_build_wheel(config_settings: Optional[dict] = None) -> List[str]:
    required = list(_build.get_requires_for_build_wheel(config_settings))
    torch = installed_torch()
    if torch is None:
        required.append("torch>=2.7")  # earlier wheels have the C++ ABI from before C++11
    if torch is None or not torch[0].startswith("/usr/lib"):
        required.append("onnx")  # its onnx.proto; Debian's libtorch brings the messages
    return required


get_requires_for_build_editable = get_requires_for_build_wheel


def dynamic_metadata(field: str, settings: Optional[dict] = None) -> List[str]:
    """The dependencies of the wheel."""
    assert field == "dependencies" and not settings
    torch = installed_torch()
    if torch is None:  # the metadata of a source distribution
        return ["numpy", "torch"]
    major, minor = torch[1].split(".")[:2]
    # Debian calls its 1.13.0 a pre-release.
    return ["numpy", f"torch>={major}.{minor}.0a0,<{major}.{int(minor) + 1}.0a0"]
