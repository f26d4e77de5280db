"""All completers with their defaults on crowds with features: prediction of hidden votes, and gain of aggregators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import pandas as pd

from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find, methods
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import Portable
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.completion import (
    AFTER_FULL,
    AFTER_SHARED,
    BEFORE,
    TASK_FORECAST,
    WORKER_FORECAST,
    accuracy_after_completion,
    score_completer,
)
from wisecrowd.io.datasets import Dataset

#: Figures of hidden votes.
LOSS, HIDDEN, COVERAGE = "hidden log-loss", "hidden accuracy", "coverage"
#: Figures of aggregators after completion: accuracy, and calibration error of the posterior.
SHORT = {"majority-vote": "MV", "dawid-skene": "DS"}
AFTER, ECE, ECE_AS_VOTES = "after", "ECE", "ECE, weight 1"
FIGURES = (
    LOSS,
    HIDDEN,
    COVERAGE,
    *(f"{name} {what}" for what in (AFTER, ECE, ECE_AS_VOTES) for name in SHORT.values()),
)
NOTHING = "(nothing filled in)"


@dataclass(frozen=True)
class FitCompleter(Portable):
    """Entry that scores a completer on hidden votes and by the accuracy of aggregators after completion.

    >>> FitCompleter("ds-fill").kind.__name__
    'DSFill'
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    is_random: ClassVar[bool] = True

    @property
    def kind(self) -> type[Completer]:
        """Class of the completer."""
        completer = find(self.method)
        if not issubclass(completer, Completer):
            raise UsageError(f"{self.method} is not a completer; wisecrowd methods lists the completers")
        return completer

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Score the completer on hidden votes, then complete all votes and aggregate."""
        if dataset.truth is None or dataset.features is None:
            raise InputError("the dataset has no truth or no features; this entry needs both")
        completer = self.kind(**{"random_state": seed, **self.settings})
        X = pd.get_dummies(dataset.features, dtype=float)  # numeric columns do not change
        score = score_completer(completer, dataset.crowd, X, random_state=seed)
        after = accuracy_after_completion(completer, dataset.crowd, X, dataset.truth)
        heldout = score.table.iloc[0]
        hidden = {LOSS: float(heldout["log_loss"]), HIDDEN: float(heldout["accuracy"]), COVERAGE: score.coverage}
        return (
            hidden
            | get_aggregator_scores(after, AFTER_SHARED)
            | _select_column(after, "calibration_error", AFTER_FULL, ECE_AS_VOTES)
        )

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(type(self), self.kind)]


@dataclass(frozen=True)
class SimpleForecast(Portable):
    """Entry that scores a simple forecast on the hidden votes.

    >>> SimpleForecast("votes of the task").forecast
    'votes of the task'
    """

    forecast: str

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Score the forecast on the same hidden votes as the completers."""
        table = score_completer("gmv", dataset.crowd, random_state=seed).table
        return {LOSS: table["log_loss"][self.forecast], HIDDEN: table["accuracy"][self.forecast], COVERAGE: 1.0}

    def identity(self) -> Any:
        """Return the forecast and the digest of the code."""
        return [self.forecast, code_digest(type(self))]


class NoCompletion:
    """Entry that scores the aggregators on the real votes.

    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> sorted(NoCompletion()(SimulatedDataset({"n_tasks": 50}).load(0), 0))
    ['DS ECE', 'DS after', 'MV ECE', 'MV after']
    """

    is_random = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Aggregate the votes and score the labels."""
        if dataset.truth is None:
            raise InputError("the dataset has no truth; this entry needs it for scoring")
        return get_aggregator_scores(accuracy_after_completion("gmv", dataset.crowd, None, dataset.truth), BEFORE)

    def identity(self) -> Any:
        """Return the digest of the code."""
        return ["unfilled", code_digest(type(self))]


def get_aggregator_scores(after: pd.DataFrame, votes: str) -> dict[str, float]:
    """Return the figures of both aggregators for one kind of votes.

    Parameters
    ----------
    after : DataFrame
        Scores by aggregator and kind of votes.
    votes : str
        Kind of votes.

    Returns
    -------
    dict

    Examples
    --------
    >>> rows = pd.MultiIndex.from_product([["majority-vote", "dawid-skene"], ["before"]])
    >>> get_aggregator_scores(pd.DataFrame({"accuracy": [0.5, 0.6], "calibration_error": [0.1, 0.2]}, index=rows), "before")
    {'MV after': 0.5, 'DS after': 0.6, 'MV ECE': 0.1, 'DS ECE': 0.2}
    """
    return _select_column(after, "accuracy", votes, AFTER) | _select_column(after, "calibration_error", votes, ECE)


def _select_column(after: pd.DataFrame, column: str, votes: str, figure: str) -> dict[str, float]:
    """Return one column of the scores as figures of both aggregators."""
    values = after[column].xs(votes, level=1)
    return {f"{short} {figure}": float(values[name]) for name, short in SHORT.items()}


def benchmark() -> Benchmark:
    """Return the benchmark of all completers on LabelMe, Music, Leaves and Income.

    >>> {"ds-fill", "(nothing filled in)"} <= set(benchmark().entries)
    True
    """
    entries: dict[str, Entry] = {NOTHING: NoCompletion()}
    entries |= {f"({forecast})": SimpleForecast(forecast) for forecast in (TASK_FORECAST, WORKER_FORECAST)}
    entries |= {name: FitCompleter(name) for name in methods("complete")}
    return Benchmark(
        title="Every completer on crowds with features",
        entries=entries,
        data={
            "LabelMe": StoredDataset("labelme", "distinct", figures=FIGURES),
            "Music": StoredDataset("music_genre", "distinct", figures=FIGURES),
            "Leaves": StoredDataset("leaves", "distinct", figures=FIGURES),
            "Income": StoredDataset("income", "distinct", figures=FIGURES),
        },
        notes={"Income": "Categories are one-hot encoded: 66 features."},
        seeds=3,
        remarks=(
            "Every completer with its default parameters. A fifth of the real votes is hidden. *Hidden "
            "log-loss* (in nats; forecasts are mixed with .001 of a uniform one) and *hidden accuracy* "
            "measure how well they are predicted; *coverage* is the share that would have been filled in. "
            "Then all votes are used, and empty cells are filled in with the default weight: the filled votes "
            "on a task weigh as much as the real votes on an average task. Majority vote and Dawid–Skene are "
            "scored by the truth: *after* is their accuracy, *ECE* the calibration error of their posteriors, "
            "also with filled votes that count as real ones (*weight 1*). Mean and standard deviation over "
            "three seeds (hidden votes, and random choices of the completers).",
        ),
        time_limit=900,
    )  # fmt: skip
