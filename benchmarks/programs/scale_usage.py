"""Memory, processor time and children of processes on Linux."""

from __future__ import annotations

import os
from pathlib import Path


def memory(pid: int | str = "self") -> dict[str, int]:
    """Bytes: at the peak, now, and of what is now there the part of its own and the part mapped from files."""
    names = {"VmHWM": "peak", "VmRSS": "now", "RssAnon": "own", "RssFile": "mapped"}
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if line.partition(":")[0] in names}
    return {names[name]: int(size) * 1024 for name, size in sizes.items()}


def seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cached() -> int:
    """Bytes of files that the system holds in memory."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Cached:"))


def fetched() -> int:
    """Bytes that came from disk for this process, and not from the system's memory."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))


def below(pid: int, title: str) -> list[int]:
    """Processes that a process started, or they in turn, whose title begins so."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                titles[int(place.name)] = (place / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, IndexError):  # it ended meanwhile
                continue

    def under(one: int) -> bool:
        while one in parents and one != pid:
            one = parents[one]
        return one == pid

    return [one for one, name in titles.items() if name.startswith(title) and one != pid and under(one)]
