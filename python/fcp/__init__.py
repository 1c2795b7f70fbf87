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
"""

import torch  # brings the libtorch that _fcp runs on, and must come before it

from ._build import torch_version

# Before _fcp is loaded, which would end the process on another libtorch.
if torch.__version__.split(".")[:2] != torch_version.split(".")[:2]:
    raise ImportError(
        f"fcp was built for torch {torch_version}, this is torch {torch.__version__}: "
        "install fcp again"
    )
if not torch.compiled_with_cxx11_abi():
    raise ImportError(
        f"fcp was built for a torch {torch_version} with another C++ ABI than the one in "
        f"{torch.__path__[0]}: install fcp again"
    )

from . import _fcp
from ._fcp import Error
from ._classifier import FeatureConformalClassifier
from ._errors import NotFittedError
from ._estimator import Checked
from ._model import Model, from_torch, load
from ._regressor import FeatureConformalRegressor
from ._scoring import region_score
from ._wrap import wrap

__version__: str = _fcp.version
Error.__module__ = NotFittedError.__module__ = "fcp"

__all__ = [
    "Checked",
    "Error",
    "FeatureConformalClassifier",
    "FeatureConformalRegressor",
    "Model",
    "NotFittedError",
    "from_torch",
    "load",
    "region_score",
    "wrap",
]
