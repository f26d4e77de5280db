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
from wisecrowd.data import rows as _rows
from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import admitted
from wisecrowd.em import priors as matrices
from wisecrowd.errors import InputError, UsageError, WisecrowdError, unwarned
from wisecrowd.utils.progress import report

#: Methods that are compared unless others are named: quick ones, each with another idea of workers. The first of those that
#: cannot be told apart is taken, so the order says what to believe when the votes do not: in 24 public crowds with gold, these
#: were right most often in this order.
CANDIDATES = ("ibcc", "dawid-skene", "hds", "one-coin", "mace", "glad", "iwmv", "wawa", "majority-vote")
#: With features, learners as well.
LEARNERS = ("concord", "crowd-lab")
#: Exponents that a posterior may be tempered with: some methods are right and far too sure of it.
EXPONENTS = np.array([0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0])
#: Of the interval within which two methods are not told apart.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side on votes that they did not see.

    >>> from wisecrowd import simulate_crowd
    >>> found = compare(simulate_crowd(n_tasks=200, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"])
    >>> found.best
    'dawid-skene'
    """

    table: pd.DataFrame
    """By method, the best first: mean log-likelihood of a hidden vote, its distance to the best with an interval, and time;
    with truth, accuracy and what goes with it."""
    tied: tuple[str, ...]
    """Those that the votes cannot tell from the best."""
    disputed: pd.DataFrame
    """Tasks on which methods differ, most disputed first: a column with the answer of each."""
    agreement: pd.DataFrame
    """Share of tasks on which two methods give the same answer."""
    sentence: str
    """What to use, how sure, and why."""
    fitted: dict[str, Method]
    """The methods, by name, fitted to all votes."""

    @property
    def best(self) -> str:
        """What to use: the first, in the order of the candidates, of those that cannot be told from the best."""
        return self.tied[0]

    def __repr__(self) -> str:
        return f"{self.table.round(4).to_string()}\n{self.sentence}"


def compare(
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
    >>> compare(simulate_crowd(n_tasks=100).crowd, ["dawid-skene", "majority-vote"]).table.columns.tolist()
    ['log_likelihood', 'behind', 'low', 'high', 'exponent', 'seconds']
    """
    votes = admitted(crowd, "methods are compared")
    if folds < 2:
        raise UsageError(f"votes are dealt into two folds or more; got {folds}")
    if votes.n_votes < 2 * folds:
        raise InputError(f"{votes.n_votes:,} votes are too few to hide some of them {folds} times")
    candidates = _candidates(methods, X)
    fold = dealt(votes, folds, random_state)
    said: dict[str, NDArray[np.float64]] = {}
    seconds: dict[str, float] = {}
    refused: dict[str, str] = {}
    for step, (name, method) in enumerate(candidates.items()):
        report("comparing methods", step, len(candidates), name)
        begun = time.perf_counter()
        try:
            said[name] = foretold(method, votes, X, fold, folds)
        except WisecrowdError as error:
            if methods is not None:  # what somebody named does not vanish without a word
                raise InputError(f"{name} cannot be compared: {error}") from None
            refused[name] = str(error)
        seconds[name] = (time.perf_counter() - begun) / folds
    if not said:
        raise InputError(f"none of the methods could be fitted: {refused}")
    table, tied = _judged(said, votes, random_state)
    table["seconds"] = pd.Series(seconds)
    fitted = {name: _fit(candidates[name], votes, X) for name in table.index}
    answers = pd.DataFrame({name: method.labels_ for name, method in fitted.items()})
    if truth is not None:
        table = table.join(_by_truth(fitted, truth, table.index[0]))
    return Comparison(table, tied, _disputed(answers), _agreement(answers), _sentence(table, tied, votes), fitted)


def choose(crowd: Any, methods: Sequence[Any] | None = None, X: Any = None, *, random_state: int = 0) -> Method:
    """What `compare` says to use, fitted to all votes: of the methods that foretell hidden votes best, the first that is named.

    >>> from wisecrowd import simulate_crowd
    >>> choose(simulate_crowd(n_tasks=100, votes_per_task=5).crowd, ["dawid-skene", "majority-vote"]).name
    'dawid-skene'
    """
    found = compare(crowd, methods, X, random_state=random_state)
    return found.fitted[found.best]


# ---------------------------------------------------------------------- inside


def _candidates(methods: Sequence[Any] | None, X: Any) -> dict[str, Method]:
    if isinstance(methods, str):
        raise UsageError(f"a list of methods was wanted; got {methods!r}")
    wanted = [*(LEARNERS if X is not None else ()), *CANDIDATES] if methods is None else list(methods)
    found: dict[str, Method] = {}
    for one in wanted:
        method: Any = find(one)() if isinstance(one, str) else one
        if not isinstance(method, Aggregator | Learner) or method.numeric is True:
            raise UsageError(f"methods that infer classes are compared; got {one!r}")
        if X is None and (isinstance(method, Learner) or method.uses_features):
            raise UsageError(
                f"{method.name} looks at features of tasks; give them: compare(crowd, methods, X), or --features X.npz"
            )
        name = method.name if method.name not in found else repr(method)
        found[name] = method
    if len(found) < 1:
        raise UsageError("at least one method is needed to compare")
    return found


def _fit(method: Method, crowd: Crowd, X: Any) -> Method:
    fresh: Any = method.unfitted()
    with unwarned():  # what is wrong with a crowd is for `examine` to say, once
        if isinstance(fresh, Learner):
            fitted: Method = fresh.fit(X, crowd)
            return fitted
        return fresh.fit(crowd, X) if fresh.uses_features else fresh.fit(crowd)


def dealt(crowd: Crowd, folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of each vote: votes of a task go to different ones, so that each task keeps some.

    >>> sorted(dealt(Crowd.from_triples([("t1", worker, 0) for worker in "abc"]), 3, 0).tolist())
    [0, 1, 2]
    """
    return _rows.dealt(crowd.task, crowd.n_tasks, folds, np.random.default_rng(seed))


def foretold(method: Method, crowd: Crowd, X: Any, fold: NDArray[np.intp], folds: int) -> NDArray[np.float64]:
    """log P of every vote by a fit that did not see it, for each exponent: (votes, exponents).

    >>> crowd = Crowd.from_triples([(task, worker, task % 2) for task in range(4) for worker in "abc"])
    >>> foretold(find("majority-vote")(), crowd, None, dealt(crowd, 3, 0), 3).shape
    (12, 7)
    """
    found = np.empty((crowd.n_votes, len(EXPONENTS)))
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        kept = crowd.take(fold != number)
        posterior = _fit(method, kept, X).posterior_
        said = _matrices(posterior, kept, crowd, rows)
        log_posterior = np.log(np.maximum(posterior, 1e-300))
        for column, exponent in enumerate(EXPONENTS):
            tempered = np.exp(exponent * (log_posterior - log_posterior.max(axis=1, keepdims=True)))
            tempered /= tempered.sum(axis=1, keepdims=True)
            found[rows, column] = np.log(np.maximum((tempered[crowd.task[rows]] * said).sum(axis=1), 1e-12))
    return found


def _matrices(posterior: NDArray[Any], kept: Crowd, crowd: Crowd, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """π_r[·, y] of some votes, (rows, classes), from a posterior and the votes that were kept."""
    from wisecrowd.kernels import reference as kernels

    pairs, n_classes = kept.pairs, kept.n_classes
    tally = kernels.tally(kept.layout, np.asarray(posterior, dtype=np.float64))
    toward = matrices.pooled(tally, pairs)
    strength = matrices.strength_of(tally, pairs, toward)
    key = pairs.worker.astype(np.int64) * n_classes + pairs.label
    wanted = crowd.worker_codes[rows].astype(np.int64) * n_classes + crowd.label[rows]
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    counted = np.where((key[place] == wanted)[:, None], tally[place], 0.0)
    total = pairs.by_worker(tally)[crowd.worker_codes[rows]]
    return np.asarray((counted + strength * toward.T[crowd.label[rows]]) / (total + strength))


def _judged(said: dict[str, NDArray[np.float64]], crowd: Crowd, seed: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Figures by method, the best first, and those that cannot be told from it, in the order they were given."""
    chosen = {name: int(part.mean(axis=0).argmax()) for name, part in said.items()}
    each = {name: part[:, chosen[name]] for name, part in said.items()}
    order = sorted(each, key=lambda name: -each[name].mean())
    best = order[0]
    rows = []
    rng = np.random.default_rng(seed)
    repeats, n_tasks = 1000, crowd.n_tasks
    # A bootstrap over tasks by Poisson weights, in portions: one number for each task and repeat would be too many.
    gaps = np.stack([np.bincount(crowd.task, each[best] - each[name], minlength=n_tasks) for name in order], axis=1)
    counts = crowd.votes_per_task.astype(np.float64)
    drawn: list[NDArray[np.float64]] = []
    for part in matrices.blocks(repeats, n_tasks):
        weight = rng.poisson(1.0, size=(len(range(*part.indices(repeats))), n_tasks)).astype(np.float32)
        with np.errstate(invalid="ignore"):  # of few tasks, none may be drawn
            drawn.append((weight @ gaps) / (weight @ counts)[:, None])
    low, high = np.nanquantile(np.concatenate(drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    for place, name in enumerate(order):
        gap = float((each[best] - each[name]).mean())
        rows.append((float(each[name].mean()), gap, low[place], high[place], float(EXPONENTS[chosen[name]])))
    columns = ["log_likelihood", "behind", "low", "high", "exponent"]
    table = pd.DataFrame(rows, index=pd.Index(order, name="method"), columns=columns)
    near = {name for place, name in enumerate(order) if name == best or low[place] <= 0}
    return table, tuple(name for name in said if name in near)


def _by_truth(fitted: dict[str, Method], truth: Any, best: str) -> pd.DataFrame:
    """Accuracy and calibration, and how likely so many differences from the best are by chance (McNemar, exact)."""
    from scipy.stats import binomtest

    from wisecrowd.data.alignment import truth_series
    from wisecrowd.evaluate import metrics

    known = truth_series(truth)
    rows: dict[str, dict[str, float]] = {}
    right: dict[str, pd.Series] = {}
    for name, method in fitted.items():
        labels = method.labels_
        here = known[known.index.isin(labels.index)]
        right[name] = labels.reindex(here.index) == here
        figures = metrics.summary(known, method)
        rows[name] = {str(key): figures[key] for key in ("accuracy", "log_loss", "calibration_error") if key in figures}
    for name in rows:
        mine, theirs = right[best] & ~right[name], right[name] & ~right[best]
        n = int(mine.sum() + theirs.sum())
        rows[name]["p_mcnemar"] = float(binomtest(int(mine.sum()), n).pvalue) if n else 1.0
    return pd.DataFrame.from_dict(rows, orient="index")


def _disputed(answers: pd.DataFrame) -> pd.DataFrame:
    codes = answers.apply(lambda column: pd.Categorical(column, categories=pd.unique(answers.to_numpy().ravel())).codes)
    table = codes.to_numpy()
    most = np.zeros(len(table), dtype=int)
    for column in range(table.shape[1]):
        most = np.maximum(most, (table == table[:, [column]]).sum(axis=1))
    differ = table.shape[1] - most
    order = np.argsort(-differ, kind="stable")
    return answers.iloc[order[differ[order] > 0]]


def _agreement(answers: pd.DataFrame) -> pd.DataFrame:
    values = answers.to_numpy()
    found = [
        [float((values[:, a] == values[:, b]).mean()) for b in range(values.shape[1])] for a in range(values.shape[1])
    ]
    return pd.DataFrame(found, index=answers.columns, columns=answers.columns)


def _sentence(table: pd.DataFrame, tied: tuple[str, ...], crowd: Crowd) -> str:
    """What to use, how sure, and why, for people."""
    best = tied[0]
    row = table.loc[best]
    hidden = f"the {crowd.n_votes:,} votes, each foretold from the others"
    if len(table) == 1:
        return f"Only {best} was tried; a hidden vote has the probability {np.exp(row['log_likelihood']):.2f} (geometric mean)."
    if len(tied) == len(table):
        return f"Use {best}, the first of them: {hidden}, do not tell the methods apart."
    others = [name for name in tied if name != best]
    if others:
        them = ", ".join(others[:-1]) + (" and " if len(others) > 1 else "") + others[-1]
        return (
            f"Use {best}: by {hidden}, it cannot be told from {them}, which stand behind it in the order of methods that were "
            "right most often elsewhere; the others are behind by more than chance."
        )
    second = table.index[1]
    gap = table.loc[second]
    return (
        f"Use {best}: of {hidden}, it gives each {np.exp(gap['behind']):.2f} times the probability that {second}, the next, "
        f"does ({LEVEL:.0%} interval {np.exp(gap['low']):.2f} to {np.exp(gap['high']):.2f})."
    )
