"""Diagnosis of comparisons: workers, items and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from wisecrowd.base.default_method import DEFAULT_METHODS, DEFAULT_WITHOUT_WORKERS
from wisecrowd.base.pairwise_aggregator import PairwiseAggregator, as_comparisons
from wisecrowd.base.registry import find
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.comparisons import LEFT, OUTCOMES, RIGHT, TIE, Comparisons
from wisecrowd.diagnose.agreement import AgreementCoefficient
from wisecrowd.errors import UsageError
from wisecrowd.io.validation.comparison_checks import count_outcomes, find_one_sided_workers
from wisecrowd.utils.notebook import render_html

Array = NDArray[np.float64]

#: Decided comparisons from which a worker is flagged for answering at random.
MIN_DECISIONS = 10
#: Probability of flagging a worker as random who follows the scores, for one worker.
SIGNIFICANCE = 0.01
#: Smallest share of swapped pairs by which contradictions must favour one side.
MIN_SIDE_BIAS = 0.1


@dataclass(frozen=True, eq=False)
class ComparisonDiagnosis:
    """Diagnosis of comparisons by one fitted method.

    All results are computed when they are first accessed.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons.
    model : PairwiseAggregator
        Method fitted to them.

    Examples
    --------
    >>> from wisecrowd import simulate_comparisons
    >>> result = diagnose_comparisons(simulate_comparisons(n_items=5, n_workers=4, random_state=0).comparisons)
    >>> result.workers.columns[:4].tolist()
    ['n_votes', 'left_share', 'tie_share', 'follows_scores']
    """

    comparisons: Comparisons
    model: PairwiseAggregator

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.items)

    def __repr__(self) -> str:
        figures = self.overview
        alpha = figures["krippendorff_alpha"]
        return (
            f"Diagnosis of {self.comparisons!r}\n"
            f"  agreement: {'undefined' if alpha is None else f'alpha {alpha:.2f}'}; flagged workers: "
            f"{figures['flagged_workers']}\n  see: .workers, .items, .overview"
        )

    @cached_property
    def items(self) -> pd.DataFrame:
        """Scores of the items, with intervals and ranks."""
        return self.model.scores_

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table with a row per worker; empty if comparisons have no worker ids.

        A comparison is decided if it is not a tie. The columns are:

        - ``n_votes``: number of comparisons
        - ``left_share``: share of decided comparisons in which the worker chose the left item
        - ``tie_share``: share of comparisons that are ties
        - ``follows_scores``: share of decided comparisons in which the worker chose the item with the higher score
        - ``expected``: value of ``follows_scores`` that the fitted model expects of an average worker
        - columns of ``model.workers_``, such as the discrimination, if the model rates workers
        - ``flags``: left, right, tie, random, reversed or position
        - ``why``: reason for the flags

        If some worker judged a pair of items in both orders, there are three more columns before ``flags``:

        - ``n_swapped``: number of such pairs
        - ``swap_consistency``: share of such pairs with the same outcome in both orders
        - ``side_bias``: share of such pairs in which the left item won both times, minus the share in which the right item won
          both times; 0 without a preference for a side
        """
        votes = self.comparisons
        if votes.workers is None or votes.worker is None:
            return pd.DataFrame()
        counts = count_outcomes(votes)
        total, decided = counts.sum(axis=1), counts[:, LEFT] + counts[:, RIGHT]
        follows, expected, variance = self._compare_with_scores(votes.worker, votes.n_workers)
        with np.errstate(invalid="ignore", divide="ignore"):
            columns: dict[str, Any] = {
                "n_votes": total,
                "left_share": counts[:, LEFT] / decided,
                "tie_share": counts[:, TIE] / total,
                "follows_scores": follows / decided,
                "expected": expected / decided,
            }
        table = pd.DataFrame(columns, index=votes.workers.rename("worker"))
        if self.model.needs_workers:
            fitted = self.model.workers_
            table = table.join(fitted[[name for name in fitted if name not in table]])
        flags: list[list[str]] = [[] for _ in total]
        reasons: list[list[str]] = [[] for _ in total]
        for outcome, flag in enumerate(OUTCOMES):
            for code in np.flatnonzero(find_one_sided_workers(counts, outcome)):
                share = counts[code, outcome] / (total if outcome == TIE else decided)[code]
                habit = "called a tie in" if outcome == TIE else f"chose the {flag} item in"
                flags[code].append(flag)
                reasons[code].append(f"{habit} {share:.0%} of {'all' if outcome == TIE else 'decided'} comparisons")
        gap = (expected - follows) / np.sqrt(np.maximum(variance, 1e-12))
        is_off = (decided >= MIN_DECISIONS) & (gap > ndtri(1 - SIGNIFICANCE))
        above_half = (follows - decided / 2) / np.sqrt(np.maximum(decided, 1) / 4)
        for code in np.flatnonzero(is_off & (above_half < ndtri(1 - SIGNIFICANCE))):
            flags[code].append("reversed" if above_half[code] < -ndtri(1 - SIGNIFICANCE) else "random")
            reasons[code].append(
                f"agrees with the scores in {follows[code] / decided[code]:.0%} of decided comparisons instead of "
                f"{expected[code] / decided[code]:.0%}"
            )
        swaps = measure_swaps(votes)
        if swaps is not None:
            table = table.assign(n_swapped=swaps.n_pairs, swap_consistency=swaps.consistency, side_bias=swaps.side_bias)
            for code in np.flatnonzero(swaps.find_biased()):
                side = "left" if swaps.side_bias[code] > 0 else "right"
                flags[code].append("position")
                reasons[code].append(
                    f"prefers the {side} side: {swaps.consistency[code]:.0%} of {swaps.n_pairs[code]:,.0f} pairs shown in both "
                    "orders have the same outcome"
                )
        table["flags"] = [", ".join(part) for part in flags]
        table["why"] = ["; ".join(part) for part in reasons]
        return table

    def _compare_with_scores(self, worker: NDArray[np.int32], n_workers: int) -> tuple[Array, Array, Array]:
        """Return the decided comparisons that the higher score won, their expected number and its variance, by worker."""
        votes = self.comparisons
        score = pd.Series(self.model.score_, index=self.model.item_index_).reindex(votes.items).to_numpy()
        gap = score[votes.left] - score[votes.right]
        pair = Comparisons(votes.left, votes.right, votes.outcome, items=votes.items)
        probs = self.model.predict_proba(pair).to_numpy()  # judged by an average worker
        share = probs[:, LEFT] / np.maximum(probs[:, LEFT] + probs[:, RIGHT], 1e-300)
        # Rows without workers are sorted in another order; the probabilities are looked up by pair and outcome.
        order = np.lexsort((votes.outcome, votes.right, votes.left))
        left_prob = np.empty(votes.n_votes)
        left_prob[order] = share
        decided = votes.outcome != TIE
        right = decided & (np.where(votes.outcome == LEFT, gap, -gap) > 0)
        chance = np.where(gap > 0, left_prob, 1 - left_prob)
        even = decided & (gap == 0)
        chance[gap == 0] = 0.5

        def sum_by_worker(values: NDArray[Any]) -> Array:
            return np.bincount(worker, values, n_workers).astype(np.float64)

        return (
            sum_by_worker(right + even / 2),
            sum_by_worker(np.where(decided, chance, 0)),
            sum_by_worker(np.where(decided, chance * (1 - chance), 0)),
        )

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        votes = self.comparisons
        agreement = comparison_alpha(votes) if votes.has_workers else None
        alpha = None if agreement is None or np.isnan(agreement.value) else round(agreement.value, 4)
        workers = self.workers
        return {
            "comparisons": votes.n_votes,
            "items": votes.n_items,
            "pairs": len(votes.pair_counts.first),
            "workers": len(workers),
            "tie_share": float((votes.outcome == TIE).mean()),
            "left_share": _share(votes.outcome == LEFT, votes.outcome != TIE),
            "components": int(votes.find_components().max(initial=0)) + 1,
            "krippendorff_alpha": alpha,
            "pairs_with_several_workers": 0 if agreement is None else agreement.n_tasks,
            "flagged_workers": int((workers["flags"] != "").sum()) if len(workers) else 0,
        }


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> float | None:
    return float((part & whole).sum() / whole.sum()) if whole.any() else None


class SwappedPairs(NamedTuple):
    """Pairs that workers judged in both orders.

    Parameters
    ----------
    n_pairs : ndarray of shape (n_workers,)
        Number of pairs.
    consistency : ndarray of shape (n_workers,)
        Share of pairs with the same outcome in both orders; NaN without pairs.
    left, right : ndarray of shape (n_workers,)
        Number of pairs that the left side, or the right side, won in both orders.
    """

    n_pairs: Array
    consistency: Array
    left: Array
    right: Array

    @property
    def side_bias(self) -> Array:
        """Share of pairs that the left side won in both orders, minus the share that the right side won in both orders."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.left - self.right) / self.n_pairs)

    def find_biased(self) -> NDArray[np.bool_]:
        """Return the workers whose contradictions favour one side, significantly and in a tenth of the pairs or more.

        Returns
        -------
        ndarray of shape (n_workers,)
        """
        gap = np.abs(self.left - self.right)
        significant = gap > ndtri(1 - SIGNIFICANCE / 2) * np.sqrt(np.maximum(self.left + self.right, 1))
        return np.asarray(significant & (gap >= MIN_SIDE_BIAS * self.n_pairs) & (self.n_pairs >= MIN_DECISIONS))


def measure_swaps(comparisons: Comparisons) -> SwappedPairs | None:
    """Compare the outcomes of pairs that a worker judged in both orders on one task.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons, with both orders (``swapped="average"`` or ``"keep"``).

    Returns
    -------
    SwappedPairs or None
        None if no pair was judged in both orders.

    Examples
    --------
    >>> votes = Comparisons.from_tuples([("gpt", "x", "y", "left"), ("gpt", "y", "x", "left"), ("gpt", "x", "z", "x")])
    >>> swaps = measure_swaps(votes)
    >>> swaps.n_pairs.tolist(), swaps.consistency.tolist(), swaps.side_bias.tolist()
    ([1.0], [0.0], [1.0])
    """
    if comparisons.worker is None or comparisons.workers is None or not comparisons.n_votes:
        return None
    low, high = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    task = np.zeros_like(low) if comparisons.task is None else comparisons.task
    columns = [high, low, task, comparisons.worker]
    order = np.lexsort(columns)
    is_new = np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in columns])
    start = np.flatnonzero(is_new)
    is_forward = (comparisons.left < comparisons.right)[order]
    in_both = np.maximum.reduceat(is_forward, start) & ~np.minimum.reduceat(is_forward, start)
    if not in_both.any():
        return None
    outcome = comparisons.outcome[order]
    # 0 if the first item wins, 1 if it loses, 2 for a tie.
    first_outcome = np.where(outcome == TIE, TIE, np.where(is_forward, outcome, 1 - outcome))
    same = np.maximum.reduceat(first_outcome, start) == np.minimum.reduceat(first_outcome, start)
    always_left, always_right = (np.minimum.reduceat(outcome == side, start) for side in (LEFT, RIGHT))
    worker, n = comparisons.worker[order][start][in_both], comparisons.n_workers
    n_pairs, n_same, left, right = (
        np.bincount(worker, values[in_both], n).astype(np.float64)
        for values in (np.ones(len(start)), same, always_left, always_right)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return SwappedPairs(n_pairs, n_same / n_pairs, left, right)


def diagnose_comparisons(
    comparisons: Comparisons | DataFrameLike, *, model: PairwiseAggregator | str | None = None
) -> ComparisonDiagnosis:
    """Diagnose the workers and items of comparisons.

    Parameters
    ----------
    comparisons : Comparisons or table
        Comparisons.
    model : PairwiseAggregator or str, default=None
        Fitted method, or the name of one. Defaults to the judge-aware Bradley–Terry model, or without worker ids to the
        Bradley–Terry model.

    Returns
    -------
    ComparisonDiagnosis

    Examples
    --------
    >>> from wisecrowd import simulate_comparisons
    >>> simulation = simulate_comparisons(n_items=5, n_workers=4, random_state=0)
    >>> diagnose_comparisons(simulation.comparisons, model="bradley-terry").overview["components"]
    1
    """
    votes = as_comparisons(comparisons, workers=False)
    if model is None:
        model = DEFAULT_METHODS["pairwise"] if votes.has_workers else DEFAULT_WITHOUT_WORKERS
    fitted: Any = model
    if isinstance(model, str):
        unfitted: Any = find(model)()
        fitted = unfitted.fit(votes)
    if not isinstance(fitted, PairwiseAggregator):
        raise UsageError(f"model must score items, such as 'bradley-terry'; got {fitted!r}")
    return ComparisonDiagnosis(votes, fitted)


def comparison_alpha(comparisons: Comparisons) -> AgreementCoefficient:
    """Compute Krippendorff's alpha of comparisons: agreement of workers on the same pair, corrected for chance.

    A unit is a pair of items, on one task if comparisons have tasks. Both items of a pair are exchangeable: by chance, two workers
    who do not call a tie agree with probability 1/2. The order in which a pair was shown does not matter.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with worker ids.

    Returns
    -------
    AgreementCoefficient
        ``n_tasks`` is the number of units with several comparisons.

    Examples
    --------
    >>> votes = [(worker, "a", "b", label) for worker, label in [("x", "a"), ("y", "a"), ("z", "b")]]
    >>> round(float(comparison_alpha(Comparisons.from_tuples(votes))), 2)
    -0.11
    """
    low, high = np.minimum(comparisons.left, comparisons.right), np.maximum(comparisons.left, comparisons.right)
    columns = [high, low, *(() if comparisons.task is None else (comparisons.task,))]
    order = np.lexsort(columns)
    unit = np.empty(len(order), dtype=np.int64)
    unit[order] = np.cumsum(np.logical_or.reduce([np.diff(column[order], prepend=-1) != 0 for column in columns])) - 1
    is_low = (comparisons.left == low) == (comparisons.outcome == LEFT)
    outcome = np.where(comparisons.outcome == TIE, TIE, np.where(is_low, LEFT, RIGHT))
    n_units = int(unit.max(initial=-1)) + 1
    counts = np.bincount(unit * 3 + outcome, minlength=3 * n_units).reshape(-1, 3).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return AgreementCoefficient(float("nan"), None, None, 0)
    size = counts.sum(axis=1)
    n = size.sum()
    observed = 1 - float(((counts * (counts - 1)).sum(axis=1) / (size - 1)).sum() / n)
    # Every comparison counts in both orientations.
    ties = 2 * counts[:, TIE].sum()
    totals = np.array([(2 * n - ties) / 2, (2 * n - ties) / 2, ties])
    expected = 1 - float((totals * (totals - 1)).sum() / (2 * n * (2 * n - 1)))
    value = 1 - observed / expected if expected > 0 else float("nan")
    return AgreementCoefficient(value, None, None, len(counts))
