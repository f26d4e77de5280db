"""Section about methods: comparison by held-out votes, on a sample of the tasks of a large crowd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.data.alignment import order_by_task
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import FeaturesLike
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError
from wisecrowd.evaluate.method_check import sample_votes
from wisecrowd.evaluate.model_selection import Comparison, compare_methods
from wisecrowd.report.gold import GoldLabels
from wisecrowd.report.heat_maps import build_heat_map
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import describe_selection, display_name

#: Maximum number of disputed tasks on the page.
MAX_DISPUTED_TASKS = 20


def run_comparison(
    diagnosis: Diagnosis, X: FeaturesLike | None, gold: GoldLabels | None, *, enabled: bool = True
) -> tuple[Comparison | None, str]:
    """Compare methods by held-out votes.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    X : array-like, DataFrame or None
        Features of the tasks.
    gold : GoldLabels or None
        Gold labels.
    enabled : bool, default=True
        Whether the user asked for the comparison.

    Returns
    -------
    comparison : Comparison or None
        Comparison; None where it was not possible.
    note : str
        Sentence about the votes in the comparison, or the reason why there is none.
    """
    if not enabled:
        return None, "the comparison was switched off."
    if models_machines(diagnosis.model):
        return None, (
            "the comparison predicts held-out votes, and machines and members of a group predict each other whatever the truth is. "
            "Only the method panel accounts for them."
        )
    crowd, features, note = _sample_tasks(diagnosis.crowd, X)
    truth = None
    if gold is not None:
        series = gold.series[gold.series.index.isin(crowd.tasks)]
        truth = series if len(series) else None
    try:
        return compare_methods(crowd, None, features, truth=truth), note
    except InputError as error:
        return None, str(error)


def _sample_tasks(crowd: Crowd, X: FeaturesLike | None) -> tuple[Crowd, FeaturesLike | None, str]:
    """Return the votes that are compared, their features, and a sentence about the selection."""
    sample = sample_votes(crowd)
    if sample is crowd:
        return crowd, X, f"All {crowd.n_votes:,} votes took part."
    positions = crowd.tasks.get_indexer(sample.tasks)
    features: Any = None
    if X is not None:
        rows = order_by_task(X, crowd)
        features = rows.iloc[positions] if isinstance(rows, pd.DataFrame) else np.asarray(rows)[positions]
        if not isinstance(features, pd.DataFrame) and features.ndim == 2:
            features = pd.DataFrame(features, index=sample.tasks)
    note = (
        f"{sample.n_votes:,} of {crowd.n_votes:,} votes took part: all votes on {sample.n_tasks:,} of {crowd.n_tasks:,} tasks, "
        "drawn at random (seed 0). The command wisecrowd compare uses all votes."
    )
    return sample, features, note


def models_machines(model: Any) -> bool:
    """Return whether the labels of a page are those of a panel, which knows machines or groups.

    Parameters
    ----------
    model : Method
        Fitted method of the page.

    Returns
    -------
    bool
    """
    return getattr(model, "kinds", None) is not None or getattr(model, "groups", None) is not None


def build_section(comparison: Comparison | None, note: str) -> dict[str, Any]:
    """Build the content of the section.

    Parameters
    ----------
    comparison : Comparison or None
        Comparison.
    note : str
        Note of `run_comparison`.

    Returns
    -------
    dict
        Variables of the template.
    """
    if comparison is None:
        return {"is_available": False, "reason": note}
    table, agreement, disputed = comparison.table, comparison.agreement, comparison.disputed_tasks
    n_disputed = min(len(disputed), MAX_DISPUTED_TASKS)
    return {
        "is_available": True,
        "note": note,
        "rows": [
            {
                "name": str(name),
                "is_tied": name in comparison.tied_methods,
                "is_best": name == comparison.best,
                **{column: float(row[column]) for column in table.columns},
                "probability": float(np.exp(row["log_likelihood"])),
            }
            for name, row in table.iterrows()
        ],
        "with_truth": "accuracy" in table,
        "level": format_level(),
        "summary": comparison.summary,
        "names": [str(name) for name in agreement.columns],
        "agreement": build_heat_map(agreement.to_numpy(), errors=False),
        "disputed": [
            {"name": display_name(task), "labels": [display_name(label, 30) for label in row]}
            for task, row in zip(disputed.index[:n_disputed], disputed.head(n_disputed).to_numpy(), strict=True)
        ],
        "caption": describe_selection(
            n_disputed, len(disputed), "disputed tasks", "those on which most methods differ"
        ),
    }
