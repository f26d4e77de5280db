"""Checks of masks. The time of every check is proportional to the number of runs of pixels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wisecrowd.data.masks import MaskCrowd
from wisecrowd.errors import preview
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.crowd_checks import MIN_VOTES
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun

#: Share of the image from which a mask may be inverted: the background was marked.
MAX_SHARE = 0.98


def check_masks(crowd: MaskCrowd) -> Iterator[Finding]:
    """Check masks.

    Parameters
    ----------
    crowd : MaskCrowd
        Votes.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> masks = [[[1, 0]], [[0, 0]], [[1, 1]]]
    >>> crowd = MaskCrowd.from_arrays(["i1", "i1", "i2"], ["ann", "bob", "bob"], masks)
    >>> [finding.name for finding in check_masks(crowd)]
    ['one-vote-workers', 'one-vote-tasks', 'full-masks']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no votes")
        return
    yield from check_votes_per_worker(crowd.workers, crowd.votes_per_worker)
    yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task)
    area = crowd.masks.area
    n_pixels = crowd.masks.height * crowd.masks.width
    unsized = crowd.tasks[(crowd.height == 0) & (crowd.votes_per_task > 0)]
    if len(unsized):
        yield Finding(
            name="unknown-sizes",
            severity="warning",
            count=len(unsized),
            examples=tuple(unsized[:3]),
            message=f"{count_noun(len(unsized), 'task')} with empty masks of unknown size ({preview(unsized)}); their "
            "result is empty",
            fix="Give the columns height and width.",
        )
    full = np.flatnonzero((area > MAX_SHARE * n_pixels) & (n_pixels > 0))
    if full.size:
        row = full[0]
        example = f"{preview([crowd.workers[crowd.worker[row]]])} on {preview([crowd.tasks[crowd.task[row]]])}"
        yield Finding(
            name="full-masks",
            severity="warning",
            count=full.size,
            message=f"{count_noun(full.size, 'mask')} with (nearly) all pixels of the image ({example}); the background "
            "may have been "
            "marked",
            fix="Invert masks of the background; counts begin with the pixels outside.",
        )
    is_empty = np.bincount(crowd.worker, area == 0, crowd.n_workers) == crowd.votes_per_worker
    silent = crowd.workers[is_empty & (crowd.votes_per_worker >= MIN_VOTES)]
    if len(silent):
        yield Finding(
            name="one-answer-workers",
            severity="warning",
            count=len(silent),
            examples=tuple(silent[:3]),
            message=f"{count_noun(len(silent), 'worker')} marked no pixel of any task ({preview(silent)})",
            fix="Inspect them; staple gives them little weight.",
        )
    yield from check_ids({"id": [crowd.tasks, crowd.workers]})
