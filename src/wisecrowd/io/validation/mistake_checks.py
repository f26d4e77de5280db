"""Checks for mistakes in files whose votes are valid: swapped columns, labels in another coding, files that are cut off.

`check_votes` lists the findings, and every reader of votes warns of them. Therefore, each check first asks a question that most
crowds answer in a moment.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import preview
from wisecrowd.io.tables.numeric_labels import find_grouped_numbers, find_suspect_numbers, remove_separators
from wisecrowd.io.tables.spellings import find_grouped_ids
from wisecrowd.io.tables.text_labels import are_texts
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.vote_table import VoteTable
from wisecrowd.utils.text import count_noun

#: Workers per task, and number of workers, from which tasks and workers may be swapped.
MIN_SWAPPED_RATIO, MIN_SWAPPED_WORKERS = 4, 20
#: Agreement of the votes of one worker with each other, from which these may be the votes on one task; and how many times it is the
#: agreement on a task. In 32 public datasets with their columns as they are, no crowd of this shape comes near.
MIN_SWAPPED_AGREEMENT, MIN_AGREEMENT_RATIO = 0.15, 2.0
#: Standard errors of the agreement of one worker's votes above zero.
MIN_SWAPPED_ERRORS = 4.0
#: Votes from which a worker's labels show another coding, and number of those labels: one alone may be a habit.
MIN_CODED_VOTES, MIN_CODED_LABELS = 5, 2
#: Share of the votes that the usual coding has at least, and largest number of its classes per vote: free texts have more.
MIN_USUAL_SHARE, MAX_CLASSES_PER_VOTE = 0.5, 0.5
#: Votes from which a class is frequent, so that a similar one with a single vote may be a slip.
MIN_FREQUENT_VOTES = 10
#: Letters of words that are compared for slips of the pen; shorter classes differ by one letter on purpose.
MIN_WORD_CHARS = 4
#: Numbers of classes with a single vote, and of frequent ones, up to which they are compared with each other.
MAX_SINGLE_CLASSES, MAX_FREQUENT_CLASSES = 20, 1000
#: Codings, and steps from label to label within one, from which labels are open-ended. They bound the time.
MAX_CODINGS, MAX_STEPS = 20, 50
#: Dates as programs and spreadsheets write them, also with a time of day.
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?Z?)?\s*$"


def check_mistakes(
    crowd: Crowd, votes: VoteTable | None = None, *, classes_listed: bool = False, can_normalise: bool = False
) -> Iterator[Finding]:
    """Check votes for mistakes that leave them valid.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    votes : VoteTable, optional
        Rows of the file, whose lines and columns the findings name.
    classes_listed : bool, default=False
        Whether the user or the file lists the classes. Then they are meant to be as they are.
    can_normalise : bool, default=False
        Whether the option ``normalise`` unifies spellings of ids.

    Yields
    ------
    Finding
        Probable mistakes.

    Examples
    --------
    >>> rows = [(task, who, "ja" if who == "dan" else "yes") for task in range(9) for who in ("ann", "bob", "cem", "dan")]
    >>> rows += [(task, who, "nein" if who == "dan" else "no") for task in range(9, 15) for who in ("ann", "bob", "cem", "dan")]
    >>> [finding.name for finding in check_mistakes(Crowd.from_triples(rows))]
    ['labels-in-another-coding']
    """
    if crowd.n_votes == 0:
        return
    yield from _check_swapped(crowd, {} if votes is None else dict(votes.columns))
    yield from _check_separators_of_ids(crowd, can_normalise)
    if crowd.classes is None or classes_listed:
        return
    yield from _check_numbers_and_dates(crowd.classes)
    if are_texts(crowd.classes, len(crowd.classes), crowd.n_votes):
        return
    yield from _check_codings(crowd)
    yield from _check_slips(crowd, crowd.classes, votes)


def looks_swapped(crowd: Crowd) -> bool:
    """Return whether tasks and workers seem to have changed places.

    There are far fewer tasks than workers, and the votes of one worker agree with each other as those on one task should, while
    those on one task hardly agree.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    bool

    Examples
    --------
    >>> votes = [("ann" if number % 2 else "bob", task, "yn"[task % 2]) for task in range(40) for number in range(2)]
    >>> looks_swapped(Crowd.from_triples(votes))
    True
    """
    if crowd.classes is None or crowd.worker is None:
        return False
    return _are_swapped(crowd.task, crowd.worker, crowd.label, crowd.n_votes)


def looks_right_when_swapped(crowd: Crowd) -> bool:
    """Return whether tasks and workers would seem to be swapped if they changed places: they are right as they are.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    bool

    Examples
    --------
    >>> votes = [(task, "ann" if number % 2 else "bob", "yn"[task % 2]) for task in range(40) for number in range(2)]
    >>> looks_right_when_swapped(Crowd.from_triples(votes))
    True
    """
    if crowd.classes is None or crowd.worker is None:
        return False
    return _are_swapped(crowd.worker, crowd.task, crowd.label, crowd.n_votes)


def _are_swapped(task: NDArray[np.int32], worker: NDArray[np.int32], label: NDArray[np.int32], n_votes: int) -> bool:
    n_tasks, n_workers = (int(np.count_nonzero(np.bincount(codes))) for codes in (task, worker))
    if n_workers < max(MIN_SWAPPED_RATIO * n_tasks, MIN_SWAPPED_WORKERS) or n_tasks < 2:
        return False
    agreement = _measure_agreement(worker, label)
    is_high = agreement >= max(MIN_SWAPPED_AGREEMENT, MIN_SWAPPED_ERRORS / np.sqrt(n_votes))
    return bool(is_high and agreement >= MIN_AGREEMENT_RATIO * _measure_agreement(task, label))


def _measure_agreement(group: NDArray[np.int32], label: NDArray[np.int32]) -> float:
    """Return how much more often two votes of a group are equal than by chance, from 0 to 1; 0 if there is nothing to compare."""
    is_paired = np.bincount(group)[group] > 1
    group, label = group[is_paired], label[is_paired]
    if not group.size:
        return 0.0
    cell, _ = pd.factorize(group.astype(np.int64) * (int(label.max()) + 1) + label)
    observed = np.mean((np.bincount(cell)[cell] - 1) / (np.bincount(group)[group] - 1))
    by_chance = np.sum((np.bincount(label) / label.size) ** 2)
    return float((observed - by_chance) / (1 - by_chance)) if by_chance < 1 else 0.0


def _check_swapped(crowd: Crowd, columns: dict[str, str]) -> Iterator[Finding]:
    if not looks_swapped(crowd):
        return
    fix = "If they are, exchange them in the file."
    if {"task", "worker"} <= columns.keys():
        task, worker = columns["worker"], columns["task"]
        fix = f"If they are: task={task!r}, worker={worker!r} (--task {shlex.quote(task)} --worker {shlex.quote(worker)})."
    n_tasks, n_workers = np.count_nonzero(crowd.votes_per_task), np.count_nonzero(crowd.votes_per_worker)
    yield Finding(
        name="swapped-columns",
        severity="warning",
        count=1,
        message=f"are tasks and workers swapped? There are {n_tasks:,} tasks with {crowd.n_votes / n_tasks:,.0f} votes each and "
        f"{n_workers:,} workers with {crowd.n_votes / n_workers:,.1f} each, and votes of one worker agree with each other more "
        "than votes on one task",
        fix=fix,
    )


def _check_codings(crowd: Crowd) -> Iterator[Finding]:
    """Find workers who share no label with the others, although they share tasks with them."""
    if crowd.worker is None or crowd.workers is None or crowd.classes is None:
        return
    coding_of_label = _group_labels(crowd)
    coding = coding_of_label[crowd.label]
    n_votes = np.bincount(coding)
    usual = int(n_votes.argmax())
    n_usual_classes = np.count_nonzero(coding_of_label == usual)
    n_usual_workers = len(np.unique(crowd.worker[coding == usual])) if len(n_votes) > 1 else 0
    if (
        n_usual_workers < 2
        or n_usual_classes < MIN_CODED_LABELS
        or n_votes[usual] < MIN_USUAL_SHARE * crowd.n_votes
        or n_usual_classes > MAX_CLASSES_PER_VOTE * n_votes[usual]
    ):
        return
    has_usual = np.zeros(crowd.n_tasks, dtype=bool)
    has_usual[crowd.task[coding == usual]] = True
    n_shared = np.bincount(coding[has_usual[crowd.task]], minlength=len(n_votes))
    n_labels = np.bincount(coding_of_label[coding_of_label >= 0], minlength=len(n_votes))
    others = np.flatnonzero((n_shared >= MIN_CODED_VOTES) & (n_labels >= MIN_CODED_LABELS))
    others = others[others != usual]
    if not others.size:
        return
    workers = crowd.workers[np.unique(crowd.worker[np.isin(coding, others)])]
    labels = crowd.classes[np.flatnonzero(np.isin(coding_of_label, others))]
    usual_labels = crowd.classes[np.flatnonzero(coding_of_label == usual)]
    yield Finding(
        name="labels-in-another-coding",
        severity="warning",
        count=len(workers),
        examples=tuple(workers[:3]),
        message=f"{count_noun(len(workers), 'worker')} ({preview(workers)}) gave labels that nobody else gives ({preview(labels)}) "
        f"and none of those that others give ({preview(usual_labels)}), so they contradict everybody; this looks like another "
        "coding of the classes",
        fix="Translate these labels into the classes of the others in the file, or leave these votes out.",
    )


def _group_labels(crowd: Crowd) -> NDArray[np.int64]:
    """Return a coding for each class, -1 without votes: two classes have the same one if some worker gives both, or by a chain.

    Open-ended labels are one coding.
    """
    pairs = crowd.pairs
    n_classes = int(pairs.label.max(initial=-1)) + 1
    coding = np.full(n_classes, -1, dtype=np.int64)
    n_workers = np.bincount(pairs.label, minlength=n_classes)
    for number in range(MAX_CODINGS):
        rest = np.flatnonzero((coding < 0) & (n_workers > 0))
        if not rest.size:
            return coding
        is_member = np.zeros(n_classes, dtype=bool)
        is_member[rest[n_workers[rest].argmax()]] = True
        for _ in range(MAX_STEPS):
            size = np.count_nonzero(is_member)
            is_worker = np.zeros(pairs.n_workers, dtype=bool)
            is_worker[pairs.worker[is_member[pairs.label]]] = True
            is_member[pairs.label[is_worker[pairs.worker]]] = True
            if np.count_nonzero(is_member) == size:
                break
        else:
            return np.zeros(n_classes, dtype=np.int64)
        coding[is_member] = number
    return np.zeros(n_classes, dtype=np.int64)


def _check_slips(crowd: Crowd, classes: pd.Index, votes: VoteTable | None) -> Iterator[Finding]:
    """Find classes with one vote that are the beginning of a frequent class, or differ from it by a letter."""
    n_votes = np.bincount(crowd.label, minlength=len(classes))
    single, frequent = np.flatnonzero(n_votes == 1), np.flatnonzero(n_votes >= MIN_FREQUENT_VOTES)
    if not 0 < single.size <= MAX_SINGLE_CLASSES or not 0 < frequent.size <= MAX_FREQUENT_CLASSES:
        return
    cut_label = None if votes is None else _find_cut_label(votes)
    slips = []
    for label in classes[single]:
        for other in classes[frequent]:
            if not isinstance(label, str) or not isinstance(other, str):
                return
            is_cut = label == cut_label and other.startswith(label)
            if is_cut or is_slip(label, other):
                slips.append((label, other, is_cut))
                break
    for label, other, is_cut in slips:
        place = "" if votes is None else f" ({_locate_label(votes, label)})"
        if is_cut:
            yield Finding(
                name="cut-off",
                severity="warning",
                count=1,
                examples=(label,),
                message=f"the last line ends in {preview([label])} without a line break{place}, which is the beginning of the "
                f"class {preview([other])}; the file seems to be cut off, so rows may be missing",
                fix="Export or copy the file again.",
            )
        else:
            yield Finding(
                name="similar-class",
                severity="warning",
                count=1,
                examples=(label,),
                message=f"the class {preview([label])} has a single vote{place} and resembles the frequent class "
                f"{preview([other])}",
                fix="If it is a slip of the pen, correct it in the file.",
            )


def is_slip(label: str, other: str) -> bool:
    """Return whether a word is the beginning of another, or differs from it by one letter after the first.

    Parameters
    ----------
    label, other : str
        Words.

    Returns
    -------
    bool

    Examples
    --------
    >>> [is_slip(word, "positive") for word in ("positiv", "postive", "pozitive", "negative", "p")]
    [True, True, True, False, False]
    >>> is_slip("level 1", "level 2"), is_slip("moral", "amoral")
    (False, False)
    """
    shorter, longer = sorted((label, other), key=len)
    if len(longer) < MIN_WORD_CHARS or len(shorter) < MIN_WORD_CHARS - 1:
        return False
    if other.startswith(label) and 2 * len(label) >= len(other):
        return other[len(label) :].isalpha()
    if len(longer) - len(shorter) > 1 or len(shorter) < MIN_WORD_CHARS:
        return False
    start = next((place for place in range(len(shorter)) if shorter[place] != longer[place]), len(shorter))
    is_changed = len(shorter) == len(longer)
    is_equal_after = shorter[start + is_changed :] == longer[start + 1 :]
    letters = longer[start : start + 1] + (shorter[start : start + 1] if is_changed else "")
    return start > 0 and is_equal_after and letters.isalpha()


def _find_cut_label(votes: VoteTable) -> str | None:
    """Return the label of the last row if the file does not end in a line break."""
    if votes.ends_in_line_break or not votes.table.num_rows:
        return None
    value = votes.table["label"][-1].as_py()
    return value if isinstance(value, str) else None


def _locate_label(votes: VoteTable, label: str) -> str:
    column = votes.table["label"].cast(pa.string())
    return votes.describe_rows(np.flatnonzero(pc.fill_null(pc.equal(column, label), False).to_numpy())[:1].tolist())


def _check_separators_of_ids(crowd: Crowd, can_normalise: bool) -> Iterator[Finding]:
    for noun, index in (("task", crowd.tasks), ("worker", crowd.workers)):
        grouped = [] if index is None else find_grouped_ids(index)
        if grouped:
            written = preview([remove_separators(grouped[0])])
            yield Finding(
                name="ids-with-separators",
                severity="note",
                count=len(grouped),
                examples=tuple(grouped[:3]),
                message=f"{count_noun(len(grouped), noun + ' id')} {'has' if len(grouped) == 1 else 'have'} a thousands separator "
                f"({preview(grouped)}), so {preview(grouped[:1])} is not the {written} of another file",
                fix="If other files write them without: normalise=True (--normalise)." if can_normalise else "",
            )


def _check_numbers_and_dates(classes: pd.Index) -> Iterator[Finding]:
    grouped = find_grouped_numbers(classes)
    if len(grouped):
        numbers = pd.Index([remove_separators(str(text)) for text in classes])
        yield Finding(
            name="numbers-with-separators",
            severity="warning" if len(find_suspect_numbers(numbers)) else "note",
            count=len(grouped),
            examples=tuple(grouped[:3]),
            message=f"the labels are numbers, {len(grouped):,} of them with a thousands separator ({preview(grouped)}), and each "
            f"of the {len(classes):,} counts as a class",
            fix="If they measure something, write them without the separator, such as "
            f"{remove_separators(str(grouped[0]))}, and use numeric=True (--numeric).",
        )
    if classes.inferred_type == "string" and len(classes) and pc.all(_match_dates(classes)).as_py():
        yield Finding(
            name="labels-are-dates",
            severity="note",
            count=len(classes),
            examples=tuple(classes[:3]),
            message=f"all {len(classes):,} classes are dates ({preview(classes)})",
            fix="If this is not the column of labels, name it: label=COLUMN (--label COLUMN).",
        )


def _match_dates(classes: pd.Index) -> pa.Array:
    return pc.match_substring_regex(pa.array(classes, pa.string()), _DATE)
