"""Section about the agreement of pairs of workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.agreement_matrix import worker_agreement
from wisecrowd.report.heat_maps import build_heat_map
from wisecrowd.report.workers import ShownWorkers
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import count_noun, describe_selection, display_name, format_percent

#: Maximum number of workers in the matrix.
MAX_WORKERS = 20
#: Smallest number of workers for a matrix; two workers have one pair.
MIN_WORKERS = 3
#: Smallest number of common tasks of a pair; the agreement on fewer is chance.
MIN_COMMON_TASKS = 5


def build_section(diagnosis: Diagnosis, shown: ShownWorkers) -> dict[str, Any] | None:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    shown : ShownWorkers
        Workers on the page, flagged ones first.

    Returns
    -------
    dict or None
        Variables of the template; None if fewer than three workers share tasks.
    """
    crowd = diagnosis.crowd
    assert crowd.workers is not None
    positions = shown.positions[crowd.votes_per_worker[shown.positions] > 0][:MAX_WORKERS]
    if len(positions) < MIN_WORKERS:
        return None
    names = crowd.workers[positions]
    agreement = worker_agreement(crowd, workers=names, min_common=MIN_COMMON_TASKS, level=diagnosis.level)
    if agreement.pairs.empty:
        return None
    shares, low, high, common = (
        agreement.matrix(column).reindex(index=names, columns=names).to_numpy(dtype=np.float64, copy=True)
        for column in ("agreement", "low", "high", "common")
    )
    np.fill_diagonal(shares, np.nan)
    heat = build_heat_map(shares, errors=False)
    level = format_level(diagnosis.level)
    for row, column in np.argwhere(~np.isnan(shares)).tolist():
        bounds = f"{format_percent(low[row, column])} to {format_percent(high[row, column])}"
        n_common = count_noun(int(common[row, column]), "common task")
        heat["cells"][row][column]["title"] = f"{level} {bounds}, {n_common}"
    return {
        "heat": heat,
        "min_common": MIN_COMMON_TASKS,
        "names": [display_name(name, 24) for name in names],
        "caption": describe_selection(
            len(names),
            int((crowd.votes_per_worker > 0).sum()),
            "workers",
            "first those with flags, then those with most votes",
        ),
    }
