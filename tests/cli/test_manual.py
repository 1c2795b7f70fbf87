"""What the program says about itself: completion, manual page, versions and `doctor`. Completion and
page are held against --help, verb by verb and option by option."""
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import unittest

import program


class Manual(program.Case):
    @classmethod
    def setUpClass(cls):  # no demo needed
        cls.help = {"": cls.text("--help")}
        for verb in re.findall(r"^  ([a-z_]+) ", cls.help[""].split("Subcommands:")[1], re.M):
            cls.help[verb] = cls.text(verb, "--help-all")
        assert len(cls.help) > 10, cls.help.keys()
        cls.script = cls.text("completion", "bash")

    @staticmethod
    def text(*arguments, environment=None):
        return subprocess.run([program.PROGRAM, *arguments], env=environment or program.ENVIRONMENT,
                              stdout=subprocess.PIPE, check=True, text=True,
                              timeout=program.LONGEST).stdout

    def options(self, verb):
        names = re.findall(r"(?<![\w-])--[a-z][a-z-]*",
                           "\n".join(re.findall(r"^  (-\S+)", self.help[verb], re.M)))
        self.assertIn("--help", names)
        return names

    def complete(self, *words):
        """What bash offers for the last word, by the script itself."""
        script = self.script + ('COMP_WORDS=(fcp "$@"); COMP_CWORD=$#; _fcp; '
                                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-uc", script, "fcp", *words], check=True,
                              env=program.ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        return done.stdout.split()

    def test_completion_offers_every_verb_and_option(self):
        self.assertEqual(set(self.complete("")),
                         {*self.options(""), "-h", *(verb for verb in self.help if verb)})
        for verb in self.help:
            if verb:
                with self.subTest(verb):
                    offered = self.complete(verb, "--")
                    self.assertEqual(sorted(offered), sorted(self.options(verb)))

    def test_help_shows_common_options_first_and_the_rest_on_request(self):
        for verb in ("calibrate", "fit", "serve", "predict"):
            with self.subTest(verb):
                short, whole = self.text(verb, "--help"), self.help[verb]
                self.assertIn(short, self.text("help", verb))
                self.assertLess(short.count("\n"), 60)
                self.assertNotIn("Running:", short)
                self.assertIn("Running", short.split("More options (")[1].split(": --help-all")[0])
                self.assertIn("\nRunning:\n", whole)
                self.assertNotIn("More options", whole)
                for option in re.findall(r"^  (--[a-z-]+)", short, re.M):
                    self.assertIn(f"\n  {option} ", whole)
        self.assertNotIn("More options", self.text("show", "--help"))

    def test_no_verb_has_options_that_cannot_act_there(self):
        for verb, options in {"show": ("--seed", "--threads", "--device", "--memory"),
                              "split": ("--threads", "--device"),
                              "serve": ("--json", "--force"), "inspect": ("--seed", "--device"),
                              "export": ("--seed", "--device"), "predict": ("--seed",),
                              "fit": ("--images", "--resize", "--crop", "--mean", "--deviation",
                                      "--class-names")}.items():
            for option in options:
                with self.subTest(f"{verb} {option}"):
                    self.assertNotIn(option, self.options(verb))

    def test_completion_of_values(self):
        self.assertEqual(self.complete("cal"), ["calibrate"])
        self.assertEqual(self.complete("calibrate", "m.onnx", "--device", ""),
                         ["cpu", "cuda", "auto"])
        self.assertEqual(self.complete("calibrate", "--score", "feature_s"), ["feature_sampled"])
        self.assertIn("regression", self.complete("reproduce", "r"))
        # fcp fit alone makes cross, cross_labels and the calibration cross.
        self.assertEqual(self.complete("calibrate", "--score", "c"), ["cqr"])
        self.assertEqual(self.complete("calibrate", "--calibration", "c"), [])
        self.assertNotIn("cross", self.help["calibrate"])
        # Nothing of ours, so that bash offers files.
        self.assertEqual(self.complete("calibrate", ""), [])
        self.assertEqual(self.complete("calibrate", "--data", ""), [])

    def test_manual_page_names_every_verb_and_option(self):
        page = self.text("man").replace("\\-", "-")
        sections = dict(re.findall(r"^\.SS fcp (\S+)[^\n]*\n(.*?)(?=^\.S[SH])", page, re.M | re.S))
        sections[""] = page.split(".SH OPTIONS")[1].split(".SH")[0]
        self.assertEqual(set(sections), set(self.help))
        for verb in self.help:
            with self.subTest(verb):
                for option in self.options(verb):
                    if verb and option.startswith("--help"):
                        continue  # told once
                    self.assertRegex(sections[verb], rf"\n\.TP\n[^\n]*\\fB{option}\\fR")

    def test_page_of_commands_is_fresh(self):
        """docs/commands.md is what scripts/commands-page.py makes of this program."""
        root = pathlib.Path(__file__).resolve().parents[2]
        script = runpy.run_path(str(root / "scripts/commands-page.py"))
        self.assertEqual(len(script["verbs"](program.PROGRAM)), len(self.help) - 1)
        self.assertEqual(script["page"](program.PROGRAM),
                         (root / "docs/commands.md").read_text(encoding="utf-8"))

    def test_pages_name_only_options_that_exist(self):
        """Of the program, or of what a page calls beside it: benchmarks and other programs."""
        root = pathlib.Path(__file__).resolve().parents[2]
        option = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
        known = {name for text in self.help.values() for name in option.findall(text)}
        known |= {"--install", "--no-deps",  # cmake, pip
                  "--array", "--additional-suffix", "--filter"}  # sbatch, split
        for script in root.glob("benchmarks/*.py"):
            known |= set(option.findall(script.read_text(encoding="utf-8")))
        pages = [root / "README.md", root / "SECURITY.md", *root.glob("docs/*.md")]
        self.assertGreater(len(pages), 10)
        for page in pages:
            with self.subTest(page.name):
                named = set(option.findall(page.read_text(encoding="utf-8")))
                self.assertEqual(named - known, set())

    def test_manual_page_is_sound(self):
        if shutil.which("groff") is None:
            self.skipTest("there is no groff here")
        done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww"], input=self.text("man"),
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertTrue("Interrupted by SIGINT or SIGTERM" in done.stdout)

    def test_version_with_libraries(self):
        found = json.loads(self.text("--version", "--json"))
        self.assertEqual("fcp " + found["fcp"] + "\n", self.text("--version"))
        for library in ("libtorch", "protobuf", "zlib", "compiler"):
            self.assertRegex(found[library], r"\d+\.\d+")
        # Messages that were generated for this build carry no version.
        self.assertRegex(found["onnx"], r"\d+\.\d+|unknown")
        self.assertIn("mpi", found)
        built_with = {name for name, version in found.items() if version is not None}
        self.assertEqual(set(found["licenses"]),
                         built_with - {"fcp", "license", "build_type", "compiler", "licenses"})
        done = self.run_program("--json", threads=None)
        self.assertEqual(done.returncode, 2)

    def test_doctor(self):
        os.mkdir(self.path("tabular"))
        self.write("tabular/CASP.csv", "")
        environment = dict(program.ENVIRONMENT, FCP_DATA_DIR=self.folder, TMPDIR=self.folder)
        found = json.loads(self.text("doctor", "--json", environment=environment))
        self.assertGreaterEqual(found["threads"], 1)
        self.assertGreater(found["memory"]["total_bytes"], found["memory"]["available_bytes"])
        self.assertEqual(found["data"], {"folder": self.folder, "exists": True, "sets": ["bio"]})
        self.assertEqual((found["temporary"]["folder"], found["temporary"]["writable"]),
                         (self.folder, True))
        self.assertEqual(os.listdir(self.folder), ["tabular"])
        self.assertEqual(set(found["images"]), {"jpeg", "png"})

    def test_doctor_says_what_is_missing(self):
        environment = dict(program.ENVIRONMENT, FCP_DATA_DIR=self.path("none"),
                           TMPDIR=self.path("none"))
        text = self.text("doctor", environment=environment)
        self.assertIn(self.path("none") + ": no such folder", text)


if __name__ == "__main__":
    program.main()
