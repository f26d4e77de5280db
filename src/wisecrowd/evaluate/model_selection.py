"""Model selection by held-out votes, without ground truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.learner import Learner
from wisecrowd.base.method import Method, allow_rare_classes, check_class_count
from wisecrowd.base.registry import find
from wisecrowd.data.comparisons import Comparisons
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.evaluate.heldout_votes import assign_vote_folds, fit_method, heldout_log_probs, order_workers_by_votes
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.evaluate.method_check import MethodCheck, choose_exponent, judge_default_method
from wisecrowd.evaluate.ranking import rank_log_probs
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.notebook import render_html
from wisecrowd.utils.progress import report

#: Default candidates: fast methods with different models of workers. The first of several tied methods is chosen, so they are
#: ordered by how often they were most accurate on 24 public crowds with ground truth.
CANDIDATES = (DEFAULT_METHOD, "ibcc", "dawid-skene", "hds", "one-coin", "mace", "glad", "iwmv", "wawa", "majority-vote")
#: Further default candidates for ordered classes.
ORDINAL_CANDIDATES = ("graded-response", "rater-mean", "ordinal-dawid-skene")
#: Number of starts of default candidates that have random ones. Further starts take most of the time of a comparison and hardly
#: change how well a method predicts held-out votes.
MAX_STARTS = 3
#: Default candidates that use features.
LEARNERS = ("concord", "crowd-lab")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of methods by the predictive probability of held-out votes.

    Attributes
    ----------
    table : DataFrame
        One row per method, best first: mean ``log_likelihood`` of a held-out vote, its distance ``behind`` the best method with
        the interval ``low`` to ``high``, the ``exponent`` of the posterior and ``seconds`` per fit. With truth also ``accuracy``,
        ``log_loss``, ``calibration_error`` and ``p_mcnemar``, the p-value of an exact McNemar test against the best method.
    tied_methods : tuple of str
        Methods whose distance to the best method is not significant, in the order of the candidates.
    best : str
        Name of the recommended method: the default method if it was compared, because on public crowds it is close to the most
        accurate method more often than the method that predicts votes best. If held-out votes reject it (see
        `check_default_method`), it is majority vote. If the default was not compared, or a method with features predicts votes
        best, it is the first of the tied methods. On ordered classes it is always the first of the tied methods.
    disputed_tasks : DataFrame
        Labels by task and method for tasks on which methods differ, most disputed first.
    agreement : DataFrame
        Share of tasks with the same label, by pair of methods.
    summary : str
        Recommended method and the evidence for it.
    fitted_methods : dict of str to Method
        Methods fitted to all votes, by name.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> comparison = compare_methods(simulate_crowd(n_tasks=200, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"])
    >>> comparison.best
    'dawid-skene'
    """

    table: pd.DataFrame
    tied_methods: tuple[str, ...]
    best: str
    disputed_tasks: pd.DataFrame
    agreement: pd.DataFrame
    summary: str
    fitted_methods: dict[str, Method]

    def _repr_html_(self) -> str:
        return render_html(self.summary, self.table)

    def __repr__(self) -> str:
        return f"{self.table.round(4).to_string()}\n{self.summary}"


def compare_methods(
    crowd: CrowdLike | Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | TextCrowd,
    methods: Sequence[Any] | None = None,
    X: FeaturesLike | None = None,
    *,
    truth: TruthLike | None = None,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods by the probability they give to held-out votes.

    The votes are split into ``folds``. Each method is fitted to all folds but one and predicts the votes of that fold:

        P(r gives label l to task i) = Σ_k q_i(k)^τ π_r[k, l] / Σ_k q_i(k)^τ

    Here q is the posterior of the method, and π are confusion matrices estimated from q and the training votes, shrunk towards the
    matrix of the crowd. The exponent τ ≤ 1 is chosen for each method to its advantage, so overconfidence does not decide the
    comparison. Differences between methods are paired by vote; their intervals come from a bootstrap over tasks.

    Parameters
    ----------
    crowd : Crowd, Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd, TextCrowd or DataFrame
        Votes with classes and worker ids, or other answers. Models of comparisons and label sets predict votes themselves, and
        take neither features nor truth. For boxes, points, polygons and spans see `wisecrowd.evaluate.mark_selection`, for masks
        `wisecrowd.evaluate.mask_selection`, for texts `wisecrowd.evaluate.text_selection`.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to a selection of fast ones.
    X : DataFrame or ndarray, default=None
        Features of the tasks. With features, learners are compared as well. For spans, the texts of the tasks.
    truth : Series, mapping or DataFrame, default=None
        True classes; a table of true objects for boxes, points, polygons and spans; true masks or texts by task. They add metrics
        to the table and do not influence the choice.
    folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are too few votes, or a named method cannot be fitted.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> compare_methods(simulate_crowd(n_tasks=100).crowd, ["dawid-skene", "majority-vote"]).table.columns.tolist()
    ['log_likelihood', 'behind', 'low', 'high', 'exponent', 'seconds']
    """
    if isinstance(crowd, Comparisons | LabelSetCrowd):
        from wisecrowd.evaluate.answer_selection import compare_answer_methods

        if X is not None or truth is not None:
            raise UsageError("methods for comparisons and label sets use neither X nor truth; leave them out")
        return compare_answer_methods(crowd, methods, folds=folds, random_state=random_state)
    if isinstance(crowd, MarkCrowd):
        from wisecrowd.evaluate.mark_selection import compare_mark_methods

        true_objects: Any = truth
        return compare_mark_methods(
            crowd, methods, documents=X, truth=true_objects, folds=folds, random_state=random_state
        )
    if isinstance(crowd, MaskCrowd):
        from wisecrowd.evaluate.mask_selection import compare_mask_methods

        if X is not None:
            raise UsageError("methods for masks use no X; leave it out")
        true_masks: Any = truth
        return compare_mask_methods(crowd, methods, truth=true_masks, folds=folds, random_state=random_state)
    if isinstance(crowd, TextCrowd):
        from wisecrowd.evaluate.text_selection import compare_text_methods

        if X is not None:
            raise UsageError("methods for texts use no X; leave it out")
        true_texts = pd.Series(truth) if isinstance(truth, Mapping) else truth
        if true_texts is not None and not isinstance(true_texts, pd.Series):
            raise UsageError(f"true texts must be a Series or a dict by task; got {type(truth).__name__}")
        return compare_text_methods(crowd, methods, truth=true_texts, folds=folds, random_state=random_state)
    votes = require_categorical_crowd(crowd, "comparing methods")
    check_folds(folds, votes.n_votes)
    check_class_count(votes, has_vote_tables=True)
    candidates = _resolve_candidates(methods, X, votes)
    ordered_votes = order_workers_by_votes(votes)
    fold = assign_vote_folds(ordered_votes, folds, random_state)
    with allow_rare_classes():  # a fold has fewer votes per class than the crowd, and smaller tables
        log_probs, seconds = predict_heldout_votes(
            candidates,
            lambda method: heldout_log_probs(method, ordered_votes, X, fold, folds),
            folds,
            failures_are_skipped=methods is None,
        )
    table, tied_methods = _rank_methods(log_probs, ordered_votes, random_state)
    table["seconds"] = pd.Series(seconds)
    fitted = {name: fit_method(candidates[name], votes, X) for name in table.index}
    answers = pd.DataFrame({name: method.labels_ for name, method in fitted.items()})
    if truth is not None:
        table = table.join(_score_with_truth(fitted, truth, table.index[0]))
    check = judge_default_method(log_probs, ordered_votes, random_state)
    best = tied_methods[0] if votes.is_ordered else _recommend(tied_methods, fitted, check)
    return Comparison(
        table,
        tied_methods,
        best,
        _find_disputed_tasks(answers),
        _compute_agreement(answers),
        _write_summary(table, tied_methods, best, votes, check),
        fitted,
    )


def choose_method(
    crowd: CrowdLike, methods: Sequence[Any] | None = None, X: FeaturesLike | None = None, *, random_state: int = 0
) -> Method:
    """Fit the method that `compare_methods` recommends.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to a selection of fast ones.
    X : DataFrame or ndarray, default=None
        Features of the tasks.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Method
        Method fitted to all votes.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> choose_method(simulate_crowd(n_tasks=100, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"]).name
    'dawid-skene'
    """
    comparison = compare_methods(crowd, methods, X, random_state=random_state)
    return comparison.fitted_methods[comparison.best]


def _resolve_candidates(methods: Sequence[Any] | None, X: FeaturesLike | None, votes: Crowd) -> dict[str, Method]:
    """Return the methods to compare, by name."""
    if isinstance(methods, str):
        raise UsageError(f"methods must be a list; got {methods!r}. For one method: [{methods!r}]")
    default = [
        *(LEARNERS if X is not None else ()),
        *(ORDINAL_CANDIDATES if votes.is_ordered else ()),
        *CANDIDATES,
    ]
    requested = default if methods is None else list(methods)
    candidates: dict[str, Method] = {}
    for candidate in requested:
        method: Any = find(candidate)() if isinstance(candidate, str) else candidate
        if methods is None and getattr(method, "n_init", 1) > MAX_STARTS:
            method.set_params(n_init=MAX_STARTS)
        takes_classes = isinstance(method, Aggregator | Learner) and not {"categorical", "ordinal"}.isdisjoint(
            method.answer_types
        )
        if not takes_classes:
            raise UsageError(f"methods must infer classes, such as 'dawid-skene'; got {candidate!r}")
        if X is None and (isinstance(method, Learner) or method.uses_features):
            raise UsageError(f"{method.name} needs features; pass X, or --features on the command line")
        name = method.name if method.name not in candidates else repr(method)
        candidates[name] = method
    if len(candidates) < 1:
        raise UsageError("methods is empty; name at least one method")
    return candidates


def check_folds(folds: int, n_votes: int) -> None:
    """Raise an error if votes cannot be split into folds.

    Parameters
    ----------
    folds : int
        Number of folds.
    n_votes : int
        Number of votes.

    Raises
    ------
    UsageError
        If there are fewer than two folds.
    InputError
        If there are fewer than two votes for each fold.

    Examples
    --------
    >>> check_folds(5, 8)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: 5 folds need at least 10 votes; got 8; use fewer folds: folds=4 (--folds 4)
    """
    if folds < 2:
        raise UsageError(f"folds must be 2 or more; got {folds}")
    if n_votes < 2 * folds:
        advice = (
            f"use fewer folds: folds={n_votes // 2} (--folds {n_votes // 2})" if n_votes >= 4 else "collect more votes"
        )
        raise InputError(f"{folds} folds need at least {2 * folds} votes; got {n_votes:,}; {advice}")


def predict_heldout_votes(
    candidates: Mapping[str, Any],
    predict: Callable[[Any], NDArray[np.float64]],
    folds: int,
    *,
    failures_are_skipped: bool,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, float]]:
    """Let every candidate predict held-out votes, and report progress.

    Parameters
    ----------
    candidates : mapping of str to Method
        Unfitted methods by name.
    predict : callable
        Function of a method that returns the log-probability of every vote.
    folds : int
        Number of fits in a call of ``predict``.
    failures_are_skipped : bool
        Whether to leave out methods that cannot be fitted, as long as others can. A method that the caller named is not left out
        silently.

    Returns
    -------
    log_probs : dict of str to ndarray of shape (n_votes,)
        Log-probabilities by method.
    seconds : dict of str to float
        Seconds of one fit by method, also of those left out.

    Raises
    ------
    InputError
        If a method that the caller named, or none of the methods, can be fitted.

    Examples
    --------
    >>> log_probs, seconds = predict_heldout_votes({"a": -0.5}, lambda method: np.full(2, method), 2, failures_are_skipped=True)
    >>> log_probs["a"].tolist(), list(seconds)
    ([-0.5, -0.5], ['a'])
    """
    log_probs: dict[str, NDArray[np.float64]] = {}
    seconds: dict[str, float] = {}
    failures: dict[str, str] = {}
    for step, (name, method) in enumerate(candidates.items()):
        report("comparing methods", step, len(candidates), name)
        start_time = time.perf_counter()
        try:
            log_probs[name] = predict(method)
        except WisecrowdError as error:
            if not failures_are_skipped:
                raise InputError(f"{name} cannot be compared: {error}") from None
            failures[name] = str(error)
        seconds[name] = (time.perf_counter() - start_time) / folds
    if not log_probs:
        raise InputError(f"none of the methods could be fitted: {failures}")
    return log_probs, seconds


def _rank_methods(
    log_probs: dict[str, NDArray[np.float64]], crowd: Crowd, seed: int
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the table of methods, best first, and the names of the tied methods."""
    chosen = {name: choose_exponent(values) for name, values in log_probs.items()}
    vote_log_probs = {name: values for name, (values, _) in chosen.items()}
    table, tied = rank_log_probs(vote_log_probs, crowd.task, crowd.n_tasks, seed)
    table["exponent"] = [chosen[name][1] for name in table.index]
    return table, tied


def _recommend(tied_methods: tuple[str, ...], fitted: dict[str, Method], check: MethodCheck | None) -> str:
    """Return the default method, or majority vote if the held-out votes reject it.

    If a method with features predicts votes best, or the default method was not compared, it is the first tied method.
    """
    first = fitted[tied_methods[0]]
    uses_features = isinstance(first, Learner) or (isinstance(first, Aggregator) and first.uses_features)
    if DEFAULT_METHOD not in fitted or uses_features:
        return tied_methods[0]
    return DEFAULT_METHOD if check is None else check.recommended


def _score_with_truth(fitted: dict[str, Method], truth: TruthLike, best: str) -> pd.DataFrame:
    """Compute accuracy and calibration of each method and an exact McNemar test against the best."""
    from scipy.stats import binomtest

    from wisecrowd.data.alignment import as_truth_series
    from wisecrowd.evaluate import metrics

    truth_by_task = as_truth_series(truth)
    rows: dict[str, dict[str, float]] = {}
    is_right: dict[str, pd.Series] = {}
    for name, method in fitted.items():
        labels = method.labels_
        known_tasks = truth_by_task[truth_by_task.index.isin(labels.index)]
        is_right[name] = labels.reindex(known_tasks.index) == known_tasks
        figures = metrics.summary(truth_by_task, method)
        rows[name] = {str(key): figures[key] for key in ("accuracy", "log_loss", "calibration_error") if key in figures}
    for name in rows:
        best_only, other_only = is_right[best] & ~is_right[name], is_right[name] & ~is_right[best]
        n = int(best_only.sum() + other_only.sum())
        rows[name]["p_mcnemar"] = float(binomtest(int(best_only.sum()), n).pvalue) if n else 1.0
    return pd.DataFrame.from_dict(rows, orient="index")


def _find_disputed_tasks(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the labels of tasks on which methods differ, most disputed first."""
    codes = answers.apply(lambda column: pd.Categorical(column, categories=pd.unique(answers.to_numpy().ravel())).codes)
    table = codes.to_numpy()
    majority_size = np.zeros(len(table), dtype=int)
    for column in range(table.shape[1]):
        majority_size = np.maximum(majority_size, (table == table[:, [column]]).sum(axis=1))
    n_minority = table.shape[1] - majority_size
    order = np.argsort(-n_minority, kind="stable")
    return answers.iloc[order[n_minority[order] > 0]]


def _compute_agreement(answers: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of tasks with the same label for each pair of methods."""
    values = answers.to_numpy()
    shares = [
        [float((values[:, a] == values[:, b]).mean()) for b in range(values.shape[1])] for a in range(values.shape[1])
    ]
    return pd.DataFrame(shares, index=answers.columns, columns=answers.columns)


def _write_summary(
    table: pd.DataFrame, tied_methods: tuple[str, ...], best: str, crowd: Crowd, check: MethodCheck | None
) -> str:
    """Write the recommendation and its evidence."""
    row = table.loc[best]
    heldout = f"{crowd.n_votes:,} held-out votes"
    if len(table) == 1:
        probability = np.exp(row["log_likelihood"])
        return f"Only {best} was compared: it gives a held-out vote probability {probability:.2f} (geometric mean)."
    if check is not None and check.is_rejected and best == check.recommended:
        return (
            f"Use {best}: {heldout} reject {check.method}, to which they have {np.exp(-check.distance):.2f} times the probability "
            f"that {best} gives them."
        )
    if best not in tied_methods:
        return (
            f"Use {best}: on public crowds it is close to the most accurate method more often than the method that predicts votes "
            f"best, and more accurate on average. Here {table.index[0]} gives {heldout} {np.exp(row['behind']):.2f} times its "
            "probability."
        )
    if len(tied_methods) == len(table):
        return (
            f"Use {best}: {heldout} show no significant difference between the methods, and it is the first candidate."
        )
    others = [name for name in tied_methods if name != best]
    if others:
        listed = ", ".join(others[:-1]) + (" and " if len(others) > 1 else "") + others[-1]
        return (
            f"Use {best}: {heldout} show no significant difference from {listed}, and it comes first among the candidates. "
            "All other methods are significantly worse."
        )
    second = table.index[1]
    runner_up = table.loc[second]
    return (
        f"Use {best}: it gives each of {heldout} {np.exp(runner_up['behind']):.2f} times the probability of the second-best "
        f"method, {second} ({format_level()} {np.exp(runner_up['low']):.2f} to {np.exp(runner_up['high']):.2f})."
    )
