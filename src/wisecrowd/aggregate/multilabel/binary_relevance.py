"""Every label of a set as a question of its own, all of them in one pass."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from wisecrowd.aggregate.multilabel._mark_model import MarkModel, MarkPrior, MarkProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.label_set_aggregator import Array, LabelSetAggregator
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError, check_choice

SHRINKAGE_HELP = (
    "Pseudo-votes that draw a worker's rates for a label to the worker's rates over all labels, and those to the crowd's. 0 is "
    "maximum likelihood."
)
#: Bounds of the share of tasks to which a label applies.
PRIOR_BOUNDS = (1e-4, 1 - 1e-4)


@method_class
class BinaryRelevance(LabelSetAggregator):
    """Label sets as independent yes-or-no questions, one per label.

    With ``model="two-coin"``, worker r marks label c with probability s_rc if it applies and f_rc if it does not, and the label
    applies to a share ω_c of the tasks. This is the model of Dawid and Skene for every label, fitted for all labels at once: an
    iteration costs one product of the sparse assignments with a table of workers and labels. With ``model="majority"``, the
    probability of a label is the share of the workers who marked it.

    Labels are treated as independent; `LabelSetMixture` uses their dependence.

    Examples
    --------
    >>> from wisecrowd import BinaryRelevance
    >>> votes = {"task": ["t1"] * 3 + ["t2"] * 3, "worker": ["ann", "bob", "cy"] * 2,
    ...          "labels": ["cat|pet", "cat|pet", "dog", "dog", "dog|pet", "dog|pet"]}
    >>> BinaryRelevance(model="majority").fit(votes).labels_.to_dict()
    {'t1': ('cat', 'pet'), 't2': ('dog', 'pet')}
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)

    model: Literal["two-coin", "majority"] = parameter(
        default="two-coin", help="Rates of every worker and label ('two-coin'), or shares of marks ('majority')."
    )
    shrinkage: float = parameter(default=10.0, help=SHRINKAGE_HELP)
    max_iter: int = parameter(default=1000, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-4, help="Largest change of a probability at convergence.")

    hit_rate_: Array = fitted(help="P(mark | label applies).", shape=("n_workers", "n_labels"))
    false_alarm_rate_: Array = fitted(help="P(mark | label does not apply).", shape=("n_workers", "n_labels"))
    label_prior_: Array = fitted(help="Share of tasks to which each label applies.", shape=("n_labels",), finite=True)
    votes_per_worker_: NDArray[np.int64] = fitted(help="Number of assignments of each worker.", shape=("n_workers",))
    trace_: Array = fitted(help="Log-likelihood plus log-prior before every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of EM iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    def _infer_labels(self, crowd: LabelSetCrowd) -> Array:
        check_choice("model", self.model, ("two-coin", "majority"))
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")
        model = MarkModel(crowd)
        n_votes = crowd.votes_per_task
        share = crowd.mark_counts / np.maximum(n_votes, 1)[:, None]
        self.votes_per_worker_ = crowd.votes_per_worker
        counts = model.count(share)
        prior = MarkPrior.estimate(counts, self.shrinkage)
        has_votes = n_votes > 0
        trace: list[float] = []

        def step(label_probs: Array) -> tuple[Array, float]:
            probs = prior.maximize(model.count(label_probs))
            share_true = np.clip(label_probs[has_votes].mean(axis=0), *PRIOR_BOUNDS)
            evidence = model.evidence(probs)
            log_odds = logit(share_true) + evidence
            marginal = np.logaddexp(np.log1p(-share_true), np.log(share_true) + evidence)[has_votes].sum()
            trace.append(model.base_log_likelihood(probs) + float(marginal) + prior.log_density(probs))
            updated = expit(log_odds)
            return updated, float(np.abs(updated - label_probs).max())

        if self.model == "majority":
            label_probs, self.n_iter_, self.converged_ = share, 0, True
        else:
            result = iterate_to_fixed_point(step, share, max_iter=self.max_iter, tol=self.tol, title="Label sets")
            label_probs, self.n_iter_, self.converged_ = result
        rates = prior.maximize(model.count(label_probs))
        self.hit_rate_, self.false_alarm_rate_ = rates
        self.label_prior_ = np.clip(label_probs[has_votes].mean(axis=0), *PRIOR_BOUNDS)
        self.trace_ = np.array(trace)
        return np.asarray(np.where(has_votes[:, None], label_probs, self.label_prior_), dtype=np.float64)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        return mean_rates(self.votes_per_worker_, MarkProbs(self.hit_rate_, self.false_alarm_rate_), self.label_prior_)

    def _set_log_likelihood(self, crowd: LabelSetCrowd) -> Array:
        marginal = mark_probabilities(
            crowd, self.label_probs_[crowd.task], MarkProbs(self.hit_rate_, self.false_alarm_rate_)
        )
        return set_log_probs(crowd, marginal)


def mean_rates(n_votes: NDArray[Any], rates: MarkProbs, label_prior: Array) -> dict[str, NDArray[Any]]:
    """Return the columns of the table of workers: rates averaged over labels.

    Parameters
    ----------
    n_votes : ndarray of shape (n_workers,)
        Number of assignments.
    rates : MarkProbs
        Probabilities of marks.
    label_prior : ndarray of shape (n_labels,)
        Share of tasks to which each label applies.

    Returns
    -------
    dict of str to ndarray
    """
    return {
        "n_votes": n_votes,
        "hit_rate": np.average(rates.hit, axis=1, weights=label_prior),
        "false_alarm_rate": np.average(rates.false_alarm, axis=1, weights=1 - label_prior),
    }


def mark_probabilities(crowd: LabelSetCrowd, label_probs: Array, rates: MarkProbs) -> Array:
    """Return P(mark) for every assignment and label.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Assignments.
    label_probs : ndarray of shape (n_votes, n_labels)
        Probability that a label applies to the task of the assignment.
    rates : MarkProbs
        Probabilities of marks.

    Returns
    -------
    ndarray of shape (n_votes, n_labels)
    """
    return label_probs * rates.hit[crowd.worker] + (1 - label_probs) * rates.false_alarm[crowd.worker]


def set_log_probs(crowd: LabelSetCrowd, mark_probs: Array) -> Array:
    """Return the log-probability of every assignment's set if marks are independent.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Assignments.
    mark_probs : ndarray of shape (n_votes, n_labels)
        P(mark).

    Returns
    -------
    ndarray of shape (n_votes,)
    """
    probs = np.clip(mark_probs, 1e-12, 1 - 1e-12)
    total = np.log1p(-probs).sum(axis=1)
    chosen = probs[crowd.mark, crowd.label]
    return np.asarray(
        total + np.bincount(crowd.mark, np.log(chosen) - np.log1p(-chosen), crowd.n_votes), dtype=np.float64
    )
