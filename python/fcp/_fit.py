"""From a table to a fitted estimator, as `fcp fit` makes it from a file."""

from __future__ import annotations

import csv
import json
import os
import tempfile
import warnings
from typing import Any, List, Optional, Sequence, Union

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
    group: Optional[str] = None,
    time: Optional[str] = None,
    shares: Sequence[float] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    score: str = "auto",
    calibration: str = "auto",
    allow_empty: bool = False,
    members: int = 5,
    epochs: int = 0,
    seed: int = 0,
    device: str = "cpu",
    report: Optional[Path] = None,
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
    group, time: columns by which the rows are split instead of at random.
    epochs: at most; 0: by the number of rows. report: an HTML page to write.

    Returns a regressor or, where the target is text or of few whole numbers, a classifier;
    `evaluation_` is what `evaluate` found on the test rows, which neither trained nor calibrated.
    """
    options = dict(
        task=task,
        alpha=alpha,
        group=group or "",
        time=time or "",
        shares=[float(share) for share in shares],
        drop=list(drop),
        categorical=list(categorical),
        score=score,
        calibration=calibration,
        allow_empty=allow_empty,
        members=members,
        epochs=epochs,
        seed=seed,
        device=device,
    )
    with tempfile.TemporaryDirectory(prefix="fcp-") as folder:
        if isinstance(frame, (str, os.PathLike)):
            data = os.fspath(frame)
        else:
            data = os.path.join(folder, "frame.csv")
            _write(frame, data)
        out = os.path.join(folder, "fitted.onnx")
        text, said = _fcp.fit_file(data, target, options, out, os.fspath(report or ""))
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
