"""Parameters of estimators as scikit-learn wants them. Those of the method come from the library's
option table: names, defaults, help and checks are not written a second time here."""

from __future__ import annotations

import contextlib
import decimal
import inspect
import textwrap
from typing import Any, Dict, Iterator, List, Tuple, TypeVar

import numpy as np

from . import _fcp

Self = TypeVar("Self", bound="Parameters")

# What an estimator takes besides options of the method.
_OTHERS = {
    "alpha": (
        0.1,
        "The level for which lengths are compared when choosing, and of regions where no other one "
        "is asked for; any level can be asked for later",
    ),
    "confidence_level": (None, "1 - alpha, in place of alpha"),
    "device": ("cpu", 'Where networks run: "cpu" or "cuda"'),
    "verbose": (False, "Tells on standard error what is chosen"),
}
_OTHERS_OF_LABELS = {
    "classes": (
        None,
        "What the network's outputs are called, in their order; None: the names that the network "
        "carries, else numbers from 0, else the labels of y in ascending order",
    ),
}

AUTO = "auto"  # as a method: whichever is best on a slice of the rows

# The option `score` is the parameter `method`: `score` is a function of every scikit-learn
# estimator.
_PARAMETER_OF = {"score": "method"}


def parameter_name(option: str) -> str:
    return _PARAMETER_OF.get(option, option)


@contextlib.contextmanager
def parameter_names() -> Iterator[None]:
    """Errors of the library inside call options by the names of parameters."""
    try:
        yield
    except _fcp.Error as error:
        option, colon, rest = str(error).partition(": ")
        if option not in _PARAMETER_OF:
            raise
        rest = rest.replace("head_rows", "fit_data")  # of `conformalize`
        raise _fcp.Error(parameter_name(option) + colon + rest) from None


def one_alpha(alpha: Any, confidence_level: Any) -> Any:
    """alpha by whichever of the two is given, each a number or several; None: neither is."""
    if confidence_level is None:
        return alpha
    if alpha is not None:
        raise _fcp.Error("alpha and confidence_level: found both, expected one of them")
    if isinstance(confidence_level, str) or np.ndim(confidence_level) == 0:
        return _one_minus(confidence_level)
    return [_one_minus(level) for level in confidence_level]


def _one_minus(level: Any) -> str:
    # In decimal: 1 - 0.9 is not 0.1 in binary.
    try:
        alpha = 1 - decimal.Decimal(str(level))
        if 0 < alpha < 1:
            return format(alpha.normalize(), "f")
    except decimal.InvalidOperation:
        pass
    raise _fcp.Error(f"confidence_level: found {level!r}, expected a number such as 0.9")


def _options(labels: bool) -> List[Dict[str, Any]]:
    """The options that a score of labels, or of intervals, looks at."""

    def is_looked_at(option: Dict[str, Any]) -> bool:
        names = {score.split()[0] for score in option["scores"]} - {AUTO}
        return not names or any(_fcp.predicts_labels(name) == labels for name in names)

    asked = [option for option in _fcp.option_table() if option["access"] in ("asked", "seed")]
    return list(filter(is_looked_at, asked))


def _others(labels: bool) -> Dict[str, Any]:
    return {**_OTHERS_OF_LABELS, **_OTHERS} if labels else _OTHERS


def _described(options: List[Dict[str, Any]], labels: bool) -> str:
    """One paragraph for each parameter, for the class's documentation."""
    kinds = [name for name in _fcp.score_names() if _fcp.predicts_labels(name) == labels] + [AUTO]
    lines = ["", "model: an `fcp.Model`, the path of an ONNX file, or a `torch.nn.Module`."]
    for option in options:
        scope = ", ".join([*option["scores"], *option["calibrations"]])
        choices = kinds if option["name"] == "score" else option["choices"]
        values = f" ({', '.join(choices)})" if choices else ""
        name = parameter_name(option["name"])
        lines.append(f"{name}: {scope + ': ' if scope else ''}{option['help']}{values}.")
    lines += [f"{name}: {help}." for name, (_, help) in _others(labels).items()]
    layout = dict(width=100, initial_indent="    ", subsequent_indent="        ")
    return "\n".join(textwrap.fill(line, **layout) for line in lines) + "\n    "  # type: ignore


class Parameters:
    """The arguments of `__init__`, kept under their names."""

    _labels = False
    _estimator_type: str  # how scikit-learn before 1.6 tells regressors from classifiers
    method: str
    alpha: Any
    confidence_level: Any
    verbose: bool
    device: str
    _signature: inspect.Signature
    _names: Tuple[str, ...]  # of the parameters
    _method_options: List[Tuple[str, str, Any]]  # option, parameter and default of each

    def __init_subclass__(cls) -> None:
        options = _options(cls._labels)
        defaults = {parameter_name(option["name"]): option["default"] for option in options}
        defaults.update((name, default) for name, (default, _) in _others(cls._labels).items())
        keyword = inspect.Parameter.KEYWORD_ONLY
        model = inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        named = [inspect.Parameter(name, keyword, default=defaults[name]) for name in defaults]
        cls._signature = cls.__signature__ = inspect.Signature([model, *named])  # type: ignore
        cls.__doc__ = (cls.__doc__ or "").rstrip() + "\n" + _described(options, cls._labels)
        cls._estimator_type = "classifier" if cls._labels else "regressor"
        cls._names = ("model", *defaults)
        cls._method_options = [
            (option["name"], parameter_name(option["name"]), option["default"])
            for option in options
        ]

    def __init__(self, model: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in self._parameters():
                hint = f"; it is called {_PARAMETER_OF[name]}" if name in _PARAMETER_OF else ""
                raise TypeError(f"{type(self).__name__}: there is no parameter '{name}'{hint}")
        for name, parameter in self._parameters().items():
            setattr(self, name, parameters.get(name, parameter.default))
        self.model = model

    @classmethod
    def _parameters(cls) -> Dict[str, inspect.Parameter]:
        return dict(cls._signature.parameters)

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names}

    def set_params(self: Self, **params: Any) -> Self:
        """Changes parameters; they count from the next `conformalize` on."""
        for name, value in params.items():
            if name not in self._parameters():
                raise _fcp.Error(
                    f"there is no parameter '{name}'; there are {', '.join(self._parameters())}"
                )
            setattr(self, name, value)
        return self

    def _library_options(self) -> Dict[str, Any]:
        """The parameters under the names of the library's options; those of the method where they
        are not the library's own defaults."""
        options = {name: getattr(self, name) for name in _OTHERS}
        options["alpha"] = self._own_alpha()
        for option, name, default in self._method_options:
            value = getattr(self, name)
            if value is not default:
                options[option] = value
        return options

    def _own_alpha(self) -> Any:
        """The level of the estimator itself."""
        if self.confidence_level is None:
            return self.alpha
        given = self.alpha != _OTHERS["alpha"][0]
        return one_alpha(self.alpha if given else None, self.confidence_level)

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
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            # `fit` does not train: how good the answers are is the network's business.
            classifier_tags=ClassifierTags(poor_score=True) if self._labels else None,
            regressor_tags=None if self._labels else RegressorTags(poor_score=True),
        )

    def _more_tags(self) -> Dict[str, Any]:
        """What scikit-learn before 1.6 asks for instead."""
        return {"requires_y": True, "poor_score": True}

    def _check_others(self) -> None:
        if not isinstance(self.verbose, (bool, np.bool_)):
            raise _fcp.Error(f"verbose: found {self.verbose!r}, expected true or false")
        if not isinstance(self.device, str):
            raise _fcp.Error(f"device: found {self.device!r}, expected text")
