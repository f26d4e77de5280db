"""Evaluation of completers by held-out votes and by ground truth.

`score_completer` needs no truth: it hides some of the observed votes and compares the completer's predictions with simple
forecasts. `accuracy_after_completion` and the two curves need truth: they aggregate the crowd before and after completion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find
from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.truth_alignment import TIE_TOLERANCE, align_prediction
from wisecrowd.utils.progress import report

#: Share of a uniform forecast that is mixed into every forecast, so that the log-loss is finite.
UNIFORM_SHARE = 1e-3
#: Pseudo-votes with the label shares of the whole crowd in the forecasts by task and by worker.
PSEUDO_VOTES = 1.0

TASK_FORECAST, WORKER_FORECAST, MODEL_FORECAST = "votes of the task", "labels of the worker", "ds-fill"
BEFORE, AFTER_SHARED, AFTER_FULL = "before", "after, shared weight", "after, weight 1"
AGGREGATORS = ("majority-vote", "dawid-skene")


@dataclass(frozen=True, eq=False)
class CompleterScore:
    """Scores of a completer and of simple forecasts on held-out votes.

    Attributes
    ----------
    table : DataFrame
        One row per forecast, the completer first. ``accuracy`` and ``log_loss`` (in nats) are means over all held-out votes,
        ``filled_accuracy`` and ``filled_log_loss`` over those that the completer would fill in. ``gain`` is the log-loss of the
        forecast minus that of the completer. Columns ending in ``_se`` are standard errors clustered by task.
    coverage : float
        Share of held-out votes that the completer would fill in, apart from ``max_per_task``.
    n_votes : int
        Number of held-out votes, over all repeats.

    Examples
    --------
    >>> from wisecrowd import DSFill, score_completer, simulate_crowd
    >>> judged = score_completer(DSFill(), simulate_crowd(n_tasks=200).crowd)
    >>> judged.coverage, judged.n_votes
    (1.0, 120)
    """

    table: pd.DataFrame
    coverage: float
    n_votes: int


class _HeldoutScores(NamedTuple):
    """Credit and loss of each forecast on held-out votes."""

    task: NDArray[Any]
    weight: NDArray[np.float64]
    filled: NDArray[np.bool_]
    credit: dict[str, NDArray[np.float64]]
    loss: dict[str, NDArray[np.float64]]


def score_completer(
    completer: Completer | str,
    crowd: CrowdLike,
    X: FeaturesLike | None = None,
    *,
    fraction: float = 0.2,
    repeats: int = 1,
    random_state: int = 0,
) -> CompleterScore:
    """Score a completer by votes that are hidden from it.

    The completer is compared with three forecasts that it should beat: the vote shares of the task, the label shares of the worker
    (both with one pseudo-vote of the crowd's shares) and `DSFill`. All votes of a worker on a task are hidden together. A share of
    0.001 of a uniform forecast is mixed into every forecast before the log-loss is computed.

    Parameters
    ----------
    completer : Completer or str
        Unfitted completer, or its name.
    crowd : Crowd or DataFrame
        Votes.
    X : DataFrame or ndarray, default=None
        Features of the tasks, for completers that use them.
    fraction : float, default=0.2
        Share of the votes to hide.
    repeats : int, default=1
        Number of repeats, each of which hides other votes.
    random_state : int, default=0
        Seed of the first repeat.

    Returns
    -------
    CompleterScore

    Examples
    --------
    >>> from wisecrowd import GMV, score_completer, simulate_crowd
    >>> crowd = simulate_crowd(n_tasks=300, n_workers=20, votes_per_task=5).crowd
    >>> table = score_completer(GMV(), crowd).table
    >>> table.index.tolist()
    ['gmv', 'votes of the task', 'labels of the worker', 'ds-fill']
    >>> bool(table.loc["ds-fill", "log_loss"] < table.loc["gmv", "log_loss"])  # it knows the workers
    True
    """
    model = _resolve_completer(completer)
    votes = model.validate_votes(model.as_crowd(crowd).select_observed())
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must lie between 0 and 1; got {fraction}")
    if repeats < 1:
        raise UsageError(f"repeats must be 1 or more; got {repeats}")
    scores = []
    for repeat in range(repeats):
        scores.append(_score_heldout(model, *_hide_votes(votes, fraction, random_state + repeat), X))
        report(f"Scoring {model.name}", repeat + 1, repeats)
    return _summarize_scores(model.name, _concatenate_scores(scores))


def accuracy_after_completion(
    completer: Completer | str,
    crowd: CrowdLike,
    X: FeaturesLike | None,
    truth: TruthLike,
    *,
    aggregators: Sequence[Any] = AGGREGATORS,
) -> pd.DataFrame:
    """Compare aggregators before and after completion, given ground truth.

    The crowd is aggregated with the observed votes only, with filled votes whose total weight equals that of the votes on an
    average task (``fill_weight="shared"``), with filled votes of weight 1 as in the literature, and with the completer's own weight
    if it differs. The completed crowd is held in memory.

    Parameters
    ----------
    completer : Completer or str
        Unfitted completer, or its name.
    crowd : Crowd or DataFrame
        Votes.
    X : DataFrame, ndarray or None
        Features of the tasks, for methods that use them.
    truth : Series, mapping or DataFrame
        True classes by task.
    aggregators : sequence of Aggregator or str, default=("majority-vote", "dawid-skene")
        Aggregators to compare.

    Returns
    -------
    DataFrame
        Columns accuracy, log_loss, calibration_error and mean confidence by aggregator and kind of votes.

    Examples
    --------
    >>> from wisecrowd import GMV, accuracy_after_completion, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, workers={"noisy(0.6)": 1.0}, votes_per_task=3)
    >>> table = accuracy_after_completion(GMV(), simulation.crowd, None, simulation.truth, aggregators=["majority-vote"])
    >>> table.loc["majority-vote", "confidence"].index.tolist()
    ['before', 'after, shared weight', 'after, weight 1']
    """
    model = _resolve_completer(completer)
    votes = model.validate_votes(model.as_crowd(crowd).select_observed())
    methods = _resolve_aggregators(aggregators)
    truth_by_task = _align_truth(truth, votes)
    fitted = _fit_completer(model, votes, X)
    weights: dict[str, Any] = {AFTER_SHARED: "shared", AFTER_FULL: 1.0}
    if model.fill_weight not in weights.values():
        weights[f"after, weight {model.fill_weight}"] = model.fill_weight
    rows = {(name, BEFORE): _aggregate_and_score(method, votes, X, truth_by_task) for name, method in methods.items()}
    for title, weight in weights.items():
        filled = fitted.set_params(fill_weight=weight).fill()
        rows |= {
            (name, title): _aggregate_and_score(method, filled, X, truth_by_task) for name, method in methods.items()
        }
    order = [(name, title) for name in methods for title in (BEFORE, *weights)]
    table = pd.DataFrame([rows[key] for key in order])
    return table.set_index(pd.MultiIndex.from_tuples(order, names=["aggregator", "votes"]))


def redundancy_curve(
    completer: Completer | str,
    crowd: CrowdLike,
    X: FeaturesLike | None,
    truth: TruthLike,
    *,
    at_most: Iterable[int] = (1, 2, 3, 5),
    aggregators: Sequence[Any] = AGGREGATORS,
    repeats: int = 1,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compute the accuracy before and after completion for different numbers of votes per task.

    Parameters
    ----------
    completer : Completer or str
        Unfitted completer, or its name.
    crowd : Crowd or DataFrame
        Votes.
    X : DataFrame, ndarray or None
        Features of the tasks, for methods that use them.
    truth : Series, mapping or DataFrame
        True classes by task.
    at_most : iterable of int, default=(1, 2, 3, 5)
        Largest numbers of votes per task; further votes are dropped at random.
    aggregators : sequence of Aggregator or str, default=("majority-vote", "dawid-skene")
        Aggregators to compare.
    repeats : int, default=1
        Number of random draws of votes for each number.
    random_state : int, default=0
        Seed of the first draw.

    Returns
    -------
    DataFrame
        Columns votes_per_task, before, after, gain (means over the repeats) and gain_sd, by at_most and aggregator.

    Examples
    --------
    >>> from wisecrowd import DSFill, redundancy_curve, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, votes_per_task=5)
    >>> curve = redundancy_curve(DSFill(), simulation.crowd, None, simulation.truth, at_most=[2, 3], aggregators=["majority-vote"])
    >>> curve["votes_per_task"].tolist()
    [2.0, 3.0]
    """
    model = _resolve_completer(completer)
    votes = model.validate_votes(model.as_crowd(crowd).select_observed())
    methods = _resolve_aggregators(aggregators)
    truth_by_task = _align_truth(truth, votes)
    limits = list(at_most)
    if repeats < 1:
        raise UsageError(f"repeats must be 1 or more; got {repeats}")
    rows = []
    for step, limit in enumerate(limits):
        for repeat in range(repeats):
            thinned = votes.limit_votes_per_task(limit, random_state=random_state + repeat)
            filled = _fit_completer(model, thinned, X).fill()
            density = thinned.n_votes / thinned.n_tasks
            rows += [
                (
                    limit,
                    name,
                    density,
                    *(
                        _aggregate_and_score(method, subset, X, truth_by_task)["accuracy"]
                        for subset in (thinned, filled)
                    ),
                )
                for name, method in methods.items()
            ]
            report(f"Filling in with {model.name}", step * repeats + repeat + 1, len(limits) * repeats)
    runs = pd.DataFrame(rows, columns=["at_most", "aggregator", "votes_per_task", "before", "after"])
    runs["gain"] = runs["after"] - runs["before"]
    means = {name: (name, "mean") for name in ("votes_per_task", "before", "after", "gain")}
    return runs.groupby(["at_most", "aggregator"], sort=False).agg(**means, gain_sd=("gain", "std"))


def density_curve(
    completer: Completer | str,
    crowd: CrowdLike,
    X: FeaturesLike | None,
    truth: TruthLike,
    *,
    min_votes: Iterable[int] = (0, 5, 10, 20, 50),
    aggregators: Sequence[Any] = AGGREGATORS,
) -> pd.DataFrame:
    """Compute the accuracy after completion for workers above different numbers of labels.

    The completer is fitted once.

    Parameters
    ----------
    completer : Completer or str
        Unfitted completer, or its name.
    crowd : Crowd or DataFrame
        Votes.
    X : DataFrame, ndarray or None
        Features of the tasks, for methods that use them.
    truth : Series, mapping or DataFrame
        True classes by task.
    min_votes : iterable of int, default=(0, 5, 10, 20, 50)
        Thresholds: votes are filled in only for workers with more labels.
    aggregators : sequence of Aggregator or str, default=("majority-vote", "dawid-skene")
        Aggregators to compare.

    Returns
    -------
    DataFrame
        Columns workers (number of workers that are completed), density (share of task and worker pairs with a vote), before and
        after, by min_votes and aggregator.

    Examples
    --------
    >>> from wisecrowd import DSFill, density_curve, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> curve = density_curve(DSFill(), simulation.crowd, None, simulation.truth, min_votes=[0, 200], aggregators=["majority-vote"])
    >>> curve["density"].tolist()
    [1.0, 0.2]
    """
    model = _resolve_completer(completer)
    votes = model.validate_votes(model.as_crowd(crowd).select_observed())
    methods = _resolve_aggregators(aggregators)
    truth_by_task = _align_truth(truth, votes)
    fitted = _fit_completer(model, votes, X)
    before = {
        name: _aggregate_and_score(method, votes, X, truth_by_task)["accuracy"] for name, method in methods.items()
    }
    rows = []
    for threshold in min_votes:
        filled = fitted.set_params(min_votes=threshold).fill()
        size_columns = (len(fitted.eligible_workers), count_cells(filled) / (votes.n_tasks * votes.n_workers))
        rows += [
            (
                threshold,
                name,
                *size_columns,
                before[name],
                _aggregate_and_score(method, filled, X, truth_by_task)["accuracy"],
            )
            for name, method in methods.items()
        ]
    columns = ["min_votes", "aggregator", "workers", "density", "before", "after"]
    return pd.DataFrame(rows, columns=columns).set_index(["min_votes", "aggregator"])


def count_cells(crowd: Crowd) -> int:
    """Count the pairs of task and worker that have at least one vote.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    int

    Examples
    --------
    >>> count_cells(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "ann", "dog")], duplicates="keep"))
    1
    """
    return len(_first_rows(crowd))


# ---------------------------------------------------------------------- held-out votes


def _hide_votes(votes: Crowd, fraction: float, seed: int) -> tuple[Crowd, Crowd]:
    """Split the votes into training and held-out votes; votes of one worker on one task stay together."""
    first_rows = _first_rows(votes)
    if len(first_rows) < 2:
        raise InputError("scoring a completer needs at least two votes, one to hide and one to fit; got one")
    count = min(max(round(fraction * len(first_rows)), 1), len(first_rows) - 1)
    hidden = np.zeros(len(first_rows), dtype=bool)
    hidden[np.random.default_rng(seed).permutation(len(first_rows))[:count]] = True
    by_vote = np.repeat(hidden, np.diff(first_rows, append=votes.n_votes))
    return votes.take(~by_vote), votes.take(by_vote)


def _first_rows(crowd: Crowd) -> NDArray[np.intp]:
    """Return the first row of each pair of task and worker; the votes are sorted by them."""
    changes = np.diff(crowd.task, prepend=-1) != 0
    return np.flatnonzero(changes | (np.diff(crowd.worker_codes, prepend=-1) != 0))


def _score_heldout(
    completer: Completer, training_votes: Crowd, heldout: Crowd, X: FeaturesLike | None
) -> _HeldoutScores:
    """Fit a completer to the training votes and score all forecasts on the held-out votes."""
    fitted = _fit_completer(completer, training_votes, X)
    proba, filled = fitted.predict_vote_proba(heldout)
    filled = filled & (training_votes.votes_per_worker > completer.min_votes)[heldout.worker_codes]
    forecasts = {completer.name: proba, **_simple_forecasts(training_votes, heldout)}
    if completer.name != MODEL_FORECAST:
        with ignore_fit_warnings():  # the caller did not request this method
            forecasts[MODEL_FORECAST] = _fit_completer(
                _resolve_completer(MODEL_FORECAST), training_votes, None
            ).predict_vote_proba(heldout)[0]
    rows = np.arange(heldout.n_votes)
    credit, loss = {}, {}
    for name, label_probs in forecasts.items():
        is_best = label_probs >= label_probs.max(axis=1, keepdims=True) - TIE_TOLERANCE
        credit[name] = is_best[rows, heldout.label] / is_best.sum(axis=1)
        loss[name] = -np.log((1 - UNIFORM_SHARE) * label_probs[rows, heldout.label] + UNIFORM_SHARE / heldout.n_classes)
    return _HeldoutScores(heldout.task, heldout.weight, filled, credit, loss)


def _simple_forecasts(training_votes: Crowd, heldout: Crowd) -> dict[str, NDArray[np.float64]]:
    """Return the forecasts by the vote shares of the task and by the label shares of the worker."""
    total = training_votes.vote_counts.sum(axis=0)
    overall = PSEUDO_VOTES * total / total.sum()
    cell = training_votes.worker_codes.astype(np.int64) * training_votes.n_classes + training_votes.label
    worker_counts = np.bincount(
        cell, weights=training_votes.weight, minlength=training_votes.n_workers * training_votes.n_classes
    )
    counts = {
        TASK_FORECAST: training_votes.vote_counts[heldout.task] + overall,
        WORKER_FORECAST: worker_counts.reshape(training_votes.n_workers, training_votes.n_classes)[heldout.worker_codes]
        + overall,
    }
    return {name: votes / votes.sum(axis=1, keepdims=True) for name, votes in counts.items()}


def _concatenate_scores(parts: list[_HeldoutScores]) -> _HeldoutScores:
    """Concatenate the scores of several repeats."""
    names = list(parts[0].credit)
    return _HeldoutScores(
        np.concatenate([part.task for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.filled for part in parts]),
        {name: np.concatenate([part.credit[name] for part in parts]) for name in names},
        {name: np.concatenate([part.loss[name] for part in parts]) for name in names},
    )


def _summarize_scores(completer: str, scores: _HeldoutScores) -> CompleterScore:
    """Average the scores over the held-out votes."""
    rows = {}
    filled = scores.filled
    for name, loss in scores.loss.items():
        accuracy, accuracy_se = _clustered_mean(scores.credit[name], scores)
        log_loss, log_loss_se = _clustered_mean(loss, scores)
        gain, gain_se = _clustered_mean(loss - scores.loss[completer], scores)
        filled_weight = scores.weight[filled]
        rows[name] = {
            "accuracy": accuracy, "accuracy_se": accuracy_se, "log_loss": log_loss, "log_loss_se": log_loss_se,
            "gain": gain, "gain_se": gain_se,
            "filled_accuracy": np.average(scores.credit[name][filled], weights=filled_weight) if filled.any() else np.nan,
            "filled_log_loss": np.average(loss[filled], weights=filled_weight) if filled.any() else np.nan,
        }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("forecast")
    return CompleterScore(table, float(np.average(filled, weights=scores.weight)), len(filled))


def _clustered_mean(values: NDArray[np.float64], scores: _HeldoutScores) -> tuple[float, float]:
    """Return a weighted mean and its standard error, clustered by task."""
    mean = float(np.average(values, weights=scores.weight))
    task_sums = np.bincount(scores.task, weights=scores.weight * (values - mean))
    n_tasks = len(np.unique(scores.task))
    if n_tasks < 2:
        return mean, float("nan")
    error = np.sqrt((task_sums**2).sum() * n_tasks / (n_tasks - 1)) / scores.weight.sum()
    return mean, float(error)


# ---------------------------------------------------------------------- inputs


def _resolve_completer(completer: Any) -> Completer:
    """Return a completer, given itself or its name."""
    resolved = find(completer)() if isinstance(completer, str) else completer
    if not isinstance(resolved, Completer):
        raise UsageError(f"completer must be a Completer such as DSFill(), or the name of one; got {completer!r}")
    return resolved


def _fit_completer(completer: Completer, votes: Crowd, X: FeaturesLike | None) -> Completer:
    """Fit a clone of a completer."""
    return completer.clone_unfitted().fit(votes, X if completer.uses_features else None)


def _resolve_aggregators(aggregators: Sequence[Any]) -> dict[str, Aggregator]:
    """Return aggregators by name, given themselves or their names."""
    if isinstance(aggregators, str) or not aggregators:
        raise UsageError(f"aggregators must be a list such as ['majority-vote']; got {aggregators!r}")
    resolved: dict[str, Aggregator] = {}
    for aggregator in aggregators:
        method: Any = find(aggregator)() if isinstance(aggregator, str) else aggregator
        if not isinstance(method, Aggregator) or "categorical" not in method.answer_types:
            raise UsageError(f"aggregators must infer classes, such as 'dawid-skene'; got {aggregator!r}")
        resolved[method.name] = method
    return resolved


def _align_truth(truth: TruthLike, crowd: Crowd) -> pd.Series:
    """Return the truth by task, and raise an error before any fit if it does not match the crowd."""
    truth_by_task = as_truth_series(truth, crowd)
    align_prediction(
        truth_by_task, pd.DataFrame(1 / crowd.n_classes, index=crowd.tasks, columns=as_index(crowd.classes))
    )
    return truth_by_task


def _aggregate_and_score(
    aggregator: Aggregator, crowd: Crowd, X: FeaturesLike | None, truth: pd.Series
) -> dict[str, float]:
    """Fit an aggregator and compute its metrics."""
    fitted = aggregator.clone_unfitted().fit(crowd, X if aggregator.uses_features else None)
    return {
        "accuracy": metrics.accuracy(truth, fitted),
        "log_loss": metrics.log_loss(truth, fitted),
        "calibration_error": metrics.calibration_error(truth, fitted),
        "confidence": float(fitted.posterior_.max(axis=1).mean()),
    }
