"""`cmake --install`, and a project outside that builds against it with find_package(fcp)."""
import glob
import os
import re
import subprocess

import package
from package import BUILD, SOURCE, cached, run


class Install(package.Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.path("prefix")
        run("cmake", "--install", BUILD, "--prefix", self.prefix)

    def installed(self, *names):
        return os.path.join(self.prefix, *names)

    def test_outside_project(self):
        built = self.path("outside")
        run("cmake", "-S", os.path.join(SOURCE, "tests", "package", "outside"), "-B", built,
            "-DCMAKE_PREFIX_PATH=" + self.prefix + ";" + cached("CMAKE_PREFIX_PATH"),
            "-DCMAKE_CXX_COMPILER=" + cached("CMAKE_CXX_COMPILER"),
            "-DCMAKE_CXX_FLAGS=-O0 " + cached("CMAKE_CXX_FLAGS"),
            "-DFCP_EXAMPLES=" + os.path.join(SOURCE, "examples"),
            "-DFCP_HEADERS=" + self.installed("include"))
        run("cmake", "--build", built)
        self.check_headers()
        self.check_libraries(built)
        demo = self.demo()
        printed = run(os.path.join(built, "outside"), os.path.join(demo, "model.onnx"), "0.1")
        lower, upper, tensor_lower, tensor_upper = printed.split()
        self.assertEqual((lower, upper), (tensor_lower, tensor_upper))
        self.check_shortest(built, demo)
        self.check_c(built, demo)
        # What the installed program says of the same row.
        with open(self.path("zeros.csv"), "w", encoding="utf-8") as file:
            with open(os.path.join(demo, "test.csv"), encoding="utf-8") as test:
                file.write(test.readline() + ",".join(["0"] * 9) + "\n")
        rows = run(self.installed("bin", "fcp"), "predict", os.path.join(demo, "model.onnx"),
                   "--data", self.path("zeros.csv"), "--quiet", "--threads", 1).splitlines()
        _, wanted_lower, wanted_upper = map(float, rows[1].split(","))
        self.assertAlmostEqual(float(lower), wanted_lower, delta=1e-4)
        self.assertAlmostEqual(float(upper), wanted_upper, delta=1e-4)
        # Nothing of the installed package points back into the build or the sources.
        found = subprocess.run(["grep", "-rlE", f"{BUILD}|{SOURCE}/",
                                os.path.join(self.prefix, "lib"), "--include=*.cmake"],
                               stdout=subprocess.PIPE, text=True, check=False).stdout
        self.assertEqual(found, "")

    def check_headers(self):
        """Only the public headers are there, and all but one bring nothing of libtorch."""
        root = self.installed("include", "fcp")
        found = sorted(os.path.relpath(os.path.join(folder, name), root)
                       for folder, _, names in os.walk(root) for name in names)
        self.assertEqual(found, sorted(os.listdir(os.path.join(SOURCE, "include", "fcp"))))
        source = self.path("only.cc")
        with open(source, "w", encoding="utf-8") as file:
            for name in found:
                file.write(f"#include <fcp/{name}>\n" if name != "tensors.h" else "")
        headers = run(cached("CMAKE_CXX_COMPILER"), "-std=c++20", "-M",
                      "-I" + self.installed("include"), source)
        self.assertNotRegex(headers, "/(torch|ATen|c10)/")

    def check_libraries(self, built):
        """Programs link libfcp alone; what it brings is what predictors run on."""
        (library,) = glob.glob(self.installed("lib", "**", "libfcp.so.0"), recursive=True)
        for program in ("shortest", "from_c"):
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", f"{built}/{program}"))
            found = [name for name in needed if not re.match("lib(stdc|c|m|gcc_s)[.+]|ld-", name)]
            self.assertEqual(found, ["libfcp.so.0"])
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library))
        self.assertTrue([name for name in needed if name.startswith("libtorch_cpu.so")])
        for other in ("sqlite", "mpi", "pq", "ssl", "CLI"):
            self.assertEqual([name for name in needed if name.startswith("lib" + other)], [])

    def check_c(self, built, demo):
        """The program in C says what the one in C++ says."""
        printed = run(os.path.join(built, "from_c"), os.path.join(demo, "model.onnx"), *["0"] * 8)
        point, lower, upper = map(float, printed.split())
        self.assertLess(lower, point)
        self.assertLess(point, upper)

    def check_shortest(self, built, demo):
        """examples/1_intervals.cc."""
        self.run_shortest(os.path.join(built, "shortest"), demo, self.installed("bin", "fcp"))
        self.assertTrue(os.path.exists(self.path("calibrated.onnx")))

    def test_program_loads_what_libtorch_uses(self):
        """Where libraries are left out, every symbol is found without them."""
        core = self.installed("libexec", "fcp", "fcp-core")
        if not os.path.isdir(os.path.join(os.path.dirname(core), "unused")):
            return  # libtorch uses all that it is linked with
        for line in run("ldd", core).splitlines():
            if "libopencv" in line or "libgdal" in line or "Qt5" in line:
                self.assertRegex(line, "=> .*/unused/")
        said = run(core, "--version", env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertTrue(said.startswith("fcp "))

    def test_program_with_page_and_completion(self):
        self.assertTrue(run(self.installed("bin", "fcp"), "--version").startswith("fcp "))
        with open(self.installed("share", "man", "man1", "fcp.1"), encoding="utf-8") as file:
            self.assertTrue(file.read().startswith(".TH FCP 1"))
        completion = self.installed("share", "bash-completion", "completions", "fcp")
        run("bash", "-n", completion)


if __name__ == "__main__":
    package.main()
