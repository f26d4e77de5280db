"""Completers on the demo's crowd, compared by the accuracy of aggregators on the completed votes."""

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
from wisecrowd.demo.digits import DigitsCrowd
from wisecrowd.errors import NotConverged, WisecrowdError
from wisecrowd.evaluate import metrics

#: Aggregators of the completed votes.
AGGREGATORS = ("majority-vote", "dawid-skene")


def get_quick_completer_settings(name: str) -> dict[str, Any]:
    """Return parameters that make a slow completer fast enough for the demo.

    Parameters
    ----------
    name : str
        Name of the completer.

    Returns
    -------
    dict

    Examples
    --------
    >>> get_quick_completer_settings("tdg4crowd"), get_quick_completer_settings("gmv")
    ({'epochs': 10}, {})
    """
    if name == "mmlc-fill":
        learner: Any = find("mmlc")
        return {"learner": learner(epochs=10)}
    return {"tdg4crowd": {"epochs": 10}}.get(name, {})


@dataclass(frozen=True)
class Completion:
    """Accuracy of aggregators on the votes that one completer completed.

    Attributes
    ----------
    fitted : Completer
        Fitted completer.
    accuracy : dict
        Accuracy by aggregator.
    seconds : float
        Time to fit and to complete.

    Examples
    --------
    >>> from wisecrowd import GMV
    >>> Completion(GMV(), {"majority-vote": 0.7}, seconds=0.1).method
    'gmv'
    """

    fitted: Completer
    accuracy: dict[str, float]
    seconds: float

    @property
    def method(self) -> str:
        """Name of the completer."""
        return self.fitted.name

    @property
    def uses_features(self) -> bool:
        """True if the completer uses features of the tasks."""
        return self.fitted.uses_features


@dataclass(frozen=True)
class Completions:
    """Results of all completers, sorted by the accuracy of majority vote, and the skipped ones with reasons.

    Attributes
    ----------
    before : dict
        Accuracy by aggregator without completion.
    entries : list of Completion
        Results.
    declined : dict
        Reason by name of a skipped completer.

    Examples
    --------
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
        """Return one row per completer, and one without completion: accuracy of each aggregator and seconds."""
        rows: dict[str, dict[str, Any]] = {"nothing": {**self.before, "seconds": 0.0}}
        rows |= {entry.method: {**entry.accuracy, "seconds": entry.seconds} for entry in self.entries}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("filled_in_by")

    def footnotes(self) -> list[str]:
        """Return notes on completers that did not run with default parameters."""
        notes = []
        for entry in self.entries:
            if settings := get_quick_completer_settings(entry.method):
                chosen = ", ".join(f"{name}={value}" for name, value in settings.items())
                usual = ", ".join(str(getattr(type(entry.fitted)(), name)) for name in settings)
                notes.append(f"{entry.method} ran with {chosen} to save time (default: {usual}).")
        return notes

    def describe(self, n_tasks: int) -> str:
        """Return the gain of the best completers without and with features, as text.

        Parameters
        ----------
        n_tasks : int
            Number of tasks, which turns shares into counts.

        Returns
        -------
        str

        Examples
        --------
        >>> from wisecrowd import GMV
        >>> before = {"majority-vote": 0.7, "dawid-skene": 0.8}
        >>> Completions(before, [Completion(GMV(), before, 0.0)], {}).describe(100)
        'From votes alone, completion does not help dawid-skene.'
        """
        aggregator = AGGREGATORS[-1]

        def compute_gain(uses_features: bool) -> tuple[int, str]:
            best = max(
                (one for one in self.entries if one.uses_features == uses_features),
                key=lambda one: one.accuracy[aggregator],
            )
            return round((best.accuracy[aggregator] - self.before[aggregator]) * n_tasks), best.method

        parts = []
        for uses_features, where in ((False, "From votes alone"), (True, "With the pixels as features")):
            if any(one.uses_features == uses_features for one in self.entries):
                gain, method = compute_gain(uses_features)
                effect = (
                    f"gains {aggregator} {gain:,} tasks, with {method}" if gain > 0 else f"does not help {aggregator}"
                )
                parts.append(f"{where}, completion {effect}.")
        return " ".join(parts)


def run_completions(demo: DigitsCrowd, only: Collection[str] | None = None) -> Completions:
    """Complete the crowd with every completer, or with some, and aggregate the result.

    Parameters
    ----------
    demo : DigitsCrowd
        Votes, truth and features.
    only : collection of str, optional
        Names of the methods to run. All by default.

    Returns
    -------
    Completions

    Examples
    --------
    >>> from wisecrowd.demo.digits import make_digits_crowd
    >>> completions = run_completions(make_digits_crowd(), only=["gmv"])
    >>> completions.table().columns.tolist()
    ['majority-vote', 'dawid-skene', 'seconds']
    """
    from threadpoolctl import threadpool_limits

    crowd, truth = demo.simulation.crowd, demo.simulation.truth
    entries: list[Completion] = []
    declined: dict[str, str] = {}
    with warnings.catch_warnings(), threadpool_limits(1):  # threads do not pay off for small matrices
        warnings.simplefilter("ignore", NotConverged)
        for name, method in methods("complete").items():
            if only is not None and name not in only:
                continue
            completer = cast(type[Completer], method)(**get_quick_completer_settings(name))
            started = time.perf_counter()
            try:
                filled = completer.complete(crowd, demo.features if completer.uses_features else None)
            except WisecrowdError as error:
                declined[name] = str(error)
                continue
            entries.append(Completion(completer, _accuracy(filled, truth), time.perf_counter() - started))
        before = _accuracy(crowd, truth)
    return Completions(before, sorted(entries, key=lambda entry: -entry.accuracy[AGGREGATORS[0]]), declined)


def _accuracy(crowd: Crowd, truth: pd.Series) -> dict[str, float]:
    accuracy = {}
    for name in AGGREGATORS:
        aggregator: Any = find(name)
        accuracy[name] = metrics.accuracy(truth, aggregator().fit(crowd))
    return accuracy
