"""Findings on every worker by a fitted model, without known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo.copy_detection import find_copiers
from wisecrowd.errors import UsageError

Finding: TypeAlias = Literal["copies", "one answer", "leaning", "contrary", "random", "reliable", "fallible", "unknown"]

#: Votes that a worker needs for a finding.
MIN_VOTES = 20

# Thresholds on a scale from chance (0) to the maximum (1), which does not depend on the number of classes.
_ONE_ANSWER, _LEANING = 0.8, 0.25
_RANDOM, _RELIABLE = 0.2, 0.8


@dataclass(frozen=True)
class Verdict:
    """Finding on one worker, with the detail that supports it.

    Attributes
    ----------
    worker : object
        Worker id.
    finding : str
        One of the values of `Finding`.
    n_votes : int
        Number of votes.
    accuracy : float
        Accuracy estimated by the model.
    detail : str, default ""
        End of a sentence that starts with the worker.

    Examples
    --------
    >>> Verdict("w11", "one answer", 120, 0.1, "always says 3").finding
    'one answer'
    """

    worker: Any
    finding: Finding
    n_votes: int
    accuracy: float
    detail: str = ""


def rate_workers(crowd: Crowd, fitted: Aggregator) -> list[Verdict]:
    """Return a finding on every worker, in the order of the crowd.

    Copiers are found first, because their votes inflate the accuracy of their sources. The model is then refitted without
    them and rates the other workers.

    Parameters
    ----------
    crowd : Crowd
        Votes with worker ids.
    fitted : Aggregator
        Method with confusion matrices, fitted to the crowd.

    Returns
    -------
    list of Verdict

    Raises
    ------
    UsageError
        If the votes have no worker ids.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(400, workers={"expert": 6, "noisy": 6, "spammer": 2, "one-button": 1}, votes_per_task=5)
    >>> verdicts = rate_workers(simulation.crowd, DawidSkene().fit(simulation.crowd))
    >>> findings = {verdict.worker: verdict.finding for verdict in verdicts}
    >>> [findings[worker] for worker in simulation.kind.index[simulation.kind == "spammer"]]
    ['random', 'random']
    """
    if crowd.workers is None:
        raise UsageError("worker ratings need worker ids, and these votes have none; give votes with a worker column")
    work = dict(zip(crowd.workers, crowd.votes_per_worker.tolist(), strict=True))
    accuracy = fitted.workers_["accuracy"]
    verdicts = {
        copy.copier: Verdict(copy.copier, "copies", work[copy.copier], float(accuracy[copy.copier]), copy.describe())
        for copy in find_copiers(crowd, fitted)
    }
    if verdicts:
        crowd = crowd.select_workers([worker for worker in work if worker not in verdicts])
        fitted = fitted.clone_unfitted().fit(crowd)
    verdicts |= {verdict.worker: verdict for verdict in _judge_alone(crowd, fitted)}
    return [verdicts[worker] for worker in work]


def _judge_alone(crowd: Crowd, fitted: Aggregator) -> list[Verdict]:
    n_classes, workers, classes = crowd.n_classes, crowd.workers, crowd.classes
    assert workers is not None
    assert classes is not None
    true_share = fitted.posterior_.mean(axis=0)
    label_shares = _label_shares(crowd)
    favourite = (label_shares - true_share).argmax(axis=1)
    lean = _beyond(label_shares[np.arange(crowd.n_workers), favourite], true_share[favourite])
    accuracy = fitted.workers_["accuracy"].to_numpy()
    skill = _beyond(accuracy, 1 / n_classes)
    confusion = fitted.confusion_.copy()
    confusion[:, np.arange(n_classes), np.arange(n_classes)] = 0
    mistaken_for = confusion.argmax(axis=2)
    contrary = confusion.max(axis=2) @ true_share

    verdicts = []
    for worker in range(crowd.n_workers):
        n_votes = int(crowd.votes_per_worker[worker])
        share, button = label_shares[worker, favourite[worker]], classes[int(favourite[worker])]
        finding: Finding
        detail = ""
        if n_votes < MIN_VOTES:
            finding = "unknown"
        elif lean[worker] >= _ONE_ANSWER:
            finding, detail = "one answer", f"always says {button}" if share == 1 else f"says {button} in {share:.0%}"
        elif lean[worker] >= _LEANING:
            finding, detail = "leaning", f"says {button} in {share:.0%}"
        elif contrary[worker] > max(accuracy[worker], 0.5):
            clearest = int(confusion[worker].max(axis=1).argmax())
            finding, detail = "contrary", f"says {classes[mistaken_for[worker, clearest]]} for {classes[clearest]}"
        elif skill[worker] < _RANDOM:
            finding = "random"
        else:
            finding = "reliable" if skill[worker] >= _RELIABLE else "fallible"
        verdicts.append(Verdict(workers[worker], finding, n_votes, float(accuracy[worker]), detail))
    return verdicts


def _label_shares(crowd: Crowd) -> NDArray[np.float64]:
    """Return the share of each class among the votes of each worker."""
    assert crowd.worker is not None
    cell = crowd.worker.astype(np.int64) * crowd.n_classes + crowd.label
    count = np.bincount(cell, minlength=crowd.n_workers * crowd.n_classes).reshape(crowd.n_workers, -1)
    return count / np.maximum(count.sum(axis=1, keepdims=True), 1)


def _beyond(share: NDArray[np.float64], chance: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.asarray((share - chance) / np.maximum(1 - np.asarray(chance), 1e-12))


def describe(verdicts: Sequence[Verdict], n_classes: int) -> list[str]:
    """Return the findings as sentences, the most serious first.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Findings on all workers.
    n_classes : int
        Number of classes, which gives the accuracy of guessing.

    Returns
    -------
    list of str

    Examples
    --------
    >>> for line in describe([Verdict("w1", "random", 90, 0.1), Verdict("w2", "random", 80, 0.14),
    ...                       Verdict("w3", "reliable", 70, 0.93)], n_classes=10):
    ...     print(line)
    w1 and w2 answer at random: right in 10% to 14%, where guessing gives 10%.
    w3 (93%) can be trusted most.
    """
    of: dict[str, list[Verdict]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: -verdict.accuracy):
        of.setdefault(verdict.finding, []).append(verdict)

    def who(finding: Finding) -> list[Verdict]:
        return sorted(of.get(finding, []), key=lambda verdict: str(verdict.worker))

    lines = [f"{verdict.worker} {verdict.detail}." for verdict in who("copies")]
    if group := who("random"):
        verb = "answers" if len(group) == 1 else "answer"
        lines.append(
            f"{_names(group)} {verb} at random: right in {_range(group)}, where guessing gives {1 / n_classes:.0%}."
        )
    if group := who("one answer"):
        verb = "ignores" if len(group) == 1 else "ignore"
        lines.append(f"{_names(group)} {verb} the tasks: {_details(group)}.")
    if group := who("contrary"):
        verb = "is" if len(group) == 1 else "are"
        lines.append(f"{_names(group)} {verb} wrong in a regular way, so the votes still help: {_details(group)}.")
    if group := who("leaning"):
        verb = "favours" if len(group) == 1 else "favour"
        lines.append(f"{_names(group)} {verb} one answer: {_details(group)}.")
    if group := of.get("reliable", []):
        lines.append(f"{_joined([f'{one.worker} ({one.accuracy:.0%})' for one in group])} can be trusted most.")
    if group := who("fallible"):
        lines.append(f"The other {len(group)} make errors but help: right in {_range(group)}.")
    if group := who("unknown"):
        lines.append(f"{_names(group)}: fewer than {MIN_VOTES} votes, too few to tell.")
    return lines


def _names(group: Sequence[Verdict]) -> str:
    return _joined([str(verdict.worker) for verdict in group])


def _details(group: Sequence[Verdict]) -> str:
    return ", ".join(f"{verdict.worker} {verdict.detail}" for verdict in group)


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _range(group: Sequence[Verdict]) -> str:
    low, high = (f"{bound([verdict.accuracy for verdict in group]):.0%}" for bound in (min, max))
    return low if low == high else f"{low} to {high}"
