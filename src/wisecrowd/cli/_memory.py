"""Setting of the C library's memory allocator."""

from __future__ import annotations

import ctypes

#: Options in glibc's malloc.h: free memory kept at the top of the heap, and number of arrays mapped outside of it.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Keep freed memory in the process instead of returning it to the system.

    The system zeroes every new page, which takes a third of the time of a report on nine million votes. Only for commands that end
    soon: a library must not change the allocator of its program. Does nothing without glibc.
    """
    try:
        setting = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    setting(TRIM_THRESHOLD, -1)  # without limit
    setting(MMAP_MAX, 0)
