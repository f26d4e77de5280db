"""Share of the comparisons that an item wins."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import Comparisons


@method_class
class WinRate(PairwiseAggregator):
    """Share of its comparisons that each item wins; a tie counts as half a win.

    The simplest score. It ignores the strength of the opponents: an item that met weak items looks strong. Compare with
    `BradleyTerry`. The reported score is the win rate minus the mean win rate.

    Examples
    --------
    >>> from wisecrowd import WinRate
    >>> votes = [("ann", "a", "b", "a"), ("ann", "b", "c", "tie"), ("bob", "a", "c", "a")]
    >>> WinRate().fit(votes).win_rate_.tolist()
    [1.0, 0.25, 0.25]
    """

    references: ClassVar[tuple[str, ...]] = ("david1988method",)

    win_rate_: Array = fitted(help="Share of won comparisons of each item.", shape=("n_items",))
    tie_share_: float = fitted(help="Share of ties.")

    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        counts = comparisons.item_counts
        wins, ties = counts["wins"].to_numpy(), counts["ties"].to_numpy()
        total = wins + counts["losses"].to_numpy() + ties
        # An item without comparisons is in the middle.
        self.win_rate_ = np.divide(wins + ties / 2, total, out=np.full(len(total), 0.5), where=total > 0)
        self.tie_share_ = float(ties.sum() / max(total.sum(), 1e-300))
        variance = self.win_rate_ * (1 - self.win_rate_) / np.maximum(total, 1)
        return self.win_rate_, np.diag(variance)

    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        rate = np.clip(self.win_rate_[item], 0.01, 0.99)
        left, right = rate[comparisons.left], rate[comparisons.right]
        # The odds of two items multiply, as in the Bradley–Terry model.
        share = left * (1 - right) / (left * (1 - right) + right * (1 - left))
        decided = 1 - self.tie_share_
        return np.stack([decided * share, decided * (1 - share), np.full_like(share, self.tie_share_)], axis=1)
