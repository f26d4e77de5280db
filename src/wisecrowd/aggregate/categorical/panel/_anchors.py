"""Gold and votes of people as evidence about the truth, and starting points of the judge model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers
from wisecrowd.aggregate.categorical.panel._judge_model import Anchors, build_codes, compute_components
from wisecrowd.aggregate.categorical.panel._latent_classes import estimate_level_log_probs
from wisecrowd.data.crowd import Crowd

Array = NDArray[np.float64]

#: Log-likelihood of classes that gold rules out.
EXCLUDED = -50.0
#: Steepness of the initial posterior along the first component of the scores, in logits per standard deviation.
INITIAL_SLOPE = 2.0
#: Independent votes that all judges together count as in the initial posterior.
INITIAL_VOTES = 3.0


class PeopleVotes:
    """Votes of people, from which confusion matrices and evidence about tasks are computed.

    Parameters
    ----------
    votes : Crowd or None
        Votes of people, over all tasks.
    n_tasks, n_classes : int
        Sizes.
    smoothing, diagonal : float
        Pseudo-votes for every label, and further ones for right labels.

    Examples
    --------
    >>> votes = Crowd.from_triples([("t1", "ann", 0), ("t2", "ann", 1)])
    >>> people = PeopleVotes(votes, 2, 2, smoothing=0.1, diagonal=5.0)
    >>> people.compute_evidence(np.eye(2), np.ones(2, dtype=bool)).round(2).tolist()
    [[-0.02, -4.13], [-4.13, -0.02]]
    """

    def __init__(self, votes: Crowd | None, n_tasks: int, n_classes: int, *, smoothing: float, diagonal: float) -> None:
        self.n_classes = n_classes
        self.n_people = 0 if votes is None else votes.n_workers
        shape = (self.n_people * n_classes, n_tasks)
        self.table = sparse.csr_array(shape)
        if votes is not None:
            row = votes.worker_codes.astype(np.int64) * n_classes + votes.label
            self.table = sparse.csr_array((votes.weight, (row, votes.task)), shape=shape)
        self.pseudo_votes = smoothing + diagonal * np.eye(n_classes)

    def estimate_label_probs(self, posterior: Array) -> Array:
        """Return P(label | class) of people.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior; zero for tasks that do not count.

        Returns
        -------
        ndarray of shape (n_people, n_classes, n_classes)
            Probabilities by person, label and class.
        """
        counts = np.asarray(self.table @ posterior).reshape(-1, self.n_classes, self.n_classes) + self.pseudo_votes
        total = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, total, out=np.full_like(counts, 1 / self.n_classes), where=total > 0))

    def compute_evidence(self, posterior: Array, is_counted: NDArray[np.bool_]) -> Array:
        """Return the log-likelihood of people's votes on every task.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior.
        is_counted : ndarray of shape (n_tasks,)
            Tasks from which confusion matrices are estimated.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        label_probs = self.estimate_label_probs(posterior * is_counted[:, None])
        log_probs = np.log(np.maximum(label_probs, 1e-12)).reshape(-1, self.n_classes)
        return np.asarray(self.table.T @ log_probs)

    @property
    def has_votes(self) -> NDArray[np.bool_]:
        """Mask of tasks with votes of people."""
        return np.diff(self.table.tocsc().indptr) > 0

    def compute_shares(self) -> Array:
        """Return the share of each class among the votes on a task, uniform without votes.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        label = np.tile(np.arange(self.n_classes), self.n_people)
        by_label = sparse.csr_array(
            (np.ones(len(label)), (label, np.arange(len(label)))), shape=(self.n_classes, len(label))
        )
        counts = np.asarray((by_label @ self.table).todense()).T + 1 / self.n_classes
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def make_anchors(people: PeopleVotes, gold: NDArray[np.int32] | None) -> Anchors:
    """Return gold and people's votes as anchors of the judge model.

    Parameters
    ----------
    people : PeopleVotes
        Votes of people.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where unknown.

    Returns
    -------
    Anchors
    """
    gold_tasks = np.empty(0, dtype=np.intp) if gold is None else np.flatnonzero(gold >= 0)
    gold_evidence = np.full((len(gold_tasks), people.n_classes), EXCLUDED)
    if gold is not None:
        gold_evidence[np.arange(len(gold_tasks)), gold[gold_tasks]] = 0.0

    def compute_evidence(posterior: Array, is_counted: NDArray[np.bool_]) -> Array:
        evidence = people.compute_evidence(posterior, is_counted)
        evidence[gold_tasks] += gold_evidence
        return evidence

    is_anchored = people.has_votes
    is_anchored[gold_tasks] = True
    return Anchors(compute_evidence, is_anchored)


def make_start(answers: CodedAnswers, people: PeopleVotes, gold: NDArray[np.int32] | None) -> Array:
    """Return an initial posterior.

    Two classes start from the first principal component of scores, oriented by gold and people's votes or, without them, so that
    high scores mean the second class. More classes, and labels, start from gold, votes of people and shares of labels.

    Parameters
    ----------
    answers : CodedAnswers
        Answers of judges.
    people : PeopleVotes
        Votes of people.
    gold : ndarray of shape (n_tasks,) or None
        Class codes, −1 where unknown.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
    """
    n_classes, levels = people.n_classes, answers.levels
    anchored = people.compute_shares()
    is_anchored = people.has_votes
    if gold is not None:
        gold_tasks = np.flatnonzero(gold >= 0)
        anchored[gold_tasks] = np.eye(n_classes)[gold[gold_tasks]]
        is_anchored[gold_tasks] = True
    if not levels.is_ordered:
        by_class = sparse.csr_array(
            (np.ones(len(levels.low)), (np.arange(len(levels.low)), levels.low.astype(np.int64))),
            shape=(len(levels.low), n_classes),
        )
        shares = np.asarray((answers.table @ by_class).todense())
        shares = (shares + 1 / n_classes) / (shares.sum(axis=1, keepdims=True) + 1)
        return np.where(is_anchored[:, None], anchored, shares)
    if n_classes == 2:
        score = _compute_first_component(answers)
        weight = (anchored[:, 1] - 0.5) * is_anchored
        if is_anchored.any() and float(weight @ score) < 0:
            score = -score
        high = expit(INITIAL_SLOPE * score)
        return np.where(is_anchored[:, None], anchored, np.column_stack([1 - high, high]))
    logits = estimate_level_log_probs(answers, anchored * is_anchored[:, None])
    factor = min(1.0, INITIAL_VOTES / max(levels.n_judges, 1))
    evidence = factor * (answers.table @ logits)
    probs = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    return np.where(is_anchored[:, None], anchored, probs)


def _compute_first_component(answers: CodedAnswers) -> Array:
    """Return the first principal component of the scores, standardised; most judges give high values high scores."""
    levels, counts = answers.levels, answers.counts
    components, _ = compute_components(answers, build_codes(levels, counts))
    if not components.scores.shape[1]:
        return np.zeros(answers.n_tasks)
    score = components.scores[:, 0]
    before = np.cumsum(counts) - counts
    first = np.searchsorted(levels.judge, levels.judge)
    rank = (before - before[first] + counts / 2) / np.maximum(np.bincount(levels.judge, counts)[levels.judge], 1e-9)
    mean_rank = (answers.table @ (rank - 0.5)) / np.maximum(np.asarray(answers.table.sum(axis=1)).ravel(), 1e-9)
    spread = score.std()
    return np.asarray(score * np.sign(score @ mean_rank or 1.0) / (spread if spread > 0 else 1.0))
