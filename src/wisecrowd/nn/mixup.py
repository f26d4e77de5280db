"""Mixup: rows of a batch mixed with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wisecrowd.nn.backend import need_torch

if TYPE_CHECKING:
    from torch import Tensor


def mixing(n_rows: int, alpha: float, like: Tensor) -> Callable[[Tensor], Tensor]:
    """A function that mixes every row with another one, always the same, in a share that is drawn from Beta(α, α).

    Chance is torch's own stream.

    >>> torch = need_torch()
    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(0)
    ...     mix = mixing(3, 1.0, torch.zeros(0))
    >>> rows = torch.eye(3)
    >>> bool((mix(rows).sum(dim=1) == 1).all()), bool((mix(2 * rows) == 2 * mix(rows)).all())
    (True, True)
    """
    torch = need_torch()
    if alpha == 0 or n_rows == 0:
        return lambda values: values
    share = torch.distributions.Beta(alpha, alpha).sample((n_rows,)).to(like)
    other = torch.randperm(n_rows).to(like.device)

    def mix(values: Tensor) -> Tensor:
        part = share.view(-1, *[1] * (values.ndim - 1))
        return part * values + (1 - part) * values[other]

    return mix
