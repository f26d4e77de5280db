"""Model selection for comparisons and label sets by held-out votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHODS, DEFAULT_WITHOUT_WORKERS
from wisecrowd.base.label_set_aggregator import LabelSetAggregator
from wisecrowd.base.pairwise_aggregator import PairwiseAggregator
from wisecrowd.base.registry import find
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.rows import assign_folds
from wisecrowd.errors import UsageError, ignore_fit_warnings, preview
from wisecrowd.evaluate.model_selection import Comparison, check_folds, predict_heldout_votes
from wisecrowd.evaluate.ranking import rank_log_probs
from wisecrowd.utils.levels import format_level

#: Candidates by answer type; the first of several tied methods is chosen.
CANDIDATES = {
    "pairwise": (DEFAULT_METHODS["pairwise"], "crowd-bradley-terry", DEFAULT_WITHOUT_WORKERS, "elo", "win-rate"),
    "multilabel": (DEFAULT_METHODS["multilabel"], "binary-relevance"),
}
#: Workers from which intervals come from a bootstrap over workers; with fewer, over comparisons.
MIN_WORKERS = 10


def compare_answer_methods(
    votes: Comparisons | LabelSetCrowd,
    methods: Sequence[Any] | None = None,
    *,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods for comparisons or label sets by the probability they give to held-out votes.

    Every method predicts the outcome of comparisons, or whole label sets, that it was not fitted with. Folds spread the
    comparisons of a pair, or the votes on a task, evenly. Intervals of differences come from a bootstrap over workers (comparisons
    by many workers), tasks (label sets) or comparisons.

    Parameters
    ----------
    votes : Comparisons or LabelSetCrowd
        Votes.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to all that suit the votes.
    folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Comparison
        ``disputed_tasks`` has the ranks of items, or the sets of tasks, on which methods differ. ``agreement`` is Spearman's
        correlation of two rankings, or the share of tasks with the same set.

    Raises
    ------
    InputError
        If there are too few votes, or a named method cannot be fitted.

    Examples
    --------
    >>> from wisecrowd import simulate_comparisons
    >>> votes = simulate_comparisons(n_items=6, n_workers=12, lean_spread=1.5, random_state=1).comparisons
    >>> compare_answer_methods(votes, ["judge-aware-bradley-terry", "bradley-terry"]).best
    'judge-aware-bradley-terry'
    """
    check_folds(folds, votes.n_votes)
    candidates = _resolve_candidates(votes, methods)
    spread, n_spread = _find_units_to_spread(votes)
    fold = assign_folds(spread, n_spread, folds, np.random.default_rng(random_state))
    log_probs, seconds = predict_heldout_votes(
        candidates,
        lambda method: _predict_heldout(method, votes, fold, folds),
        folds,
        failures_are_skipped=methods is None,
    )
    unit, n_units = _find_bootstrap_units(votes)
    weight = votes.vote_weight if isinstance(votes, Comparisons) else None
    table, tied_methods = rank_log_probs(log_probs, unit, n_units, random_state, weight)
    table["seconds"] = pd.Series(seconds)
    fitted = {name: _fit(candidates[name], votes) for name in table.index}
    disputed, agreement = _compare_results(fitted)
    summary = _write_summary(table, tied_methods, votes)
    return Comparison(table, tied_methods, tied_methods[0], disputed, agreement, summary, fitted)


def _resolve_candidates(votes: Comparisons | LabelSetCrowd, methods: Sequence[Any] | None) -> dict[str, Any]:
    """Return unfitted methods by name."""
    if isinstance(methods, str):
        raise UsageError(f"methods must be a list; got {methods!r}. For one method: [{methods!r}]")
    has_workers = votes.workers is not None
    candidates: dict[str, Any] = {}
    for candidate in CANDIDATES[votes.answer_type] if methods is None else methods:
        method: Any = find(candidate)() if isinstance(candidate, str) else candidate
        if votes.answer_type not in getattr(method, "answer_types", ()):
            example = CANDIDATES[votes.answer_type][0]
            raise UsageError(
                f"these votes are {'comparisons' if votes.answer_type == 'pairwise' else 'label sets'}, and {candidate!r} does "
                f"not take them; choose methods such as {example!r}"
            )
        if methods is None and method.needs_workers and not has_workers:
            continue
        candidates[method.name if method.name not in candidates else repr(method)] = method
    if not candidates:
        raise UsageError("methods is empty; name at least one method")
    return candidates


def _find_units_to_spread(votes: Comparisons | LabelSetCrowd) -> tuple[NDArray[Any], int]:
    """Return the pair of items of each comparison, or the task of each label set."""
    if isinstance(votes, LabelSetCrowd):
        return votes.task, votes.n_tasks
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    pairs, pair = np.unique(low.astype(np.int64) * votes.n_items + high, return_inverse=True)
    return pair.ravel().astype(np.int32), len(pairs)


def _find_bootstrap_units(votes: Comparisons | LabelSetCrowd) -> tuple[NDArray[Any], int]:
    if isinstance(votes, LabelSetCrowd):
        return votes.task, votes.n_tasks
    if votes.worker is not None and votes.n_workers >= MIN_WORKERS:
        return votes.worker, votes.n_workers
    return np.arange(votes.n_votes), votes.n_votes


def _fit(method: Any, votes: Comparisons | LabelSetCrowd) -> Any:
    with ignore_fit_warnings():  # the checks of `check_votes` report problems of the votes once
        return method.clone_unfitted().fit(votes)


def _predict_heldout(
    method: Any, votes: Comparisons | LabelSetCrowd, fold: NDArray[np.intp], folds: int
) -> NDArray[np.float64]:
    """Return the log-probability of every vote under a fit to the other folds."""
    log_probs = np.empty(votes.n_votes)
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        if rows.size:
            log_probs[rows] = _fit(method, votes.take(fold != number)).heldout_log_probs(votes.take(rows))
    return log_probs


def _compare_results(fitted: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the results on which methods differ, and the agreement of every two methods."""
    methods = list(fitted.values())
    if all(isinstance(method, PairwiseAggregator) for method in methods):
        ranks = pd.DataFrame({name: method.labels_ for name, method in fitted.items()})
        spread = (ranks.max(axis=1) - ranks.min(axis=1)).sort_values(ascending=False, kind="stable")
        return ranks.loc[spread.index[spread > 0]], ranks.corr(method="pearson")  # ranks: Spearman's correlation
    assert all(isinstance(method, LabelSetAggregator) for method in methods)
    chosen = [method.label_probs_ >= method.threshold_ for method in methods]
    same = [[float((one == other).all(axis=1).mean()) for other in chosen] for one in chosen]
    differs = np.logical_or.reduce([(one != chosen[0]).any(axis=1) for one in chosen])
    sets = pd.DataFrame({name: method.labels_ for name, method in fitted.items()})
    return sets[differs], pd.DataFrame(same, index=list(fitted), columns=list(fitted))


def _write_summary(table: pd.DataFrame, tied_methods: tuple[str, ...], votes: Comparisons | LabelSetCrowd) -> str:
    """Write the recommendation and its evidence."""
    best = tied_methods[0]
    noun = "comparisons" if isinstance(votes, Comparisons) else "label sets"
    heldout = f"{votes.n_votes:,} held-out {noun}"
    if len(table) == 1:
        probability = np.exp(table["log_likelihood"].iloc[0])
        return f"Only {best} was compared: it gives a held-out vote probability {probability:.3f} (geometric mean)."
    if len(tied_methods) > 1:
        others = [name for name in tied_methods if name != best]
        return (
            f"Use {best}: {heldout} show no significant difference from {preview(others, 8)}, and it comes first among the "
            "candidates."
        )
    runner_up = table.iloc[1]
    return (
        f"Use {best}: it gives each of {heldout} {np.exp(runner_up['behind']):.2f} times the probability of the second-best "
        f"method, {table.index[1]} ({format_level()} {np.exp(runner_up['low']):.2f} to {np.exp(runner_up['high']):.2f})."
    )
