"""Decide: every object is a question on which each worker who saw the task votes a class or "absent".

States of an object are "false" and (difficulty, class). A worker r marks an object of difficulty k and class c with probability
σ(a_rc + b_k), gives it a class by the confusion matrix π_r, and marks a false place with probability f_r. One detection rate
would not be enough: most workers overlook what is small or crowded, and an object that few marked would seem to be false.

An object is listed only because somebody marked it. Likelihoods are therefore conditional on at least one mark, which adds
u = q E / (1 − E) expected objects that nobody marked to the M-step, where E is the probability that all workers of the task miss
an object in this state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from wisecrowd.data.marks import MarkCrowd
from wisecrowd.em.loop import iterate_to_fixed_point

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Logits of the detection of difficult and easy objects at the start.
START_EASINESS = (-1.5, 1.0)
#: Ability of workers and probability of a mark on a false place at the start.
START_ABILITY, START_FALSE_RATE = 0.5, 0.05
#: Share of marks with the right class at the start.
START_ACCURACY = 0.9
#: Probabilities of marks stay away from 0 and 1 by this much, so that one vote cannot decide alone.
MIN_RATE = 0.01
#: Pseudo-counts of the crowd's confusion matrix.
CONFUSION_PRIOR = 0.1
#: Newton steps for abilities and difficulties in one M-step, and their largest length in logits.
NEWTON_STEPS, MAX_STEP = 3, 1.0
#: Smallest share of a state among the objects.
MIN_SHARE = 1e-9


class DetectionRates(NamedTuple):
    """Parameters of the detection model.

    Parameters
    ----------
    ability : ndarray of shape (n_workers, n_classes)
        Logit of detecting an object of difficulty 0, by class.
    easiness : ndarray of shape (n_difficulties,)
        Shift of that logit, by difficulty.
    false_rate : ndarray of shape (n_workers,)
        Probability of a mark on a false place.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        P(class given | true class, detected).
    false_labels : ndarray of shape (n_workers, n_classes)
        P(class given | false place, marked).
    share : ndarray of shape (1 + n_difficulties * n_classes,)
        Share of each state among listed objects; the first is "false".
    """

    ability: Array
    easiness: Array
    false_rate: Array
    confusion: Array
    false_labels: Array
    share: Array

    def mark_probs(self) -> Array:
        """Return P(mark | state) of every worker, of shape (n_workers, n_states).

        Returns
        -------
        ndarray of shape (n_workers, n_states)
        """
        detection = expit(self.ability[:, None, :] + self.easiness[None, :, None])
        rates = np.column_stack([self.false_rate, detection.reshape(len(detection), -1)])
        return np.clip(rates, MIN_RATE, 1 - MIN_RATE)


@dataclass(frozen=True)
class DetectionFit:
    """Result of the detection model.

    Parameters
    ----------
    posterior : ndarray of shape (n_objects, n_states)
        Probability of every state.
    rates : DetectionRates
        Parameters.
    false_marks : ndarray of shape (n_workers,)
        Expected number of false marks of each worker.
    n_iter : int
        Number of EM iterations.
    converged : bool
        Whether the iteration converged.
    trace : ndarray of shape (n_iter,)
        Log-likelihood before every iteration.
    """

    posterior: Array
    rates: DetectionRates
    false_marks: Array
    n_iter: int
    converged: bool
    trace: Array

    @property
    def class_probs(self) -> Array:
        """Probability that an object is real and of a class, of shape (n_objects, n_classes)."""
        return _sum_difficulties(self.posterior, len(self.rates.easiness))

    def detection_rate(self) -> Array:
        """Return the share of real objects that each worker detects, over the same objects: all that somebody marked.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        weights = self.posterior[:, 1:].sum(axis=0) + MIN_SHARE
        return np.asarray(np.average(self.rates.mark_probs()[:, 1:], axis=1, weights=weights))

    def class_accuracy(self) -> Array:
        """Return the share of detected objects to which each worker gives the right class, for the same objects.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        diagonal = np.diagonal(self.rates.confusion, axis1=1, axis2=2)
        weights = self.class_probs.sum(axis=0) + MIN_SHARE
        return np.asarray(np.average(diagonal, axis=1, weights=weights))


class DetectionModel:
    """EM for the detection model; a step costs as much as the marks and assignments, times the number of states.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    mark_object : ndarray of shape (n_marks,)
        Object of every mark.
    object_task : ndarray of shape (n_objects,)
        Task of every object.
    shrinkage : float
        Pseudo-objects that draw a worker's rates to those of the crowd.
    """

    def __init__(self, crowd: MarkCrowd, mark_object: Codes, object_task: Codes, shrinkage: float) -> None:
        self.n_workers, self.n_classes, self.shrinkage = crowd.n_workers, crowd.n_classes, shrinkage
        self.object_task = object_task
        n_objects = len(object_task)
        self.assignments = sparse.csr_matrix(
            (np.ones(crowd.n_votes), crowd.worker, crowd.task_offset), shape=(crowd.n_tasks, crowd.n_workers)
        )
        pair = crowd.mark_worker.astype(np.int64) * crowd.n_classes + crowd.label
        self.marks = sparse.csr_matrix(
            (np.ones(crowd.n_marks), (mark_object, pair)), shape=(n_objects, crowd.n_workers * crowd.n_classes)
        )
        self.objects = sparse.csr_matrix(
            (np.ones(n_objects), (object_task, np.arange(n_objects))), shape=(crowd.n_tasks, n_objects)
        )
        self.assignments_by_worker = self.assignments.T.tocsr()
        self.marks_by_pair = self.marks.T.tocsr()

    def initialize(self) -> DetectionRates:
        """Return the parameters to start from.

        Returns
        -------
        DetectionRates
        """
        n_workers, n_classes = self.n_workers, self.n_classes
        n_states = 1 + len(START_EASINESS) * n_classes
        error = (1 - START_ACCURACY) / max(n_classes - 1, 1)
        matrix = np.full((n_classes, n_classes), error)
        np.fill_diagonal(matrix, 1 - error * (n_classes - 1))
        labels = np.asarray(self.marks.sum(axis=0)).reshape(n_workers, n_classes).sum(axis=0) + CONFUSION_PRIOR
        n_kinds = 1 + len(START_EASINESS)
        share = np.full(n_states, 1 / (n_kinds * n_classes))
        share[0] = 1 / n_kinds
        return DetectionRates(
            np.full((n_workers, n_classes), START_ABILITY),
            np.array(START_EASINESS),
            np.full(n_workers, START_FALSE_RATE),
            np.tile(matrix, (n_workers, 1, 1)),
            np.tile(labels / labels.sum(), (n_workers, 1)),
            share,
        )

    def expect(self, rates: DetectionRates) -> tuple[Array, Array, float]:
        """Return the posterior of every object, its unseen copies, and the log-likelihood.

        Parameters
        ----------
        rates : DetectionRates
            Parameters.

        Returns
        -------
        posterior, unseen : ndarray of shape (n_objects, n_states)
        log_likelihood : float
        """
        mark_probs = rates.mark_probs()
        log_miss = np.log1p(-mark_probs)
        all_miss = (self.assignments @ log_miss)[self.object_task]
        n_workers, n_classes, n_difficulties = self.n_workers, self.n_classes, len(rates.easiness)
        # Evidence of a mark, by (worker, label) and state: log P(mark) + log P(label | state) − log P(no mark).
        log_labels = np.empty((n_workers, n_classes, mark_probs.shape[1]))
        log_labels[:, :, 0] = np.log(rates.false_labels)
        log_labels[:, :, 1:] = np.tile(np.log(rates.confusion).transpose(0, 2, 1), (1, 1, n_difficulties))
        evidence = log_labels + (np.log(mark_probs) - log_miss)[:, None, :]
        log_listed = np.log(-np.expm1(all_miss))
        joint = np.log(rates.share) + all_miss + self.marks @ evidence.reshape(n_workers * n_classes, -1) - log_listed
        highest = joint.max(axis=1, keepdims=True)
        posterior = np.exp(joint - highest)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        unseen = posterior * np.exp(all_miss - log_listed)
        return posterior, unseen, float((highest + np.log(total)).sum())

    def maximize(self, posterior: Array, unseen: Array, rates: DetectionRates) -> DetectionRates:
        """Return the parameters that fit a posterior.

        Parameters
        ----------
        posterior, unseen : ndarray of shape (n_objects, n_states)
            Result of `expect`.
        rates : DetectionRates
            Parameters of the last step, from which Newton's method starts.

        Returns
        -------
        DetectionRates
        """
        n_workers, n_classes, n_difficulties = self.n_workers, self.n_classes, len(rates.easiness)
        marks = (self.marks_by_pair @ posterior).reshape(n_workers, n_classes, -1)
        chances = self.assignments_by_worker @ (self.objects @ (posterior + unseen))
        hits = marks.sum(axis=1)
        false_rate = _shrink(hits[:, 0], chances[:, 0], self.shrinkage)
        ability, easiness = self._maximize_detection(
            hits[:, 1:].reshape(n_workers, n_difficulties, n_classes),
            chances[:, 1:].reshape(n_workers, n_difficulties, n_classes),
            rates,
        )
        by_class = marks[:, :, 1:].reshape(n_workers, n_classes, n_difficulties, n_classes).sum(axis=2)
        counts = by_class.transpose(0, 2, 1)  # worker, true class, given class
        crowd_counts = counts.sum(axis=0) + np.eye(n_classes) + CONFUSION_PRIOR
        typical = crowd_counts / crowd_counts.sum(axis=1, keepdims=True)
        strength = max(self.shrinkage, CONFUSION_PRIOR)
        confusion = (counts + strength * typical) / (counts.sum(axis=2, keepdims=True) + strength)
        false_counts = marks[:, :, 0]
        crowd_false = false_counts.sum(axis=0) + CONFUSION_PRIOR
        false_labels = false_counts + strength * crowd_false / crowd_false.sum()
        false_labels /= false_labels.sum(axis=1, keepdims=True)
        share = np.maximum(posterior.mean(axis=0), MIN_SHARE)
        return DetectionRates(ability, easiness, false_rate, confusion, false_labels, share / share.sum())

    def _maximize_detection(self, hits: Array, chances: Array, rates: DetectionRates) -> tuple[Array, Array]:
        """Return abilities and easiness after some Newton steps; arrays have the axes worker, difficulty, class."""
        ability, easiness = rates.ability, rates.easiness
        by_difficulty = chances.sum(axis=(0, 2))
        pooled = _clip(hits.sum(axis=(0, 2)) / np.maximum(by_difficulty, MIN_SHARE))
        prior = self.shrinkage * (by_difficulty / max(by_difficulty.sum(), MIN_SHARE))  # pseudo-objects
        if self.n_classes == 1:
            typical = np.broadcast_to(pooled[None, :, None], hits.shape)
        else:
            # A worker's rate for a class is drawn to what the worker does on all classes and all workers on the class.
            of_worker = _clip((hits.sum(axis=2) + prior * pooled) / (chances.sum(axis=2) + prior + MIN_SHARE))
            of_class = _clip(
                (hits.sum(axis=0) + (prior * pooled)[:, None]) / (chances.sum(axis=0) + prior[:, None] + MIN_SHARE)
            )
            typical = expit(logit(of_worker)[:, :, None] + logit(of_class)[None] - logit(pooled)[None, :, None])
        successes = hits + prior[:, None] * typical
        trials = chances + prior[:, None] + MIN_SHARE
        for _ in range(NEWTON_STEPS):
            probs = expit(ability[:, None, :] + easiness[None, :, None])
            ability = ability + _newton_step(successes - trials * probs, trials * probs * (1 - probs), (1,))
            probs = expit(ability[:, None, :] + easiness[None, :, None])
            easiness = easiness + _newton_step(successes - trials * probs, trials * probs * (1 - probs), (0, 2))
        return ability, easiness

    def fit(self, *, max_iter: int, tol: float) -> DetectionFit:
        """Fit the model by EM.

        Parameters
        ----------
        max_iter : int
            Maximum number of iterations.
        tol : float
            Largest change of a probability at convergence.

        Returns
        -------
        DetectionFit
        """
        trace: list[float] = []

        def step(state: tuple[DetectionRates, Array]) -> tuple[tuple[DetectionRates, Array], float]:
            rates, previous = state
            posterior, unseen, log_likelihood = self.expect(rates)
            trace.append(log_likelihood)
            # Difficulties are a means to an end and settle slowly, so only the probabilities of classes count.
            class_probs = _sum_difficulties(posterior, len(rates.easiness))
            change = float(np.abs(class_probs - previous).max(initial=0))
            return (self.maximize(posterior, unseen, rates), class_probs), change

        rates = self.initialize()
        begin = (rates, np.zeros((len(self.object_task), self.n_classes)))
        (rates, _), n_iter, converged = iterate_to_fixed_point(step, begin, max_iter=max_iter, tol=tol, title="Objects")
        posterior, _, _ = self.expect(rates)
        false_marks = (self.marks_by_pair @ posterior[:, 0]).reshape(self.n_workers, -1).sum(axis=1)
        return DetectionFit(posterior, rates, false_marks, n_iter, converged, np.array(trace))


def _sum_difficulties(posterior: Array, n_difficulties: int) -> Array:
    """Return the probability that an object is real and of a class, of shape (n_objects, n_classes)."""
    return np.asarray(posterior[:, 1:].reshape(len(posterior), n_difficulties, -1).sum(axis=1))


def _clip(probs: Array) -> Array:
    """Return probabilities away from 0 and 1."""
    return np.clip(probs, MIN_RATE, 1 - MIN_RATE)


def _shrink(hits: Array, chances: Array, strength: float) -> Array:
    """Return rates that are drawn to the pooled rate."""
    pooled = hits.sum() / max(chances.sum(), MIN_SHARE)
    return _clip((hits + strength * pooled) / np.maximum(chances + strength, MIN_SHARE))


def _newton_step(gradient: Array, curvature: Array, axes: tuple[int, ...]) -> Array:
    """Return a Newton step for parameters that are shared along some axes."""
    step = gradient.sum(axis=axes) / np.maximum(curvature.sum(axis=axes), MIN_SHARE)
    return np.asarray(np.clip(step, -MAX_STEP, MAX_STEP))
