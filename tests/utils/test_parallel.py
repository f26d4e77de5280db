"""Numbers of threads."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from wisecrowd.errors import UsageError
from wisecrowd.utils import parallel


def test_negative_numbers_count_from_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 4)
    assert [parallel.thread_count(n_jobs) for n_jobs in (3, -1, -2, -9)] == [3, 4, 3, 1]
    with pytest.raises(UsageError, match="got 0"):
        parallel.thread_count(0)


def test_blas_has_one_thread_inside_the_block_only() -> None:
    def count_threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        with parallel.use_one_blas_thread():
            assert count_threads() == {1}
        assert count_threads() == {2}
