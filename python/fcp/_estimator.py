"""What regressors and classifiers share: calibration, evaluation, files."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
import torch

from . import _arrays, _fcp
from ._model import Model, from_torch, load
from ._parameters import AUTO, Parameters

Path = Union[str, "os.PathLike[str]"]
Alpha = Union[float, str]
Source = Union[Model, torch.nn.Module, str, "os.PathLike[str]"]
Self = TypeVar("Self", bound="Estimator")

_BY_LABEL = ("predicted", "label")


class Checked(NamedTuple):
    """How usual the answer of each row is."""

    score: np.ndarray  # [N], or [N, 2] where the score has two sides
    p_value: np.ndarray  # [N]
    inside: np.ndarray  # [N] bool: within its region at the level asked for


class Estimator(Parameters):
    """A network with its calibration, in the words of scikit-learn and MAPIE."""

    _labels = False
    model: Source
    score: str
    cut: Optional[str]
    calibration: str
    predictor_: _fcp.Predictor
    model_: Model

    # Calibration.

    def conformalize(
        self: Self, X: Any, y: Any, *, groups: Any = None, weights: Any = None, shifted: Any = None
    ) -> Self:
        """Calibrates on rows with known answers that the network was not trained on.

        groups: with calibration="grouped", the group of each row (text or numbers).
        weights, shifted: with calibration="weighted", the likelihood ratio of each row, or rows of
        the other distribution, without answers, from which it is estimated.
        """
        rows = _arrays.readable(X)
        self._check_parameters(groups, weights, shifted)
        model, cut = self._model_and_cut(rows)
        facts = self._facts(len(rows), groups if self.calibration == "grouped" else None, weights)
        predictor = _fcp.Predictor.calibrate(
            model._network,
            rows,
            _arrays.readable(y),
            self._options(cut if self._looks_at_features() else None),
            facts,
            None if shifted is None else _arrays.readable(shifted),
        )
        self._check_kind(predictor.score, predictor.labels)
        self.predictor_ = predictor
        self.model_ = model
        return self

    def fit(self: Self, X: Any, y: Any, **facts: Any) -> Self:
        """The same as `conformalize`, for pipelines; the network is not trained."""
        return self.conformalize(X, y, **facts)

    def _check_parameters(self, groups: Any, weights: Any, shifted: Any) -> None:
        options = self._options(self.cut)
        _fcp.check_values(options)
        self._check_others()
        if self.score != AUTO:
            self._check_kind(self.score, _fcp.predicts_labels(self.score))
        _fcp.check_options(options)
        given = [weights is not None, shifted is not None]
        if sum(given) != (self.calibration == "weighted"):
            raise _fcp.Error("calibration='weighted' takes one of weights and shifted")
        by_label = options["group"] in _BY_LABEL
        if (groups is not None) != (self.calibration == "grouped" and not by_label):
            raise _fcp.Error("calibration='grouped' and groups go together")

    def _options(self, cut: Optional[str]) -> Dict[str, Any]:
        options = self.get_params()
        del options["model"]
        if self.calibration == "grouped":
            options["group"] = options["group"] or "group"
        options["cut"] = None if cut is None else str(cut)
        return options

    def _looks_at_features(self) -> bool:
        if self.score == AUTO or self.calibration == "localized":
            return True
        return _fcp.uses_features(self.score)

    def _check_kind(self, score: str, labels: bool) -> None:
        if labels != self._labels:
            kind = "labels" if labels else "intervals"
            raise _fcp.Error(f"{type(self).__name__}: '{score}' is a score of {kind}")

    def _model_and_cut(self, rows: Any) -> Tuple[Model, Optional[str]]:
        if isinstance(self.model, torch.nn.Module):
            submodules = dict(self.model.named_modules())
            named = self.cut if self.cut and self.cut in submodules else None
            model = from_torch(self.model, torch.as_tensor(rows[:1]).float(), cut=named)
            return model, model.cut or self.cut
        model = self.model if isinstance(self.model, Model) else load(self.model)
        return model, model.cut if self.cut is None else self.cut

    def _facts(
        self, rows: int, groups: Any = None, weights: Any = None, shown: Any = None,
        known: Sequence[str] = (),
    ) -> Dict[str, Any]:  # fmt: skip
        facts: Dict[str, Any] = dict(groups=[], group_names=[], shown=[], shown_names=[])
        for name, given in (("groups", groups), ("weights", weights), ("groups", shown)):
            if given is not None and len(given) != rows:
                raise _fcp.Error(f"{name}: names {len(given)} rows, X has {rows}")
        if groups is not None:
            facts["groups"], facts["group_names"] = _arrays.group_ids(groups, known)
        if shown is not None:
            facts["shown"], facts["shown_names"] = _arrays.group_ids(shown, known)
        facts["weights"] = [] if weights is None else np.asarray(weights, float).tolist()
        return facts

    # New rows.

    def _fitted(self) -> _fcp.Predictor:
        if not hasattr(self, "predictor_"):
            raise _fcp.Error(f"{type(self).__name__}: call conformalize first")
        return self.predictor_

    def _facts_of_new(self, rows: Any, groups: Any, weights: Any, shows: bool) -> Dict[str, Any]:
        predictor = self._fitted()
        by_groups = predictor.calibration == "grouped" and predictor.group not in _BY_LABEL
        if by_groups and groups is None:
            raise _fcp.Error("it was calibrated by group: name the groups of the rows by groups")
        if groups is not None and not by_groups and not shows:
            raise _fcp.Error("groups: it was calibrated without groups")
        if weights is not None and predictor.calibration != "weighted":
            raise _fcp.Error("weights: it was calibrated without weights")
        known = predictor.group_names if by_groups else []
        facts = self._facts(
            len(rows), groups if by_groups else None, weights, groups if shows else None, known
        )
        unseen = facts["group_names"][len(known) :]
        if unseen:
            names = ", ".join(f"'{name}'" for name in unseen)
            warnings.warn(
                f"calibration has not seen the group {names}: its regions are infinite",
                stacklevel=4,
            )
        return facts

    def _warn(self, alphas: Sequence[Alpha]) -> None:
        for alpha in alphas:
            warning = self._fitted().warning(alpha)
            if warning is not None:
                warnings.warn(warning, stacklevel=4)

    def _regions(
        self, X: Any, alpha: Union[Alpha, Sequence[Alpha]], groups: Any, weights: Any
    ) -> Tuple[np.ndarray, np.ndarray]:
        rows = _arrays.readable(X)
        alphas = _alphas(alpha)
        facts = self._facts_of_new(rows, groups, weights, shows=False)
        self._warn(alphas)
        return self._fitted().regions(rows, alphas, facts)

    def check(
        self, X: Any, y: Any, alpha: Alpha = 0.1, *, groups: Any = None, weights: Any = None
    ) -> Checked:
        """For rows with answers: the score, its p-value, and whether the answer is inside."""
        rows = _arrays.readable(X)
        facts = self._facts_of_new(rows, groups, weights, shows=False)
        score, p_value, inside = self._fitted().check(rows, _arrays.readable(y), alpha, facts)
        return Checked(score[:, 0] if score.shape[1] == 1 else score, p_value, inside)

    def evaluate(
        self,
        X: Any,
        y: Any,
        alpha: Alpha = 0.1,
        *,
        groups: Any = None,
        weights: Any = None,
        report: Optional[Path] = None,
    ) -> Dict[str, Any]:
        """What `fcp evaluate --json` says: coverage, and length or size, on rows with answers.

        groups: shows the coverage of each. report: an HTML page to write.
        """
        rows = _arrays.readable(X)
        facts = self._facts_of_new(rows, groups, weights, shows=True)
        text = self._fitted().evaluate(
            rows, _arrays.readable(y), alpha, facts, os.fspath(report or ""), False
        )
        return json.loads(text)

    def radius(self, alpha: Alpha = 0.1) -> List[float]:
        """The radius of each side of the score; empty where it differs from row to row."""
        return self._fitted().radius(alpha)

    # Files.

    def save(self, path: Path) -> None:
        """Writes the calibrated predictor as the ONNX file that `fcp calibrate` writes."""
        self._fitted().write(os.fspath(path))

    @classmethod
    def load(cls: "type[Self]", path: Path, device: str = "cpu") -> Self:
        """Reads a calibrated predictor that `save` or `fcp calibrate` wrote.

        Of the parameters, score, cut, calibration and group are read back, for `get_params`.
        """
        predictor = _fcp.Predictor.read(os.fspath(path), device)
        if predictor.labels != cls._labels:
            kind = "labels" if predictor.labels else "intervals"
            raise _fcp.Error(f"{os.fspath(path)}: predicts {kind}, not for a {cls.__name__}")
        model = Model(predictor.network())
        self = cls(  # type: ignore[call-arg]
            model,
            score=predictor.score,
            cut=predictor.cut or None,
            calibration=predictor.calibration,
            group=predictor.group or None,
            device=device,
        )
        self.predictor_ = predictor
        self.model_ = model
        return self

    def export(
        self, path: Path, alpha: Union[Alpha, Sequence[Alpha]] = 0.1, *, prefix: str = ""
    ) -> None:
        """Writes a plain ONNX network with the regions at these levels as outputs: `lower` and
        `upper`, or `in_set`, for any runtime."""
        self._fitted().export(os.fspath(path), _alphas(alpha), prefix)


def _alphas(alpha: Union[Alpha, Sequence[Alpha]]) -> List[Alpha]:
    if isinstance(alpha, (str, float)) or np.ndim(alpha) == 0:
        return [alpha]  # type: ignore[list-item]
    if len(alpha) == 0:
        raise _fcp.Error("alpha: is empty, expected a number such as 0.1, or several")
    return list(alpha)
