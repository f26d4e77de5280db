"""Warnings that whoever opens the page should read, too."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from wisecrowd.errors import DataWarning, NotConverged


@contextlib.contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what the block warns of; whoever runs it is warned all the same, afterwards."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    for warning in caught:
        if issubclass(warning.category, DataWarning | NotConverged) and str(warning.message) not in notes:
            notes.append(str(warning.message))
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
