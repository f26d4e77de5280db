"""Checks of label sets. The time of every check is proportional to the number of marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.errors import preview
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.crowd_checks import MIN_VOTES
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun


def check_label_sets(crowd: LabelSetCrowd) -> Iterator[Finding]:
    """Check label sets.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> votes = {"task": ["t1", "t1", "t2"], "worker": ["ann", "bob", "bob"], "labels": ["cat|pet", "cat", "Cat"]}
    >>> [finding.name for finding in check_label_sets(LabelSetCrowd.from_frame(votes))]
    ['one-vote-workers', 'one-vote-tasks', 'labels-differ-by-case-or-space']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no votes")
        return
    yield from _check_workers(crowd)
    yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task)
    yield from _check_labels(crowd)
    yield from check_ids({"label": [crowd.labels], "id": [crowd.tasks, crowd.workers]})


def _check_workers(crowd: LabelSetCrowd) -> Iterator[Finding]:
    workers = crowd.workers
    yield from check_votes_per_worker(workers, crowd.votes_per_worker)
    set_size = np.diff(crowd.offset)
    is_constant, mean_size = find_constant_workers(crowd), np.bincount(crowd.worker, set_size, len(workers))
    for name, mask, description in (
        ("empty-set-workers", is_constant & (mean_size == 0), "never marked a label, on tasks on which others marked some"),
        ("one-answer-workers", is_constant & (mean_size > 0), "always marked the same labels, on tasks on which others differ"),
    ):  # fmt: skip
        constant = workers[mask]
        if len(constant):
            yield Finding(
                name=name,
                severity="warning",
                count=len(constant),
                examples=tuple(constant[:3]),
                message=f"{count_noun(len(constant), 'worker')} {description} ({preview(constant)})",
                fix="Inspect them, or use a method that models workers, such as label-set-mixture: it gives them little weight.",
            )


def find_constant_workers(crowd: LabelSetCrowd, max_agreement: float = 2 / 3) -> NDArray[np.bool_]:
    """Find workers who always mark one set, although others differ.

    Parameters
    ----------
    crowd : LabelSetCrowd
        Votes.
    max_agreement : float, default=2/3
        Share of the other sets on the same tasks, from which on they confirm the worker.

    Returns
    -------
    ndarray of shape (n_workers,)
        Mask.
    """
    set_code, offset, _ = crowd.distinct_sets
    n_sets = len(offset) - 1
    _, cell = np.unique(crowd.task.astype(np.int64) * n_sets + set_code, return_inverse=True)
    n_workers = crowd.n_workers
    n_agreeing = np.bincount(crowd.worker, np.bincount(cell)[cell] - 1.0, n_workers)
    n_others = np.bincount(crowd.worker, crowd.votes_per_task[crowd.task] - 1.0, n_workers)
    low, high = np.full(n_workers, n_sets), np.full(n_workers, -1)
    np.minimum.at(low, crowd.worker, set_code)
    np.maximum.at(high, crowd.worker, set_code)
    return np.asarray((low == high) & (crowd.votes_per_worker >= MIN_VOTES) & (n_agreeing < max_agreement * n_others))


def _check_labels(crowd: LabelSetCrowd) -> Iterator[Finding]:
    n_marks = np.bincount(crowd.label, minlength=crowd.n_labels)
    unmarked, constant = crowd.labels[n_marks == 0], crowd.labels[n_marks == crowd.n_votes]
    rare = crowd.labels[(n_marks > 0) & (n_marks < MIN_VOTES)]
    if len(crowd.label) == 0:
        yield Finding(
            name="no-marks", severity="warning", count=1, message="every set is empty, so there is nothing to decide"
        )
        return
    if len(constant) and crowd.n_votes >= MIN_VOTES:
        yield Finding(
            name="always-marked-labels",
            severity="note",
            count=len(constant),
            examples=tuple(constant[:3]),
            message=f"{count_noun(len(constant), 'label')} in every set ({preview(constant)}), so that nothing is to be decided",
        )
    if len(unmarked):
        yield Finding(
            name="unused-labels",
            severity="note",
            count=len(unmarked),
            examples=tuple(unmarked[:3]),
            message=f"{len(unmarked):,} of {count_noun(crowd.n_labels, 'label')} are never marked ({preview(unmarked)})",
        )
    if len(rare) and crowd.n_votes >= 20 * MIN_VOTES:
        yield Finding(
            name="rare-labels",
            severity="note",
            count=len(rare),
            examples=tuple(rare[:3]),
            message=f"{len(rare):,} of {count_noun(crowd.n_labels, 'label')} have fewer than {MIN_VOTES} marks "
            f"({preview(rare)}), too few to learn how reliably they are marked",
        )
