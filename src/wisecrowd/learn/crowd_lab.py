"""CROWDLAB: a weighted average of a classifier and the workers."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.alignment import align_features
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier_fields import ClassifierLearner, cross_fitted, taught_by
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.errors import InputError, UsageError

#: No weight is less than this.
LEAST_WEIGHT = 1e-6

Codes = NDArray[np.intp]
Numbers = NDArray[np.float64]


@method_class
class CrowdLab(ClassifierLearner):
    """A weighted average of what a classifier expects and what the workers say, as cleanlab computes it.

    The classifier is trained on the shares of the votes, and asked only about tasks that it has not batch (``cv``
    folds). It and every worker get a weight by how much better than always naming the commonest class they are: the
    workers s_r by how often they agree with others on the same tasks, the classifier A by how often it agrees with the
    consensus. e is the error of always naming the commonest class, n̄ the mean number of labels of a task:

        w_r = max(1e−6, 1 − (1 − s_r) / e),   w = max(1e−6, 1 − (1 − A) / e) √n̄
        q_i(k) ∝ w f_k(x_i) + Σ_r w_r P(y_ir | k),   P(y | k) = P if y = k, else (1 − P) / (K − 1)

    where P is how often a vote agrees with the consensus of its task. The consensus is the majority, in a tie what the
    classifier prefers, then the rarer class, then the word of better workers, then the first class; from the q that
    follows it is chosen once more, and everything computed again.
    ``workers_`` has each worker's ``quality``, ``weight`` and ``agreement`` with others; ``tasks_`` has the
    ``consensus``, its ``quality`` q_i, and the share of votes that ``agree`` with it.

    Choose it to find doubtful labels in the way that cleanlab does, also with a classifier's predictions that you have
    (``pred_probs``). It is an average of opinions and no model of how votes come about: its posterior is not sharp, a
    worker who is reliably wrong is ignored instead of understood, and it says nothing where no two workers share a task.
    `Concord` and `Raykar` have none of these limits.

    >>> from wisecrowd import CrowdLab, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = CrowdLab().fit(X, made.crowd)
    >>> model.tasks_.columns.tolist()
    ['consensus', 'quality', 'agree', 'n_votes']
    >>> bool((model.labels_ == made.truth).mean() > 0.85)
    True
    """

    references: ClassVar[tuple[str, ...]] = ("goh2022crowdlab",)
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "the folds of cross-fitting are drawn in the order of the tasks",
    }

    cv: int = parameter(default=5, help="folds of cross-fitting: no task is judged by who has seen it")
    pred_probs: Any = parameter(
        default=None, help="out-of-sample predictions to use instead: tasks x classes, a table by task or an array"
    )

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        votes = _Votes(crowd)
        if not votes.shared.any():
            raise InputError(
                "CrowdLab weighs workers by how often they agree, and here no task was labelled by two of them; "
                "use raykar or concord, which can do without"
            )
        expected = self._out_of_sample(X, crowd) if self.pred_probs is None else self._given(crowd)
        majority = _gold(_majority(votes, expected), gold)
        first = _weighted(votes, expected, majority)
        best = _only_best(first.posterior)
        consensus = _gold(np.where(best >= 0, best, majority), gold)
        final = _weighted(votes, expected, consensus)
        self.expected_, self.consensus_ = expected, consensus
        self.model_weight_, self.worker_weight_ = final.model, final.workers
        self.agreement_ = votes.agreement
        self.quality_ = _quality(votes, final, consensus)
        at_consensus = np.arange(crowd.n_tasks), consensus
        with np.errstate(invalid="ignore"):  # where nobody voted, nobody agreed
            self.agree_ = crowd.votes[at_consensus] / votes.size
        self.n_votes_ = votes.size
        self.consensus_quality_ = final.posterior[at_consensus]
        posterior = apply_gold(final.posterior, gold)
        taught = taught_by(crowd.layout, gold)
        self.classifier_ = self._new_classifier().fit(X[taught], posterior[taught])
        self._set_fitted(crowd, posterior)

    def _out_of_sample(self, X: NDArray[np.float64], crowd: Crowd) -> Numbers:
        """What classifiers expect of each task who have not seen it."""
        n_voted = int(crowd.layout.voted.sum())
        if not 2 <= self.cv <= n_voted:
            raise UsageError(f"cv must be from 2 to the number of labelled tasks, {n_voted:,}; got {self.cv}")
        targets = vote_shares(crowd)
        expected = np.empty_like(targets)
        for train, test in cross_fitted(crowd.layout.voted, self.cv, self.random_state):
            expected[test] = self._new_classifier().fit(X[train], targets[train]).predict_proba(X[test])
        return expected

    def _given(self, crowd: Crowd) -> Numbers:
        table = self.pred_probs
        if isinstance(table, pd.DataFrame):
            columns = table.columns.get_indexer(pd.Index(self.classes_))
            if (columns < 0).any() or len(columns) != table.shape[1]:
                raise InputError(
                    "pred_probs must have a column for each class, and no other; it is a table of predictions"
                )
            table = table.iloc[:, columns]
        found = align_features(table, crowd)
        if found.shape != (crowd.n_tasks, crowd.n_classes):
            raise InputError(
                f"pred_probs must be of shape {(crowd.n_tasks, crowd.n_classes)}, tasks x classes; got {found.shape}"
            )
        if (found < 0).any() or not np.allclose(found.sum(axis=1), 1, atol=1e-3):
            raise InputError("pred_probs must be probabilities: not negative, and each row with a sum of 1")
        return found

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        further = {"quality": self.quality_, "weight": self.worker_weight_, "agreement": self.agreement_}
        return super()._worker_columns() | further

    @property
    def tasks_(self) -> pd.DataFrame:
        """The consensus on every task, how good it is, which share of the votes agrees with it, and how many there are."""
        self._check_fitted("posterior_")
        columns = {
            "consensus": self.classes_[self.consensus_],
            "quality": self.consensus_quality_,
            "agree": self.agree_,
        }
        return pd.DataFrame(columns | {"n_votes": self.n_votes_}, index=self.task_index_.rename("task"))


class _Votes:
    """The votes as (task, worker, label, weight), what repeats added up, and what follows from them alone."""

    def __init__(self, crowd: Crowd) -> None:
        table = crowd.layout.matrix.copy()
        table.sum_duplicates()  # which also sorts: by task, then worker, then label
        table = table.tocoo()
        self.task, pair = table.coords
        self.weight: Numbers = table.data
        self.worker, self.label = crowd.pairs.worker[pair], crowd.pairs.label[pair]
        self.votes, self.n_workers, self.n_classes = crowd.votes, crowd.pairs.n_workers, crowd.n_classes
        self.size = crowd.votes.sum(axis=1)
        begins = np.flatnonzero(np.diff(self.task, prepend=-1) | np.diff(self.worker, prepend=-1))
        self.of_own = np.repeat(np.add.reduceat(self.weight, begins), np.diff(begins, append=len(self.task)))
        """How much all votes of the vote's worker on its task weigh."""
        self.shared: NDArray[np.bool_] = np.bincount(self.task[begins], minlength=len(self.votes)) > 1
        """Which tasks several workers labelled."""

    def by_worker(self, value: Numbers) -> Numbers:
        """Add up a value of each vote within each worker."""
        return np.bincount(self.worker, weights=value, minlength=self.n_workers).astype(np.float64)

    def share(self, right: NDArray[np.bool_], among: NDArray[np.bool_]) -> Numbers:
        """Which share of a worker's votes among some is right; NaN where there are none."""
        with np.errstate(invalid="ignore"):
            return self.by_worker(self.weight * (right & among)) / self.by_worker(self.weight * among)

    @cached_property
    def agreement(self) -> Numbers:
        """How often each worker agrees with another on the same task; the mean of workers for one who met nobody."""
        met = self.by_worker(self.weight * (self.size[self.task] - self.of_own))
        agreed = self.by_worker(self.weight * (self.votes[self.task, self.label] - self.weight))
        with np.errstate(invalid="ignore"):
            found = agreed / np.where(met > 0, met, np.nan)
        return np.where(np.isnan(found), np.nanmean(found), found)


class _Weighted(NamedTuple):
    posterior: Numbers
    model: float
    workers: Numbers


def _weighted(votes: _Votes, expected: Numbers, consensus: Codes) -> _Weighted:
    """The average of classifier and workers, and their weights, given a consensus."""
    shared = np.flatnonzero(votes.shared)
    likely = float((votes.votes[shared, consensus[shared]] / votes.size[shared]).mean())  # P
    counts = np.bincount(consensus[shared], minlength=votes.n_classes)
    naive = max(1 - counts.max() / len(shared), LEAST_WEIGHT)  # e
    workers = np.maximum(1 - (1 - votes.agreement) / naive, LEAST_WEIGHT)
    wrong = float((expected[shared].argmax(axis=1) != consensus[shared]).mean())
    model = max(1 - wrong / naive, LEAST_WEIGHT) * float(np.sqrt(votes.size[votes.size > 0].mean()))
    heard = votes.weight * workers[votes.worker]
    total = np.bincount(votes.task, weights=heard, minlength=len(expected))
    unlikely = (1 - likely) / (votes.n_classes - 1)
    cell = votes.task.astype(np.int64) * votes.n_classes + votes.label
    said = np.bincount(cell, weights=heard, minlength=expected.size).reshape(expected.shape)
    posterior = model * expected + unlikely * total[:, None] + (likely - unlikely) * said
    return _Weighted(posterior / (model + total)[:, None], model, workers)


def _majority(votes: _Votes, expected: Numbers) -> Codes:
    """The class with most votes; ties go to what the classifier prefers, to the rarer class, to better workers."""
    tied = _among(votes.votes, np.ones(votes.votes.shape, dtype=bool))
    clear = tied.sum(axis=1) == 1
    consensus = tied.argmax(axis=1)
    if clear.all():
        return consensus
    right = votes.label == consensus[votes.task]
    worth = votes.share(right, clear[votes.task])
    worth = np.where(np.isnan(worth), np.nanmean(worth) if clear.any() else 0.0, worth)
    cell = votes.task.astype(np.int64) * votes.n_classes + votes.label
    said = np.bincount(cell, weights=votes.weight * worth[votes.worker], minlength=expected.size)
    backing = np.divide(said.reshape(expected.shape), votes.votes, out=np.zeros(expected.shape), where=votes.votes > 0)
    rarity = np.broadcast_to(-votes.votes.sum(axis=0), expected.shape)
    for liking in (expected, rarity, backing):
        tied = _among(liking, tied)
    return tied.argmax(axis=1)


def _among(liking: Numbers, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The candidates in each row that are liked best."""
    masked = np.where(candidates, liking, -np.inf)
    return masked == masked.max(axis=1, keepdims=True)


def _only_best(posterior: Numbers) -> Codes:
    """The most probable class, or −1 where there are several."""
    peak = posterior == posterior.max(axis=1, keepdims=True)
    return np.where(peak.sum(axis=1) == 1, peak.argmax(axis=1), -1)


def _gold(consensus: Codes, gold: NDArray[np.int32] | None) -> Codes:
    return consensus if gold is None else np.where(gold >= 0, gold, consensus)


def _quality(votes: _Votes, found: _Weighted, consensus: Codes) -> Numbers:
    """What a worker's labels are worth by q and by the consensus; by q alone for one who shares no task."""
    with np.errstate(invalid="ignore"):
        by_model = votes.by_worker(votes.weight * found.posterior[votes.task, votes.label]) / votes.by_worker(
            votes.weight
        )
    by_crowd = votes.share(votes.label == consensus[votes.task], votes.shared[votes.task])
    others = found.workers.sum() * votes.size[votes.size > 0].mean() / len(found.workers)
    share = found.model / (found.model + others)
    return np.where(np.isnan(by_crowd), by_model, share * by_model + (1 - share) * by_crowd)
