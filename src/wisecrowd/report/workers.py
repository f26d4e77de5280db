"""The workers of the page: a table, a map, and a matrix for whoever is clicked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.em.priors import blocks
from wisecrowd.report import over_time as over_time
from wisecrowd.report.gold import Known
from wisecrowd.utils.text import MAX_REASON_CHARS, describe_selection, display_name, format_number, shorten

#: Workers that are shown at most, and classes of their matrices.
WORKERS, CLASSES = 500, 20


@dataclass(frozen=True, eq=False)
class Shown:
    """The workers that are shown: where they stand in the crowd, and their matrices over the shown classes."""

    place: NDArray[np.intp]
    rule: str
    classes: NDArray[np.intp]
    """Positions of the shown classes, in the crowd's order."""
    matrices: NDArray[np.float64]
    """(workers, true, said), drawn toward the crowd's where votes are few."""
    said: NDArray[np.int64]
    """How often each of them gave each of the shown labels."""


def shown_workers(found: Diagnosis) -> Shown:
    """Whoever has a flag first, then those with most votes."""
    table, crowd = found.workers, found.crowd
    flagged = (table["flags"] != "").to_numpy()
    counts = table["n_votes"].to_numpy()
    place = np.lexsort((-counts, ~flagged))[:WORKERS]
    n_flagged = int(flagged.sum())
    rule = (
        f"the {n_flagged:,} with flags, and those of the others with most votes"
        if n_flagged <= WORKERS
        else f"of the {n_flagged:,} with flags those with most votes"
    )
    classes = common_classes(found)
    parts = [
        found.of_workers.confusion_of(place[part])[:, classes[:, None], classes]
        for part in blocks(len(place), crowd.n_classes**2)
    ]
    return Shown(place, rule, classes, np.concatenate(parts), _said(crowd, place)[:, classes])


def common_classes(found: Diagnosis) -> NDArray[np.intp]:
    """Positions of the most frequent classes, no more than can be read, in the crowd's order."""
    share = found.model.posterior_.mean(axis=0)
    return np.sort(np.argsort(-share, kind="stable")[:CLASSES])


def _said(crowd: Crowd, place: NDArray[np.intp]) -> NDArray[np.int64]:
    row = np.full(crowd.n_workers, -1)
    row[place] = np.arange(len(place))
    mine = row[crowd.worker_codes]
    cell = mine[mine >= 0] * crowd.n_classes + crowd.label[mine >= 0]
    return np.bincount(cell, minlength=len(place) * crowd.n_classes).reshape(len(place), crowd.n_classes)


def section(found: Diagnosis, shown: Shown, known: Known | None) -> dict[str, Any]:
    """All that the template says of workers."""
    table, crowd = found.workers, found.crowd
    right, judged = (None, None) if known is None else known.of_workers(crowd)
    told = [field for field in ("kind", "belongs_to") if field in table]
    rows = []
    for row in table.iloc[shown.place].reset_index().itertuples():
        flags = [flag for flag in str(row.flags).split(", ") if flag]
        rows.append(
            {
                "name": display_name(row.worker),
                **{field: display_name(getattr(row, field), 40) if getattr(row, field) else "" for field in told},
                **{
                    field: getattr(row, field)
                    for field in ("n_votes", "accuracy", "low", "high", "agreement", "spammer_score", "information")
                },
                "top_label": display_name(row.top_label, 30),
                "top_share": row.top_share,
                "flags": flags,
                "why": shorten(row.why, MAX_REASON_CHARS),
            }
        )
    if right is not None and judged is not None:
        for values, here in zip(rows, shown.place, strict=True):
            values |= {"right": int(right[here]), "judged": int(judged[here])}
    names = pd.Series([flag for row in rows for flag in row["flags"]], dtype=object)
    return {
        "rows": rows,
        "caption": describe_selection(len(rows), crowd.n_workers, "workers", shown.rule),
        "flags": sorted(names.unique()),
        "with_truth": known is not None,
        "told": told,
        "level": f"{found.level:.0%}",
        "classes": None if len(shown.classes) == crowd.n_classes else f"{len(shown.classes):,} of {crowd.n_classes:,}",
    }


def cards(found: Diagnosis, shown: Shown, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page needs to draw the matrix and the course of any worker, ready for JSON: hundredths, and counts."""
    assert found.crowd.classes is not None
    hundredths = np.rint(100 * shown.matrices).astype(int)
    courses = over_time.courses(found, shown.place) if found.crowd.has_times else [None] * len(rows)
    return {
        "classes": [display_name(name, 40) for name in found.crowd.classes[shown.classes]],
        "of_classes": found.crowd.n_classes,
        "workers": [
            {
                "name": row["name"],
                "votes": int(row["n_votes"]),
                "accuracy": f"{format_number(row['accuracy'])} ({format_number(row['low'])} to {format_number(row['high'])})",
                "why": row["why"],
                "matrix": matrix.ravel().tolist(),
                "said": said.tolist(),
                "course": course,
            }
            for row, matrix, said, course in zip(rows, hundredths, shown.said, courses, strict=True)
        ],
    }
