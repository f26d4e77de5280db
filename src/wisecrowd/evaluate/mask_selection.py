"""Model selection for masks by held-out workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.mask_aggregator import MaskAggregator
from wisecrowd.data.mask_regions import count_region_pixels
from wisecrowd.data.mask_runs import MaskRuns
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.rows import assign_folds
from wisecrowd.data.vote_patterns import VotePatterns, find_vote_patterns
from wisecrowd.errors import InputError, ignore_fit_warnings, preview
from wisecrowd.evaluate.answer_candidates import resolve_candidates
from wisecrowd.evaluate.mask_metrics import score_masks
from wisecrowd.evaluate.model_selection import Comparison, check_folds, predict_heldout_votes
from wisecrowd.evaluate.ranking import rank_log_probs
from wisecrowd.utils.levels import format_level

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Candidates: method and parameters. The first of several tied methods is chosen.
CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("staple", {}),
    ("mask-em", {}),
    ("mask-majority", {"weights": "task"}),
    ("mask-majority", {}),
)
#: Pseudo-masks that draw the rates of a worker to those of the crowd.
SHRINKAGE = 1.0
#: Rates of workers, and probabilities of pixels, stay away from 0 and 1 by this much.
MIN_RATE, MIN_PROB = 1e-3, 1e-6
#: Exponents of the odds of pixels; each method gets the best one, so that too much or too little confidence alone does not decide.
EXPONENTS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


class PixelDecisions(NamedTuple):
    """Decisions of workers about the pixels of their tasks, by patterns of votes.

    Parameters
    ----------
    vote, pattern : ndarray of shape (n_decisions,)
        Mask, and pattern of its task.
    is_marked : ndarray of bool of shape (n_decisions,)
        Whether the mask has the pixels of the pattern.
    weight : ndarray of shape (n_decisions,)
        Share of the pixels of the task that have the pattern, in the box around all marked pixels.
    """

    vote: Codes
    pattern: Codes
    is_marked: NDArray[np.bool_]
    weight: Array


def list_pixel_decisions(crowd: MaskCrowd, patterns: VotePatterns) -> PixelDecisions:
    """List the decisions of all workers about the pixels of their tasks.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    patterns : VotePatterns
        Patterns of votes.

    Returns
    -------
    PixelDecisions

    Examples
    --------
    >>> crowd = MaskCrowd.from_arrays(["i", "i"], ["ann", "bob"], [[[1, 1, 0]], [[0, 1, 0]]])
    >>> decisions = list_pixel_decisions(crowd, find_vote_patterns(crowd))
    >>> decisions.vote.tolist(), decisions.is_marked.tolist()
    ([0, 0, 0, 1, 1, 1], [False, True, True, False, False, True])
    """
    n_pixels = count_region_pixels(crowd, patterns, "box")
    total = patterns.sum_over_tasks(n_pixels)[patterns.task]
    share = np.divide(n_pixels, total, out=np.zeros(len(total)), where=total > 0)
    count = np.bincount(patterns.task, minlength=crowd.n_tasks)
    begin = np.cumsum(count) - count  # patterns are sorted by task
    own = count[crowd.task]
    vote = np.repeat(np.arange(crowd.n_votes), own)
    first = np.cumsum(own) - own
    pattern = begin[crowd.task][vote] + np.arange(len(vote)) - first[vote]
    is_marked = np.zeros(len(vote), dtype=bool)
    marked_vote, marked_pattern = patterns.marks_by_vote.tocoo().coords
    is_marked[first[marked_vote] + marked_pattern - begin[crowd.task[marked_vote]]] = True
    return PixelDecisions(vote, pattern, is_marked, share[pattern])


def compare_mask_methods(
    crowd: MaskCrowd,
    methods: Sequence[Any] | None = None,
    *,
    truth: pd.Series | Mapping[Any, Any] | MaskRuns | None = None,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods for masks by held-out workers.

    The masks are split into folds, so that a task loses some of its workers. A method is fitted to the others and gives every
    pixel a probability q of belonging to the mask. It predicts whether a held-out worker r marks the pixel:

        P(r marks the pixel) = q_τ sensitivity_r + (1 − q_τ) (1 − specificity_r), with odds of q_τ = (odds of q)^τ

    The rates of r come from the held-out masks of r in the other folds, in the same way for all methods, and are drawn to those
    of the crowd. The exponent τ is chosen for each method to its advantage. Pixels in the box around all marked pixels of a task
    count, and every mask counts the same. Pixels with the same votes are one unit, so images are never unpacked. Intervals of
    differences come from a bootstrap over tasks.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to all, with the share of workers who marked a pixel as baseline.
    truth : Series, mapping or MaskRuns, default=None
        True masks by task, or in the order of tasks. They add mean intersection over union and Dice coefficient to the table and
        do not influence the choice.
    folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Comparison
        ``log_likelihood`` is that of a pixel. ``disputed_tasks`` has the areas of masks on which methods differ, those that
        differ most first; ``agreement`` is the mean intersection over union of the masks of two methods.

    Raises
    ------
    InputError
        If there are too few masks, or a named method cannot be fitted.

    Examples
    --------
    >>> from wisecrowd import simulate_masks
    >>> crowd = simulate_masks(n_tasks=20, n_workers=6, sensitivity=0.8, random_state=0).crowd
    >>> compare_mask_methods(crowd, ["mask-majority", "staple"]).best
    'staple'
    """
    check_folds(folds, crowd.n_votes)
    candidates = resolve_candidates(methods, CANDIDATES, MaskAggregator, "masks", "masks")
    patterns = find_vote_patterns(crowd)
    decisions = list_pixel_decisions(crowd, patterns)
    fold = assign_folds(crowd.task, crowd.n_tasks, folds, np.random.default_rng(random_state))
    is_tested = np.zeros(crowd.n_votes, dtype=bool)
    for number in range(folds):
        n_visible = np.bincount(crowd.task[fold != number], minlength=crowd.n_tasks)
        is_tested |= (fold == number) & (n_visible[crowd.task] > 0)
    is_tested &= np.bincount(decisions.vote, decisions.weight, crowd.n_votes) > 0
    if not is_tested.any():
        raise InputError(
            "no task has masks of two workers with pixels, so held-out masks cannot be predicted; collect masks of several workers"
        )
    exponents: dict[int, float] = {}  # by identity of the method

    def predict(method: Any) -> Array:
        probs = _predict_pixels(method, crowd, patterns, decisions, fold, folds)
        by_exponent = np.stack(
            [_score_masks_heldout(probs, tau, crowd, decisions, fold, folds, is_tested) for tau in EXPONENTS]
        )
        best = int(by_exponent.mean(axis=1).argmax())
        exponents[id(method)] = EXPONENTS[best]
        return np.asarray(by_exponent[best])

    log_probs, seconds = predict_heldout_votes(candidates, predict, folds, failures_are_skipped=methods is None)
    table, tied_methods = rank_log_probs(log_probs, crowd.task[is_tested], crowd.n_tasks, random_state)
    table["exponent"] = [exponents[id(candidates[str(name)])] for name in table.index]
    table["seconds"] = pd.Series(seconds)
    fitted = {str(name): _fit(candidates[str(name)], crowd) for name in table.index}
    if truth is not None:
        table = table.join(_score_with_truth(fitted, truth, crowd))
    disputed, agreement = _compare_results(fitted, crowd)
    summary = _write_summary(table, tied_methods, int(is_tested.sum()))
    return Comparison(table, tied_methods, tied_methods[0], disputed, agreement, summary, fitted)


def _fit(method: Any, crowd: MaskCrowd) -> Any:
    with ignore_fit_warnings():  # the checks of `check_votes` report problems of the votes once
        return method.clone_unfitted().fit(crowd)


def _predict_pixels(
    method: Any,
    crowd: MaskCrowd,
    patterns: VotePatterns,
    decisions: PixelDecisions,
    fold: NDArray[np.intp],
    folds: int,
) -> Array:
    """Return the probability of the pixels of every decision under a fit to the other folds."""
    probs = np.zeros(len(decisions.vote))
    row_fold = fold[decisions.vote]
    # A pixel of every pattern; its votes without the held-out ones are the same for all pixels of the pattern.
    first = np.full(len(patterns.task), -1, dtype=np.int64)
    first[patterns.segment_pattern[::-1]] = np.arange(len(patterns.segment_pattern))[::-1]
    base = np.concatenate([[0], np.cumsum(crowd.height * crowd.width)])
    pixel = base[patterns.task] + patterns.segment_start[first]
    for number in range(folds):
        rows = np.flatnonzero(row_fold == number)
        if not rows.size:
            continue
        fitted = _fit(method, crowd.take(fold != number))
        n_segments = np.diff(fitted.segment_offset_)
        ends = base[:-1][np.repeat(np.arange(crowd.n_tasks), n_segments)] + fitted.segment_end_
        segment = np.searchsorted(ends, pixel, side="right")
        has_fit = n_segments[patterns.task] > 0  # tasks whose masks are all held out have no prediction
        values = np.zeros(len(pixel))
        values[has_fit] = fitted.segment_probability_[segment[has_fit]]
        probs[rows] = values[decisions.pattern[rows]]
    return np.clip(probs, MIN_PROB, 1 - MIN_PROB)


def _score_masks_heldout(
    probs: Array,
    exponent: float,
    crowd: MaskCrowd,
    decisions: PixelDecisions,
    fold: NDArray[np.intp],
    folds: int,
    is_tested: NDArray[np.bool_],
) -> Array:
    """Return the mean log-probability of the pixels of every tested mask."""
    inside = probs**exponent
    inside /= inside + (1 - probs) ** exponent
    vote, weight, is_marked = decisions.vote, decisions.weight, decisions.is_marked

    def sum_by_vote(values: Array) -> Array:
        return np.where(is_tested, np.bincount(vote, weight * values, crowd.n_votes), 0.0)

    sensitivity = _estimate_rate(sum_by_vote(inside * is_marked), sum_by_vote(inside), crowd, fold, folds)[vote]
    false_rate = _estimate_rate(sum_by_vote((1 - inside) * is_marked), sum_by_vote(1 - inside), crowd, fold, folds)[
        vote
    ]
    marked = inside * sensitivity + (1 - inside) * false_rate
    log_probs = np.bincount(vote, weight * np.log(np.where(is_marked, marked, 1 - marked)), crowd.n_votes)
    return np.asarray(log_probs[is_tested])


def _estimate_rate(marked: Array, total: Array, crowd: MaskCrowd, fold: NDArray[np.intp], folds: int) -> Array:
    """Return the rate at which the worker of every mask marks pixels, from the masks of the worker in the other folds."""
    cell = crowd.worker.astype(np.int64) * folds + fold
    n_cells = crowd.n_workers * folds
    hits, chances = (np.bincount(cell, values, n_cells).reshape(-1, folds) for values in (marked, total))
    hits, chances = hits.sum(axis=1, keepdims=True) - hits, chances.sum(axis=1, keepdims=True) - chances
    pooled = (hits.sum(axis=0) + MIN_RATE) / (chances.sum(axis=0) + 2 * MIN_RATE)
    strength = SHRINKAGE * total.mean() + 1e-12
    rate = (hits + strength * pooled) / (chances + strength)
    return np.asarray(np.clip(rate.ravel()[cell], MIN_RATE, 1 - MIN_RATE))


def _score_with_truth(fitted: dict[str, Any], truth: Any, crowd: MaskCrowd) -> pd.DataFrame:
    """Return mean intersection over union and Dice coefficient of every method on the tasks with truth."""
    if isinstance(truth, MaskRuns):
        if len(truth) != crowd.n_tasks:
            raise InputError(
                f"there are {len(truth):,} true masks for {crowd.n_tasks:,} tasks; expected one for each, by task"
            )
        truth = pd.Series(truth.to_coco(), index=crowd.tasks, dtype=object)
    true_masks = truth if isinstance(truth, pd.Series) else pd.Series(truth, dtype=object)
    tasks = crowd.tasks.intersection(true_masks.index)
    if not len(tasks):
        raise InputError(
            f"none of the tasks with truth ({preview(true_masks.index)}) has masks; the tasks are {preview(crowd.tasks)}"
        )
    rows = {name: score_masks(method.masks_.loc[tasks], true_masks).mean() for name, method in fitted.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def _compare_results(fitted: dict[str, Any], crowd: MaskCrowd) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the areas of masks on which methods differ, and the mean intersection over union of every two methods."""
    names = list(fitted)
    runs = {name: method.runs_ for name, method in fitted.items()}
    agreement = pd.DataFrame(1.0, index=names, columns=names)
    lowest = np.ones(crowd.n_tasks)
    for position, name in enumerate(names):
        for other in names[:position]:
            iou = score_masks(runs[name], runs[other])["iou"].to_numpy()
            agreement.loc[name, other] = agreement.loc[other, name] = float(iou.mean())
            lowest = np.minimum(lowest, iou)
    order = np.argsort(lowest, kind="stable")
    areas = pd.DataFrame({name: masks.area for name, masks in runs.items()}, index=crowd.tasks)
    return areas.iloc[order[lowest[order] < 1]], agreement


def _write_summary(table: pd.DataFrame, tied_methods: tuple[str, ...], n_masks: int) -> str:
    """Write the recommendation and its evidence."""
    best = tied_methods[0]
    heldout = f"{n_masks:,} held-out masks"
    if len(table) == 1:
        probability = np.exp(table["log_likelihood"].iloc[0])
        return (
            f"Only {best} was compared: it gives a pixel of {heldout} probability {probability:.3f} (geometric mean)."
        )
    if len(tied_methods) > 1:
        others = [name for name in tied_methods if name != best]
        return (
            f"Use {best}: {heldout} show no significant difference from {preview(others, 8)}, and it comes first among the "
            "candidates."
        )
    runner_up = table.iloc[1]
    return (
        f"Use {best}: it gives each pixel of {heldout} {np.exp(runner_up['behind']):.4f} times the probability of the second-best "
        f"method, {table.index[1]} ({format_level()} {np.exp(runner_up['low']):.4f} to {np.exp(runner_up['high']):.4f})."
    )
