"""Section about classes: their frequency and the confusion between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.report.heat_maps import build_heat_map
from wisecrowd.report.workers import ShownWorkers
from wisecrowd.utils.text import describe_selection, display_name

#: Maximum length of the name of a class in a list of confusions.
MAX_CLASS_NAME = 40
#: Maximum number of confusions in the list.
MAX_CONFUSIONS = 10
#: Maximum number of workers named for a confusion.
MAX_WORKERS_NAMED = 3
#: Minimum number of votes of a worker who is named.
MIN_VOTES_NAMED = 10
#: A worker is named where their rate of a confusion exceeds that of the crowd by this factor.
RATE_FACTOR = 1.5


def build_section(diagnosis: Diagnosis, shown: ShownWorkers) -> dict[str, Any]:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers and classes in the report.

    Returns
    -------
    dict
        Variables of the template.
    """
    crowd, names = diagnosis.crowd, diagnosis.crowd.classes
    assert names is not None
    task_share = diagnosis.model.posterior_.mean(axis=0)
    n_votes = np.bincount(crowd.label, minlength=crowd.n_classes)
    confusion = diagnosis.worker_diagnosis.confusion
    codes = shown.classes
    return {
        "rows": [
            {
                "name": display_name(names[k], 40),
                "n_votes": int(n_votes[k]),
                "vote_share": n_votes[k] / max(crowd.n_votes, 1),
                "task_share": float(task_share[k]),
                "recall": float(confusion[k, k]),
            }
            for k in codes
        ],
        "names": [display_name(names[k], 24) for k in codes],
        "heat": build_heat_map(confusion[np.ix_(codes, codes)]),
        "caption": describe_selection(len(codes), crowd.n_classes, "classes", "the most frequent"),
        "confusions": list_confusions(diagnosis, shown),
    }


def list_confusions(diagnosis: Diagnosis, shown: ShownWorkers) -> list[dict[str, Any]]:
    """List the most frequent wrong labels by true class, and the workers who give them unusually often.

    Pairs of a class and a wrong label with less than one expected vote are left out.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers and classes in the report. Only these workers are named, and only for these classes.

    Returns
    -------
    list of dict
        True class, wrong label, ``rate`` (share of the votes on tasks of the true class that have this label), expected
        number of votes, and workers; the most votes first.
    """
    crowd, names = diagnosis.crowd, diagnosis.crowd.classes
    crowd_confusion = diagnosis.worker_diagnosis.confusion
    assert names is not None
    votes_per_class = crowd.votes_per_task @ diagnosis.model.posterior_
    expected_votes = votes_per_class[:, None] * crowd_confusion
    np.fill_diagonal(expected_votes, 0.0)
    order = np.argsort(-expected_votes, axis=None, kind="stable")[:MAX_CONFUSIONS]
    shown_position = {int(k): position for position, k in enumerate(shown.classes)}
    confusions = []
    for true, label in zip(*np.unravel_index(order, expected_votes.shape), strict=True):
        if round(expected_votes[true, label]) < 1:
            break
        rate = float(crowd_confusion[true, label])
        confusions.append(
            {
                "true": display_name(names[true], MAX_CLASS_NAME),
                "label": display_name(names[label], MAX_CLASS_NAME),
                "rate": rate,
                "expected_votes": round(float(expected_votes[true, label])),
                "workers": _find_workers(
                    shown, crowd, shown_position.get(int(true)), shown_position.get(int(label)), rate
                ),
            }
        )
    return confusions


def _find_workers(
    shown: ShownWorkers, crowd: Crowd, true: int | None, label: int | None, crowd_rate: float
) -> list[dict[str, Any]]:
    """Return workers with enough votes who give a wrong label far more often than the crowd.

    ``true`` and ``label`` are positions among the shown classes. If one of them is not shown (None), nobody is returned.
    """
    if true is None or label is None:
        return []
    assert crowd.workers is not None
    rate = shown.confusion[:, true, label]
    has_votes = crowd.votes_per_worker[shown.positions] >= MIN_VOTES_NAMED
    candidates = np.flatnonzero((rate > RATE_FACTOR * crowd_rate) & has_votes)
    first = candidates[np.argsort(-rate[candidates], kind="stable")][:MAX_WORKERS_NAMED]
    return [
        {
            "row": int(row),
            "name": display_name(crowd.workers[shown.positions[row]], 40),
            "rate": float(rate[row]),
        }
        for row in first
    ]
