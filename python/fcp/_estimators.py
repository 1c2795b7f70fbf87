"""The estimators, in the words of scikit-learn and MAPIE."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
import torch

from . import _arrays, _fcp
from ._model import Model, from_torch, load

Path = Union[str, "os.PathLike[str]"]
Alpha = Union[float, str]
Source = Union[Model, torch.nn.Module, str, "os.PathLike[str]"]
Self = TypeVar("Self", bound="_Estimator")

_BY_LABEL = ("predicted", "label")

# What the library is told where an estimator has no such parameter.
_DEFAULTS: Dict[str, Any] = dict(
    output="", normalize="", low="", high="", asymmetric=False, norm="inf", bound="ibp", floor=0.0,
    steps=0, rate=0.01, adam=False, paper=False, loss_weights=[], randomized=True, rank_free=0,
    samples=1000, temperature=1.0, rank_weight=0.0, group="",
)  # fmt: skip

# The scores that look at a parameter; with another score a value of one's own is an error, not
# ignored.
_BELONGS = {
    "floor": ("nested", "linearized", "feature_cqr"),
    "bound": ("nested", "surrogate", "feature_cqr", "feature_margin"),
    "norm": ("nested", "linearized", "surrogate", "feature_cqr", "feature_margin",
             "feature_sampled"),
    "normalize": ("residual",),
    "low": ("cqr", "feature_cqr"),
    "high": ("cqr", "feature_cqr"),
    "asymmetric": ("cqr", "feature_cqr"),
    "steps": ("surrogate", "feature_cqr", "feature_sampled"),
    "rate": ("surrogate", "feature_cqr", "feature_sampled"),
    "adam": ("surrogate", "feature_cqr", "feature_sampled"),
    "loss_weights": ("surrogate",),
    "paper": ("surrogate", "feature_cqr"),
    "temperature": ("lac", "aps", "raps"),
    "randomized": ("aps", "raps"),
    "rank_weight": ("raps", "feature_margin"),
    "rank_free": ("raps", "feature_margin"),
    "samples": ("feature_sampled",),
}  # fmt: skip


class Checked(NamedTuple):
    """How usual the answer of each row is."""

    score: np.ndarray  # [N], or [N, 2] where the score has two sides
    p_value: np.ndarray  # [N]
    inside: np.ndarray  # [N] bool: within its region at the level asked for


class _Estimator:
    """What regressors and classifiers share: parameters, calibration, files."""

    _labels = False
    model: Source
    score: str
    cut: Optional[str]
    calibration: str
    predictor_: _fcp.Predictor
    model_: Model

    # Parameters, as scikit-learn asks for them.

    @classmethod
    def _parameters(cls) -> Dict[str, inspect.Parameter]:
        parameters = dict(inspect.signature(cls.__init__).parameters)
        del parameters["self"]
        return parameters

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self: Self, **params: Any) -> Self:
        """Changes parameters; they count from the next `conformalize` on."""
        for name, value in params.items():
            if name not in self._parameters():
                raise _fcp.Error(
                    f"there is no parameter '{name}'; there are {', '.join(self._parameters())}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        own = [
            f"{name}={getattr(self, name)!r}"
            for name, parameter in self._parameters().items()
            if getattr(self, name) is not parameter.default
        ]
        return f"{type(self).__name__}({', '.join(own)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "predictor_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier" if self._labels else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if self._labels else None,
            regressor_tags=None if self._labels else RegressorTags(),
        )

    # Calibration.

    def conformalize(
        self: Self, X: Any, y: Any, *, groups: Any = None, weights: Any = None, shifted: Any = None
    ) -> Self:
        """Calibrates on rows with known answers that the network was not trained on.

        groups: with calibration="grouped", the group of each row (text or numbers).
        weights, shifted: with calibration="weighted", the likelihood ratio of each row, or rows of
        the other distribution, without answers, from which it is estimated.
        """
        if _fcp.predicts_labels(self.score) != self._labels:
            kind = "labels" if not self._labels else "intervals"
            raise _fcp.Error(f"{type(self).__name__}: '{self.score}' is a score of {kind}")
        rows = _arrays.readable(X)
        self._check_parameters(groups, weights, shifted)
        model, cut = self._model_and_cut(rows)
        facts = self._facts(len(rows), groups if self.calibration == "grouped" else None, weights)
        self.predictor_ = _fcp.Predictor.calibrate(
            model._network,
            rows,
            _arrays.readable(y),
            self._options(cut),
            facts,
            None if shifted is None else _arrays.readable(shifted),
        )
        self.model_ = model
        return self

    def fit(self: Self, X: Any, y: Any, **facts: Any) -> Self:
        """The same as `conformalize`, for pipelines; the network is not trained."""
        return self.conformalize(X, y, **facts)

    def _check_parameters(self, groups: Any, weights: Any, shifted: Any) -> None:
        params = self.get_params()
        for name, scores in _BELONGS.items():
            if name not in params or self.score in scores:
                continue
            if params[name] != self._parameters()[name].default:
                raise _fcp.Error(f"{name}: is about the scores {', '.join(scores)}")
        localized = self.calibration == "localized"
        if self.cut is not None and not _fcp.uses_features(self.score) and not localized:
            raise _fcp.Error(f"cut: the score {self.score} does not look at features")
        if params["bandwidth"] and not localized:
            raise _fcp.Error("bandwidth: is about calibration='localized'")
        given = [weights is not None, shifted is not None]
        if sum(given) != (self.calibration == "weighted"):
            raise _fcp.Error("calibration='weighted' takes one of weights and shifted")
        by_label = params["group"] in _BY_LABEL
        if (groups is not None) != (self.calibration == "grouped" and not by_label):
            raise _fcp.Error("calibration='grouped' and groups go together")

    def _options(self, cut: Optional[str]) -> Dict[str, Any]:
        options = dict(_DEFAULTS)
        params = self.get_params()
        for name in params:
            if name not in ("model", "cut"):
                options[name] = "" if params[name] is None else params[name]
        for name in ("temperature", "rank_weight"):
            if options[name] == "auto":
                options[name] = None
        options["loss_weights"] = list(options["loss_weights"])
        if self.calibration == "grouped":
            options["group"] = options["group"] or "group"
        featured = _fcp.uses_features(self.score) or self.calibration == "localized"
        options["cut"] = str(cut) if featured and cut is not None else ""
        return options

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
        """For rows with answers: the score, its p-value, and whether the answer is in the region."""
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
        """Coverage, and length or size, on rows with known answers: what `fcp evaluate --json` says.

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
        """Writes the calibrated predictor: the ONNX file that the program `fcp` writes and reads."""
        self._fitted().write(os.fspath(path))

    @classmethod
    def load(cls: "type[Self]", path: Path, device: str = "cpu") -> Self:
        """Reads a calibrated predictor that `save` or `fcp calibrate` wrote."""
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
    return list(alpha)


class FeatureConformalRegressor(_Estimator):
    """Prediction intervals that hold the truth with probability at least 1 - alpha.

        >>> import fcp, numpy, torch
        >>> _ = torch.manual_seed(0)
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2)).astype("float32")
        >>> y = x[:, 0] + numpy.abs(x[:, 1]) * random.normal(size=600)
        >>> regressor = fcp.FeatureConformalRegressor(fcp.from_torch(network, x[:1]), score="nested")
        >>> regressor = regressor.conformalize(x[:500], y[:500])
        >>> prediction, intervals = regressor.predict_interval(x[500:], alpha=[0.1, 0.2])
        >>> prediction.shape, intervals.shape  # rows; rows, lower and upper, levels
        ((100,), (100, 2, 2))
        >>> regressor.evaluate(x[500:], y[500:], alpha=0.1)["rows"]
        100

    model: an `fcp.Model`, the path of an ONNX file, or a `torch.nn.Module`.
    score: nested, residual, linearized, surrogate, cqr, feature_cqr.
    cut: where features are: a tensor, a node, a number of layers as text, a submodule's name of a
        torch module, or "auto" to try every cut and floor on a slice of the rows; by default that of
        the model, or two layers before the output.
    output: the network's output to calibrate, where it has several.
    norm, bound: of feature space: inf, 2 or 1; ibp, crown-ibp, crown or alpha-crown.
    floor: widens each band by this share of the mean band.
    normalize: for residual, the output that estimates the spread of the answer.
    low, high, asymmetric: for cqr and feature_cqr, the outputs that are the quantiles, and whether
        each side has a radius of its own.
    steps, rate, adam, loss_weights, paper: of the surrogate search; steps=0 chooses them.
    calibration: split, grouped, localized or weighted.
    group: what tells groups, as the name of a column for the program.
    bandwidth: for localized; 0 chooses it on a slice of the rows.
    selection: the share of the rows that choices look at and calibration does not.
    alpha: the level for which lengths are compared when choosing; any level can be asked for later.
    """

    def __init__(
        self,
        model: Source,
        *,
        score: str = "nested",
        cut: Optional[str] = None,
        output: Optional[str] = None,
        norm: str = "inf",
        bound: str = "ibp",
        floor: float = 0.0,
        normalize: Optional[str] = None,
        low: Optional[str] = None,
        high: Optional[str] = None,
        asymmetric: bool = False,
        steps: int = 0,
        rate: float = 0.01,
        adam: bool = False,
        loss_weights: Sequence[float] = (),
        paper: bool = False,
        calibration: str = "split",
        group: Optional[str] = None,
        bandwidth: float = 0.0,
        selection: float = 0.2,
        alpha: Alpha = 0.1,
        seed: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ):
        self.model = model
        self.score = score
        self.cut = cut
        self.output = output
        self.norm = norm
        self.bound = bound
        self.floor = floor
        self.normalize = normalize
        self.low = low
        self.high = high
        self.asymmetric = asymmetric
        self.steps = steps
        self.rate = rate
        self.adam = adam
        self.loss_weights = loss_weights
        self.paper = paper
        self.calibration = calibration
        self.group = group
        self.bandwidth = bandwidth
        self.selection = selection
        self.alpha = alpha
        self.seed = seed
        self.device = device
        self.verbose = verbose

    def predict_interval(
        self,
        X: Any,
        alpha: Union[Alpha, Sequence[Alpha]] = 0.1,
        *,
        groups: Any = None,
        weights: Any = None,
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The prediction [N] and the intervals [N, 2, levels] of each row, in double precision.

        With K > 1 outputs they are [N, K] and [N, K, 2, levels]. Ends may be infinite: too few
        calibration rows for a level give infinite intervals and a warning.
        """
        prediction, intervals = self._regions(X, alpha, groups, weights)
        if prediction.shape[1] == 1:
            return prediction[:, 0], intervals[:, 0]
        return prediction, intervals

    def predict(self, X: Any, **facts: Any) -> np.ndarray:
        """The middle alone: what the network answers; for quantiles, the mean of the two."""
        return self.predict_interval(X, 0.5, **facts)[0]


class FeatureConformalClassifier(_Estimator):
    """Sets of labels that hold the true one with probability at least 1 - alpha.

        >>> import fcp, numpy, torch
        >>> _ = torch.manual_seed(0)
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2)).astype("float32")
        >>> y = random.integers(3, size=600)
        >>> classifier = fcp.FeatureConformalClassifier(fcp.from_torch(network, x[:1]), score="lac")
        >>> labels, sets = classifier.conformalize(x[:500], y[:500]).predict_set(x[500:], alpha=0.1)
        >>> labels.shape, sets.shape, sets.dtype  # rows; rows, classes, levels
        ((100,), (100, 3, 1), dtype('bool'))

    The network answers logits [N, classes]; y are labels 0, 1, … classes - 1.

    model, cut, output, norm, bound, calibration, bandwidth, selection, alpha: as for
    `FeatureConformalRegressor`.
    score: feature_margin, lac, aps, raps, feature_sampled.
    temperature: lac, aps, raps: of the softmax, or "auto" to fit it on a slice of the rows.
    randomized: aps, raps: whether a label may be in by a share; without it sets are larger.
    rank_weight, rank_free: raps (its lambda and k_reg), feature_margin: what each rank beyond
        rank_free costs; "auto" chooses both on a slice.
    samples, steps, rate, adam: of feature_sampled.
    group: with calibration="grouped", "predicted" (by the network's answer) or "label" (class by
        class), or the name of a column.
    """

    _labels = True

    def __init__(
        self,
        model: Source,
        *,
        score: str = "feature_margin",
        cut: Optional[str] = None,
        output: Optional[str] = None,
        norm: str = "inf",
        bound: str = "ibp",
        temperature: Union[float, str] = 1.0,
        randomized: bool = True,
        rank_weight: Union[float, str] = "auto",
        rank_free: int = 0,
        samples: int = 1000,
        steps: int = 0,
        rate: float = 0.01,
        adam: bool = False,
        calibration: str = "split",
        group: Optional[str] = None,
        bandwidth: float = 0.0,
        selection: float = 0.2,
        alpha: Alpha = 0.1,
        seed: int = 0,
        device: str = "cpu",
        verbose: bool = False,
    ):
        self.model = model
        self.score = score
        self.cut = cut
        self.output = output
        self.norm = norm
        self.bound = bound
        self.temperature = temperature
        self.randomized = randomized
        self.rank_weight = rank_weight
        self.rank_free = rank_free
        self.samples = samples
        self.steps = steps
        self.rate = rate
        self.adam = adam
        self.calibration = calibration
        self.group = group
        self.bandwidth = bandwidth
        self.selection = selection
        self.alpha = alpha
        self.seed = seed
        self.device = device
        self.verbose = verbose

    def predict_set(
        self,
        X: Any,
        alpha: Union[Alpha, Sequence[Alpha]] = 0.1,
        *,
        groups: Any = None,
        weights: Any = None,
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The label [N] that the network answers, and the sets [N, classes, levels]: true for the
        labels in the set."""
        return self._regions(X, alpha, groups, weights)

    def predict(self, X: Any, **facts: Any) -> np.ndarray:
        """The label that the network answers."""
        return self.predict_set(X, 0.5, **facts)[0]
