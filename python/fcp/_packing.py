"""Networks with several inputs. The library runs networks on rows of one tensor: the inputs lie
side by side in it, [N, numbers of all inputs], and the exported network takes them apart."""

from __future__ import annotations

import collections.abc
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch

from . import _arrays, _fcp

_LARGEST = 2**53  # whole numbers up to this one are exact in float64
_WIDE = (torch.int32, torch.int64, torch.float64)  # what float32 does not hold


class Packing(NamedTuple):
    """How the inputs lie in a row."""

    names: Optional[Tuple[str, ...]]  # of a dict; None: a tuple
    shapes: Tuple[Tuple[int, ...], ...]  # of one row
    types: Optional[Tuple[torch.dtype, ...]]  # None: the network knows
    wide: bool  # rows are float64

    @classmethod
    def of(cls, example: Any, floats: Optional[torch.dtype]) -> "Packing":
        """floats: what the network computes in; None: what the example has."""
        names = tuple(example) if isinstance(example, collections.abc.Mapping) else None
        parts = [_tensor(part) for part in _parts(example, names)]
        shapes = tuple(tuple(part.shape[1:]) for part in parts)
        types = tuple(
            floats if floats and part.is_floating_point() else part.dtype for part in parts
        )
        return cls(names, shapes, types, any(kind in _WIDE for kind in types))

    @classmethod
    def known(cls, network: _fcp.Network) -> Optional["Packing"]:
        """Of a network whose inputs lie in rows already; None where they do not."""
        layout, wide = network.layout()
        if not layout:
            return None
        names = tuple(name for name, _ in layout)
        return cls(names, tuple(tuple(shape) for _, shape in layout), None, wide)

    def rows(self, X: Any) -> np.ndarray:
        """The inputs of rows as one array [N, numbers]."""
        if self.names is None and (not isinstance(X, (tuple, list)) or len(X) != len(self.shapes)):
            raise _fcp.Error(f"X: the network takes a tuple of {len(self.shapes)} inputs")
        flat = []
        for place, part in enumerate(input_parts(X, self.names)):
            name = f"X[{self.names[place]!r}]" if self.names else f"X[{place}]"
            flat.append(self._flat(_arrays.plain(part, name), place, name))
        if len({len(part) for part in flat}) > 1:
            raise _fcp.Error(f"X: the inputs have {', '.join(str(len(p)) for p in flat)} rows")
        return np.concatenate(flat, axis=1)

    def _flat(self, part: np.ndarray, place: int, name: str) -> np.ndarray:
        if part.shape[1:] != self.shapes[place]:
            raise _fcp.Error(f"{name}: has rows of {part.shape[1:]}, expected {self.shapes[place]}")
        if part.dtype.kind in "iu" and part.size and np.abs(part).max() > _LARGEST:
            raise _fcp.Error(f"{name}: holds {np.abs(part).max()}, expected at most {_LARGEST}")
        flat = part.reshape(len(part), -1).astype(np.float64 if self.wide else np.float32)
        whole = self.types is not None and not self.types[place].is_floating_point
        if whole and (flat != np.floor(flat)).any():
            raise _fcp.Error(f"{name}: holds fractions, expected whole numbers")
        return flat

    def inputs(self, rows: torch.Tensor) -> Union[Dict[str, torch.Tensor], List[torch.Tensor]]:
        """The inputs again."""
        found, first = [], 0
        assert self.types is not None
        for shape, kind in zip(self.shapes, self.types):
            last = first + int(np.prod(shape, dtype=int))
            found.append(rows[:, first:last].reshape((-1, *shape)).to(kind))
            first = last
        return dict(zip(self.names, found)) if self.names is not None else found


class OneInput(torch.nn.Module):
    """The module on rows that hold all its inputs."""

    def __init__(self, module: torch.nn.Module, packing: Packing):
        super().__init__()
        self.module = module
        self.packing = packing

    def forward(self, rows: torch.Tensor) -> Any:
        inputs = self.packing.inputs(rows)
        return self.module(**inputs) if isinstance(inputs, dict) else self.module(*inputs)


def input_parts(X: Any, names: Optional[Tuple[str, ...]]) -> List[Any]:
    """The inputs in the order of their names; a tuple has them in order already."""
    if names is None:
        return list(X)
    if isinstance(X, tuple):
        if len(X) != len(names):
            raise _fcp.Error(f"X: has {len(X)} inputs, expected {', '.join(names)}")
        return list(X)
    if not isinstance(X, collections.abc.Mapping):
        raise _fcp.Error(f"X: the network takes a dict of the inputs {', '.join(names)}")
    return _parts(X, names)


def is_several(X: Any) -> bool:
    """Whether X is the inputs of a network with several: a dict, or a tuple of arrays."""
    return isinstance(X, (collections.abc.Mapping, tuple))


def first_rows(X: Any) -> Any:
    """The first row, as an example of all."""
    if isinstance(X, tuple):
        return tuple(part[:1] for part in X)
    if is_several(X):
        return {name: part[:1] for name, part in X.items()}
    return X[:1]


def _parts(X: Any, names: Optional[Tuple[str, ...]]) -> List[Any]:
    if names is None:
        return list(X)
    missing = [name for name in names if name not in X]
    if missing:
        raise _fcp.Error(f"X: has no input {', '.join(missing)}; expected {', '.join(names)}")
    return [X[name] for name in names]


def _tensor(part: Any) -> torch.Tensor:
    return part.detach().cpu() if torch.is_tensor(part) else torch.as_tensor(np.asarray(part))
