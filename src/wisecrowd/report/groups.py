"""Section about groups of workers with similar errors."""

from __future__ import annotations

from typing import Any

from wisecrowd.diagnose import Diagnosis
from wisecrowd.report.workers import ShownWorkers
from wisecrowd.utils.text import MAX_REASON_CHARS, shorten

#: Number of groups with their own colour on the map.
MAX_COLOURS = 8
#: Minimum number of workers for which groups are meaningful.
MIN_WORKERS = 6


def build_section(diagnosis: Diagnosis, shown: ShownWorkers) -> dict[str, Any] | None:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers on the page.

    Returns
    -------
    dict or None
        Variables of the template, with groups numbered from one; None where all workers form one group.
    """
    if (diagnosis.crowd.votes_per_worker > 0).sum() < MIN_WORKERS:
        return None
    groups = diagnosis.groups
    if len(groups.size) < 2:
        return None
    memberships = groups.memberships.iloc[shown.positions]
    return {
        "rows": [
            {
                "number": number,
                "colour": min(number, MAX_COLOURS),
                "description": shorten(description, MAX_REASON_CHARS),
            }
            for number, description in enumerate(groups.descriptions, start=1)
        ],
        "memberships": [
            {
                "number": int(group) + 1,
                "colour": min(int(group) + 1, MAX_COLOURS),
                "probability": float(probability),
            }
            for group, probability in zip(memberships["group"], memberships["probability"], strict=True)
        ],
    }
