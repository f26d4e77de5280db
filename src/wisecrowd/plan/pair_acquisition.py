"""Acquisition of comparisons: which pair of items to compare next, and which worker to ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.pairwise_aggregator import PairwiseAggregator
from wisecrowd.errors import UsageError
from wisecrowd.utils.text import count_noun

#: Items up to which all pairs are considered; their number grows with the square.
MAX_PLANNED_ITEMS = 3_000
#: Share of random pairs in a plan. They keep the ranking from following the model alone.
RANDOM_SHARE = 0.1


def plan_comparisons(
    fitted: PairwiseAggregator, budget: int, *, per_worker: int | None = None, random_state: int = 0
) -> pd.DataFrame:
    """Plan the next comparisons by expected information about the scores.

    The gain of a comparison of two items is ½ log(1 + I v). I is the Fisher information of the outcome, and v is the variance of
    the difference between the two scores. The gain is largest for pairs whose scores are close and uncertain. After each
    planned comparison, the covariance of the scores is updated, so that the next one adds new information.

    About one comparison in ten is a random pair. The side on which an item is shown is random.

    Parameters
    ----------
    fitted : PairwiseAggregator
        Fitted method with a covariance of the scores, such as `BradleyTerry` or `JudgeAwareBradleyTerry`.
    budget : int
        Number of comparisons.
    per_worker : int, optional
        Maximum number of new comparisons per worker. By default, the budget divided by the number of workers, rounded up. The plan
        names workers only if the method estimates how well each worker discriminates (as `JudgeAwareBradleyTerry` does).
        The workers who discriminate best come first.
    random_state : int, default=0
        Seed of sides and of random pairs.

    Returns
    -------
    DataFrame
        One row per comparison, in the order of the plan: ``left``, ``right``, ``worker`` (if the plan names workers), ``gain``
        in nats, and ``is_random``.

    Raises
    ------
    UsageError
        If the method has no covariance, or there are more than 3,000 items.

    Examples
    --------
    >>> from wisecrowd import BradleyTerry, simulate_comparisons
    >>> fitted = BradleyTerry().fit(simulate_comparisons(n_items=6, n_workers=5, votes_per_worker=20).comparisons)
    >>> plan = plan_comparisons(fitted, 4)
    >>> plan.columns.tolist(), len(plan)
    (['left', 'right', 'gain', 'is_random'], 4)
    """
    fitted.require_fitted("score_")
    if budget < 1:
        raise UsageError(f"budget must be 1 comparison or more; got {budget}")
    if fitted.covariance_ is None:
        raise UsageError(
            f"{fitted.name} has no intervals, which a plan needs; fit bradley-terry or judge-aware-bradley-terry"
        )
    n_items = len(fitted.score_)
    if n_items > MAX_PLANNED_ITEMS:
        raise UsageError(f"{n_items:,} items have too many pairs; plan among {MAX_PLANNED_ITEMS:,} items or fewer")
    rng = np.random.default_rng(random_state)
    slopes, workers = _plan_workers(fitted, budget, per_worker)
    first, second = np.triu_indices(n_items, k=1)
    base_information = _pair_information(fitted, first, second)
    covariance = fitted.covariance_.copy()
    rows: list[dict[str, Any]] = []
    is_random = rng.random(budget) < RANDOM_SHARE
    for number in range(budget):
        diagonal = np.diagonal(covariance)
        variance = np.maximum(diagonal[first] + diagonal[second] - 2 * covariance[first, second], 0)
        information = base_information * slopes[number] ** 2
        gain = np.log1p(information * variance) / 2
        best = int(rng.integers(len(gain))) if is_random[number] else int(gain.argmax())
        one, other = int(first[best]), int(second[best])
        direction = covariance[:, one] - covariance[:, other]
        # The comparison adds I xxᵀ to the information: a rank-one update of its inverse.
        covariance = covariance - np.outer(direction, direction) * (
            information[best] / (1 + information[best] * variance[best])
        )
        left, right = (one, other) if rng.random() < 0.5 else (other, one)
        row = {"left": fitted.item_index_[left], "right": fitted.item_index_[right]}
        if workers is not None:
            row["worker"] = workers[number]
        rows.append(row | {"gain": float(gain[best]), "is_random": bool(is_random[number])})
    return pd.DataFrame(rows)


def _plan_workers(
    fitted: PairwiseAggregator, budget: int, per_worker: int | None
) -> tuple[NDArray[np.float64], pd.Index | None]:
    """Return the discrimination and the worker of every planned comparison, the best workers first."""
    discrimination = getattr(fitted, "discrimination_", None)
    if discrimination is None or fitted.worker_index_ is None:
        if per_worker is not None:
            raise UsageError(f"{fitted.name} does not rate workers, so per_worker has no effect; leave it out")
        return np.ones(budget), None
    n_workers = len(discrimination)
    limit = -(-budget // n_workers) if per_worker is None else per_worker
    if limit < 1 or limit * n_workers < budget:
        raise UsageError(
            f"{count_noun(n_workers, 'worker')} with at most {count_noun(limit, 'comparison')} each cannot make the {budget:,} of "
            "the budget; raise per_worker or lower budget"
        )
    order = np.lexsort((np.arange(n_workers), -discrimination))
    chosen = np.repeat(order, limit)[:budget]
    return discrimination[chosen], fitted.worker_index_[chosen]


def _pair_information(
    fitted: PairwiseAggregator, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the Fisher information of a comparison of every pair by a worker of discrimination one."""
    from wisecrowd.data.comparisons import Comparisons

    pairs = Comparisons(first, second, np.zeros(len(first), dtype=np.int32), items=fitted.item_index_)
    probs = fitted.predict_proba(pairs)  # in the order of the rows, which are sorted by item
    lead, decided = (probs["left"] - probs["right"]).to_numpy(), 1 - probs["tie"].to_numpy()
    return np.asarray((decided - lead**2) / 4, dtype=np.float64)
