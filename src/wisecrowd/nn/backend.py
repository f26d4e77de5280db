"""Access to torch, an optional dependency that is imported when it is first needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

from wisecrowd.errors import MissingExtra


def import_torch(purpose: str = "networks") -> ModuleType:
    """Return the torch module.

    Parameters
    ----------
    purpose : str, default "networks"
        Purpose that the error names if torch is not installed.

    Returns
    -------
    module

    Raises
    ------
    MissingExtra
        If torch is not installed; the message gives the command that installs it.

    Examples
    --------
    >>> import_torch().__name__
    'torch'
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("learn", purpose) from None
    return torch


@contextlib.contextmanager
def limit_threads(number: int | None) -> Iterator[None]:
    """Set the number of torch threads inside a block.

    On small tensors, several threads cost more time than they save, and they may change the order of sums.

    Parameters
    ----------
    number : int or None
        Number of threads; None leaves it unchanged.

    Yields
    ------
    None

    Examples
    --------
    >>> before = import_torch().get_num_threads()
    >>> with limit_threads(1):
    ...     import_torch().get_num_threads()
    1
    >>> import_torch().get_num_threads() == before
    True
    """
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
