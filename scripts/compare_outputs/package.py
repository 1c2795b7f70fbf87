"""What the Python package answers, printed so that two builds can be compared:

    PYTHONPATH=BUILD/python python package.py PART [FILE ...]

Arrays are printed as their shape, type, a hash of their bytes and their first numbers."""
import csv
import hashlib
import json
import sys
import warnings

import numpy as np
import torch

import fcp

LEVELS = [0.05, 0.3]


def show(name, value):
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value)
        found = hashlib.sha256(value.tobytes()).hexdigest()[:16]
        value = f"{value.shape} {value.dtype} {found} {value.ravel()[:6].tolist()}"
    elif isinstance(value, (dict, list)):
        value = json.dumps(value, default=str)
    print(f"{name}: {value}")


def asked(name, ask):
    """The result of a call, or its error."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = ask()
        for warning in caught:
            if "fcp" in str(warning.filename) or issubclass(warning.category, UserWarning):
                print(f"{name}: warning: {str(warning.message).splitlines()[0]}")
        return found
    except (ValueError, TypeError, NotImplementedError) as error:
        print(f"{name}: {type(error).__name__}: {error}")
        return None


def load(name):
    return np.load(name + ".npy")


def numbers():
    return load("x_cal"), load("y_cal"), load("x_test"), load("y_test")


def tell(name, estimator, x, y, **facts):
    """All that an estimator answers about rows."""
    ask = estimator.predict_set if hasattr(estimator, "predict_set") else estimator.predict_interval
    found = asked(f"{name} regions", lambda: ask(x, LEVELS, **facts))
    for what, values in zip(("prediction", "regions"), found or ()):
        show(f"{name} {what}", values)
    found = asked(f"{name} check", lambda: estimator.check(x, y, alpha=0.3, **facts))
    for what, values in zip(("score", "p-value", "inside"), found or ()):
        show(f"{name} {what}", values)
    found = asked(f"{name} evaluate", lambda: estimator.evaluate(x, y, alpha=0.3, **facts))
    show(f"{name} evaluation", found)
    show(f"{name} radius", asked(f"{name} radius", lambda: estimator.radius(0.3)))
    show(f"{name} facts", {"outputs": estimator.outputs_, "rows": estimator.predictor_.rows,
                           "cut": estimator.predictor_.cut, "score": estimator.predictor_.score,
                           "provenance": estimator.predictor_.provenance})


def regressors():
    """Methods, on rows that suffice to learn heads, and calibrations."""
    _, _, x_test, y_test = numbers()
    x, y = load("x_many"), load("y_many")
    groups = [("north", "south", "west")[i % 3] for i in range(len(x))]
    new_groups = groups[:len(x_test)]
    cases = [(dict(method=method), {}, {}) for method in
             ("residual", "nested", "linearized", "spread", "quantiles", "density", "auto")]
    cases += [
        (dict(method="nested", norm="2", floor=0.25, cut="hidden1", bound="crown"), {}, {}),
        (dict(method="surrogate", steps=3, adam=True), {}, {}),
        (dict(method="density", union=True), {}, {}),
        (dict(method="residual", calibration="grouped"), dict(groups=groups), dict(groups=new_groups)),
        (dict(method="residual", calibration="weighted"), dict(weights=1 / (1 + abs(x[:, 0]))),
         dict(weights=1 / (1 + abs(x_test[:, 0])))),
        (dict(method="nested", calibration="weighted"), dict(shifted=x_test + 0.5), {}),
        (dict(method="nested", calibration="localized", seed=3), {}, {}),
        (dict(method="residual", calibration="rectified"), {}, {}),
    ]
    for parameters, facts, new in cases:
        name = " ".join(map(str, parameters.values()))
        estimator = fcp.FeatureConformalRegressor("plain.onnx", **parameters)
        if asked(name, lambda: estimator.conformalize(x, y, **facts)) is not None:
            tell(name, estimator, x_test, y_test, **new)
    two = fcp.FeatureConformalRegressor("plain2.onnx", method="nested")
    two.conformalize(x, np.stack([y, 2 * y], axis=1))
    tell("two outputs", two, x_test, np.stack([y_test, 2 * y_test], axis=1))
    cqr = fcp.FeatureConformalRegressor("ends.onnx", method="cqr", low="low", high="high", asymmetric=True)
    tell("cqr", cqr.conformalize(x, y), x_test, y_test)


def classifiers():
    x, _, x_test, _ = numbers()
    y, y_test = load("groups_cal"), load("groups_test")
    names = np.array(["elm", "fir", "oak", "yew"])
    for parameters in (dict(method="lac"), dict(method="aps"), dict(method="raps", randomized=False),
                       dict(method="feature_margin"), dict(method="auto"),
                       dict(method="feature_sampled", samples=30, steps=2),
                       dict(method="lac", calibration="grouped", group="label"),
                       dict(method="lac", calibration="localized")):
        name = " ".join(map(str, parameters.values()))
        estimator = fcp.FeatureConformalClassifier("logits.onnx", **parameters)
        if asked(name, lambda: estimator.conformalize(x, y)) is not None:
            tell(name, estimator, x_test, y_test)
    named = fcp.FeatureConformalClassifier("logits.onnx", method="lac").conformalize(x, names[y])
    show("named classes", named.classes_)
    tell("named", named, x_test, names[y_test])


def files():
    x, y, x_test, y_test = numbers()
    estimator = fcp.FeatureConformalRegressor("plain.onnx", method="nested").conformalize(x, y)
    estimator.save("package.onnx")
    estimator.export("package.exported.onnx", LEVELS)
    tell("saved and loaded", fcp.FeatureConformalRegressor.load("package.onnx"), x_test, y_test)
    show("exported", list(fcp.load("package.exported.onnx").outputs))
    model = fcp.load("plain.onnx")
    show("run", model(x_test))
    show("cuts", list(model.cuts))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.backbone = torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.Tanh())
        self.head = torch.nn.Linear(12, 1)

    def forward(self, x):
        return self.head(self.backbone(x))


def inputs():
    x, y, x_test, y_test = numbers()
    estimator = fcp.FeatureConformalRegressor(Network(), method="nested", cut="backbone")
    tell("torch", estimator.conformalize(torch.from_numpy(x), torch.from_numpy(y)),
         torch.from_numpy(x_test), y_test)

    def batches(rows, answers, size=64):
        for first in range(0, len(rows), size):
            yield rows[first:first + size], answers[first:first + size]

    estimator = fcp.FeatureConformalRegressor("plain.onnx", method="residual")
    estimator.conformalize(batches(x, y))
    show("batches", estimator.predict_interval(batches(x_test, y_test), alpha=0.1)[1])
    archive, test = np.load("icaltwo.npz"), np.load("itesttwo.npz")
    named = {name: archive[name] for name in ("ids", "x")}
    estimator = fcp.FeatureConformalRegressor("inputs.onnx", method="nested")
    estimator.conformalize(named, archive["y"])
    tell("several inputs", estimator, {name: test[name] for name in ("x", "ids")}, test["y"])


class Slope:
    def predict(self, X):
        return 3 * np.asarray(X)[:, 0]


class Sides:
    classes_ = np.array(["high", "low", "middle"])

    def predict_proba(self, X):
        logits = np.stack([2 * X[:, 0], -2 * X[:, 0], np.zeros(len(X))], axis=1).astype(np.float64)
        chance = 1 / (1 + logits ** 2)
        return chance / chance.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def wrapped():
    _, _, x_test, y_test = numbers()
    x, y = load("x_many"), load("y_many")
    for parameters in (dict(method="residual"), dict(method="spread"), dict(method="density", union=True),
                       dict(method="auto"), dict(method="residual", calibration="rectified"),
                       dict(method="residual", calibration="localized")):
        name = " ".join(map(str, parameters.values()))
        estimator = fcp.wrap(Slope(), **parameters)
        if asked(name, lambda: estimator.conformalize(x, y)) is not None:
            tell(name, estimator, x_test, y_test)
    labels = np.where(y > 1, "high", np.where(y < -1, "low", "middle"))
    for method in ("lac", "aps"):
        estimator = fcp.wrap(Sides(), method=method).conformalize(x, labels)
        tell(f"classes {method}", estimator, x_test,
             np.where(y_test > 1, "high", np.where(y_test < -1, "low", "middle")))


def errors():
    x, y, x_test, _ = numbers()
    good = fcp.FeatureConformalRegressor("plain.onnx", method="nested").conformalize(x, y)
    hole = x_test.copy()
    hole[7, 1] = np.nan
    for name, ask in {
        "NaN": lambda: good.predict_interval(hole),
        "columns": lambda: good.predict_interval(x_test[:, :3]),
        "level": lambda: good.predict_interval(x_test, alpha=1.5),
        "groups": lambda: good.predict_interval(x_test, groups=["a"] * len(x_test)),
        "weights": lambda: good.predict_interval(x_test, weights=np.ones(len(x_test))),
        "answers": lambda: good.conformalize(x, y[1:]),
        "method": lambda: fcp.FeatureConformalRegressor("plain.onnx", method="nice").conformalize(x, y),
        "option": lambda: fcp.FeatureConformalRegressor(
            "plain.onnx", method="residual", floor=1.0).conformalize(x, y),
        "no groups": lambda: fcp.FeatureConformalRegressor(
            "plain.onnx", method="residual", calibration="grouped").conformalize(x, y),
        "cut": lambda: fcp.FeatureConformalRegressor(
            "plain.onnx", method="nested", cut="nowhere").conformalize(x, y),
        "not fitted": lambda: fcp.FeatureConformalRegressor("plain.onnx").predict_interval(x),
        "labels": lambda: fcp.FeatureConformalClassifier("plain.onnx", method="nested").conformalize(x, y),
        "file": lambda: fcp.FeatureConformalRegressor.load("none.onnx"),
        "not calibrated": lambda: fcp.FeatureConformalRegressor.load("plain.onnx"),
        "not a network": lambda: fcp.load("broken.onnx"),
        "operator": lambda: fcp.load("unknown_operator.onnx"),
        "export": lambda: fcp.FeatureConformalRegressor(
            "plain.onnx", method="surrogate", steps=2).conformalize(x, y).export("x.onnx", 0.1),
    }.items():
        found = asked(name, ask)
        if found is not None:
            print(f"{name}: no error")


def reads(*names):
    """Files of `fcp calibrate` and `fcp fit`."""
    for name in names:
        kind = fcp.FeatureConformalRegressor
        estimator = asked(name, lambda: kind.load(name))
        if estimator is None:
            kind = fcp.FeatureConformalClassifier
            estimator = kind.load(name)
        labels = kind is fcp.FeatureConformalClassifier
        stem = "ktest" if labels else "test"
        x, y = load("x_" + stem), load("y_" + stem)
        if labels and estimator.predictor_.network().inputs[0][1][1] != x.shape[1]:
            side = (x[:, :1] < 1).astype(np.float32)  # one-hot, as a table is encoded
            x = np.concatenate([x, side, 1 - side], axis=1)
        if labels and estimator.classes_.dtype.kind == "U":
            y = estimator.classes_[y % len(estimator.classes_)]
        if len(estimator.outputs_) and "two" in name:
            y = np.stack([y, y], axis=1)
        facts = {"groups": [("north", "south", "west")[i % 3] for i in range(len(x))]} \
            if name.startswith("grouped") else {}
        tell(name, estimator, x, y, **facts)


class Frame:
    """As much of a table with named columns as the package asks for."""

    def __init__(self, columns):
        self.of, self.columns = columns, list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, names):
        if isinstance(names, str):
            return self.of[names]
        return Frame({name: self.of[name] for name in names})


def tables(*names):
    """Columns by name, in another order, with missing cells, of a CSV file."""
    *models, path = names
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))[:60]
    columns = {name: np.array([row[name] for row in rows], dtype=object)
               for name in reversed(list(rows[0])) if name not in ("", "price")}
    for name in models:
        estimator = fcp.FeatureConformalRegressor.load(name)
        show(f"{name} columns", list(estimator.feature_names_in_))
        found = asked(name, lambda: estimator.predict_interval(Frame(columns), LEVELS))
        for what, values in zip(("prediction", "intervals"), found or ()):
            show(f"{name} {what}", values)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {function.__name__: function for function in (
        regressors, classifiers, files, inputs, wrapped, errors, reads, tables)}[sys.argv[1]](*sys.argv[2:])
