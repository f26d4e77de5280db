"""What somebody gives of tasks, such as texts and images: read from tables, and matched to the tasks that are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from wisecrowd import io
from wisecrowd.data.vocabulary import same_kind
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.problems import MissingColumn


def read_column(place: Path, what: str, names: tuple[str, ...], *, task: str | None, column: str | None) -> pd.Series:
    """A column of a table by task: the one that is named, or the first that has one of these names."""
    for name in names if column is None else (column,):
        try:
            return io.read_truth(place, task=task, truth=name).rename(what)
        except MissingColumn as error:
            if "task" in error.roles or column is not None:
                raise
    raise InputError(
        f"{place}: no column of {what}s was recognised; call it {names[0]!r}, or name it: {what}=... (--{what}-column)"
    )


def by_task(values: Any, what: str) -> pd.Series | None:
    """What was given, as a Series without holes."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        values = pd.Series(dict(values), dtype=object)
    if not isinstance(values, pd.Series):
        raise UsageError(f"{what}s were wanted by task, in a Series or a dict; got {type(values).__name__}")
    return values.dropna()


def matched(values: pd.Series, tasks: pd.Index, what: str) -> list[Any]:
    """What was given of each of these tasks; None where it is nothing."""
    if not values.index.is_unique:
        twice = values.index[values.index.duplicated()]
        raise InputError(f"several {what}s for {some(twice)}; keep one row for each task")
    where = values.index.get_indexer(same_kind(tasks, values.index))
    if len(values) and (where < 0).all():
        raise InputError(
            f"none of the {what}s is of a task that is shown; they are of {some(values.index)}, the tasks are {some(tasks)}. "
            "Check that both use the same ids"
        )
    found = values.to_numpy()
    return [None if at < 0 else found[at] for at in where]
