"""From a table to a fitted estimator, as `fcp fit` makes it from a file."""

from __future__ import annotations

import csv
import json
import os
import tempfile
import warnings
from typing import Any, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _fcp, _frames
from ._classifier import FeatureConformalClassifier
from ._estimator import Alpha, Path
from ._regressor import FeatureConformalRegressor

Fitted = Union[FeatureConformalRegressor, FeatureConformalClassifier]


def fit(
    frame: Any,
    target: str,
    *,
    task: str = "auto",
    alpha: Alpha = 0.1,
    keep_together: Optional[str] = None,
    time: Optional[str] = None,
    cover_each: Optional[str] = None,
    row_weights: Any = None,
    shares: Sequence[float] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    types: Optional[Mapping[str, str]] = None,
    missing: Sequence[str] = (),
    score: str = "auto",
    calibration: str = "auto",
    members: int = 5,
    epochs: int = 0,
    trees: bool = True,
    target_scale: str = "auto",
    seed: int = 0,
    device: str = "cpu",
    report: Optional[Path] = None,
    group: Optional[str] = None,
    **method: Any,
) -> Fitted:
    """Splits the rows of a table, trains a network on one part, calibrates it on another and
    evaluates it on the rest: the same bits as `fcp fit` of the table as a CSV file.

        >>> import fcp, numpy
        >>> x = numpy.random.default_rng(0).normal(size=(400, 2))
        >>> table = {"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1)}
        >>> fitted = fcp.fit(table, target="y", members=1, epochs=2, calibration="split")
        >>> prediction, intervals = fitted.predict_interval(numpy.array([[0.5, 1.0]]))
        >>> prediction.shape, intervals.shape
        ((1,), (1, 2, 1))

    frame: a table of pandas or polars, a dict of columns, or the path of a CSV file.
    target: a column, or several with commas between.
    keep_together: a column, as a patient, whose rows of one value stay together in the split and
    in all that is learned; it is no feature. `group` is its old name.
    time: a column of dates or numbers; the newest rows test, and the predictor is then trained on
    all rows but the newest, which calibrate.
    cover_each: a column, or "label": coverage for each value of it, or for each class.
    row_weights: a column, or a number for each row of a frame: how much it counts in training.
    Calibration is unweighted, so the guarantee is for a row like those of the table.
    types: of columns, {"zip": "category", "when": "date:dmy"}. missing: cells that stand for no
    value. epochs: at most; 0: by the number of rows. trees: boosted trees beside the networks.
    target_scale: "identity", "log" or "auto". report: an HTML page to write.
    Further options of the method go by their names: side, support, integer, allow_empty, objective.

    Returns a regressor or, where the target is text or of few whole numbers, a classifier;
    `evaluation_` is what `evaluate` found on the test rows, which neither trained nor calibrated.
    """
    unknown = sorted(set(method) - {entry["name"] for entry in _fcp.option_table()})
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument {unknown[0]!r}")
    if group is not None:
        if keep_together is not None:
            raise TypeError("group is the old name of keep_together; give one of the two")
        warnings.warn("group is called keep_together now", FutureWarning, stacklevel=2)
    options = dict(
        task=task,
        alpha=alpha,
        keep_together=keep_together or group or "",
        time=time or "",
        cover_each=cover_each or "",
        row_weights=row_weights if isinstance(row_weights, str) else "",
        shares=[float(share) for share in shares],
        drop=list(drop),
        categorical=list(categorical),
        types=dict(types or {}),
        missing=list(missing),
        score=score,
        calibration=calibration,
        members=members,
        epochs=epochs,
        trees=trees,
        target_scale=target_scale,
        seed=seed,
        device=device,
        method=method,
    )
    with tempfile.TemporaryDirectory(prefix="fcp-") as folder:
        written = not isinstance(frame, (str, os.PathLike))
        if not written:
            data = os.fspath(frame)
        else:
            data = os.path.join(folder, "frame.csv")
            _write(frame, data)
        if row_weights is not None and not isinstance(row_weights, str):
            weights = os.path.join(folder, "row_weights.npy")
            np.save(weights, np.asarray(row_weights, dtype=np.float64))
            options["row_weights"] = weights
        out = os.path.join(folder, "fitted.onnx")
        text, said = _fcp.fit_file(data, target, options, out, os.fspath(report or ""), written)
        for warning in said:
            warnings.warn(warning, stacklevel=2)
        labels = _fcp.Predictor.read(out, device).labels
        fitted: Fitted = (
            FeatureConformalClassifier.load(out, device)
            if labels
            else FeatureConformalRegressor.load(out, device)
        )
    fitted.evaluation_ = json.loads(text)
    return fitted


def _write(frame: Any, path: str) -> None:
    """The table as a CSV file, whose cells are those that predictions read."""
    names: List[str] = [str(name) for name in _frames.as_columns(frame)]
    columns = [_frames.texts(frame[name]) for name in names]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*columns))
