"""Checks of the votes of a crowd. The time of every check is proportional to the number of votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import preview
from wisecrowd.io.tables.numeric_labels import find_suspect_numbers
from wisecrowd.io.tables.spellings import find_equal_numbers, find_number_forms
from wisecrowd.io.tables.text_labels import are_texts
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.findings import Finding, Severity
from wisecrowd.io.validation.id_checks import NORMALISE_FIX, check_ids
from wisecrowd.io.validation.mistake_checks import check_mistakes
from wisecrowd.io.vote_table import VoteTable
from wisecrowd.utils.text import count_noun

#: Votes from which a habit of a worker shows, and votes that a class needs to be learnt.
MIN_VOTES = 5
#: Votes of two workers that do not agree by chance if some of their tasks are disputed.
MIN_COPIED_VOTES = 20
#: Labels that stand for a missing answer.
_MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", "."})


def check_crowd(
    crowd: Crowd,
    *,
    repeats_allowed: bool,
    classes_listed: bool = False,
    can_normalise: bool = False,
    votes: VoteTable | None = None,
) -> Iterator[Finding]:
    """Check the votes of a crowd.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    repeats_allowed : bool
        Whether the user chose a rule for repeated votes.
    classes_listed : bool, default=False
        Whether the user or the file lists the classes.
    can_normalise : bool, default=False
        Whether the option ``normalise`` unifies spellings of ids and labels. It is an option for reading files.
    votes : VoteTable, optional
        Rows of the file, whose lines and columns the findings name.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "Cat"), ("t2", "bob", "dog")])
    >>> [finding.name for finding in check_crowd(crowd, repeats_allowed=True)]
    ['one-vote-workers', 'one-vote-tasks', 'labels-differ-by-case-or-space']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no votes")
        return
    yield from check_mistakes(crowd, votes, classes_listed=classes_listed, can_normalise=can_normalise)
    if crowd.worker is not None and crowd.workers is not None:
        yield from _check_repeats(crowd, crowd.worker, crowd.workers, repeats_allowed)
        yield from _check_workers(crowd, crowd.worker, crowd.workers)
        yield from _check_connections(crowd, crowd.worker)
    if crowd.has_workers:
        yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task)
    else:  # a row may stand for several votes
        yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task, once=None)
    yield from check_ids({"label": [crowd.classes], "id": [crowd.tasks, crowd.workers]}, can_normalise=can_normalise)
    yield from _check_equal_numbers(crowd, can_normalise)
    if crowd.classes is not None:
        yield from _check_classes(crowd, crowd.classes, classes_listed)


def make_number_finding(severity: Severity, numbers: Sequence[Any] | NDArray[Any] | pd.Index) -> Finding:
    """Make the finding for classes that are numbers.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
        Severity.
    numbers : sequence
        Suspect classes.

    Returns
    -------
    Finding
        Finding with advice.

    Examples
    --------
    >>> print(make_number_finding("error", [0.5, 0.7]))
    error    numeric-labels-as-classes: the labels are numbers, and each of the 2 would be a class of its own (0.5, 0.7)
             If they measure something: numeric=True (--numeric).
    """
    return Finding(
        name="numeric-labels-as-classes",
        severity=severity,
        count=len(numbers),
        examples=tuple(numbers[:3]),
        message=f"the labels are numbers, and each of the {len(numbers):,} would be a class of its own "
        f"({preview(numbers)})",
        fix="If they measure something: numeric=True (--numeric).",
        options={"numeric": True} if severity == "error" else {},
    )


def _check_equal_numbers(crowd: Crowd, can_normalise: bool) -> Iterator[Finding]:
    """Find labels and ids that are equal as numbers, and the workers who wrote the longer forms, such as 1.0."""
    for noun, index, codes in (
        ("label", crowd.classes, crowd.label),
        ("task", crowd.tasks, crowd.task),
        ("worker", crowd.workers, crowd.worker),
    ):
        equal = [] if index is None else find_equal_numbers(index)
        if index is None or codes is None or not equal:
            continue
        forms = find_number_forms(pa.array(equal)).to_pylist()
        longer = [text for text, form in zip(equal, forms, strict=True) if text != form]
        authors = ""
        if noun != "worker" and crowd.worker is not None and crowd.workers is not None:
            rows = np.isin(codes, index.get_indexer(pd.Index(longer)))
            workers = crowd.workers[np.unique(crowd.worker[rows])]
            verb = "gave" if noun == "label" else "voted on"
            authors = f"; {count_noun(len(workers), 'worker')} {verb} {preview(longer)} ({preview(workers)})"
        yield Finding(
            name=f"{noun if noun == 'label' else 'id'}s-equal-as-numbers",
            severity="warning",
            count=len(equal),
            examples=tuple(equal[:3]),
            message=f"{count_noun(len(equal), noun if noun == 'label' else noun + ' id')} are equal as numbers, but count as "
            f"different ({preview(equal)}){authors}",
            fix=NORMALISE_FIX if can_normalise else "If they mean the same, write all of them in the shortest form.",
            options={"normalise": True} if can_normalise else {},
        )


def _check_repeats(
    crowd: Crowd, worker: NDArray[np.int32], workers: pd.Index, repeats_allowed: bool
) -> Iterator[Finding]:
    # Votes are sorted by task, worker and label.
    is_repeat = (np.diff(crowd.task) == 0) & (np.diff(worker) == 0)
    is_same_label = np.diff(crowd.label) == 0
    for name, mask, noun, description, rule, fix in (
        ("duplicate-votes", is_repeat & is_same_label, "repeated vote",
         "the same worker's same answer to the same task", "distinct",
         'duplicates="distinct" counts each answer once, "keep" all of them (--duplicates distinct).'),
        ("conflicting-votes", is_repeat & ~is_same_label, "conflicting vote",
         "the same worker's other answer to the same task", "last",
         'duplicates="first" or "last" keeps one, "keep" all of them (--duplicates last).'),
    ):  # fmt: skip
        rows = np.flatnonzero(mask)
        if rows.size:
            examples = [(crowd.tasks[crowd.task[row]], workers[worker[row]]) for row in rows[:3]]
            listed = "; ".join(f"task {preview([task])} by {preview([worker_id])}" for task, worker_id in examples)
            yield Finding(
                name=name,
                severity="note" if repeats_allowed else "error",
                count=rows.size,
                examples=tuple(examples),
                message=f"{count_noun(rows.size, noun)}, {description} ({listed})",
                fix="" if repeats_allowed else f"Choose a rule: {fix}",
                options={} if repeats_allowed else {"duplicates": rule},
            )


def _check_workers(crowd: Crowd, worker: NDArray[np.int32], workers: pd.Index) -> Iterator[Finding]:
    yield from check_votes_per_worker(workers, crowd.votes_per_worker)
    constant = workers[_find_constant_workers(crowd, worker)]
    if len(constant):
        yield Finding(
            name="one-answer-workers",
            severity="warning",
            count=len(constant),
            examples=tuple(constant[:3]),
            message=f"{count_noun(len(constant), 'worker')} always gave one answer, to tasks on which others gave several "
            f"({preview(constant)})",
            fix="Inspect them, or use a method that models workers, such as dawid-skene: it gives them little weight.",
        )
    copies = _find_identical_workers(crowd, worker)
    if copies.size:
        yield Finding(
            name="identical-workers",
            severity="warning",
            count=copies.size,
            examples=tuple(workers[copies[:3]]),
            message=f"{count_noun(copies.size, 'worker')} gave exactly the same answers to the same tasks as another, although "
            f"others disagree ({preview(workers[copies])})",
            fix="Check whether they are one person, or prompts of one model. wisecrowd diagnose shows more, and the method "
            "panel counts workers of one group as one.",
        )


def _find_identical_workers(crowd: Crowd, worker: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return workers with many votes that are all the same as those of another, although others disagree."""
    n_votes, n_workers = crowd.votes_per_worker, len(crowd.votes_per_worker)
    label, _ = pd.factorize(crowd.label)
    cell, _ = pd.factorize(crowd.task.astype(np.int64) * (int(label.max(initial=0)) + 1) + label)
    # The sum of a random number per (task, label) identifies a set of votes.
    random_number = np.random.default_rng(0).random(int(cell.max(initial=-1)) + 1)
    fingerprint = np.bincount(worker, random_number[cell], minlength=n_workers)
    # Workers who always give the same label may be equal without copying.
    label_sum = np.bincount(worker, label, minlength=n_workers)
    is_varied = label_sum**2 != n_votes * np.bincount(worker, label.astype(float) ** 2, minlength=n_workers)
    candidates = np.flatnonzero((n_votes >= MIN_COPIED_VOTES) & is_varied)
    _, group, group_size = np.unique(fingerprint[candidates], return_inverse=True, return_counts=True)
    n_agreeing = np.bincount(worker, np.bincount(cell)[cell] - 1, minlength=n_workers)[candidates]
    n_others = np.bincount(worker, crowd.votes_per_task[crowd.task] - 1, minlength=n_workers)[candidates]
    return np.asarray(candidates[(group_size[group] > 1) & (n_others - n_agreeing >= MIN_VOTES)])


def _find_constant_workers(crowd: Crowd, worker: NDArray[np.int32], max_agreement: float = 2 / 3) -> NDArray[np.bool_]:
    """Return a mask of workers who always give one label, with which less than a share of other votes agrees."""
    n_votes = crowd.votes_per_worker
    active = np.flatnonzero(n_votes)
    label, start = crowd.label[crowd.worker_order], (np.cumsum(n_votes) - n_votes)[active]
    is_constant = np.zeros(len(n_votes), dtype=bool)
    is_constant[active] = np.minimum.reduceat(label, start) == np.maximum.reduceat(label, start)
    is_constant &= n_votes >= MIN_VOTES
    is_relevant = np.zeros(crowd.n_tasks, dtype=bool)
    is_relevant[crowd.task[is_constant[worker]]] = True
    rows = np.flatnonzero(is_relevant[crowd.task])  # usually few, so other tasks are left out
    codes, labels = pd.factorize(crowd.label[rows])
    cell, _ = pd.factorize(crowd.task[rows].astype(np.int64) * max(len(labels), 1) + codes)
    n_agreeing = np.bincount(worker[rows], weights=np.bincount(cell)[cell] - 1.0, minlength=len(n_votes))
    n_others = np.bincount(worker[rows], weights=crowd.votes_per_task[crowd.task[rows]] - 1.0, minlength=len(n_votes))
    return is_constant & (n_agreeing < max_agreement * n_others)


def _check_connections(crowd: Crowd, worker: NDArray[np.int32]) -> Iterator[Finding]:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n_nodes = crowd.n_tasks + len(crowd.votes_per_worker)
    ends = (crowd.task, worker + np.int32(crowd.n_tasks))
    graph = sparse.coo_array((np.ones(crowd.n_votes, dtype=bool), ends), shape=(n_nodes, n_nodes))
    component = connected_components(graph, directed=False)[1][: crowd.n_tasks]
    has_votes = crowd.votes_per_task > 0
    sizes = np.bincount(component[has_votes])
    outside = crowd.tasks[has_votes & (component != sizes.argmax())]
    if len(outside):
        yield Finding(
            name="disconnected-graph",
            severity="warning",
            count=int(np.count_nonzero(sizes)),
            examples=tuple(outside[:3]),
            message=f"workers and tasks form {np.count_nonzero(sizes):,} groups that no vote connects, with "
            f"{count_noun(len(outside), 'task')} outside the largest ({preview(outside)}); workers of different groups "
            "cannot be compared",
            fix="Have some tasks labelled by workers of several groups.",
        )


def _check_classes(crowd: Crowd, classes: pd.Index, classes_listed: bool) -> Iterator[Finding]:
    n_votes = np.bincount(crowd.label, minlength=len(classes))
    used, unused = classes[n_votes > 0], classes[n_votes == 0]
    rare = classes[(n_votes > 0) & (n_votes < MIN_VOTES)]
    if len(used) == 1:
        yield Finding(
            name="single-class",
            severity="warning",
            count=1,
            examples=tuple(used),
            message=f"every vote is {preview(used)}, so there is nothing to decide",
            fix="If there are other classes, name all of them: classes=[...] (--classes A,B,…)."
            if not len(unused)
            else "",
        )
    if len(unused):
        yield Finding(
            name="unused-classes",
            severity="note",
            count=len(unused),
            examples=tuple(unused[:3]),
            message=f"{len(unused):,} of {len(classes):,} classes have no votes ({preview(unused)})",
        )
    if len(rare) and crowd.n_votes >= 20 * MIN_VOTES:
        yield Finding(
            name="rare-class",
            severity="note",
            count=len(rare),
            examples=tuple(rare[:3]),
            message=f"{len(rare):,} of {len(classes):,} classes have fewer than {MIN_VOTES} votes ({preview(rare)}), too few "
            "to learn their confusions",
        )
    suspects = used[:0] if classes_listed else find_suspect_numbers(used)
    if len(suspects):
        yield make_number_finding("warning", suspects)
    if not classes_listed and are_texts(used, len(used), crowd.n_votes):
        yield Finding(
            name="labels-look-like-texts",
            severity="warning",
            count=len(used),
            examples=tuple(used[:3]),
            message=f"{len(used):,} of {crowd.n_votes:,} labels are different, and most have several words, but each counts as a "
            f"class ({preview(used)})",
            fix="If they are texts, such as captions, rename the column of labels to text.",
        )
    missing_words = [text for text in used if isinstance(text, str) and text.strip().lower() in _MISSING_WORDS]
    if missing_words:
        yield Finding(
            name="labels-look-missing",
            severity="warning",
            count=len(missing_words),
            examples=tuple(missing_words[:3]),
            message=f"{count_noun(len(missing_words), 'label')} may stand for a missing answer, but count as a class "
            f"({preview(missing_words)})",
            fix="If they mean that there is no answer, leave those rows out.",
        )
