"""What a wheel is made of, as `cmake --install --component python` lays it out: the package and the
program `fcp` as a script. pip itself, which would compile everything again, is not run. And the
torch that it is built with and runs on, where there are several."""

import ast
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

    def test_the_package_brings_the_library(self):
        program = "import fcp; print(fcp.cmake_prefix_path)"
        said = self.run_command(sys.executable, "-B", "-c", program, PYTHONPATH=self.folder)
        prefix = said.strip()
        self.assertEqual(prefix, self.path("fcp"))
        for name in ("include/fcp/fcp.h", "include/fcp/c_api.h", "lib/cmake/fcp/fcpConfig.cmake",
                     "lib/cmake/fcp/FcpFindTorch.cmake"):  # fmt: skip
            self.assertTrue(os.path.exists(os.path.join(prefix, name)), name)
        pathlib.Path(self.path("CMakeLists.txt")).write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES C CXX)\n"
            f"find_package(fcp REQUIRED)\nadd_executable(user {ROOT}/examples/4_from_c.c)\n"
            "target_link_libraries(user PRIVATE fcp::c)\n", encoding="utf-8",
        )  # fmt: skip
        cmake = os.environ.get("FCP_CMAKE", "cmake")
        self.run_command(cmake, "-S", ".", "-B", "built", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.run_command(cmake, "--build", "built")
        libraries = self.run_command("ldd", "built/user")
        self.assertIn(f"{prefix}/lib/libfcp.so", libraries)

    def test_pip_builds_both(self):
        settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        targets = re.search(r"^cmake.targets = \[(.*)\]", settings, re.MULTILINE)[1]
        self.assertEqual(targets, '"_fcp", "fcp_program", "fcp_library"')
        self.assertIn('install.components = ["python"]', settings)


class Backend(networks.Case):
    """What `pip install .` asks of python/fcp_backend.py, whose interpreter has or has no torch."""

    def asked(self, interpreter):
        package = pathlib.Path(self.path("scikit_build_core"))
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "build.py").write_text(
            "def get_requires_for_build_wheel(config_settings=None): return ['ninja']\n"
        )
        program = (
            "import sys, fcp_backend\n"
            f"sys.executable = {interpreter!r}\n"
            "print(fcp_backend.get_requires_for_build_wheel())\n"
            "print(fcp_backend.dynamic_metadata('dependencies'))\n"
        )
        search = os.pathsep.join([self.folder, str(ROOT / "python")])
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], capture_output=True, text=True, timeout=200,
            env={**os.environ, "PYTHONPATH": search},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return [ast.literal_eval(line) for line in done.stdout.splitlines()]

    def script(self, text):
        path = pathlib.Path(self.path("interpreter"))
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def test_takes_the_torch_that_is_there(self):
        minor = _build.torch_version.split(".")[:2]
        required, dependencies = self.asked(sys.executable)
        self.assertNotIn("torch", " ".join(required))
        self.assertEqual(dependencies[1].split(",")[0], f"torch>={'.'.join(minor)}.0a0")

    def test_of_an_environment(self):
        required, dependencies = self.asked(self.script("printf '/env/libc10.so\\n2.15.0+cu132\\n'"))
        self.assertEqual(required, ["ninja", "onnx"])
        self.assertEqual(dependencies, ["numpy", "torch>=2.15.0a0,<2.16.0a0"])

    def test_brings_a_torch_where_there_is_none(self):
        required, dependencies = self.asked(self.script("exit 1"))
        self.assertEqual(required, ["ninja", "torch>=2.7", "onnx"])
        self.assertEqual(dependencies, ["numpy", "torch"])


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(torches LANGUAGES NONE)
set(CMAKE_SYSTEM_PREFIX_PATH @FOLDER@/system)
list(APPEND CMAKE_MODULE_PATH @ROOT@/cmake)
include(FcpFindTorch)
include(FcpPythonTorch)
fcp_choose_torch()
fcp_python_torch_complaint(complaint)
list(GET fcp_torch_includes 0 includes)
message(STATUS "found ${Torch_VERSION} ${includes} ${fcp_torch_libraries}")
message(STATUS "complaint ${complaint}")
"""
VERSION_HEADER = "torch/csrc/api/include/torch/version.h"
STALE = """//The directory containing a CMake configuration file for Torch.
Torch_DIR:PATH=@FOLDER@/system/share/cmake/Torch
//Path to a library.
c10_LIBRARY:FILEPATH=@FOLDER@/system/lib/libc10.so
"""


class Torches(networks.Case):
    """A torch of the system, and one of the interpreter: empty files in their places."""

    def setUp(self):
        super().setUp()
        for torch, version in (("system", (1, 13, 0)), ("env", (2, 11, 4))):
            numbers = zip(("MAJOR", "MINOR", "PATCH"), version)
            lines = [f"#define TORCH_VERSION_{part} {number}\n" for part, number in numbers]
            for name, text in (
                ("include/ATen/ATen.h", ""),
                (f"include/{VERSION_HEADER}", "".join(lines)),
                ("lib/libtorch.so", ""),
                ("lib/libtorch_cpu.so", ""),
                ("lib/libc10.so", "_ZN3c105ErrorC1ENSt7__cxx1112basic_stringE\n"),
                ("share/cmake/Torch/TorchConfig.cmake", "message(FATAL_ERROR asked)"),
            ):
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

    def configure(self, *options, python="AUTO", fresh=True):
        if fresh:
            shutil.rmtree(self.path("build"), ignore_errors=True)
        done = subprocess.run(
            [os.environ.get("FCP_CMAKE", "cmake"), "-S", "project", "-B", "build",
             f"-DFCP_BUILD_PYTHON={python}", *options],
            cwd=self.folder, capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        if done.returncode != 0:
            return None, " ".join(done.stderr.split())
        found = re.search("^-- found (.*)$", done.stdout, re.MULTILINE)[1].replace(";", " ").split()
        return found, re.search("^-- complaint(.*)$", done.stdout, re.MULTILINE)[1].strip()

    def parts(self, torch):
        version = {"system": "1.13.0", "env": "2.11.4"}[torch]
        places = ["include", "lib/libtorch.so", "lib/libtorch_cpu.so", "lib/libc10.so"]
        return [version] + [self.path(f"{torch}/{place}") for place in places]

    def test_all_of_one_torch(self):
        env, system = self.path("env"), self.path("system")
        of_env = self.python(env, "2.11.4+cu130")
        of_system = f"-DTorch_DIR={system}/share/cmake/Torch"
        for options, python in (
            ([], "AUTO"),
            ([], "ON"),
            ([of_system], "ON"),  # the module needs the interpreter's
            ([f"-DCMAKE_PREFIX_PATH={env}/share/cmake"], "AUTO"),
            ([f"-DTorch_DIR={env}/share/cmake/Torch"], "AUTO"),
        ):
            found, complaint = self.configure(of_env, *options, python=python)
            self.assertEqual((found, complaint), (self.parts("env"), ""), options)
        found, complaint = self.configure(self.python())
        self.assertEqual(found, self.parts("system"))
        self.assertIn("has no torch; install the one that fcp is to run on first", complaint)

    def test_a_build_folder_follows_the_torch(self):
        """What an earlier configuration found does not count, nor what earlier versions kept."""
        env, system = self.path("env"), self.path("system")
        self.configure(self.python(system, "1.13.0a0"))
        cache = pathlib.Path(self.path("build/CMakeCache.txt"))
        stale = STALE.replace("@FOLDER@", self.folder)
        cache.write_text(cache.read_text(encoding="utf-8") + stale, encoding="utf-8")
        found, complaint = self.configure(self.python(env, "2.11.4"), fresh=False)
        self.assertEqual((found, complaint), (self.parts("env"), ""))
        found, complaint = self.configure(self.python(system, "1.13.0a0"), fresh=False)
        self.assertEqual((found, complaint), (self.parts("system"), ""))

    def test_a_module_for_another_torch_is_refused(self):
        env, system = self.path("env"), self.path("system")
        of_system = f"-DTorch_DIR={system}/share/cmake/Torch"
        _, complaint = self.configure(of_system, self.python(env, "2.11.4"))
        self.assertRegex(complaint, "runs torch 2.11.4 in .*/env, but libtorch 1.13.0 in .*/system")
        # Of the same version, but another library.
        _, complaint = self.configure(of_system, self.python(env, "1.13.1"))
        self.assertRegex(complaint, "runs torch 1.13.1 in .*/env, but libtorch 1.13.0 in .*/system")
        # One whose package was left without its headers.
        shutil.rmtree(self.path("env/include"))
        _, complaint = self.configure(self.python(env, "2.11.4"), python="ON")
        self.assertRegex(complaint, "runs torch 2.11.4 in .*/env, but libtorch 1.13.0 in .*/system")

    def test_half_a_torch_is_refused(self):
        of_env = self.python(self.path("env"), "2.11.4")
        os.remove(self.path("env/lib/libtorch_cpu.so"))
        _, error = self.configure(of_env)
        self.assertRegex(error, "/env has the headers of libtorch, but not libtorch_cpu.so and libc10")
        pathlib.Path(self.path("env/lib/libtorch_cpu.so")).touch()
        pathlib.Path(self.path("env/lib/libc10.so")).write_text("_ZN3c105ErrorC1ESs\n")
        _, error = self.configure(of_env)
        self.assertIn("torch 2.11.4 in", error)
        self.assertIn("has the C++ ABI from before C++11", error)
        for torch in ("env", "system"):
            shutil.rmtree(self.path(torch))
        _, error = self.configure(self.python())
        self.assertIn("no libtorch is found; install libtorch-dev, or pip install torch", error)

    def make_package(self):
        """fcp without its module of C++, and a torch that says what a test lets it say."""
        os.mkdir(self.path("torch"))
        os.mkdir(self.path("fcp"))
        package = pathlib.Path(fcp.__file__).parent
        for name in ("__init__.py", "_build.py", "_frames.py"):
            text = (package / name).read_text(encoding="utf-8")
            pathlib.Path(self.path(f"fcp/{name}")).write_text(text, encoding="utf-8")

    def test_import_on_another_torch(self):
        self.make_package()
        for version, abi, complaint in (
            ("9.9.0", True, r"fcp was built for torch .*, this is torch 9\.9\.0: "),
            (_build.torch_version, False, "with another C\\+\\+ ABI than the one in"),
            (None, True, "fcp needs torch .*, and there is none: pip install 'torch=="),
        ):
            torch = pathlib.Path(self.path("torch/__init__.py"))
            torch.write_text(
                f"__version__ = '{version}'\ndef compiled_with_cxx11_abi():\n    return {abi}\n"
                if version else "raise ModuleNotFoundError('none', name='torch')\n",
                encoding="utf-8",
            )  # fmt: skip
            self.imports_end_with(complaint)

    def test_import_without_a_library_of_the_system(self):
        self.make_package()
        pathlib.Path(self.path("torch/__init__.py")).write_text(
            f"__version__ = '{_build.torch_version}'\n"
            "def compiled_with_cxx11_abi():\n    return True\n", encoding="utf-8",
        )  # fmt: skip
        module = pathlib.Path(self.path("fcp/_fcp.py"))
        for said, complaint in (
            ("libxyz.so.3: cannot open shared object file: No such file or directory",
             r"fcp needs libxyz\.so\.3, which this system does not have: install the package"),
            ("undefined symbol: abc", "undefined symbol: abc"),
        ):  # fmt: skip
            module.write_text(f"raise ImportError({said!r})\n", encoding="utf-8")
            self.imports_end_with(complaint)

    def imports_end_with(self, complaint):
        for use in ("fcp.load", "from fcp import wrap", "from fcp import _frames"):
            done = subprocess.run(
                [sys.executable, "-B", "-c", f"import fcp\n{use}"], cwd=self.folder,
                env={**os.environ, "PYTHONPATH": self.folder}, capture_output=True, text=True,
                timeout=200,
            )  # fmt: skip
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], "^ImportError: .*" + complaint)


if __name__ == "__main__":
    networks.main()
