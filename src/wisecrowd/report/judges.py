"""Section about judges: machines that vote beside people, as a fitted `Panel` knows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.agreement import krippendorff_alpha
from wisecrowd.errors import InputError
from wisecrowd.report.gold import GoldLabels
from wisecrowd.report.heat_maps import build_heat_map
from wisecrowd.report.workers import ShownWorkers
from wisecrowd.utils.text import (
    MAX_REASON_CHARS,
    count_noun,
    describe_selection,
    display_name,
    format_number,
    format_percent,
    quote_name,
    shorten,
)

#: Maximum number of judges in the table.
MAX_JUDGES = 100
#: Maximum number of confusion matrices of single judges.
MAX_MATRICES = 12
#: Maximum number of groups with a sentence.
MAX_GROUPS_NAMED = 5
#: Minimum number of deviating votes before the page names the most frequent deviation.
MIN_DEVIATIONS = 5


def build_section(
    diagnosis: Diagnosis, shown: ShownWorkers, scores: pd.DataFrame | None, gold: GoldLabels | None
) -> dict[str, Any] | None:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Classes on the page.
    scores : DataFrame or None
        Scores of judges in the columns task, worker, label and score.
    gold : GoldLabels or None
        Gold labels.

    Returns
    -------
    dict or None
        Variables of the template; None where the model knows no judges.
    """
    panel: Any = diagnosis.model
    judges: pd.DataFrame | None = getattr(panel, "judges_", None)
    if judges is None or not len(judges):
        return None
    truth = _select_scored_truth(panel, scores, gold)
    calibration, calibration_error = _calibrate_scores(panel, scores, truth)
    order = np.argsort(-judges["worth"].fillna(judges["accuracy"]).to_numpy(), kind="stable")[:MAX_JUDGES]
    names = diagnosis.crowd.classes
    assert names is not None
    rows = [_build_row(panel, judges, int(position), names, calibration) for position in order]
    groups = _build_group_rows(getattr(panel, "opinions_", None))
    has_people = panel.judge_confusion_.sum(axis=(1, 2)) > 0
    matrices = [
        {
            "name": display_name(judges.index[position], 40),
            "heat": _build_confusion(panel.judge_confusion_[position], shown.classes),
        }
        for position in map(int, order[:MAX_MATRICES])
        if has_people[position]
    ]
    rule = "those with the most informative votes"
    return {
        "rows": rows,
        "caption": describe_selection(len(rows), len(judges), "judges", rule),
        "sentences": [*_write_sentences(diagnosis, judges, groups), *getattr(panel, "verdict_", ())],
        "groups": groups,
        "with_people": bool(judges["worth"].notna().any()),
        "with_scores": calibration is not None,
        "scored_by": "the labels of the panel" if truth is None else "gold labels",
        "calibration_error": calibration_error,
        "names": [display_name(names[k], 24) for k in shown.classes],
        "heat": _build_confusion(panel.judge_confusion_.sum(axis=0), shown.classes) if has_people.any() else None,
        "matrices": matrices,
        "matrices_caption": describe_selection(len(matrices), len(judges), "judges", rule),
    }


def _build_row(
    panel: Any, judges: pd.DataFrame, position: int, names: pd.Index, calibration: pd.DataFrame | None
) -> dict[str, Any]:
    row, judge = judges.iloc[position], judges.index[position]
    is_scored = calibration is not None and judge in calibration.index
    return {
        "name": display_name(judge),
        "group": display_name(row["group"], 40) if row["group"] else "",
        "n_votes": round(float(row["n_votes"])),
        **{column: float(row[column]) for column in ("accuracy", "agreement", "shared", "alone", "worth")},
        "deviation": _find_deviation(panel.judge_confusion_[position], names),
        "calibration": _read_calibration(calibration, judge) if is_scored and calibration is not None else None,
    }


def _write_sentences(diagnosis: Diagnosis, judges: pd.DataFrame, groups: list[dict[str, Any]]) -> list[str]:
    crowd = diagnosis.crowd
    share = format_percent(float(judges["n_votes"].sum()) / max(float(crowd.weight.sum()), 1.0))
    verb = "is a judge" if len(judges) == 1 else "are judges"
    sentences = [f"{len(judges):,} of {count_noun(crowd.n_workers, 'worker')} {verb}; they gave {share} of all votes."]
    if judges["worth"].isna().all():
        sentences.append(
            "There are no people beside them. Only gold labels can show whether the judges are right, and their worth in votes "
            "of a person is unknown."
        )
        return sentences
    kinds = diagnosis.workers.get("kind")
    if kinds is not None:
        people = crowd.take((kinds == "person").to_numpy()[crowd.worker_codes])
        alpha = krippendorff_alpha(people).value
        if not np.isnan(alpha):
            sentences.append(
                f"Krippendorff’s alpha among people is {alpha:.2f}. Agreement between judges of one model says little."
            )
    rated_groups = [group for group in groups if not np.isnan(group["worth"])]
    for group in rated_groups[:MAX_GROUPS_NAMED]:
        sentences.append(
            f"The {count_noun(group['n_members'], 'member')} of {quote_name(group['name'])} together are worth "
            f"{format_number(group['worth'])} votes of a person on a task."
        )
    return sentences


def _build_group_rows(opinions: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return a row for each group, the largest first."""
    if opinions is None:
        return []
    ordered = opinions.sort_values("n_workers", ascending=False, kind="stable").head(MAX_JUDGES)
    columns = (ordered[name].tolist() for name in ("n_workers", "n_tasks", "accuracy", "worth"))
    return [
        {
            "name": display_name(name, 40),
            "n_members": int(n_members),
            "n_tasks": int(n_tasks),
            "accuracy": accuracy,
            "worth": worth,
        }
        for name, n_members, n_tasks, accuracy, worth in zip(ordered.index, *columns, strict=True)
    ]


def _find_deviation(counts: NDArray[np.float64], names: pd.Index) -> dict[str, Any] | None:
    """Return the most frequent label of a judge where people give another one."""
    deviations = counts.copy()
    np.fill_diagonal(deviations, 0.0)
    people, judge = divmod(int(deviations.argmax()), len(names))
    if deviations[people, judge] < MIN_DEVIATIONS:
        return None
    return {
        "people": display_name(names[people], 30),
        "judge": display_name(names[judge], 30),
        "share": float(deviations[people, judge] / counts[people].sum()),
    }


def _build_confusion(counts: NDArray[np.float64], classes: NDArray[np.intp]) -> dict[str, Any]:
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return build_heat_map(shares[np.ix_(classes, classes)])


def _read_calibration(calibration: pd.DataFrame, judge: Any) -> dict[str, Any]:
    row = calibration.loc[judge]
    return {
        "n_scores": int(row["n_scores"]),
        **{name: float(row[name]) for name in ("score", "accuracy", "calibration_error")},
    }


def _select_scored_truth(panel: Any, scores: pd.DataFrame | None, gold: GoldLabels | None) -> pd.Series | None:
    """Return the gold labels if a task with a score has one."""
    if gold is None or scores is None or "task" not in scores:
        return None
    tasks = match_id_type(pd.Index(scores["task"]), panel.task_index_)
    return gold.series if tasks.isin(match_id_type(gold.series.index, panel.task_index_)).any() else None


def _calibrate_scores(
    panel: Any, scores: pd.DataFrame | None, truth: pd.Series | None
) -> tuple[pd.DataFrame | None, str]:
    """Return scores beside accuracies, or the reason why they cannot be compared."""
    if scores is None:
        return None, ""
    try:
        return panel.calibration(scores, truth=truth), ""
    except InputError as error:  # some tools store numbers that are not probabilities
        return None, shorten(f"Scores are not compared with accuracies: {error}", MAX_REASON_CHARS)
