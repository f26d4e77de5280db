"""Texts of tasks in files, for people to read beside the votes."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from wisecrowd import io
from wisecrowd.errors import InputError
from wisecrowd.io.problems import MissingColumn

#: What the column with the text may be called, in order of preference.
NAMES = ("text", "sentence", "content", "prompt", "title", "description", "body")


def read_texts(path: str | os.PathLike[str], *, task: str | None = None, text: str | None = None) -> pd.Series:
    """The text of each task: a table with a column of task ids and one of texts, or a dataset folder that has them.

    >>> _ = Path("tasks.csv").write_text("task,text\\nt1,Is this a cat?\\n")
    >>> read_texts("tasks.csv").to_dict()
    {'t1': 'Is this a cat?'}
    """
    place = Path(path)
    if place.is_dir():
        return _of_folder(place)
    for name in NAMES if text is None else (text,):
        try:
            return io.read_truth(place, task=task, truth=name).rename("text")
        except MissingColumn as error:
            if "task" in error.roles or text is not None:
                raise
    raise InputError(
        f"{place}: no column of texts was recognised; call it {NAMES[0]!r}, or name it: text=... (--text-column)"
    )


def _of_folder(place: Path) -> pd.Series:
    file = place / "texts.parquet"
    if not file.is_file():
        raise InputError(f"{place}: this folder has no texts (texts.parquet)")
    table = pd.read_parquet(file)
    column = next((name for name in NAMES if name in table.columns), None)
    if "task" not in table.columns or column is None:
        raise InputError(f"{file}: the columns task and text were wanted; got {', '.join(map(str, table.columns))}")
    return table.set_index("task")[column].dropna().rename("text")
