"""Texts, images and links of tasks: reading a column of a table and alignment with the tasks on the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from wisecrowd import io
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.problems import MissingColumn
from wisecrowd.utils.text import count_noun

#: Keys of the data of a task in a labelling tool that hold the task itself, in order of preference.
DATA_KEYS = ("data", "fields")
#: Path or URL of a file, without spaces.
_PATH = re.compile(r"\S*[/\\]\S*\.\w{2,5}|\w+://\S+|data:\S+")
#: Names of fields that hold the address of a task, in order of preference; other fields may hold addresses of parts of it.
LINK_KEYS = ("url", "link", "href", "task_url", "page_url", "permalink")


def read_task_column(
    path: Path, noun: str, names: tuple[str, ...], *, task: str | None, column: str | None
) -> pd.Series:
    """Read a column of a table by task.

    Parameters
    ----------
    path : pathlib.Path
        Table.
    noun : str
        Noun for the values, "text" or "image".
    names : tuple of str
        Accepted names of the column, in order of preference.
    task : str or None
        Name of the column with task ids.
    column : str or None
        Name of the column with values; None accepts any of ``names``.

    Returns
    -------
    Series
        Values by task.

    Raises
    ------
    InputError
        If the table has no such column.
    """
    for name in names if column is None else (column,):
        try:
            return io.read_truth(path, task=task, truth=name).rename(noun)
        except MissingColumn as error:
            if "task" in error.roles and task is not None:  # that of the votes may have another name here
                return read_task_column(path, noun, names, task=None, column=column)
            if "task" in error.roles:
                raise MissingColumn(
                    f"{path}: no column of task ids was recognised beside the {noun}s; call it 'task', or as in the votes",
                    ("task",),
                ) from None
            if column is not None:
                raise
    raise InputError(
        f"{path}: no column of {noun}s was recognised; call it {names[0]!r}, or name it: {noun}=... (--{noun}-column)"
    )


def as_task_series(values: Any, noun: str) -> pd.Series | None:
    """Return texts or images as a Series without missing values.

    Parameters
    ----------
    values : mapping, Series or None
        Values by task.
    noun : str
        Noun for the values in messages.

    Returns
    -------
    Series or None
        Values by task; None where there are none.

    Raises
    ------
    UsageError
        If the values are not by task.
    """
    if values is None:
        return None
    if isinstance(values, Mapping):
        values = pd.Series(dict(values), dtype=object)
    if not isinstance(values, pd.Series):
        raise UsageError(f"expected {noun}s by task in a Series or a dict; got {type(values).__name__}")
    return values.dropna()


def align_with_tasks(values: pd.Series, tasks: pd.Index, noun: str) -> list[Any]:
    """Return the values of some tasks.

    Parameters
    ----------
    values : Series
        Values by task.
    tasks : Index
        Task ids.
    noun : str
        Noun for the values in messages.

    Returns
    -------
    list
        Value of each task; None where it has none.

    Raises
    ------
    InputError
        If a task has several values, or no task has one.
    """
    if not values.index.is_unique:
        duplicates = values.index[values.index.duplicated()].unique()
        raise InputError(
            f"{count_noun(len(duplicates), 'task')} {'has' if len(duplicates) == 1 else 'have'} several {noun}s, "
            f"for example {preview(duplicates)}; keep one row per task"
        )
    positions = values.index.get_indexer(match_id_type(tasks, values.index))
    if len(values) and (positions < 0).all():
        raise InputError(
            f"none of the {noun}s belongs to a task on the page; they belong to {preview(values.index)}, "
            f"the tasks are {preview(tasks)}. Check that both use the same ids"
        )
    array = values.to_numpy()
    return [None if position < 0 else array[position] for position in positions]


def is_web_address(value: object) -> bool:
    """Return whether a value is a web address (http or https) that is safe as a link on a page.

    Parameters
    ----------
    value : object
        Value.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_web_address("https://example.com/7"), is_web_address("javascript:alert(1)"), is_web_address(7)
    (True, False, False)
    """
    return isinstance(value, str) and re.fullmatch(r"https?://[^\s<>\"]+", value, re.IGNORECASE) is not None


def find_texts(tasks: Mapping[str, Mapping[str, Any]]) -> pd.Series | None:
    """Find the texts of tasks in the data of a labelling tool.

    Parameters
    ----------
    tasks : mapping of str to mapping
        Data of the tool by task.

    Returns
    -------
    Series or None
        Text by task, without web addresses and numbers; None if no task has one.

    Examples
    --------
    >>> find_texts({"7": {"id": 7, "data": {"text": "Lovely!", "url": "https://example.com/7", "rank": 3}}}).to_dict()
    {'7': 'Lovely!'}
    """
    texts = {}
    for task, record in tasks.items():
        fields = get_task_fields(record)
        words = {key: value for key, value in fields.items() if isinstance(value, str) and not _is_address(value)}
        texts[task] = describe_task_data(words)
    series = pd.Series(texts, dtype=object).dropna()
    return series if len(series) else None


def get_task_fields(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a task itself from the data of a labelling tool.

    Parameters
    ----------
    record : mapping
        Task in an export; its fields may be one level deeper, beside its id.

    Returns
    -------
    mapping
    """
    return next((record[key] for key in DATA_KEYS if isinstance(record.get(key), Mapping)), record)


def describe_task_data(data: Mapping[str, Any]) -> str | None:
    """Return the text of a task as its labelling tool exported it.

    Parameters
    ----------
    data : mapping
        Data of the tool.

    Returns
    -------
    str or None
        The only text, or a line for each field; None if there is no text.

    Examples
    --------
    >>> describe_task_data({"id": 7, "data": {"text": "Lovely!"}})
    'Lovely!'
    >>> describe_task_data({"fields": {"prompt": "2 + 2?", "reply": "5"}})
    'prompt: 2 + 2?\\nreply: 5'
    """
    fields = get_task_fields(data)
    texts = {
        str(key): str(value)
        for key, value in fields.items()
        if isinstance(value, str | int | float) and key != "id" and not str(key).startswith(("_", "wisecrowd_"))
    }
    if not texts:
        return None
    return next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{key}: {text}" for key, text in texts.items())


def find_links(tasks: Mapping[str, Mapping[str, Any]]) -> pd.Series | None:
    """Find the web addresses of tasks in the data of a labelling tool.

    Parameters
    ----------
    tasks : mapping of str to mapping
        Data of the tool by task.

    Returns
    -------
    Series or None
        Address by task: a field named url, link or href if there is one, else the first address; None if no task has one.

    Examples
    --------
    >>> find_links({"7": {"id": 7, "data": {"image": "https://example.com/7.png", "url": "https://example.com/7"}}}).to_dict()
    {'7': 'https://example.com/7'}
    """
    links = {}
    for task, record in tasks.items():
        fields = get_task_fields(record)
        addresses = {str(key).lower(): value for key, value in fields.items() if is_web_address(value)}
        if addresses:
            links[task] = next(
                (addresses[key] for key in LINK_KEYS if key in addresses), next(iter(addresses.values()))
            )
    return pd.Series(links, dtype=object) if links else None


def _is_address(value: str) -> bool:
    """Return whether a value is the address of a file or page, not a text."""
    return is_web_address(value) or _PATH.fullmatch(value.strip()) is not None
