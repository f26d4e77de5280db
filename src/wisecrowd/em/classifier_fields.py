"""What learners that train a classifier on soft targets have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.classifiers.soft import SoftClassifier, soft_classifier
from wisecrowd.data.layout import Layout

Mask = NDArray[np.bool_]


@method_class
class ClassifierLearner(Learner):
    """A learner whose answers for new tasks are those of its ``classifier_``, which `_fit` leaves behind.

    >>> from wisecrowd import TwoStage
    >>> issubclass(TwoStage, ClassifierLearner)
    True
    """

    classifier: Any = parameter(
        default="logistic", help="'logistic', 'linear', 'mlp', 'cnn', a torch module, or a scikit-learn classifier"
    )
    l2: float | None = parameter(default=None, help="ridge of the classifier; unless given, by its features")
    random_state: int = parameter(default=0, help="seed of folds and networks")

    if TYPE_CHECKING:  # left by _fit

        @property
        def classifier_(self) -> SoftClassifier: ...

        @classifier_.setter
        def classifier_(self, fitted: SoftClassifier) -> None: ...

    def _new_classifier(self) -> SoftClassifier:
        return soft_classifier(self.classifier, l2=self.l2, random_state=self.random_state)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.classifier_.predict_proba(X)

    def _revive(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        return self._new_classifier().restore(arrays)


def taught_by(layout: Layout, gold: NDArray[np.int32] | None) -> Mask:
    """Which tasks teach: those with votes, and those whose truth is known.

    >>> layout = Layout(np.array([0, 1, 1, 1]), np.zeros(1, dtype=np.int32), None, 1)
    >>> taught_by(layout, np.array([-1, 0, -1])).tolist()
    [True, True, False]
    """
    return layout.voted if gold is None else layout.voted | (gold >= 0)


def cross_fitted(taught: Mask, n_folds: int, random_state: int) -> Iterator[tuple[Mask, Mask]]:
    """For each fold, which tasks a classifier learns from, and for which it then speaks without having seen them.

    Folds are drawn among the tasks that teach, whom others must not change; the first classifier speaks for those.

    >>> [(int(train.sum()), int(test.sum())) for train, test in cross_fitted(np.array([True] * 4 + [False]), 2, 0)]
    [(2, 3), (2, 2)]
    """
    fold = np.zeros(len(taught), dtype=np.intp)
    fold[taught] = np.random.default_rng(random_state).permutation(int(taught.sum())) % n_folds
    for number in range(n_folds):
        yield taught & (fold != number), fold == number
