#!/usr/bin/env python3
"""What .ci/run calls beside the tests: scripts/lint.sh where nothing is to be linted, and
scripts/skipped-tests.py on runs with allowed skips and others. And scripts/make-release.sh, with
scripts/sbom.py, in a repository of a few files."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

# Without what git sets for its hooks, which would lead to another repository.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fcp_scripts_"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_in(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**PLAIN, **environment})


@unittest.skipIf(shutil.which("git") is None, "there is no git here")
class Lint(InFolder):
    def commit(self):
        for command in (("init", "-q"), ("add", "."),
                        ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "Change")):
            done = self.run_in("git", *command)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_commits_without_files_to_lint(self):
        (self.folder / "scripts").mkdir()
        shutil.copy(SCRIPTS / "lint.sh", self.folder / "scripts")
        self.write("docs/a.md", "one\n")
        self.commit()
        for changed in ("docs/a.md", "fcp/nn/ops/op.cc", "fcp/base/CMakeLists.txt"):
            with self.subTest(changed):
                self.write(changed, "two\n")
                self.commit()
                done = self.run_in("scripts/lint.sh")
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (0, "lint: no file without libtorch changed\n", ""))


@unittest.skipIf(shutil.which("git") is None, "there is no git here")
class Release(InFolder):
    def setUp(self):
        super().setUp()
        for name in ("make-release.sh", "sbom.py"):
            (self.folder / "scripts").mkdir(exist_ok=True)
            shutil.copy(SCRIPTS / name, self.folder / "scripts")
        self.write("include/fcp/version.h", '#define FCP_VERSION "1.2.3"\n')
        self.write(".gitignore", "build/\n")
        self.changelog("## 1.2.3 (2026-01-02)", "", "- This.", "", "## 1.2.2", "", "- That.")

    def changelog(self, *lines):
        self.write("CHANGELOG.md", "\n".join(["# Changelog", "", *lines]) + "\n")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "Change")

    def git(self, *arguments):
        if not (self.folder / ".git").exists():
            self.run_in("git", "init", "-q")
        self.run_in("git", *arguments)

    def release(self):
        return self.run_in("scripts/make-release.sh", RELEASE_WHEELS="0", PROGRAM=shutil.which("env"))

    def refused(self, sentence):
        done = self.release()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertFalse((self.folder / "build/release-1.2.3").exists())

    def test_what_is_not_committed_or_dated_is_refused(self):
        self.write("new.txt", "new\n")
        self.refused("the checkout has changes")
        self.changelog("## 1.2.3 (unreleased)", "", "- This.")
        self.refused("begins with '## 1.2.3 (unreleased)', expected '## 1.2.3 (YYYY-MM-DD)'")
        self.changelog("## 1.2.4 (2026-01-02)")
        self.refused("expected '## 1.2.3 (YYYY-MM-DD)'")
        self.write("include/fcp/version.h", "#define FCP_VERSION_MAJOR 1\n")
        self.refused("include/fcp/version.h: expected a line")

    @unittest.skipIf(shutil.which("dpkg-query") is None, "there is no dpkg here")
    def test_one_folder_with_all_of_it(self):
        """The program env stands for a package, which tells what it is linked with."""
        self.write("Makefile", "package:\n\tmkdir -p build/packages root/DEBIAN root/usr/bin\n"
                               "\tcp $(PROGRAM) root/usr/bin\n"
                               "\tprintf 'Package: fcp\\nVersion: 1.2.3\\nArchitecture: all\\n"
                               "Maintainer: t\\nDescription: t\\n' >root/DEBIAN/control\n"
                               "\tdpkg-deb --build root build/packages/fcp_1.2.3_all.deb\n"
                               "\trm -r root\n")
        self.changelog("## 1.2.3 (2026-01-02)", "", "- This.", "", "## 1.2.2", "", "- That.")
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "build/release-1.2.3"
        self.assertEqual(sorted(path.name for path in out.iterdir()),
                         ["NOTES.md", "SHA256SUMS", "fcp-1.2.3.spdx.json", "fcp-1.2.3.tar.gz",
                          "fcp_1.2.3_all.deb"])
        self.assertEqual((out / "NOTES.md").read_text(), "- This.\n\n")
        self.assertEqual(self.run_in("sh", "-c", "cd build/release-1.2.3 && sha256sum -c --quiet "
                                     "SHA256SUMS && wc -l <SHA256SUMS").stdout.strip(), "4")
        bill = json.loads((out / "fcp-1.2.3.spdx.json").read_text())
        packages = {one["SPDXID"]: one for one in bill["packages"]}
        self.assertEqual(len(packages), len(bill["packages"]))
        deb = next(one for one in packages.values() if one["name"].endswith(".deb"))
        digest = hashlib.sha256((out / deb["packageFileName"]).read_bytes()).hexdigest()
        self.assertEqual(deb["checksums"], [{"algorithm": "SHA256", "checksumValue": digest}])
        linked = {packages[one["relatedSpdxElement"]]["name"] for one in bill["relationships"]
                  if (one["spdxElementId"], one["relationshipType"]) == (deb["SPDXID"],
                                                                         "DYNAMIC_LINK")}
        self.assertIn("libc6", linked)
        libc = next(one for one in packages.values() if one["name"] == "libc6")
        self.assertRegex(libc["externalRefs"][0]["referenceLocator"], "^pkg:deb/debian/libc6@[0-9]")
        self.assertEqual(libc["versionInfo"], subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", "libc6"], capture_output=True,
            text=True, check=True).stdout)
        again = self.release()
        self.assertIn("is there already", again.stderr)


class SkippedTests(InFolder):
    def check(self, listed, **environment):
        """One whole test and two inside of others were skipped; the list allows `listed`."""
        self.write("CMakeCache.txt", f"FCP_PYTHON:FILEPATH={sys.executable}\nFCP_MPI:BOOL=OFF\n")
        self.write("tests.xml", '<testsuite><testcase name="whole"><skipped/></testcase>'
                                '<testcase name="run"/></testsuite>')
        self.write("Testing/Temporary/LastTest.log",
                   "1/3 Testing: google\n[  SKIPPED ] Suite.Name (0 ms)\n"
                   "2/3 Testing: python\ntest_it (Case) ... skipped 'why'\n")
        self.write("list.txt", "# what may be skipped\n" + listed)
        return self.run_in(sys.executable, SCRIPTS / "skipped-tests.py", self.folder,
                           self.folder / "list.txt", "tests.xml", **environment)

    def test_allowed(self):
        done = self.check("google/* unless data\nwhole unless build FCP_MPI\n"
                          "python/test_it unless module sys\npython/* unless module fcp_absent\n",
                          FCP_DATA_DIR="")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "skipped: google/Suite.Name (no data)\n"
                                      "skipped: python/test_it (no module fcp_absent)\n"
                                      "skipped: whole (no build FCP_MPI)\n")

    def test_not_in_the_list(self):
        done = self.check("google/* unless data\nwhole unless program fcp_absent\n", FCP_DATA_DIR="")
        self.assertEqual(done.returncode, 1)
        self.assertIn("list.txt: does not allow python/test_it to be skipped\n", done.stderr)

    def test_although_the_machine_has_it(self):
        done = self.check("google/* unless data\nwhole unless build FCP_MPI\n"
                          "python/* unless program fcp_absent\n", FCP_DATA_DIR="/data")
        self.assertEqual(done.returncode, 1)
        self.assertIn("list.txt: google/Suite.Name was skipped, although there is data\n",
                      done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
