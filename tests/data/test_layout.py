"""Layouts for the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import Crowd


@pytest.mark.parametrize("weighted", [False, True])
def test_slices_are_rows_of_the_vote_matrix(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    task = np.sort(rng.integers(6, size=20))
    crowd = Crowd.from_codes(
        task, rng.integers(4, size=20), rng.integers(3, size=20), tasks=range(7), workers=range(4), classes=range(3),
        weight=rng.random(20) + 0.1 if weighted else None, duplicates="keep",
    )  # fmt: skip
    layout = crowd.layout
    assert layout.total_weight == pytest.approx(crowd.weight.sum())
    assert layout.has_votes.tolist() == (crowd.votes_per_task > 0).tolist()
    part = layout.slice_tasks(2, 6)
    assert (part.n_tasks, part.n_votes) == (4, int(crowd.votes_per_task[2:6].sum()))
    assert part.total_weight == pytest.approx(crowd.vote_counts[2:6].sum())
    np.testing.assert_array_equal(part.vote_matrix.toarray(), layout.vote_matrix.toarray()[2:6])
