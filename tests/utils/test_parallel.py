"""Numbers of threads."""

from __future__ import annotations

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.utils import parallel


def test_negative_numbers_count_from_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 4)
    assert [parallel.thread_count(n_jobs) for n_jobs in (3, -1, -2, -9)] == [3, 4, 3, 1]
    with pytest.raises(UsageError, match="got 0"):
        parallel.thread_count(0)
