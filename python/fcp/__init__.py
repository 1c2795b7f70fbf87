"""Prediction intervals and label sets with a coverage guarantee, calibrated in the feature space of
a neural network.

    >>> import fcp, numpy, torch
    >>> _ = torch.manual_seed(0)
    >>> from torch.nn import Linear, ReLU, Sequential
    >>> network = Sequential(Linear(2, 16), ReLU(), Linear(16, 1))
    >>> x = numpy.random.default_rng(0).normal(size=(300, 2)).astype("float32")
    >>> y = x.sum(axis=1)

`network` stands for one that was trained on other rows than these.

    >>> regressor = fcp.FeatureConformalRegressor(fcp.from_torch(network, x[:1]))
    >>> prediction, intervals = regressor.conformalize(x[:200], y[:200]).predict_interval(x[200:])
    >>> prediction.shape, intervals.shape
    ((100,), (100, 2, 1))

What this package writes and reads is what the program `fcp` writes and reads.

torch and the module of C++ are loaded when a name is first used; `fcp.runtime` needs neither.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, List

from ._version import version as __version__

if TYPE_CHECKING:
    from ._classifier import FeatureConformalClassifier
    from ._errors import NotFittedError
    from ._estimator import Checked, Outliers
    from ._fcp import Error
    from ._fit import fit
    from ._model import Model, from_torch, load
    from ._parquet import predict_parquet
    from ._regressor import FeatureConformalRegressor
    from ._scoring import region_score
    from ._wrap import wrap

    # Of the wheel's library, for C++ and C: cmake -DCMAKE_PREFIX_PATH=$(python3 -c 'import fcp;
    # print(fcp.cmake_prefix_path)').
    cmake_prefix_path: str

__all__ = [
    "Checked",
    "Error",
    "FeatureConformalClassifier",
    "FeatureConformalRegressor",
    "Model",
    "NotFittedError",
    "Outliers",
    "fit",
    "from_torch",
    "load",
    "predict_parquet",
    "region_score",
    "wrap",
]

_HOMES = {
    "Checked": "_estimator",
    "Error": "_fcp",
    "FeatureConformalClassifier": "_classifier",
    "FeatureConformalRegressor": "_regressor",
    "Model": "_model",
    "NotFittedError": "_errors",
    "Outliers": "_estimator",
    "fit": "_fit",
    "from_torch": "_model",
    "load": "_model",
    "predict_parquet": "_parquet",
    "region_score": "_scoring",
    "wrap": "_wrap",
}


_HERE = os.path.dirname(os.path.abspath(__file__))
_TORCH = "torch-"  # and a minor version: what is compiled for it, fcp/torch-2.15


def _torches() -> List[str]:
    """The minor versions of torch that this package is compiled for, oldest first."""
    found = [name[len(_TORCH) :] for name in os.listdir(_HERE) if name.startswith(_TORCH)]
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def _find_native() -> str:
    """The folder of what is compiled for the torch that is there; another one would end the process."""
    minors = _torches()
    known = ", ".join(minors)
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"fcp needs torch {known}, and there is none: pip install 'torch=={minors[-1]}.*' "
            "(fcp.runtime works without)"
        ) from None
    minor = ".".join(torch.__version__.split(".")[:2])
    if minor not in minors:
        raise ImportError(
            f"fcp is compiled for torch {known}, this is torch {torch.__version__}: pip install "
            f"'torch=={minors[-1]}.*', or fcp from its sources"
        )
    if not torch.compiled_with_cxx11_abi():
        raise ImportError(
            f"fcp was compiled for a torch {minor} with another C++ ABI than the one in "
            f"{torch.__path__[0]}: install fcp from its sources"
        )
    return os.path.join(_HERE, _TORCH + minor)


def _load_module() -> Any:
    """_fcp, behind the torch that it runs on."""
    folder = _find_native()
    if folder not in __path__:
        __path__.append(folder)
    try:
        module = importlib.import_module("._fcp", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}._fcp":
            raise
        modules = ", ".join(sorted(name for name in os.listdir(folder) if name.startswith("_fcp.")))
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"fcp is compiled for {modules}, this is {sys.implementation.name} {version}: install "
            "fcp from its sources"
        ) from None
    except ImportError as error:
        library, found, _ = str(error).partition(": cannot open shared object file")
        if not found:
            raise
        raise ImportError(
            f"fcp needs {library}, which this system does not have: install the package that brings "
            "it (scripts/install-deps.sh program names Debian's; fcp.runtime works without)"
        ) from None
    module.Error.__module__ = __name__
    importlib.import_module("._errors", __name__).NotFittedError.__module__ = __name__
    return module


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "cmake_prefix_path":
            return _find_native()
        if name != "_fcp" and name not in _HOMES:
            raise AttributeError(f"module 'fcp' has no attribute '{name}'")
        module = globals().get("_fcp") or _load_module()
        globals()["_fcp"] = module
        if name != "_fcp":
            home = importlib.import_module(f".{_HOMES[name]}", __name__)
            globals()[name] = getattr(home, name)
        return globals()[name]

    def __dir__() -> List[str]:
        return sorted({*globals(), *__all__})
