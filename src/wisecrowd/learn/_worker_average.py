"""Evidence of votes on the classes under two models of workers, without the vote itself.

The models are the first two members of `ModelAverage`: a worker knows the class or guesses, or has a confusion matrix. The
matrix is shrunk toward the matrix of the crowd, and for every vote it is estimated without that vote. Otherwise a vote would
confirm the worker who gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.aggregate.categorical.model_average import ModelAverage, estimate_competence_probs
from wisecrowd.base.sharpness import safe_log
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.em.priors import estimate_crowd_prior
from wisecrowd.errors import ignore_fit_warnings

Rows = NDArray[np.float64]

#: Number of models of workers.
N_MEMBERS = 2
#: Smallest probability of a label, so that a vote never excludes a class.
MIN_LABEL_PROB = 1e-12


class VoteEvidence(NamedTuple):
    """Log-likelihoods of the classes under every model of workers."""

    by_vote: list[Rows]
    """(votes, classes) per member: log P(label of the vote given class)."""
    by_task: list[Rows]
    """(tasks, classes) per member: their sums over the votes of a task."""
    strength: float
    """Votes that the matrix of the crowd is worth."""


@dataclass(frozen=True)
class WorkerAverage:
    """Two models of workers over one posterior of the tasks.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.
    log_priors : ndarray of shape (2, n_classes)
        Logarithms of the class priors of the members.
    smoothing, diagonal : float
        Pseudo-votes of the models.
    strength : float, optional
        Strength of the shrinkage; estimated by marginal likelihood if not given.
    """

    crowd: Crowd
    gold: NDArray[np.int32] | None
    log_priors: Rows
    smoothing: float
    diagonal: float
    strength: float | None

    def weigh_votes(self, tally: NDArray[Any], posterior: Rows) -> VoteEvidence:
        """Estimate both models from expected counts, and return the evidence of every vote.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior that the counts come from.

        Returns
        -------
        VoteEvidence
        """
        crowd, pairs = self.crowd, self.crowd.pairs
        competence = estimate_competence_probs(tally, pairs, self.smoothing)
        prior = estimate_crowd_prior(tally, pairs, self.smoothing, self.diagonal, self.strength)
        pseudo_votes = prior.strength * prior.confusion.T[pairs.label]
        own = posterior[crowd.task] * crowd.weight[:, None]
        # Rounding must not leave fewer votes than the prior has.
        count = np.maximum((tally + pseudo_votes)[pairs.vote_pairs] - own, pseudo_votes[pairs.vote_pairs])
        total = (pairs.sum_by_worker(tally) + prior.strength)[pairs.worker][pairs.vote_pairs] - own
        confusion = np.minimum(count / np.maximum(total, count), 1.0)
        by_vote = [np.log(np.maximum(part, MIN_LABEL_PROB)) for part in (competence[pairs.vote_pairs], confusion)]
        return VoteEvidence(by_vote, [self._sum_by_task(part) for part in by_vote], prior.strength)

    def _sum_by_task(self, by_vote: Rows) -> Rows:
        """Sum over the votes of a task; a gold task has certain evidence."""
        import scipy.sparse as sp

        crowd = self.crowd
        votes = sp.csr_array(
            (crowd.weight, np.arange(crowd.n_votes), crowd.layout.offset - crowd.layout.offset[0]),
            shape=(crowd.n_tasks, crowd.n_votes),
        )
        total = np.asarray(votes @ by_vote)
        if self.gold is not None:
            is_gold = self.gold >= 0
            total[is_gold] = safe_log(np.eye(total.shape[1])[self.gold[is_gold]])
        return total

    def infer(self, evidence: VoteEvidence, scores: Rows | float, discount: float) -> tuple[Rows, float]:
        """Return the posterior of the tasks, averaged over the members, and the mean log-likelihood of the votes.

        Parameters
        ----------
        evidence : VoteEvidence
            Evidence of the votes.
        scores : ndarray of shape (n_tasks, n_classes) or float
            Scores of the features, which are added to the log-priors.
        discount : float
            Factor of the evidence of votes.

        Returns
        -------
        posterior : ndarray of shape (n_tasks, n_classes)
        log_likelihood : float
        """
        posterior, log_likelihood = np.zeros_like(evidence.by_task[0]), 0.0
        for log_prior, by_task in zip(self.log_priors, evidence.by_task, strict=True):
            prior = _log_softmax(log_prior + scores, by_task.shape)
            joint = prior + discount * by_task
            peak = joint.max(axis=1, keepdims=True)
            share = np.exp(joint - peak)
            total = share.sum(axis=1, keepdims=True)
            posterior += share / total
            log_likelihood += float((peak + np.log(total)).sum())
        return apply_gold(posterior / N_MEMBERS, self.gold), log_likelihood / N_MEMBERS

    def predict_votes(self, evidence: VoteEvidence, scores: Rows | float, discount: float) -> HeldoutVotes:
        """Predict every vote from the other votes on its task and from the features.

        Parameters
        ----------
        evidence : VoteEvidence
            Evidence of the votes.
        scores : ndarray of shape (n_tasks, n_classes) or float
            Scores of the features.
        discount : float
            Factor of the evidence of votes.

        Returns
        -------
        HeldoutVotes
        """
        crowd = self.crowd
        counted = np.ones(crowd.n_votes, dtype=bool) if self.gold is None else self.gold[crowd.task] < 0
        task, weight = crowd.task[counted], crowd.weight[counted]
        predicted, class_probs = np.zeros(len(task)), np.zeros((len(task), crowd.n_classes))
        for log_prior, by_vote, by_task in zip(self.log_priors, evidence.by_vote, evidence.by_task, strict=True):
            joint = (log_prior + scores + discount * by_task)[task]
            joint -= discount * weight[:, None] * by_vote[counted]
            joint -= joint.max(axis=1, keepdims=True)
            rest = np.exp(joint)
            rest /= rest.sum(axis=1, keepdims=True)
            class_probs += rest
            predicted += np.einsum("nk,nk->n", rest, np.exp(by_vote[counted]))
        if not len(task) or not weight.sum() > 0:
            return HeldoutVotes(0.0, 0.0)
        log_probs = np.log(np.maximum(predicted / N_MEMBERS, 1e-300))
        is_equal = class_probs.argmax(axis=1) == crowd.label[counted]
        share = weight / weight.sum()
        return HeldoutVotes(float(share @ log_probs), float(share @ is_equal))


class HeldoutVotes(NamedTuple):
    """Quality of predictions of held-out votes."""

    log_likelihood: float
    """Mean log-probability of a vote."""
    accuracy: float
    """Share of votes that equal the most probable class."""


def start_worker_average(
    crowd: Crowd, gold: NDArray[np.int32] | None, smoothing: float, diagonal: float, strength: float | None
) -> tuple[WorkerAverage, Rows]:
    """Return the models of workers with the class priors of `ModelAverage`, and the shares of votes to start from.

    The shares commit themselves to no worker. From the posterior of a fit to the votes alone, workers who agree with each other
    in error would remain trusted, whatever the features say.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.
    smoothing, diagonal : float
        Pseudo-votes of the models.
    strength : float, optional
        Strength of the shrinkage.

    Returns
    -------
    workers : WorkerAverage
    posterior : ndarray of shape (n_tasks, n_classes)
    """
    with ignore_fit_warnings():
        aggregator = ModelAverage(max_iter=1).fit(crowd)  # its class priors follow from the votes without iteration
    log_priors = np.log(aggregator.e_step_prior_.reshape(-1, crowd.n_classes)[:N_MEMBERS])
    posterior = apply_gold(compute_vote_shares(crowd), gold)
    return WorkerAverage(crowd, gold, log_priors, smoothing, diagonal, strength), posterior


def infer_by_votes(crowd: Crowd, gold: NDArray[np.int32] | None) -> tuple[Rows, Rows, bool]:
    """Return the result of `ModelAverage`, for features that say nothing.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes of gold tasks, −1 elsewhere.

    Returns
    -------
    posterior : ndarray of shape (n_tasks, n_classes)
    trace : ndarray of shape (n_iter,)
    converged : bool
    """
    truth = None
    if gold is not None and (gold >= 0).any():
        assert crowd.classes is not None
        truth = pd.Series(crowd.classes[gold[gold >= 0]], index=crowd.tasks[gold >= 0])
    with ignore_fit_warnings():
        aggregator = ModelAverage().fit(crowd, truth=truth)
    posterior = apply_gold(np.array(aggregator.posterior_, dtype=np.float64), gold)
    return posterior, np.asarray(aggregator.trace_), aggregator.converged_


def count_votes(crowd: Crowd, posterior: Rows) -> NDArray[Any]:
    """Return the tally of a posterior.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)
    """
    return kernels.tally(crowd.layout, posterior)


def _log_softmax(logits: Rows, shape: tuple[int, ...]) -> Rows:
    """Return the logarithms of the normalised exponentials of rows."""
    rows = np.broadcast_to(logits, shape)
    rows = rows - rows.max(axis=1, keepdims=True)
    return np.asarray(rows - np.log(np.exp(rows).sum(axis=1, keepdims=True)))
