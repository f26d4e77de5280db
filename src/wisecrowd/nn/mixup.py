"""Mixup: convex combinations of pairs of rows in a batch (Zhang et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wisecrowd.nn.backend import import_torch

if TYPE_CHECKING:
    from torch import Tensor


def draw_mixup(n_rows: int, alpha: float, like: Tensor) -> Callable[[Tensor], Tensor]:
    """Draw a partner and a share from Beta(alpha, alpha) for every row, from the global random stream of torch.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    alpha : float
        Parameter of the beta distribution; 0 mixes nothing.
    like : Tensor
        Tensor whose device and type the shares have.

    Returns
    -------
    callable
        Function from rows to mixed rows; every call uses the same partners and shares.

    Examples
    --------
    >>> torch = import_torch()
    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(0)
    ...     mix = draw_mixup(3, 1.0, torch.zeros(0))
    >>> rows = torch.eye(3)
    >>> bool((mix(rows).sum(dim=1) == 1).all()), bool((mix(2 * rows) == 2 * mix(rows)).all())
    (True, True)
    """
    torch = import_torch()
    if alpha == 0 or n_rows == 0:
        return lambda values: values
    share = torch.distributions.Beta(alpha, alpha).sample((n_rows,)).to(like)
    partner = torch.randperm(n_rows).to(like.device)

    def mix(values: Tensor) -> Tensor:
        row_share = share.view(-1, *[1] * (values.ndim - 1))
        return row_share * values + (1 - row_share) * values[partner]

    return mix
