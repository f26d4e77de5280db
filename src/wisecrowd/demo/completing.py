"""What would the others have said? Every completer fills in the demo's crowd, and aggregators say what that was worth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from wisecrowd.base.completer import Completer
from wisecrowd.base.registry import find, methods
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo.crowd import DigitsCrowd
from wisecrowd.errors import NotConverged, WisecrowdError
from wisecrowd.evaluate import metrics

#: Who says what filled votes were worth.
AGGREGATORS = ("majority-vote", "dawid-skene")


def settings_of(name: str) -> dict[str, Any]:
    """Parameters with which a completer enters that would otherwise take most of the demo's time.

    >>> settings_of("tdg4crowd"), settings_of("gmv")
    ({'epochs': 10}, {})
    """
    if name == "mmlc-fill":
        learner: Any = find("mmlc")
        return {"learner": learner(epochs=10)}
    return {"tdg4crowd": {"epochs": 10}}.get(name, {})


@dataclass(frozen=True)
class Completion:
    """One completer, and the accuracy of aggregators with what it filled in.

    >>> from wisecrowd import GMV
    >>> Completion(GMV(), {"majority-vote": 0.7}, seconds=0.1).method
    'gmv'
    """

    fitted: Completer
    accuracy: dict[str, float]
    seconds: float

    @property
    def method(self) -> str:
        """The completer's name."""
        return self.fitted.name

    @property
    def looks(self) -> bool:
        """Whether it looks at the tasks themselves as well as at votes."""
        return self.fitted.uses_features


@dataclass(frozen=True)
class Completions:
    """All completers, the one that helps a plain majority most first, and who declined.

    >>> from wisecrowd import GMV, DSFill
    >>> before = {"majority-vote": 0.7, "dawid-skene": 0.8}
    >>> filled = Completions(before, [Completion(GMV(), before, 0.0)], {})
    >>> filled.table().index.tolist()
    ['nothing', 'gmv']
    """

    before: dict[str, float]
    entries: list[Completion]
    declined: dict[str, str]

    def table(self) -> pd.DataFrame:
        """A row for nothing filled in, and one for each completer: accuracy of each aggregator, and seconds."""
        rows: dict[str, dict[str, Any]] = {"nothing": {**self.before, "seconds": 0.0}}
        rows |= {entry.method: {**entry.accuracy, "seconds": entry.seconds} for entry in self.entries}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("filled_in_by")

    def footnotes(self) -> list[str]:
        """Which completers did not run out of the box."""
        notes = []
        for entry in self.entries:
            if given := settings_of(entry.method):
                chosen = ", ".join(f"{name}={value}" for name, value in given.items())
                usual = ", ".join(str(getattr(type(entry.fitted)(), name)) for name in given)
                notes.append(f"{entry.method} ran with {chosen}, to save time; usual: {usual}.")
        return notes

    def in_words(self, n_tasks: int) -> str:
        """What the best of those that look at votes alone gain, and what those gain that look at the tasks as well.

        >>> from wisecrowd import GMV
        >>> before = {"majority-vote": 0.7, "dawid-skene": 0.8}
        >>> Completions(before, [Completion(GMV(), before, 0.0)], {}).in_words(100)
        'From votes alone, filling in gains dawid-skene nothing.'
        """
        judge = AGGREGATORS[-1]

        def gained(looks: bool) -> tuple[int, str]:
            best = max((one for one in self.entries if one.looks == looks), key=lambda one: one.accuracy[judge])
            return round((best.accuracy[judge] - self.before[judge]) * n_tasks), best.method

        parts = []
        for looks, where in ((False, "From votes alone"), (True, "Looking at the pictures, too")):
            if any(one.looks == looks for one in self.entries):
                gain, method = gained(looks)
                worth = f"at most {gain:,} tasks, with {method}" if gain > 0 else "nothing"
                parts.append(f"{where}, filling in gains {judge} {worth}.")
        return " ".join(parts)


def hold_completions(demo: DigitsCrowd, only: Collection[str] | None = None) -> Completions:
    """Let every completer of the registry (or ``only`` some) fill in the crowd, and aggregate what comes out.

    >>> from wisecrowd.demo.crowd import digits_crowd
    >>> held = hold_completions(digits_crowd(), only=["gmv"])
    >>> held.table().columns.tolist()
    ['majority-vote', 'dawid-skene', 'seconds']
    """
    from threadpoolctl import threadpool_limits

    crowd, truth = demo.simulation.crowd, demo.simulation.truth
    entries: list[Completion] = []
    declined: dict[str, str] = {}
    with warnings.catch_warnings(), threadpool_limits(1):  # small matrices: threads would wait for each other
        warnings.simplefilter("ignore", NotConverged)
        for name, method in methods("complete").items():
            if only is not None and name not in only:
                continue
            completer = cast(type[Completer], method)(**settings_of(name))
            begun = time.perf_counter()
            try:
                filled = completer.complete(crowd, demo.features if completer.uses_features else None)
            except WisecrowdError as error:
                declined[name] = str(error)
                continue
            entries.append(Completion(completer, _accuracy(filled, truth), time.perf_counter() - begun))
        before = _accuracy(crowd, truth)
    return Completions(before, sorted(entries, key=lambda entry: -entry.accuracy[AGGREGATORS[0]]), declined)


def _accuracy(crowd: Crowd, truth: pd.Series) -> dict[str, float]:
    found = {}
    for name in AGGREGATORS:
        aggregator: Any = find(name)
        found[name] = metrics.accuracy(truth, aggregator().fit(crowd))
    return found
