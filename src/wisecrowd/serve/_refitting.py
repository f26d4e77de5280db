"""Fits to all votes of a question, in a process of their own: a service that computes does not answer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.crowd import Crowd
from wisecrowd.live import Doubt, Known
from wisecrowd.serve._tables import Standing, Words, connect, read_standing, read_words, tidy

#: Up to so many votes, a fit also hides some to find out how sure it may be, and judges the workers one by one.
LOOKED_INTO = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
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
    #: None where nobody looked.
    look: Look | None = None


def stand_back() -> None:
    """Let this process leave the processor to the service, and end when the service does, however that ended."""
    with contextlib.suppress(OSError):
        os.nice(19)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


def crowd_of(standing: Standing, n_tasks: int, n_workers: int, n_classes: int, *, times: bool = False) -> Crowd:
    """The votes as a crowd over numbers; a worker's last vote on a task counts.

    >>> from wisecrowd.serve._tables import Standing
    >>> each = np.zeros(1, dtype=np.int32)
    >>> crowd_of(Standing(each, each, each, np.full(1, np.nan), {}), 2, 1, 2)
    Crowd(1 labels: 2 tasks x 1 workers, 2 classes, 0.5 labels/task)
    """
    return Crowd(
        standing.task, standing.worker, standing.label, tasks=range(n_tasks), workers=range(n_workers),
        classes=range(n_classes), time=standing.time if times else None, duplicates="last",
    )  # fmt: skip


def refit(url: str, question: int, method: Any, look: Look | None = None) -> Refit | None:
    """Fit a method to all that stands in a database; None where there are no votes. What was found by ``look`` is not sought."""
    from wisecrowd.errors import unwarned

    begun = time.perf_counter()
    engine = connect(url)
    try:
        standing = read_standing(engine, question)
        tidy(engine)
    finally:
        engine.dispose()
    if not len(standing.task):
        return None
    sizes = [int(max(codes.max(initial=-1), other)) + 1 for codes, other in (
        (standing.task, max(standing.gold, default=-1)), (standing.worker, -1),
        (standing.label, max(standing.gold.values(), default=-1)),
    )]  # fmt: skip
    crowd = crowd_of(standing, *sizes)
    with unwarned():
        fitted = method.fit(crowd, truth=standing.gold or None)
        doubt, belief, look = _looked_into(crowd, fitted, standing.gold, look)
    return Refit(
        known=Known.of(fitted, crowd, doubt, belief), n_votes=crowd.n_labels,
        n_iter=int(fitted.n_iter_), converged=bool(fitted.converged_), look=look,
        seconds=time.perf_counter() - begun,
    )  # fmt: skip


def _looked_into(
    crowd: Crowd, fitted: Any, gold: dict[int, int], look: Look | None
) -> tuple[Doubt | None, Any, Look | None]:
    """How sure one may be of each task, and who is probably a spammer, as `wisecrowd.diagnose.plan` has it."""
    from wisecrowd.diagnose._belief import ENOUGH, belief_of
    from wisecrowd.diagnose.workers import WorkerDiagnosis

    if not ENOUGH <= crowd.n_labels <= LOOKED_INTO or crowd.n_classes < 2 or crowd.labels_per_task.max() < 2:
        return None, None, None
    people = WorkerDiagnosis(crowd, fitted)
    belief, exponent = belief_of(people, exponent=None if look is None else look.exponent)
    if look is None:
        look = Look(exponent=exponent, kinds=people.kinds, n_votes=crowd.n_labels)
    for task, label in gold.items():
        belief[task] = np.eye(crowd.n_classes)[label]
    doubt = Doubt(
        prior=fitted.posterior_[crowd.labels_per_task > 0].mean(axis=0), toward=people.confusion,
        strength=people._strength, exponent=exponent, tally=people.tally,
    )  # fmt: skip
    return doubt, belief, look


def named_crowd(url: str, name: str) -> tuple[Crowd, dict[str, str]]:
    """The votes of a question under their names, and the truth that is known."""
    engine = connect(url)
    try:
        with engine.connect() as connection:
            words: Words = read_words(connection)[name]
        standing = read_standing(engine, words.code)
    finally:
        engine.dispose()
    crowd = crowd_of(standing, *map(len, words.kinds), times=bool(np.isfinite(standing.time).any()))
    triples = crowd.to_frame()
    for column, kind in zip(("task", "worker", "label"), words.kinds, strict=True):
        triples[column] = np.array(kind.names, dtype=object)[triples[column].to_numpy()]
    gold = {words.tasks.names[task]: words.classes.names[label] for task, label in standing.gold.items()}
    return Crowd.from_frame(triples), gold


def report_of(url: str, name: str, title: str) -> str:
    """The whole report on a question, as a page."""
    from wisecrowd import report
    from wisecrowd.errors import unwarned

    crowd, gold = named_crowd(url, name)
    with unwarned():
        return report.build(crowd, truth=gold or None, title=title).html
