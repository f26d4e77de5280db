"""Two-dimensional map of workers by their confusion matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Total variance below which all workers count as equal.
MIN_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class WorkerMap:
    """Positions of workers in the plane, with two hypothetical workers as landmarks.

    Attributes
    ----------
    workers : ndarray of shape (n_workers, 2)
        Positions of the workers.
    perfect_worker : ndarray of shape (2,)
        Position of a worker who is always right.
    guessing_worker : ndarray of shape (2,)
        Position of a worker who guesses by the class shares.
    explained_share : float
        Share of the squared distances between workers that the plane preserves, from 0 to 1.

    Examples
    --------
    >>> matrices = np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)])
    >>> worker_map = map_workers(matrices, [0.5, 0.5])
    >>> worker_map.workers.shape, worker_map.perfect_worker.shape, worker_map.guessing_worker.shape
    ((3, 2), (2,), (2,))
    """

    workers: FloatArray
    perfect_worker: FloatArray
    guessing_worker: FloatArray
    explained_share: float


def map_workers(
    matrices: FloatArray | Callable[[], Iterable[FloatArray]], class_shares: Sequence[float] | FloatArray
) -> WorkerMap | None:
    """Project workers into the plane by the Hellinger distances between their confusion matrices.

    Each true class is weighted by its share. Classical scaling of these distances equals a principal component analysis of the
    square roots of the matrices. The plane is rotated so that a perfect worker lies to the right of a guessing one.

    Parameters
    ----------
    matrices : ndarray of shape (n_workers, n_classes, n_classes) or callable
        Confusion matrices, or a function that returns an iterable of blocks of them. It is called twice.
    class_shares : array-like of shape (n_classes,)
        Share of each true class.

    Returns
    -------
    WorkerMap or None
        None for fewer than three workers, a single class, or equal workers.

    Examples
    --------
    >>> matrices = np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)])
    >>> worker_map = map_workers(matrices, [0.5, 0.5])
    >>> bool((np.diff(worker_map.workers[:, 0]) < 0).all()), round(worker_map.explained_share, 2)
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
    """Mean and covariance of vectors that arrive in blocks, centred on the mean of the first block for precision."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._about: Any = None
        self._sum = np.zeros(width)
        self._squares = np.zeros((width, width))

    def update(self, vectors: FloatArray) -> None:
        """Add a block of vectors."""
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
        """Mean of all vectors."""
        return np.asarray(self._about + self._sum / self.count)

    @property
    def variance(self) -> FloatArray:
        """Covariance matrix of all vectors."""
        mean = self._sum / self.count
        return np.asarray(self._squares / self.count - np.outer(mean, mean))


def _square_roots(matrices: FloatArray, share: FloatArray) -> FloatArray:
    """Return the square roots of class-weighted matrices as vectors."""
    return np.asarray(np.sqrt(matrices * share[:, None]).reshape(len(matrices), share.size**2))


def _rotate(points: FloatArray) -> FloatArray:
    """Rotate points so that the last one (guessing) lies to the left of the one before (perfect)."""
    x, y = points[-2] - points[-1]
    length = float(np.hypot(x, y)) or 1.0
    rotated = points @ np.array([[x, -y], [y, x]]) / length
    # The sign of an eigenvector is arbitrary; this choice makes the map reproducible.
    furthest = rotated[np.abs(rotated[:, 1]).argmax(), 1]
    return np.asarray(rotated * [1.0, -1.0 if furthest < 0 else 1.0])
