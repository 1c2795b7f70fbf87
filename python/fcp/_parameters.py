"""Parameters of estimators as scikit-learn wants them, and which values they may have."""

from __future__ import annotations

import inspect
import numbers
from typing import Any, Dict, TypeVar

import numpy as np

from . import _fcp

Self = TypeVar("Self", bound="Parameters")

# What the library is told where an estimator has no such parameter.
DEFAULTS: Dict[str, Any] = dict(
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

_TEXTS = ("score", "output", "norm", "bound", "normalize", "low", "high", "calibration", "group",
          "device")  # fmt: skip

# The least and the largest value of parameters that are numbers, whole ones where the least is.
_RANGES = {
    "floor": (0.0, np.inf),
    "steps": (0, 2**31 - 1),
    "rate": (0.0, np.inf),
    "bandwidth": (0.0, np.inf),
    "selection": (0.0, 0.9),
    "temperature": (1e-6, np.inf),
    "rank_weight": (0.0, np.inf),
    "rank_free": (0, 2**31 - 1),
    "samples": (1, 2**31 - 1),
    "seed": (0, 2**63 - 1),
}


class Parameters:
    """The arguments of `__init__`, kept under their names."""

    _labels = False
    score: str

    @classmethod
    def _parameters(cls) -> Dict[str, inspect.Parameter]:
        parameters = dict(inspect.signature(cls.__init__).parameters)
        del parameters["self"]
        return parameters

    def _keep(self, values: Dict[str, Any]) -> None:
        """To be called first in `__init__`, with its `locals()`."""
        for name in values.keys() - {"self"}:
            setattr(self, name, values[name])

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

    def _check_values(self) -> None:
        for name, parameter in self._parameters().items():
            value = getattr(self, name)
            if name in _RANGES:
                _check_number(name, value)
            elif isinstance(parameter.default, bool):
                if not isinstance(value, (bool, np.bool_)):
                    raise _fcp.Error(f"{name}: found {value!r}, expected True or False")
            elif name in _TEXTS and value is not parameter.default and not isinstance(value, str):
                raise _fcp.Error(f"{name}: found {value!r}, expected text")

    def _check_belonging(self) -> None:
        params = self.get_params()
        for name, scores in _BELONGS.items():
            if name not in params or self.score in scores:
                continue
            if params[name] != self._parameters()[name].default:
                raise _fcp.Error(f"{name}: is about the scores {', '.join(scores)}")


def _check_number(name: str, value: Any) -> None:
    if value == "auto" and name in ("temperature", "rank_weight"):
        return
    least, most = _RANGES[name]
    whole = isinstance(least, int)
    if (
        isinstance(value, numbers.Integral if whole else numbers.Real)
        and least <= float(value) <= most
    ):
        return
    kind = "a whole number" if whole else "a number"
    raise _fcp.Error(f"{name}: found {value!r}, expected {kind} from {least} to {most}")
