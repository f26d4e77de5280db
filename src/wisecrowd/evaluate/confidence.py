"""Calibrated confidence of labels and their expected accuracy, with or without gold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.method import Method
from wisecrowd.data.alignment import as_truth_series, encode_truth
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import Shard
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.em.label_support import (
    CountedVotes,
    LabelSupport,
    SupportModel,
    VoteModel,
    bound_confidence,
    calibrate_class_probs,
    mix_with_votes,
    sum_posterior,
)
from wisecrowd.engines import Chunk
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings, preview
from wisecrowd.evaluate.accuracy import AccuracyEstimate, ConfidencePrior, CrowdCalibration
from wisecrowd.utils.binning import assign_bins
from wisecrowd.utils.levels import LEVEL

Array = NDArray[np.float64]

#: Number of folds in which gold tasks are labelled without their own truth.
GOLD_FOLDS = 5
#: Code of a true class that no vote names: the label is wrong whatever it is.
UNKNOWN_CLASS = -2
#: Edges of the bins in which scores of shards are counted. A bin of this width moves a probability by at most 0.005.
SCORE_EDGES = np.linspace(-20.0, 20.0, 2001)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelConfidence:
    """Labels of a crowd with their confidence, and the expected accuracy.

    Attributes
    ----------
    tasks, classes : Index
        Names of tasks and classes.
    label : ndarray of int of shape (n_tasks,)
        Label of each task.
    confidence : ndarray of shape (n_tasks,)
        Calibrated probability that each label is right. It is 1 for gold tasks, the share of the most frequent class for
        tasks without votes, and never below chance, one divided by the number of classes.
    score : ndarray of shape (n_tasks,)
        Score of each label, the sum of its support by the votes.
    n_votes : ndarray of int of shape (n_tasks,)
        Number of votes of each task.
    truth : ndarray of int of shape (n_tasks,)
        Class of gold tasks, −1 elsewhere.
    outcomes : DataFrame
        Gold and checked tasks: ``score`` and ``label`` that were inferred without their own truth, and whether they are
        ``right``.
    checked : ndarray of int of shape (n_tasks,)
        True class of tasks that were checked after the fit, −1 elsewhere.
    calibration : CrowdCalibration
        Calibration of the crowd.
    level : float
        Probability of intervals.
    counted_votes : CountedVotes or None
        Model of the votes that the scores rest on. It also scores votes that arrive later. None if the scores are given.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=5, random_state=0)
    >>> estimate = estimate_confidence(DawidSkene().fit(simulation.crowd), simulation.crowd)
    >>> list(estimate.table.columns), estimate.accuracy.low < estimate.accuracy.accuracy < estimate.accuracy.high
    (['label', 'confidence'], True)
    """

    tasks: pd.Index
    classes: pd.Index
    label: NDArray[Any]
    confidence: Array
    score: Array
    n_votes: NDArray[Any]
    truth: NDArray[np.int32]
    outcomes: pd.DataFrame
    checked: NDArray[np.int32]
    calibration: CrowdCalibration
    level: float = LEVEL
    counted_votes: CountedVotes | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Label and confidence by task."""
        columns = {"label": self.classes[self.label], "confidence": self.confidence}
        return pd.DataFrame(columns, index=self.tasks.rename("task"))

    @cached_property
    def accuracy(self) -> AccuracyEstimate:
        """Expected share of right labels among the tasks with votes or gold; gold tasks count as right."""
        return self._expect_accuracy(np.ones(len(self.label), dtype=bool), self.calibration)

    @cached_property
    def accuracy_by_class(self) -> pd.DataFrame:
        """Expected share of right labels for each class that is a label: n_tasks, accuracy, low, high and n_gold."""
        outcomes, rows = self.outcomes, {}
        for code in np.unique(self.label[self._is_labelled]).tolist():
            own = (outcomes["label"] == code).to_numpy()
            others = CrowdCalibration.from_outcomes(
                self.calibration.prior, outcomes["score"][~own], outcomes["right"][~own]
            )
            calibration = others.for_class(outcomes["score"][own], outcomes["right"][own])
            estimate = self._expect_accuracy(self.label == code, calibration)
            rows[self.classes[code]] = (
                estimate.n_tasks, estimate.accuracy, estimate.low, estimate.high, estimate.n_gold,
            )  # fmt: skip
        columns = ["n_tasks", "accuracy", "low", "high", "n_gold"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("class")

    def calibration_error(self, truth: pd.Series) -> float:
        """Compute the expected calibration error: the mean gap between confidence and accuracy in 15 bins of equal width.

        Parameters
        ----------
        truth : Series
            True classes by task.

        Returns
        -------
        float
            Mean over the tasks with known truth; 0 if there are none.
        """
        true_class = encode_known_truth(truth, self.tasks, self.classes)
        is_known = true_class != -1
        return confidence_error(self.confidence[is_known], (self.label == true_class)[is_known])

    @property
    def _is_labelled(self) -> NDArray[np.bool_]:
        return (self.n_votes > 0) | (self.truth >= 0)

    def _expect_accuracy(self, selected: NDArray[np.bool_], calibration: CrowdCalibration) -> AccuracyEstimate:
        """Return the expected accuracy of some labels."""
        selected = selected & self._is_labelled
        is_gold = selected & (self.truth >= 0)
        is_checked = selected & (self.checked != -1) & ~is_gold
        is_unknown = selected & ~is_gold & ~is_checked
        n_right = is_gold.sum() + (self.checked == self.label)[is_checked].sum()
        return calibration.expect_accuracy(
            self.score[is_unknown], n_known=int(is_gold.sum() + is_checked.sum()), n_known_right=int(n_right),
            level=self.level,
        )  # fmt: skip


def estimate_confidence(
    fitted: Method,
    crowd: CrowdLike,
    *,
    truth: TruthLike | None = None,
    checked: TruthLike | None = None,
    X: FeaturesLike | None = None,
    level: float = LEVEL,
    outcomes: pd.DataFrame | None = None,
    folds: int = GOLD_FOLDS,
    random_state: int = 0,
    prior: ConfidencePrior | None = None,
) -> LabelConfidence:
    """Compute the calibrated confidence of labels and their expected accuracy.

    The posterior of a method assumes that workers err independently, so it is overconfident on most real crowds. The
    confidence rests on the support of a label by the votes and on what is known of public crowds. Gold tasks or checked tasks
    adapt it to this crowd.

    Parameters
    ----------
    fitted : Method
        Aggregator or learner fitted to ``crowd``; anything with a posterior.
    crowd : Crowd or table
        Votes.
    truth : Series, mapping or table, default=None
        Truth that ``fitted`` was fitted with. An aggregator is refitted without each of ``folds`` parts of it, so that no gold
        task counts as evidence about itself.
    checked : Series, mapping or table, default=None
        Truth that ``fitted`` does not know.
    X : DataFrame or array, default=None
        Features, if ``fitted`` is an aggregator that uses them.
    level : float, default=0.9
        Probability of intervals.
    outcomes : DataFrame, default=None
        ``outcomes`` of an earlier estimate, which replace those of ``truth`` and ``checked`` and save the refits.
    folds : int, default=5
        Number of parts of ``truth``.
    random_state : int, default=0
        Seed of these parts.
    prior : ConfidencePrior, default=None
        Distribution over crowds. Defaults to that of public crowds.

    Returns
    -------
    LabelConfidence

    Raises
    ------
    UsageError
        If ``fitted`` has no posterior, or was fitted to other tasks.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=12, votes_per_task=5, random_state=0)
    >>> fitted = DawidSkene().fit(simulation.crowd)
    >>> without = estimate_confidence(fitted, simulation.crowd).accuracy
    >>> with_checks = estimate_confidence(fitted, simulation.crowd, checked=simulation.truth[:100]).accuracy
    >>> with_checks.high - with_checks.low < without.high - without.low
    True
    """
    votes = as_crowd(crowd)
    _check_fitted(fitted, votes)
    prior = ConfidencePrior.load() if prior is None else prior
    gold = np.full(votes.n_tasks, -1, dtype=np.int32) if truth is None else encode_truth(truth, votes)
    counted_votes, support = _measure_support(fitted, votes, gold)
    score = prior.score(support)
    checks = gold * 0 - 1 if checked is None else _encode_checks(checked, votes)
    if outcomes is None:
        outcomes = _collect_outcomes(support, score, checks, (checks != -1) & (gold < 0) & (support.n_votes > 0))
        if (gold >= 0).any():
            gold_outcomes = _infer_gold_outcomes(fitted, votes, gold, X, prior, folds, random_state)
            outcomes = pd.concat([gold_outcomes, outcomes], ignore_index=True)
    calibration = CrowdCalibration.from_outcomes(prior, outcomes["score"], outcomes["right"])
    confidence = bound_confidence(calibration.confidence(score), len(fitted.classes_))
    has_no_votes = support.n_votes == 0
    confidence[has_no_votes] = fitted.posterior_[has_no_votes].max(axis=1)
    confidence[gold >= 0] = 1.0
    return LabelConfidence(
        tasks=votes.tasks, classes=fitted.classes_, label=support.label, confidence=confidence, score=score,
        n_votes=support.n_votes, truth=gold, outcomes=outcomes, checked=checks, calibration=calibration, level=level,
        counted_votes=counted_votes,
    )  # fmt: skip


def compute_calibrated_posterior(estimate: LabelConfidence, fitted: Method, crowd: CrowdLike) -> Array:
    """Compute class probabilities in which the probability of each label is its confidence.

    The other classes share the rest, in the order in which the votes support them.

    Parameters
    ----------
    estimate : LabelConfidence
        Result of `estimate_confidence`.
    fitted : Method
        Method that the labels come from.
    crowd : Crowd or table
        Votes.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)
        Calibrated posterior. A gold task has its true class, and a task without votes the posterior of the method.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=8, votes_per_task=5, random_state=0)
    >>> fitted = DawidSkene().fit(simulation.crowd)
    >>> estimate = estimate_confidence(fitted, simulation.crowd)
    >>> calibrated = compute_calibrated_posterior(estimate, fitted, simulation.crowd)
    >>> bool(np.allclose(calibrated[np.arange(100), estimate.label], estimate.confidence))
    True
    """
    posterior = np.asarray(fitted.posterior_, dtype=np.float64)
    if _has_more_evidence(fitted) or estimate.counted_votes is None:
        log_probs = np.log(np.maximum(posterior, np.finfo(np.float64).tiny))
    else:
        model, counted_posterior = estimate.counted_votes
        log_probs = model.class_log_probs(as_crowd(crowd), counted_posterior)
    calibrated = calibrate_class_probs(log_probs, estimate.label, estimate.confidence)
    is_given = (estimate.n_votes == 0) | (estimate.truth >= 0)
    calibrated[is_given] = posterior[is_given]
    return calibrated


def confidence_error(confidence: Array, right: NDArray[np.bool_], *, n_bins: int = 15) -> float:
    """Compute the mean gap between confidence and accuracy over bins of confidence.

    Parameters
    ----------
    confidence : ndarray of shape (n_tasks,)
        Confidence of each label.
    right : ndarray of bool of shape (n_tasks,)
        Whether each label is right.
    n_bins : int, default=15
        Number of bins of equal width.

    Returns
    -------
    float
        Mean over the tasks of the gap in their bin; 0 if labels are right as often as their confidence says.

    Examples
    --------
    >>> round(confidence_error(np.array([0.6, 0.6]), np.array([True, False])), 3)
    0.1
    """
    gap = np.bincount(assign_bins(confidence, n_bins, "width"), weights=right - confidence)
    return float(np.abs(gap).sum() / max(len(confidence), 1))


def encode_known_truth(truth: pd.Series, tasks: pd.Index, classes: pd.Index) -> NDArray[np.int32]:
    """Encode known truth by task.

    Parameters
    ----------
    truth : Series
        True classes by task. Tasks that are not in ``tasks`` are ignored.
    tasks, classes : Index
        Names of tasks and classes.

    Returns
    -------
    ndarray of int of shape (n_tasks,)
        Class code, −1 where the truth is unknown and `UNKNOWN_CLASS` for a class that is not in ``classes``.

    Examples
    --------
    >>> encode_known_truth(pd.Series({"t2": "dog", "t3": "cow"}), pd.Index(["t1", "t2", "t3"]), pd.Index(["cat", "dog"])).tolist()
    [-1, 1, -2]
    """
    position = tasks.get_indexer(match_id_type(truth.index, tasks))
    codes = classes.get_indexer(match_id_type(pd.Index(truth.to_numpy()), classes))
    true_class = np.full(len(tasks), -1, dtype=np.int32)
    true_class[position[position >= 0]] = np.where(codes < 0, UNKNOWN_CLASS, codes)[position >= 0]
    return true_class


def score_labels(
    fitted: Method, crowd: Crowd, prior: ConfidencePrior, gold: NDArray[Any] | None = None
) -> tuple[LabelSupport, Array]:
    """Measure the support of labels and compute their scores.

    Parameters
    ----------
    fitted : Method
        Method fitted to ``crowd``.
    crowd : Crowd
        Votes.
    prior : ConfidencePrior
        Coefficients.
    gold : ndarray of int of shape (n_tasks,), default=None
        True class of the tasks that ``fitted`` was fitted with, −1 elsewhere.

    Returns
    -------
    support : LabelSupport
    score : ndarray of shape (n_tasks,)
    """
    support = _measure_support(fitted, crowd, gold)[1]
    return support, prior.score(support)


def _measure_support(fitted: Method, crowd: Crowd, gold: NDArray[Any] | None) -> tuple[CountedVotes, LabelSupport]:
    """Return the model of the votes and the support of the labels."""
    posterior = np.asarray(fitted.posterior_)
    group = getattr(fitted, "group_", None) if isinstance(fitted, Aggregator) else None
    if group is not None:
        crowd = _share_votes(crowd, np.asarray(group))
    model, inferred = SupportModel.fit(crowd, posterior, gold)
    support = model.second.measure(crowd, inferred, posterior.argmax(axis=1))
    if _has_more_evidence(fitted):
        support = support._replace(log_odds=_posterior_log_odds(posterior))
    return CountedVotes(model.second, inferred), support


def _has_more_evidence(fitted: Method) -> bool:
    """Return whether the posterior rests on more than votes of independent workers: on features, or on groups of workers."""
    return not isinstance(fitted, Aggregator) or fitted.uses_features or hasattr(fitted, "group_")


def _share_votes(crowd: Crowd, group: NDArray[Any]) -> Crowd:
    """Return the crowd with weights such that the members of a group, who err together, have one vote on a task."""
    worker_group = group[crowd.worker_codes].astype(np.int64)
    is_member = worker_group >= 0
    cell = crowd.task.astype(np.int64) * (int(group.max(initial=-1)) + 1) + worker_group
    _, position, count = np.unique(cell[is_member], return_inverse=True, return_counts=True)
    weight = np.array(crowd.weight, dtype=np.float64)
    weight[is_member] /= count[position]
    return crowd.replace_fields(weight=weight)


def _posterior_log_odds(posterior: NDArray[Any]) -> Array:
    top = np.clip(posterior.max(axis=1).astype(np.float64), 1e-9, 1 - 1e-9)
    return np.asarray(np.log(top / (1 - top)))


def _check_fitted(fitted: Method, crowd: Crowd) -> None:
    if not hasattr(fitted, "posterior_"):
        raise UsageError(f"{fitted.name} has no posterior, so its labels have no confidence; use a categorical method")
    if not crowd.tasks.equals(fitted.task_index_):
        raise UsageError("crowd differs from the crowd that the method was fitted to; pass that crowd")


def _encode_checks(checked: TruthLike, crowd: Crowd) -> NDArray[np.int32]:
    """Return the true class of checked tasks, −1 elsewhere and `UNKNOWN_CLASS` for a class that no vote names."""
    series = as_truth_series(checked, crowd)
    if not series.index.is_unique:
        raise InputError(
            f"the checks name some tasks twice: {preview(series.index[series.index.duplicated()])}; keep one row per task"
        )
    assert crowd.classes is not None
    checks = encode_known_truth(series, crowd.tasks, crowd.classes)
    if len(series) and (checks == -1).all():
        raise InputError(
            f"none of the {len(series):,} checked tasks is in the crowd. The checks start with {preview(series.index)}, the crowd "
            f"with {preview(crowd.tasks)}; use the same ids in both"
        )
    return checks


def _collect_outcomes(
    support: LabelSupport, score: Array, truth: NDArray[Any], selected: NDArray[np.bool_]
) -> pd.DataFrame:
    """Return score, label and outcome of some tasks."""
    label = support.label[selected]
    return pd.DataFrame({"score": score[selected], "label": label, "right": label == truth[selected]})


def _infer_gold_outcomes(
    fitted: Method, crowd: Crowd, gold: NDArray[np.int32], X: FeaturesLike | None, prior: ConfidencePrior, folds: int,
    random_state: int,
) -> pd.DataFrame:  # fmt: skip
    """Return the outcomes of gold tasks whose label was inferred without their own truth."""
    tasks = np.flatnonzero((gold >= 0) & (crowd.votes_per_task > 0))
    if not isinstance(fitted, Aggregator):  # training a network several times would take too long
        model, inferred = SupportModel.fit(crowd, fitted.posterior_, gold)
        return _judge_gold(model.second, crowd, inferred, gold, prior)
    folds = min(max(folds, 2), max(len(tasks), 1))
    part = np.empty(len(tasks), dtype=np.intp)
    # In the order of the ids as text, so that files, commands and the service draw the same parts.
    order = np.argsort(crowd.tasks[tasks].astype(str).to_numpy(), kind="stable")
    part[order] = np.random.default_rng(random_state).permutation(len(tasks)) % folds
    outcomes = []
    for number in range(folds):
        hidden = np.zeros(crowd.n_tasks, dtype=bool)
        hidden[tasks[part == number]] = True
        is_known = (gold >= 0) & ~hidden
        truth = pd.Series(fitted.classes_[gold[is_known]], index=crowd.tasks[is_known]) if is_known.any() else None
        with ignore_fit_warnings():
            refit = fitted.clone_unfitted().fit(crowd, X if fitted.uses_features else None, truth=truth)
        support, score = score_labels(refit, crowd, prior, np.where(is_known, gold, -1))
        outcomes.append(_collect_outcomes(support, score, gold, hidden))
    return pd.concat(outcomes, ignore_index=True)


def _judge_gold(
    model: VoteModel, crowd: Crowd, inferred: Array, gold: NDArray[Any], prior: ConfidencePrior
) -> pd.DataFrame:
    """Return the outcomes of gold tasks whose label is the most probable one by their votes."""
    support = model.measure(crowd, inferred, gold, by_votes=True)
    return _collect_outcomes(support, prior.score(support), gold, (gold >= 0) & (support.n_votes > 0))


# ---------------------------------------------------------------------- shards


class ConfidencePart(NamedTuple):
    """Confidence of the tasks of a shard.

    Attributes
    ----------
    posterior : DataFrame
        Posterior with tasks as index and classes as columns.
    confidence : ndarray of shape (n_tasks,)
        Calibrated probability that each label is right.
    """

    posterior: pd.DataFrame
    confidence: Array


class ConfidenceStream:
    """Confidence of the labels of a crowd in shards, shard by shard.

    The votes are read four times: for each of the two models of the votes, for the accuracy of the workers, and for the
    confidence. Gold tasks are labelled by their votes alone, with worker parameters from all other tasks, to find out how often
    labels are right.

    Parameters
    ----------
    fitted : Method
        Method fitted to a crowd in shards.
    level : float, default=0.9
        Probability of the interval.
    prior : ConfidencePrior, default=None
        Distribution over crowds. Defaults to that of public crowds.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=8, votes_per_task=5, random_state=0)
    >>> stream = ConfidenceStream(DawidSkene().fit(simulation.crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=200)))
    >>> sum(len(part.confidence) for part in stream), stream.accuracy.n_tasks
    (100, 100)
    """

    def __init__(self, fitted: Method, *, level: float = LEVEL, prior: ConfidencePrior | None = None) -> None:
        stream = fitted.posterior_stream
        if stream is None:
            raise UsageError(f"{fitted.name} was not fitted to a crowd in shards; use estimate_confidence")
        self._stream, self._classes, self._level = stream, fitted.classes_.rename("class"), level
        self._prior = ConfidencePrior.load() if prior is None else prior
        self._model, self._calibration = self._calibrate()
        self._score_counts = np.zeros(len(SCORE_EDGES) - 1, dtype=np.int64)
        self._n_gold = 0

    @property
    def accuracy(self) -> AccuracyEstimate:
        """Expected accuracy of the labels of the shards that were iterated over."""
        centres = (SCORE_EDGES[1:] + SCORE_EDGES[:-1]) / 2
        return self._calibration.expect_accuracy(
            centres, self._score_counts, n_known=self._n_gold, n_known_right=self._n_gold, level=self._level
        )

    def __iter__(self) -> Iterator[ConfidencePart]:
        shards = (Shard(self._stream.crowd, info).tasks for info in self._stream.crowd.shard_infos)
        parts = self._stream.map(_score_chunk, self._model, self._prior)
        for tasks, (posterior, score, is_gold, n_votes) in zip(shards, parts, strict=True):
            confidence = bound_confidence(self._calibration.confidence(score), len(self._classes))
            confidence[n_votes == 0] = posterior[n_votes == 0].max(axis=1)
            confidence[is_gold] = 1.0
            counted = score[(n_votes > 0) & ~is_gold]
            self._score_counts += np.histogram(np.clip(counted, *SCORE_EDGES[[0, -1]]), SCORE_EDGES)[0]
            self._n_gold += int(is_gold.sum())
            yield ConfidencePart(pd.DataFrame(posterior, index=tasks.rename("task"), columns=self._classes), confidence)

    def _calibrate(self) -> tuple[SupportModel, CrowdCalibration]:
        """Return the model of the votes and the calibration by gold tasks."""
        pairs = self._stream.crowd.pairs
        class_counts, tally = self._stream.sum(_sum_start)
        first = VoteModel.from_sums(class_counts, tally, pairs)
        class_counts, tally = self._stream.sum(_sum_inferred, first)
        second = VoteModel.from_sums(class_counts, tally, pairs)
        second = second.weigh_workers(*self._stream.sum(_sum_right_votes, first, second))
        model = SupportModel(first, second)
        outcomes = pd.DataFrame({"score": [], "right": []})
        if self._stream.gold is not None:
            outcomes = pd.concat(self._stream.map(_judge_chunk, model, self._prior), ignore_index=True)
        return model, CrowdCalibration.from_outcomes(self._prior, outcomes["score"], outcomes["right"])


def _sum_start(chunk: Chunk, posterior: NDArray[Any]) -> tuple[Array, Array]:
    """Chunk function: return the sums from which the first model is estimated."""
    return sum_posterior(chunk.crowd, mix_with_votes(chunk.crowd, posterior, chunk.gold))


def _infer(chunk: Chunk, posterior: NDArray[Any], first: VoteModel) -> Array:
    """Return the posterior of a chunk's tasks that the first model infers."""
    return first.infer(chunk.crowd, mix_with_votes(chunk.crowd, posterior, chunk.gold), chunk.gold)


def _sum_inferred(chunk: Chunk, posterior: NDArray[Any], first: VoteModel) -> tuple[Array, Array]:
    """Chunk function: return the sums from which the second model is estimated."""
    return sum_posterior(chunk.crowd, _infer(chunk, posterior, first))


def _sum_right_votes(
    chunk: Chunk, posterior: NDArray[Any], first: VoteModel, second: VoteModel
) -> tuple[Array, Array, Array]:
    """Chunk function: return the sums from which the votes of workers are weighted."""
    return second.sum_right_votes(chunk.crowd, _infer(chunk, posterior, first))


def _judge_chunk(chunk: Chunk, posterior: NDArray[Any], model: SupportModel, prior: ConfidencePrior) -> pd.DataFrame:
    """Chunk function: return the outcomes of gold tasks."""
    gold = np.full(len(posterior), -1) if chunk.gold is None else chunk.gold
    return _judge_gold(model.second, chunk.crowd, _infer(chunk, posterior, model.first), gold, prior)


def _score_chunk(
    chunk: Chunk, posterior: NDArray[Any], model: SupportModel, prior: ConfidencePrior
) -> tuple[NDArray[Any], Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Chunk function: return posterior, score, gold tasks and number of votes."""
    support = model.second.measure(chunk.crowd, _infer(chunk, posterior, model.first), posterior.argmax(axis=1))
    is_gold = np.zeros(len(posterior), dtype=bool) if chunk.gold is None else chunk.gold >= 0
    return posterior, prior.score(support), is_gold, support.n_votes
