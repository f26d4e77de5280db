"""What can be seen in the votes themselves; every check takes time in proportion to the votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import some
from wisecrowd.io.tables.numerals import suspect_numbers
from wisecrowd.io.validation.findings import Finding, Severity
from wisecrowd.utils.text import count_noun

#: A worker's habit shows after this many votes, and a class can be learnt from as many.
ENOUGH_VOTES = 5
#: So many votes are not the same as another's by chance, where some of them are disputed.
MANY_VOTES = 20
#: Words that people write when they have no answer.
_NO_ANSWER = frozenset({"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", "-", "."})


def check_crowd(crowd: Crowd, *, settled: bool, named: bool = False) -> Iterator[Finding]:
    """Everything about a crowd; ``settled`` says that repeated votes are in it by somebody's choice, ``named`` that
    somebody listed the classes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "Cat"), ("t2", "bob", "dog")])
    >>> [finding.name for finding in check_crowd(crowd, settled=True)]
    ['one-vote-workers', 'one-vote-tasks', 'labels-differ-by-case-or-space']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there is not one vote")
        return
    if crowd.worker is not None and crowd.workers is not None:
        yield from _repeats(crowd, crowd.worker, crowd.workers, settled)
        yield from _about_workers(crowd, crowd.worker, crowd.workers)
        yield from _groups(crowd, crowd.worker)
    yield from _about_tasks(crowd)
    yield from _alike("labels-differ-by-case-or-space", "label", [crowd.classes])
    yield from _alike("ids-differ-by-case-or-space", "id", [crowd.tasks, crowd.workers])
    yield from _line_breaks([crowd.tasks, crowd.workers, crowd.classes])
    if crowd.classes is not None:
        yield from _about_classes(crowd, crowd.classes, named)


def numbers_as_classes(severity: Severity, numbers: Any) -> Finding:
    """What to say of labels that are numbers.

    >>> print(numbers_as_classes("error", [0.5, 0.7]))
    error    numeric-labels-as-classes: the labels are numbers, and each of the 2 would be a class of its own (0.5, 0.7)
             If they measure something: numeric=True (--numeric).
    """
    return Finding(
        name="numeric-labels-as-classes",
        severity=severity,
        count=len(numbers),
        examples=tuple(numbers[:3]),
        message=f"the labels are numbers, and each of the {len(numbers):,} would be a class of its own ({some(numbers)})",
        fix="If they measure something: numeric=True (--numeric).",
    )


def _repeats(crowd: Crowd, worker: NDArray[np.int32], workers: pd.Index, settled: bool) -> Iterator[Finding]:
    # Rows come sorted by task, worker and label.
    again = (np.diff(crowd.task) == 0) & (np.diff(worker) == 0)
    same = np.diff(crowd.label) == 0
    for name, rows, noun, what, fix in (
        ("duplicate-votes", again & same, "repeated vote", "the same worker's same answer to the same task",
         'duplicates="distinct" counts each answer once, "keep" all of them (--duplicates distinct).'),
        ("conflicting-votes", again & ~same, "conflicting vote", "the same worker's other answer to the same task",
         'duplicates="first" or "last" keeps one, "keep" all of them (--duplicates last).'),
    ):  # fmt: skip
        found = np.flatnonzero(rows)
        if found.size:
            examples = [(crowd.tasks[crowd.task[row]], workers[worker[row]]) for row in found[:3]]
            shown = "; ".join(f"task {some([task])} by {some([who])}" for task, who in examples)
            yield Finding(
                name=name,
                severity="note" if settled else "error",
                count=found.size,
                examples=tuple(examples),
                message=f"{count_noun(found.size, noun)}, {what} ({shown})",
                fix="" if settled else f"Say what to do: {fix}",
            )


def _about_workers(crowd: Crowd, worker: NDArray[np.int32], workers: pd.Index) -> Iterator[Finding]:
    votes = crowd.votes_per_worker
    used, once = np.flatnonzero(votes), workers[votes == 1]
    if used.size == 1:
        yield Finding(
            name="single-worker",
            severity="warning",
            count=1,
            examples=tuple(workers[used]),
            message=f"all votes are by {some(workers[used])}, so nobody can be compared with anybody",
        )
    if len(once):
        yield Finding(
            name="one-vote-workers",
            severity="warning" if len(once) > used.size / 2 else "note",
            count=len(once),
            examples=tuple(once[:3]),
            message=f"{len(once):,} of {count_noun(used.size, 'worker')} voted once, which does not show how good they are "
            f"({some(once)})",
        )
    stuck = workers[_one_answer(crowd, worker)]
    if len(stuck):
        yield Finding(
            name="one-answer-workers",
            severity="warning",
            count=len(stuck),
            examples=tuple(stuck[:3]),
            message=f"{count_noun(len(stuck), 'worker')} always gave one answer, to tasks on which others gave several "
            f"({some(stuck)})",
            fix="Look at them, or use a method that models workers, such as dawid-skene: it gives them little weight.",
        )

    twins = _identical(crowd, worker)
    if twins.size:
        shown = some(workers[twins])
        yield Finding(
            name="identical-workers",
            severity="warning",
            count=twins.size,
            examples=tuple(workers[twins[:3]]),
            message=f"{count_noun(twins.size, 'worker')} gave the very same answers to the very same tasks as another, where others "
            f"gave different ones ({shown})",
            fix="Look whether they are one person, or prompts of one model; wisecrowd diagnose tells more, and the method panel "
            "counts who belongs together as one.",
        )


def _identical(crowd: Crowd, worker: NDArray[np.int32]) -> NDArray[np.intp]:
    """Workers of whom another has the same votes, many of them, from which some votes of others differ."""
    votes, n = crowd.votes_per_worker, len(crowd.votes_per_worker)
    said, _ = pd.factorize(crowd.label)
    cell, _ = pd.factorize(crowd.task.astype(np.int64) * (int(said.max(initial=0)) + 1) + said)
    mark = np.random.default_rng(0).random(int(cell.max(initial=-1)) + 1)
    total = np.bincount(worker, mark[cell], minlength=n)  # the same for the same votes, and hardly ever for others
    # Two who press one button need not know of each other.
    varied = np.bincount(worker, said, minlength=n) ** 2 != votes * np.bincount(
        worker, said.astype(float) ** 2, minlength=n
    )
    many = np.flatnonzero((votes >= MANY_VOTES) & varied)
    _, same, size = np.unique(total[many], return_inverse=True, return_counts=True)
    alike = np.bincount(worker, np.bincount(cell)[cell] - 1, minlength=n)[many]
    others = np.bincount(worker, crowd.votes_per_task[crowd.task] - 1, minlength=n)[many]
    return np.asarray(many[(size[same] > 1) & (others - alike >= ENOUGH_VOTES)])


def _one_answer(crowd: Crowd, worker: NDArray[np.int32], agreement: float = 2 / 3) -> NDArray[np.bool_]:
    """Workers of one answer, given often enough, with which fewer than this share of the others' votes agree."""
    votes = crowd.votes_per_worker
    used = np.flatnonzero(votes)
    label, start = crowd.label[crowd.worker_order], (np.cumsum(votes) - votes)[used]
    suspect = np.zeros(len(votes), dtype=bool)
    suspect[used] = np.minimum.reduceat(label, start) == np.maximum.reduceat(label, start)
    suspect &= votes >= ENOUGH_VOTES
    touched = np.zeros(crowd.n_tasks, dtype=bool)
    touched[crowd.task[suspect[worker]]] = True
    rows = np.flatnonzero(touched[crowd.task])  # no other tasks matter, and mostly these are few
    said, kinds = pd.factorize(crowd.label[rows])
    same, _ = pd.factorize(crowd.task[rows].astype(np.int64) * max(len(kinds), 1) + said)
    agreeing = np.bincount(worker[rows], weights=np.bincount(same)[same] - 1.0, minlength=len(votes))
    others = np.bincount(worker[rows], weights=crowd.votes_per_task[crowd.task[rows]] - 1.0, minlength=len(votes))
    return suspect & (agreeing < agreement * others)


def _groups(crowd: Crowd, worker: NDArray[np.int32]) -> Iterator[Finding]:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n = crowd.n_tasks + len(crowd.votes_per_worker)
    ends = (crowd.task, worker + np.int32(crowd.n_tasks))
    links = sparse.coo_array((np.ones(crowd.n_votes, dtype=bool), ends), shape=(n, n))
    group = connected_components(links, directed=False)[1][: crowd.n_tasks]
    voted = crowd.votes_per_task > 0
    sizes = np.bincount(group[voted])
    outside = crowd.tasks[voted & (group != sizes.argmax())]
    if len(outside):
        yield Finding(
            name="disconnected-graph",
            severity="warning",
            count=int(np.count_nonzero(sizes)),
            examples=tuple(outside[:3]),
            message=f"workers and tasks fall into {np.count_nonzero(sizes):,} groups that no vote links, with "
            f"{count_noun(len(outside), 'task')} outside the largest ({some(outside)}); workers of different groups "
            "cannot be compared",
            fix="Have some tasks labelled by workers of several groups.",
        )


def _about_tasks(crowd: Crowd) -> Iterator[Finding]:
    votes = crowd.votes_per_task
    none, once = crowd.tasks[votes == 0], crowd.tasks[votes == 1]
    voted = len(votes) - len(none)
    if len(none):
        yield Finding(
            name="no-vote-tasks",
            severity="note",
            count=len(none),
            examples=tuple(none[:3]),
            message=f"{len(none):,} of {count_noun(len(votes), 'task')} have no vote ({some(none)})",
        )
    if len(once) and crowd.has_workers:  # without worker ids, a row may stand for many votes
        yield Finding(
            name="one-vote-tasks",
            severity="warning" if len(once) > voted / 2 else "note",
            count=len(once),
            examples=tuple(once[:3]),
            message=f"{len(once):,} of {count_noun(voted, 'task')} have one vote, which no other confirms ({some(once)})",
        )


def _alike(name: str, noun: str, indexes: list[pd.Index | None]) -> Iterator[Finding]:
    alike = [text for index in indexes if index is not None for text in same_but_for_case_or_space(index)]
    if alike:
        yield Finding(
            name=name,
            severity="warning",
            count=len(alike),
            examples=tuple(alike[:3]),
            message=f"{count_noun(len(alike), noun)} differ only by case or space, and count as different ({some(alike)})",
            fix="If they are the same, make them so, for example by df[column].str.strip().str.lower().",
        )


def same_but_for_case_or_space(index: pd.Index) -> list[str]:
    """The ids that another id equals but for capitals and spaces, like ones together.

    >>> same_but_for_case_or_space(pd.Index(["Cat", "dog", "cat "]))
    ['Cat', 'cat ']
    """
    if index.inferred_type != "string":
        return []
    bare = pc.replace_substring(pc.utf8_lower(pc.utf8_trim_whitespace(pa.array(index))), " ", "").to_pandas()
    again = bare.duplicated(keep=False)
    return index[again[again].index[bare[again].argsort()]].tolist() if again.any() else []


def _line_breaks(indexes: list[pd.Index | None]) -> Iterator[Finding]:
    texts = [index for index in indexes if index is not None and index.inferred_type == "string"]
    broken = [text for index in texts for text in index[pc.match_substring(pa.array(index), "\n").to_numpy(False)]]
    if broken:
        yield Finding(
            name="line-breaks",
            severity="warning",
            count=len(broken),
            examples=tuple(broken[:3]),
            message=f"{count_noun(len(broken), 'text')} with a line break in it ({some(broken)}), which may be several rows",
            fix="Look for a quotation mark that is closed too late.",
        )


def _about_classes(crowd: Crowd, classes: pd.Index, named: bool) -> Iterator[Finding]:
    votes = np.bincount(crowd.label, minlength=len(classes))
    used, unused = classes[votes > 0], classes[votes == 0]
    rare = classes[(votes > 0) & (votes < ENOUGH_VOTES)]
    if len(used) == 1:
        yield Finding(
            name="single-class",
            severity="warning",
            count=1,
            examples=tuple(used),
            message=f"every vote is {some(used)}, so there is nothing to decide",
        )
    if len(unused):
        yield Finding(
            name="unused-classes",
            severity="note",
            count=len(unused),
            examples=tuple(unused[:3]),
            message=f"{len(unused):,} of {len(classes):,} classes were chosen by nobody ({some(unused)})",
        )
    if len(rare) and crowd.n_votes >= 20 * ENOUGH_VOTES:
        yield Finding(
            name="rare-class",
            severity="note",
            count=len(rare),
            examples=tuple(rare[:3]),
            message=f"{len(rare):,} of {len(classes):,} classes have fewer than {ENOUGH_VOTES} votes ({some(rare)}): too "
            "few to learn what they are mistaken for",
        )
    suspect = used[:0] if named else suspect_numbers(used)
    if len(suspect):
        yield numbers_as_classes("warning", suspect)
    empty = [text for text in used if isinstance(text, str) and text.strip().lower() in _NO_ANSWER]
    if empty:
        yield Finding(
            name="labels-look-missing",
            severity="warning",
            count=len(empty),
            examples=tuple(empty[:3]),
            message=f"{count_noun(len(empty), 'label')} read like no answer, but count as a class like any other ({some(empty)})",
            fix="If that is what they mean, leave those rows out.",
        )
