"""Free memory, and sizes in bytes as text."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from wisecrowd.errors import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def get_free_memory() -> int:
    """Return the free memory in bytes. The limit of a container counts.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> get_free_memory() > 2**20
    True
    """
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        limits.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit, usage = ((group / name).read_text(encoding="utf-8") for name in ("memory.max", "memory.current"))
        limits.append(max(int(limit) - int(usage), 2**28))
    with contextlib.suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=2**32)


def parse_size(size: int | str, name: str) -> int:
    """Parse a number of bytes.

    Parameters
    ----------
    size : int or str
        Bytes, or a text such as ``"500MB"``, ``"4GB"`` or ``"4GiB"``.
    name : str
        Name of the argument, for messages.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    UsageError
        If it is not a positive size.

    Examples
    --------
    >>> parse_size("4GB", "max_unpacked"), parse_size("1.5 KiB", "max_unpacked")
    (4000000000, 1536)
    """
    match = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([kmgt]?i?)b?\s*", str(size), re.IGNORECASE)
    if match is None or match.group(2).lower() not in _UNITS or isinstance(size, bool):
        raise UsageError(f"{name} must be a size such as 500MB or 4GB; got {size!r}")
    n_bytes = round(float(match.group(1)) * _UNITS[match.group(2).lower()])
    if n_bytes < 1:
        raise UsageError(f"{name} must be 1 byte or more; got {size!r}")
    return n_bytes


def format_size(n_bytes: float) -> str:
    """Return a number of bytes in the largest unit that it reaches.

    Parameters
    ----------
    n_bytes : float
        Number of bytes.

    Returns
    -------
    str

    Examples
    --------
    >>> format_size(999), format_size(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:,.0f} bytes"
