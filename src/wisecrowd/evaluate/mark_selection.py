"""Model selection for boxes, points, polygons and spans by held-out workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.base.mark_aggregator import MarkAggregator
from wisecrowd.base.registry import find
from wisecrowd.data.mark_matches import find_mark_pairs, match_marks
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings, concatenate_rings
from wisecrowd.data.rows import assign_folds
from wisecrowd.errors import InputError, ignore_fit_warnings, preview
from wisecrowd.evaluate.answer_candidates import resolve_candidates
from wisecrowd.evaluate.model_selection import Comparison, check_folds, predict_heldout_votes
from wisecrowd.evaluate.object_metrics import score_objects
from wisecrowd.evaluate.ranking import rank_log_probs
from wisecrowd.utils.levels import format_level

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Candidates by kind of marks: method and parameters. The first of several tied methods is chosen.
CANDIDATES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "boxes": (("box-consensus", {}), ("box-consensus", {"model": "majority"})),
    "points": (("point-consensus", {}), ("point-consensus", {"model": "majority"})),
    "polygons": (("polygon-consensus", {}), ("polygon-consensus", {"model": "majority"})),
    "spans": (
        ("span-consensus", {}),
        ("bayesian-sequence", {}),
        ("hmm-crowd", {}),
        ("span-consensus", {"model": "majority"}),
    ),
}
#: Dice coefficient from which two places are one object.
MIN_SIMILARITY = 0.5
#: Pseudo-decisions that draw the rates of a worker to those of the crowd, and pseudo-counts of the latter.
SHRINKAGE, CROWD_PRIOR = 5.0, 0.5
#: Probabilities of objects stay away from 0 and 1 by this much, so that a method without a candidate is not ruled out.
MIN_PROB = 0.01
#: Exponents of the probabilities of objects; each method gets the best one, so that overconfidence alone does not decide.
EXPONENTS = (0.25, 0.5, 0.75, 1.0)


class MarkDecisions(NamedTuple):
    """Decisions of workers about objects: a class, or "absent" (code 0), for every object of every task that they saw.

    Parameters
    ----------
    target, vote, given : ndarray of shape (n_decisions,)
        Object, assignment, and 0 or 1 plus the class.
    object_task : ndarray of shape (n_objects,)
        Tasks of the objects.
    object_coordinates : ndarray of shape (n_objects, n_coordinates)
        Places of the objects.
    radius : float
        Distance of points at which their similarity is 1/2.
    object_rings : PolygonRings or None
        Vertices of the objects, for polygons.
    """

    target: Codes
    vote: Codes
    given: Codes
    object_task: Codes
    object_coordinates: Array
    radius: float
    object_rings: PolygonRings | None = None


def list_decisions(crowd: MarkCrowd) -> MarkDecisions:
    """List the decisions of all workers about all objects that somebody marked.

    Objects are groups of similar marks, found once for all methods by the matching of the default method.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.

    Returns
    -------
    MarkDecisions

    Examples
    --------
    >>> from wisecrowd.data.spans import SpanCrowd
    >>> frame = {"task": ["d"] * 3, "worker": ["ann", "bob", "cy"], "start": [0, 0, 8], "end": [2, 2, 9]}
    >>> list_decisions(SpanCrowd.from_frame(frame)).given.tolist()
    [1, 1, 0, 0, 0, 1]
    """
    method: Any = find(DEFAULT_METHODS[crowd.answer_type])()
    with ignore_fit_warnings():
        reference = method.set_params(model="majority").fit(crowd)
    radius = float(getattr(reference, "radius_", 1.0))
    task, places, rings = reference.object_task_.astype(np.int64), reference.object_coordinates_, reference.rings_
    matches = match_marks(crowd, task, places, radius=radius, object_rings=rings)
    count = crowd.votes_per_task[task]
    start = np.cumsum(count) - count
    target = np.repeat(np.arange(len(task)), count)
    vote = crowd.task_offset[task][target] + np.arange(len(target)) - start[target]
    given = np.zeros(len(target), dtype=np.int64)
    row = start[matches.target] + crowd.mark[matches.mark] - crowd.task_offset[task[matches.target]]
    given[row] = 1 + crowd.label[matches.mark]
    return MarkDecisions(target, vote, given, task, places, radius, rings)


def compare_mark_methods(
    crowd: MarkCrowd,
    methods: Sequence[Any] | None = None,
    *,
    documents: Any = None,
    truth: pd.DataFrame | None = None,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods for boxes, points, polygons or spans by held-out workers.

    The answers are split into folds, so that a task loses some of its workers. A method is fitted to the others and gives every
    object that one of them marked a probability q(k) of being real and of class k, or false (k = 0). It predicts what a
    held-out worker r does with the object:

        P(r marks it as class l, or not at all) = Σ_k q(k)^τ π_r[k, l] / Σ_k q(k)^τ

    The rates π are estimated from q and the other answers, in the same way for all methods, and drawn to those of the crowd. The
    exponent τ is chosen for each method to its advantage. Intervals of differences come from a bootstrap over tasks.

    Parameters
    ----------
    crowd : MarkCrowd
        Marks.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to all that suit the marks, with the share of workers who marked an
        object (``model="majority"``) as baseline.
    documents : table, default=None
        Texts of the tasks, for methods that use them.
    truth : DataFrame, default=None
        True objects: task, coordinates and label. A row without coordinates is a task without objects. They add precision,
        recall and F1 score to the table and do not influence the choice.
    folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Comparison
        ``disputed_tasks`` has the number of objects by task and method where it differs. ``agreement`` is the F1 score of the
        objects of two methods.

    Raises
    ------
    InputError
        If there are too few answers, or a named method cannot be fitted.

    Examples
    --------
    >>> from wisecrowd import simulate_boxes
    >>> crowd = simulate_boxes(n_tasks=60, n_workers=8, random_state=0).crowd
    >>> compare_mark_methods(crowd).table.index.tolist()
    ['box-consensus', 'box-consensus -p model=majority']
    """
    check_folds(folds, crowd.n_votes)
    candidates = resolve_candidates(
        methods, CANDIDATES[crowd.answer_type], MarkAggregator, crowd.answer_type, crowd.plural
    )
    decisions = list_decisions(crowd)
    fold = assign_folds(crowd.task, crowd.n_tasks, folds, np.random.default_rng(random_state))
    is_tested = _find_tested(decisions, fold, folds)
    if not is_tested.any():
        raise InputError(
            "no object was marked by one worker and seen by another, so held-out workers cannot be predicted; collect answers of "
            "several workers on a task"
        )
    exponents: dict[int, float] = {}  # by identity of the method

    def predict(method: Any) -> Array:
        by_exponent = _predict_decisions(method, crowd, documents, decisions, fold, folds)[:, is_tested]
        best = int(by_exponent.mean(axis=1).argmax())
        exponents[id(method)] = EXPONENTS[best]
        return np.asarray(by_exponent[best])

    log_probs, seconds = predict_heldout_votes(candidates, predict, folds, failures_are_skipped=methods is None)
    unit = decisions.object_task[decisions.target[is_tested]]
    table, tied_methods = rank_log_probs(log_probs, unit, crowd.n_tasks, random_state)
    table["exponent"] = [exponents[id(candidates[str(name)])] for name in table.index]
    table["seconds"] = pd.Series(seconds)
    fitted = {str(name): fit_marks(candidates[str(name)], crowd, documents) for name in table.index}
    if truth is not None:
        table = table.join(_score_with_truth(fitted, truth, crowd, decisions.radius))
    disputed, agreement = _compare_objects(fitted, crowd, decisions.radius)
    summary = _write_summary(table, tied_methods, int(is_tested.sum()))
    return Comparison(table, tied_methods, tied_methods[0], disputed, agreement, summary, fitted)


def fit_marks(method: Any, crowd: MarkCrowd, documents: Any = None) -> Any:
    """Fit a copy of a method to marks, with the texts of tasks if it uses them.

    Parameters
    ----------
    method : MarkAggregator
        Unfitted method.
    crowd : MarkCrowd
        Marks.
    documents : table, default=None
        Texts of the tasks.

    Returns
    -------
    MarkAggregator

    Examples
    --------
    >>> from wisecrowd import BoxConsensus, simulate_boxes
    >>> fit_marks(BoxConsensus(), simulate_boxes(n_tasks=5, random_state=0).crowd).converged_
    True
    """
    with ignore_fit_warnings():  # the checks of `check_votes` report problems of the votes once
        copy = method.clone_unfitted()
        return copy.fit(crowd, documents) if documents is not None and copy.uses_documents else copy.fit(crowd)


def _count_marks(decisions: MarkDecisions, rows: NDArray[np.bool_]) -> Codes:
    """Return the number of marks on every object in some decisions."""
    return np.bincount(decisions.target[rows & (decisions.given > 0)], minlength=len(decisions.object_task))


def _find_tested(decisions: MarkDecisions, fold: NDArray[np.intp], folds: int) -> NDArray[np.bool_]:
    """Return which decisions are predicted: those about objects that a worker of another fold marked."""
    row_fold = fold[decisions.vote]
    tested = np.zeros(len(row_fold), dtype=bool)
    for number in range(folds):
        is_marked = _count_marks(decisions, row_fold != number) > 0
        tested |= (row_fold == number) & is_marked[decisions.target]
    return tested


def _predict_decisions(
    method: Any, crowd: MarkCrowd, documents: Any, decisions: MarkDecisions, fold: NDArray[np.intp], folds: int
) -> Array:
    """Return the log-probability of every decision under a fit to the other folds, by exponent."""
    log_probs = np.zeros((len(EXPONENTS), len(decisions.vote)))
    row_fold, worker = fold[decisions.vote], crowd.worker[decisions.vote].astype(np.int64)
    for number in range(folds):
        rows = np.flatnonzero(row_fold == number)
        if not rows.size:
            continue
        fitted = fit_marks(method, crowd.take(fold != number), documents)
        probs = _find_object_probs(fitted, crowd, decisions)
        is_visible = row_fold != number
        # As in the prediction, somebody else has marked the object.
        n_others = _count_marks(decisions, is_visible)[decisions.target] - (decisions.given > 0)
        training = np.flatnonzero(is_visible & (n_others > 0))
        for position, exponent in enumerate(EXPONENTS):
            tempered = probs**exponent
            tempered /= tempered.sum(axis=1, keepdims=True)
            rates = _estimate_rates(tempered, decisions, training, worker, crowd.n_workers)
            given, target = decisions.given[rows], decisions.target[rows]
            likelihood = np.einsum("nk,nk->n", tempered[target], rates[worker[rows], :, given])
            log_probs[position, rows] = np.log(likelihood)
    return log_probs


def _find_object_probs(fitted: Any, crowd: MarkCrowd, decisions: MarkDecisions) -> Array:
    """Return the probabilities that a fitted method gives to objects: false, and real of each class."""
    n_objects, rings = len(decisions.object_task), decisions.object_rings
    pairs = find_mark_pairs(
        crowd.answer_type,
        np.concatenate([decisions.object_task, fitted.object_task_]),
        np.vstack([decisions.object_coordinates, fitted.object_coordinates_]),
        decisions.radius,
        None if rings is None else concatenate_rings([rings, fitted.rings_]),
    )
    is_match = (pairs.first < n_objects) & (pairs.second >= n_objects) & (pairs.similarity >= MIN_SIMILARITY)
    target, candidate, similarity = (
        pairs.first[is_match],
        pairs.second[is_match] - n_objects,
        pairs.similarity[is_match],
    )
    # Every candidate belongs to the most similar object; an object may have candidates with different ends.
    order = np.lexsort((target, -similarity, candidate))
    is_first = np.append(True, np.diff(candidate[order]) != 0) if len(order) else np.empty(0, dtype=bool)
    target, candidate = target[order][is_first], candidate[order][is_first]
    probs = np.zeros((n_objects, 1 + crowd.n_classes))
    np.add.at(probs[:, 1:], target, fitted.object_probs_[candidate])
    total = probs[:, 1:].sum(axis=1)
    probs[:, 1:] *= np.where(total > 1, 1 / np.maximum(total, 1), 1.0)[:, None]
    probs[:, 0] = 1 - np.minimum(total, 1)
    probs = probs * (1 - 2 * MIN_PROB)
    probs[:, 0] += MIN_PROB
    probs[:, 1:] += MIN_PROB / crowd.n_classes
    return probs


def _estimate_rates(probs: Array, decisions: MarkDecisions, rows: Codes, worker: Codes, n_workers: int) -> Array:
    """Return P(decision | class) of each worker, of shape (n_workers, n_states, n_states), from training decisions."""
    n_states = probs.shape[1]
    cell = worker[rows] * n_states + decisions.given[rows]
    tally = np.stack(
        [np.bincount(cell, probs[decisions.target[rows], state], n_workers * n_states) for state in range(n_states)]
    )
    counts = tally.reshape(n_states, n_workers, n_states).transpose(1, 0, 2)
    crowd_counts = counts.sum(axis=0) + CROWD_PRIOR * (np.eye(n_states) + 1 / n_states)
    typical = crowd_counts / crowd_counts.sum(axis=1, keepdims=True)
    return np.asarray((counts + SHRINKAGE * typical) / (counts.sum(axis=2, keepdims=True) + SHRINKAGE))


def _score_with_truth(fitted: dict[str, Any], truth: pd.DataFrame, crowd: MarkCrowd, radius: float) -> pd.DataFrame:
    """Return precision, recall and F1 score of every method on the tasks with truth."""
    places = list(crowd.place_columns or crowd.coordinate_names)
    if absent := [name for name in ("task", *places) if name not in truth]:
        raise InputError(f"the truth has no column {preview(absent)}; {crowd.plural} need task, {', '.join(places)}")
    tasks = set(truth["task"])
    if not tasks & set(crowd.tasks):
        raise InputError(
            f"none of the tasks with truth ({preview(truth['task'].unique())}) has votes; the tasks are {preview(crowd.tasks)}"
        )
    true_objects = truth.dropna(subset=places)
    kind: Any = crowd.answer_type
    limit = radius if kind == "points" else None
    rows = {}
    for name, method in fitted.items():
        objects = method.objects_
        score = score_objects(objects[objects["task"].isin(tasks)], true_objects, kind=kind, radius=limit)
        rows[name] = {"precision": score.precision, "recall": score.recall, "f1": score.f1}
    return pd.DataFrame.from_dict(rows, orient="index")


def _compare_objects(fitted: dict[str, Any], crowd: MarkCrowd, radius: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tasks with different numbers of objects, and the F1 score of every two methods."""
    counts = pd.DataFrame({name: method.tasks_["n_objects"] for name, method in fitted.items()})
    spread = (counts.max(axis=1) - counts.min(axis=1)).sort_values(ascending=False, kind="stable")
    kind: Any = crowd.answer_type
    limit = radius if kind == "points" else None
    objects = {name: method.objects_ for name, method in fitted.items()}
    agreement = pd.DataFrame(1.0, index=list(fitted), columns=list(fitted))
    names = list(fitted)
    for position, name in enumerate(names):
        for other in names[:position]:
            score = score_objects(objects[name], objects[other], kind=kind, radius=limit).f1
            agreement.loc[name, other] = agreement.loc[other, name] = score
    return counts.loc[spread.index[spread > 0]], agreement


def _write_summary(table: pd.DataFrame, tied_methods: tuple[str, ...], n_decisions: int) -> str:
    """Write the recommendation and its evidence."""
    best = tied_methods[0]
    heldout = f"{n_decisions:,} decisions of held-out workers about objects"
    if len(table) == 1:
        probability = np.exp(table["log_likelihood"].iloc[0])
        return f"Only {best} was compared: it gives a decision of a held-out worker probability {probability:.3f} (geometric mean)."
    if len(tied_methods) > 1:
        others = [name for name in tied_methods if name != best]
        return (
            f"Use {best}: {heldout} show no significant difference from {preview(others, 8)}, and it comes first among the "
            "candidates."
        )
    runner_up = table.iloc[1]
    return (
        f"Use {best}: it gives each of {heldout} {np.exp(runner_up['behind']):.3f} times the probability of the second-best "
        f"method, {table.index[1]} ({format_level()} {np.exp(runner_up['low']):.3f} to {np.exp(runner_up['high']):.3f})."
    )
