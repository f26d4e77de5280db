"""How good completers are: whether they foretell votes that were hidden from them, and what their votes are worth after.

`judge` needs no truth. It hides some of the votes that workers really cast, and scores what a completer says of them beside
forecasts so simple that a completer that does not beat them has understood nothing of workers. `accuracy_after_completion` and the two
curves need truth, and follow the papers: aggregate the crowd before and after it was filled in, and compare.
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
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError, ignore_fit_warnings
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.truth_alignment import align_prediction
from wisecrowd.utils.progress import report

#: Every forecast is mixed with this much of a uniform one before its log-loss is taken, so that it is finite.
UNIFORM_SHARE = 1e-3
#: Votes that everybody's shares are worth where the shares of a task or a worker are the forecast.
PSEUDO_VOTES = 1.0

TASK_FORECAST, WORKER_FORECAST, MODEL_FORECAST = "votes of the task", "labels of the worker", "ds-fill"
BEFORE, AFTER_SHARED, AFTER_FULL = "before", "after, shared weight", "after, weight 1"
AGGREGATORS = ("majority-vote", "dawid-skene")


@dataclass(frozen=True, eq=False)
class CompleterScore:
    """How well hidden votes were foretold, by the completer (the first row of ``table``) and by simple forecasts.

    >>> from wisecrowd import DSFill, score_completer, simulate_crowd
    >>> judged = score_completer(DSFill(), simulate_crowd(n_tasks=200).crowd)
    >>> judged.coverage, judged.n_votes
    (1.0, 120)
    """

    table: pd.DataFrame
    """A row by forecast. ``accuracy`` and ``log_loss`` (nats) are over all hidden votes, ``filled_…`` over those that the
    completer would have filled in, whichever the forecast; ``gain`` is how many nats a vote the completer is better than this
    forecast. ``…_se`` are standard errors; votes on one task are taken to depend on each other."""
    coverage: float
    """The share of hidden votes that the completer would have filled in (``max_per_task`` aside)."""
    n_votes: int
    """How many hidden votes were scored, over all repeats."""


class _HeldoutScores(NamedTuple):
    """Hidden votes of one or more repeats: by forecast, the credit and the loss of each."""

    task: NDArray[Any]
    weight: NDArray[np.float64]
    filled: NDArray[np.bool_]
    credit: dict[str, NDArray[np.float64]]
    loss: dict[str, NDArray[np.float64]]


def score_completer(
    completer: Completer | str,
    crowd: Any,
    X: Any = None,
    *,
    fraction: float = 0.2,
    repeats: int = 1,
    random_state: int = 0,
) -> CompleterScore:
    """Hide some of the real votes, fit a completer to the others, and score what it says of the hidden ones.

    It stands beside three forecasts that any completer should beat: the vote shares of the task, the label shares of the
    worker (both with one pseudo-vote of the whole crowd's shares), and `DSFill`. For the log-loss every forecast, the
    completer's too, is mixed with a share of 0.001 of a uniform one, so that a label held impossible costs much and not
    infinitely much. ``repeats`` hides other votes each time. ``X`` goes to completers that look at features.

    All votes of a worker on a task are hidden together. No truth is needed, so this is the figure to choose by.

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
        report(f"Judging {model.name}", repeat + 1, repeats)
    return _summarize_scores(model.name, _concatenate_scores(scores))


def accuracy_after_completion(
    completer: Completer | str, crowd: Any, X: Any, truth: Any, *, aggregators: Sequence[Any] = AGGREGATORS
) -> pd.DataFrame:
    """What aggregators make of a crowd before and after it was filled in, by known truth: the protocol of the papers.

    Beside accuracy there is what filling does to probabilities: log-loss, calibration error and mean confidence, with the
    real votes only, with filled votes that weigh together what the votes on an average task do (``"shared"``, the default of
    completers), with filled votes that count as much as real ones (1, as in papers), and with the completer's own weight if
    that is another. ``aggregators`` are names or aggregators. The filled crowd is held in memory.

    >>> from wisecrowd import GMV, accuracy_after_completion, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, workers={"noisy(0.6)": 1.0}, votes_per_task=3)
    >>> table = accuracy_after_completion(GMV(), made.crowd, None, made.truth, aggregators=["majority-vote"])
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
    crowd: Any,
    X: Any,
    truth: Any,
    *,
    at_most: Iterable[int] = (1, 2, 3, 5),
    aggregators: Sequence[Any] = AGGREGATORS,
    repeats: int = 1,
    random_state: int = 0,
) -> pd.DataFrame:
    """The accuracy of aggregators before and after filling, with no more than so many votes on each task.

    The votes that stay are drawn anew in each of the ``repeats``; the figures are means over them, and ``gain_sd`` is the
    standard deviation of the gain (NaN of one repeat).

    >>> from wisecrowd import DSFill, redundancy_curve, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, votes_per_task=5)
    >>> curve = redundancy_curve(DSFill(), made.crowd, None, made.truth, at_most=[2, 3], aggregators=["majority-vote"])
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
    crowd: Any,
    X: Any,
    truth: Any,
    *,
    min_labels: Iterable[int] = (0, 5, 10, 20, 50),
    aggregators: Sequence[Any] = AGGREGATORS,
) -> pd.DataFrame:
    """The accuracy of aggregators when only workers with more labels than a threshold are filled in for.

    ``workers`` is for how many that is, ``density`` how much of the table of tasks and workers is then full. The completer is
    fitted once.

    >>> from wisecrowd import DSFill, density_curve, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, votes_per_task=2)
    >>> curve = density_curve(DSFill(), made.crowd, None, made.truth, min_labels=[0, 200], aggregators=["majority-vote"])
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
    for threshold in min_labels:
        filled = fitted.set_params(min_labels=threshold).fill()
        size_columns = (len(fitted._eligible), count_cells(filled) / (votes.n_tasks * votes.n_workers))
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
    columns = ["min_labels", "aggregator", "workers", "density", "before", "after"]
    return pd.DataFrame(rows, columns=columns).set_index(["min_labels", "aggregator"])


def count_cells(crowd: Crowd) -> int:
    """How many (task, worker) have a vote; a worker who said two things of a task counts once.

    >>> count_cells(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "ann", "dog")], duplicates="keep"))
    1
    """
    return len(_first_rows(crowd))


# ---------------------------------------------------------------------- hidden votes


def _hide_votes(votes: Crowd, fraction: float, seed: int) -> tuple[Crowd, Crowd]:
    """Votes kept and hidden; a worker's votes on a task go together, or one of two would give the other away."""
    first_rows = _first_rows(votes)
    if len(first_rows) < 2:
        raise InputError("at least two votes were wanted, one to hide and one to keep; there is only one")
    count = min(max(round(fraction * len(first_rows)), 1), len(first_rows) - 1)
    hidden = np.zeros(len(first_rows), dtype=bool)
    hidden[np.random.default_rng(seed).permutation(len(first_rows))[:count]] = True
    by_vote = np.repeat(hidden, np.diff(first_rows, append=votes.n_votes))
    return votes.take(~by_vote), votes.take(by_vote)


def _first_rows(crowd: Crowd) -> NDArray[np.intp]:
    """The first row of each (task, worker); rows are sorted by them."""
    changes = np.diff(crowd.task, prepend=-1) != 0
    return np.flatnonzero(changes | (np.diff(crowd.worker_codes, prepend=-1) != 0))


def _score_heldout(completer: Completer, training_votes: Crowd, heldout: Crowd, X: Any) -> _HeldoutScores:
    fitted = _fit_completer(completer, training_votes, X)
    proba, filled = fitted._cells(heldout)
    filled = filled & (training_votes.votes_per_worker > completer.min_labels)[heldout.worker_codes]
    forecasts = {completer.name: proba, **_simple_forecasts(training_votes, heldout)}
    if completer.name != MODEL_FORECAST:
        with ignore_fit_warnings():  # nobody asked for this method; its figures tell how it does
            forecasts[MODEL_FORECAST] = _fit_completer(_resolve_completer(MODEL_FORECAST), training_votes, None)._cells(
                heldout
            )[0]
    rows = np.arange(heldout.n_votes)
    credit, loss = {}, {}
    for name, label_probs in forecasts.items():
        is_best = label_probs >= label_probs.max(axis=1, keepdims=True) - metrics.TIE_TOLERANCE
        credit[name] = is_best[rows, heldout.label] / is_best.sum(axis=1)
        loss[name] = -np.log((1 - UNIFORM_SHARE) * label_probs[rows, heldout.label] + UNIFORM_SHARE / heldout.n_classes)
    return _HeldoutScores(heldout.task, heldout.weight, filled, credit, loss)


def _simple_forecasts(training_votes: Crowd, heldout: Crowd) -> dict[str, NDArray[np.float64]]:
    """What the votes of each hidden vote's task, and the labels of its worker, say of it."""
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
    names = list(parts[0].credit)
    return _HeldoutScores(
        np.concatenate([part.task for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.filled for part in parts]),
        {name: np.concatenate([part.credit[name] for part in parts]) for name in names},
        {name: np.concatenate([part.loss[name] for part in parts]) for name in names},
    )


def _summarize_scores(completer: str, scores: _HeldoutScores) -> CompleterScore:
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
    """A weighted mean and its standard error, votes on one task being one observation."""
    mean = float(np.average(values, weights=scores.weight))
    task_sums = np.bincount(scores.task, weights=scores.weight * (values - mean))
    n_tasks = len(np.unique(scores.task))
    if n_tasks < 2:
        return mean, float("nan")
    error = np.sqrt((task_sums**2).sum() * n_tasks / (n_tasks - 1)) / scores.weight.sum()
    return mean, float(error)


# ---------------------------------------------------------------------- what is judged, and by whom


def _resolve_completer(completer: Any) -> Completer:
    resolved = find(completer)() if isinstance(completer, str) else completer
    if not isinstance(resolved, Completer):
        raise UsageError(f"a completer was wanted, such as DSFill(), or the name of one; got {completer!r}")
    return resolved


def _fit_completer(completer: Completer, votes: Crowd, X: Any) -> Completer:
    return completer.clone_unfitted().fit(votes, X if completer.uses_features else None)


def _resolve_aggregators(aggregators: Sequence[Any]) -> dict[str, Aggregator]:
    if isinstance(aggregators, str) or not aggregators:
        raise UsageError(f"a list of aggregators was wanted, such as ['majority-vote']; got {aggregators!r}")
    resolved: dict[str, Aggregator] = {}
    for aggregator in aggregators:
        method: Any = find(aggregator)() if isinstance(aggregator, str) else aggregator
        if not isinstance(method, Aggregator) or method.numeric:
            raise UsageError(f"aggregators of classes were wanted, such as 'dawid-skene'; got {aggregator!r}")
        resolved[method.name] = method
    return resolved


def _align_truth(truth: Any, crowd: Crowd) -> pd.Series:
    """The truth by task, or why it does not go with the crowd: before anything is fitted."""
    truth_by_task = as_truth_series(truth, crowd)
    align_prediction(
        truth_by_task, pd.DataFrame(1 / crowd.n_classes, index=crowd.tasks, columns=as_index(crowd.classes))
    )
    return truth_by_task


def _aggregate_and_score(aggregator: Aggregator, crowd: Crowd, X: Any, truth: pd.Series) -> dict[str, float]:
    fitted = aggregator.clone_unfitted().fit(crowd, X if aggregator.uses_features else None)
    return {
        "accuracy": metrics.accuracy(truth, fitted),
        "log_loss": metrics.log_loss(truth, fitted),
        "calibration_error": metrics.calibration_error(truth, fitted),
        "confidence": float(fitted.posterior_.max(axis=1).mean()),
    }
