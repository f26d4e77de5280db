"""Memory, processor time and children of processes on Linux."""

from __future__ import annotations

import os
from pathlib import Path


def memory(pid: int | str = "self") -> dict[str, int]:
    """Return bytes of memory: at the peak, now, and the parts of it that are anonymous and mapped from files."""
    names = {"VmHWM": "peak", "VmRSS": "now", "RssAnon": "own", "RssFile": "mapped"}
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if line.partition(":")[0] in names}
    return {names[name]: int(size) * 1024 for name, size in sizes.items()}


def seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cached() -> int:
    """Return the size of the page cache in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Cached:"))


def fetched() -> int:
    """Return the bytes that this process read from disk rather than from the page cache."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))


def find_descendants(pid: int, title: str) -> list[int]:
    """Return the descendants of a process whose title begins with a text."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                titles[int(place.name)] = (place / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, IndexError):  # it ended meanwhile
                continue

    def is_descendant(one: int) -> bool:
        while one in parents and one != pid:
            one = parents[one]
        return one == pid

    return [one for one, name in titles.items() if name.startswith(title) and one != pid and is_descendant(one)]
