"""Groups of workers who err alike, where the votes tell more than one apart."""

from __future__ import annotations

from typing import Any

from wisecrowd.diagnose import Diagnosis
from wisecrowd.report.workers import Shown
from wisecrowd.utils.text import MAX_REASON_CHARS, shorten

#: Groups with a colour of their own on the map.
COLOURS = 8
#: Of fewer workers nobody would speak of groups.
FEWEST = 6


def section(found: Diagnosis, shown: Shown) -> dict[str, Any] | None:
    """A sentence for each group, numbered from one, and the group of every worker that is shown; None where all are one."""
    if (found.crowd.votes_per_worker > 0).sum() < FEWEST:
        return None
    groups = found.groups
    if len(groups.size) < 2:
        return None
    mine = groups.of_worker.iloc[shown.place]
    return {
        "rows": [
            {"number": number, "colour": min(number, COLOURS), "about": shorten(about, MAX_REASON_CHARS)}
            for number, about in enumerate(groups.described, start=1)
        ],
        "of_worker": [
            {"number": int(number) + 1, "colour": min(int(number) + 1, COLOURS), "probability": float(probability)}
            for number, probability in zip(mine["group"], mine["probability"], strict=True)
        ],
    }
