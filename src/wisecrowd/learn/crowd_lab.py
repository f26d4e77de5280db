"""CROWDLAB: a weighted average of a classifier and the workers."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.alignment import align_features
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_prior import find_training_tasks, split_folds
from wisecrowd.em.initialization import apply_gold, compute_vote_shares
from wisecrowd.errors import InputError, UsageError
from wisecrowd.nn.classifier_choice import CLASSIFIER_HELP, CLASSIFIER_L2_HELP, make_classifier

#: Smallest weight of a worker or of the classifier, as in cleanlab.
MIN_WEIGHT = 1e-6
#: Largest difference from 1 of a row sum of ``pred_probs``, which may have been rounded.
ROW_SUM_TOLERANCE = 1e-3

Codes = NDArray[np.intp]
Numbers = NDArray[np.float64]


@method_class
class CrowdLab(Learner):
    """Weighted average of the predictions of a classifier and the votes of the workers, as in cleanlab.

    The classifier is trained on the vote shares and predicts tasks outside its training folds (``cv``). It and every worker
    get a weight by how much they improve on always choosing the commonest class: worker r by the agreement s_r with others on
    the same tasks, the classifier by its agreement A with the consensus. With the error e of always choosing the commonest
    class and the mean number n̄ of votes per task,

        w_r = max(1e−6, 1 − (1 − s_r) / e),   w = max(1e−6, 1 − (1 − A) / e) √n̄
        q_i(k) ∝ w f_k(x_i) + Σ_r w_r P(y_ir | k),   P(y | k) = P if y = k, else (1 − P) / (K − 1)

    where P is the share of votes that agree with the consensus of their task. The consensus is the majority. Ties go to the
    class that the classifier prefers, then to the rarer class, then to the class of the better workers, then to the first.
    From the resulting q the consensus is chosen again, and everything is computed a second time.

    Use it to find doubtful labels as cleanlab does, also with predictions of your own classifier (``pred_probs``). It averages
    opinions and does not model how votes arise: its posterior is not sharp, a worker who is consistently wrong is ignored
    instead of inverted, and it needs tasks with votes of two workers. `Concord` and `Raykar` have none of these limits.

    Examples
    --------
    >>> from wisecrowd import CrowdLab, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CrowdLab().fit(X, simulation.crowd)
    >>> model.tasks_.columns.tolist()
    ['consensus', 'quality', 'agree', 'n_votes']
    >>> bool((model.labels_ == simulation.truth).mean() > 0.85)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("goh2022crowdlab",)
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "the folds of cross-fitting are drawn in the order of the tasks",
    }

    classifier: Any = parameter(default="logistic", help=CLASSIFIER_HELP)
    l2: float | None = parameter(default=None, help=CLASSIFIER_L2_HELP)
    random_state: int = parameter(default=0, help="Seed of the folds and of the initial weights of networks.")
    cv: int = parameter(
        default=5, help="Number of folds; a task is predicted by classifiers that were not fitted to it."
    )
    pred_probs: Any = parameter(
        default=None,
        help="Out-of-sample class probabilities to use instead of the classifier: a table by task, or an array of "
        "shape (n_tasks, n_classes).",
    )

    classifier_: SoftClassifier = fitted(help="Classifier fitted to the posterior, which predicts new tasks.")
    pred_probs_: NDArray[np.float64] = fitted(
        help="Out-of-sample class probabilities of the training tasks.", shape=("n_tasks", "n_classes"), finite=True
    )
    consensus_: NDArray[np.intp] = fitted(
        help="Class code of the consensus of every task.", shape=("n_tasks",), codes="n_classes"
    )
    consensus_quality_: NDArray[np.float64] = fitted(
        help="Posterior probability of the consensus of every task.", shape=("n_tasks",)
    )
    consensus_share_: NDArray[np.float64] = fitted(
        help="Share of the votes on a task that agree with the consensus.", shape=("n_tasks",)
    )
    votes_per_task_: NDArray[np.float64] = fitted(help="Number of votes on every task.", shape=("n_tasks",))
    model_weight_: float = fitted(help="Weight of the classifier.")
    worker_weight_: NDArray[np.float64] = fitted(help="Weight of every worker.", shape=("n_workers",))
    worker_quality_: NDArray[np.float64] = fitted(help="Quality of the votes of every worker.", shape=("n_workers",))
    agreement_: NDArray[np.float64] = fitted(
        help="Share of the votes of others on the same tasks that agree.", shape=("n_workers",)
    )

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        votes = _MergedVotes(crowd)
        if not votes.has_overlap.any():
            raise InputError(
                "CrowdLab weighs workers by their agreement, and no task has votes of two workers; use raykar or concord"
            )
        pred_probs = self._predict_out_of_sample(X, crowd) if self.pred_probs is None else self._align_pred_probs(crowd)
        majority = _set_gold(_choose_majority(votes, pred_probs), gold)
        first_average = _average_opinions(votes, pred_probs, majority)
        best = _find_unique_best(first_average.posterior)
        consensus = _set_gold(np.where(best >= 0, best, majority), gold)
        average = _average_opinions(votes, pred_probs, consensus)
        self.pred_probs_, self.consensus_ = pred_probs, consensus
        self.model_weight_, self.worker_weight_ = average.model_weight, average.worker_weight
        self.agreement_ = votes.agreement
        self.worker_quality_ = _score_workers(votes, average, consensus)
        at_consensus = np.arange(crowd.n_tasks), consensus
        with np.errstate(invalid="ignore"):  # a task without votes has no share
            self.consensus_share_ = crowd.vote_counts[at_consensus] / votes.votes_per_task
        self.votes_per_task_ = votes.votes_per_task
        self.consensus_quality_ = average.posterior[at_consensus]
        posterior = apply_gold(average.posterior, gold)
        training = find_training_tasks(crowd.layout, gold)
        self.classifier_ = self._make_classifier().fit(X[training], posterior[training])
        self._set_fitted(crowd, posterior)

    def _predict_out_of_sample(self, X: NDArray[np.float64], crowd: Crowd) -> Numbers:
        """Predict every task by a classifier that was not fitted to it."""
        n_voted = int(crowd.layout.has_votes.sum())
        if not 2 <= self.cv <= n_voted:
            raise UsageError(f"cv must be from 2 to the number of labelled tasks, {n_voted:,}; got {self.cv}")
        targets = compute_vote_shares(crowd)
        pred_probs = np.empty_like(targets)
        for train, test in split_folds(crowd.layout.has_votes, self.cv, self.random_state):
            pred_probs[test] = self._make_classifier().fit(X[train], targets[train]).predict_proba(X[test])
        return pred_probs

    def _align_pred_probs(self, crowd: Crowd) -> Numbers:
        """Check the predictions of the user, and order them by task and class."""
        table = self.pred_probs
        if isinstance(table, pd.DataFrame):
            columns = table.columns.get_indexer(pd.Index(self.classes_))
            if (columns < 0).any() or len(columns) != table.shape[1]:
                raise InputError(
                    f"pred_probs must have a column for each class, and no other; got the columns {list(table.columns)}"
                )
            table = table.iloc[:, columns]
        pred_probs = align_features(table, crowd)
        if pred_probs.shape != (crowd.n_tasks, crowd.n_classes):
            raise InputError(
                f"pred_probs must be of shape {(crowd.n_tasks, crowd.n_classes)}, tasks x classes; got {pred_probs.shape}"
            )
        if (pred_probs < 0).any() or not np.allclose(pred_probs.sum(axis=1), 1, atol=ROW_SUM_TOLERANCE):
            raise InputError("pred_probs must be probabilities: not negative, and each row with a sum of 1")
        return pred_probs

    def _make_classifier(self) -> SoftClassifier:
        return make_classifier(self.classifier, l2=self.l2, random_state=self.random_state)

    def _accepts_sparse(self) -> bool:
        return self._make_classifier().accepts_sparse

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.classifier_.predict_proba(X)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> SoftClassifier:
        """Return the saved classifier.

        Parameters
        ----------
        name : str
            Name of the attribute, ``classifier_``.
        arrays : dict of str to ndarray
            Fitted parameters of the classifier.

        Returns
        -------
        SoftClassifier
        """
        return self._make_classifier().restore(arrays)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        columns = {"quality": self.worker_quality_, "weight": self.worker_weight_, "agreement": self.agreement_}
        return super()._worker_columns() | columns

    @property
    def tasks_(self) -> pd.DataFrame:
        """Consensus, its quality, the share of votes that agree with it, and the number of votes, by task."""
        self._check_fitted("posterior_")
        columns = {
            "consensus": self.classes_[self.consensus_],
            "quality": self.consensus_quality_,
            "agree": self.consensus_share_,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))


class _MergedVotes:
    """Votes as columns (task, worker, label, weight) without repetitions, and statistics of them."""

    def __init__(self, crowd: Crowd) -> None:
        table = crowd.layout.vote_matrix.copy()
        table.sum_duplicates()  # also sorts by task, worker and label
        table = table.tocoo()
        self.task, pair = table.coords
        self.weight: Numbers = table.data
        self.worker, self.label = crowd.pairs.worker[pair], crowd.pairs.label[pair]
        self.vote_counts, self.n_workers, self.n_classes = crowd.vote_counts, crowd.pairs.n_workers, crowd.n_classes
        self.votes_per_task = crowd.vote_counts.sum(axis=1)
        starts = np.flatnonzero(np.diff(self.task, prepend=-1) | np.diff(self.worker, prepend=-1))
        sizes = np.diff(starts, append=len(self.task))
        self.own_weight = np.repeat(np.add.reduceat(self.weight, starts), sizes)
        """Weight of all votes by the same worker on the same task, for every vote."""
        self.has_overlap: NDArray[np.bool_] = np.bincount(self.task[starts], minlength=len(self.vote_counts)) > 1
        """Whether a task has votes of several workers."""

    def sum_by_worker(self, value: Numbers) -> Numbers:
        """Return the sum of a value of every vote by worker."""
        return np.bincount(self.worker, weights=value, minlength=self.n_workers).astype(np.float64)

    def sum_by_task_and_label(self, value: Numbers) -> Numbers:
        """Return the sum of a value of every vote by task and label."""
        cell = self.task.astype(np.int64) * self.n_classes + self.label
        size = self.vote_counts.size
        return np.bincount(cell, weights=value, minlength=size).astype(np.float64).reshape(self.vote_counts.shape)

    def score_by_worker(self, is_right: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Numbers:
        """Return the share of right votes by worker.

        Parameters
        ----------
        is_right : ndarray of bool, shape (n_votes,)
            Votes that are right.
        counted : ndarray of bool, shape (n_votes,)
            Votes that count.

        Returns
        -------
        ndarray of shape (n_workers,)
            NaN for workers without a counted vote.
        """
        with np.errstate(invalid="ignore"):
            return self.sum_by_worker(self.weight * (is_right & counted)) / self.sum_by_worker(self.weight * counted)

    @cached_property
    def agreement(self) -> Numbers:
        """Share of pairs with a vote of another worker on the same task that agree; the mean for workers without any."""
        compared = self.sum_by_worker(self.weight * (self.votes_per_task[self.task] - self.own_weight))
        agreeing = self.sum_by_worker(self.weight * (self.vote_counts[self.task, self.label] - self.weight))
        with np.errstate(invalid="ignore"):
            agreement = agreeing / np.where(compared > 0, compared, np.nan)
        return np.where(np.isnan(agreement), np.nanmean(agreement), agreement)


class _AveragedOpinions(NamedTuple):
    posterior: Numbers
    model_weight: float
    worker_weight: Numbers


def _average_opinions(votes: _MergedVotes, pred_probs: Numbers, consensus: Codes) -> _AveragedOpinions:
    """Return the weighted average of classifier and workers for a consensus, and the weights."""
    shared = np.flatnonzero(votes.has_overlap)
    agreeing = float((votes.vote_counts[shared, consensus[shared]] / votes.votes_per_task[shared]).mean())  # P
    class_counts = np.bincount(consensus[shared], minlength=votes.n_classes)
    baseline_error = max(1 - class_counts.max() / len(shared), MIN_WEIGHT)  # e
    worker_weight = np.maximum(1 - (1 - votes.agreement) / baseline_error, MIN_WEIGHT)
    model_error = float((pred_probs[shared].argmax(axis=1) != consensus[shared]).mean())
    mean_votes = votes.votes_per_task[votes.votes_per_task > 0].mean()
    model_weight = max(1 - model_error / baseline_error, MIN_WEIGHT) * float(np.sqrt(mean_votes))
    vote_weight = votes.weight * worker_weight[votes.worker]
    total = np.bincount(votes.task, weights=vote_weight, minlength=len(pred_probs))
    disagreeing = (1 - agreeing) / (votes.n_classes - 1)
    support = votes.sum_by_task_and_label(vote_weight)
    posterior = model_weight * pred_probs + disagreeing * total[:, None] + (agreeing - disagreeing) * support
    return _AveragedOpinions(posterior / (model_weight + total)[:, None], model_weight, worker_weight)


def _choose_majority(votes: _MergedVotes, pred_probs: Numbers) -> Codes:
    """Return the class with most votes; ties go by classifier, rarity, quality of workers and order of classes."""
    counts = votes.vote_counts
    tied = _keep_highest(counts, np.ones(counts.shape, dtype=bool))
    is_clear = tied.sum(axis=1) == 1
    consensus = tied.argmax(axis=1)
    if is_clear.all():
        return consensus
    is_right = votes.label == consensus[votes.task]
    quality = votes.score_by_worker(is_right, is_clear[votes.task])
    quality = np.where(np.isnan(quality), np.nanmean(quality) if is_clear.any() else 0.0, quality)
    support = votes.sum_by_task_and_label(votes.weight * quality[votes.worker])
    mean_quality = np.divide(support, counts, out=np.zeros(counts.shape), where=counts > 0)
    rarity = np.broadcast_to(-counts.sum(axis=0), counts.shape)
    for criterion in (pred_probs, rarity, mean_quality):
        tied = _keep_highest(criterion, tied)
    return tied.argmax(axis=1)


def _keep_highest(values: Numbers, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the candidates of every row with the highest value."""
    masked = np.where(candidates, values, -np.inf)
    return masked == masked.max(axis=1, keepdims=True)


def _find_unique_best(posterior: Numbers) -> Codes:
    """Return the most probable class of every task, or −1 where several are equally probable."""
    is_best = posterior == posterior.max(axis=1, keepdims=True)
    return np.where(is_best.sum(axis=1) == 1, is_best.argmax(axis=1), -1)


def _set_gold(consensus: Codes, gold: NDArray[np.int32] | None) -> Codes:
    """Return the consensus with the true class of gold tasks."""
    return consensus if gold is None else np.where(gold >= 0, gold, consensus)


def _score_workers(votes: _MergedVotes, average: _AveragedOpinions, consensus: Codes) -> Numbers:
    """Return the quality of every worker's votes by posterior and consensus; by the posterior alone without overlap."""
    vote_probs = average.posterior[votes.task, votes.label]
    with np.errstate(invalid="ignore"):
        by_posterior = votes.sum_by_worker(votes.weight * vote_probs) / votes.sum_by_worker(votes.weight)
    by_consensus = votes.score_by_worker(votes.label == consensus[votes.task], votes.has_overlap[votes.task])
    mean_votes = votes.votes_per_task[votes.votes_per_task > 0].mean()
    workers_weight = average.worker_weight.sum() * mean_votes / len(average.worker_weight)
    share = average.model_weight / (average.model_weight + workers_weight)
    return np.where(np.isnan(by_consensus), by_posterior, share * by_posterior + (1 - share) * by_consensus)
