"""Warnings that also belong on the page."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from wisecrowd.errors import DataWarning, NotConverged


@contextlib.contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings about data and convergence of a block, and issue all warnings after it.

    Yields
    ------
    list of str
        Messages; complete after the block.
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        if issubclass(warning.category, DataWarning | NotConverged) and str(warning.message) not in messages:
            messages.append(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
