"""The plane in which workers who err alike stand near each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrices = NDArray[np.float64]

#: Mean squared distance from the middle below which all workers are the same.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Plane:
    """Places in the plane: of the workers, and of two that nobody hired and that help to read it.

    >>> found = plane(np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)]), [0.5, 0.5])
    >>> found.workers.shape, found.right.shape, found.guess.shape
    ((3, 2), (2,), (2,))
    """

    workers: Matrices
    """(workers, 2)"""
    right: Matrices
    """Of one who is always right."""
    guess: Matrices
    """Of one who guesses by the classes' shares."""
    held: float
    """How much of the squared distances between workers the plane holds, from 0 to 1."""


def plane(matrices: Matrices | Callable[[], Iterable[Matrices]], share: Sequence[float] | Matrices) -> Plane | None:
    """Put workers into the plane by their matrices; None where there are too few to compare, or all are the same.

    ``matrices`` are those of workers, (workers, true, said), or a function that gives them some workers at a time, twice; each
    true class counts as often as it occurs, which ``share`` says. Distances are those of Hellinger between matrices. They are
    scaled to two dimensions classically, which for these distances is the principal components of the square roots. The
    plane is turned so that the way from guessing to being always right leads to the right.

    >>> found = plane(np.stack([np.eye(2), [[0.8, 0.2], [0.3, 0.7]], np.full((2, 2), 0.5)]), [0.5, 0.5])
    >>> bool((np.diff(found.workers[:, 0]) < 0).all()), round(found.held, 2)
    (True, 1.0)
    """
    parts = matrices if callable(matrices) else lambda: [matrices]
    weight = np.asarray(share, dtype=np.float64)
    weight = weight / weight.sum()
    n_classes = len(weight)
    spread = _Spread(n_classes**2)
    for part in parts():
        spread.add(_flat(part, weight))
    if spread.count < 3 or n_classes < 2:
        return None
    variance = spread.variance
    total = float(np.trace(variance))
    if total < NOTHING:
        return None
    size, axes = np.linalg.eigh(variance)
    middle, axes = spread.middle, axes[:, :-3:-1]
    marks = np.stack([np.eye(n_classes), np.broadcast_to(weight, (n_classes, n_classes))])
    placed = [(_flat(part, weight) - middle) @ axes for part in (*parts(), marks)]
    turned = _turned(np.concatenate(placed))
    return Plane(turned[:-2], turned[-2], turned[-1], float(size[:-3:-1].sum()) / total)


class _Spread:
    """Mean and variance of vectors that come in parts, taken about the first part's middle to keep digits."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._about: Any = None
        self._sum = np.zeros(width)
        self._squares = np.zeros((width, width))

    def add(self, vectors: Matrices) -> None:
        if not len(vectors):
            return
        if self._about is None:
            self._about = vectors.mean(axis=0)
        away = vectors - self._about
        self.count += len(away)
        self._sum += away.sum(axis=0)
        self._squares += away.T @ away

    @property
    def middle(self) -> Matrices:
        return np.asarray(self._about + self._sum / self.count)

    @property
    def variance(self) -> Matrices:
        mean = self._sum / self.count
        return np.asarray(self._squares / self.count - np.outer(mean, mean))


def _flat(matrices: Matrices, share: Matrices) -> Matrices:
    return np.asarray(np.sqrt(matrices * share[:, None]).reshape(len(matrices), share.size**2))


def _turned(place: Matrices) -> Matrices:
    """Turned, which changes no distance, so that the way from guessing to being always right leads to the right."""
    along, up = place[-2] - place[-1]
    length = float(np.hypot(along, up)) or 1.0
    turned = place @ np.array([[along, -up], [up, along]]) / length
    # A sign for the other direction that does not depend on the machine.
    furthest = turned[np.abs(turned[:, 1]).argmax(), 1]
    return np.asarray(turned * [1.0, -1.0 if furthest < 0 else 1.0])
