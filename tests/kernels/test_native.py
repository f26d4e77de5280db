"""Calls of machine code: types of arguments, and division into threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.data.layout import Layout
from wisecrowd.kernels import native

#: Tasks with 0, 2, 0, 3 and 1 votes.
LAYOUT = Layout(np.array([0, 0, 2, 2, 5, 6]), np.array([0, 1, 1, 0, 2, 2], dtype=np.int32), None, 3)
POSTERIOR = np.random.default_rng(0).dirichlet(np.ones(2), 5)


def count(n_tasks: int, n_classes: int, offset: Any, pair: Any, weight: Any, posterior: Any, tally: Any) -> float:
    """Do in Python what the "count" kernel does; machine code would crash on other types."""
    assert (offset.dtype, pair.dtype) == (np.int64, np.int32)
    assert all(array.flags.c_contiguous for array in (offset, pair, posterior, tally))
    assert posterior.shape == (n_tasks, n_classes)
    for task in range(n_tasks):
        for vote in range(offset[task], offset[task + 1]):
            tally[pair[vote]] += posterior[task] * (1 if weight is None else weight[vote])
    return 0.0


def sum_votes(layout: Layout) -> np.ndarray:
    expected = np.zeros((3, 2))
    np.add.at(expected, layout.pair, POSTERIOR[np.repeat(np.arange(5), np.diff(layout.offset))])
    return expected


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 9])
def test_threads_divide_the_tasks_without_gap_or_overlap(n_jobs: int) -> None:
    np.testing.assert_allclose(native.tally(count, LAYOUT, POSTERIOR, n_jobs), sum_votes(LAYOUT))


def test_other_types_and_orders_are_converted() -> None:
    odd = Layout(LAYOUT.offset.astype(np.int32), LAYOUT.pair.astype(np.int64)[::1], None, 3)
    np.testing.assert_allclose(native.tally(count, odd, np.asfortranarray(POSTERIOR), 1), sum_votes(LAYOUT))


def test_a_table_is_added_to_in_place() -> None:
    before = np.ones((3, 2))
    assert native.tally(count, LAYOUT, POSTERIOR, 1, before) is before
    np.testing.assert_allclose(before, 1 + sum_votes(LAYOUT))


def test_tables_are_added_to_the_first() -> None:
    tables = [np.ones(2), np.full(2, 2.0), np.full(2, 3.0)]
    assert native.add_in_place(tables) is tables[0]
    assert tables[0].tolist() == [6, 6]
    assert tables[1].tolist() == [2, 2]
