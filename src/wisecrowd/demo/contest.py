"""Every method on the demo's crowd, scored against the known truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.learner import Learner
from wisecrowd.base.method import Method
from wisecrowd.base.registry import kind_of, methods
from wisecrowd.demo.digits import DigitsCrowd
from wisecrowd.errors import NotConverged, WisecrowdError
from wisecrowd.evaluate import metrics

#: Parameters that make slow methods fast enough for the demo.
SETTINGS: dict[str, dict[str, Any]] = {
    "cmm": {"max_iter": 20},
    "concord": {"max_iter": 10},
    "ebcc": {"n_init": 5},
}
#: Epochs of every network, so that training takes seconds.
EPOCHS = 10


def get_quick_settings(method: type[Method]) -> dict[str, Any]:
    """Return parameters that make a slow method fast enough for the demo.

    Parameters
    ----------
    method : type
        Class of the method.

    Returns
    -------
    dict

    Examples
    --------
    >>> from wisecrowd import MMLC, DawidSkene
    >>> get_quick_settings(MMLC), get_quick_settings(DawidSkene)
    ({'epochs': 10}, {})
    """
    trains = any(field.name == "epochs" for field in fields(method))
    return ({"epochs": EPOCHS} if trains else {}) | SETTINGS.get(method.name, {})


#: Reasons why a method is no better than guessing on this crowd.
REASONS = {
    "minimax-entropy": "its regularisation grows with the square of the number of classes and outweighs the few votes of a worker"
}


@dataclass(frozen=True)
class Entry:
    """Fitted method with its accuracy, log loss and time.

    Attributes
    ----------
    fitted : Method
        Fitted method.
    accuracy, log_loss : float
        Scores against the known truth.
    seconds : float
        Time to fit.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> fitted = MajorityVote().fit(Crowd.from_triples([("t1", "ann", "cat")]))
    >>> Entry(fitted, accuracy=1.0, log_loss=0.0, seconds=0.01).method
    'majority-vote'
    """

    fitted: Method
    accuracy: float
    log_loss: float
    seconds: float

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.fitted.name

    @property
    def kind(self) -> str:
        """Kind of the method: "aggregate" or "learn"."""
        return kind_of(type(self.fitted))

    @property
    def uses_features(self) -> bool:
        """True if the method uses features of the tasks."""
        return not isinstance(self.fitted, Aggregator) or self.fitted.uses_features

    @property
    def iterations(self) -> int | None:
        """Number of iterations, or None for a method that does not iterate."""
        return getattr(self.fitted, "n_iter_", None)


@dataclass(frozen=True)
class Contest:
    """Results of all methods, best first, and the skipped ones with reasons.

    Attributes
    ----------
    entries : list of Entry
        Results.
    declined : dict
        Reason by name of a skipped method.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote, OneCoin
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
    >>> contest = Contest([Entry(method().fit(crowd), 1.0, 0.0, 0.01) for method in (OneCoin, MajorityVote)], {})
    >>> contest.table()["accuracy"].to_dict()
    {'one-coin': 1.0, 'majority-vote': 1.0}
    >>> float(contest.agreement().loc["one-coin", "majority-vote"])
    1.0
    """

    entries: list[Entry]
    declined: dict[str, str]

    def table(self) -> pd.DataFrame:
        """Return one row per method: kind, accuracy, log loss, seconds, iterations."""
        columns = ["method", "kind", "accuracy", "log_loss", "seconds", "iterations"]
        rows = [[getattr(entry, column) for column in columns] for entry in self.entries]
        return pd.DataFrame(rows, columns=columns).astype({"iterations": "Int64"}).set_index("method")

    def agreement(self) -> pd.DataFrame:
        """Return the share of tasks with the same label for every pair of methods."""
        names = pd.Index([entry.method for entry in self.entries], name="method")
        chosen = np.stack([entry.fitted.posterior_.argmax(axis=1) for entry in self.entries])
        return pd.DataFrame((chosen[:, None] == chosen).mean(axis=2), index=names, columns=names)

    def footnotes(self, n_classes: int) -> list[str]:
        """Return notes on methods that are no better than guessing, or did not run with default parameters.

        Parameters
        ----------
        n_classes : int
            Number of classes, which gives the accuracy of guessing.

        Returns
        -------
        list of str

        Examples
        --------
        >>> from wisecrowd import Crowd, MinimaxEntropy
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
        >>> [note] = Contest([Entry(MinimaxEntropy().fit(crowd), 0.5, 0.7, 0.0)], {}).footnotes(n_classes=2)
        >>> note.partition(":")[0]
        'minimax-entropy does no better than guessing (50%)'
        """
        chance = 1 / n_classes
        notes = [
            f"{entry.method} does no better than guessing ({chance:.0%}): "
            f"{REASONS.get(entry.method, 'it does not suit this crowd')}. See wisecrowd methods {entry.method}"
            for entry in self.entries
            if entry.accuracy <= chance
        ]
        for entry in self.entries:
            if settings := SETTINGS.get(entry.method, {}):
                chosen = " ".join(f"-p {name}={value}" for name, value in settings.items())
                usual = ", ".join(str(getattr(type(entry.fitted)(), name)) for name in settings)
                notes.append(f"{entry.method} ran with {chosen} to save time (default: {usual}).")
        networks = [entry.method for entry in self.entries if "epochs" in get_quick_settings(type(entry.fitted))]
        if networks:
            notes.append(f"Networks ({', '.join(sorted(networks))}) ran with -p epochs={EPOCHS} to save time.")
        return notes

    def describe(self, n_tasks: int) -> str:
        """Return the gain of the best methods over majority vote, without and with features, as text.

        Parameters
        ----------
        n_tasks : int
            Number of tasks, which turns shares into counts.

        Returns
        -------
        str

        Examples
        --------
        >>> from wisecrowd import Crowd, MajorityVote, OneCoin
        >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
        >>> entries = [Entry(OneCoin().fit(crowd), 0.9, 0.1, 0.0), Entry(MajorityVote().fit(crowd), 0.7, 0.5, 0.0)]
        >>> Contest(entries, {}).describe(100)
        'From the same votes, one-coin gets 20 more tasks right than majority vote.'
        """
        accuracy = {entry.method: entry.accuracy for entry in self.entries}
        best = {entry.uses_features: entry for entry in reversed(self.entries)}

        def more(than: float, entry: Entry) -> str:
            gain = round((entry.accuracy - than) * n_tasks)
            return "1 more task" if gain == 1 else f"{gain:,} more tasks"

        first = best[False]
        text = f"From the same votes, {first.method} gets {more(accuracy['majority-vote'], first)} right than majority vote."
        if True in best and best[True].accuracy > first.accuracy:
            second = best[True]
            text += (
                f" With the pixels as features, {second.method} gets {more(first.accuracy, second)} right than that."
            )
        return text


def _aggregate(method: type[Method], demo: DigitsCrowd) -> Aggregator:
    aggregator = cast(type[Aggregator], method)
    fresh = aggregator(**get_quick_settings(aggregator))
    return fresh.fit(demo.simulation.crowd, demo.features if aggregator.uses_features else None)


def _learn(method: type[Method], demo: DigitsCrowd) -> Learner:
    learner = cast(type[Learner], method)
    return learner(**get_quick_settings(learner)).fit(demo.features, demo.simulation.crowd)


#: Function that fits a method of each kind.
RUNNERS: dict[str, Callable[[type[Method], DigitsCrowd], Method]] = {"aggregate": _aggregate, "learn": _learn}


def run_contest(demo: DigitsCrowd, only: Collection[str] | None = None) -> Contest:
    """Fit every method for classes, or some, with default parameters except `SETTINGS`.

    Parameters
    ----------
    demo : DigitsCrowd
        Votes, truth and features.
    only : collection of str, optional
        Names of the methods to run. All by default.

    Returns
    -------
    Contest

    Examples
    --------
    >>> from wisecrowd.demo.digits import make_digits_crowd
    >>> contest = run_contest(make_digits_crowd(), only=["dawid-skene", "majority-vote"])
    >>> table = contest.table()
    >>> bool(table.loc["dawid-skene", "accuracy"] > table.loc["majority-vote", "accuracy"] + 0.1)
    True
    """
    from threadpoolctl import threadpool_limits

    entries: list[Entry] = []
    declined: dict[str, str] = {}
    for name, method in methods().items():
        if (
            "categorical" not in method.answer_types
            or kind_of(method) not in RUNNERS
            or (only is not None and name not in only)
        ):
            continue
        started = time.perf_counter()
        try:
            # Threads do not pay off for small matrices.
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore", NotConverged)  # the number of iterations says it
                fitted = RUNNERS[kind_of(method)](method, demo)
        except WisecrowdError as error:
            declined[name] = str(error)
            continue
        seconds = time.perf_counter() - started
        truth = demo.simulation.truth
        entries.append(Entry(fitted, metrics.accuracy(truth, fitted), metrics.log_loss(truth, fitted), seconds))
    return Contest(sorted(entries, key=lambda entry: -entry.accuracy), declined)
