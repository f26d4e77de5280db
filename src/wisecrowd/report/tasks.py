"""The tasks of the page: the hardest, the most disputed, the least sure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import KINDS, Diagnosis
from wisecrowd.report.gold import Known
from wisecrowd.report.task_media import matched
from wisecrowd.report.thumbnails import thumbnails
from wisecrowd.utils.text import MAX_TEXT_CHARS, describe_selection, display_name, join_words, shorten

#: Tasks that are shown at most, and labels that are told of each.
TASKS, LABELS = 500, 6
#: Characters around an image: its cell, and an id of the length that ids have at most, escaped.
MARKUP = 600
#: The rankings a task can be shown for: what they are called, and by which column, the largest first.
RANKINGS = {"hardest": "difficulty", "most disputed": "entropy", "least sure": "uncertainty"}
#: With features, one more, the smallest first.
UNLIKE = {"least like what is said of them": "waum"}


def section(found: Diagnosis, texts: pd.Series | None, known: Known | None) -> dict[str, Any]:
    """All that the template says of tasks."""
    place, rankings = _chosen(found.tasks), _rankings(found.tasks)
    names = found.crowd.tasks[place]
    told = None if texts is None else matched(texts, names, "text")
    votes = found.crowd.votes[place]
    with_fit = len(rankings) > len(RANKINGS)
    rows = []
    for number, row in enumerate(found.tasks.iloc[place].reset_index().itertuples()):
        values = {
            "name": display_name(row.task),
            "label": display_name(row.label, 40),
            "votes": _tally(votes[number], found.crowd.classes),
            **{
                field: getattr(row, field)
                for field in (
                    "n_votes",
                    "confidence",
                    "entropy",
                    "uncertainty",
                    "difficulty",
                    "standard_error",
                    "kind",
                    *(UNLIKE.values() if with_fit else ()),
                )
            },
        }
        if told is not None:
            text = told[number]
            values["text"] = None if text is None else shorten(text, MAX_TEXT_CHARS, lines=True)
        if known is not None:
            values |= _truth_of(known, place[number], row, found)
        rows.append(values)
    return {
        "rows": rows,
        "names": names,
        "caption": describe_selection(
            len(rows),
            found.crowd.n_tasks,
            "tasks",
            f"the first by each of {'three' if len(rankings) == 3 else 'four'} rankings ({join_words(list(rankings))})",
        ),
        "kinds": [
            {"name": kind, "n": n, "about": KINDS[kind]} for kind, n in found.overview["tasks_by_kind"].items() if n
        ],
        "with_text": told is not None,
        "without_text": 0 if told is None else sum(text is None for text in told),
        "with_image": False,
        "with_fit": with_fit,
        "with_truth": known is not None,
    }


def _rankings(table: pd.DataFrame) -> dict[str, pd.Series]:
    """By what they are called, what tasks are ranked by, the largest first."""
    found = {name: table[column] for name, column in RANKINGS.items()}
    return found | {name: -table[column] for name, column in UNLIKE.items() if column in table}


def _chosen(table: pd.DataFrame) -> NDArray[np.intp]:
    """Positions of the tasks that are among the first of some ranking, the hardest first."""
    best = np.full(len(table), len(table))
    for values in _rankings(table).values():
        value = values.fillna(-np.inf).to_numpy()
        order = np.lexsort((-table["n_votes"].to_numpy(), -value))
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
    parts = [f"\u2068{display_name(classes[label], 30)}\u2069\u00a0×{votes[label]:,.10g}" for label in order[:LABELS]]
    more = len(order) - LABELS
    return ", ".join(parts) + (f" and {more:,} more labels" if more > 0 else "")


def with_images(section: dict[str, Any], images: pd.Series, room: int) -> dict[str, Any]:
    """The same with images, for which the page has ``room`` characters left."""
    shown = matched(images, section["names"], "image")
    found = thumbnails(shown, room - MARKUP * len(shown))
    rows = [{**row, "image": source} for row, source in zip(section["rows"], found.sources, strict=True)]
    return {**section, "rows": rows, "with_image": True, "about_images": found.notes}


def _truth_of(known: Known, place: int, row: Any, found: Diagnosis) -> dict[str, Any]:
    if not known.has[place]:
        return {"truth": None, "wrong": None}
    assert found.crowd.classes is not None
    true = known.series.loc[row.task]
    return {"truth": display_name(true, 40), "wrong": bool(true != row.label)}
