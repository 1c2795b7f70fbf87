"""What regressors and classifiers share: calibration, evaluation, files."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
import torch

from . import _arrays, _batches, _fcp, _frames
from ._errors import not_fitted
from ._inputs import Inputs
from ._model import Model, from_torch, is_onnx, load
from ._packing import first_rows, is_several
from ._parameters import AUTO, Parameters, one_alpha, parameter_names

Path = Union[str, "os.PathLike[str]"]
Alpha = Union[float, str]
Alphas = Union[Alpha, Sequence[Alpha]]
Source = Union[Model, torch.nn.Module, str, "os.PathLike[str]", Any]
Self = TypeVar("Self", bound="Estimator")

_BY_LABEL = ("predicted", "label")

# Of a score's or calibration's name, which never change.
_predicts_labels = functools.lru_cache(maxsize=None)(_fcp.predicts_labels)
_uses_features = functools.lru_cache(maxsize=None)(_fcp.uses_features)
_reads_heads = functools.lru_cache(maxsize=None)(_fcp.reads_heads)
_traits = functools.lru_cache(maxsize=None)(_fcp.calibration_traits)


class Checked(NamedTuple):
    """Score, p-value and membership of each row's answer."""

    score: np.ndarray  # [N], or [N, sides]: two ends, or targets with a radius each (joint="each")
    p_value: np.ndarray  # [N]; with joint="each" [N, targets]
    inside: np.ndarray  # likewise, bool: within its region at the level asked for


class Outliers(NamedTuple):
    """How unusual each row is, without answers."""

    score: np.ndarray  # [N], large ones are unusual
    p_value: np.ndarray  # [N], small ones are unusual
    outlier: np.ndarray  # [N] bool: all rows considered together


class Estimator(Parameters):
    """A calibrated network, with the interface of scikit-learn and MAPIE.

    After `conformalize` it has `n_features_in_`, and for tables `feature_names_in_`: later tables
    are matched by the names of their columns. `outputs_` says which output of the network is which:
    {"prediction": name}, for quantiles {"low": name, "high": name}, for a classifier
    {"classes": name}, and others that the method uses. All functions take `alpha` or
    `confidence_level` = 1 - alpha; without either, the estimator's own level applies."""

    _labels = False
    model: Source
    cut: Optional[str]
    calibration: str
    predictor_: _fcp.Predictor
    model_: Model
    inputs_: Inputs
    outputs_: Dict[str, str]
    feature_names_in_: np.ndarray
    n_features_in_: int
    evaluation_: Dict[str, Any]  # of fcp.fit, on its test rows

    # Calibration.

    def conformalize(
        self: Self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        weights: Any = None,
        shifted: Any = None,
        fit_data: Any = None,
    ) -> Self:
        """Calibrates on rows with known answers that the network was not trained on.

        X: an array, tensor or table; a dict or tuple for networks with several inputs; or batches
        (x, y) of them, as a torch DataLoader or a generator gives them, and then y is None.
        groups: with calibration="grouped", the group of each row (text or numbers).
        weights, shifted: with calibration="weighted", the likelihood ratio of each row, or rows of
        the other distribution, without answers, from which it is estimated.
        fit_data: other rows and their answers, not trained on either, from which spread, quantiles
        and density learn where the network errs; None: a share of X, which then is left out.
        """
        pairs = _batches.pairs(X, y, type(self).__name__)
        first = next(pairs, None)
        if first is None:
            raise _fcp.Error("X: has no batches")
        with parameter_names():
            options = self._options()
            self._check_parameters(options, groups, weights, shifted)
            model, cut = self._model_and_cut(first[0])
            inputs = Inputs(model, first[0], type(self).__name__)
            rows, answers = self._joined(inputs, [first, *pairs])
            model, answers = self._named(model, answers)
            if fit_data is not None:
                fit_rows, fit_answers = fit_data
                fit_data = inputs.rows(fit_rows), self._answers(model, fit_answers)
            options.pop("cut", None)
            if cut is not None and self._looks_at_features():
                options["cut"] = str(cut)
            predictor = _fcp.Predictor.calibrate(
                model._network,
                rows,
                answers,
                options,
                self._facts(len(rows), groups, weights),
                None if shifted is None else inputs.rows(shifted),
                fit_data,
            )
        self._check_kind(predictor.score, predictor.labels)
        self._keep(predictor, model, inputs)
        if self.verbose:
            for role, name in self.outputs_.items():
                print(f"output '{name}' is taken for: {role}", file=sys.stderr)
        return self

    def fit(self: Self, X: Any, y: Any = None, **facts: Any) -> Self:
        """The same as `conformalize`, for pipelines; the network is not trained."""
        return self.conformalize(X, y, **facts)

    def _keep(self, predictor: _fcp.Predictor, model: Model, inputs: Inputs) -> None:
        for name in ("feature_names_in_", "n_features_in_"):
            vars(self).pop(name, None)
        inputs.model = model
        self.predictor_ = predictor
        self.model_ = model
        self.inputs_ = inputs
        self.outputs_ = predictor.outputs
        names = inputs.names or model.column_names
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        if inputs.count is not None or names:
            self.n_features_in_ = inputs.count or len(names)

    @staticmethod
    def _joined(inputs: Inputs, pairs: Sequence[Tuple[Any, Any]]) -> Tuple[Any, Any]:
        rows = _batches.joined([inputs.rows(x) for x, _ in pairs])
        return rows, _batches.joined([y for _, y in pairs])

    def _named(self, model: Model, answers: Any) -> Tuple[Model, Any]:
        """The model with the names of its classes, and y as the library takes it."""
        return model, self._answers(model, answers)

    def _answers(self, model: Model, y: Any) -> Any:
        return _arrays.answers(y)

    def _check_parameters(
        self, options: Dict[str, Any], groups: Any, weights: Any, shifted: Any
    ) -> None:
        try:
            _fcp.check_options(options)
        except _fcp.Error:  # that a value is wrong is said first, then that the method is
            _fcp.check_values(options)
            self._check_method()
            raise
        self._check_method()
        given = [weights is not None, shifted is not None]
        if sum(given) != _traits(self.calibration)["by_weight"]:
            raise _fcp.Error("calibration='weighted' takes one of weights and shifted")
        by_label = options.get("group") in _BY_LABEL
        if (groups is not None) != (_traits(self.calibration)["by_group"] and not by_label):
            raise _fcp.Error("calibration='grouped' and groups go together")

    def _check_method(self) -> None:
        self._check_others()
        if self.method != AUTO:
            self._check_kind(self.method, _predicts_labels(self.method))

    def _options(self) -> Dict[str, Any]:
        options = self._library_options()
        if _traits(self.calibration)["by_group"]:
            options["group"] = options.get("group") or "group"
        if options.get("cut") is not None:
            options["cut"] = str(options["cut"])
        return options

    def _looks_at_features(self) -> bool:
        if self.method == AUTO or _traits(self.calibration)["by_feature"]:
            return True
        return _uses_features(self.method)

    def _looks_at_rows(self) -> bool:
        """Whether anything but the network's answer counts."""
        if self.method == AUTO or _uses_features(self.method) or _reads_heads(self.method):
            return True
        traits = _traits(self.calibration)
        return traits["by_feature"] or traits["by_weight"] or traits["rectifies"]

    def _check_kind(self, score: str, labels: bool) -> None:
        if labels != self._labels:
            kind = "labels" if labels else "intervals"
            raise _fcp.Error(f"{type(self).__name__}: '{score}' is a score of {kind}")

    def _model_and_cut(self, X: Any) -> Tuple[Model, Optional[str]]:
        if isinstance(self.model, torch.nn.Module):
            submodules = dict(self.model.named_modules())
            named = self.cut if self.cut and self.cut in submodules else None
            if not is_several(X):
                X = torch.as_tensor(_arrays.readable(X)[:1]).float()
            model = from_torch(self.model, first_rows(X), cut=named)
            return model, model.cut or self.cut
        if hasattr(self.model, "model_for"):  # of fcp.wrap
            return self.model.model_for(X, self._looks_at_rows()), self.cut
        if hasattr(self.model, "predict") and not is_onnx(self.model):
            kind = type(self.model).__name__
            raise _fcp.Error(f"model: found a {kind}; fcp.wrap takes fitted estimators")
        model = self.model if isinstance(self.model, Model) else load(self.model)
        model = model.packed_for(X)
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
            raise not_fitted(
                f"This {type(self).__name__} instance is not fitted yet: call conformalize first"
            )
        return self.predictor_

    def _facts_of_new(
        self, rows: int, groups: Any, weights: Any, shows: bool, needed: bool = True
    ) -> Dict[str, Any]:
        predictor = self._fitted()
        traits = _traits(predictor.calibration)
        by_groups = traits["by_group"] and predictor.group not in _BY_LABEL
        if by_groups and groups is None and needed:
            raise _fcp.Error("groups: the predictor was calibrated by group: give the group of each row")
        if groups is not None and not by_groups and not shows:
            raise _fcp.Error("groups: it was calibrated without groups")
        if weights is not None and not traits["by_weight"]:
            raise _fcp.Error("weights: it was calibrated without weights")
        known = predictor.group_names if by_groups else []
        facts = self._facts(
            rows, groups if by_groups else None, weights, groups if shows else None, known
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
        self, X: Any, alphas: Sequence[Alpha], groups: Any, weights: Any
    ) -> Tuple[np.ndarray, np.ndarray, Any]:
        """Predictions and regions of all rows, and the index of a table. Without levels the
        predictions alone, which need no groups and weights."""
        predictor = self._fitted()
        self._warn(alphas)
        batched = _batches.is_batches(X)
        found, batches, before = [], [], 0
        for x in _batches.rows_alone(X, self.model_.several_inputs):
            rows = self.inputs_.rows(x)
            count = len(rows)
            facts = self._facts_of_new(
                count,
                _batches.part(groups, before, count) if batched else groups,
                _batches.part(weights, before, count) if batched else weights,
                shows=False,
                needed=bool(alphas),
            )
            found.append(predictor.regions(rows, alphas, facts, before))
            batches.append(x)
            before += count
        if not found:
            raise _fcp.Error("X: has no batches")
        if batched:
            for name, given in (("groups", groups), ("weights", weights)):
                if given is not None and len(given) != before:
                    raise _fcp.Error(f"{name}: names {len(given)} rows, X has {before}")
        prediction, regions = (_batches.joined(list(parts)) for parts in zip(*found))
        return prediction, regions, _frames.index_of(batches)

    def _rows_and_answers(self, X: Any, y: Any) -> Tuple[Any, Any]:
        self._fitted()
        pairs = list(_batches.pairs(X, y, type(self).__name__))
        rows = _batches.joined([self.inputs_.rows(x) for x, _ in pairs])
        return rows, self._answers(self.model_, _batches.joined([answer for _, answer in pairs]))

    def _alpha(self, alpha: Any, confidence_level: Any) -> Any:
        found = one_alpha(alpha, confidence_level)
        return self._own_alpha() if found is None else found

    def check(
        self,
        X: Any,
        y: Any = None,
        alpha: Optional[Alpha] = None,
        *,
        confidence_level: Optional[Alpha] = None,
        groups: Any = None,
        weights: Any = None,
    ) -> Checked:
        """For rows with answers: the score, its p-value, and whether the answer is inside."""
        rows, answers = self._rows_and_answers(X, y)
        facts = self._facts_of_new(len(rows), groups, weights, shows=False)
        level = self._alpha(alpha, confidence_level)
        score, p_value, inside = self._fitted().check(rows, answers, level, facts)
        return Checked(score[:, 0] if score.shape[1] == 1 else score, p_value, inside)

    def flags(self, X: Any) -> np.ndarray:
        """Of each row of a table what no training row had, as `fcp predict --flags` writes it."""
        return self.model_.flags(X)

    def outliers(
        self, X: Any, reference: Any, fdr: Alpha = 0.1, *, score: str = "neighbours",
        neighbours: int = 10, cut: Optional[str] = None, seed: int = 0, weights: Any = None,
        reference_weights: Any = None,
    ) -> Outliers:  # fmt: skip
        """Flags rows of X that are unlike the rows `reference`, which did not train the network, by
        the network's features; no answers are needed. The expected share of false ones among the
        flagged rows is at most `fdr`.

        score: "neighbours", the mean distance to the nearest reference rows, or "density", minus
        the logarithm of a kernel density of them. cut: where the network is cut; None: where the
        estimator cuts it. weights, reference_weights: where inputs have moved, the likelihood ratio
        of each row of X and of `reference`.
        """
        predictor = self._fitted()
        if (weights is None) != (reference_weights is None):
            raise _fcp.Error("weights: expected with reference_weights, or neither")
        options = {
            "score": score,
            "neighbours": neighbours,
            "cut": cut or "",
            "seed": seed,
            "weights": [] if weights is None else np.asarray(weights, float).tolist(),
            "reference_weights": (
                [] if reference_weights is None else np.asarray(reference_weights, float).tolist()
            ),
        }
        scores, p_values, any_dependence = _fcp.feature_outliers(
            predictor, self.inputs_.rows(X), self.inputs_.rows(reference), options
        )
        told = _fcp.discoveries(p_values.tolist(), fdr, any_dependence)
        return Outliers(scores, p_values, np.array(told, dtype=bool))

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        alpha: Optional[Alpha] = None,
        *,
        confidence_level: Optional[Alpha] = None,
        groups: Any = None,
        weights: Any = None,
        report: Optional[Path] = None,
    ) -> Dict[str, Any]:
        """The results of `fcp evaluate --json`: coverage, and length or size, on rows with answers.

        groups: reports the coverage of each. report: an HTML page to write.
        """
        rows, answers = self._rows_and_answers(X, y)
        facts = self._facts_of_new(len(rows), groups, weights, shows=True)
        level = self._alpha(alpha, confidence_level)
        text = self._fitted().evaluate(
            rows, answers, level, facts, os.fspath(report or ""), False
        )
        return json.loads(text)

    def radius(
        self, alpha: Optional[Alpha] = None, *, confidence_level: Optional[Alpha] = None
    ) -> List[float]:
        """The radius of each side of the score; empty where it differs from row to row."""
        return self._fitted().radius(self._alpha(alpha, confidence_level))

    # Files.

    def save(self, path: Path) -> None:
        """Writes the calibrated predictor as the ONNX file that `fcp calibrate` writes.

        Its rows are those of `model_.rows(X)`. An estimator inside `fcp.wrap` is not in the file;
        pickling keeps both.
        """
        self._fitted().write(os.fspath(path))

    @classmethod
    def load(cls: "type[Self]", path: Path, device: str = "cpu") -> Self:
        """Reads a calibrated predictor that `save` or `fcp calibrate` wrote.

        Of the parameters, method, cut, calibration and group are read back, for `get_params`.
        """
        predictor = _fcp.Predictor.read(os.fspath(path), device)
        if predictor.labels != cls._labels:
            kind = "labels" if predictor.labels else "intervals"
            raise _fcp.Error(f"{os.fspath(path)}: predicts {kind}, not for a {cls.__name__}")
        model = Model(predictor.network())
        self = cls(  # type: ignore[call-arg]
            model,
            method=predictor.score,
            cut=predictor.cut or None,
            calibration=predictor.calibration,
            group=predictor.group or None,
            device=device,
        )
        self._keep(predictor, model, Inputs(model, None, cls.__name__))
        return self

    def export(
        self,
        path: Path,
        alpha: Optional[Alphas] = None,
        *,
        confidence_level: Optional[Alphas] = None,
        prefix: str = "",
    ) -> None:
        """Writes a plain ONNX network with the regions at these levels as outputs: `lower` and
        `upper`, or `in_set`, for any runtime."""
        alphas = levels(self._alpha(alpha, confidence_level))
        self._fitted().export(os.fspath(path), alphas, prefix)


def levels(alpha: Alphas) -> List[Alpha]:
    """One level or several as a list."""
    if isinstance(alpha, (str, float)) or np.ndim(alpha) == 0:
        return [alpha]  # type: ignore[list-item]
    if len(alpha) == 0:
        raise _fcp.Error("alpha: is empty, expected a number such as 0.1, or several")
    return list(alpha)
