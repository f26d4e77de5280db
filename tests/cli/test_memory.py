"""Freed memory is kept where the C library can, and nothing happens where it cannot."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np
import pytest

from wisecrowd.cli._memory import keep_freed_memory

resource = pytest.importorskip("resource", reason="this system does not count page faults")
#: 64 MB, which glibc returns at once unless it is configured otherwise.
SIZE = 8_000_000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is one of glibc")
def test_the_next_array_takes_the_place_of_the_last() -> None:
    keep_freed_memory()
    for _ in range(2):
        np.ones(SIZE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(SIZE)
    # Even in pages of two megabytes, ten new arrays would be three hundred.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_another_c_library_is_left_alone(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Any) -> Any:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", missing)
    keep_freed_memory()
