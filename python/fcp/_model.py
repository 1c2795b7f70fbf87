"""Networks: from ONNX files and from PyTorch."""

from __future__ import annotations

import inspect
import io
import os
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np
import torch

from . import _arrays, _fcp


class Model:
    """A network that never changes, and the tensor at which it is cut by default.

    Made by `fcp.load` and `fcp.from_torch`. `model(X)` is what it answers; pickling, copying and
    scikit-learn's `clone` work.
    """

    def __init__(self, network: _fcp.Network, cut: Optional[str] = None):
        self._network = network
        self._cut = network.resolve_cut(cut) if cut is not None else None

    @property
    def cut(self) -> Optional[str]:
        """The tensor that is the feature where an estimator names none; None: fcp's default."""
        return self._cut

    @property
    def cuts(self) -> Sequence[str]:
        """All tensors at which the network can be cut, the input first."""
        return self._network.cuts()

    @property
    def inputs(self) -> Sequence[Tuple[str, Sequence[int]]]:
        """Name and shape of each input; -1 stands for any size."""
        return self._network.inputs

    @property
    def outputs(self) -> Sequence[Tuple[str, Sequence[int]]]:
        """Name and shape of each output; -1 stands for any size."""
        return self._network.outputs

    def __call__(self, X: Any) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        """The network's output for each row; a tuple where it has several."""
        outputs = self._network.run(_arrays.readable(X))
        return outputs[0] if len(outputs) == 1 else outputs

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the network as an ONNX file, which appears whole or not at all."""
        self._network.write(os.fspath(path))

    def __repr__(self) -> str:
        cut = f", cut at '{self._cut}'" if self._cut is not None else ""
        return f"<fcp.Model {self._network.name}: {self._network.layers()} layers{cut}>"

    def __deepcopy__(self, memo: Any) -> "Model":
        return self


def load(path: Union[str, os.PathLike], cut: Optional[str] = None) -> Model:
    """Reads an ONNX file.

    cut: where estimators cut the network unless told otherwise: the name of a tensor or node, or a
    number of layers as text ("-2" leaves the last two to the head).

        >>> import fcp, tempfile, torch
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fcp.from_torch(network, torch.zeros(1, 2)).save(f"{folder}/model.onnx")
        ...     model = fcp.load(f"{folder}/model.onnx", cut="-1")
        >>> model([[0.5, 1.0], [2.0, 3.0]]).shape
        (2, 1)
    """
    return Model(_fcp.Network.read(os.fspath(path)), cut)


def from_torch(module: torch.nn.Module, example: Any, cut: Optional[str] = None) -> Model:
    """A PyTorch network as fcp runs it.

    example: a row or several as the module takes them, of which only the shape counts.
    cut: the name of a submodule, as in `module.named_modules()`; its output is the feature. Files
    written from the model know the tensor by that name.

        >>> import fcp, torch
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        >>> fcp.from_torch(network, torch.zeros(1, 2), cut="1").cut
        'layer 1'

    The module is exported by `torch.onnx.export` in evaluation mode, once; what it learns later the
    model does not know.
    """
    example = torch.as_tensor(np.asarray(example) if not torch.is_tensor(example) else example)
    if cut is not None and cut not in dict(module.named_modules()):
        raise _fcp.Error(f"the module has no submodule '{cut}'")
    # A number would be read as a number of layers.
    feature = None if cut is None else f"layer {cut}" if cut.lstrip("-").isdigit() else cut
    onnx = _export(module, example, cut, feature)
    network = _fcp.Network.parse(onnx, type(module).__name__, [] if feature is None else [feature])
    return Model(network, feature)


class _WithFeature(torch.nn.Module):
    """The module with the output of one submodule as one more output."""

    def __init__(self, module: torch.nn.Module, cut: str):
        super().__init__()
        self.module = module
        self.cut = cut
        self.feature: Any = None

    def forward(self, x: torch.Tensor) -> Tuple[Any, ...]:
        submodule = self.module.get_submodule(self.cut)
        handle = submodule.register_forward_hook(self._keep)
        try:
            outputs = self.module(x)
        finally:
            handle.remove()
        if not torch.is_tensor(self.feature):
            raise _fcp.Error(f"the submodule '{self.cut}' does not give one tensor")
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return (*outputs, self.feature)

    def _keep(self, _submodule: torch.nn.Module, _inputs: Any, output: Any) -> None:
        if self.feature is not None and self.feature is not output:
            self.feature = "several"
        else:
            self.feature = output


def _export(
    module: torch.nn.Module, example: torch.Tensor, cut: Optional[str], feature: Optional[str]
) -> bytes:
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            answer = module(example)
        count = len(answer) if isinstance(answer, (tuple, list)) else 1
        names = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
        if cut is not None and feature is not None:
            module = _WithFeature(module, cut).eval()
            names.append(feature)
        # From torch 2.9 on another exporter is the default, which names tensors as it likes.
        options = {"dynamo": False} if "dynamo" in _export_parameters() else {}
        bytes_ = io.BytesIO()
        torch.onnx.export(
            module,
            (example,),
            bytes_,
            opset_version=17,
            input_names=["input"],
            output_names=names,
            dynamic_axes={name: {0: "batch"} for name in ["input", *names]},
            **options,
        )
        return bytes_.getvalue()
    finally:
        (module.module if isinstance(module, _WithFeature) else module).train(training)


def _export_parameters() -> Any:
    return inspect.signature(torch.onnx.export).parameters
