"""What a wheel is made of, as `cmake --install --component python` lays it out: the package and the
program `fcp` as a script. pip itself, which would compile everything again, is not run. And the
torch that it is built with and runs on, where there are several."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import fcp
import networks
from fcp import _build

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Wheel(networks.Case):
    def setUp(self):
        super().setUp()
        build = os.environ.get("FCP_BUILD")
        if not build:
            self.skipTest("FCP_BUILD does not name the build folder")
        self.run_command(
            os.environ.get("FCP_CMAKE", "cmake"), "--install", build, "--component", "python",
            "--prefix", self.folder,
        )  # fmt: skip

    def run_command(self, *command, **environment):
        done = subprocess.run(
            command, env={**os.environ, **environment}, cwd=self.folder, capture_output=True,
            text=True, timeout=200,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
        return done.stdout

    def test_the_program_runs(self):
        said = self.run_command(self.path("bin/fcp"), "--version")
        self.assertIn(fcp.__version__, said)
        self.assertIn("calibrate", self.run_command(self.path("bin/fcp"), "--help"))
        self.assertEqual(self.run_command(self.path("bin/fcp-core"), "--version"), said)

    def test_the_package_is_whole(self):
        program = "import fcp, os; print(os.path.dirname(fcp.__file__), *fcp.__all__)"
        said = self.run_command(sys.executable, "-B", "-c", program, PYTHONPATH=self.folder)
        self.assertEqual(said.split(), [self.path("fcp"), *fcp.__all__])
        self.assertTrue(os.path.exists(self.path("fcp/py.typed")))
        self.assertEqual(sorted(os.listdir(self.folder)), ["bin", "fcp"])

    def test_pip_builds_both(self):
        settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        targets = re.search(r"^cmake.targets = \[(.*)\]", settings, re.MULTILINE)[1]
        self.assertEqual(targets, '"_fcp", "fcp_program"')
        self.assertIn('install.components = ["python"]', settings)


TORCH_CONFIG = """
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TORCH_INCLUDE_DIRS ${TORCH_INSTALL_PREFIX}/include)
find_package(Caffe2 REQUIRED PATHS ${CMAKE_CURRENT_LIST_DIR}/../Caffe2)
set(TORCH_LIBRARIES torch ${Caffe2_MAIN_LIBS})
find_library(c10_LIBRARY c10 PATHS "${TORCH_INSTALL_PREFIX}/lib")
list(APPEND TORCH_LIBRARIES ${c10_LIBRARY})
find_library(TORCH_LIBRARY torch PATHS "${TORCH_INSTALL_PREFIX}/lib")
"""
CAFFE2_CONFIG = """
add_library(torch SHARED IMPORTED)
set_target_properties(torch PROPERTIES
                      IMPORTED_LOCATION ${CMAKE_CURRENT_LIST_DIR}/../../../lib/libtorch.so)
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(torches LANGUAGES NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
set(CMAKE_SYSTEM_PREFIX_PATH @FOLDER@/system)
list(APPEND CMAKE_MODULE_PATH @ROOT@/cmake)
include(FcpFillTorch)
include(FcpPythonTorch)
if(PLAIN)
  find_package(Torch REQUIRED)
else()
  fcp_python_torch()
  fcp_find_torch(${FCP_PYTHON_TORCH})
endif()
fcp_python_torch_complaint(complaint)
get_target_property(torch torch LOCATION)
message(STATUS "found ${TORCH_INCLUDE_DIRS} ${torch} ${c10_LIBRARY} ${TORCH_LIBRARY}")
message(STATUS "complaint ${complaint}")
"""


class Torches(networks.Case):
    """A torch of the system, and one of the interpreter: files of CMake as libtorch has them, with
    empty libraries."""

    def setUp(self):
        super().setUp()
        for torch, version in (("system", "1.13.0"), ("env", "2.11.0")):
            for name, text in (
                ("share/cmake/Torch/TorchConfig.cmake", TORCH_CONFIG),
                ("share/cmake/Torch/TorchConfigVersion.cmake",
                 f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'),
                ("share/cmake/Caffe2/Caffe2Config.cmake", CAFFE2_CONFIG),
                ("include/ATen/ATen.h", ""),
                ("lib/libtorch.so", ""),
                ("lib/libc10.so", ""),
            ):  # fmt: skip
                path = pathlib.Path(self.folder, torch, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        source = PROJECT.replace("@FOLDER@", self.folder).replace("@ROOT@", str(ROOT))
        os.mkdir(self.path("project"))
        pathlib.Path(self.path("project/CMakeLists.txt")).write_text(source, encoding="utf-8")

    def python(self, *found):
        """An interpreter that answers where its torch is."""
        answer = f"echo '{';'.join(found)}'" if found else "exit 1"
        path = pathlib.Path(self.path("python"))
        path.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
        path.chmod(0o755)
        return f"-DFCP_PYTHON={path}"

    def configure(self, *options, fresh=True):
        if fresh:
            shutil.rmtree(self.path("build"), ignore_errors=True)
        done = subprocess.run(
            [os.environ.get("FCP_CMAKE", "cmake"), "-S", "project", "-B", "build", "-DPLAIN=OFF",
             *options],
            cwd=self.folder, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        if done.returncode != 0:
            return None, " ".join(done.stderr.split())
        found = re.search("^-- found (.*)$", done.stdout, re.MULTILINE)[1].split()
        return found, re.search("^-- complaint(.*)$", done.stdout, re.MULTILINE)[1].strip()

    def parts(self, torch):
        places = ["include", "lib/libtorch.so", "lib/libc10.so", "lib/libtorch.so"]
        return [self.path(f"{torch}/{place}") for place in places]

    def test_all_of_one_torch(self):
        env = self.path("env")
        # What the files of libtorch find by themselves are headers of one and a library of the
        # other.
        prefix = f"-DCMAKE_PREFIX_PATH={env}/share/cmake"
        found, _ = self.configure("-DPLAIN=ON", prefix, self.python(env, "2.11.0"))
        self.assertEqual(found[0], self.path("env/include"))
        self.assertEqual(found[2], self.path("system/lib/libc10.so"))
        for option, of_python, fresh in (
            (prefix, (env, "2.11.0"), False),  # what it remembers does not count
            ("-DMORE=", (env, "2.11.0"), True),
            (f"-DTorch_DIR={env}/share/cmake/Torch", (), True),
        ):
            found, _ = self.configure(option, self.python(*of_python), fresh=fresh)
            self.assertEqual([os.path.realpath(part) for part in found], self.parts("env"))
        found, complaint = self.configure(self.python())
        self.assertEqual([os.path.realpath(part) for part in found], self.parts("system"))
        self.assertIn("has no torch; install the one that fcp is to run on first", complaint)

    def test_a_module_for_another_torch_is_refused(self):
        env, system = self.path("env"), self.path("system")
        self.assertEqual(self.configure(self.python(env, "2.11.0"))[1], "")
        self.assertEqual(self.configure(self.python(system, "1.13.0a0"))[1], "")
        of_system = f"-DTorch_DIR={system}/share/cmake/Torch"
        _, complaint = self.configure(of_system, self.python(env, "2.11.0"))
        self.assertRegex(complaint, "runs torch 2.11.0 in .*/env, but libtorch 1.13.0 of .*/system")
        # Of the same version, but another library.
        _, complaint = self.configure(of_system, self.python(env, "1.13.1"))
        self.assertRegex(complaint, "runs torch 1.13.1 in .*/env, but libtorch 1.13.0 of .*/system")

    def test_files_of_two_torches_are_refused(self):
        config = pathlib.Path(self.path("env/share/cmake/Torch/TorchConfig.cmake"))
        other = f"set(TORCH_LIBRARIES {self.path('system')}/lib/libc10.so)\n"
        config.write_text(TORCH_CONFIG + other, encoding="utf-8")
        _, error = self.configure(self.python(self.path("env"), "2.11.0"))
        self.assertRegex(error, "names the library .*/system/lib/libc10.so, which is not of the")

    def test_import_on_another_torch(self):
        os.mkdir(self.path("torch"))
        os.mkdir(self.path("fcp"))
        package = pathlib.Path(fcp.__file__).parent
        for name in ("__init__.py", "_build.py"):
            text = (package / name).read_text(encoding="utf-8")
            pathlib.Path(self.path(f"fcp/{name}")).write_text(text, encoding="utf-8")
        for version, abi, complaint in (
            ("9.9.0", _build.cxx11_abi, r"fcp was built for torch .*, this is torch 9\.9\.0: "),
            (_build.torch_version, not _build.cxx11_abi, "with another C\\+\\+ ABI than the one in"),
        ):
            pathlib.Path(self.path("torch/__init__.py")).write_text(
                f"__version__ = '{version}'\ndef compiled_with_cxx11_abi():\n    return {abi}\n",
                encoding="utf-8",
            )
            done = subprocess.run(
                [sys.executable, "-B", "-c", "import fcp"], cwd=self.folder, timeout=200,
                env={**os.environ, "PYTHONPATH": self.folder}, capture_output=True, text=True,
            )  # fmt: skip
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], "^ImportError: .*" + complaint)


if __name__ == "__main__":
    networks.main()
