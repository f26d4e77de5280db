"""Look at votes before trusting what follows from them: `examine` names what is wrong and how to mend it.

What would change the answer without a word is an error, and its fix names the option that settles it. What makes the
answer less sure is a warning. What is merely good to know is a note.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.data import vocabulary as vocab
from wisecrowd.data._building import as_table
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.formats import Options, Votes, find_format
from wisecrowd.io.problems import EmptyInput, MissingColumn, MixedTypes
from wisecrowd.io.tables.votes_table import Columns
from wisecrowd.io.validation.checks import check_crowd, numbers_as_classes
from wisecrowd.io.validation.findings import Examination, Finding
from wisecrowd.utils.text import count_noun

__all__ = ["Examination", "Finding", "examine"]


def examine(source: Any, *, format: str | None = None, **options: Any) -> Examination:
    """Examine votes in a file, a folder, a dataframe or a crowd; ``options`` are those of :func:`wisecrowd.read`.

    Whatever can be left out or read otherwise is reported and the examination goes on, so that one run tells all.

    >>> print(examine({"task": [1, 1, 2], "worker": ["ann", "ann", "bob"], "label": ["cat", "cat", None]}))
    votes: Crowd(2 labels: 1 tasks x 1 workers, 1 classes, 2.0 labels/task)
    2 errors, 2 warnings
    error    missing-labels: 1 of 3 rows without a label (row 2)
             Drop such rows: missing="drop" (--missing drop).
    error    duplicate-votes: 1 repeated vote, the same worker's same answer to the same task (task 1 by 'ann')
             Say what to do: duplicates="distinct" counts each answer once, "keep" all of them (--duplicates distinct).
    warning  single-worker: all votes are by 'ann', so nobody can be compared with anybody
    warning  single-class: every vote is 'cat', so there is nothing to decide
    """
    wanted = Options(**options)
    name = str(source) if isinstance(source, str | os.PathLike) else "votes"
    if isinstance(source, Crowd):
        return Examination(source=name, summary=repr(source), findings=tuple(check_crowd(source, settled=True)))
    findings: list[Finding] = []
    summary = ""
    try:
        votes = _votes(source, format, wanted, findings)
        votes = _complete(votes, wanted, findings)
        crowd, settled = _crowds(votes, wanted, findings)
        summary = repr(settled)
        named = wanted.classes is not None or votes.classes is not None
        findings += check_crowd(crowd, settled=wanted.duplicates != "error", named=named)
    except InputError as error:
        findings.append(_unreadable(error))
    return Examination(source=name, summary=summary, findings=tuple(findings))


def _unreadable(error: InputError) -> Finding:
    names = {MissingColumn: "missing-column", EmptyInput: "empty-file", MixedTypes: "mixed-types"}
    return Finding(name=names.get(type(error), "unreadable"), severity="error", count=1, message=str(error))


def _votes(source: Any, format: str | None, options: Options, findings: list[Finding]) -> Votes:
    if isinstance(source, str | os.PathLike):
        return find_format(Path(source), format).votes(Path(source), options)
    if not isinstance(source, pd.DataFrame | dict):
        table = as_table(source)
        return Columns.choose(table.column_names, options).votes(table)
    frame = pd.DataFrame(source).rename(columns=str)
    columns = Columns.choose(list(frame.columns), options)
    frame = frame[list(columns.roles.values())]
    for name in frame:
        if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed"):
            kinds = sorted({type(value).__name__ for value in frame[name].dropna()})
            findings.append(
                Finding(
                    name="mixed-types",
                    severity="error",
                    count=len(kinds),
                    examples=tuple(kinds),
                    message=f"the column {name!r} mixes {' and '.join(kinds)}",
                    fix=f"Make it one type: df[{name!r}] = df[{name!r}].astype(str).",
                )
            )
            frame[name] = frame[name].map(str, na_action="ignore")
    return columns.votes(as_table(frame))


def _complete(votes: Votes, options: Options, findings: list[Finding]) -> Votes:
    """The rows that have all they need; the others are reported."""
    table = votes.table
    for note in votes.notes:
        findings.append(Finding(name="columns", severity="note", count=1, message=note))
    for column, name in (("task", "missing-ids"), ("worker", "missing-ids"), ("label", "missing-labels")):
        holes = vocab.missing_mask(table[column]) if column in table.column_names else np.zeros(0, dtype=bool)
        rows = np.flatnonzero(holes)
        if rows.size:
            findings.append(
                Finding(
                    name=name,
                    severity="note" if options.missing == "drop" else "error",
                    count=rows.size,
                    examples=tuple(votes.places(rows[:3].tolist())[1]),
                    message=f"{rows.size:,} of {count_noun(table.num_rows, 'row')} without a {column} "
                    f"({votes.where(rows.tolist())})",
                    fix="" if options.missing == "drop" else 'Drop such rows: missing="drop" (--missing drop).',
                )
            )
    if "weight" in table.column_names:
        weight = table["weight"].to_numpy()
        rows = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
        if rows.size:
            findings.append(
                Finding(
                    name="bad-weights",
                    severity="error",
                    count=rows.size,
                    examples=tuple(votes.places(rows[:3].tolist())[1]),
                    message=f"{count_noun(rows.size, 'weight')} not finite and positive ({votes.where(rows.tolist())})",
                    fix="Leave out votes that should not count.",
                )
            )
            table = table.drop_columns("weight")
    return replace(votes, table=table).complete()


def _crowds(votes: Votes, options: Options, findings: list[Finding]) -> tuple[Crowd, Crowd]:
    """The crowd of all votes that can be used, and what the options leave of it; what stands in the way is reported."""
    label = votes.table["label"]
    if pa.types.is_floating(label.type) and not (votes.numeric or options.numeric):
        numbers = pd.unique(label.to_numpy())
        fractions = numbers[numbers != np.round(numbers)]
        if fractions.size:
            findings.append(numbers_as_classes("error", fractions))
            options = replace(options, numeric=True)
    try:
        return _with_and_without_repeats(votes, options)
    except EmptyInput:
        raise
    except InputError as error:
        findings.append(Finding(name="unknown-ids", severity="error", count=1, message=str(error)))
    try:
        votes = replace(votes, tasks=None, workers=None, classes=None)
        return _with_and_without_repeats(votes, replace(options, tasks=None, workers=None, classes=None))
    except InputError:
        del findings[-1]  # it was not the vocabulary
        raise


def _with_and_without_repeats(votes: Votes, options: Options) -> tuple[Crowd, Crowd]:
    everything = votes.crowd(replace(options, duplicates="keep"))
    return everything, everything if options.duplicates in ("error", "keep") else votes.crowd(options)
