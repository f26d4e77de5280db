"""Every completer as it comes out of the box: votes foretold, and what aggregators gain, on crowds with features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import pandas as pd

from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find, methods
from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.data import Stored
from wisecrowd.bench.entries import Portable, code_digest
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

#: Of hidden votes.
LOSS, HIDDEN, COVERAGE = "hidden log-loss", "hidden accuracy", "coverage"
#: Of aggregators after filling in: accuracy, and the calibration error of their posteriors.
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
    """A completer of the registry with settings; it scores itself on hidden votes, and by what aggregators make of it.

    >>> FitCompleter("ds-fill").kind.__name__
    'DSFill'
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    is_random: ClassVar[bool] = True

    @property
    def kind(self) -> type[Completer]:
        """Its class."""
        completer = find(self.method)
        if not issubclass(completer, Completer):
            raise UsageError(f"{self.method} does not complete votes")
        return completer

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Judge it by hidden votes, then fill in all that is empty and aggregate."""
        if dataset.truth is None or dataset.features is None:
            raise InputError("completers are scored by truth and features, and this dataset has not both")
        completer = self.kind(**{"random_state": seed, **self.settings})
        X = pd.get_dummies(dataset.features, dtype=float)  # numbers stay as they are
        judged = score_completer(completer, dataset.crowd, X, random_state=seed)
        after = accuracy_after_completion(completer, dataset.crowd, X, dataset.truth)
        heldout = judged.table.iloc[0]
        hidden = {LOSS: float(heldout["log_loss"]), HIDDEN: float(heldout["accuracy"]), COVERAGE: judged.coverage}
        return hidden | aggregated(after, AFTER_SHARED) | _of(after, "calibration_error", AFTER_FULL, ECE_AS_VOTES)

    def identity(self) -> Any:
        """Method, parameters and the code that is its own."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, code_digest(__name__, self.kind.__module__)]


@dataclass(frozen=True)
class Simple(Portable):
    """One of the simple forecasts that stand beside every completer on hidden votes.

    >>> Simple("votes of the task").forecast
    'votes of the task'
    """

    forecast: str

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """How well it foretells the same hidden votes."""
        table = score_completer("gmv", dataset.crowd, random_state=seed).table
        return {LOSS: table["log_loss"][self.forecast], HIDDEN: table["accuracy"][self.forecast], COVERAGE: 1.0}

    def identity(self) -> Any:
        """The forecast and its code."""
        return [self.forecast, code_digest(__name__)]


class Unfilled:
    """What aggregators make of the real votes.

    >>> from wisecrowd.bench.data import Simulated
    >>> sorted(Unfilled()(Simulated({"n_tasks": 50}).load(0), 0))
    ['DS ECE', 'DS after', 'MV ECE', 'MV after']
    """

    is_random = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Aggregate, and compare with the truth."""
        if dataset.truth is None:
            raise InputError("aggregators are scored by truth, and this dataset has none")
        return aggregated(accuracy_after_completion("gmv", dataset.crowd, None, dataset.truth), BEFORE)

    def identity(self) -> Any:
        """Its code."""
        return ["unfilled", code_digest(__name__)]


def aggregated(after: pd.DataFrame, votes: str) -> dict[str, float]:
    """The figures of the two aggregators with some votes.

    >>> rows = pd.MultiIndex.from_product([["majority-vote", "dawid-skene"], ["before"]])
    >>> aggregated(pd.DataFrame({"accuracy": [0.5, 0.6], "calibration_error": [0.1, 0.2]}, index=rows), "before")
    {'MV after': 0.5, 'DS after': 0.6, 'MV ECE': 0.1, 'DS ECE': 0.2}
    """
    return _of(after, "accuracy", votes, AFTER) | _of(after, "calibration_error", votes, ECE)


def _of(after: pd.DataFrame, column: str, votes: str, figure: str) -> dict[str, float]:
    accuracy = after[column].xs(votes, level=1)
    return {f"{short} {figure}": float(accuracy[name]) for name, short in SHORT.items()}


def benchmark() -> Benchmark:
    """Completers with their defaults x LabelMe, Music, Leaves and Income.

    >>> {"ds-fill", "(nothing filled in)"} <= set(benchmark().entries)
    True
    """
    entries: dict[str, Entry] = {NOTHING: Unfilled()}
    entries |= {f"({forecast})": Simple(forecast) for forecast in (TASK_FORECAST, WORKER_FORECAST)}
    entries |= {name: FitCompleter(name) for name in methods("complete")}
    return Benchmark(
        title="Every completer on crowds with features",
        entries=entries,
        data={
            "LabelMe": Stored("labelme", "distinct", figures=FIGURES),
            "Music": Stored("music_genre", "distinct", figures=FIGURES),
            "Leaves": Stored("leaves", "distinct", figures=FIGURES),
            "Income": Stored("income", "distinct", figures=FIGURES),
        },
        notes={"Income": "Its categories are spread over columns of ones and zeros: 66 features."},
        seeds=3,
        remarks=(
            "Every completer with its default parameters. A fifth of the real votes is hidden; *hidden log-loss* (nats; forecasts "
            "are mixed with .001 of a uniform one) and *hidden accuracy* say how well they are foretold, and *coverage* how many "
            "of them would have been filled in. Then all votes are learnt, empty cells are filled in with the default weight, all "
            "on a task together as much as the real votes on an average task, and majority vote and Dawid–Skene are scored by "
            "the truth: *after* is their accuracy, *ECE* the calibration error of their posteriors, beside that with filled votes "
            "that count as real ones (*weight 1*). Mean and standard deviation over three seeds (which votes are hidden, and "
            "whatever is drawn).",
        ),
        time_limit=900,
    )  # fmt: skip
