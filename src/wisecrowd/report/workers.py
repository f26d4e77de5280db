"""Section about workers: a table, and a confusion matrix for every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.evaluate.intervals import share_interval
from wisecrowd.report import timeline
from wisecrowd.report.gold import GoldLabels
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import MAX_REASON_CHARS, describe_selection, display_name, format_number, shorten

#: Maximum number of workers on the page.
MAX_WORKERS = 500
#: Maximum number of classes in a confusion matrix.
MAX_CLASSES = 20


@dataclass(frozen=True, eq=False)
class ShownWorkers:
    """Workers and classes in the report.

    Attributes
    ----------
    positions : ndarray of shape (n_shown,)
        Positions of the workers in the crowd.
    rule : str
        Description of the selection.
    classes : ndarray of shape (n_shown_classes,)
        Positions of the classes in the crowd.
    confusion : ndarray of shape (n_shown, n_shown_classes, n_shown_classes)
        Confusion matrices, shrunk towards that of the crowd where votes are few.
    label_counts : ndarray of shape (n_shown, n_shown_classes)
        Number of times that each worker gave each label.
    """

    positions: NDArray[np.intp]
    rule: str
    classes: NDArray[np.intp]
    confusion: NDArray[np.float64]
    label_counts: NDArray[np.int64]


def select_workers(diagnosis: Diagnosis) -> ShownWorkers:
    """Select the workers on the page: first those with flags, then those with most votes.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.

    Returns
    -------
    ShownWorkers
        Selected workers.
    """
    table, crowd = diagnosis.workers, diagnosis.crowd
    is_flagged = (table["flags"] != "").to_numpy()
    positions = np.lexsort((-table["n_votes"].to_numpy(), ~is_flagged))[:MAX_WORKERS]
    n_flagged = int(is_flagged.sum())
    rule = (
        f"the {n_flagged:,} with flags, and the others with most votes"
        if n_flagged <= MAX_WORKERS
        else f"of the {n_flagged:,} with flags, those with most votes"
    )
    classes = diagnosis.frequent_classes(MAX_CLASSES)
    confusion = diagnosis.worker_diagnosis.confusion_of(positions, classes)
    label_counts = _count_labels(crowd, positions)[:, classes]
    return ShownWorkers(positions, rule, classes, confusion, label_counts)


def _count_labels(crowd: Crowd, positions: NDArray[np.intp]) -> NDArray[np.int64]:
    row_of_worker = np.full(crowd.n_workers, -1)
    row_of_worker[positions] = np.arange(len(positions))
    rows = row_of_worker[crowd.worker_codes]
    cells = rows[rows >= 0] * crowd.n_classes + crowd.label[rows >= 0]
    return np.bincount(cells, minlength=len(positions) * crowd.n_classes).reshape(len(positions), crowd.n_classes)


def build_section(diagnosis: Diagnosis, shown: ShownWorkers, gold: GoldLabels | None) -> dict[str, Any]:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers on the page.
    gold : GoldLabels or None
        Gold labels.

    Returns
    -------
    dict
        Variables of the template.
    """
    table, crowd = diagnosis.workers, diagnosis.crowd
    panel_columns = [name for name in ("kind", "belongs_to") if name in table]
    rows = []
    for row in table.iloc[shown.positions].reset_index().itertuples():
        rows.append(
            {
                "name": display_name(row.worker),
                **{
                    name: display_name(getattr(row, name) or "", 40) if getattr(row, name) else ""
                    for name in panel_columns
                },
                **{
                    name: getattr(row, name)
                    for name in ("n_votes", "accuracy", "low", "high", "agreement", "reliability", "information")
                },
                "top_label": display_name(row.top_label, 30),
                "top_share": row.top_share,
                "flags": [flag for flag in str(row.flags).split(", ") if flag],
                "why": shorten(row.why, MAX_REASON_CHARS),
            }
        )
    if gold is not None:
        n_correct, n_gold = gold.count_correct_votes(crowd)
        low, high = share_interval(n_correct, n_gold, level=diagnosis.level)
        for values, position in zip(rows, shown.positions, strict=True):
            values |= {"n_correct": int(n_correct[position]), "n_gold": int(n_gold[position])}
            values |= {"gold_low": float(low[position]), "gold_high": float(high[position])}
    n_shown_classes = len(shown.classes)
    return {
        "rows": rows,
        "caption": describe_selection(len(rows), crowd.n_workers, "workers", shown.rule),
        "flags": sorted({flag for row in rows for flag in row["flags"]}),
        "with_truth": gold is not None,
        "panel_columns": panel_columns,
        "level": format_level(diagnosis.level),
        "classes": None if n_shown_classes == crowd.n_classes else f"{n_shown_classes:,} of {crowd.n_classes:,}",
    }


def build_cards(diagnosis: Diagnosis, shown: ShownWorkers, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Build the data from which the page draws the card of a worker.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers on the page.
    rows : list of dict
        Rows of the table of workers.

    Returns
    -------
    dict
        JSON data; shares are in percent.
    """
    assert diagnosis.crowd.classes is not None
    percentages = np.rint(100 * shown.confusion).astype(int)
    has_times = diagnosis.crowd.has_times
    histories = timeline.build_histories(diagnosis, shown.positions) if has_times else [None] * len(rows)
    return {
        "classes": [display_name(name, 40) for name in diagnosis.crowd.classes[shown.classes]],
        "n_classes": diagnosis.crowd.n_classes,
        "workers": [
            {
                "name": row["name"],
                "n_votes": int(row["n_votes"]),
                "accuracy": f"{format_number(row['accuracy'])} ({format_number(row['low'])} to {format_number(row['high'])})",
                "why": row["why"],
                "matrix": matrix.ravel().tolist(),
                "label_counts": label_counts.tolist(),
                "history": history,
            }
            for row, matrix, label_counts, history in zip(rows, percentages, shown.label_counts, histories, strict=True)
        ],
    }
