"""Parquet files batch by batch: memory does not grow with their rows."""

from __future__ import annotations

import os
from typing import Any, Iterator, List, Optional, Sequence, Union

from . import _fcp
from ._classifier import FeatureConformalClassifier
from ._errors import needs
from ._estimator import Alphas
from ._regressor import FeatureConformalRegressor

Path = Union[str, "os.PathLike[str]"]
Estimator = Union[FeatureConformalRegressor, FeatureConformalClassifier]


def _loaded(predictor: Any) -> Estimator:
    if isinstance(predictor, (FeatureConformalRegressor, FeatureConformalClassifier)):
        return predictor
    path = os.fspath(predictor)
    if _fcp.Predictor.read(path, "cpu").labels:
        return FeatureConformalClassifier.load(path)
    return FeatureConformalRegressor.load(path)


def _known_columns(estimator: Estimator) -> Optional[List[str]]:
    """Those that the estimator was fitted with, or its network trained on; None: any."""
    return estimator.inputs_.names or getattr(estimator.model_, "column_names", None) or None


def _batches(files: Sequence[str], columns: Optional[List[str]], rows: int) -> Iterator[Any]:
    import pyarrow.parquet as parquet  # type: ignore

    for file in files:
        with parquet.ParquetFile(file) as opened:
            names = opened.schema_arrow.names
            for name in columns or []:
                if name not in names:
                    raise _fcp.Error(f"{file}: has no column {name!r}, found {', '.join(names)}")
            yield from opened.iter_batches(rows, columns=columns)


def _answered(estimator: Estimator, batch: Any, given: List[str], alpha: Any, keep: Any) -> Any:
    """The kept columns of the batch, and beside them its predictions."""
    import pyarrow

    frame = batch.select(given).to_pandas()
    if isinstance(estimator, FeatureConformalRegressor):
        found = estimator.predict_interval(frame, alpha, as_frame=True)
    else:
        found = estimator.predict_set(frame, alpha, as_frame=True)
    table = pyarrow.Table.from_pandas(found, preserve_index=False)
    for place, name in enumerate(keep):
        table = table.add_column(place, batch.schema.field(name), batch.column(name))
    return table


def predict_parquet(
    predictor: Any,
    source: Union[Path, Sequence[Path]],
    out: Path,
    alpha: Optional[Alphas] = None,
    *,
    columns: Optional[Sequence[str]] = None,
    keep: Sequence[str] = (),
    rows: int = 65536,
) -> int:
    """Reads rows from Parquet files and writes their predictions to another, in the same order;
    returns how many rows there were. Needs pyarrow and pandas.

    predictor: a file of `fcp calibrate` or of `save`, or an estimator.
    source: one file, or several.
    columns: those that the predictor is given; None: those that it knows by name, or all that are
    not kept.
    keep: columns to copy beside the predictions, such as a key.
    rows: read, answered and written at a time; memory depends on them and not on the files.

    The columns written are those of `predict_interval(as_frame=True)` or
    `predict_set(as_frame=True)`. The file appears when it is whole.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise needs("pyarrow", "predict_parquet") from None
    estimator = _loaded(predictor)
    given = list(columns) if columns is not None else _known_columns(estimator)
    read = None if given is None else list(dict.fromkeys([*given, *keep]))
    single = isinstance(source, (str, os.PathLike))
    files = [os.fspath(file) for file in ([source] if single else source)]  # type: ignore
    partial = f"{os.fspath(out)}.{os.getpid()}.tmp"
    writer, count = None, 0
    try:
        for batch in _batches(files, read, rows):
            names = given or [name for name in batch.schema.names if name not in keep]
            table = _answered(estimator, batch, names, alpha, keep)
            if writer is None:
                writer = parquet.ParquetWriter(partial, table.schema)
            writer.write_table(table.cast(writer.schema))
            count += batch.num_rows
        if writer is None:
            raise _fcp.Error(f"{', '.join(files)}: has no rows")
        writer.close()
        os.replace(partial, out)
        return count
    finally:
        if writer is not None:
            writer.close()
        if os.path.exists(partial):
            os.remove(partial)
