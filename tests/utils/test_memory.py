from __future__ import annotations

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.utils.memory import format_size, get_free_memory, parse_size


@pytest.mark.parametrize(
    ("size", "n_bytes"),
    [(1, 1), (10**12, 10**12), ("500", 500), ("4GB", 4 * 10**9), ("4 gib", 4 * 2**30), ("1.5k", 1500), ("2MiB", 2**21)],
)
def test_sizes(size: int | str, n_bytes: int) -> None:
    assert parse_size(size, "max_unpacked") == n_bytes


@pytest.mark.parametrize("size", ["", "GB", "-1", "0", 0, "4XB", "1e9", "4GBB", True, "9" * 5000, "0.0000001KB"])
def test_what_is_no_size(size: int | str) -> None:
    with pytest.raises(UsageError, match="max_unpacked must be"):
        parse_size(size, "max_unpacked")


def test_formatted_sizes() -> None:
    assert [format_size(n) for n in (0, 999, 1000, 1.5e6, 2e9, 3e12)] == [
        "0 bytes", "999 bytes", "1.0 KB", "1.5 MB", "2.0 GB", "3.0 TB",
    ]  # fmt: skip


def test_some_memory_is_free() -> None:
    assert 2**20 < get_free_memory() < 2**60
