"""Networks: from ONNX files and from PyTorch."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import inspect
import io
import os
import warnings
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch

from . import _arrays, _fcp, _frames
from ._packing import OneInput, Packing, input_parts, is_several


class Model:
    """A network that never changes, and the tensor at which it is cut by default.

    Made by `fcp.load` and `fcp.from_torch`. `model(X)` is what it answers; pickling, copying and
    scikit-learn's `clone` work.
    """

    def __init__(
        self, network: _fcp.Network, cut: Optional[str] = None, packing: Optional[Packing] = None
    ):
        self._network = network
        self._cut = network.resolve_cut(cut) if cut is not None else None
        self._packing = packing or Packing.known(network)
        self._columns = _fcp.columns(network)
        self._classes = _class_labels(_fcp.class_names(network))

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

    @property
    def column_names(self) -> List[str]:
        """The columns of a table that the network was trained on; empty where it does not say."""
        return [name for name, _ in self._columns]

    @property
    def classes(self) -> Optional[np.ndarray]:
        """What the outputs of a classifier are called; None where the network does not say."""
        return self._classes

    @property
    def several_inputs(self) -> bool:
        """Whether X is a dict or tuple of inputs."""
        return self._packing is not None or self._input_count > 1

    @functools.cached_property
    def _input_count(self) -> int:
        return len(self.inputs)

    def packed_for(self, X: Any) -> "Model":
        """The same network for rows of the shapes of X, which its inputs may leave open."""
        if self._packing is not None or self._input_count < 2:
            return self
        names = tuple(name for name, _ in self.inputs)
        shapes = [np.shape(part)[1:] for part in input_parts(X, names)]
        return Model(self._network.packed(shapes), self._cut)

    def rows(self, X: Any) -> Any:
        """X as the network and files written from it take it: the columns of a table by name, as
        numbers; the inputs of a dict or tuple side by side."""
        if self._columns and _frames.column_names(X) is not None:
            return _frames.encoded(X, self._network, self._columns)
        if self._packing is not None:
            return self._packing.rows(X)
        return _arrays.readable(X)

    def flags(self, X: Any) -> np.ndarray:
        """Of each row of a table what no training row had, and the guarantee does not extend to:
        "missing:COLUMN", "unseen:COLUMN" (a category) and "range:COLUMN" (far outside), with "|"
        between; "" for the rest."""
        if not self._columns or _frames.column_names(X) is None:
            raise _fcp.Error(
                "flags are of rows by column, for a network that fcp trained on a table; "
                "numbers do not say what training rows had"
            )
        return _frames.flags(X, self._network, self._columns)

    def with_classes(self, classes: np.ndarray) -> "Model":
        """The same network, which knows what its outputs are called; so will its files."""
        named = copy.copy(self)
        named._classes = classes
        named._network = _fcp.with_class_names(self._network, [str(name) for name in classes])
        return named

    def __call__(self, X: Any) -> Union[np.ndarray, Tuple[np.ndarray, ...]]:
        """The network's output for each row; a tuple where it has several."""
        if self._packing is None and self.several_inputs:
            return self.packed_for(X)(X)
        outputs = self._network.run(self.rows(X))
        return outputs[0] if len(outputs) == 1 else outputs

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes the network as an ONNX file, which appears whole or not at all."""
        self._network.write(os.fspath(path))

    def __repr__(self) -> str:
        cut = f", cut at '{self._cut}'" if self._cut is not None else ""
        return f"<fcp.Model {self._network.name}: {self._network.layers()} layers{cut}>"

    def __deepcopy__(self, memo: Any) -> "Model":
        return self


def _class_labels(names: Sequence[str]) -> Optional[np.ndarray]:
    """Names that are whole numbers are labels that are numbers."""
    if not names:
        return None
    numbers = all(name.lstrip("-").isdigit() for name in names)
    return np.array([int(name) for name in names] if numbers else names)


def load(path: Any, cut: Optional[str] = None) -> Model:
    """Reads an ONNX network: the path of a file, its bytes, an `onnx.ModelProto`, or the
    `ONNXProgram` that `torch.onnx.export(..., dynamo=True)` gives. Where the network has several
    inputs, X is a dict of arrays by their names, or a tuple in their order.

    cut: where estimators cut the network unless told otherwise: the name of a tensor or node, or a
    number of layers as text ("-2" leaves the last two to the head).

        >>> import fcp, tempfile, torch
        >>> from torch.nn import Linear, Sequential, Tanh
        >>> network = Sequential(Linear(2, 4), Tanh(), Linear(4, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fcp.from_torch(network, torch.zeros(1, 2)).save(f"{folder}/model.onnx")
        ...     model = fcp.load(f"{folder}/model.onnx", cut="-1")
        >>> model([[0.5, 1.0], [2.0, 3.0]]).shape
        (2, 1)
    """
    written = _onnx_bytes(path)
    if written is not None:
        return Model(_fcp.Network.parse(written, type(path).__name__), cut)
    if not isinstance(path, (str, os.PathLike)):
        raise _fcp.Error(
            f"found a {type(path).__name__}, expected the path of an ONNX file, its bytes, an "
            "onnx.ModelProto or an ONNXProgram"
        )
    return Model(_fcp.Network.read(os.fspath(path)), cut)


def is_onnx(source: Any) -> bool:
    """Whether `load` takes it without a file."""
    kinds = (bytes, bytearray, memoryview)
    return isinstance(source, kinds) or any(
        hasattr(source, name) for name in ("SerializeToString", "model_proto")
    )


def _onnx_bytes(source: Any) -> Optional[bytes]:
    """The bytes of a network that is in memory; None where it is not."""
    if not is_onnx(source):
        return None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    return getattr(source, "model_proto", source).SerializeToString()


def from_torch(module: Any, example: Any = None, cut: Optional[str] = None) -> Model:
    """A PyTorch network as fcp runs it.

    module: a `torch.nn.Module`, compiled or not; or the `ONNXProgram` of one, which needs no
    example, and whose cut is a tensor or node as of `fcp.load`.
    example: a row or several as the module takes them, of which only shape and type count; a dict
    or tuple where it takes several inputs, by name or by place. X is then such a dict or tuple too.
    cut: the name of a submodule, as in `module.named_modules()`; its output is the feature. Files
    written from the model know the tensor by that name.

        >>> import fcp, torch
        >>> from torch.nn import Linear, Sequential, Tanh
        >>> network = Sequential(Linear(2, 4), Tanh(), Linear(4, 1))
        >>> fcp.from_torch(network, torch.zeros(1, 2), cut="1").cut
        'layer 1'

    The module is exported by `torch.onnx.export` in evaluation mode, once; what it learns later the
    model does not know. Where torch has the exporter of `dynamo=True` and onnxscript is installed,
    that one is asked first, and the one by tracing where it fails.
    """
    if is_onnx(module):
        return load(module, cut)
    if not isinstance(module, torch.nn.Module):
        raise _fcp.Error(
            f"found a {type(module).__name__}, expected a torch.nn.Module or an ONNXProgram"
        )
    if example is None:
        raise _fcp.Error("example: there is none, expected a row as the module takes it")
    module = getattr(module, "_orig_mod", module)  # of torch.compile
    if cut is not None and cut not in dict(module.named_modules()):
        raise _fcp.Error(f"the module has no submodule '{cut}'")
    submodule = None if cut is None else module.get_submodule(cut)
    # A number would be read as a number of layers.
    feature = None if cut is None else f"layer {cut}" if cut.lstrip("-").isdigit() else cut
    name, packing = type(module).__name__, None
    if is_several(example):
        weights = next(module.parameters(), torch.zeros(0))
        packing = Packing.of(example, weights.dtype)
        module = OneInput(module, packing)
        example = torch.from_numpy(packing.rows(example)).to(weights.device)
    else:
        example = _example(module, example)
    network = _exported(module, example, submodule, feature, name)
    return Model(network, feature, packing)


def _example(module: torch.nn.Module, example: Any) -> torch.Tensor:
    example = example if torch.is_tensor(example) else torch.as_tensor(np.asarray(example))
    weights = next(module.parameters(), None)
    if weights is not None and example.is_floating_point():
        example = example.to(weights)  # its type, and its device
    return example


class _WithFeature(torch.nn.Module):
    """The module with the output of one submodule as one more output."""

    def __init__(self, module: torch.nn.Module, submodule: torch.nn.Module, name: str):
        super().__init__()
        self.module = module
        self.submodule = submodule
        self.name = name

    def forward(self, x: torch.Tensor) -> Tuple[Any, ...]:
        features: List[Any] = []
        handle = self.submodule.register_forward_hook(lambda *call: features.append(call[-1]))
        try:
            outputs = self.module(x)
        finally:
            handle.remove()
        if len(features) != 1 or not torch.is_tensor(features[0]):
            raise _fcp.Error(f"the submodule '{self.name}' does not give one tensor, once")
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return (*outputs, features[0])


def _exported(
    module: torch.nn.Module,
    example: torch.Tensor,
    submodule: Optional[torch.nn.Module],
    feature: Optional[str],
    name: str,
) -> _fcp.Network:
    """The network by the first exporter that writes one which fcp reads; what torch says where it
    cannot run or export the module is an Error of fcp."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with _errors_of_torch("the module does not take the example"), torch.no_grad():
            answer = module(example)
        count = len(answer) if isinstance(answer, (tuple, list)) else 1
        names = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
        if submodule is not None and feature is not None:
            module = _WithFeature(module, submodule, feature.removeprefix("layer ")).eval()
            names.append(feature)
        exporters = [_export_by_tracing]
        if "dynamo" in _export_parameters() and importlib.util.find_spec("onnxscript"):
            exporters.insert(0, _export_by_dynamo)
        for export in exporters:
            try:
                with _errors_of_torch("torch cannot export the module"):
                    written = export(module, example, names)
                network = _fcp.Network.parse(written, name, names[count:])
                if feature is not None:
                    network.resolve_cut(feature)
                return network
            except _fcp.Error:
                if export is exporters[-1]:
                    raise
        raise AssertionError("there is always an exporter")
    finally:
        for part, training in modes:
            part.training = training


def _export_by_dynamo(module: torch.nn.Module, example: torch.Tensor, names: List[str]) -> bytes:
    # An axis of size 1 would be taken for one that never changes.
    example = torch.cat([example, example]) if len(example) == 1 else example
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(  # type: ignore[call-arg]
            module,
            (example,),
            input_names=["input"],
            output_names=names,
            dynamic_shapes=({0: torch.export.Dim("batch")},),  # type: ignore[attr-defined]
            dynamo=True,
            verbose=False,
        )
    return _onnx_bytes(program) or b""


def _export_by_tracing(module: torch.nn.Module, example: torch.Tensor, names: List[str]) -> bytes:
    options = {"dynamo": False} if "dynamo" in _export_parameters() else {}
    written = io.BytesIO()
    torch.onnx.export(
        module,
        (example,),
        written,
        opset_version=17,
        input_names=["input"],
        output_names=names,
        dynamic_axes={name: {0: "batch"} for name in ["input", *names]},
        **options,
    )
    return written.getvalue()


@contextlib.contextmanager
def _errors_of_torch(what: str) -> Iterator[None]:
    """Whatever a module or an exporter throws inside is an Error of one line."""
    try:
        yield
    except _fcp.Error:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = lines[0] if lines else "it does not say why"
        raise _fcp.Error(f"{what}: {type(error).__name__}: {told}") from error


def _export_parameters() -> Any:
    return inspect.signature(torch.onnx.export).parameters
