"""Votes from files and back; formats are found by looking, one module each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from wisecrowd.data._building import Missing, Vocabulary
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.formats import Format, Options, about, find_format, formats, refuse_name
from wisecrowd.io.tools.answers import truth_of
from wisecrowd.io.tools.projects import Project, Question, read_project

__all__ = [
    "Format", "Options", "Project", "Question", "find_format", "formats", "read", "read_project", "read_truth", "write",
]  # fmt: skip


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | Literal[False] | None = None,
    label: str | None = None,
    weight: str | None = None,
    time: str | Literal[False] | None = None,
    tasks: Vocabulary = None,
    workers: Vocabulary = None,
    classes: Vocabulary = None,
    numeric: bool = False,
    duplicates: Duplicates = "error",
    missing: Missing = "error",
    question: str | None = None,
) -> Crowd:
    """Read the votes in a file or folder.

    The format is guessed from name and content unless ``format`` names it (see :func:`formats`). ``task``, ``worker``,
    ``label``, ``weight`` and ``time`` name the columns of a table; without them, names that other tools use are recognised.
    ``worker=False`` reads votes of which nobody knows who cast them, ``time=False`` leaves the time out.
    ``tasks``, ``workers`` and ``classes`` fix the vocabularies; ``numeric=True`` reads labels as numbers; ``duplicates`` and
    ``missing`` say what to do with a worker's second vote on a task, and with rows that lack something (see
    :meth:`wisecrowd.Crowd.from_frame`). Exports of labelling tools may hold several questions; ``question`` says which one to read
    (see :func:`wisecrowd.io.tools.projects.read_project` for all that they hold).

    >>> _ = Path("votes.csv").write_text("question,worker,answer\\n1,ann,cat\\n1,bob,dog\\n2,ann,cat\\n")
    >>> read("votes.csv")
    Crowd(3 labels: 2 tasks x 2 workers, 2 classes, 1.5 labels/task)
    """
    _refuse_no_path(path, "a dataframe becomes a crowd by Crowd.from_frame(df)")
    options = Options(
        task=task,
        worker=worker,
        label=label,
        weight=weight,
        time=time,
        tasks=tasks,
        workers=workers,
        classes=classes,
        numeric=numeric,
        duplicates=duplicates,
        missing=missing,
        question=question,
    )
    return find_format(Path(path), format).read(Path(path), options)


def read_truth(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    truth: str | None = None,
    numeric: bool = False,
    question: str | None = None,
) -> pd.Series[Any]:
    """Read what is known to be true, by task.

    ``path`` is a table with a task and a truth column (``truth``, ``gold``, ``true_label``, ``label``, …; name them if
    they are called something else), or a file or folder of any format that holds the truth beside the votes: of the export of a
    labelling tool, answers that are marked as right, to the ``question`` of that name.

    >>> _ = Path("gold.csv").write_text("task,gold\\nt1,cat\\nt2,dog\\n")
    >>> read_truth("gold.csv").to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """
    _refuse_no_path(path, "truth in memory is used as it is, as a Series by task")
    form = find_format(Path(path), format)
    with about(Path(path)):
        if question is not None:
            if form.project is None:
                raise UsageError(f"question= (--question) is for exports of labelling tools; this is {form.about}")
            found = truth_of(form.project(Path(path)), question)
        else:
            found = None if form.truth is None else form.truth(Path(path), task, truth)
        if found is None:
            raise InputError(f"the truth was wanted, but this {form.name} data does not hold it")
        series = found["truth"]
        if numeric:
            values = pd.to_numeric(series, errors="coerce").astype(float)
            bad = series[values.isna()]
            if len(bad):
                raise InputError(
                    f"numbers were wanted as the truth; got {some(bad[:1])} for the task {some(bad.index[:1])}"
                )
            return values
        return series


def write(crowd: Crowd, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write the votes to a file, or to a dataset folder when ``path`` has no suffix; it appears whole or not at all.

    A table holds the votes only: tasks that nobody labelled and classes that nobody used are kept by a folder.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> write(crowd, "votes.parquet")
    >>> read("votes.parquet") == crowd
    True
    """
    if not isinstance(crowd, Crowd):
        raise UsageError(
            f"a crowd was wanted, for its votes are written; got {type(crowd).__name__}. "
            "A fitted method is written by its own save(path)"
        )
    target = Path(path)
    refuse_name(target)
    writers = [form for form in formats().values() if form.write is not None]
    if format is not None:
        form = find_format(target, format)
    else:
        named = [form for form in writers if form.matches(target)] or [form for form in writers if not form.patterns]
        form = named[0]
        if target.suffix and not form.matches(target):
            raise UsageError(
                f"cannot tell from the name of {target} what to write; end it in .csv, .tsv, .jsonl or .parquet, "
                'or say format="csv" (--format csv)'
            )
    if form.write is None:
        known = ", ".join(writer.name for writer in writers)
        raise UsageError(f"wisecrowd reads {form.name} but does not write it; it writes {known}")
    form.write(crowd, target)


def _refuse_no_path(path: Any, advice: str) -> None:
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"the path of a file or folder was wanted; got {type(path).__name__}. {advice}")
