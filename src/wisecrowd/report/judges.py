"""The machines of the page, where it is known who is one: what each is worth beside people, and what it shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.vocabulary import same_kind
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.agreement import krippendorff_alpha
from wisecrowd.errors import InputError
from wisecrowd.report.classes import step
from wisecrowd.report.gold import Known
from wisecrowd.report.workers import Shown
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

#: Judges that are shown at most, matrices of them, and groups that are named in a sentence.
JUDGES, MATRICES, NAMED = 100, 12, 5
#: Votes of a judge that differ from people's before the page names what differs most.
ENOUGH = 5


def section(found: Diagnosis, shown: Shown, scores: Any, known: Known | None) -> dict[str, Any] | None:
    """All that the template says of judges; None where nobody is known to be one."""
    panel: Any = found.model
    judges: pd.DataFrame | None = getattr(panel, "judges_", None)
    if judges is None or not len(judges):
        return None
    truth = _of_scored(panel, scores, known)
    calibration, refused = _calibration(panel, scores, truth)
    order = np.argsort(-judges["worth"].fillna(judges["accuracy"]).to_numpy(), kind="stable")[:JUDGES]
    names = found.crowd.classes
    assert names is not None
    rows = []
    for place in map(int, order):
        row, who = judges.iloc[place], judges.index[place]
        rows.append(
            {
                "name": display_name(who),
                "group": display_name(row["group"], 40) if row["group"] else "",
                "n_votes": round(float(row["n_votes"])),
                **{column: float(row[column]) for column in ("accuracy", "agreement", "shared", "alone", "worth")},
                "differs": _differs(panel.judge_confusion_[place], names),
                "calibration": None
                if calibration is None or who not in calibration.index
                else _scored(calibration, who),
            }
        )
    groups = _groups(getattr(panel, "opinions_", None))
    few = shown.classes
    met = panel.judge_confusion_.sum(axis=(1, 2)) > 0
    matrices = [
        {"name": display_name(judges.index[place], 40), "heat": _heat(panel.judge_confusion_[place], few)}
        for place in map(int, order[:MATRICES])
        if met[place]
    ]
    return {
        "rows": rows,
        "caption": describe_selection(len(rows), len(judges), "judges", "those whose votes are worth most"),
        "sentences": _sentences(found, judges, groups),
        "groups": groups,
        "with_people": bool(judges["worth"].notna().any()),
        "with_scores": calibration is not None,
        "scored_by": "the panel" if truth is None else "the known truth",
        "refused": refused,
        "names": [display_name(names[k], 24) for k in few],
        "heat": _heat(panel.judge_confusion_.sum(axis=0), few) if met.any() else None,
        "matrices": matrices,
        "matrices_caption": describe_selection(
            len(matrices), len(judges), "judges", "those whose votes are worth most"
        ),
    }


def _sentences(found: Diagnosis, judges: pd.DataFrame, groups: list[dict[str, Any]]) -> list[str]:
    share = format_percent(float(judges["n_votes"].sum()) / max(float(found.crowd.weight.sum()), 1.0))
    verb = "is a judge" if len(judges) == 1 else "are judges"
    told = [
        f"{len(judges):,} of {count_noun(found.crowd.n_workers, 'worker')} {verb}; {share} of all votes are theirs."
    ]
    if judges["worth"].isna().all():
        return [
            *told,
            "There are no people beside them, so that nothing but gold tells whether they are right, and what they are worth "
            "cannot be told in votes of a person.",
        ]
    kind = found.workers.get("kind")
    if kind is not None:
        people = found.crowd.take((kind == "person").to_numpy()[found.crowd.worker_codes])
        alpha = krippendorff_alpha(people).value
        if not np.isnan(alpha):
            told.append(
                f"Among people alone, Krippendorff’s alpha is {alpha:.2f}; that judges of one model agree says little."
            )
    for group in [one for one in groups if one["worth"] == one["worth"]][:NAMED]:
        told.append(
            f"The {count_noun(group['members'], 'member')} of {quote_name(group['name'])} together are worth "
            f"{format_number(group['worth'])} votes of a person on a task."
        )
    return told


def _groups(opinions: pd.DataFrame | None) -> list[dict[str, Any]]:
    """A row for each group, the largest first."""
    if opinions is None:
        return []
    ordered = opinions.sort_values("n_workers", ascending=False, kind="stable").head(JUDGES)
    rows = zip(*(ordered[name].tolist() for name in ("n_workers", "n_tasks", "accuracy", "worth")), strict=True)
    return [
        {
            "name": display_name(name, 40),
            "members": int(members),
            "tasks": int(tasks),
            "accuracy": right,
            "worth": worth,
        }
        for name, (members, tasks, right, worth) in zip(ordered.index, rows, strict=True)
    ]


def _differs(counts: Any, names: pd.Index) -> dict[str, Any] | None:
    """What a judge says most often where people say something else."""
    off = counts.copy()
    np.fill_diagonal(off, 0.0)
    people, said = divmod(int(off.argmax()), len(names))
    if off[people, said] < ENOUGH:
        return None
    return {
        "people": display_name(names[people], 30),
        "said": display_name(names[said], 30),
        "share": float(off[people, said] / counts[people].sum()),
    }


def _heat(counts: Any, few: Any) -> list[list[dict[str, Any]]]:
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)[np.ix_(few, few)]
    return [[{"p": float(p), "step": step(float(p))} for p in row] for row in shares]


def _scored(calibration: pd.DataFrame, who: Any) -> dict[str, Any]:
    row = calibration.loc[who]
    return {
        "n": int(row["n_scores"]),
        **{name: float(row[name]) for name in ("score", "accuracy", "calibration_error")},
    }


def _of_scored(panel: Any, scores: Any, known: Known | None) -> pd.Series | None:
    """Known truth, if there is any of tasks that were scored."""
    if known is None or scores is None or "task" not in scores:
        return None
    tasks, truth = same_kind(pd.Index(scores["task"]), panel.task_index_), known.series
    return truth if tasks.isin(same_kind(truth.index, panel.task_index_)).any() else None


def _calibration(panel: Any, scores: Any, truth: pd.Series | None) -> tuple[pd.DataFrame | None, str]:
    """How sure judges were against how often they are right, or why that cannot be told."""
    if scores is None:
        return None, ""
    try:
        return panel.calibration(scores, truth=truth), ""
    except InputError as error:  # tools take any number for a score
        told = f"How sure judges were is not held against how often they are right: {error}"
        return None, shorten(told, MAX_REASON_CHARS)
