"""Layouts for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.data import layout as layout_module
from wisecrowd.data.layout import Layout
from wisecrowd.errors import UsageError


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


VALID: dict[str, Any] = {"offset": [0, 2, 3], "pair": [0, 1, 1], "weight": None, "n_pairs": 2}
INVALID = [
    {"pair": [0, -1, 1]}, {"pair": [0, 2, 1]}, {"pair": [0, -(2**31), 1]}, {"pair": [0.0, 1.0, 1.0]}, {"pair": [[0], [1], [1]]},
    {"pair": []}, {"offset": [0, 2, 4]}, {"offset": [-1, 2, 3]}, {"offset": [0, 3, 2]}, {"offset": []}, {"offset": [[0, 2, 3]]},
    {"offset": [0.0, 2.0, 3.0]}, {"offset": [0, 2**62, 3]}, {"weight": [1.0, 1.0]}, {"weight": [[1.0], [1.0], [1.0]]},
    {"weight": np.empty((3, 0))}, {"weight": ["a", "b", "c"]}, {"n_pairs": 1}, {"n_pairs": 0},
]  # fmt: skip


def make_layout(changes: dict[str, Any]) -> Layout:
    columns = VALID | changes
    return Layout(
        *(None if columns[name] is None else np.array(columns[name]) for name in ("offset", "pair", "weight")),
        columns["n_pairs"],
    )


@pytest.mark.parametrize("changes", INVALID, ids=str)
def test_invalid_layouts_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="layout"):
        make_layout(changes).check()
    with pytest.raises(UsageError, match="layout"):
        _ = make_layout(changes).vote_matrix


def test_a_slice_needs_valid_votes_only_where_it_lies() -> None:
    layout = make_layout({"pair": [0, 1, 5]})
    layout.slice_tasks(0, 1).check()
    with pytest.raises(UsageError, match="pairs in 0…1; got 5…5"):
        layout.slice_tasks(1, 2).check()


def test_arrays_that_nobody_changes_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    monkeypatch.setattr(layout_module, "are_codes", lambda codes, n: checks.append(n) or True)  # type: ignore[func-returns-value]
    layout = make_layout({})
    for _ in range(2):
        layout.check()
    assert len(checks) == 2
    for array in (layout.offset, layout.pair):
        array.setflags(write=False)
    for _ in range(2):
        layout.check()
        layout.slice_tasks(0, 1).check()
    assert len(checks) == 3
    crowd = Crowd.from_triples([("t1", "ann", "cat")])
    for _ in range(2):
        crowd.layout.check()
    assert len(checks) == 4


def test_codes_in_another_byte_order_are_checked() -> None:
    make_layout({"pair": np.array([0, 1, 1], dtype=">i4")}).check()
    with pytest.raises(UsageError, match="got -1…1"):
        make_layout({"pair": np.array([0, -1, 1], dtype=">i4")}).check()
