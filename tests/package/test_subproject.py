"""fcp as a part of another project, by FetchContent: the library alone, by the other project's
settings, built and used."""
import os
import sys

import package
from package import PROGRAM, SOURCE, cached, run


class Subproject(package.Case):
    def setUp(self):
        super().setUp()
        self.built = self.path("subproject")
        run("cmake", "-S", os.path.join(SOURCE, "tests", "package", "subproject"), "-B", self.built,
            "-G", "Ninja", "-DFETCHCONTENT_SOURCE_DIR_FCP=" + SOURCE, "-DFCP_UNITY=ON",
            "-DCMAKE_PREFIX_PATH=" + cached("CMAKE_PREFIX_PATH"),
            "-DCMAKE_CXX_COMPILER=" + cached("CMAKE_CXX_COMPILER"),
            "-DCMAKE_CXX_COMPILER_LAUNCHER=" + cached("CMAKE_CXX_COMPILER_LAUNCHER"))

    def test_takes_the_settings_of_the_project(self):
        with open(os.path.join(self.built, "CMakeCache.txt"), encoding="utf-8") as file:
            self.assertRegex(file.read(), "(?m)^CMAKE_BUILD_TYPE:[A-Z]*=$")
        commands = run("ninja", "-C", self.built, "-t", "commands", "all")
        self.assertNotIn("-Werror", commands)
        self.assertRegex(commands, r"-o \S*/libfcp\.so")
        self.assertNotRegex(commands, r"_test\b|apps/cli|sqlite|libmpi")

    def test_builds_and_runs(self):
        """Without optimisation, as the project asks for none: four minutes of processor time."""
        run("cmake", "--build", self.built, "--parallel", os.cpu_count(), "--target", "shortest")
        self.run_shortest(os.path.join(self.built, "shortest"), self.demo(), PROGRAM)


if __name__ == "__main__":
    if cached("FCP_SANITIZED") == "ON":
        print("skipped: a library without sanitizers is built by the other presets")
        sys.exit(77)
    package.main()
