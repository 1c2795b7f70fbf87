"""The option table as the program and Python show it: the same options, defaults and sentences.

Each question to the program is a process, half a second. The fast tests ask it about some options
(`Options`), the slow ones about all (`Every`): python test_options.py [CLASS]."""

import inspect
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import fcp
from fcp import _fcp
from fcp._parameters import parameter_name
from networks import model_for, perceptron

PROGRAM = os.environ.get("FCP_PROGRAM", "fcp")
TABLE = {option["name"]: option for option in _fcp.option_table()}
ASKED = [option for option in TABLE.values() if option["access"] == "asked"]
SCORES = _fcp.score_names()


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)


def flag_of(option):
    name = option["name"].replace("_", "-")
    return f"--not-{name}" if option["default"] is True else f"--{name}"


def other_value(option):
    """A value that is allowed and is not the default."""
    if option["kind"] == "flag":
        return not option["default"]
    if option["kind"] == "choice":
        return next(choice for choice in option["choices"] if choice != option["default"])
    return {"integer": 7, "number": 0.5, "numbers": (2.0, 0.5), "text": "other"}[option["kind"]]


def text_of(value):
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def names_of(option):
    return {name.split()[0] for name in option["scores"]} - {"auto"}


def stranger(option):
    """A score that does not look at the option, for which another estimator class is not needed."""
    names = names_of(option)
    labels = all(map(_fcp.predicts_labels, names))
    for score in SCORES:
        if score not in names and _fcp.predicts_labels(score) == labels:
            return score
    return None  # all scores of its kind do


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.network = os.path.join(folder.name, "model.onnx")
        rows = os.path.join(folder.name, "x.npy")
        np.save(rows, np.random.RandomState(0).randn(20, 3).astype(np.float32))
        run("train", rows, "--target", rows, "--recipe", "paper", "--epochs", "1", "--out",
            cls.network)

    def setUp(self):
        self.x = np.zeros((20, 3), np.float32)

    def complaint(self, **parameters):
        labels = _fcp.predicts_labels(parameters.get("method", "nested"))
        kind = fcp.FeatureConformalClassifier if labels else fcp.FeatureConformalRegressor
        with self.assertRaises(fcp.Error) as raised:
            kind(model_for(perceptron(3, 2)), **parameters).conformalize(self.x, self.x[:, 0])
        return str(raised.exception)

    def refusal(self, option, *arguments):
        """What the program says, with the option's name for its flag."""
        done = run("calibrate", self.network, "--data", "no.csv", "--out", "no", *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        line = done.stderr.splitlines()[0]
        self.assertIn(flag_of(option) + ": ", line)
        return line.removeprefix("fcp: ").replace(flag_of(option), option["name"], 1)

    def check_refusals(self, options):
        """How many of the options are refused where nothing looks at them, in one sentence."""
        tried = 0
        for option in options:
            value = other_value(option)
            given = [flag_of(option)] + ([] if option["kind"] == "flag" else [text_of(value)])
            if option["scores"]:
                score = stranger(option)
                if score is None:
                    continue
                said = self.refusal(option, "--score", score, *given)
                self.assertTrue(said.endswith(f"; the score is {score}"), said)
                self.assertEqual(self.complaint(method=score, **{option["name"]: value}), said)
            elif option["calibrations"]:
                said = self.refusal(option, *given)
                self.assertTrue(said.endswith("; the calibration is split"), said)
                self.assertEqual(self.complaint(**{option["name"]: value}), said)
            else:
                continue
            self.assertTrue(said.startswith(f"{option['name']}: applies only to "), said)
            tried += 1
        return tried

    def check_values(self, options):
        for option in options:
            if option["kind"] in ("flag", "text", "choice"):  # CLI11 checks choices itself
                continue
            said = self.refusal(option, flag_of(option), "nonsense")
            self.assertEqual(said, f"{option['name']}: found nonsense, expected "
                             f"{option['expected']}")  # fmt: skip
            name = option["name"]
            kinds = (fcp.FeatureConformalRegressor, fcp.FeatureConformalClassifier)
            kind = next(k for k in kinds if name in inspect.signature(k).parameters)
            with self.assertRaises(fcp.Error) as raised:
                estimator = kind(model_for(perceptron(3, 2)), **{name: "nonsense"})
                estimator.conformalize(self.x, self.x[:, 0])
            self.assertEqual(str(raised.exception), said.replace("nonsense", "'nonsense'", 1))


class Every(Case):
    def test_program_and_python_refuse_alike(self):
        self.assertGreater(self.check_refusals(ASKED), 15)

    def test_program_and_python_check_values_alike(self):
        self.check_values(ASKED)


class Options(Case):
    def test_program_and_python_refuse_alike(self):
        some = [TABLE[name] for name in ("floor", "randomized", "steps", "bandwidth")]
        self.assertEqual(self.check_refusals(some), len(some))

    def test_program_and_python_check_values_alike(self):
        self.check_values([TABLE[name] for name in ("floor", "steps")])

    def test_manual_page_and_help_have_every_option(self):
        page = run("man").stdout.replace("\\-", "-")
        verb = page.split(".SS fcp calibrate", 1)[1].split(".SS", 1)[0]
        shown = re.sub(r"\s+", " ", run("calibrate", "--help-all").stdout)
        for option in ASKED:
            self.assertIn(f"\\fB{flag_of(option)}\\fR", verb)
            self.assertIn(option["help"], verb)
            self.assertIn(f"{flag_of(option)} ", shown)
            self.assertIn(re.sub(r"\s+", " ", option["help"]), shown)

    def test_parameters_of_the_estimators(self):
        for kind, labels in (
            (fcp.FeatureConformalRegressor, False),
            (fcp.FeatureConformalClassifier, True),
        ):
            model = model_for(perceptron(3, 2))
            parameters = inspect.signature(kind).parameters
            self.assertEqual(list(parameters), list(kind(model).get_params()))
            for option in ASKED + [TABLE["seed"]]:
                name = parameter_name(option["name"])
                scores = names_of(option) or SCORES
                looked_at = any(_fcp.predicts_labels(score) == labels for score in scores)
                self.assertEqual(name in parameters, looked_at, name)
                if not looked_at:
                    continue
                self.assertEqual(parameters[name].default, option["default"])
                self.assertIn(f"{name}: ", kind.__doc__)
            own = {"model", "method", "alpha", "confidence_level", "device", "verbose"}
            own |= {"classes"} if labels else set()
            self.assertEqual(set(kind(model).get_params()) - TABLE.keys(), own)
        with self.assertRaisesRegex(TypeError, "there is no parameter 'pixels'"):
            fcp.FeatureConformalRegressor(model, pixels=0.5)

    def test_defaults_are_accepted(self):
        defaults = {option["name"]: option["default"] for option in ASKED}
        self.assertIsNone(_fcp.check_options(defaults))


if __name__ == "__main__":
    unittest.main()
