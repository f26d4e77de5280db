"""Checks of texts. The time of every check is proportional to the number of texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wisecrowd.data.texts import TextCrowd, tokenize
from wisecrowd.errors import preview
from wisecrowd.io.validation.count_checks import check_votes_per_task, check_votes_per_worker
from wisecrowd.io.validation.crowd_checks import MIN_VOTES
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.id_checks import check_ids
from wisecrowd.utils.text import count_noun


def check_texts(crowd: TextCrowd) -> Iterator[Finding]:
    """Check texts.

    Parameters
    ----------
    crowd : TextCrowd
        Votes.

    Yields
    ------
    Finding
        Problems and observations.

    Examples
    --------
    >>> votes = {"task": ["t1", "t1", "t2"], "worker": ["ann", "bob", "bob"], "text": ["a cat", "...", "a dog"]}
    >>> [finding.name for finding in check_texts(TextCrowd.from_frame(votes))]
    ['one-vote-workers', 'one-vote-tasks', 'empty-texts']
    """
    if crowd.n_votes == 0:
        yield Finding(name="empty-file", severity="error", count=1, message="there are no votes")
        return
    yield from check_votes_per_worker(crowd.workers, crowd.votes_per_worker)
    yield from check_votes_per_task(crowd.tasks, crowd.votes_per_task)
    is_empty = tokenize(crowd.text).length == 0
    if is_empty.any():
        row = int(np.flatnonzero(is_empty)[0])
        example = f"{preview([crowd.text[row]])} of {preview([crowd.workers[crowd.worker[row]]])}"
        yield Finding(
            name="empty-texts",
            severity="warning",
            count=int(is_empty.sum()),
            message=f"{count_noun(int(is_empty.sum()), 'text')} without words ({example}); they vote for an empty text",
            fix="Leave out texts that are no answers.",
        )
    _, code = np.unique(crowd.text.astype(str), return_inverse=True)
    low, high = np.full(crowd.n_workers, len(code)), np.full(crowd.n_workers, -1)
    np.minimum.at(low, crowd.worker, code.ravel())
    np.maximum.at(high, crowd.worker, code.ravel())
    constant = crowd.workers[(low == high) & (crowd.votes_per_worker >= MIN_VOTES)]
    if len(constant):
        yield Finding(
            name="one-answer-workers",
            severity="warning",
            count=len(constant),
            examples=tuple(constant[:3]),
            message=f"{count_noun(len(constant), 'worker')} gave the same text to all tasks ({preview(constant)})",
            fix="Inspect them; rover gives them little weight.",
        )
    yield from check_ids({"id": [crowd.tasks, crowd.workers]})
