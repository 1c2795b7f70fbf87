"""Exported networks (`fcp export`) at work with NumPy and ONNX Runtime alone: no torch, no compiled
code of fcp. This file needs no other; copied beside a service it works there, too.

    >>> from fcp import runtime                                       # doctest: +SKIP
    >>> predictor = runtime.load("intervals.onnx")                    # doctest: +SKIP
    >>> predictor.predict_interval([{"km": 3.2, "weather": "rain"}])  # doctest: +SKIP

Rows are read as the file says (docs/formats.md): columns by name with their numbers, dates,
categories and missing values, or numbers as the network takes them. The answers have the shapes of
`fcp.FeatureConformalRegressor` and `fcp.FeatureConformalClassifier`, and their intervals and sets
contain those of `fcp predict`.
"""

from __future__ import annotations

import decimal
import json
import math
import re
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np
import onnxruntime

Alpha = Union[float, str]


class Error(ValueError):
    """What is wrong with a file or with rows."""


# Cells of tables, as fcp/data/number.h and date.h read them.

MISSING = frozenset(
    ["", "NA", "N/A", "NaN", "nan", "?", "null", "NULL", "None", "n/a", "#N/A", "<NA>", "NaT",
     "-nan"]
)  # fmt: skip
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?", re.A | re.I)
UNITS = ("$", "€", "£", "¥", "%", " ", "\t", "\u00a0", "USD", "EUR")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip
LONGEST = 40  # bytes of a number with units, or of a date


def _number(text: str) -> Optional[float]:
    text = text.strip(" \t")
    return float(text) if NUMBER.fullmatch(text) else None


def _without_units(text: str) -> Tuple[str, bool]:
    """What is left, and whether it is negative; nothing where a sign comes twice."""
    negative = len(text) > 2 and text[0] == "(" and text[-1] == ")"
    if negative:
        text = text[1:-1]
    signs, again = negative, True
    while again and text:
        again = False
        for unit in UNITS:
            if text.startswith(unit):
                text, again = text[len(unit) :], True
            if text.endswith(unit):
                text, again = text[: -len(unit)], True
        if text[:1] in ("-", "+") and text:
            if signs:
                return "", False
            negative, signs, again = text[0] == "-", True, True
            text = text[1:]
    return text, negative


def _styled_number(text: str, point: str, thousands: str) -> Optional[float]:
    text, negative = _without_units(text.strip(" \t"))
    if not text or len(text.encode()) > LONGEST or not "+" <= text[0] <= "9":
        return None
    end = re.search(f"[{re.escape(point)}eE]", text)
    whole, rest = (text, "") if end is None else (text[: end.start()], text[end.start() :])
    groups = re.split(f"[{re.escape(thousands)} '\u00a0\u202f\u2009]", whole)
    if not re.fullmatch("[0-9]*", "".join(groups), re.ASCII):
        return None
    if len(groups) > 1 and (
        not 1 <= len(groups[0]) <= 3 or any(len(group) != 3 for group in groups[1:])
    ):
        return None
    plain = "".join(groups) + rest.replace(point, ".")
    value = None if plain[:1] in ("", "+", "-") else _number(plain)
    return value if value is None or not negative else -value


def _boolean(text: str) -> Optional[float]:
    return {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}.get(text.strip(" \t").lower())


class _Scanner:
    """Reads from the front of a text."""

    def __init__(self, text: str):
        self.text = text

    def take(self, letter: str) -> bool:
        found = self.text[:1] == letter
        self.text = self.text[found:]
        return found

    def skip_spaces(self) -> None:
        self.text = self.text.lstrip(" ")

    def _match(self, pattern: str) -> str:
        found = re.match(pattern, self.text)
        assert found is not None
        self.text = self.text[found.end() :]
        return found[0]

    def number(self, most: int) -> Tuple[int, int]:
        """Up to so many digits: their value, −1 where there are none, and how many."""
        digits = self._match("[0-9]{0,%d}" % most)
        return (int(digits) if digits else -1), len(digits)

    def letters(self) -> str:
        return self._match("[A-Za-z]*").lower()

    def take_quarter(self) -> bool:
        """ "Q", " Q" or "-Q"."""
        return bool(self._match("(?:[ -]?[Qq])?"))


def _month(word: str) -> int:
    for i, name in enumerate(MONTHS):
        if len(word) >= 3 and name.startswith(word):
            return i + 1
    return 9 if word == "sept" else 0


def _full_year(year: int, digits: int) -> int:
    if digits != 2:
        return year if digits == 4 else -1
    return 2000 + year if year < 70 else 1900 + year


def _first_of_quarter(scan: _Scanner, year: int) -> Optional[Tuple[int, int, int]]:
    quarter = scan.number(1)[0]
    return (year, 3 * quarter - 2, 1) if 1 <= quarter <= 4 else None


def _name_first(scan: _Scanner) -> Optional[Tuple[int, int, int]]:
    """ "Mar 31, 2024", "Mar-2024", "Q3 1979"."""
    if scan.take_quarter():
        date = _first_of_quarter(scan, 0)
        if not scan.take("-"):
            scan.skip_spaces()
        year, digits = scan.number(4)
        return None if date is None or digits != 4 else (year, *date[1:])
    month = _month(scan.letters())
    scan.take(".")
    joined = scan.take("-")
    scan.skip_spaces()
    number, digits = scan.number(4)
    if digits == 4:
        return number, month, 1
    if joined or digits > 2:
        return None
    scan.take(",")
    scan.skip_spaces()
    return _full_year(*scan.number(4)), month, number


def _civil_date(scan: _Scanner, day_first: bool) -> Optional[Tuple[int, int, int]]:
    """Year, month and day."""
    if scan.text[0] not in "0123456789":
        return _name_first(scan)
    # "2024-03-31", "31.3.2024", "3/31/24", "31 Mar 2024", "31-Mar-2024", "20240331", "1979 Q3"
    first, digits = scan.number(4)
    if digits == 4 and scan.text[:1] in tuple("0123456789"):
        month = scan.number(2)[0]
        day, more = scan.number(2)
        return (first, month, day) if more == 2 else None
    if digits == 4 and scan.take_quarter():
        return _first_of_quarter(scan, first)
    mark = scan.text[:1]
    if mark not in ("-", "/", ".", " "):
        return None
    scan.take(mark)
    named = _month(scan.letters())
    if mark == " " and named == 0:
        return None
    second = named if named > 0 else scan.number(2)[0]
    if not scan.take(mark):
        return None
    if digits == 4:
        return first, second, scan.number(2)[0]
    year = _full_year(*scan.number(4))
    if named > 0 or mark == "." or day_first:
        return year, second, first
    return year, first, second


def _time_of_day(scan: _Scanner) -> Optional[float]:
    """In days, moved to UTC."""
    hour = scan.number(2)[0]
    if hour < 0 or hour > 24 or not scan.take(":"):
        return None
    minute = scan.number(2)[0]
    second = 0.0
    if scan.take(":"):
        whole = scan.number(2)[0]
        if whole < 0 or whole > 60:
            return None
        second = float(whole)
        if scan.take(".") or scan.take(","):
            unit = 0.1
            while scan.text[:1] in tuple("0123456789"):
                second += scan.number(1)[0] * unit
                unit /= 10
    if minute < 0 or minute > 59:
        return None
    scan.skip_spaces()
    zone = 0.0
    if scan.text[:1] in ("+", "-"):
        sign = 1 if scan.take("+") else -1
        scan.take("-")
        hours = scan.number(2)[0]
        scan.take(":")
        minutes = scan.number(2)[0]
        if hours < 0:
            return None
        zone = sign * (hours + max(minutes, 0) / 60.0)
    else:
        word = scan.letters()
        if word in ("am", "pm"):
            if hour < 1 or hour > 12:
                return None
            hour = hour % 12 + (12 if word == "pm" else 0)
        elif word not in ("", "z", "utc"):
            return None
    return (hour - zone) / 24 + minute / 1440.0 + second / 86400


def _days(year: int, month: int, day: int) -> Optional[int]:
    """Since 2000-01-01, by the Gregorian rules; none where there is no such day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if year < 0 or not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        return None
    before = year - 1
    years = 365 * year + before // 4 - before // 100 + before // 400
    return years - (365 * 2000 + 1999 // 4 - 1999 // 100 + 1999 // 400) + sum(
        lengths[: month - 1]
    ) + day - 1  # fmt: skip


def _date(text: str, day_first: bool) -> Optional[float]:
    text = text.strip(" \t")
    size = len(text.encode())
    if not 4 <= size <= LONGEST:
        return None
    scan = _Scanner(text)
    if ":" in text[1:3]:  # a time alone
        time = _time_of_day(scan)
        return None if scan.text else time
    if size < 6:
        return None
    date = _civil_date(scan, day_first)
    days = None if date is None else _days(*date)
    if days is None or not scan.text:
        return None if days is None else float(days)
    marked = scan.take("T") or scan.take(" ") or scan.take(",")
    scan.skip_spaces()
    time = _time_of_day(scan) if marked else None
    return None if time is None or scan.text else days + time


FORMATS: Dict[str, Tuple[str, Callable[[str], Optional[float]]]] = {
    "number": ("a number", _number),
    "number:point": ("a number", lambda text: _styled_number(text, ".", ",")),
    "number:comma": ("a number", lambda text: _styled_number(text, ",", ".")),
    "boolean": ("true or false", _boolean),
    "date": ("a date", lambda text: _date(text, False)),
    "date:mdy": ("a date", lambda text: _date(text, False)),
    "date:dmy": ("a date", lambda text: _date(text, True)),
}


def _words(text: str) -> Set[str]:
    """The words of a cell of free text, capitals of ASCII as small letters."""
    found = re.findall(rb"[0-9A-Za-z\x80-\xff]+", text.encode("utf-8", "surrogatepass"))
    return {word.lower().decode("utf-8", "surrogatepass") for word in found}


def _cell(value: Any) -> str:
    """A value as it stands in a file; of a missing one nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            return ""
        return str(int(value)) if float(value).is_integer() else str(value)
    return str(value)


class _Column:
    """One column of the table: its cells as features."""

    def __init__(self, encoding: Mapping[str, Any], i: int):
        self.name: str = encoding["columns"][i]
        self.categories: List[str] = encoding["categories"][i]
        formats = encoding.get("formats") or []
        self.format: str = formats[i] if formats else "category" if self.categories else "number"
        self.other = bool((encoding.get("others") or [False] * (i + 1))[i])
        means = encoding["means"]
        self.mean: Optional[float] = None
        if means:
            self.mean = math.nan if means[i] is None else float(np.float32(means[i]))
        self.typed = bool(formats)
        texts = self.format in ("category", "text")
        if not texts and self.format not in FORMATS:
            raise Error(f"column '{self.name}': the format '{self.format}' is not known")
        self.width = len(self.categories) + self.other if texts else 1

    def row(self, text: str, where: str, present: bool) -> Tuple[List[float], str]:
        """The features of one cell, and what is odd about it: "unknown", "missing" or nothing."""
        missing = text in MISSING
        if missing and self.mean is None:
            raise Error(
                f"{where}, column '{self.name}': {'is missing' if present else 'is not there'}; "
                "the network was trained without missing values"
            )
        if self.format in FORMATS:
            if not missing:
                return [self._number(text, where)], ""
            assert self.mean is not None
            return [self.mean], "missing" if self.typed and not math.isnan(self.mean) else ""
        features = [0.0] * self.width
        if self.format == "text":
            words = set() if missing else _words(text)
            for j, word in enumerate(self.categories):
                features[j] = float(word in words)
            if self.other and not missing and not any(features):
                features[-1] = 1.0
            return features, ""
        if text in self.categories:
            features[self.categories.index(text)] = 1.0
        elif not missing and self.other:
            features[-1] = 1.0
        return features, "" if missing or text in self.categories else "unknown"

    def _number(self, text: str, where: str) -> float:
        expected, read = FORMATS[self.format]
        value = read(text)
        if value is None:
            raise Error(f"{where}, column '{self.name}': expected {expected}, found '{text}'")
        with np.errstate(over="ignore"):
            number = float(np.float32(value))
        if math.isinf(number):
            raise Error(
                f"{where}, column '{self.name}': found '{text}', expected a finite float32"
            )
        return number

    def features(self, values: Sequence[Any]) -> np.ndarray:
        """[N, width]"""
        plain = np.asarray(values)
        if plain.dtype.kind in "fiu" and self.format == "number":
            with np.errstate(over="ignore"):
                numbers = plain.astype(np.float32)
            if np.isfinite(numbers).all():
                return numbers[:, None]
        if plain.dtype.kind == "M":
            values = plain.astype("datetime64[s]").astype(str).tolist()
        elif hasattr(values, "tolist"):
            values = values.tolist()
        out = np.empty((len(values), self.width), dtype=np.float32)
        known: Dict[str, Tuple[List[float], str]] = {}
        odd: Dict[str, List[str]] = {"unknown": [], "missing": [], "": []}
        for i, value in enumerate(values):
            text = "" if value is _ABSENT else _cell(value).strip(" \t")
            if text not in known:
                known[text] = self.row(text, f"row {i} (from 0)", value is not _ABSENT)
            out[i], kind = known[text]
            odd[kind].append(text)
        self._warn(odd["unknown"], len(odd["missing"]))
        return out

    def _warn(self, unknown: List[str], missing: int) -> None:
        if unknown:
            kind = "its rare ones" if self.other else "none of them"
            warnings.warn(
                f"column '{self.name}': {len(unknown)} cells, as '{unknown[0]}', are none of the "
                f"categories of the training file and are read as {kind}",
                stacklevel=6,
            )
        if missing:
            warnings.warn(
                f"column '{self.name}': {missing} cells are missing, where none was in the "
                f"training file; they are read as its mean {_cell(np.float32(self.mean))}",
                stacklevel=6,
            )


_ABSENT = object()  # the value of a record that does not have the column

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16,
    "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}  # fmt: skip


class Predictor:
    """An exported file. `alphas`: its levels as they were typed. `columns`: the names of the table's
    columns; none where the network takes numbers. `classes`: the labels, as names where the file
    has them; none of a regression."""

    def __init__(self, path: Any, threads: Optional[int] = None, **options: Any):
        """threads: of ONNX Runtime; options: of its InferenceSession."""
        if threads is not None:
            options["sess_options"] = options.get("sess_options") or onnxruntime.SessionOptions()
            options["sess_options"].intra_op_num_threads = threads
        options.setdefault("providers", ["CPUExecutionProvider"])
        self.path = str(path) if not isinstance(path, bytes) else "the file"
        if not isinstance(path, bytes):
            with open(path, "rb"):  # a missing file is FileNotFoundError
                pass
        self.session = onnxruntime.InferenceSession(
            path if isinstance(path, bytes) else str(path), **options
        )
        facts = self.session.get_modelmeta().custom_metadata_map
        if "fcp.export" not in facts:
            raise Error(f"{self.path}: is not a file of `fcp export`; it has no metadata fcp.export")
        self.settings: Dict[str, Any] = json.loads(facts["fcp.export"])
        self.alphas: List[str] = self.settings["alpha"]
        if "regions" not in self.settings:
            raise Error(
                f"{self.path}: was exported before 0.3, and does not say which outputs are its "
                "regions; export it again"
            )
        self.regions: List[List[str]] = self.settings["regions"]
        self._prediction: List[str] = self.settings["prediction"]
        self._inputs = {one.name: one for one in self.session.get_inputs()}
        self._columns: List[_Column] = []
        if "fcp.columns" in facts and len(self._inputs) == 1 and "fcp.texts" not in facts:
            encoding = json.loads(facts["fcp.columns"])
            self._columns = [_Column(encoding, i) for i in range(len(encoding["columns"]))]
        self.columns = [column.name for column in self._columns] or None
        self.classes: Optional[np.ndarray] = None
        if len(self.regions[0]) == 1:
            shape = {one.name: one.shape for one in self.session.get_outputs()}
            names = json.loads(facts.get("fcp.classes", "null"))
            self.classes = np.array(
                names if names is not None else np.arange(shape[self.regions[0][0]][1])
            )

    def predict_interval(self, X: Any, alpha: Any = None) -> Tuple[np.ndarray, np.ndarray]:
        """The prediction [N] and the intervals [N, 2, levels]; of K > 1 outputs [N, K] and
        [N, K, 2, levels]. alpha: one level of the file or several; without it all of them."""
        if self.classes is not None:
            raise Error(f"{self.path}: holds label sets; call predict_set")
        places = self._places(alpha)
        names = [name for place in places for name in self.regions[place]]
        found = self._run(X, self._prediction + names)
        rows = len(found[0])
        flat = [one.reshape(rows, -1) for one in found]
        middle = flat[: len(self._prediction)]
        prediction = middle[0] if len(middle) == 1 else (middle[0] + middle[1]) / 2
        ends = flat[len(self._prediction) :]
        intervals = np.stack(
            [np.stack(ends[2 * i : 2 * i + 2], axis=2) for i in range(len(places))], axis=3
        )
        if prediction.shape[1] == 1:
            return prediction[:, 0], intervals[:, 0]
        return prediction, intervals

    def predict_set(self, X: Any, alpha: Any = None) -> Tuple[np.ndarray, np.ndarray]:
        """The label [N] that the network answers, and the sets [N, classes, levels]: true for the
        labels in the set, in the order of `classes`."""
        if self.classes is None:
            raise Error(f"{self.path}: holds intervals; call predict_interval")
        places = self._places(alpha)
        found = self._run(X, self._prediction + [self.regions[place][0] for place in places])
        labels = found[0].reshape(len(found[0]), -1).argmax(axis=1)
        return self.classes[labels], np.stack(found[1:], axis=2)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The calibrated probabilities of the classes [N, classes], in the order of `classes`."""
        return self._chances(X)[0]

    def predict_venn_abers(self, X: Any) -> Tuple[np.ndarray, np.ndarray]:
        """The pair p0, p1 of each class, each [N, classes], one of which is calibrated."""
        _, p0, p1 = self._chances(X)
        return p0, p1

    def _chances(self, X: Any) -> List[np.ndarray]:
        names = self.settings.get("probabilities", [])
        if not names:
            raise Error(
                f"{self.path}: holds no probabilities; calibrate with --probabilities venn-abers "
                "and export it again"
            )
        return self._run(X, names)

    def encode(self, X: Any) -> np.ndarray:
        """The numbers [N, features] that the network reads from a table: records (a list of dicts),
        columns (a dict of sequences), or a DataFrame."""
        if not self._columns:
            raise Error(
                "the network does not say how its columns are called; pass numbers instead"
            )
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            names = list(X.columns) if hasattr(X, "columns") else list(X)
            missing = [one.name for one in self._columns if one.name not in names]
            if missing:
                raise Error(
                    f"X: has no column {', '.join(map(repr, missing))}; expected are the columns "
                    f"{', '.join(one.name for one in self._columns)}"
                )
            table = [X[one.name] for one in self._columns]
            counts = {len(values) for values in table}
            if len(counts) != 1:
                raise Error(f"X: columns of {' and '.join(map(str, sorted(counts)))} rows")
        else:
            table = [[row.get(one.name, _ABSENT) for row in X] for one in self._columns]
        if len(table[0]) == 0:
            raise Error("there are no rows")
        return np.concatenate(
            [one.features(values) for one, values in zip(self._columns, table)], axis=1
        )

    def _places(self, alpha: Any) -> List[int]:
        if alpha is None:
            return list(range(len(self.alphas)))
        asked = alpha if isinstance(alpha, (list, tuple, np.ndarray)) else [alpha]
        known = {decimal.Decimal(text): i for i, text in enumerate(self.alphas)}
        places = []
        for one in asked:
            place = known.get(decimal.Decimal(str(one)))
            if place is None:
                raise Error(
                    f"{self.path}: holds the levels {', '.join(self.alphas)}, found alpha = {one}; "
                    "export it with that level"
                )
            places.append(place)
        return places

    def _run(self, X: Any, outputs: List[str]) -> List[np.ndarray]:
        feed = self._feed(X)
        rows = len(next(iter(feed.values())))
        fixed = [one.shape[0] for one in self._inputs.values() if isinstance(one.shape[0], int)]
        if not fixed:
            return list(self.session.run(outputs, feed))
        parts = []  # an exporter fixed the number of rows: so many at a time, the last one again
        for first in range(0, rows, fixed[0]):
            places = np.minimum(np.arange(first, first + fixed[0]), rows - 1)
            found = self.session.run(outputs, {name: x[places] for name, x in feed.items()})
            parts.append([one[: rows - first] for one in found])
        return [np.concatenate(part) for part in zip(*parts)]

    def _feed(self, X: Any) -> Dict[str, np.ndarray]:
        table = isinstance(X, Mapping) or hasattr(X, "columns")
        if isinstance(X, (list, tuple)):
            table = isinstance(X[0], Mapping) if len(X) > 0 else bool(self._columns)
        if isinstance(X, Mapping) and set(X) == set(self._inputs) and not self._columns:
            return {name: self._checked(np.asarray(X[name]), name) for name in self._inputs}
        if self._columns and table:
            X, table = self.encode(X), False
        if len(self._inputs) > 1 or table:
            raise Error(f"X: expected a dict with the inputs {', '.join(self._inputs)}")
        name = next(iter(self._inputs))
        return {name: self._checked(np.asarray(X), name)}

    def _checked(self, x: np.ndarray, name: str) -> np.ndarray:
        """Numbers of the input's type and shape; what is none is an Error instead of a wrong
        answer."""
        one = self._inputs[name]
        if one.type not in TYPES:
            raise Error(f"input '{name}' is a {one.type}, which is not supported")
        if x.ndim == 1 and len(one.shape) > 1:
            x = x[:, None]
        if x.ndim == 0 or len(x) == 0:
            raise Error("x: has no rows")
        expected = [size if isinstance(size, int) else -1 for size in one.shape]
        if len(x.shape) != len(expected) or any(
            size not in (-1, found) for size, found in zip(expected[1:], x.shape[1:])
        ):
            raise Error(
                f"input '{name}': found rows of shape {list(x.shape[1:])}, expected {expected[1:]}"
            )
        if TYPES[one.type] is np.object_:
            return x.astype(np.object_)
        if x.dtype.kind not in "fiub":
            raise Error(f"input '{name}': found {x.dtype}, expected numbers")
        flat = x.reshape(len(x), -1)
        if x.dtype.kind == "f":
            may = self.settings.get("missing", [])
            refused = np.isnan(flat)
            refused[:, may if may != "all" else slice(None)] = False
            if refused.any():
                row, column = np.argwhere(refused)[0]
                raise Error(
                    f"x: row {row} (from 0) has NaN in column {column}, expected a number"
                )
        with np.errstate(over="ignore", invalid="ignore"):
            typed = x.astype(TYPES[one.type])
            same = typed.reshape(flat.shape) == flat
        whole = typed.dtype.kind not in "f"
        wrong = ~same if whole else np.isinf(typed.reshape(flat.shape)) & np.isfinite(flat)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            kind = f"a whole number of type {typed.dtype}" if whole else f"a finite {typed.dtype}"
            raise Error(
                f"x: row {row} (from 0), element {column} (from 0): found {flat[row, column]}, "
                f"expected {kind} for the input '{name}'"
            )
        return typed


def load(path: Any, threads: Optional[int] = None, **options: Any) -> Predictor:
    """The exported file at `path`, or its bytes."""
    return Predictor(path, threads, **options)
