"""The launcher: what it answers by itself is what fcp-core says, and the rest it hands on."""
import os
import shutil
import subprocess
import tempfile
import unittest

import program
from program import PROGRAM

CORE = PROGRAM + "-core"


def run(path, *arguments, **environment):
    return subprocess.run([path, *arguments], env={**program.ENVIRONMENT, **environment}, text=True,
                          capture_output=True, timeout=program.LONGEST)


class Start(unittest.TestCase):
    def test_answers_are_those_of_the_core(self):
        for words in (["--version"], ["--json", "--version"], ["--help"], ["calibrate", "-h"],
                      ["help", "segment", "evaluate"], ["completion", "fish"], ["man"]):
            with self.subTest(" ".join(words)):
                quick, slow = run(PROGRAM, *words), run(CORE, *words)
                self.assertEqual(quick.stdout, slow.stdout)
                self.assertEqual((quick.returncode, quick.stderr), (0, ""))

    def test_answers_need_no_core(self):
        for words in (["--version"], ["predict", "--help"], ["completion", "bash"]):
            self.assertTrue(self.alone(*words).stdout)

    def alone(self, *words):
        """By a copy that has no fcp-core beside it."""
        folder = tempfile.mkdtemp(prefix="fcp-cli-")
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(PROGRAM, folder)
        return run(os.path.join(folder, "fcp"), *words)

    def test_a_missing_core_is_said(self):
        for words in ([], ["calibrate"], ["--help", "more"]):
            done = self.alone(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Afcp: no fcp-core in [^\n]*\n\Z")

    def test_everything_else_is_handed_on(self):
        for words, code in (([], 2), (["bogus"], 2), (["--help", "more"], 0)):
            with self.subTest(words):
                quick, slow = run(PROGRAM, *words), run(CORE, *words)
                self.assertEqual((quick.stdout, quick.stderr), (slow.stdout, slow.stderr))
                self.assertEqual((quick.returncode, slow.returncode), (code, code))

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=program.LONGEST)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "fcp: cannot write to standard output\n")


if __name__ == "__main__":
    program.main()
