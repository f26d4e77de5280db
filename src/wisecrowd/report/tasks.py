"""Section about tasks: the most difficult, the most disputed and the least certain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose import TASK_KINDS, Diagnosis
from wisecrowd.errors import InputError, preview
from wisecrowd.report.gold import GoldLabels
from wisecrowd.report.task_media import align_with_tasks, is_web_address
from wisecrowd.report.thumbnails import embed_thumbnails
from wisecrowd.utils.text import MAX_TEXT_CHARS, describe_selection, display_name, join_words, shorten

#: Maximum number of tasks on the page.
MAX_TASKS = 500
#: Maximum number of labels listed for a task.
MAX_LABELS = 6
#: Upper bound of the markup around an image: its cell and the escaped task id.
IMAGE_MARKUP_CHARACTERS = 600
#: Rankings by which tasks are selected: name and column, the largest value first.
RANKINGS = {"most difficult": "difficulty", "most disputed": "entropy", "least certain": "uncertainty"}
#: Ranking for crowds with features: name and column, the smallest value first.
FEATURE_RANKING = ("worst fit of votes and features", "waum")


def build_section(
    diagnosis: Diagnosis, texts: pd.Series | None, gold: GoldLabels | None, links: pd.Series | None = None
) -> dict[str, Any]:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    texts : Series or None
        Text by task.
    gold : GoldLabels or None
        Gold labels.
    links : Series, default=None
        Web address by task.

    Returns
    -------
    dict
        Variables of the template.

    Raises
    ------
    InputError
        If a link is no web address.
    """
    crowd = diagnosis.crowd
    rankings = _rank_tasks(diagnosis.tasks)
    positions = _select_tasks(diagnosis.tasks, rankings)
    task_ids = crowd.tasks[positions]
    task_texts = None if texts is None else align_with_tasks(texts, task_ids, "text")
    task_links = [None] * len(task_ids) if links is None else align_with_tasks(links, task_ids, "link")
    if bad_links := [link for link in task_links if link is not None and not is_web_address(link)]:
        raise InputError(f"links must be web addresses (http:// or https://); got {preview(bad_links)}")
    vote_counts = crowd.vote_counts[positions]
    columns = ["n_votes", "confidence", "entropy", "uncertainty", "difficulty", "standard_error", "kind"]
    with_fit = FEATURE_RANKING[1] in diagnosis.tasks
    if with_fit:
        columns.append(FEATURE_RANKING[1])
    rows = []
    for number, row in enumerate(diagnosis.tasks.iloc[positions].reset_index().itertuples()):
        values = {
            "name": display_name(row.task),
            "link": task_links[number],
            "label": display_name(row.label, 40),
            "votes": _format_votes(vote_counts[number], crowd.classes),
            **{column: getattr(row, column) for column in columns},
        }
        if task_texts is not None:
            text = task_texts[number]
            values["text"] = None if text is None else shorten(text, MAX_TEXT_CHARS, lines=True)
        if gold is not None:
            values |= _compare_with_gold(gold, positions[number], row)
        rows.append(values)
    rule = f"the first by each of {'four' if with_fit else 'three'} rankings ({join_words(list(rankings))})"
    return {
        "rows": rows,
        "task_ids": task_ids,
        "caption": describe_selection(len(rows), crowd.n_tasks, "tasks", rule),
        "kinds": [
            {"name": kind, "n": n, "description": TASK_KINDS[kind]}
            for kind, n in diagnosis.overview["tasks_by_kind"].items()
            if n
        ],
        "with_text": task_texts is not None,
        "n_without_text": 0 if task_texts is None else sum(text is None for text in task_texts),
        "with_image": False,
        "with_fit": with_fit,
        "with_truth": gold is not None,
    }


def _rank_tasks(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the values of each ranking, the largest first."""
    rankings = {name: table[column] for name, column in RANKINGS.items()}
    name, column = FEATURE_RANKING
    if column in table:
        rankings[name] = -table[column]
    return rankings


def _select_tasks(table: pd.DataFrame, rankings: dict[str, pd.Series]) -> NDArray[np.intp]:
    """Return the positions of the first tasks by any ranking, the most difficult first."""
    best_rank = np.full(len(table), len(table))
    for values in rankings.values():
        order = np.lexsort((-table["n_votes"].to_numpy(), -values.fillna(-np.inf).to_numpy()))
        rank = np.empty(len(table), dtype=np.intp)
        rank[order] = np.arange(len(table))
        best_rank = np.minimum(best_rank, rank)
    positions = np.argsort(best_rank, kind="stable")[:MAX_TASKS]
    difficulty = table["difficulty"].to_numpy()[positions]
    return positions[np.argsort(-np.nan_to_num(difficulty, nan=-np.inf), kind="stable")]


def _format_votes(votes: NDArray[np.float64], classes: pd.Index | None) -> str:
    """Return the labels of a task with their counts, the most frequent first."""
    assert classes is not None
    order = np.argsort(-votes, kind="stable")[: int((votes > 0).sum())]
    # U+2068 and U+2069 isolate a label, so that right-to-left letters do not reorder the list.
    parts = [f"\u2068{display_name(classes[k], 30)}\u2069\u00a0×{votes[k]:,.10g}" for k in order[:MAX_LABELS]]
    n_more = len(order) - MAX_LABELS
    return ", ".join(parts) + (f" and {n_more:,} more labels" if n_more > 0 else "")


def _compare_with_gold(gold: GoldLabels, position: int, row: Any) -> dict[str, Any]:
    if not gold.is_known[position]:
        return {"truth": None, "is_wrong": None}
    true = gold.series.loc[row.task]
    return {"truth": display_name(true, 40), "is_wrong": bool(true != row.label)}


def add_images(section: dict[str, Any], images: pd.Series, max_characters: int) -> dict[str, Any]:
    """Return the content of the section with thumbnails.

    Parameters
    ----------
    section : dict
        Result of `build_section`.
    images : Series
        Path or bytes by task.
    max_characters : int
        Space that the page has left.

    Returns
    -------
    dict
        Variables of the template.
    """
    task_images = align_with_tasks(images, section["task_ids"], "image")
    thumbnails = embed_thumbnails(task_images, max_characters - IMAGE_MARKUP_CHARACTERS * len(task_images))
    rows = [{**row, "image": source} for row, source in zip(section["rows"], thumbnails.sources, strict=True)]
    return {**section, "rows": rows, "with_image": True, "image_notes": thumbnails.notes}
