"""Texts of tasks, read from a table or a dataset folder."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from wisecrowd.errors import InputError, preview
from wisecrowd.io.dataset_folder import read_task_table
from wisecrowd.io.problems import prefix_errors
from wisecrowd.report.task_media import read_task_column

#: Accepted names of the column with texts, in order of preference.
TEXT_COLUMNS = ("text", "sentence", "content", "prompt", "title", "description", "body")


def read_texts(path: str | os.PathLike[str], *, task: str | None = None, text: str | None = None) -> pd.Series:
    """Return the text of each task.

    Parameters
    ----------
    path : path-like
        Table with the columns task and text, or dataset folder with ``texts.parquet``.
    task : str, default=None
        Name of the column with task ids.
    text : str, default=None
        Name of the column with texts.

    Returns
    -------
    Series
        Text by task.

    Raises
    ------
    InputError
        If there are no texts.

    Examples
    --------
    >>> _ = Path("tasks.csv").write_text("task,text\\nt1,Is this a cat?\\n")
    >>> read_texts("tasks.csv").to_dict()
    {'t1': 'Is this a cat?'}
    """
    source = Path(path)
    if source.is_dir():
        return _read_folder(source)
    return read_task_column(source, "text", TEXT_COLUMNS, task=task, column=text)


def _read_folder(folder: Path) -> pd.Series:
    file = folder / "texts.parquet"
    if not file.is_file():
        raise InputError(f"{folder}: the folder has no texts (texts.parquet); name a table of texts instead")
    with prefix_errors(folder):
        table = read_task_table(file)
        column = next((name for name in TEXT_COLUMNS if name in table.columns), None)
        if column is None:
            raise InputError(
                f"{file.name}: expected the columns task and text; got {preview(['task', *table.columns], 12)}"
            )
    return table[column].dropna().rename("text")
