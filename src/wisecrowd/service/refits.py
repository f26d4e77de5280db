"""Fits to all votes of a question. They run in a background process, so that the service keeps answering."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.live import FitSnapshot, PosteriorTempering
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.service.database import RecordColumns, checkpoint_wal, connect, read_records, read_vocabularies

#: Largest number of votes with which a calibration finishes in reasonable time.
MAX_CALIBRATION_VOTES = 2_000_000

#: Records that this process has read, by database and question, so that the next fit reads only later ones.
_RECORDS_CACHE: dict[tuple[str, int], RecordColumns] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Calibration of the posterior and kinds of the workers. It changes slowly and takes longer than a fit.

    Attributes
    ----------
    exponent : float
        Power of the posterior that predicts held-out votes best.
    worker_kinds : ndarray of shape (n_workers, 3)
        Probability that each worker is helpful, a spammer or an adversary.
    n_votes : int
        Number of votes in the calibration.
    """

    exponent: float
    worker_kinds: NDArray[np.float64]
    n_votes: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Refit:
    """Result of a fit to all votes of a question.

    Attributes
    ----------
    snapshot : FitSnapshot
        State for incremental updates.
    seconds : float
        Duration of the fit.
    n_votes : int
        Number of votes.
    n_iter : int
        Number of EM iterations.
    converged : bool
        Whether EM converged.
    """

    snapshot: FitSnapshot
    seconds: float
    n_votes: int
    n_iter: int
    converged: bool


def build_crowd(
    records: RecordColumns, n_tasks: int, n_workers: int, n_classes: int, *, with_times: bool = False
) -> Crowd:
    """Build a crowd from the votes of a question. The last vote of a worker on a task counts.

    Parameters
    ----------
    records : RecordColumns
        Records of the question.
    n_tasks, n_workers, n_classes : int
        Size of the vocabulary.
    with_times : bool, default=False
        Whether the crowd has the times of the votes.

    Returns
    -------
    Crowd
        Crowd whose tasks, workers and classes are integers.

    Examples
    --------
    >>> build_crowd(RecordColumns.from_rows([(0, 0, 0, None, 1)]), 2, 1, 2).n_votes
    1
    """
    votes = records.votes
    return Crowd.from_codes(
        votes.task, votes.worker, votes.label, tasks=range(n_tasks), workers=range(n_workers),
        classes=range(n_classes), time=votes.time if with_times else None, duplicates="last",
    )  # fmt: skip


def refit_question(
    url: str, question: int, method: ConfusionEM, calibration: Calibration | None = None
) -> Refit | None:
    """Fit the method of a question to all votes in the database.

    Parameters
    ----------
    url : str
        Database.
    question : int
        Number of the question.
    method : ConfusionEM
        Unfitted method.
    calibration : Calibration, default=None
        Calibration of the posterior; without it, tasks have no confidence.

    Returns
    -------
    Refit or None
        Result; None where the question has no votes.
    """
    started_at = time.perf_counter()
    crowd, gold = _read_crowd(url, question, cache=True)
    if crowd is None:
        return None
    with ignore_fit_warnings():
        fitted = method.clone_unfitted().fit(crowd, truth=gold or None)
        if calibration is None:
            snapshot = FitSnapshot.from_fit(fitted, crowd)
        else:
            snapshot = FitSnapshot.from_fit(fitted, crowd, *_calibrate_posterior(crowd, fitted, gold, calibration))
    return Refit(
        snapshot=snapshot,
        n_votes=crowd.n_votes,
        n_iter=int(fitted.n_iter_),
        converged=bool(fitted.converged_),
        seconds=time.perf_counter() - started_at,
    )


def calibrate_question(url: str, question: int, method: ConfusionEM) -> Calibration | None:
    """Calibrate the posterior of a question by held-out votes, and estimate the kinds of its workers.

    Parameters
    ----------
    url : str
        Database.
    question : int
        Number of the question.
    method : ConfusionEM
        Unfitted method.

    Returns
    -------
    Calibration or None
        Calibration; None where the crowd has too few votes to hold some out, or too many.
    """
    from wisecrowd.diagnose.workers import WorkerDiagnosis
    from wisecrowd.plan.belief import MIN_VOTES_TO_TEMPER, compute_belief

    crowd, gold = _read_crowd(url, question)
    if crowd is None or not MIN_VOTES_TO_TEMPER <= crowd.n_votes <= MAX_CALIBRATION_VOTES:
        return None
    if crowd.n_classes < 2 or crowd.votes_per_task.max() < 2:
        return None
    with ignore_fit_warnings():
        workers = WorkerDiagnosis(crowd, method.clone_unfitted().fit(crowd, truth=gold or None))
        return Calibration(exponent=compute_belief(workers)[1], worker_kinds=workers.type_probs, n_votes=crowd.n_votes)


def _read_crowd(url: str, question: int, *, cache: bool = False) -> tuple[Crowd | None, dict[int, int]]:
    """Return the votes of a question as a crowd, and its gold labels; the crowd is None where there are no votes."""
    engine = connect(url)
    try:
        records = read_records(engine, question, _RECORDS_CACHE.get((url, question)))
        checkpoint_wal(engine)
    finally:
        engine.dispose()
    if cache:
        _RECORDS_CACHE[url, question] = records
    if not (records.worker >= 0).any():
        return None, {}
    sizes = (int(column.max()) + 1 for column in (records.task, records.worker, records.label))
    return build_crowd(records, *sizes), records.gold


def _calibrate_posterior(
    crowd: Crowd, fitted: Any, gold: dict[int, int], calibration: Calibration
) -> tuple[PosteriorTempering, NDArray[np.float64]]:
    """Return the parameters that calibrate later votes, and the calibrated posterior of all tasks."""
    from wisecrowd.diagnose.workers import WorkerDiagnosis
    from wisecrowd.plan.belief import compute_belief

    workers = WorkerDiagnosis(crowd, fitted)
    tempered_posterior, exponent = compute_belief(workers, exponent=calibration.exponent)
    for task, label in gold.items():
        tempered_posterior[task] = 0
        tempered_posterior[task, label] = 1
    tempering = PosteriorTempering(
        prior=fitted.posterior_[crowd.votes_per_task > 0].mean(axis=0), confusion=workers.confusion,
        strength=workers.prior_strength, exponent=exponent, tally=workers.tally,
    )  # fmt: skip
    return tempering, tempered_posterior


def read_named_crowd(url: str, name: str) -> tuple[Crowd, dict[str, str]]:
    """Read the votes of a question with their names.

    Parameters
    ----------
    url : str
        Database.
    name : str
        Name of the question.

    Returns
    -------
    crowd : Crowd
        Votes.
    gold : dict of str to str
        True class of each gold task.
    """
    engine = connect(url)
    try:
        with engine.connect() as connection:
            vocabulary = read_vocabularies(connection)[name]
        records = read_records(engine, vocabulary.code)
    finally:
        engine.dispose()
    has_times = bool(np.isfinite(records.votes.time).any())
    frame = build_crowd(records, *vocabulary.sizes, with_times=has_times).to_frame()
    registries = {"task": vocabulary.tasks, "worker": vocabulary.workers, "label": vocabulary.classes}
    for column, registry in registries.items():
        frame[column] = np.array(registry.names, dtype=object)[frame[column].to_numpy()]
    tasks, classes = vocabulary.tasks.names, vocabulary.classes.names
    return Crowd.from_frame(frame), {tasks[task]: classes[label] for task, label in records.gold.items()}


def build_report(url: str, name: str, title: str, method: str) -> str:
    """Build the report on a question.

    Parameters
    ----------
    url : str
        Database.
    name : str
        Name of the question.
    title : str
        Title of the report.
    method : str
        Name of the method that rates workers and tasks.

    Returns
    -------
    str
        HTML page.
    """
    from wisecrowd import report

    crowd, gold = read_named_crowd(url, name)
    with ignore_fit_warnings():
        return report.build(crowd, truth=gold or None, title=title, model=method).html
