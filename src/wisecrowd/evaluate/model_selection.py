"""Which method to believe when there is no gold: the one that foretells hidden votes best, and how sure that is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.learner import Learner
from wisecrowd.base.method import Method
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError, WisecrowdError
from wisecrowd.evaluate.heldout_votes import EXPONENTS, assign_vote_folds, fit_method, heldout_log_probs
from wisecrowd.evaluate.inputs import require_categorical_crowd
from wisecrowd.utils.progress import report
from wisecrowd.utils.slices import slice_rows

#: Methods that are compared unless others are named: quick ones, each with another idea of workers. The first of those that
#: cannot be told apart is taken, so the order says what to believe when the votes do not: in 24 public crowds with gold, these
#: were right most often in this order.
CANDIDATES = ("ibcc", "dawid-skene", "hds", "one-coin", "mace", "glad", "iwmv", "wawa", "majority-vote")
#: With features, learners as well.
LEARNERS = ("concord", "crowd-lab")
#: Of the interval within which two methods are not told apart.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side on votes that they did not see.

    >>> from wisecrowd import simulate_crowd
    >>> found = compare_methods(simulate_crowd(n_tasks=200, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"])
    >>> found.best
    'dawid-skene'
    """

    table: pd.DataFrame
    """By method, the best first: mean log-likelihood of a hidden vote, its distance to the best with an interval, and time;
    with truth, accuracy and what goes with it."""
    tied_methods: tuple[str, ...]
    """Those that the votes cannot tell from the best."""
    disputed_tasks: pd.DataFrame
    """Tasks on which methods differ, most disputed first: a column with the answer of each."""
    agreement: pd.DataFrame
    """Share of tasks on which two methods give the same answer."""
    summary: str
    """What to use, how sure, and why."""
    fitted_methods: dict[str, Method]
    """The methods, by name, fitted to all votes."""

    @property
    def best(self) -> str:
        """What to use: the first, in the order of the candidates, of those that cannot be told from the best."""
        return self.tied_methods[0]

    def __repr__(self) -> str:
        return f"{self.table.round(4).to_string()}\n{self.summary}"


def compare_methods(
    crowd: Any,
    methods: Sequence[Any] | None = None,
    X: Any = None,
    *,
    truth: Any = None,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods by how well they foretell votes that they did not see; no gold is needed.

    Votes are dealt into ``folds``. A method is fitted to all but one and must foretell what the workers of that one said:

        P(r says l of task i) = Σ_k q_i(k)^τ π_r[k, l] / Σ_k q_i(k)^τ

    with its posterior q, and matrices π that follow from q and the votes it saw, drawn toward the crowd's. τ ≤ 1 is one
    number for each method, chosen to its advantage: what counts is where it puts the truth, not how sure it is of it.
    Differences between methods are paired by vote; their intervals come from a bootstrap over tasks.

    ``methods`` are names or unfitted methods. With features ``X``, learners are compared as well. ``truth`` is not used to
    choose: it adds accuracy, calibration and a test of each method against the best to the table.

    >>> from wisecrowd import simulate_crowd
    >>> compare_methods(simulate_crowd(n_tasks=100).crowd, ["dawid-skene", "majority-vote"]).table.columns.tolist()
    ['log_likelihood', 'behind', 'low', 'high', 'exponent', 'seconds']
    """
    votes = require_categorical_crowd(crowd, "methods are compared")
    if folds < 2:
        raise UsageError(f"votes are dealt into two folds or more; got {folds}")
    if votes.n_votes < 2 * folds:
        raise InputError(f"{votes.n_votes:,} votes are too few to hide some of them {folds} times")
    candidates = _resolve_candidates(methods, X)
    fold = assign_vote_folds(votes, folds, random_state)
    log_probs: dict[str, NDArray[np.float64]] = {}
    seconds: dict[str, float] = {}
    failures: dict[str, str] = {}
    for step, (name, method) in enumerate(candidates.items()):
        report("comparing methods", step, len(candidates), name)
        start_time = time.perf_counter()
        try:
            log_probs[name] = heldout_log_probs(method, votes, X, fold, folds)
        except WisecrowdError as error:
            if methods is not None:  # what somebody named does not vanish without a word
                raise InputError(f"{name} cannot be compared: {error}") from None
            failures[name] = str(error)
        seconds[name] = (time.perf_counter() - start_time) / folds
    if not log_probs:
        raise InputError(f"none of the methods could be fitted: {failures}")
    table, tied_methods = _rank_methods(log_probs, votes, random_state)
    table["seconds"] = pd.Series(seconds)
    fitted = {name: fit_method(candidates[name], votes, X) for name in table.index}
    answers = pd.DataFrame({name: method.labels_ for name, method in fitted.items()})
    if truth is not None:
        table = table.join(_score_with_truth(fitted, truth, table.index[0]))
    return Comparison(
        table,
        tied_methods,
        _find_disputed_tasks(answers),
        _compute_agreement(answers),
        _write_summary(table, tied_methods, votes),
        fitted,
    )


def choose_method(crowd: Any, methods: Sequence[Any] | None = None, X: Any = None, *, random_state: int = 0) -> Method:
    """What `compare` says to use, fitted to all votes: of the methods that foretell hidden votes best, the first that is named.

    >>> from wisecrowd import simulate_crowd
    >>> choose_method(simulate_crowd(n_tasks=100, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"]).name
    'dawid-skene'
    """
    comparison = compare_methods(crowd, methods, X, random_state=random_state)
    return comparison.fitted_methods[comparison.best]


# ---------------------------------------------------------------------- inside


def _resolve_candidates(methods: Sequence[Any] | None, X: Any) -> dict[str, Method]:
    if isinstance(methods, str):
        raise UsageError(f"a list of methods was wanted; got {methods!r}")
    requested = [*(LEARNERS if X is not None else ()), *CANDIDATES] if methods is None else list(methods)
    candidates: dict[str, Method] = {}
    for candidate in requested:
        method: Any = find(candidate)() if isinstance(candidate, str) else candidate
        if not isinstance(method, Aggregator | Learner) or method.numeric is True:
            raise UsageError(f"methods that infer classes are compared; got {candidate!r}")
        if X is None and (isinstance(method, Learner) or method.uses_features):
            raise UsageError(
                f"{method.name} looks at features of tasks; give them: compare(crowd, methods, X), or --features X.npz"
            )
        name = method.name if method.name not in candidates else repr(method)
        candidates[name] = method
    if len(candidates) < 1:
        raise UsageError("at least one method is needed to compare")
    return candidates


def _rank_methods(
    log_probs: dict[str, NDArray[np.float64]], crowd: Crowd, seed: int
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Figures by method, the best first, and those that cannot be told from it, in the order they were given."""
    best_exponent = {name: int(values.mean(axis=0).argmax()) for name, values in log_probs.items()}
    vote_log_probs = {name: values[:, best_exponent[name]] for name, values in log_probs.items()}
    order = sorted(vote_log_probs, key=lambda name: -vote_log_probs[name].mean())
    best = order[0]
    rows = []
    rng = np.random.default_rng(seed)
    repeats, n_tasks = 1000, crowd.n_tasks
    # A bootstrap over tasks by Poisson weights, in portions: one number for each task and repeat would be too many.
    gaps = np.stack(
        [np.bincount(crowd.task, vote_log_probs[best] - vote_log_probs[name], minlength=n_tasks) for name in order],
        axis=1,
    )
    counts = crowd.votes_per_task.astype(np.float64)
    replicates: list[NDArray[np.float64]] = []
    for values in slice_rows(repeats, n_tasks):
        weights = rng.poisson(1.0, size=(len(range(*values.indices(repeats))), n_tasks)).astype(np.float32)
        with np.errstate(invalid="ignore"):  # of few tasks, none may be drawn
            replicates.append((weights @ gaps) / (weights @ counts)[:, None])
    low, high = np.nanquantile(np.concatenate(replicates), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    for position, name in enumerate(order):
        gap = float((vote_log_probs[best] - vote_log_probs[name]).mean())
        rows.append(
            (
                float(vote_log_probs[name].mean()),
                gap,
                low[position],
                high[position],
                float(EXPONENTS[best_exponent[name]]),
            )
        )
    columns = ["log_likelihood", "behind", "low", "high", "exponent"]
    table = pd.DataFrame(rows, index=pd.Index(order, name="method"), columns=columns)
    tied = {name for position, name in enumerate(order) if name == best or low[position] <= 0}
    return table, tuple(name for name in log_probs if name in tied)


def _score_with_truth(fitted: dict[str, Method], truth: Any, best: str) -> pd.DataFrame:
    """Accuracy and calibration, and how likely so many differences from the best are by chance (McNemar, exact)."""
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
    codes = answers.apply(lambda column: pd.Categorical(column, categories=pd.unique(answers.to_numpy().ravel())).codes)
    table = codes.to_numpy()
    majority_size = np.zeros(len(table), dtype=int)
    for column in range(table.shape[1]):
        majority_size = np.maximum(majority_size, (table == table[:, [column]]).sum(axis=1))
    n_minority = table.shape[1] - majority_size
    order = np.argsort(-n_minority, kind="stable")
    return answers.iloc[order[n_minority[order] > 0]]


def _compute_agreement(answers: pd.DataFrame) -> pd.DataFrame:
    values = answers.to_numpy()
    shares = [
        [float((values[:, a] == values[:, b]).mean()) for b in range(values.shape[1])] for a in range(values.shape[1])
    ]
    return pd.DataFrame(shares, index=answers.columns, columns=answers.columns)


def _write_summary(table: pd.DataFrame, tied_methods: tuple[str, ...], crowd: Crowd) -> str:
    """What to use, how sure, and why, for people."""
    best = tied_methods[0]
    row = table.loc[best]
    heldout = f"the {crowd.n_votes:,} votes, each foretold from the others"
    if len(table) == 1:
        return f"Only {best} was tried; a hidden vote has the probability {np.exp(row['log_likelihood']):.2f} (geometric mean)."
    if len(tied_methods) == len(table):
        return f"Use {best}, the first of them: {heldout}, do not tell the methods apart."
    others = [name for name in tied_methods if name != best]
    if others:
        listed = ", ".join(others[:-1]) + (" and " if len(others) > 1 else "") + others[-1]
        return (
            f"Use {best}: by {heldout}, it cannot be told from {listed}, which stand behind it in the order of methods that were "
            "right most often elsewhere; the others are behind by more than chance."
        )
    second = table.index[1]
    runner_up = table.loc[second]
    return (
        f"Use {best}: of {heldout}, it gives each {np.exp(runner_up['behind']):.2f} times the probability that {second}, the next, "
        f"does ({LEVEL:.0%} interval {np.exp(runner_up['low']):.2f} to {np.exp(runner_up['high']):.2f})."
    )
