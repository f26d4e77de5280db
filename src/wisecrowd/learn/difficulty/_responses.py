"""Response model: votes by the ability of workers and the easiness of tasks.

On a task of easiness s in [0, 1], a worker with ability a_rk (log-odds) votes for the true class k with

    P(label k given class k) = e^(a s) / (e^(a s) + K − 1) = σ(u),   u = a s − log(K − 1)
    P(label l given class k) = σ(−u) / (K − 1)

Everything here is a sum over the votes, one class at a time, so no temporary is larger than the votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import iterate_to_fixed_point

Array = NDArray[np.float64]

#: Largest ability; for two classes this is the bound λ ≤ 100 of Xu et al.
MAX_ABILITY = 25.0
#: Maximum number of Newton steps.
NEWTON_STEPS = 60
#: Change of an ability at which Newton's method has converged.
NEWTON_TOLERANCE = 1e-9


def compute_easiness(probs: Array) -> Array:
    """Compute the distance of distributions from uniform: K/(K−1) Σ_k (c_k − 1/K)², from 0 to 1.

    Parameters
    ----------
    probs : ndarray of shape (..., n_classes)
        Distributions c over the classes.

    Returns
    -------
    ndarray of shape (...)

    Examples
    --------
    >>> compute_easiness(np.array([[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]])).tolist()
    [0.0, 0.25, 1.0]
    """
    n_classes = probs.shape[-1]
    offset = probs - 1 / n_classes
    return np.asarray(n_classes / (n_classes - 1) * np.einsum("...k,...k->...", offset, offset))


def compute_easiness_gradient(probs: Array) -> Array:
    """Compute the gradient of the easiness with respect to the logits η of probs = softmax(η).

    Parameters
    ----------
    probs : ndarray of shape (..., n_classes)
        Distributions over the classes.

    Returns
    -------
    ndarray of shape (..., n_classes)

    Examples
    --------
    >>> compute_easiness_gradient(np.array([[0.5, 0.5]])).tolist()
    [[0.0, 0.0]]
    """
    n_classes = probs.shape[-1]
    gradient = 2 * n_classes / (n_classes - 1) * (probs - 1 / n_classes)
    return np.asarray(probs * (gradient - np.einsum("...k,...k->...", probs, gradient)[..., None]))


class AbilityPrior(NamedTuple):
    """Gaussian prior of the abilities.

    Examples
    --------
    >>> AbilityPrior(np.zeros((1, 2)), np.array([4.0])).log_density(np.ones((1, 2)))
    -4.0
    """

    centre: Array
    """(workers, classes), or (workers, classes, classes) of matrices."""
    precision: Array
    """(workers,)."""

    def log_density(self, ability: Array) -> float:
        """Return the log-density of abilities, up to a constant.

        Parameters
        ----------
        ability : ndarray of shape (n_workers, n_classes)
            Abilities.

        Returns
        -------
        float
        """
        return -0.5 * float(self.precision @ ((ability - self.centre) ** 2).reshape(len(ability), -1).sum(axis=1))


class _NewtonState(NamedTuple):
    """Abilities of one class by worker, and an interval that contains each solution."""

    value: Array
    low: Array
    high: Array
    low_tried: NDArray[np.bool_]
    high_tried: NDArray[np.bool_]


class Responses:
    """Votes of a crowd as responses to tasks of some easiness.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> ability, easiness = np.full((2, 2), np.log(3)), np.array([1.0])
    >>> np.exp(Responses(crowd).vote_log_probs(ability, easiness)).round(4).tolist()  # 3/4 · 1/4 for either class
    [[0.1875, 0.1875]]
    """

    def __init__(self, crowd: Crowd) -> None:
        assert crowd.worker is not None
        self.task, self.worker, self.label = crowd.task, crowd.worker, crowd.label
        self.weight = crowd.weight if crowd.is_weighted else None
        self.n_tasks, self.n_workers, self.n_classes = crowd.n_tasks, crowd.n_workers, crowd.n_classes
        self._offset = np.log(self.n_classes - 1)

    def estimate_initial_abilities(self, posterior: Array, smoothing: float, diagonal: float) -> Array:
        """Estimate abilities as if all tasks were easiest.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of the tasks.
        smoothing, diagonal : float
            Pseudo-votes in every cell, and for the true class.

        Returns
        -------
        ndarray of shape (n_workers, n_classes)
        """
        right = np.full((self.n_workers, self.n_classes), smoothing + diagonal)
        total = np.full_like(right, self.n_classes * smoothing + diagonal)
        for k, sign in self._iterate_classes():
            share = self._apply_weight(posterior[self.task, k])
            right[:, k] += np.bincount(self.worker, share * (sign > 0), self.n_workers)
            total[:, k] += np.bincount(self.worker, share, self.n_workers)
        with np.errstate(divide="ignore", invalid="ignore"):
            ability = np.log(right / (total - right)) + self._offset
        # Without pseudo-votes, the ability for a class without votes is that of guessing.
        return np.clip(np.nan_to_num(ability, nan=0.0), -MAX_ABILITY, MAX_ABILITY)

    def vote_log_probs(self, ability: Array, easiness: Array) -> Array:
        """Compute log P(votes on a task given class).

        Parameters
        ----------
        ability : ndarray of shape (n_workers, n_classes)
            Abilities.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        log_probs = np.empty((self.n_tasks, self.n_classes))
        for k, sign in self._iterate_classes():
            vote_log_prob = log_expit(sign * self._log_odds(ability, easiness, k)) - (sign < 0) * self._offset
            log_probs[:, k] = np.bincount(self.task, self._apply_weight(vote_log_prob), self.n_tasks)
        return log_probs

    def expected_log_likelihood(self, posterior: Array, ability: Array, easiness: Array) -> tuple[float, Array]:
        """Compute Σ_i Σ_k q_ik log P(votes on i given k) and its derivative by the easiness of every task.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior q.
        ability : ndarray of shape (n_workers, n_classes)
            Abilities.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_tasks,)
        """
        value, gradient = 0.0, np.zeros(self.n_tasks)
        for k, sign in self._iterate_classes():
            share = self._apply_weight(posterior[self.task, k])
            log_odds = sign * self._log_odds(ability, easiness, k)
            value += float(share @ (log_expit(log_odds) - (sign < 0) * self._offset))
            derivative = share * sign * ability[self.worker, k] * expit(-log_odds)
            gradient += np.bincount(self.task, derivative, self.n_tasks)
        return value, gradient

    def fit_abilities(
        self, posterior: Array, easiness: Array, start: Array, prior: AbilityPrior, *, min_ability: float = 0.0
    ) -> Array:
        """Maximise the expected log-likelihood plus the log-density of the prior over the abilities.

        The abilities of every worker and class are separate concave logistic regressions on the easiness. Newton's method
        solves them between ``min_ability`` and `MAX_ABILITY`; a step out of the interval that contains the solution is
        replaced by bisection.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of the tasks.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.
        start : ndarray of shape (n_workers, n_classes)
            Abilities to start from.
        prior : AbilityPrior
            Prior of the abilities.
        min_ability : float, default 0.0
            Smallest ability.

        Returns
        -------
        ndarray of shape (n_workers, n_classes)
        """
        ability = np.empty_like(start)
        vote_easiness = easiness[self.task]
        for k, sign in self._iterate_classes():
            share = self._apply_weight(posterior[self.task, k]) * vote_easiness
            is_right = sign > 0

            def step(
                state: _NewtonState, k: int = k, share: Array = share, is_right: NDArray[np.bool_] = is_right
            ) -> tuple[_NewtonState, float]:
                value, low, high, low_tried, high_tried = state
                prob = expit(value[self.worker] * vote_easiness - self._offset)
                gain = np.bincount(self.worker, share * (is_right - prob), self.n_workers)
                slope = gain - prior.precision * (value - prior.centre[:, k])
                variance = share * vote_easiness * prob * (1 - prob)
                curvature = np.bincount(self.worker, variance, self.n_workers) + prior.precision
                rises = slope > 0
                low, low_tried = np.where(rises, value, low), low_tried | rises
                high, high_tried = np.where(rises, high, value), high_tried | ~rises
                updated = value + slope / np.maximum(curvature, 1e-300)
                middle = (low + high) / 2
                # The ends are tried before the interval is halved, because a solution may lie there.
                updated = np.where(updated < low, np.where(low_tried, middle, low), updated)
                updated = np.where(updated > high, np.where(high_tried, middle, high), updated)
                change = float(np.abs(updated - value).max(initial=0.0))
                return _NewtonState(updated, low, high, low_tried, high_tried), change

            value = np.clip(start[:, k], min_ability, MAX_ABILITY)
            low, high = np.full_like(value, min_ability), np.full_like(value, MAX_ABILITY)
            untried = np.zeros(len(value), dtype=bool)
            result = iterate_to_fixed_point(
                step, _NewtonState(value, low, high, untried, untried), max_iter=NEWTON_STEPS, tol=NEWTON_TOLERANCE
            )
            ability[:, k] = result.state.value
        return ability

    def _log_odds(self, ability: Array, easiness: Array, k: int) -> Array:
        return np.asarray(ability[self.worker, k] * easiness[self.task] - self._offset)

    def _iterate_classes(self) -> Iterator[tuple[int, Array]]:
        """Yield every class with +1 for the votes for it and −1 for all others."""
        for k in range(self.n_classes):
            yield k, np.where(self.label == k, 1.0, -1.0)

    def _apply_weight(self, values: Array) -> Array:
        return values if self.weight is None else values * self.weight


def compute_confusion(ability: Array, easiness: Array | float = 1.0) -> Array:
    """Compute confusion matrices from abilities, on tasks of some easiness.

    Parameters
    ----------
    ability : ndarray of shape (..., n_classes)
        Abilities.
    easiness : ndarray or float, default 1.0
        Easiness of the tasks, which broadcasts against ``ability``.

    Returns
    -------
    ndarray of shape (..., n_classes, n_classes)
        By true class and label; rows sum to one.

    Examples
    --------
    >>> compute_confusion(np.log([[3.0, 9.0]])).round(2).tolist()
    [[[0.75, 0.25], [0.1, 0.9]]]
    """
    n_classes = ability.shape[-1]
    right = expit(ability * easiness - np.log(n_classes - 1))[..., None]
    diagonal = np.eye(n_classes)
    return np.asarray(diagonal * right + (1 - diagonal) * (1 - right) / (n_classes - 1))
