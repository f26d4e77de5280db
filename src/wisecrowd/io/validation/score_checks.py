"""Checks of scores of judges. The time of every check is proportional to the number of scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.errors import preview
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun

#: Tasks below which the scores of a judge are few.
MIN_SCORES = 30


def check_scores(scores: ScoreCrowd, *, repeats_allowed: bool) -> Iterator[Finding]:
    """Check scores of judges.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores, with repeated ones.
    repeats_allowed : bool
        Whether a rule for repeated scores was chosen.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> table = {"task": ["t1", "t2", "t1", "t2"], "worker": ["gpt", "gpt", "old", "old"], "score": [3, 4, 5, 5]}
    >>> [finding.name for finding in check_scores(ScoreCrowd.from_frame(table), repeats_allowed=False)]
    ['one-score-judges', 'few-scores']
    """
    if scores.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no scores")
        return
    key = scores.task.astype(np.int64) * scores.n_workers + scores.worker
    n_repeated = len(key) - len(np.unique(key))
    if n_repeated:
        yield Finding(
            name="duplicate-votes",
            severity="note" if repeats_allowed else "error",
            count=n_repeated,
            message=f"{count_noun(n_repeated, 'repeated score')} of a judge on a task",
            fix=""
            if repeats_allowed
            else 'Choose a rule: duplicates="keep" counts them as one answer (--duplicates keep), or "first", "last".',
            options={} if repeats_allowed else {"duplicates": "keep"},
        )
    low, high = np.full(scores.n_workers, np.inf), np.full(scores.n_workers, -np.inf)
    np.minimum.at(low, scores.worker, scores.score)
    np.maximum.at(high, scores.worker, scores.score)
    has_scores = scores.votes_per_worker > 0
    constant = scores.workers[has_scores & (low == high)]
    if len(constant):
        yield Finding(
            name="one-score-judges",
            severity="warning",
            count=len(constant),
            examples=tuple(constant[:3]),
            message=f"{count_noun(len(constant), 'judge')} always gave the same score ({preview(constant)})",
            fix="Check how the answers of the judge were parsed; the panel ignores such scores.",
        )
    few = scores.workers[has_scores & (scores.votes_per_worker < MIN_SCORES)]
    if len(few):
        yield Finding(
            name="few-scores",
            severity="warning",
            count=len(few),
            examples=tuple(few[:3]),
            message=f"{count_noun(len(few), 'judge')} with fewer than {MIN_SCORES} scores ({preview(few)})",
            fix="Little can be said about such judges.",
        )
    yield from check_ids({"id": [scores.tasks, scores.workers]})
