"""The Debian packages: what is in them, what they depend on, and that the unpacked program runs."""
import glob
import os
import shutil
import subprocess
import sys

import package
from package import BUILD, PROGRAM, run


class Deb(package.Case):
    def test_packages(self):
        run("cpack", "-G", "DEB", "--config", BUILD + "/CPackConfig.cmake", "-B", self.folder)
        (program,) = glob.glob(self.path("fcp_*.deb"))
        (shared,) = glob.glob(self.path("libfcp0_*.deb"))
        (development,) = glob.glob(self.path("libfcp-dev_*.deb"))

        depends = run("dpkg-deb", "--field", program, "Depends")
        for library in ("libtorch", "libc6", "zlib1g"):
            self.assertIn(library, depends)
        depends = run("dpkg-deb", "--field", shared, "Depends")
        self.assertIn("libtorch", depends)
        for other in ("sqlite", "libpq", "mpi"):
            self.assertNotIn(other, depends)
        self.assertIn("libfcp0 (= ", run("dpkg-deb", "--field", development, "Depends"))
        self.assertIn("libtorch-dev", run("dpkg-deb", "--field", development, "Recommends"))

        self.check_python(self.path("root3"))

        root = self.path("root")
        run("dpkg-deb", "--extract", program, root)
        self.assertEqual(run(root + "/usr/bin/fcp", "--version"), run(PROGRAM, "--version"))
        self.assertIn("libtorch", run(root + "/usr/libexec/fcp/fcp-core", "--version", "--json"))
        handed_on = subprocess.run([root + "/usr/bin/fcp", "bogus"], text=True, capture_output=True)
        self.assertIn("unknown verb", handed_on.stderr)
        run("dpkg-deb", "--extract", shared, root)
        run("dpkg-deb", "--extract", development, root)
        (name,) = glob.glob(root + "/usr/lib/**/libfcp.so", recursive=True)
        self.assertTrue(os.path.realpath(name).startswith(root))
        self.assertTrue(os.path.isfile(name))
        for file in ("/usr/share/man/man1/fcp.1", "/usr/share/bash-completion/completions/fcp",
                     "/usr/include/fcp/fcp.h"):
            with open(root + file, encoding="utf-8") as opened:
                self.assertTrue(opened.read())
        self.assertEqual(len(glob.glob(root + "/usr/lib/**/fcpConfig.cmake", recursive=True)), 1)


    def check_python(self, root):
        """python3-fcp, where Debian's Python and torch are those of the build."""
        packages = glob.glob(self.path("python3-fcp_*.deb"))
        with open(BUILD + "/CPackConfig.cmake", encoding="utf-8") as file:
            made = "python3-fcp" in file.read()
        self.assertEqual(len(packages), int(made))
        if not made:
            return
        depends = run("dpkg-deb", "--field", packages[0], "Depends")
        self.assertRegex(depends, r"python3 \(>= 3\.\d+~\), python3 \(<< 3\.\d+~\)")
        for library in ("python3-numpy", "python3-torch", "libtorch1"):
            self.assertIn(library, depends)
        run("dpkg-deb", "--raw-extract", packages[0], root)
        for script, command in (("postinst", "py3compile"), ("prerm", "py3clean")):
            with open(f"{root}/DEBIAN/{script}", encoding="utf-8") as file:
                self.assertIn(f"{command} -p python3-fcp", file.read())
        folder = root + "/usr/lib/python3/dist-packages"
        said = run("/usr/bin/python3", "-B", "-c", "import fcp; print(fcp._fcp.__file__, "
                   "fcp.__version__)", env={**os.environ, "PYTHONPATH": folder})
        self.assertRegex(said, f"^{folder}/fcp/torch-[0-9.]+/_fcp.*so [0-9.]+$")


if __name__ == "__main__":
    if not shutil.which("dpkg-deb") or not shutil.which("cpack"):
        print("skipped: there is no dpkg-deb or cpack here")
        sys.exit(77)
    package.main()
