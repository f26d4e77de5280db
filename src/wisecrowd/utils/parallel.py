"""Numbers of threads."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from wisecrowd.errors import UsageError

#: Largest number of threads: more than any machine has cores, and few enough to be started.
MAX_THREADS = 4096


def thread_count(n_jobs: int) -> int:
    """Return the number of threads that ``n_jobs`` means.

    Parameters
    ----------
    n_jobs : int
        Number of threads; -1 for all cores, -2 for all but one, and so on.

    Returns
    -------
    int
        Number of threads, at least one.

    Raises
    ------
    UsageError
        If ``n_jobs`` is zero, or larger than any machine allows.

    Examples
    --------
    >>> thread_count(2), thread_count(-1) >= 1
    (2, True)
    """
    if n_jobs > MAX_THREADS:
        raise UsageError(f"n_jobs must be a number of threads up to {MAX_THREADS:,}, or -1 for all cores; got {n_jobs}")
    if n_jobs == 0:
        raise UsageError("n_jobs must be a number of threads, or -1 for all cores; got 0")
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def use_one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside a ``with`` block.

    For products of small matrices, several threads cost more time than they save.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with use_one_blas_thread():
    ...     pass
    """
    return _threadpool_controller().limit(limits=1, user_api="blas")


@cache
def _threadpool_controller() -> Any:
    """Return the controller of the loaded libraries; finding them takes longer than a small fit."""
    import scipy.linalg  # noqa: F401  # numpy and scipy load one BLAS each, and the controller finds what is loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
