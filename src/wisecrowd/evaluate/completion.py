"""How good completers are: whether they foretell votes that were hidden from them, and what their votes are worth after.

`judge` needs no truth. It hides some of the votes that workers really cast, and scores what a completer says of them beside
forecasts so simple that a completer that does not beat them has understood nothing of workers. `after_filling` and the two
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
from wisecrowd.data.alignment import truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import InputError, UsageError, unwarned
from wisecrowd.evaluate import metrics
from wisecrowd.evaluate.aligned import align
from wisecrowd.utils.progress import report

#: Every forecast is mixed with this much of a uniform one before its log-loss is taken, so that it is finite.
MIXED = 1e-3
#: Votes that everybody's shares are worth where the shares of a task or a worker are the forecast.
PSEUDO_VOTES = 1.0

TASK_SHARES, WORKER_SHARES, MODEL = "votes of the task", "labels of the worker", "ds-fill"
BEFORE, SHARED, AS_VOTES = "before", "after, shared weight", "after, weight 1"
AGGREGATORS = ("majority-vote", "dawid-skene")


@dataclass(frozen=True, eq=False)
class Judgement:
    """How well hidden votes were foretold, by the completer (the first row of ``table``) and by simple forecasts.

    >>> from wisecrowd import DSFill, judge, simulate_crowd
    >>> judged = judge(DSFill(), simulate_crowd(n_tasks=200).crowd)
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


class _Scored(NamedTuple):
    """Hidden votes of one or more repeats: by forecast, the credit and the loss of each."""

    task: NDArray[Any]
    weight: NDArray[np.float64]
    filled: NDArray[np.bool_]
    credit: dict[str, NDArray[np.float64]]
    loss: dict[str, NDArray[np.float64]]


def judge(
    completer: Completer | str,
    crowd: Any,
    X: Any = None,
    *,
    fraction: float = 0.2,
    repeats: int = 1,
    random_state: int = 0,
) -> Judgement:
    """Hide some of the real votes, fit a completer to the others, and score what it says of the hidden ones.

    It stands beside three forecasts that any completer should beat: the vote shares of the task, the label shares of the
    worker (both with one pseudo-vote of the whole crowd's shares), and `DSFill`. For the log-loss every forecast, the
    completer's too, is mixed with a share of 0.001 of a uniform one, so that a label held impossible costs much and not
    infinitely much. ``repeats`` hides other votes each time. ``X`` goes to completers that look at features.

    All votes of a worker on a task are hidden together. No truth is needed, so this is the figure to choose by.

    >>> from wisecrowd import GMV, judge, simulate_crowd
    >>> crowd = simulate_crowd(n_tasks=300, n_workers=20, votes_per_task=5).crowd
    >>> table = judge(GMV(), crowd).table
    >>> table.index.tolist()
    ['gmv', 'votes of the task', 'labels of the worker', 'ds-fill']
    >>> bool(table.loc["ds-fill", "log_loss"] < table.loc["gmv", "log_loss"])  # it knows the workers
    True
    """
    chosen = _completer(completer)
    votes = chosen._admit(chosen._as_crowd(crowd).only_observed())
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must lie between 0 and 1; got {fraction}")
    if repeats < 1:
        raise UsageError(f"repeats must be 1 or more; got {repeats}")
    scored = []
    for repeat in range(repeats):
        scored.append(_score(chosen, *_hide(votes, fraction, random_state + repeat), X))
        report(f"Judging {chosen.name}", repeat + 1, repeats)
    return _judgement(chosen.name, _joined(scored))


def after_filling(
    completer: Completer | str, crowd: Any, X: Any, truth: Any, *, aggregators: Sequence[Any] = AGGREGATORS
) -> pd.DataFrame:
    """What aggregators make of a crowd before and after it was filled in, by known truth: the protocol of the papers.

    Beside accuracy there is what filling does to probabilities: log-loss, calibration error and mean confidence, with the
    real votes only, with filled votes that weigh together what the votes on an average task do (``"shared"``, the default of
    completers), with filled votes that count as much as real ones (1, as in papers), and with the completer's own weight if
    that is another. ``aggregators`` are names or aggregators. The filled crowd is held in memory.

    >>> from wisecrowd import GMV, after_filling, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, workers={"noisy(0.6)": 1.0}, votes_per_task=3)
    >>> table = after_filling(GMV(), made.crowd, None, made.truth, aggregators=["majority-vote"])
    >>> table.loc["majority-vote", "confidence"].index.tolist()
    ['before', 'after, shared weight', 'after, weight 1']
    """
    chosen = _completer(completer)
    votes = chosen._admit(chosen._as_crowd(crowd).only_observed())
    judges = _aggregators(aggregators)
    known = _known(truth, votes)
    fitted = _fitted(chosen, votes, X)
    weights: dict[str, Any] = {SHARED: "shared", AS_VOTES: 1.0}
    if chosen.fill_weight not in weights.values():
        weights[f"after, weight {chosen.fill_weight}"] = chosen.fill_weight
    rows = {(name, BEFORE): _figures(judge, votes, X, known) for name, judge in judges.items()}
    for title, weight in weights.items():
        filled = fitted.set_params(fill_weight=weight).fill()
        rows |= {(name, title): _figures(judge, filled, X, known) for name, judge in judges.items()}
    order = [(name, title) for name in judges for title in (BEFORE, *weights)]
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
    chosen = _completer(completer)
    votes = chosen._admit(chosen._as_crowd(crowd).only_observed())
    judges = _aggregators(aggregators)
    known = _known(truth, votes)
    wanted = list(at_most)
    if repeats < 1:
        raise UsageError(f"repeats must be 1 or more; got {repeats}")
    rows = []
    for step, n in enumerate(wanted):
        for repeat in range(repeats):
            few = votes.at_most(n, random_state=random_state + repeat)
            filled = _fitted(chosen, few, X).fill()
            density = few.n_votes / few.n_tasks
            rows += [
                (n, name, density, *(_figures(judge, some, X, known)["accuracy"] for some in (few, filled)))
                for name, judge in judges.items()
            ]
            report(f"Filling in with {chosen.name}", step * repeats + repeat + 1, len(wanted) * repeats)
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
    chosen = _completer(completer)
    votes = chosen._admit(chosen._as_crowd(crowd).only_observed())
    judges = _aggregators(aggregators)
    known = _known(truth, votes)
    fitted = _fitted(chosen, votes, X)
    before = {name: _figures(judge, votes, X, known)["accuracy"] for name, judge in judges.items()}
    rows = []
    for threshold in min_labels:
        filled = fitted.set_params(min_labels=threshold).fill()
        place = (len(fitted._eligible), count_cells(filled) / (votes.n_tasks * votes.n_workers))
        rows += [
            (threshold, name, *place, before[name], _figures(judge, filled, X, known)["accuracy"])
            for name, judge in judges.items()
        ]
    columns = ["min_labels", "aggregator", "workers", "density", "before", "after"]
    return pd.DataFrame(rows, columns=columns).set_index(["min_labels", "aggregator"])


def count_cells(crowd: Crowd) -> int:
    """How many (task, worker) have a vote; a worker who said two things of a task counts once.

    >>> count_cells(Crowd.from_triples([("t1", "ann", "cat"), ("t1", "ann", "dog")], duplicates="keep"))
    1
    """
    return len(_first_of_cells(crowd))


# ---------------------------------------------------------------------- hidden votes


def _hide(votes: Crowd, fraction: float, seed: int) -> tuple[Crowd, Crowd]:
    """Votes kept and hidden; a worker's votes on a task go together, or one of two would give the other away."""
    first = _first_of_cells(votes)
    if len(first) < 2:
        raise InputError("at least two votes were wanted, one to hide and one to keep; there is only one")
    count = min(max(round(fraction * len(first)), 1), len(first) - 1)
    hidden = np.zeros(len(first), dtype=bool)
    hidden[np.random.default_rng(seed).permutation(len(first))[:count]] = True
    by_vote = np.repeat(hidden, np.diff(first, append=votes.n_votes))
    return votes.take(~by_vote), votes.take(by_vote)


def _first_of_cells(crowd: Crowd) -> NDArray[np.intp]:
    """The first row of each (task, worker); rows are sorted by them."""
    changes = np.diff(crowd.task, prepend=-1) != 0
    return np.flatnonzero(changes | (np.diff(crowd.worker_codes, prepend=-1) != 0))


def _score(completer: Completer, kept: Crowd, hidden: Crowd, X: Any) -> _Scored:
    fitted = _fitted(completer, kept, X)
    proba, filled = fitted._cells(hidden)
    filled = filled & (kept.votes_per_worker > completer.min_labels)[hidden.worker_codes]
    forecasts = {completer.name: proba, **_shares(kept, hidden)}
    if completer.name != MODEL:
        with unwarned():  # nobody asked for this method; its figures tell how it does
            forecasts[MODEL] = _fitted(_completer(MODEL), kept, None)._cells(hidden)[0]
    rows = np.arange(hidden.n_votes)
    credit, loss = {}, {}
    for name, said in forecasts.items():
        best = said >= said.max(axis=1, keepdims=True) - metrics.TIE
        credit[name] = best[rows, hidden.label] / best.sum(axis=1)
        loss[name] = -np.log((1 - MIXED) * said[rows, hidden.label] + MIXED / hidden.n_classes)
    return _Scored(hidden.task, hidden.weight, filled, credit, loss)


def _shares(kept: Crowd, hidden: Crowd) -> dict[str, NDArray[np.float64]]:
    """What the votes of each hidden vote's task, and the labels of its worker, say of it."""
    total = kept.votes.sum(axis=0)
    overall = PSEUDO_VOTES * total / total.sum()
    cell = kept.worker_codes.astype(np.int64) * kept.n_classes + kept.label
    of_worker = np.bincount(cell, weights=kept.weight, minlength=kept.n_workers * kept.n_classes)
    said = {
        TASK_SHARES: kept.votes[hidden.task] + overall,
        WORKER_SHARES: of_worker.reshape(kept.n_workers, kept.n_classes)[hidden.worker_codes] + overall,
    }
    return {name: votes / votes.sum(axis=1, keepdims=True) for name, votes in said.items()}


def _joined(parts: list[_Scored]) -> _Scored:
    names = list(parts[0].credit)
    return _Scored(
        np.concatenate([part.task for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.filled for part in parts]),
        {name: np.concatenate([part.credit[name] for part in parts]) for name in names},
        {name: np.concatenate([part.loss[name] for part in parts]) for name in names},
    )


def _judgement(completer: str, scored: _Scored) -> Judgement:
    rows = {}
    filled = scored.filled
    for name, loss in scored.loss.items():
        accuracy, accuracy_se = _mean(scored.credit[name], scored)
        log_loss, log_loss_se = _mean(loss, scored)
        gain, gain_se = _mean(loss - scored.loss[completer], scored)
        some = scored.weight[filled]
        rows[name] = {
            "accuracy": accuracy, "accuracy_se": accuracy_se, "log_loss": log_loss, "log_loss_se": log_loss_se,
            "gain": gain, "gain_se": gain_se,
            "filled_accuracy": np.average(scored.credit[name][filled], weights=some) if filled.any() else np.nan,
            "filled_log_loss": np.average(loss[filled], weights=some) if filled.any() else np.nan,
        }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("forecast")
    return Judgement(table, float(np.average(filled, weights=scored.weight)), len(filled))


def _mean(values: NDArray[np.float64], scored: _Scored) -> tuple[float, float]:
    """A weighted mean and its standard error, votes on one task being one observation."""
    mean = float(np.average(values, weights=scored.weight))
    by_task = np.bincount(scored.task, weights=scored.weight * (values - mean))
    n_tasks = len(np.unique(scored.task))
    if n_tasks < 2:
        return mean, float("nan")
    error = np.sqrt((by_task**2).sum() * n_tasks / (n_tasks - 1)) / scored.weight.sum()
    return mean, float(error)


# ---------------------------------------------------------------------- what is judged, and by whom


def _completer(given: Any) -> Completer:
    found = find(given)() if isinstance(given, str) else given
    if not isinstance(found, Completer):
        raise UsageError(f"a completer was wanted, such as DSFill(), or the name of one; got {given!r}")
    return found


def _fitted(completer: Completer, votes: Crowd, X: Any) -> Completer:
    return completer.unfitted().fit(votes, X if completer.uses_features else None)


def _aggregators(given: Sequence[Any]) -> dict[str, Aggregator]:
    if isinstance(given, str) or not given:
        raise UsageError(f"a list of aggregators was wanted, such as ['majority-vote']; got {given!r}")
    found: dict[str, Aggregator] = {}
    for one in given:
        chosen: Any = find(one)() if isinstance(one, str) else one
        if not isinstance(chosen, Aggregator) or chosen.numeric:
            raise UsageError(f"aggregators of classes were wanted, such as 'dawid-skene'; got {one!r}")
        found[chosen.name] = chosen
    return found


def _known(truth: Any, crowd: Crowd) -> pd.Series:
    """The truth by task, or why it does not go with the crowd: before anything is fitted."""
    known = truth_series(truth, crowd)
    align(known, pd.DataFrame(1 / crowd.n_classes, index=crowd.tasks, columns=as_index(crowd.classes)))
    return known


def _figures(aggregator: Aggregator, crowd: Crowd, X: Any, truth: pd.Series) -> dict[str, float]:
    fitted = aggregator.unfitted().fit(crowd, X if aggregator.uses_features else None)
    return {
        "accuracy": metrics.accuracy(truth, fitted),
        "log_loss": metrics.log_loss(truth, fitted),
        "calibration_error": metrics.calibration_error(truth, fitted),
        "confidence": float(fitted.posterior_.max(axis=1).mean()),
    }
