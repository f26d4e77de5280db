"""The classes of the page: how frequent each is, what it is taken for, and by whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.diagnose import Diagnosis
from wisecrowd.report.workers import Shown
from wisecrowd.utils.text import describe_selection, display_name

#: Confusions that are listed, workers that are named for each, and votes that a worker must have to be named.
CONFUSIONS, NAMED, ENOUGH = 10, 3, 10
#: Steps of colour of a heat map.
STEPS = 20


def section(found: Diagnosis, shown: Shown) -> dict[str, Any]:
    """All that the template says of classes."""
    crowd, names = found.crowd, found.crowd.classes
    assert names is not None
    share = found.model.posterior_.mean(axis=0)
    votes = np.bincount(crowd.label, minlength=crowd.n_classes)
    matrix = found.of_workers.confusion
    few = shown.classes
    part = matrix[np.ix_(few, few)]
    return {
        "rows": [
            {
                "name": display_name(names[k], 40),
                "votes": int(votes[k]),
                "votes_share": votes[k] / max(crowd.n_votes, 1),
                "share": float(share[k]),
                "right": float(matrix[k, k]),
            }
            for k in few
        ],
        "names": [display_name(names[k], 24) for k in few],
        "heat": [[{"p": float(p), "step": step(float(p))} for p in row] for row in part],
        "caption": describe_selection(len(few), crowd.n_classes, "classes", "the most frequent"),
        "confusions": confusions(found, shown),
    }


def step(share: float) -> int:
    """The colour of a share: by its square root, or small ones could not be told from none."""
    return round(STEPS * float(np.sqrt(min(max(share, 0.0), 1.0))))


def confusions(found: Diagnosis, shown: Shown) -> list[dict[str, Any]]:
    """What is taken for what most often, and who does it."""
    crowd, names, matrix = found.crowd, found.crowd.classes, found.of_workers.confusion
    assert names is not None
    posterior = found.model.posterior_
    met = crowd.votes_per_task @ posterior  # votes on tasks of each class, as far as is known
    expected = met[:, None] * matrix
    np.fill_diagonal(expected, 0.0)
    order = np.argsort(-expected, axis=None, kind="stable")[:CONFUSIONS]
    column = {int(k): place for place, k in enumerate(shown.classes)}
    listed = []
    for true, said in zip(*np.unravel_index(order, expected.shape), strict=True):
        if round(expected[true, said]) < 1:
            break
        listed.append(
            {
                "true": display_name(names[true], 40),
                "said": display_name(names[said], 40),
                "share": float(matrix[true, said]),
                "votes": round(float(expected[true, said])),
                "who": _who(shown, crowd, column.get(int(true)), column.get(int(said)), float(matrix[true, said])),
            }
        )
    return listed


def _who(shown: Shown, crowd: Any, true: int | None, said: int | None, usual: float) -> list[dict[str, Any]]:
    """Workers with some votes who take the one class for the other far more often than the crowd does."""
    if true is None or said is None:
        return []
    rate = shown.matrices[:, true, said]
    often = np.flatnonzero((rate > 1.5 * usual) & (crowd.votes_per_worker[shown.place] >= ENOUGH))
    first = often[np.argsort(-rate[often], kind="stable")][:NAMED]
    return [
        {
            "worker": int(place),
            "name": display_name(crowd.workers[shown.place[place]], 40),
            "share": float(rate[place]),
        }
        for place in first
    ]
