"""Fits to all votes of a question, in processes of their own: a service that computes does not answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.live import Doubt, Known
from wisecrowd.service.database_schema import QuestionVocabulary, Standing, connect, read_standing, read_words, tidy

#: Up to so many votes, some are hidden to find out how sure one may be, and the workers are judged one by one.
LOOKED_INTO = 2_000_000

#: What this process has read so far, by database and question: the next fit reads what came since.
_READ: dict[tuple[str, int], Standing] = {}


@dataclass(frozen=True)
class Models:
    """By which method a question is answered: while tasks have few votes, by one that needs no more.

    Most labelling begins with one vote on every task. A model with a matrix for each worker then puts whole crowds into one
    class: on LabelMe, with the first 254 votes on 231 tasks, Dawid–Skene is right on 14 % of them, and one-coin, like the
    votes themselves, on 72 %. When half of the tasks have two votes, it is level or better on most public crowds (``early``
    in benchmarks/serve.py).

    >>> from wisecrowd import DawidSkene, OneCoin
    >>> models = Models(DawidSkene(), OneCoin())
    >>> models.of(np.array([1, 1, 2])).name, models.of(np.array([1, 2, 2])).name
    ('one-coin', 'dawid-skene')
    """

    settled: ConfusionEM
    early: ConfusionEM | None = None

    def of(self, n_votes: NDArray[Any]) -> ConfusionEM:
        """For tasks with so many votes each."""
        voted = n_votes[n_votes > 0]
        return self.settled if self.early is None or 2 * (voted > 1).sum() >= len(voted) > 0 else self.early

    def fitted_to(self, crowd: Crowd, gold: dict[int, int]) -> ConfusionEM:
        """The one for a crowd, fitted to it."""
        return self.of(crowd.votes_per_task).fit(crowd, truth=gold or None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """What is found by hiding votes, and by judging workers one by one; it changes slowly, and takes longer than a fit."""

    #: The power to which posteriors foretell hidden votes best.
    exponent: float
    #: Probability that each worker is helpful, a spammer, an adversary: (workers, 3).
    kinds: NDArray[np.float64]
    n_votes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Refit:
    """What a fit to all votes of a question found."""

    known: Known
    seconds: float
    n_votes: int
    n_iter: int
    converged: bool


def crowd_of(standing: Standing, n_tasks: int, n_workers: int, n_classes: int, *, times: bool = False) -> Crowd:
    """The votes as a crowd over numbers; a worker's last vote on a task counts.

    >>> crowd_of(Standing.of([(0, 0, 0, None, 1)]), 2, 1, 2)
    Crowd(1 labels: 2 tasks x 1 workers, 2 classes, 0.5 labels/task)
    """
    votes = standing.votes
    return Crowd(
        votes.task, votes.worker, votes.label, tasks=range(n_tasks), workers=range(n_workers),
        classes=range(n_classes), time=votes.time if times else None, duplicates="last",
    )  # fmt: skip


def refit(url: str, question: int, models: Models, look: Calibration | None = None) -> Refit | None:
    """Fit to all that stands in a database, and be no surer of it than a look allows; None where there are no votes."""
    from wisecrowd.errors import unwarned

    begun = time.perf_counter()
    crowd, gold = _read(url, question, keep=True)
    if crowd is None:
        return None
    with unwarned():
        fitted = models.fitted_to(crowd, gold)
        doubt, belief = (None, None) if look is None else _doubted(crowd, fitted, gold, look)
    return Refit(
        known=Known.of(fitted, crowd, doubt, belief), n_votes=crowd.n_votes, n_iter=int(fitted.n_iter_),
        converged=bool(fitted.converged_), seconds=time.perf_counter() - begun,
    )  # fmt: skip


def look_into(url: str, question: int, models: Models) -> Calibration | None:
    """How sure one may be of all that stands in a database, as `wisecrowd.diagnose.plan` has it, and who is probably a spammer.

    None where votes are too few to hide some, or too many.
    """
    from wisecrowd.diagnose.workers import WorkerDiagnosis
    from wisecrowd.errors import unwarned
    from wisecrowd.plan.belief import ENOUGH, belief_of

    crowd, gold = _read(url, question)
    if crowd is None or not ENOUGH <= crowd.n_votes <= LOOKED_INTO:
        return None
    if crowd.n_classes < 2 or crowd.votes_per_task.max() < 2:
        return None
    with unwarned():
        people = WorkerDiagnosis(crowd, models.fitted_to(crowd, gold))
        return Calibration(exponent=belief_of(people)[1], kinds=people.kinds, n_votes=crowd.n_votes)


def _read(url: str, question: int, *, keep: bool = False) -> tuple[Crowd | None, dict[int, int]]:
    """All votes of a question as a crowd, and its gold; what is kept need not be read again."""
    engine = connect(url)
    try:
        standing = read_standing(engine, question, _READ.get((url, question)))
        tidy(engine)
    finally:
        engine.dispose()
    if keep:
        _READ[url, question] = standing
    if not (standing.worker >= 0).any():
        return None, {}
    sizes = (int(column.max()) + 1 for column in (standing.task, standing.worker, standing.label))
    return crowd_of(standing, *sizes), standing.gold


def _doubted(crowd: Crowd, fitted: Any, gold: dict[int, int], look: Calibration) -> tuple[Doubt, NDArray[np.float64]]:
    """How sure one may be of tasks to come, and of each that is there."""
    from wisecrowd.diagnose.workers import WorkerDiagnosis
    from wisecrowd.plan.belief import belief_of

    people = WorkerDiagnosis(crowd, fitted)
    belief, exponent = belief_of(people, exponent=look.exponent)
    for task, label in gold.items():
        belief[task] = np.eye(crowd.n_classes)[label]
    doubt = Doubt(
        prior=fitted.posterior_[crowd.votes_per_task > 0].mean(axis=0), toward=people.confusion,
        strength=people._strength, exponent=exponent, tally=people.tally,
    )  # fmt: skip
    return doubt, belief


def named_crowd(url: str, name: str) -> tuple[Crowd, dict[str, str]]:
    """The votes of a question under their names, and the truth that is known."""
    engine = connect(url)
    try:
        with engine.connect() as connection:
            words: QuestionVocabulary = read_words(connection)[name]
        standing = read_standing(engine, words.code)
    finally:
        engine.dispose()
    crowd = crowd_of(standing, *map(len, words.kinds), times=bool(np.isfinite(standing.votes.time).any()))
    triples = crowd.to_frame()
    for column, kind in zip(("task", "worker", "label"), words.kinds, strict=True):
        triples[column] = np.array(kind.names, dtype=object)[triples[column].to_numpy()]
    gold = {words.tasks.names[task]: words.classes.names[label] for task, label in standing.gold.items()}
    return Crowd.from_frame(triples), gold


def report_of(url: str, name: str, title: str, method: str) -> str:
    """The whole report on a question, as a page, by the method that it is answered by."""
    from wisecrowd import report
    from wisecrowd.errors import unwarned

    crowd, gold = named_crowd(url, name)
    with unwarned():
        return report.build(crowd, truth=gold or None, title=title, model=method).html
