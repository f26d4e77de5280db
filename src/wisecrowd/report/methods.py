"""Methods side by side: on all votes, or on those of some tasks where all would take too long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.alignment import in_task_order
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.preparation import groups_of
from wisecrowd.errors import InputError
from wisecrowd.evaluate.model_selection import LEVEL, Comparison, compare
from wisecrowd.report.classes import STEPS
from wisecrowd.report.gold import Known
from wisecrowd.utils.text import describe_selection, display_name

#: Votes that methods are compared on at most: with more, the slowest of them take longer than all the rest of the report.
VOTES = 25_000
#: Disputed tasks that are shown.
DISPUTED = 20


def compared(found: Diagnosis, X: Any, known: Known | None, *, wanted: bool = True) -> tuple[Comparison | None, str]:
    """The comparison, and on what it was made; or none, and why."""
    if not wanted:
        return None, "The comparison of methods was left out."
    if groups_of(found.model) is not None:
        return None, (
            "they are compared by how well they foretell hidden votes, and members of a group foretell each other, whatever "
            "is true. The method panel knows of groups, and the others do not."
        )
    part, features, on = _part(found.crowd, X)
    truth = None
    if known is not None:
        here = known.series[known.series.index.isin(part.tasks)]
        truth = here if len(here) else None
    try:
        return compare(part, None, features, truth=truth), on
    except InputError as error:
        return None, str(error)


def _part(crowd: Crowd, X: Any) -> tuple[Crowd, Any, str]:
    if crowd.n_votes <= VOTES:
        return crowd, X, f"All {crowd.n_votes:,} votes took part."
    order = np.random.default_rng(0).permutation(crowd.n_tasks)
    enough = int(np.searchsorted(np.cumsum(crowd.votes_per_task[order]), VOTES, side="right"))
    place = np.sort(order[: max(enough, 1)])
    part = crowd[place]
    features = None
    if X is not None:
        rows = in_task_order(X, crowd)
        features = rows.iloc[place] if isinstance(rows, pd.DataFrame) else np.asarray(rows)[place]
        if not isinstance(features, pd.DataFrame) and features.ndim == 2:
            features = pd.DataFrame(features, index=part.tasks)
    on = (
        f"{part.n_votes:,} of {crowd.n_votes:,} votes: all those on {part.n_tasks:,} of {crowd.n_tasks:,} tasks, which were "
        "drawn at random (seed 0). wisecrowd compare takes all of them."
    )
    return part, features, on


def section(found: Comparison | None, told: str) -> dict[str, Any]:
    """All that the template says of methods."""
    if found is None:
        return {"found": False, "why": told}
    table = found.table
    rows = []
    for name, row in table.iterrows():
        values = {
            "name": str(name),
            "tied": name in found.tied,
            "best": name == found.best,
            **{key: float(row[key]) for key in table.columns},
        }
        values["probability"] = float(np.exp(row["log_likelihood"]))
        rows.append(values)
    agreement = found.agreement
    return {
        "found": True,
        "on": told,
        "rows": rows,
        "with_truth": "accuracy" in table,
        "level": f"{LEVEL:.0%}",
        "sentence": found.sentence,
        "best": found.best,
        "names": [str(name) for name in agreement.columns],
        "agreement": [[{"p": float(p), "step": round(STEPS * float(p))} for p in row] for row in agreement.to_numpy()],
        "disputed": [
            {"name": display_name(task), "answers": [display_name(answer, 30) for answer in row]}
            for task, row in zip(found.disputed.index[:DISPUTED], found.disputed.head(DISPUTED).to_numpy(), strict=True)
        ],
        "caption": describe_selection(
            min(len(found.disputed), DISPUTED),
            len(found.disputed),
            "disputed tasks",
            "those on which most methods differ",
        ),
    }
