"""The plane in which workers who err alike stand near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Mean squared distance from the middle below which all workers are the same.
MIN_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class WorkerMap:
    """Places in the plane: of the workers, and of two that nobody hired and that help to read it.

    >>> found = map_workers(np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)]), [0.5, 0.5])
    >>> found.workers.shape, found.perfect_worker.shape, found.guessing_worker.shape
    ((3, 2), (2,), (2,))
    """

    workers: FloatArray
    """(workers, 2)"""
    perfect_worker: FloatArray
    """Of one who is always right."""
    guessing_worker: FloatArray
    """Of one who guesses by the classes' shares."""
    explained_share: float
    """How much of the squared distances between workers the plane holds, from 0 to 1."""


def map_workers(
    matrices: FloatArray | Callable[[], Iterable[FloatArray]], class_shares: Sequence[float] | FloatArray
) -> WorkerMap | None:
    """Put workers into the plane by their matrices; None where there are too few to compare, or all are the same.

    ``matrices`` are those of workers, (workers, true, said), or a function that gives them some workers at a time, twice; each
    true class counts as often as it occurs, which ``class_shares`` says. Distances are those of Hellinger between matrices. They are
    scaled to two dimensions classically, which for these distances is the principal components of the square roots. The
    plane is turned so that the way from guessing to being always right leads to the right.

    >>> found = map_workers(np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)]), [0.5, 0.5])
    >>> bool((np.diff(found.workers[:, 0]) < 0).all()), round(found.explained_share, 2)
    (True, 1.0)
    """
    chunks = matrices if callable(matrices) else lambda: [matrices]
    class_weight = np.asarray(class_shares, dtype=np.float64)
    class_weight = class_weight / class_weight.sum()
    n_classes = len(class_weight)
    covariance = _StreamingCovariance(n_classes**2)
    for chunk in chunks():
        covariance.update(_square_roots(chunk, class_weight))
    if covariance.count < 3 or n_classes < 2:
        return None
    variance = covariance.variance
    total_variance = float(np.trace(variance))
    if total_variance < MIN_VARIANCE:
        return None
    eigenvalues, axes = np.linalg.eigh(variance)
    mean, axes = covariance.mean, axes[:, :-3:-1]
    reference_workers = np.stack([np.eye(n_classes), np.broadcast_to(class_weight, (n_classes, n_classes))])
    projected = [(_square_roots(chunk, class_weight) - mean) @ axes for chunk in (*chunks(), reference_workers)]
    rotated = _rotate(np.concatenate(projected))
    return WorkerMap(rotated[:-2], rotated[-2], rotated[-1], float(eigenvalues[:-3:-1].sum()) / total_variance)


class _StreamingCovariance:
    """Mean and variance of vectors that come in parts, taken about the first part's middle to keep digits."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._about: Any = None
        self._sum = np.zeros(width)
        self._squares = np.zeros((width, width))

    def update(self, vectors: FloatArray) -> None:
        if not len(vectors):
            return
        if self._about is None:
            self._about = vectors.mean(axis=0)
        centred = vectors - self._about
        self.count += len(centred)
        self._sum += centred.sum(axis=0)
        self._squares += centred.T @ centred

    @property
    def mean(self) -> FloatArray:
        return np.asarray(self._about + self._sum / self.count)

    @property
    def variance(self) -> FloatArray:
        mean = self._sum / self.count
        return np.asarray(self._squares / self.count - np.outer(mean, mean))


def _square_roots(matrices: FloatArray, share: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(matrices * share[:, None]).reshape(len(matrices), share.size**2))


def _rotate(points: FloatArray) -> FloatArray:
    """Turned, which changes no distance, so that the way from guessing to being always right leads to the right."""
    x, y = points[-2] - points[-1]
    length = float(np.hypot(x, y)) or 1.0
    rotated = points @ np.array([[x, -y], [y, x]]) / length
    # A sign for the other direction that does not depend on the machine.
    furthest = rotated[np.abs(rotated[:, 1]).argmax(), 1]
    return np.asarray(rotated * [1.0, -1.0 if furthest < 0 else 1.0])
