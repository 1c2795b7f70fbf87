"""Sets of labels."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from . import _arrays, _batches, _fcp, _frames, _plots
from ._estimator import Alpha, Alphas, Estimator, levels
from ._inputs import Inputs
from ._model import Model


class FeatureConformalClassifier(Estimator):
    """Sets of labels that hold the true one with probability at least 1 - alpha.

        >>> import fcp, numpy, torch
        >>> _ = torch.manual_seed(0)
        >>> from torch.nn import Linear, ReLU, Sequential
        >>> network = Sequential(Linear(2, 16), ReLU(), Linear(16, 3))
        >>> random = numpy.random.default_rng(0)
        >>> x = random.normal(size=(600, 2)).astype("float32")
        >>> y = numpy.array(["cat", "dog", "cow"])[random.integers(3, size=600)]
        >>> model = fcp.from_torch(network, x[:1])
        >>> classifier = fcp.FeatureConformalClassifier(model, method="lac")
        >>> labels, sets = classifier.conformalize(x[:500], y[:500]).predict_set(x[500:], alpha=0.1)
        >>> labels.shape, sets.shape, sets.dtype  # rows; rows, classes, levels
        ((100,), (100, 3, 1), dtype('bool'))
        >>> classifier.classes_.tolist()
        ['cat', 'cow', 'dog']

    The network answers logits [N, classes]. y are numbers from 0 on, in the order of the outputs,
    or the names of the classes: `classes` gives their order. After `conformalize`: `classes_`.
    """

    _labels = True
    classes: Any
    classes_: np.ndarray

    def _named(self, model: Model, answers: Any) -> Tuple[Model, Any]:
        names = self.classes if self.classes is not None else model.classes
        if names is None:
            names = _names_in(_arrays.plain(answers, "y"))
        if names is not None:
            count = _width(model)
            if count is not None and count != len(names):
                raise _fcp.Error(
                    f"y: has {len(names)} classes, the network answers {count}; name all of them "
                    "in its order by the parameter classes"
                )
            model = model.with_classes(np.asarray(names))
        return model, self._answers(model, answers)

    def _answers(self, model: Model, y: Any) -> Any:
        if model.classes is None:
            return _arrays.answers(y)
        names, labels = model.classes.tolist(), _arrays.plain(y, "y").reshape(-1).tolist()
        places = {name: place for place, name in enumerate(names)}
        found = np.array([places.get(label, -1) for label in labels], dtype=np.int64)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise _fcp.Error(
                f"y: row {row} (from 0): found label {labels[row]!r}, expected one of "
                f"{', '.join(map(repr, names))}"
            )
        return found

    def _keep(self, predictor: _fcp.Predictor, model: Model, inputs: Inputs) -> None:
        super()._keep(predictor, model, inputs)
        named = model.classes
        self.classes_ = np.arange(predictor.classes) if named is None else named

    def predict_set(
        self,
        X: Any,
        alpha: Optional[Alphas] = None,
        *,
        confidence_level: Optional[Alphas] = None,
        groups: Any = None,
        weights: Any = None,
        as_frame: bool = False,
    ) -> Any:
        """The label [N] that the network answers, and the sets [N, classes, levels]: true for the
        labels in the set, in the order of `classes_`. X may be batches. confidence_level: 1 - alpha,
        in place of alpha; the estimator's level where neither is given.

        as_frame: a table of pandas instead, with the index of X and the columns prediction, size
        and labels; of several levels size_0.1, …
        """
        alphas = levels(self._alpha(alpha, confidence_level))
        places, sets, index = self._regions(X, alphas, groups, weights)
        labels = self.classes_[places]
        if as_frame:
            return _frames.set_frame(labels, sets, self.classes_, alphas, index)
        return labels, sets

    def predict(self, X: Any, *, groups: Any = None, weights: Any = None) -> np.ndarray:
        """The label that the network answers. It is the same for all levels, groups and weights,
        which need not be given."""
        places = self._regions(X, [], groups, weights)[0]
        return self.classes_[places]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes [N, classes], in the order of `classes_`: the softmax of
        the logits at the temperature that the score takes; or with probabilities="venn-abers" the
        merged ones of `predict_venn_abers`, divided by their sum. Neither promises anything by
        itself; the guarantees are those of the sets and of the pair."""
        return self._probabilities(X)[0]

    def predict_venn_abers(self, X: Any) -> Tuple[np.ndarray, np.ndarray]:
        """p0 and p1 of each class, each [N, classes]: what isotonic regression says of the class if
        the row is not of it, and if it is. One of the two is calibrated, whatever the network is;
        their distance says how little is known. Of estimators with probabilities="venn-abers"."""
        _, p0, p1 = self._probabilities(X)
        if p0 is None or p1 is None:
            raise _fcp.Error('probabilities: calibrate with probabilities="venn-abers"')
        return p0, p1

    def _probabilities(self, X: Any) -> Any:
        predictor = self._fitted()
        batches = _batches.rows_alone(X, self.model_.several_inputs)
        found = [_fcp.class_probabilities(predictor, self.inputs_.rows(x)) for x in batches]
        return [None if part[0] is None else np.concatenate(part) for part in zip(*found)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right labels, as of every classifier of scikit-learn. It is the same for all
        methods; `fcp.region_score` compares sets."""
        right = self.predict(X) == _arrays.plain(y, "y").reshape(-1)
        return float(np.average(right, weights=sample_weight))

    def plot(
        self, X: Any, y: Any = None, alpha: Optional[Alpha] = None, *,
        confidence_level: Optional[Alpha] = None, ax: Any = None, **facts: Any,
    ) -> Any:  # fmt: skip
        """Draws how many sets have how many labels, and how many of them hold the truth where it is
        given, by matplotlib; the Axes."""
        alpha = self._alpha(alpha, confidence_level)
        _, sets = self.predict_set(X, alpha, **facts)
        inside = None
        if y is not None:
            truth = _arrays.plain(self._answers(self.model_, y), "y").astype(int).reshape(-1)
            inside = sets[np.arange(len(truth)), truth, 0]
        return _plots.plot_set_sizes(sets[:, :, 0], inside, alpha, ax)


def _width(model: Model) -> Any:
    """How many classes the network answers, where its file says."""
    shapes = [shape for name, shape in model.outputs if not name.startswith("fcp.")]
    return shapes[0][-1] if len(shapes) == 1 and shapes[0] and shapes[0][-1] > 0 else None


def _names_in(y: np.ndarray) -> Any:
    """The names of the classes; None where y has numbers, which count the outputs."""
    if y.dtype.kind in "biuf":
        return None
    try:
        [float(label) for label in y.ravel().tolist()]
    except (TypeError, ValueError):
        return np.unique(y)
    return None
