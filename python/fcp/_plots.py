"""Plots by matplotlib, which is imported only here, when asked for."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from . import _frames
from ._errors import needs

_INSIDE, _MISSED, _BAND = "#1f6f8b", "#d1495b", "#9fb8c4"


def plot_intervals(
    X: Any, prediction: np.ndarray, intervals: np.ndarray, truth: Optional[np.ndarray],
    alpha: Any, ax: Any,
) -> Any:  # fmt: skip
    """prediction [N], intervals [N, 2], truth [N] or None."""
    ax = _axes(ax)
    place, label = _places(X, prediction)
    shown = prediction if truth is None else np.concatenate([prediction, truth])
    lower, upper = _finite_ends(intervals, shown)
    ax.vlines(place, lower, upper, color=_BAND, linewidth=1.5, label=f"{_percent(alpha)} intervals")
    ax.scatter(place, prediction, s=6, color="black", label="prediction")
    if truth is not None:
        inside = (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])
        share = f"{100 * inside.mean():.1f} %"
        ax.scatter(place[inside], truth[inside], s=9, color=_INSIDE, label=f"inside: {share}")
        ax.scatter(place[~inside], truth[~inside], s=14, color=_MISSED, marker="x", label="missed")
    ax.set_xlabel(label)
    ax.set_ylabel("y")
    ax.legend()
    return ax


def plot_set_sizes(sets: np.ndarray, inside: Optional[np.ndarray], alpha: Any, ax: Any) -> Any:
    """sets [N, classes] of bools, inside [N] or None."""
    ax = _axes(ax)
    sizes = sets.sum(axis=1)
    bins = np.arange(sets.shape[1] + 1)
    counts = np.bincount(sizes, minlength=len(bins))
    if inside is None:
        ax.bar(bins, counts, color=_INSIDE)
    else:
        held = np.bincount(sizes[inside], minlength=len(bins))
        ax.bar(bins, held, color=_INSIDE, label=f"hold the truth: {100 * inside.mean():.1f} %")
        ax.bar(bins, counts - held, bottom=held, color=_MISSED, label="miss it")
        ax.legend()
    ax.set_xlabel(f"labels in the set, at {_percent(alpha)}")
    ax.set_ylabel("rows")
    return ax


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot
    except ImportError:
        raise needs("matplotlib", "plot()") from None
    return matplotlib.pyplot.gca() if ax is None else ax


def _places(X: Any, prediction: np.ndarray) -> Tuple[np.ndarray, str]:
    """Where each row stands on the x axis, and what the axis is called."""
    if np.ndim(X) == 2 and np.shape(X)[1] == 1:
        names = _frames.column_names(X)
        return np.asarray(X, dtype=float)[:, 0], names[0] if names else "x"
    place = np.empty(len(prediction))
    place[np.argsort(prediction, kind="stable")] = np.arange(len(prediction))
    return place, "rows in the order of their predictions"


def _finite_ends(intervals: np.ndarray, shown: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Infinite ends reach a little beyond everything else."""
    finite = np.concatenate([shown, intervals[np.isfinite(intervals)]])
    low, high = finite.min(), finite.max()
    margin = 0.05 * (high - low)
    return np.maximum(intervals[:, 0], low - margin), np.minimum(intervals[:, 1], high + margin)


def _percent(alpha: Any) -> str:
    return f"{100 * (1 - float(alpha)):g} %"
