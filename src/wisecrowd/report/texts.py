"""Texts of tasks in files, for people to read beside the votes."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from wisecrowd.errors import InputError
from wisecrowd.report.task_media import read_column

#: What the column with the text may be called, in order of preference.
NAMES = ("text", "sentence", "content", "prompt", "title", "description", "body")


def read_texts(path: str | os.PathLike[str], *, task: str | None = None, text: str | None = None) -> pd.Series:
    """The text of each task: a table with a column of task ids and one of texts, or a dataset folder that has them.

    >>> _ = Path("tasks.csv").write_text("task,text\\nt1,Is this a cat?\\n")
    >>> read_texts("tasks.csv").to_dict()
    {'t1': 'Is this a cat?'}
    """
    place = Path(path)
    return _of_folder(place) if place.is_dir() else read_column(place, "text", NAMES, task=task, column=text)


def _of_folder(place: Path) -> pd.Series:
    file = place / "texts.parquet"
    if not file.is_file():
        raise InputError(f"{place}: this folder has no texts (texts.parquet)")
    table = pd.read_parquet(file)
    column = next((name for name in NAMES if name in table.columns), None)
    if "task" not in table.columns or column is None:
        raise InputError(f"{file}: the columns task and text were wanted; got {', '.join(map(str, table.columns))}")
    return table.set_index("task")[column].dropna().rename("text")
