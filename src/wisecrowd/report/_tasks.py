"""The tasks of the page: the hardest, the most disputed, the least sure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import KINDS, Diagnosis
from wisecrowd.errors import InputError, some
from wisecrowd.report import _words as words
from wisecrowd.report._known import Known
from wisecrowd.vocabulary import same_kind

#: Tasks that are shown at most, and labels that are told of each.
TASKS, LABELS = 500, 6
#: The rankings a task can be shown for: what they are called, and by which column, the largest first.
RANKINGS = {"hardest": "difficulty", "most disputed": "entropy", "least sure": "uncertainty"}


def section(found: Diagnosis, texts: pd.Series | None, known: Known | None) -> dict[str, Any]:
    """All that the template says of tasks."""
    place = _chosen(found.tasks)
    told = None if texts is None else _texts_of(texts, found.crowd.tasks, place)
    votes = found.crowd.votes[place]
    rows = []
    for number, row in enumerate(found.tasks.iloc[place].reset_index().itertuples()):
        values = {
            "name": words.shortened(row.task),
            "label": words.shortened(row.label, 40),
            "votes": _tally(votes[number], found.crowd.classes),
            **{
                field: getattr(row, field)
                for field in (
                    "n_labels",
                    "confidence",
                    "entropy",
                    "uncertainty",
                    "difficulty",
                    "standard_error",
                    "kind",
                )
            },
        }
        if told is not None:
            values["text"] = told[number]
        if known is not None:
            values |= _truth_of(known, place[number], row, found)
        rows.append(values)
    return {
        "rows": rows,
        "caption": words.some_of(
            len(rows),
            found.crowd.n_tasks,
            "tasks",
            f"the first by each of three rankings ({words.joined(list(RANKINGS))})",
        ),
        "kinds": [
            {"name": kind, "n": n, "about": KINDS[kind]} for kind, n in found.overview["tasks_by_kind"].items() if n
        ],
        "with_text": told is not None,
        "without_text": 0 if told is None else sum(text is None for text in told),
        "with_truth": known is not None,
    }


def _chosen(table: pd.DataFrame) -> NDArray[np.intp]:
    """Positions of the tasks that are among the first of some ranking, the hardest first."""
    best = np.full(len(table), len(table))
    for column in RANKINGS.values():
        value = table[column].fillna(-np.inf).to_numpy()
        order = np.lexsort((-table["n_labels"].to_numpy(), -value))
        rank = np.empty(len(table), dtype=np.intp)
        rank[order] = np.arange(len(table))
        best = np.minimum(best, rank)
    place = np.argsort(best, kind="stable")[:TASKS]
    hard = table["difficulty"].to_numpy()[place]
    return place[np.argsort(-np.nan_to_num(hard, nan=-np.inf), kind="stable")]


def _tally(votes: NDArray[np.float64], classes: pd.Index | None) -> str:
    """What was said of a task, the most frequent first."""
    assert classes is not None
    order = np.argsort(-votes, kind="stable")[: int((votes > 0).sum())]
    parts = [f"\u2068{words.shortened(classes[label], 30)}\u2069 ×{votes[label]:,.10g}" for label in order[:LABELS]]
    more = len(order) - LABELS
    return ", ".join(parts) + (f" and {more:,} more labels" if more > 0 else "")


def _texts_of(texts: pd.Series, tasks: pd.Index, place: NDArray[np.intp]) -> list[str | None]:
    if not texts.index.is_unique:
        raise InputError(f"several texts for {some(texts.index[texts.index.duplicated()])}; keep one row for each task")
    where = texts.index.get_indexer(same_kind(tasks[place], texts.index))
    if len(texts) and (where < 0).all():
        raise InputError(
            f"none of the texts is of a task that is shown; they are of {some(texts.index)}, the tasks are {some(tasks)}. "
            "Check that both use the same ids"
        )
    values = texts.to_numpy()
    return [None if at < 0 else words.shortened(values[at], words.TEXT, lines=True) for at in where]


def _truth_of(known: Known, place: int, row: Any, found: Diagnosis) -> dict[str, Any]:
    if not known.has[place]:
        return {"truth": None, "wrong": None}
    assert found.crowd.classes is not None
    true = known.series.loc[row.task]
    return {"truth": words.shortened(true, 40), "wrong": bool(true != row.label)}
