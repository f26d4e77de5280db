"""Response model with a whole confusion matrix per worker, which the easiness of a task flattens.

On a task of easiness s in [0, 1], a worker with logits θ_r votes by

    P(label l given class k) = softmax_l(s θ_r[k, l])

uniformly for s = 0, and by the worker's own matrix for s = 1. With equal logits off the diagonal this is the model of `_responses`,
with ability a_rk = θ_r[k, k] − θ_r[k, l].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.learn.difficulty._responses import (
    MAX_ABILITY,
    NEWTON_STEPS,
    NEWTON_TOLERANCE,
    AbilityPrior,
    Array,
    Responses,
)

#: Ridge of the Hessian, which is singular without a prior, since a constant in a row of logits changes nothing.
HESSIAN_RIDGE = 1e-9


class _RowState(NamedTuple):
    """Logits of one true class by worker, and the length of the next step."""

    logits: Array
    step_size: Array


class MatrixResponses(Responses):
    """Votes of a crowd as responses of workers with confusion matrices to tasks of some easiness.

    Abilities are logits of shape (n_workers, n_classes, n_classes), by true class and label; their rows sum to zero.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.

    Examples
    --------
    >>> from wisecrowd.data.crowd import Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
    >>> logits = np.log([[[0.9, 0.1], [0.4, 0.6]]] * 2)
    >>> np.exp(MatrixResponses(crowd).vote_log_probs(logits, np.array([1.0]))).round(4).tolist()
    [[0.09, 0.24]]
    """

    def estimate_initial_abilities(self, posterior: Array, smoothing: float, diagonal: float) -> Array:
        """Estimate logits as if all tasks were easiest.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of the tasks.
        smoothing, diagonal : float
            Pseudo-votes in every cell, and for the true class.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
        """
        counts = np.full((self.n_workers, self.n_classes, self.n_classes), smoothing)
        counts += diagonal * np.eye(self.n_classes)
        for k in range(self.n_classes):
            np.add.at(counts[:, k], (self.worker, self.label), self._apply_weight(posterior[self.task, k]))
        return _centre(np.log(np.maximum(counts, np.exp(-MAX_ABILITY))))

    def vote_log_probs(self, ability: Array, easiness: Array) -> Array:
        """Compute log P(votes on a task given class).

        Parameters
        ----------
        ability : ndarray of shape (n_workers, n_classes, n_classes)
            Logits.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        log_probs = np.empty((self.n_tasks, self.n_classes))
        for k in range(self.n_classes):
            vote_log_prob = self._label_log_probs(ability[:, k], easiness)[np.arange(len(self.label)), self.label]
            log_probs[:, k] = np.bincount(self.task, self._apply_weight(vote_log_prob), self.n_tasks)
        return log_probs

    def expected_log_likelihood(self, posterior: Array, ability: Array, easiness: Array) -> tuple[float, Array]:
        """Compute Σ_i Σ_k q_ik log P(votes on i given k) and its derivative by the easiness of every task.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior q.
        ability : ndarray of shape (n_workers, n_classes, n_classes)
            Logits.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_tasks,)
        """
        value, gradient = 0.0, np.zeros(self.n_tasks)
        votes = np.arange(len(self.label))
        for k in range(self.n_classes):
            share = self._apply_weight(posterior[self.task, k])
            logits = ability[self.worker, k]
            log_probs = self._label_log_probs(ability[:, k], easiness)
            value += float(share @ log_probs[votes, self.label])
            expected = np.einsum("vl,vl->v", np.exp(log_probs), logits)
            gradient += np.bincount(self.task, share * (logits[votes, self.label] - expected), self.n_tasks)
        return value, gradient

    def fit_abilities(
        self, posterior: Array, easiness: Array, start: Array, prior: AbilityPrior, *, min_ability: float = 0.0
    ) -> Array:
        """Return the workers' logits that maximise the expected log-likelihood plus the log-prior.

        For every worker and true class, the labels are a multinomial regression on the easiness of the task. These regressions are
        independent of each other and concave. Newton's method solves each of them; a step that would lower the objective is halved.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of the tasks.
        easiness : ndarray of shape (n_tasks,)
            Easiness of the tasks.
        start : ndarray of shape (n_workers, n_classes, n_classes)
            Logits to start from.
        prior : AbilityPrior
            Prior of the logits.
        min_ability : float, default 0.0
            Ignored; other models of responses use it as a lower bound of abilities.

        Returns
        -------
        ndarray of shape (n_workers, n_classes, n_classes)
            Logits [worker, true, given].
        """
        return np.stack(
            [self._fit_row(k, posterior, easiness, start[:, k], prior) for k in range(self.n_classes)], axis=1
        )

    def _fit_row(self, k: int, posterior: Array, easiness: Array, start: Array, prior: AbilityPrior) -> Array:
        """Return the logits of one true class of all workers."""
        share, centre = self._apply_weight(posterior[self.task, k]), prior.centre[:, k]
        vote_easiness, votes, identity = easiness[self.task], np.arange(len(self.label)), np.eye(self.n_classes)

        def measure(logits: Array) -> Array:
            """Return the objective of every worker."""
            log_prob = self._label_log_probs(logits, easiness)[votes, self.label]
            penalty = 0.5 * prior.precision * ((logits - centre) ** 2).sum(axis=1)
            return np.asarray(np.bincount(self.worker, share * log_prob, self.n_workers) - penalty)

        def step(state: _RowState) -> tuple[_RowState, float]:
            logits, step_size = state
            probs = np.exp(self._label_log_probs(logits, easiness))
            slope = np.zeros_like(logits)
            np.add.at(slope, self.worker, (share * vote_easiness)[:, None] * (identity[self.label] - probs))
            slope -= prior.precision[:, None] * (logits - centre)
            weight = (share * vote_easiness**2)[:, None]
            hessian = np.zeros((self.n_workers, self.n_classes, self.n_classes))
            for one in range(self.n_classes):
                np.add.at(hessian[:, one], self.worker, weight * probs[:, one, None] * (identity[one] - probs))
            hessian += (prior.precision[:, None, None] + HESSIAN_RIDGE) * identity
            direction = np.linalg.solve(hessian, slope[..., None])[..., 0]
            length = np.maximum(np.abs(direction).max(axis=1, keepdims=True), 1e-300)
            direction *= np.minimum(1, MAX_ABILITY / length)
            updated = np.clip(_centre(logits + step_size[:, None] * direction), -MAX_ABILITY, MAX_ABILITY)
            improves = measure(updated) >= measure(logits)
            change = np.where(improves[:, None], updated - logits, step_size[:, None] * direction)
            updated = np.where(improves[:, None], updated, logits)
            step_size = np.where(improves, np.minimum(1, 2 * step_size), step_size / 2)
            return _RowState(updated, step_size), float(np.abs(change).max(initial=0.0))

        first = _RowState(start, np.ones(self.n_workers))
        result = iterate_to_fixed_point(step, first, max_iter=NEWTON_STEPS, tol=NEWTON_TOLERANCE)
        return result.state.logits

    def _label_log_probs(self, logits: Array, easiness: Array) -> Array:
        """Return log P(label given one true class) of all labels for every vote, (votes, classes)."""
        return np.asarray(log_softmax(logits[self.worker] * easiness[self.task, None], axis=1))


def flatten_confusion(logits: Array, easiness: Array | float = 1.0) -> Array:
    """Compute confusion matrices from logits, on tasks of some easiness.

    Parameters
    ----------
    logits : ndarray of shape (..., n_classes, n_classes)
        Logits by true class and label.
    easiness : ndarray or float, default 1.0
        Easiness of the tasks, which broadcasts against ``logits``.

    Returns
    -------
    ndarray of shape (..., n_classes, n_classes)

    Examples
    --------
    >>> flatten_confusion(np.log([[[0.9, 0.1], [0.2, 0.8]]]), 0.0).tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    return np.asarray(softmax(logits * easiness, axis=-1))


def _centre(logits: Array) -> Array:
    """Subtract the mean of every row."""
    return np.asarray(logits - logits.mean(axis=-1, keepdims=True))
