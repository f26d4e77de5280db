"""How workers answer tasks of known easiness, and what follows of their abilities.

On a task of easiness s in [0, 1], a worker of ability a_rk (log-odds, not negative unless said) says of class k

    P(says k | k) = e^(a s) / (e^(a s) + K − 1) = σ(u),   P(says l | k) = σ(−u) / (K − 1),   u = a s − log(K − 1)

Everything here is a sum over the votes, class by class, so that no temporary is larger than the votes themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from wisecrowd.data.crowd import Crowd

Array = NDArray[np.float64]

#: The largest ability that is told apart from certainty; with two classes it is the bound λ ≤ 100 of Xu et al.
MOST = 25.0

#: Passes of Newton's method at most, and the change of an ability that ends them.
PASSES, SETTLED = 60, 1e-9


def easiness_of(belief: Array) -> Array:
    """How far a distribution over K classes is from uniform: K/(K−1) Σ_k (c_k − 1/K)², from 0 to 1.

    >>> easiness_of(np.array([[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]])).tolist()
    [0.0, 0.25, 1.0]
    """
    n_classes = belief.shape[-1]
    off = belief - 1 / n_classes
    return np.asarray(n_classes / (n_classes - 1) * np.einsum("...k,...k->...", off, off))


def easiness_slope(belief: Array) -> Array:
    """∂ easiness / ∂ η where the belief is softmax(η), in the shape of the belief.

    >>> easiness_slope(np.array([[0.5, 0.5]])).tolist()
    [[0.0, 0.0]]
    """
    n_classes = belief.shape[-1]
    steep = 2 * n_classes / (n_classes - 1) * (belief - 1 / n_classes)
    return np.asarray(belief * (steep - np.einsum("...k,...k->...", belief, steep)[..., None]))


class Anchor(NamedTuple):
    """A Gaussian prior of abilities: where it is centred, (workers, classes), and how sure it is, (workers,).

    >>> Anchor(np.zeros((1, 2)), np.array([4.0])).log_density(np.ones((1, 2)))
    -4.0
    """

    centre: Array
    precision: Array

    def log_density(self, ability: Array) -> float:
        """Up to a constant."""
        return -0.5 * float(self.precision @ ((ability - self.centre) ** 2).sum(axis=1))


class Responses:
    """The votes of a crowd as answers to tasks of some easiness.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> ability, easiness = np.full((2, 2), np.log(3)), np.array([1.0])
    >>> np.exp(Responses(crowd).evidence(ability, easiness)).round(4).tolist()  # 3/4 · 1/4 whichever is true
    [[0.1875, 0.1875]]
    """

    def __init__(self, crowd: Crowd) -> None:
        assert crowd.worker is not None
        self.task, self.worker, self.label = crowd.task, crowd.worker, crowd.label
        self.weight = crowd.weight if crowd.is_weighted else None
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self._offset = np.log(self.n_classes - 1)

    def agreement(self, posterior: Array, smoothing: float, diagonal: float) -> Array:
        """Ability as if all tasks were easiest: from how often a worker said k where k is true, with pseudo-votes."""
        right = np.full((self.n_workers, self.n_classes), smoothing + diagonal)
        total = np.full_like(right, self.n_classes * smoothing + diagonal)
        for k, said in self._classes():
            share = self._weighted(posterior[self.task, k])
            right[:, k] += np.bincount(self.worker, share * (said > 0), self.n_workers)
            total[:, k] += np.bincount(self.worker, share, self.n_workers)
        with np.errstate(divide="ignore", invalid="ignore"):
            ability = np.log(right / (total - right)) + self._offset
        # Without pseudo-votes, who never met a class is at chance.
        return np.clip(np.nan_to_num(ability, nan=0.0), -MOST, MOST)

    def evidence(self, ability: Array, easiness: Array) -> Array:
        """log P(votes on a task | each class), (tasks, classes)."""
        found = np.empty((self.n_tasks, self.n_classes))
        for k, said in self._classes():
            chance = log_expit(said * self._odds(ability, easiness, k)) - (said < 0) * self._offset
            found[:, k] = np.bincount(self.task, self._weighted(chance), self.n_tasks)
        return found

    def expected(self, posterior: Array, ability: Array, easiness: Array) -> tuple[float, Array]:
        """Σ_i Σ_k q_ik log P(votes on i | k), and its derivative by the easiness of each task."""
        value, slope = 0.0, np.zeros(self.n_tasks)
        for k, said in self._classes():
            share = self._weighted(posterior[self.task, k])
            odds = said * self._odds(ability, easiness, k)
            value += float(share @ (log_expit(odds) - (said < 0) * self._offset))
            pull = share * said * ability[self.worker, k] * expit(-odds)
            slope += np.bincount(self.task, pull, self.n_tasks)
        return value, slope

    def abilities(
        self, posterior: Array, easiness: Array, start: Array, anchor: Anchor, *, least: float = 0.0
    ) -> Array:
        """The abilities that maximise `expected` plus the anchor's log-density: as many one-dimensional problems.

        Each is a concave logistic regression on the easiness, solved by Newton's method between ``least`` and `MOST`;
        a step that leaves what is known to enclose the solution is replaced by bisection.
        """
        found = np.empty_like(start)
        s = easiness[self.task]
        for k, said in self._classes():
            share = self._weighted(posterior[self.task, k]) * s
            here = np.clip(start[:, k], least, MOST)
            low, high = np.full_like(here, least), np.full_like(here, MOST)
            low_known, high_known = np.zeros(len(here), dtype=bool), np.zeros(len(here), dtype=bool)
            for _ in range(PASSES):
                right = expit(here[self.worker] * s - self._offset)
                gain = np.bincount(self.worker, share * ((said > 0) - right), self.n_workers)
                slope = gain - anchor.precision * (here - anchor.centre[:, k])
                bend = np.bincount(self.worker, share * s * right * (1 - right), self.n_workers) + anchor.precision
                rises = slope > 0
                low, low_known = np.where(rises, here, low), low_known | rises
                high, high_known = np.where(rises, high, here), high_known | ~rises
                there = here + slope / np.maximum(bend, 1e-300)
                middle = (low + high) / 2
                # The ends are tried before anything is halved: a solution may well be there.
                there = np.where(there < low, np.where(low_known, middle, low), there)
                there = np.where(there > high, np.where(high_known, middle, high), there)
                moved = np.abs(there - here).max(initial=0.0)
                here = there
                if moved <= SETTLED:
                    break
            found[:, k] = here
        return found

    def _odds(self, ability: Array, easiness: Array, k: int) -> Array:
        return np.asarray(ability[self.worker, k] * easiness[self.task] - self._offset)

    def _classes(self) -> Iterator[tuple[int, Array]]:
        """Every class, with +1 for the votes that name it and −1 for the others."""
        for k in range(self.n_classes):
            yield k, np.where(self.label == k, 1.0, -1.0)

    def _weighted(self, values: Array) -> Array:
        return values if self.weight is None else values * self.weight


def confusion_at(ability: Array, easiness: Array | float = 1.0) -> Array:
    """What workers of some ability, (…, classes), say on tasks of some easiness: (…, true, said), rows sum to one.

    >>> confusion_at(np.log([[3.0, 9.0]])).round(2).tolist()
    [[[0.75, 0.25], [0.1, 0.9]]]
    """
    n_classes = ability.shape[-1]
    right = expit(ability * easiness - np.log(n_classes - 1))[..., None]
    same = np.eye(n_classes)
    return np.asarray(same * right + (1 - same) * (1 - right) / (n_classes - 1))
