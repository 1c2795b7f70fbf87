"""What a wheel is made of, as `cmake --install --component python` lays it out: the package and the
program `fcp` as a script. pip itself, which would compile everything again, is not run. And the
torch that it is built with and runs on, where there are several."""

import ast
import base64
import hashlib
import importlib.machinery
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import fcp
import networks
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
MINOR = ".".join(torch.__version__.split(".")[:2])
MODULE = "_fcp" + importlib.machinery.EXTENSION_SUFFIXES[0]


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
        core = self.path(f"fcp/torch-{MINOR}/fcp-core")
        self.assertEqual(self.run_command(core, "--version"), said)

    def test_the_program_takes_the_torch_beside_it(self):
        """What was compiled for one torch of several, in each place where pip puts programs."""
        site = self.path("lib/python3.99/site-packages")
        os.makedirs(site)
        os.rename(self.path("fcp"), f"{site}/fcp")
        native = f"{site}/fcp/torch-{MINOR}"
        for other in ("0.9", "99.1"):
            os.mkdir(f"{site}/fcp/torch-{other}")
            core = pathlib.Path(f"{site}/fcp/torch-{other}/fcp-core")
            core.write_text(f"#!/bin/sh\necho compiled for {other}\n", encoding="utf-8")
            core.chmod(0o755)
        version = pathlib.Path(site, "torch/version.py")
        version.parent.mkdir()
        for torch_version, said in (
            ("99.1.3+cu990", "compiled for 99.1"),
            ("0.9.0", "compiled for 0.9"),
            (torch.__version__, "fcp " + fcp.__version__),
        ):
            version.write_text(f"__version__ = '{torch_version}'\n", encoding="utf-8")
            done = self.run_command(self.path("bin/fcp"), "--json", "--version")
            self.assertIn(said.split()[-1], done)
        version.write_text("__version__ = '3.5.7'\n", encoding="utf-8")
        self.complains(rf"0\.9, {MINOR}, 99\.1, found torch 3\.5 in \S+/python3\.99/site-packages")
        version.unlink()
        self.assertEqual(self.run_command(self.path("bin/fcp"), "--version", "--json")[0], "{")
        pathlib.Path(native, "linked-with").write_text(self.path("none\n"), encoding="utf-8")
        self.complains(rf"0\.9, {MINOR}, 99\.1, found none in \S+/python3\.99/site-packages")

    def complains(self, pattern):
        done = subprocess.run([self.path("bin/fcp"), "doctor"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"\Afcp: compiled for torch {pattern}\n\Z")

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
        self.assertEqual(prefix, self.path(f"fcp/torch-{MINOR}"))
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
        required, dependencies = self.asked(sys.executable)
        self.assertNotIn("torch", " ".join(required))
        self.assertEqual(dependencies[1].split(",")[0], f"torch>={MINOR}.0a0")

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

    def make_package(self, torch_version, abi=True):
        """fcp without its module of C++, and a torch that says what a test lets it say."""
        package = pathlib.Path(fcp.__file__).parent
        for name in ("torch", f"fcp/torch-{MINOR}", "fcp/torch-99.1"):
            os.makedirs(self.path(name), exist_ok=True)
        for name in ("__init__.py", "_version.py", "_frames.py"):
            text = (package / name).read_text(encoding="utf-8")
            pathlib.Path(self.path(f"fcp/{name}")).write_text(text, encoding="utf-8")
        pathlib.Path(self.path("torch/__init__.py")).write_text(
            f"__version__ = '{torch_version}'\ndef compiled_with_cxx11_abi():\n    return {abi}\n"
            if torch_version else "raise ModuleNotFoundError('none', name='torch')\n",
            encoding="utf-8",
        )  # fmt: skip

    def test_import_on_another_torch(self):
        known = rf"{MINOR}, 99\.1"
        for version, abi, complaint in (
            ("9.9.0", True, rf"fcp is compiled for torch {known}, this is torch 9\.9\.0: pip install "
                            r"'torch==99\.1\.\*', or fcp from its sources"),
            (torch.__version__, False, "with another C\\+\\+ ABI than the one in"),
            (None, True, rf"fcp needs torch {known}, and there is none: pip install 'torch==99"),
        ):  # fmt: skip
            self.make_package(version, abi)
            self.imports_end_with(complaint)

    def test_import_by_another_interpreter(self):
        self.make_package("99.1.0+cu990")
        pathlib.Path(self.path("fcp/torch-99.1/_fcp.cpython-36.so")).touch()
        version = r"\.".join(map(str, sys.version_info[:2]))
        self.imports_end_with(rf"fcp is compiled for _fcp\.cpython-36\.so, this is cpython {version}: ")

    def test_import_takes_what_is_compiled_for_the_torch(self):
        self.make_package("99.1.0+cu990")
        for minor in (MINOR, "99.1"):
            path = pathlib.Path(self.path(f"fcp/torch-{minor}/_fcp.py"))
            path.write_text(f"raise ImportError('compiled for {minor}')\n", encoding="utf-8")
        self.imports_end_with(r"compiled for 99\.1$")

    def test_import_without_a_library_of_the_system(self):
        self.make_package(torch.__version__)
        module = pathlib.Path(self.path(f"fcp/torch-{MINOR}/_fcp.py"))
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


class Merge(networks.Case):
    """scripts/merge-wheels.py, on wheels of a few small files."""

    def wheel(self, folder, minors, **files):
        os.makedirs(self.path(folder), exist_ok=True)
        path = self.path(f"{folder}/fcp-1.0-py3-none-linux_x86_64.whl")
        given = {
            "fcp/__init__.py": "same\n",
            "fcp-1.0.data/scripts/fcp": folder,
            "fcp-1.0.dist-info/METADATA":
                f"Name: fcp\nRequires-Dist: numpy\nRequires-Dist: torch>={minors[0]}.0a0,<9\n\nText\n",
            "fcp-1.0.dist-info/RECORD": "",
            **{f"fcp/torch-{minor}/fcp-core": minor for minor in minors},
            **files,
        }  # fmt: skip
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in given.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = (0o100755 if name.endswith("core") else 0o100644) << 16
                wheel.writestr(info, text)
        return path

    def merge(self, *paths):
        os.makedirs(self.path("out"), exist_ok=True)
        return subprocess.run(
            [sys.executable, "-B", str(ROOT / "scripts/merge-wheels.py"), self.path("out"), *paths],
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip

    def test_each_torch_in_its_folder(self):
        done = self.merge(self.wheel("a", ["2.15"]), self.wheel("b", ["2.12"]))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with zipfile.ZipFile(self.path("out/fcp-1.0-py3-none-linux_x86_64.whl")) as wheel:
            self.assertEqual(wheel.read("fcp/torch-2.12/fcp-core"), b"2.12")
            self.assertEqual(wheel.read("fcp/torch-2.15/fcp-core"), b"2.15")
            self.assertEqual(wheel.getinfo("fcp/torch-2.12/fcp-core").external_attr >> 16, 0o100755)
            metadata = wheel.read("fcp-1.0.dist-info/METADATA").decode()
            record = wheel.read("fcp-1.0.dist-info/RECORD").decode().splitlines()
            names = sorted(wheel.namelist())
        self.assertIn("Requires-Dist: torch>=2.12.0a0,<2.16.0a0,!=2.13.*,!=2.14.*\n", metadata)
        self.assertEqual(sorted(line.split(",")[0] for line in record), names)
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"2.12").digest()).rstrip(b"=").decode()
        self.assertIn(f"fcp/torch-2.12/fcp-core,sha256={digest},4", record)

    def test_what_does_not_fit_is_refused(self):
        first = self.wheel("a", ["2.15"])
        for other, complaint in (
            (self.wheel("b", ["2.15"]), "is for 2.15, expected a torch of its own"),
            (self.wheel("c", ["2.14"], **{"fcp/__init__.py": "other"}), "fcp/__init__.py is not that of"),
            (self.wheel("d", ["3.1"]), "found torch 2.15 and 3.1, expected one major version"),
        ):
            done = self.merge(first, other)
            self.assertEqual(done.returncode, 1)
            self.assertIn(complaint, done.stderr)


if __name__ == "__main__":
    networks.main()
