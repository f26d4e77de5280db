"""Elo ratings, averaged over random orders of the comparisons."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.pairwise_aggregator import Array, PairwiseAggregator
from wisecrowd.data.comparisons import LEFT, TIE, Comparisons
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress

#: Elo points of one logit: a lead of 400 points means odds of ten to one.
POINTS_PER_LOGIT = 400 / np.log(10)
#: Largest number of steps of one pass. With more comparisons, several are processed at once.
MAX_STEPS = 20_000
#: Steps between two reports of progress.
REPORT_STEPS = 500


@method_class
class Elo(PairwiseAggregator):
    """Elo ratings: after every comparison the winner takes points from the loser.

        R_i ← R_i + k (s − 1 / (1 + 10^((R_j − R_i) / 400))),   s = 1 for a win, 1/2 for a tie, 0 for a loss

    The ratings depend on the order of the comparisons, which says nothing if the items do not change; so they are averaged over
    random orders. Provided for comparison with rating lists: `BradleyTerry` estimates the same strengths without dependence on the
    order, and with intervals. With more than 20,000 comparisons, several are processed at once.

    Examples
    --------
    >>> from wisecrowd import Elo
    >>> votes = [(worker, "tea", "milk", "tea") for worker in range(9)] + [(9, "tea", "milk", "milk")]
    >>> Elo(k=32).fit(votes).rating_.round().tolist()
    [913.0, 1087.0]
    """

    references: ClassVar[tuple[str, ...]] = ("elo1978rating",)

    k: float = parameter(default=4.0, help="Points that one comparison moves at most.")
    n_orders: int = parameter(default=100, help="Number of random orders.")
    initial_rating: float = parameter(default=1000.0, help="Rating before the first comparison.")
    random_state: int = parameter(default=0, help="Seed of the orders.")

    rating_: Array = fitted(help="Rating of each item in Elo points.", shape=("n_items",), finite=True)
    rating_spread_: Array = fitted(help="Standard deviation of each rating over the orders.", shape=("n_items",))
    tie_share_: float = fitted(help="Share of ties.")

    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        if not (self.k > 0 and self.n_orders >= 1):
            raise UsageError(f"k must be positive and n_orders 1 or more; got {self.k} and {self.n_orders}")
        rng = np.random.default_rng(self.random_state)
        n_votes, n_orders = comparisons.n_votes, self.n_orders
        step_size = -(-n_votes // MAX_STEPS)
        result = np.where(comparisons.outcome == TIE, 0.5, comparisons.outcome == LEFT)
        logits = np.zeros(n_orders * comparisons.n_items)
        gain = self.k / POINTS_PER_LOGIT * comparisons.vote_weight
        orders = np.stack([rng.permutation(n_votes) for _ in range(n_orders)])
        offset = np.arange(n_orders)[:, None] * comparisons.n_items
        steps = range(0, n_votes, step_size)
        for number, begin in enumerate(steps):
            if number % REPORT_STEPS == 0:
                progress.report("Elo", number + 1, len(steps))
            rows = orders[:, begin : begin + step_size]
            left, right = comparisons.left[rows] + offset, comparisons.right[rows] + offset
            change = gain[rows] * (result[rows] - expit(logits[left] - logits[right]))
            np.add.at(logits, left, change)
            np.add.at(logits, right, -change)
        by_order = logits.reshape(n_orders, comparisons.n_items)
        score = by_order.mean(axis=0)
        self.rating_ = self.initial_rating + POINTS_PER_LOGIT * score
        self.rating_spread_ = POINTS_PER_LOGIT * by_order.std(axis=0)
        weight = comparisons.vote_weight
        self.tie_share_ = float(weight[comparisons.outcome == TIE].sum() / weight.sum())
        return score, None

    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        score = self.score_[item]
        left = expit(score[comparisons.left] - score[comparisons.right])
        decided = 1 - self.tie_share_
        return np.stack([decided * left, decided * (1 - left), np.full_like(left, self.tie_share_)], axis=1)
