"""fcp beside MAPIE, TorchCP, crepes, venn-abers and puncc: the same rows and the same predictions, the
intervals, sets, distributions, probabilities and outliers of each, and the time each takes for
calibration and prediction.

    PYTHONPATH=build/release/python python benchmarks/peers.py [--rows 20000] [--json out.json]
        [--rounds 15]

needs mapie, scikit-learn, torchcp, crepes, venn-abers and puncc from PyPI beside torch. A peer that
is not installed is left out. The predictions are plain arrays, made once: every library calls a "network" that hands them
on, so that what differs is the library alone. Times are medians of processor time over rounds in
which fcp and the peer take turns. It fails where an end of an interval differs by more than 1e-6 of
the largest, or a label set in a label whose score is not the radius up to rounding.
"""

import argparse
import functools
import importlib
import json
import math
import sys
import types
import warnings

import numpy as np
import torch

import fcp
import peer_distributions
from peer_table import Table, Timed, compare_numbers

ALPHA = 0.1
EDGE = 1e-6  # scores nearer to the radius than this are in or out by rounding


# The predictions and the "networks" that hand them on.


class Pass(torch.nn.Module):
    """Gives its input back, as one output or column by column."""

    def __init__(self, columns=None):
        super().__init__()
        self.columns = columns
        self.unused = torch.nn.Parameter(torch.zeros(1))  # TorchCP asks where parameters are

    def forward(self, x):
        if self.columns is None:
            return x * 1
        return tuple(x[:, column : column + 1] for column in self.columns)


class Regressor:
    """One column of the input as a fitted estimator of scikit-learn."""

    def __init__(self, column):
        self.column = column

    def fit(self, X, y):
        raise AssertionError("it is fitted")

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return np.asarray(X, dtype=np.float64)[:, self.column]


class Classifier(Regressor):
    """The input as logits, a fitted classifier of scikit-learn."""

    def __init__(self, classes):
        self.classes_ = np.arange(classes)

    def predict_proba(self, X):
        return torch.softmax(torch.from_numpy(np.asarray(X)).double(), 1).numpy()

    def predict(self, X):
        return np.asarray(X).argmax(1)


def regression_data(rows):
    """Low quantile, high quantile and median of rows with noise of different sizes, and answers."""
    random = np.random.default_rng(0)
    middle = random.normal(size=rows) * 3
    scale = 0.2 + random.gamma(2.0, size=rows)
    y = middle + scale * random.standard_t(5, size=rows)
    low, high = middle - 1.3 * scale + 0.1, middle + 1.6 * scale
    predictions = np.stack([low, high, middle], axis=1).astype(np.float32)
    return predictions, y.astype(np.float32)


def label_data(rows, classes=20):
    random = np.random.default_rng(1)
    logits = (2.5 * random.normal(size=(rows, classes))).astype(np.float32)
    chance = torch.softmax(torch.from_numpy(logits).double() / 1.5, 1).numpy().cumsum(1)
    return logits, (chance < random.uniform(size=(rows, 1))).sum(1)


# Peers. Each function gives intervals [N, 2] or members [N, C], and the seconds it took.


def fcp_intervals(predictions, y, new, **options):
    columns = (0, 1) if options["method"] == "cqr" else (2,)
    regressor = fcp.FeatureConformalRegressor(
        fcp.from_torch(Pass(columns), predictions[:1]), **options
    )
    return Timed(
        lambda: regressor.conformalize(predictions, y).predict_interval(new, ALPHA)[1][:, :, 0]
    )


def fcp_sets(logits, y, new, **options):
    model = fcp.from_torch(Pass(), logits[:1])
    classifier = fcp.FeatureConformalClassifier(model, allow_empty=True, **options)
    timed = Timed(lambda: classifier.conformalize(logits, y).predict_set(new, ALPHA)[1][:, :, 0])
    timed.classifier = classifier
    return timed


def mapie_split(predictions, y, new):
    from mapie.regression import SplitConformalRegressor

    def work():
        peer = SplitConformalRegressor(Regressor(2), confidence_level=1 - ALPHA, prefit=True)
        return peer.conformalize(predictions, y.astype(np.float64)).predict_interval(new)[1][
            :, :, 0
        ]

    return Timed(work)


def mapie_cqr(predictions, y, new, symmetric):
    from mapie.regression import ConformalizedQuantileRegressor

    def work():
        estimators = [Regressor(0), Regressor(1), Regressor(2)]
        peer = ConformalizedQuantileRegressor(estimators, confidence_level=1 - ALPHA, prefit=True)
        peer.conformalize(predictions, y.astype(np.float64))
        return peer.predict_interval(new, symmetric_correction=symmetric)[1][:, :, 0]

    return Timed(work)


def torchcp_intervals(predictions, y, new, score, columns):
    from torchcp.regression.predictor import SplitPredictor

    def work():
        peer = SplitPredictor(score, model=Pass(), alpha=ALPHA)
        peer.calibrate(batches(predictions[:, columns], y))
        return peer.predict(torch.from_numpy(new[:, columns])).numpy().reshape(len(new), 2)

    return Timed(work)


class GivenNumbers(np.random.RandomState):
    """Random numbers that are known: those that fcp drew for the same rows."""

    def __init__(self, numbers):
        super().__init__(0)
        self.numbers = numbers

    def uniform(self, low=0.0, high=1.0, size=None):
        return self.numbers.pop(0).reshape(size)


def mapie_sets(logits, y, new, score, numbers=None):
    from mapie.classification import SplitConformalClassifier

    def work():
        peer = SplitConformalClassifier(
            Classifier(logits.shape[1]), confidence_level=1 - ALPHA, conformity_score=score,
            prefit=True, random_state=None if numbers is None else GivenNumbers(list(numbers)),
        )  # fmt: skip
        options = {} if numbers is None else {"include_last_label": "randomized"}
        peer.conformalize(logits, y)
        sets = peer.predict_set(new, conformity_score_params=options)[1][:, :, 0]
        return sets, peer._mapie_classifier.conformity_score_function_

    return Timed(work, find=lambda made: made[0])


def torchcp_sets(logits, y, new, score):
    from torchcp.classification.predictor import SplitPredictor

    def work():
        peer = SplitPredictor(score, model=Pass(), alpha=ALPHA)
        peer.calibrate(batches(logits, y.astype(np.int64)))
        return peer.predict(torch.from_numpy(new)).numpy().astype(bool)

    return Timed(work)


def batches(x, y):
    rows = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    return torch.utils.data.DataLoader(rows, batch_size=4096)


# What fcp drew: its randomised score is the plain one less u times the label's probability.


def drawn_numbers(plain, randomized, logits, y=None):
    y = logits.argmax(1) if y is None else y
    chance = torch.softmax(torch.from_numpy(logits).double(), 1).numpy()
    own = chance[np.arange(len(y)), y]
    return (plain.check(logits, y).score - randomized.check(logits, y).score) / own


def edge_of(classifier, logits):
    """Rows and labels whose score is the radius, up to rounding."""
    (radius,) = classifier.radius(ALPHA)
    classes = logits.shape[1]
    scores = [
        classifier.check(logits, np.full(len(logits), label)).score for label in range(classes)
    ]
    return np.abs(np.stack(scores, axis=1) - radius) < EDGE


# The comparison.


def compare_sets(table, method, peer, ours, theirs, edge, note=""):
    different = ours.result != theirs.result
    if (different & ~edge).any():
        sys.exit(f"{method}: fcp and {peer} differ in {(different & ~edge).sum()} labels")
    changed = f"{different.sum()} of {different.size} labels"
    table.add(method, peer, *ours.beside(theirs), changed, note)


def regression(table, rows, has):
    predictions, y = regression_data(2 * rows)
    data = predictions[:rows], y[:rows], predictions[rows:]
    split = fcp_intervals(*data, method="residual")
    symmetric = fcp_intervals(*data, method="cqr")
    each_side = fcp_intervals(*data, method="cqr", asymmetric=True)
    if "mapie" in has:
        compare_numbers(table, "split", "MAPIE", split, mapie_split(*data))
        compare_numbers(table, "CQR", "MAPIE", symmetric, mapie_cqr(*data, True))
        compare_numbers(
            table, "CQR, a radius per side", "MAPIE", each_side, mapie_cqr(*data, False)
        )
    if "torchcp" in has:
        from torchcp.regression.score import ABS, CQR

        compare_numbers(table, "split", "TorchCP", split, torchcp_intervals(*data, ABS(), [2]))
        found = torchcp_intervals(*data, CQR(), [0, 1])
        compare_numbers(table, "CQR", "TorchCP", symmetric, found)


def labels(table, rows, has):
    logits, y = label_data(2 * rows)
    data = logits[:rows], y[:rows], logits[rows:]
    rank = dict(rank_weight=0.01, rank_free=5)
    lac = fcp_sets(*data, method="lac")
    aps = fcp_sets(*data, method="aps", randomized=False)
    drawn = fcp_sets(*data, method="aps")
    raps = fcp_sets(*data, method="raps", randomized=False, **rank)
    if "mapie" in has:
        edge = edge_of(lac.classifier, data[2])
        compare_sets(table, "LAC", "MAPIE", lac, mapie_sets(*data, "lac"), edge)
        numbers_of = functools.partial(drawn_numbers, aps.classifier, drawn.classifier)
        found = mapie_sets(*data, "aps", [numbers_of(*data[:2]), numbers_of(data[2])])
        edge = edge_of(drawn.classifier, data[2])
        compare_sets(
            table, "APS, randomised", "MAPIE", drawn, found, edge, "with fcp's random numbers"
        )
        compare_raps(table, data, y[rows:], numbers_of)
    if "torchcp" in has:
        from torchcp.classification.score import APS, LAC, RAPS

        edge = edge_of(lac.classifier, data[2])
        compare_sets(table, "LAC", "TorchCP", lac, torchcp_sets(*data, LAC()), edge)
        edge = edge_of(aps.classifier, data[2])
        found = torchcp_sets(*data, APS(randomized=False))
        compare_sets(table, "APS", "TorchCP", aps, found, edge)
        edge = edge_of(raps.classifier, data[2])
        found = torchcp_sets(*data, RAPS(randomized=False, penalty=0.01, kreg=5))
        compare_sets(table, "RAPS", "TorchCP", raps, found, edge)


def compare_raps(table, data, answers, numbers_of):
    """MAPIE sets rows aside on which it chooses lambda and k: fcp is given the other rows and those
    choices, MAPIE fcp's random numbers. MAPIE takes the rank term into the share by which the last
    label stays, which its calibration scores do not: sets differ by that label."""
    from mapie.conformity_scores import RAPSConformityScore
    from sklearn.model_selection import StratifiedShuffleSplit

    logits, y, new = data
    # A tenth: MAPIE 1.6 forgets the size that its score is given.
    aside = StratifiedShuffleSplit(n_splits=1, test_size=0.1, random_state=0)
    kept, _ = next(aside.split(logits, y))
    numbers = [numbers_of(logits[kept], y[kept]), numbers_of(new)]
    theirs = mapie_sets(*data, RAPSConformityScore(size_raps=0.1), numbers)
    chosen = theirs.made[1]
    rank = dict(rank_weight=float(chosen.lambda_star), rank_free=int(chosen.k_star[0]))
    ours = fcp_sets(logits[kept], y[kept], new, method="raps", **rank)
    different = ours.result != theirs.result
    rows = np.arange(len(new))
    share = [100 * sets.result[rows, answers].mean() for sets in (ours, theirs)]
    if different.sum(1).max() > 1:
        sys.exit("RAPS, randomised: fcp and MAPIE differ by more than the last label")
    note = f"another rule for the last label: fcp covers {share[0]:.1f} %, MAPIE {share[1]:.1f} %"
    changed = f"{different.sum()} of {different.size} labels"
    table.add("RAPS, randomised", "MAPIE", *ours.beside(theirs), changed, note)


def many_labels(table, rows, has, classes):
    """Of so many labels not every score is looked at: one in 10,000 may be in or out by rounding,
    which is TorchCP's in float32, or because MAPIE lets in what misses the radius by 1e-8."""
    logits, y = label_data(2 * rows, classes)
    data = logits[:rows], y[:rows], logits[rows:]
    rank = dict(rank_weight=0.01, rank_free=5)
    peers = []
    if "mapie" in has:
        peers.append(("LAC", "MAPIE", dict(method="lac"), lambda: mapie_sets(*data, "lac")))
    if "torchcp" in has:
        from torchcp.classification.score import APS, LAC, RAPS

        plain = dict(randomized=False)
        for name, options, score in (
            ("LAC", dict(method="lac"), LAC()),
            ("APS", dict(method="aps", **plain), APS(randomized=False)),
            ("RAPS", dict(method="raps", **plain, **rank),
             RAPS(randomized=False, penalty=0.01, kreg=5)),
        ):  # fmt: skip
            peers.append((name, "TorchCP", options, functools.partial(torchcp_sets, *data, score)))
    for name, peer, options, theirs in peers:
        ours, theirs = fcp_sets(*data, **options), theirs()
        different = int((ours.result != theirs.result).sum())
        if different > 1e-4 * ours.result.size:
            sys.exit(f"{name}, {classes} classes: fcp and {peer} differ in {different} labels")
        changed = f"{different} of {ours.result.size} labels"
        table.add(f"{name}, {classes} classes", peer, *ours.beside(theirs), changed)


def rank_of(alpha, n):
    """The rank that a product of floating-point numbers gives, as both peers compute it."""
    return math.ceil((n + 1) * (1 - alpha))


def odd_ranks():
    """Levels and numbers of rows at which floating point gives another rank than arithmetic."""
    odd = []
    for percent in range(1, 100):
        for n in range(1, 1000):
            exact = -(-(100 - percent) * (n + 1) // 100)
            if rank_of(percent / 100, n) != exact:
                odd.append((percent / 100, n))
    return odd


def available():
    found = []
    for name in ("mapie", "torchcp", "crepes", "venn_abers", "deel.puncc"):
        try:
            stand_in_for_parts() if name == "torchcp" else None
            found.append(importlib.import_module(name).__name__)
        except ImportError as missing:
            print(f"without {name}: {missing}", file=sys.stderr)
    return found


def stand_in_for_parts():
    """TorchCP imports its graph, language and training parts with everything else; what those need
    and is not installed is not looked at here."""
    for name in ("torchsort", "tqdm", "networkx", "transformers", "torch_geometric",
                 "torch_geometric.loader", "torch_geometric.utils", "torch_geometric.utils.convert",
                 "torch_geometric.nn"):  # fmt: skip
        try:
            importlib.import_module(name)
        except ImportError:
            part = types.ModuleType(name)
            part.__path__ = []
            part.__getattr__ = lambda attribute: type(attribute, (), {})
            sys.modules[name] = part


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", type=int, default=20000, help="to calibrate, and as many to predict"
    )
    parser.add_argument("--rounds", type=int, default=15, help="of which times are the median")
    parser.add_argument("--classes", type=int, default=1000, help="of many; 0: leave them out")
    parser.add_argument("--json", help="file for the table")
    options = parser.parse_args()
    Timed.rounds = options.rounds
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    has = available()
    print(
        "| method | peer | largest difference | fcp, ms | peer, ms | ratio | |\n"
        "|---|---|---|---|---|---|---|"
    )
    table = Table()
    regression(table, options.rows, has)
    labels(table, options.rows // 4, has)
    peer_distributions.compare(table, options.rows, has)
    if options.classes:
        Timed.rounds = min(Timed.rounds, 3)
        many_labels(table, options.rows // 4, has, options.classes)
    odd = odd_ranks()
    print(
        f"\nfloating point gives another rank for {len(odd)} of {99 * 999} pairs of level and rows"
    )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table.rows, file, indent=2)


if __name__ == "__main__":
    main()
