"""Memory that a program keeps between one array and the next."""

from __future__ import annotations

import ctypes

#: Of glibc's malloc.h: how much free memory may stay at the end of the heap, and how many arrays live outside of it.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Let the C library keep what is freed for the next array, rather than hand it back and ask for it again.

    Arrays of a large crowd come and go by the hundred, and the system clears every page of a new one: with nine million votes,
    that is a third of the time that a report takes. It is for a command that ends soon; a library must not decide it for the
    program that it is part of. Where the C library is none of GNU, nothing happens.
    """
    try:
        setting = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    setting(TRIM_THRESHOLD, -1)  # without limit
    setting(MMAP_MAX, 0)
