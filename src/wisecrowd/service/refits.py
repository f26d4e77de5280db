"""Fits to all votes of a question. They run in a background process, so that the service keeps answering."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.method import allow_rare_classes
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.live import FitConfidence, FitSnapshot
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.evaluate.accuracy import CrowdCalibration
from wisecrowd.evaluate.confidence import compute_calibrated_posterior, estimate_confidence
from wisecrowd.service.database import (
    QuestionVocabulary,
    RecordColumns,
    checkpoint_wal,
    connect,
    read_records,
    read_vocabularies,
)

#: Numbers of votes between which a question is calibrated. Fewer tell nothing, and with more it would take too long.
MIN_CALIBRATION_VOTES, MAX_CALIBRATION_VOTES = 20, 2_000_000

#: Records that this process has read, by database and question, so that the next fit reads only later ones.
_RECORDS_CACHE: dict[tuple[str, int], RecordColumns] = {}

_NO_OUTCOMES = pd.DataFrame({"score": [], "label": [], "right": []}, dtype=np.float64)
#: Columns of the ratings of workers, without rows.
NO_WORKERS = pd.DataFrame(columns=["n_votes", "accuracy", "low", "high", "p_spammer", "p_adversary", "flags", "why"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Outcomes that calibrate the confidence, and ratings of the workers. They change slowly and take longer than a fit.

    Attributes
    ----------
    outcomes : DataFrame
        Gold tasks with the label that was inferred without their own truth: ``score``, ``label`` and ``right``.
    workers : DataFrame
        Table of `WorkerDiagnosis` with a row per worker code; no rows if no vote can be compared with another.
    n_votes : int
        Number of votes in the calibration.
    recommended_method : str or None
        Recommended method; None if there are too few votes to check it.
    warnings : tuple of str
        Reasons not to trust the labels.
    """

    outcomes: pd.DataFrame
    workers: pd.DataFrame
    n_votes: int
    recommended_method: str | None = None
    warnings: tuple[str, ...] = ()


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
    crowd_calibration : CrowdCalibration
        Calibration of the confidence, from which the accuracy is expected.
    """

    snapshot: FitSnapshot
    seconds: float
    n_votes: int
    n_iter: int
    converged: bool
    crowd_calibration: CrowdCalibration


def build_crowd(
    records: RecordColumns,
    n_tasks: int,
    n_workers: int,
    n_classes: int,
    *,
    with_times: bool = False,
    vocabulary: QuestionVocabulary | None = None,
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
    vocabulary : QuestionVocabulary, default=None
        Names of the question; without them, tasks, workers and classes are integers.

    Returns
    -------
    Crowd
        Crowd whose tasks, workers and classes are in the order of the vocabulary.

    Examples
    --------
    >>> build_crowd(RecordColumns.from_rows([(0, 0, 0, None, 1)]), 2, 1, 2).n_votes
    1
    """
    votes = records.votes
    names: tuple[Sequence[Any], ...] = (range(n_tasks), range(n_workers), range(n_classes))
    if vocabulary is not None:
        registries = (vocabulary.tasks, vocabulary.workers, vocabulary.classes)
        names = tuple(registry.names[: len(codes)] for registry, codes in zip(registries, names, strict=True))
    tasks, workers, classes = names
    return Crowd.from_codes(
        votes.task, votes.worker, votes.label, tasks=tasks, workers=workers, classes=classes,
        time=votes.time if with_times else None, duplicates="last",
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
        Outcomes of gold tasks; without it, the confidence rests on votes and public crowds.

    Returns
    -------
    Refit or None
        Result; None where the question has no votes.
    """
    started_at = time.perf_counter()
    crowd, gold = _read_crowd(url, question, cache=True)
    if crowd is None:
        return None
    # The store limits the classes. A refusal here would keep a service with stored votes from starting.
    with ignore_fit_warnings(), allow_rare_classes():
        fitted = method.clone_unfitted().fit(crowd, truth=gold or None)
        outcomes = _NO_OUTCOMES if calibration is None else calibration.outcomes
        estimate = estimate_confidence(fitted, crowd, truth=gold or None, outcomes=outcomes)
        assert estimate.counted_votes is not None
        confidence = FitConfidence(
            calibrated_posterior=compute_calibrated_posterior(estimate, fitted, crowd),
            confidence=estimate.confidence, score=estimate.score, counted_votes=estimate.counted_votes,
            calibration=estimate.calibration,
        )  # fmt: skip
    return Refit(
        snapshot=FitSnapshot.from_fit(fitted, crowd, confidence),
        crowd_calibration=estimate.calibration,
        n_votes=crowd.n_votes,
        n_iter=int(fitted.n_iter_),
        converged=bool(fitted.converged_),
        seconds=time.perf_counter() - started_at,
    )


def calibrate_question(url: str, question: int, method: ConfusionEM) -> Calibration | None:
    """Infer the labels of gold tasks without their own truth, rate the workers and check the labels.

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
        Calibration; None if there are no votes, or too many.
    """
    from wisecrowd.diagnose.assessment import CrowdAssessment

    engine = connect(url)
    try:
        with engine.connect() as connection:
            vocabularies = {part.code: part for part in read_vocabularies(connection).values()}
    finally:
        engine.dispose()
    crowd, gold_codes = _read_crowd(url, question, vocabulary=vocabularies.get(question))
    if crowd is None or crowd.n_votes > MAX_CALIBRATION_VOTES:
        return None
    assert crowd.classes is not None
    gold = {crowd.tasks[task]: crowd.classes[label] for task, label in gold_codes.items()} or None
    with ignore_fit_warnings(), allow_rare_classes():
        assessment = CrowdAssessment(crowd, method.clone_unfitted().fit(crowd, truth=gold), gold)
        outcomes = _NO_OUTCOMES if gold is None else assessment.labels.outcomes
        if crowd.n_votes < MIN_CALIBRATION_VOTES or crowd.n_classes < 2 or crowd.votes_per_task.max() < 2:
            return Calibration(outcomes=outcomes, workers=NO_WORKERS, n_votes=crowd.n_votes)
        return Calibration(
            outcomes=outcomes,
            workers=assessment.worker_table[list(NO_WORKERS)].reset_index(drop=True),
            n_votes=crowd.n_votes,
            recommended_method=assessment.recommended_method,
            warnings=assessment.warnings,
        )


def _read_crowd(
    url: str, question: int, *, cache: bool = False, vocabulary: QuestionVocabulary | None = None
) -> tuple[Crowd | None, dict[int, int]]:
    """Return the votes of a question as a crowd, and its gold labels; the crowd is None where there are no votes.

    With a vocabulary, the crowd has names, and times if votes have them.
    """
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
    has_times = vocabulary is not None and bool(np.isfinite(records.votes.time).any())
    return build_crowd(records, *sizes, with_times=has_times, vocabulary=vocabulary), records.gold


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
        Name of the method of the service.

    Returns
    -------
    str
        HTML page.
    """
    from wisecrowd import report

    crowd, gold = read_named_crowd(url, name)
    with ignore_fit_warnings():
        return report.build(crowd, gold=gold or None, title=title, model=method).html
