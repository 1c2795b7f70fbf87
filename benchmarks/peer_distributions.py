"""Predictive distributions beside crepes, calibrated probabilities beside venn-abers, and outliers
beside puncc, on the same rows; run by peers.py. Each fails where the numbers differ by more than 1e-6
of the largest, or a row is flagged by one library alone."""

import sys

import numpy as np
import torch

import fcp
from peer_table import Timed, compare_numbers

THRESHOLD = 1.0


class Pass(torch.nn.Module):
    """Gives its input back."""

    def forward(self, x):
        return x * 1


def distributions(table, rows):
    """F at a threshold: without smoothing crepes gives the upper bound of fcp's band."""
    from crepes import ConformalPredictiveSystem

    random = np.random.default_rng(2)
    middle = random.normal(size=2 * rows).astype(np.float32)
    y = (middle + random.standard_t(5, size=2 * rows)).astype(np.float32)
    seen, new = middle[:rows, None], middle[rows:, None]
    model = fcp.from_torch(Pass(), seen[:1])
    own = fcp.FeatureConformalRegressor(model, method="residual", side="upper")

    def ours():
        return own.conformalize(seen, y[:rows]).probability(new, below=THRESHOLD)[:, 1]

    def theirs():
        system = ConformalPredictiveSystem().fit(y[:rows].astype(float) - seen[:, 0])
        at = np.full(rows, THRESHOLD)
        return system.predict_p(new[:, 0].astype(float), at, smoothing=False)

    compare_numbers(table, "predictive distribution", "crepes", Timed(ours), Timed(theirs))


def probabilities(table, rows, classes):
    """p0 and p1 of the last class, from the probabilities that fcp takes of the logits."""
    from venn_abers import VennAbers

    random = np.random.default_rng(3)
    logits = (2 * random.normal(size=(2 * rows, classes))).astype(np.float32)
    chance = torch.softmax(torch.from_numpy(logits).double() / 2, 1).numpy()
    y = (chance.cumsum(1) < random.uniform(size=(2 * rows, 1))).sum(1)
    model = fcp.from_torch(Pass(), logits[:1])
    own = fcp.FeatureConformalClassifier(model, method="lac", probabilities="venn-abers")
    plain = fcp.FeatureConformalClassifier(model, method="lac").conformalize(logits[:rows], y[:rows])
    shares = plain.predict_proba(logits)
    last = [np.stack([1 - p[:, -1], p[:, -1]], axis=1) for p in (shares[:rows], shares[rows:])]

    def ours():
        p0, p1 = own.conformalize(logits[:rows], y[:rows]).predict_venn_abers(logits[rows:])
        return np.stack([p0[:, -1], p1[:, -1]], axis=1)

    def theirs():
        peer = VennAbers()
        peer.fit(last[0], (y[:rows] == classes - 1).astype(int))
        return peer.predict_proba(last[1])[1]

    note = "all classes beside one of the peer's" if classes > 2 else ""
    method = f"Venn-Abers, {classes} classes"
    compare_numbers(table, method, "venn-abers", Timed(ours), Timed(theirs), note)


def outliers(table, rows):
    """Which rows are flagged at a level, by the mean distance to the ten nearest of the same usual
    rows: puncc is given scikit-learn's distances, and the parting of fcp."""
    from deel.puncc.anomaly_detection import SplitCAD
    from deel.puncc.api.prediction import BasePredictor
    from sklearn.neighbors import NearestNeighbors

    class Distance(BasePredictor):
        def predict(self, X):
            return self.model.kneighbors((X - mean) / deviation)[0].mean(1)

    random = np.random.default_rng(4)
    usual = random.normal(size=(rows, 4)).astype(np.float32)
    new = random.normal(size=(rows // 4, 4)).astype(np.float32)
    new[: rows // 40] += 4
    own = fcp.FeatureConformalRegressor(
        fcp.from_torch(torch.nn.Linear(4, 1), usual[:1]), method="residual"
    ).conformalize(usual[:50], usual[:50, 0])
    # Rows that are compared with are at a distance of 0 from themselves.
    compared = own.outliers(usual, usual, neighbours=1).score == 0
    reference, calibration = usual[compared].astype(float), usual[~compared].astype(float)
    mean, deviation = reference.mean(0), reference.std(0)

    for alpha in (0.01, 0.05, 0.2):

        def ours(level=alpha):
            return (own.outliers(new, usual).p_value <= level).astype(float)

        def theirs(level=alpha):
            neighbours = NearestNeighbors(n_neighbors=10).fit((reference - mean) / deviation)
            peer = SplitCAD(Distance(neighbours, is_trained=True), train=False)
            peer.fit(z_calib=calibration)
            flagged = peer.predict(new.astype(float), alpha=level)
            return np.asarray(flagged).reshape(-1).astype(float)

        if not ours().any():
            sys.exit(f"outliers: none of {len(new)} rows is flagged at {alpha}")
        compare_numbers(table, f"outliers at {alpha}", "puncc", Timed(ours), Timed(theirs))


def compare(table, rows, has):
    if "crepes" in has:
        distributions(table, rows)
    if "venn_abers" in has:
        for classes in (2, 20):
            probabilities(table, rows // 4, classes)
    if "deel.puncc" in has:
        outliers(table, rows // 10)
