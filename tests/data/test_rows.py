"""Rows of a crowd: sorting, validation and random groups."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.data import rows as rows_module
from wisecrowd.data.rows import (
    GrowingColumn,
    VoteRows,
    argsort_codes,
    as_codes,
    as_observed_mask,
    as_weights,
    assign_folds,
    shuffle_within_groups,
)
from wisecrowd.errors import InputError, UsageError


def test_argsort_is_stable() -> None:
    codes = np.random.default_rng(0).integers(5, size=100).astype(np.int32)
    assert np.array_equal(argsort_codes(codes, 5), np.argsort(codes, kind="stable"))


@pytest.mark.parametrize("key_bits", [63, 3])
@pytest.mark.parametrize("has_workers", [True, False])
def test_packed_keys_and_lexsort_give_the_same_order(
    key_bits: int, has_workers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    task, worker = (rng.integers(9, size=60).astype(np.int32) for _ in range(2))
    label = np.arange(60)
    monkeypatch.setattr(rows_module, "MAX_KEY_BITS", key_bits)
    rows = VoteRows(task, worker if has_workers else None, label, None, None)
    result = rows.sort(9, 9, "keep", lambda *_: "")
    keys = (label, worker, task) if has_workers else (label, task)
    assert result.label.tolist() == np.lexsort(keys).tolist()
    assert result.task.tolist() == sorted(task.tolist())


def test_rows_of_one_group_are_shuffled_and_ranked() -> None:
    codes = np.array([1, 0, 1, 1, 0], dtype=np.int32)
    orders = set()
    for seed in range(30):
        order, rank = shuffle_within_groups(codes, 3, np.random.default_rng(seed))
        assert codes[order].tolist() == [0, 0, 1, 1, 1]
        assert rank.tolist() == [0, 1, 0, 1, 2]
        orders.add(tuple(order.tolist()))
    assert len(orders) == 12  # 2! x 3!


def test_rows_of_one_code_go_to_different_folds() -> None:
    codes = np.repeat(np.arange(50, dtype=np.int32), 4)
    fold = assign_folds(codes, 50, 5, np.random.default_rng(0))
    assert all(len(set(fold[codes == code])) == 4 for code in range(50))
    assert set(fold) == set(range(5))


def test_codes_are_copied_and_validated() -> None:
    codes = np.array([0, 1], dtype=np.int32)
    copy = as_codes(codes, 2, "task")
    copy[0] = 1
    assert codes.tolist() == [0, 1]
    with pytest.raises(UsageError, match="worker codes are missing although there is a worker vocabulary"):
        as_codes(None, 2, "worker")
    with pytest.raises(UsageError, match="one-dimensional integer array; got float64"):
        as_codes([0.5], 2, "label")
    with pytest.raises(InputError, match="label codes must lie in 0…1; got -1…0"):
        as_codes([-1, 0], 2, "label")
    with pytest.raises(InputError, match="got 0…4294967296"):
        as_codes([0, 2**32], 2, "label")
    with pytest.raises(InputError, match="got 1…18446744073709551615"):
        as_codes(np.array([1, 2**64 - 1], dtype=np.uint64), 2, "label")


@pytest.mark.parametrize("weight", [[[1.0], [2.0]], np.empty((2, 0)), 2.0])
def test_weights_are_one_dimensional(weight: object) -> None:
    with pytest.raises(UsageError, match="weights must be a one-dimensional array; got shape"):
        as_weights(weight)  # type: ignore[arg-type]  # the error


def test_default_columns_are_none() -> None:
    assert as_weights(None) is None
    assert as_weights([1, 1]) is None
    assert as_observed_mask(None) is None
    assert as_observed_mask([True, True]) is None
    assert as_observed_mask([True, False]).tolist() == [True, False]  # type: ignore[union-attr]  # not None
    for weight in (0.0, -1.0, np.nan, np.inf, 1e300, 1e-300, 1.1e12, 0.9e-12):
        with pytest.raises(InputError, match="weights must lie between 1e-12 and"):
            as_weights([1.0, weight])


def test_a_growing_column_without_values_is_none() -> None:
    column = GrowingColumn(np.nan)
    column.append(None, 3)
    assert column.to_array() is None
