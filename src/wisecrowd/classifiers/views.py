"""A classifier that looks at features in another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.classifiers.soft import Rows, SoftClassifier


@dataclass
class OfRoots(SoftClassifier):
    """A classifier on signed square roots of the features, which tame what is large and rare (Perronnin et al. 2010).

    >>> from wisecrowd.classifiers.soft import Logistic
    >>> X, targets = np.array([[-4.0, 1], [-1, 1], [1, 0], [9, 1]]), np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    >>> OfRoots(Logistic(l2=0.1)).fit(X, targets).predict_proba(X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    inner: SoftClassifier

    def fit(self, X: Rows, targets: Rows, weight: Rows | None = None) -> Self:
        """As `SoftClassifier.fit`."""
        self.inner.fit(_roots(X), targets, weight)
        return self

    def predict_proba(self, X: Rows) -> Rows:
        """As `SoftClassifier.predict_proba`."""
        return self.inner.predict_proba(_roots(X))

    def fresh(self) -> Self:
        """As `SoftClassifier.fresh`."""
        return type(self)(self.inner.fresh())

    def log_prior(self) -> float:
        """That of the classifier."""
        return self.inner.log_prior()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As `SoftClassifier.arrays`."""
        return self.inner.arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """As `SoftClassifier.restore`."""
        self.inner.restore(arrays)
        return self


def _roots(X: Rows) -> Rows:
    return np.sign(X) * np.sqrt(np.abs(X))
