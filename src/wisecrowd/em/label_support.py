"""Support of labels by the votes: the two figures per task that a calibrated confidence rests on.

A posterior says how probable a label is if the model is right. Real workers share errors that no model of independent workers
sees, so the posterior is overconfident. Two figures predict better how often labels are right:

- *evidence*: the log-odds of the label by the votes on its task, where the confusion matrices of the workers are estimated
  from all *other* tasks and shrunk towards that of the crowd, so that a vote is not judged by itself;
- *agreement*: the share of the votes for the label, in which a vote counts by the accuracy of its worker, shrunk towards the
  accuracy of such workers. Where good workers disagree, the task is difficult.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.priors import CrowdPrior, estimate_crowd_prior

Array = NDArray[np.float64]
Codes = NDArray[Any]

#: Smallest probability of a vote; a vote that looks impossible must not outweigh all others.
MIN_LABEL_PROB = 1e-9
#: Accuracy of workers whose votes cannot be compared with others, a typical value of public crowds.
DEFAULT_ACCURACY = 0.7
#: Range of the mean accuracy of workers; at its ends the spread between workers could not be estimated.
ACCURACY_RANGE = (0.01, 0.99)
#: Range of the variance between workers, as a share of the variance of single votes.
SPREAD_RANGE = (1e-4, 0.9)
#: Prior weight of a class that nobody has voted for yet.
NEW_CLASS_PRIOR = 1e-6
#: Smallest advantage over chance, and smallest error rate, in the weight of a vote.
MIN_ADVANTAGE = MIN_ERROR = 0.02
#: Smallest lead of a label over the next class, and largest power, when class probabilities are calibrated.
MIN_LEAD, MAX_POWER = 0.05, 1e3
#: Smallest log-probability of a class relative to the label.
MIN_GAP = -1e4
#: Largest number of Newton steps for the power, and the relative size of the last step.
MAX_POWER_STEPS, POWER_TOLERANCE = 60, 1e-9
#: Cells of the temporary tables of a block of votes; tables of this size stay in the processor's cache.
BLOCK_CELLS = 2**17
#: Number of pseudo-votes with the mean accuracy in the agreement on a task.
AGREEMENT_PSEUDO_VOTES = 2.0
#: Range of the agreement before the logit.
AGREEMENT_RANGE = (0.01, 0.995)


class LabelSupport(NamedTuple):
    """Support of the labels of some tasks.

    Attributes
    ----------
    label : ndarray of int of shape (n_tasks,)
        Most probable class.
    log_odds : ndarray of shape (n_tasks,)
        Log-odds of the label by the votes.
    agreement : ndarray of shape (n_tasks,)
        Logit of the share of votes for the label.
    n_votes : ndarray of int of shape (n_tasks,)
        Number of votes. Tasks without votes have no support.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1), ("t2", "bob", 0)])
    >>> model, posterior = SupportModel.fit(crowd, crowd.vote_counts / 2)
    >>> support = model.second.measure(crowd, posterior, posterior.argmax(axis=1))
    >>> bool(support.log_odds[0] > support.log_odds[1]), bool(support.agreement[0] > support.agreement[1])
    (True, True)
    """

    label: Codes
    log_odds: Array
    agreement: Array
    n_votes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskVotes:
    """Some tasks with all their votes, in the order of the tasks.

    Attributes
    ----------
    count : ndarray of int of shape (n_tasks,)
        Number of votes of each task.
    position : ndarray of int of shape (n_votes,)
        Task of each vote.
    worker, label : ndarray of int of shape (n_votes,)
        Worker and label of each vote.
    pair : ndarray of int of shape (n_votes,)
        Row of the tally; −1 for a pair that it does not have.
    weight : ndarray of shape (n_votes,)
        Weight of each vote.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior that the votes entered the tally with.
    is_counted : ndarray of bool of shape (n_votes,) or None
        Whether the tally contains the vote; None if it contains all.
    """

    count: NDArray[np.int64]
    position: NDArray[np.int64]
    worker: Codes
    label: Codes
    pair: Codes
    weight: Array
    posterior: Array
    is_counted: NDArray[np.bool_] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteModel:
    """Model of the votes of a crowd, from sums over all votes.

    Attributes
    ----------
    class_prior : ndarray of shape (n_classes,)
        Share of each class.
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts by pair and class.
    total : ndarray of shape (n_workers, n_classes)
        Expected counts by worker and class.
    crowd_prior : CrowdPrior
        Confusion matrix of the crowd, and its strength in pseudo-votes.
    vote_weight : ndarray of shape (n_workers,)
        Weight of a worker's vote in the agreement.
    accuracy : float
        Mean accuracy of the workers, by weight of their votes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    >>> VoteModel.from_sums(*sum_posterior(crowd, crowd.vote_counts / 3), crowd.pairs).class_prior.round(2).tolist()
    [0.56, 0.44]
    """

    class_prior: Array
    tally: Array
    total: Array
    crowd_prior: CrowdPrior
    vote_weight: Array
    accuracy: float

    @classmethod
    def from_sums(cls, class_counts: NDArray[Any], tally: NDArray[Any], pairs: Pairs) -> VoteModel:
        """Return a model in which all votes have the same weight.

        Parameters
        ----------
        class_counts : ndarray of shape (n_classes,)
            Expected number of tasks of each class.
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts by pair and class.
        pairs : Pairs
            Worker and label of each row.

        Returns
        -------
        VoteModel
        """
        tally = np.asarray(tally, dtype=np.float64)
        counts = np.asarray(class_counts, dtype=np.float64)
        return cls(
            class_prior=counts / max(counts.sum(), 1e-300),
            tally=tally,
            total=pairs.sum_by_worker(tally),
            crowd_prior=estimate_crowd_prior(tally, pairs),
            vote_weight=np.ones(pairs.n_workers),
            accuracy=DEFAULT_ACCURACY,
        )

    def sum_right_votes(self, crowd: Crowd, posterior: NDArray[Any]) -> tuple[Array, Array, Array]:
        """Sum the probability that votes are right, by worker; the sums of parts of a crowd add up.

        Parameters
        ----------
        crowd : Crowd
            Votes, all or those on some tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of these tasks.

        Returns
        -------
        right : ndarray of shape (n_workers,)
            Expected number of right votes on tasks with further votes.
        compared : ndarray of shape (n_workers,)
            Number of votes on such tasks.
        n_votes : ndarray of shape (n_workers,)
            Number of votes.
        """
        right, compared, n_votes = np.zeros((3, len(self.vote_weight)))
        for block in _iter_blocks(crowd, posterior):
            probs = _softmax(self._class_log_probs(block))
            is_compared = (block.count > 1)[block.position] * block.weight
            for sums, values in (
                (right, is_compared * probs[block.position, block.label]), (compared, is_compared), (n_votes, block.weight),
            ):  # fmt: skip
                sums += np.bincount(block.worker, values, minlength=len(sums))
        return right, compared, n_votes

    def weigh_workers(self, right: Array, compared: Array, n_votes: Array) -> VoteModel:
        """Return the model with weights of votes by the accuracy of the workers.

        Accuracies are shrunk towards their mean, by the spread that the method of moments finds. The weight of a vote is the
        advantage of its worker over chance divided by the error rate.

        Parameters
        ----------
        right, compared, n_votes : ndarray of shape (n_workers,)
            Result of `sum_right_votes` for all votes.

        Returns
        -------
        VoteModel
        """
        n_classes = len(self.class_prior)
        n_compared = compared.sum()
        mean = float(np.clip(right.sum() / n_compared, *ACCURACY_RANGE)) if n_compared else DEFAULT_ACCURACY
        vote_variance = mean * (1 - mean)
        has_several = compared >= 2
        n, n_right = compared[has_several], right[has_several]
        excess = ((n_right / np.maximum(n, 1e-300) - mean) ** 2 * n).sum() - vote_variance * len(n)
        spread = np.clip(excess / max((n - 1).sum(), 1.0) / vote_variance, *SPREAD_RANGE)
        pseudo_votes = 1 / spread - 1
        accuracy = (right + pseudo_votes * mean) / (compared + pseudo_votes)
        weight = np.maximum(accuracy - 1 / max(n_classes, 2), MIN_ADVANTAGE) / np.maximum(1 - accuracy, MIN_ERROR)
        total = float(weight @ n_votes)
        weighted_accuracy = float((weight * accuracy) @ n_votes / total) if total else mean
        return replace(self, vote_weight=weight, accuracy=weighted_accuracy)

    def add_classes(self, n_classes: int) -> VoteModel:
        """Return the model with classes that nobody has voted for yet.

        Parameters
        ----------
        n_classes : int
            Number of classes, at least that of the model.

        Returns
        -------
        VoteModel
        """
        n_new = n_classes - len(self.class_prior)
        if n_new == 0:
            return self
        prior = np.pad(self.class_prior, (0, n_new), constant_values=NEW_CLASS_PRIOR)
        confusion = np.pad(self.crowd_prior.confusion, (0, n_new), constant_values=1 / n_classes)
        return replace(
            self, class_prior=prior / prior.sum(), tally=np.pad(self.tally, ((0, 0), (0, n_new))),
            total=np.pad(self.total, ((0, 0), (0, n_new))), crowd_prior=self.crowd_prior._replace(confusion=confusion),
        )  # fmt: skip

    def add_workers(self, n_workers: int) -> VoteModel:
        """Return the model with workers that have no votes yet; their votes have the median weight.

        Parameters
        ----------
        n_workers : int
            Number of workers; a smaller number than that of the model has no effect.

        Returns
        -------
        VoteModel
        """
        n_new = n_workers - len(self.vote_weight)
        if n_new <= 0:
            return self
        weight = float(np.median(self.vote_weight)) if len(self.vote_weight) else 1.0
        return replace(
            self, total=np.pad(self.total, ((0, n_new), (0, 0))),
            vote_weight=np.pad(self.vote_weight, (0, n_new), constant_values=weight),
        )  # fmt: skip

    def infer(self, crowd: Crowd, posterior: NDArray[Any], gold: Codes | None = None) -> Array:
        """Infer the posterior of tasks by their votes, with parameters from all other tasks.

        Parameters
        ----------
        crowd : Crowd
            Votes, all or those on some tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior that the votes on these tasks entered the tally with.
        gold : ndarray of int of shape (n_tasks,), default=None
            True class of gold tasks, −1 elsewhere.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
        """
        return apply_gold(_softmax(self.class_log_probs(crowd, posterior)), gold)

    def measure(self, crowd: Crowd, posterior: NDArray[Any], label: Codes, *, by_votes: bool = False) -> LabelSupport:
        """Measure the support of labels.

        Parameters
        ----------
        crowd : Crowd
            Votes, all or those on some tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior that the votes on these tasks entered the tally with.
        label : ndarray of int of shape (n_tasks,)
            Label of each task.
        by_votes : bool, default=False
            Take the most probable class by the votes as label instead. The label of a gold task is its truth; this is the label
            that it would have without it.

        Returns
        -------
        LabelSupport
        """
        supports, start = [], 0
        for block in _iter_blocks(crowd, posterior):
            stop = start + len(block.count)
            supports.append(self.measure_block(block, None if by_votes else label[start:stop])[0])
            start = stop
        return LabelSupport(*(np.concatenate(columns) for columns in zip(*supports, strict=True)))

    def measure_block(self, block: TaskVotes, label: Codes | None) -> tuple[LabelSupport, Array]:
        """Measure the support of the labels of a block of tasks.

        Parameters
        ----------
        block : TaskVotes
            Tasks with all their votes.
        label : ndarray of int of shape (n_tasks,) or None
            Label of each task; None for the most probable class by the votes.

        Returns
        -------
        support : LabelSupport
            Support of the labels.
        class_log_probs : ndarray of shape (n_tasks, n_classes)
            Log-probability of the classes by the votes, not normalised.
        """
        log_probs = self._class_log_probs(block)
        label = log_probs.argmax(axis=1) if label is None else label
        return LabelSupport(
            label, _compute_log_odds(log_probs, label), self._agreement(block, label), block.count
        ), log_probs

    def class_log_probs(self, crowd: Crowd, posterior: NDArray[Any]) -> Array:
        """Compute the log-probability of the classes of tasks by their votes, with parameters from all other tasks.

        Parameters
        ----------
        crowd : Crowd
            Votes, all or those on some tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior that the votes on these tasks entered the tally with.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Log-probabilities, not normalised.
        """
        return np.concatenate([self._class_log_probs(block) for block in _iter_blocks(crowd, posterior)])

    def label_probs(self, worker: Codes, label: Codes, pair: Codes, own: Array | float = 0.0) -> Array:
        """Compute P(label given class) of votes, shrunk towards the confusion matrix of the crowd.

        Parameters
        ----------
        worker, label : ndarray of int of shape (n_votes,)
            Worker and label of each vote.
        pair : ndarray of int of shape (n_votes,)
            Row of the tally; −1 for a pair that it does not have.
        own : ndarray of shape (n_votes, n_classes) or float, default=0.0
            Share of each vote in the tally, which is subtracted.

        Returns
        -------
        ndarray of shape (n_votes, n_classes)
        """
        confusion, strength = self.crowd_prior
        label_probs = _subtract_own(_take_rows(self.tally, pair), own)
        label_probs += strength * confusion.T[label]
        label_probs /= _subtract_own(_take_rows(self.total, worker), own) + strength
        return label_probs

    def _agreement(self, block: TaskVotes, label: Codes) -> Array:
        """Return the logit of the shrunk share of votes for the labels, by weight of the workers."""
        weight = self.vote_weight[block.worker] * block.weight
        n_tasks = len(block.count)
        for_label = np.bincount(block.position, weight * (block.label == label[block.position]), minlength=n_tasks)
        total = np.bincount(block.position, weight, minlength=n_tasks)
        squares = np.bincount(block.position, weight * weight, minlength=n_tasks)
        # A sum of weights is worth (Σw)² / Σw² votes of equal weight.
        n_effective = np.divide(total**2, squares, out=np.zeros(n_tasks), where=squares > 0)
        share = np.divide(for_label, total, out=np.zeros(n_tasks), where=total > 0)
        shrunk = (share * n_effective + AGREEMENT_PSEUDO_VOTES * self.accuracy) / (n_effective + AGREEMENT_PSEUDO_VOTES)
        shrunk = np.clip(shrunk, *AGREEMENT_RANGE)
        return np.asarray(np.log(shrunk / (1 - shrunk)))

    def _class_log_probs(self, block: TaskVotes) -> Array:
        """Return the log-probability of the classes of the tasks, not normalised.

        The tally of a vote's pair contains the posterior of its own task, which is subtracted.
        """
        own = block.posterior[block.position] * block.weight[:, None]
        if block.is_counted is not None:
            own[~block.is_counted] = 0.0
        label_probs = self.label_probs(block.worker, block.label, block.pair, own)
        label_log_probs = np.log(np.maximum(label_probs, MIN_LABEL_PROB, out=label_probs), out=label_probs)
        label_log_probs *= block.weight[:, None]
        log_probs = np.tile(np.log(np.maximum(self.class_prior, 1e-300)), (len(block.count), 1))
        has_votes = np.flatnonzero(block.count)
        if len(has_votes):
            starts = (np.cumsum(block.count) - block.count)[has_votes]
            log_probs[has_votes] += np.add.reduceat(label_log_probs, starts, axis=0)
        return log_probs


class CountedVotes(NamedTuple):
    """Model of the votes, with the posterior that it was estimated from.

    Both are needed to measure the support of a label: the tally of a worker contains the votes on the task itself, which are
    subtracted.

    Attributes
    ----------
    model : VoteModel
        Model of the votes.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior with which the votes entered its tally.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    >>> model, posterior = SupportModel.fit(crowd, crowd.vote_counts / 3)
    >>> CountedVotes(model.second, posterior).posterior.shape
    (9, 2)
    """

    model: VoteModel
    posterior: Array


@dataclass(frozen=True, eq=False)
class SupportModel:
    """Two models of the votes, the first from the posterior of any method, the second from what the first infers.

    The posterior of a method may be too sharp or too flat. The first model starts from its mean with the vote shares; the second
    rests on the votes alone, so that the support of a label hardly depends on the method.

    Attributes
    ----------
    first, second : VoteModel
        Models of the votes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(9) for worker in "abc"])
    >>> model, posterior = SupportModel.fit(crowd, crowd.vote_counts / 3)
    >>> bool(np.ptp(model.second.vote_weight) < 1e-9), posterior.shape
    (True, (9, 2))
    """

    first: VoteModel
    second: VoteModel

    @classmethod
    def fit(cls, crowd: Crowd, posterior: NDArray[Any], gold: Codes | None = None) -> tuple[SupportModel, Array]:
        """Estimate the models of a crowd in memory.

        Parameters
        ----------
        crowd : Crowd
            Votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of the tasks by any method.
        gold : ndarray of int of shape (n_tasks,), default=None
            True class of gold tasks, −1 elsewhere.

        Returns
        -------
        model : SupportModel
        inferred : ndarray of shape (n_tasks, n_classes)
            Posterior that the first model infers.
        """
        start = mix_with_votes(crowd, posterior, gold)
        first = VoteModel.from_sums(*sum_posterior(crowd, start), crowd.pairs)
        inferred = first.infer(crowd, start, gold)
        second = VoteModel.from_sums(*sum_posterior(crowd, inferred), crowd.pairs)
        return cls(first, second.weigh_workers(*second.sum_right_votes(crowd, inferred))), inferred


def sum_posterior(crowd: Crowd, posterior: Array) -> tuple[Array, Array]:
    """Sum a posterior over tasks and over votes; the sums of parts of a crowd add up.

    Parameters
    ----------
    crowd : Crowd
        Votes, all or those on some tasks.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of these tasks.

    Returns
    -------
    class_counts : ndarray of shape (n_classes,)
        Expected number of tasks of each class, among tasks with votes.
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts by pair and class.
    """
    return posterior[crowd.votes_per_task > 0].sum(axis=0), np.asarray(kernels.tally(crowd.layout, posterior))


def mix_with_votes(crowd: Crowd, posterior: NDArray[Any], gold: Codes | None = None) -> Array:
    """Return the mean of a posterior and the vote shares.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of the tasks.
    gold : ndarray of int of shape (n_tasks,), default=None
        True class of gold tasks, −1 elsewhere.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
    """
    mixed = np.array(posterior, dtype=np.float64)
    has_votes = crowd.votes_per_task > 0
    counts = crowd.vote_counts[has_votes]
    mixed[has_votes] += counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    mixed[has_votes] /= 2
    return apply_gold(mixed, gold)


def bound_confidence(confidence: Array, n_classes: int) -> Array:
    """Raise confidence below chance to chance: the most probable class has at least the probability of an average one.

    Parameters
    ----------
    confidence : ndarray of shape (n_tasks,)
        Probability that the labels are right.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_tasks,)

    Examples
    --------
    >>> bound_confidence(np.array([0.2, 0.7]), 4).tolist()
    [0.25, 0.7]
    """
    return np.maximum(confidence, 1 / max(n_classes, 1))


def calibrate_class_probs(class_log_probs: Array, label: Codes, confidence: Array) -> Array:
    """Flatten or sharpen class probabilities so that the probability of each label is its confidence.

    The probabilities of a task are raised to the power that gives its label the confidence. A label that is not the most
    probable class is first raised just above it.

    Parameters
    ----------
    class_log_probs : ndarray of shape (n_tasks, n_classes)
        Log-probability of the classes, not normalised.
    label : ndarray of int of shape (n_tasks,)
        Label of each task.
    confidence : ndarray of shape (n_tasks,)
        Probability that the label is right. Values below chance count as chance.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Examples
    --------
    >>> calibrate_class_probs(np.log([[0.9, 0.06, 0.04]]), np.array([0]), np.array([0.6])).round(3).tolist()
    [[0.6, 0.215, 0.185]]
    """
    rows, n_classes = np.arange(len(label)), class_log_probs.shape[1]
    if n_classes == 1 or not len(label):
        return np.ones_like(class_log_probs)
    gap = class_log_probs.copy()  # log-probability of the other classes relative to the label
    gap[rows, label] = -np.inf
    best_other = gap.max(axis=1)
    gap -= (best_other + np.maximum(class_log_probs[rows, label] - best_other, MIN_LEAD))[:, None]
    gap = np.maximum(gap, MIN_GAP)  # a power of zero times minus infinity would not be a number
    target = np.clip(confidence, (1 + 1e-9) / n_classes, 1 - 1e-12)
    power = _solve_power(gap, label, np.log((1 - target) / target))
    others = np.exp(power[:, None] * gap)
    others[rows, label] = 0.0
    # The other classes share exactly the rest.
    others *= ((1 - target) / np.maximum(others.sum(axis=1), 1e-300))[:, None]
    others[rows, label] = target
    return others


def _solve_power(gap: Array, label: Codes, log_odds: Array) -> Array:
    """Return the power for which the other classes together have some log-odds against the label, by Newton's method.

    The log-odds are a convex and decreasing function of the power, so the steps from zero never pass the solution.
    """
    rows, power = np.arange(len(label)), np.zeros(len(label))
    for _ in range(MAX_POWER_STEPS):
        weight = np.exp(power[:, None] * gap)
        weight[rows, label] = 0.0
        total = np.maximum(weight.sum(axis=1), 1e-300)
        slope = np.minimum((weight * gap).sum(axis=1) / total, -1e-12)
        step = (log_odds - np.log(total)) / slope
        power = np.clip(power + step, 0.0, MAX_POWER)
        if np.abs(step).max() <= POWER_TOLERANCE * (1.0 + power.max()):
            break
    return power


def _iter_blocks(crowd: Crowd, posterior: NDArray[Any]) -> Iterator[TaskVotes]:
    """Yield the votes in blocks of tasks whose tables are small; at least one block."""
    offset, pairs = crowd.offset, crowd.pairs
    max_votes = max(BLOCK_CELLS // max(crowd.n_classes, 1), 1)
    start = 0
    while True:
        stop = max(int(np.searchsorted(offset, offset[start] + max_votes, side="right")) - 1, start + 1)
        stop = min(stop, crowd.n_tasks)
        rows = slice(int(offset[start]), int(offset[stop]))
        pair = pairs.vote_pairs[rows]
        yield TaskVotes(
            count=np.diff(offset[start : stop + 1]),
            position=crowd.task[rows].astype(np.int64) - start,
            worker=pairs.worker[pair],
            label=pairs.label[pair],
            pair=pair,
            weight=np.asarray(crowd.weight[rows], dtype=np.float64),
            posterior=np.asarray(posterior[start:stop], dtype=np.float64),
        )
        start = stop
        if start >= crowd.n_tasks:
            return


def _take_rows(table: Array, rows: Codes) -> Array:
    """Return rows of a table, with zeros for negative row numbers."""
    rows_of_table = table[rows] if len(table) else np.zeros((len(rows), table.shape[1]))
    if len(rows) and rows.min() < 0:
        rows_of_table[rows < 0] = 0.0
    return rows_of_table


def _subtract_own(counts: Array, own: Array | float) -> Array:
    """Subtract from counts what a task contributed, in place; rounding must not make a count negative."""
    counts -= own
    return np.maximum(counts, 0.0, out=counts)


def _compute_log_odds(class_log_probs: Array, label: Codes) -> Array:
    """Return the log-odds of the labels against all other classes."""
    rows = np.arange(len(label))
    own = class_log_probs[rows, label]
    others = class_log_probs.copy()
    others[rows, label] = -np.inf
    peak = others.max(axis=1, initial=-1e300)
    total = np.exp(others - peak[:, None]).sum(axis=1)
    return np.asarray(own - peak - np.log(np.maximum(total, 1e-300)))


def _softmax(log_probs: Array) -> Array:
    probs = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    return np.asarray(probs)
