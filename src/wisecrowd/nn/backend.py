"""torch for whoever needs it, and no more of its threads than help."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

from wisecrowd.errors import MissingExtra


def need_torch(what: str = "networks") -> ModuleType:
    """The torch module, or the line that installs it.

    >>> need_torch().__name__
    'torch'
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("learn", what) from None
    return torch


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """A block in which torch uses so many threads; None leaves them as they are.

    Over small tensors threads would only wait for each other, and could change the order of sums.

    >>> before = need_torch().get_num_threads()
    >>> with threads(1):
    ...     need_torch().get_num_threads()
    1
    >>> need_torch().get_num_threads() == before
    True
    """
    torch = need_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
