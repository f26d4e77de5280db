"""Bradley–Terry scores from many comparisons by judges and few by people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.data.comparisons import LEFT, TIE, Comparisons
from wisecrowd.errors import InputError, UsageError, preview, suggest_name
from wisecrowd.evaluate.evaluation_items import ONLY_RATER, EvaluationItems
from wisecrowd.evaluate.judge_predictions import cross_fit
from wisecrowd.evaluate.system_means import Population, estimate_freedom, tune_weights

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Ridge on scores: the information of a tenth of a comparison, so that systems that always win have a finite score.
RIDGE = 0.025
#: Newton steps, far more than a strictly concave objective with few parameters needs, and the largest step in logits.
MAX_STEPS, MAX_STEP, TOLERANCE = 100, 2.0, 1e-10
#: Systems up to which predictions know which systems are compared; more would make a table of comparisons by systems.
MAX_SYSTEM_FEATURES = 300


@dataclass(frozen=True, eq=False)
class ArenaItems:
    """Pairs of outputs with verdicts of judges and, for some of them, of people.

    An item is a pair of systems on a task, whatever the order of presentation. Verdicts are 1 for the first system, 0 for the
    second and ½ for a tie, averaged over orders and repetitions.

    Attributes
    ----------
    first, second : ndarray of int of shape (n_items,)
        Systems, positions in ``systems``.
    systems : Index
        Names of the systems.
    task : Index of length n_items
        Task of each item.
    cluster : ndarray of int of shape (n_items,)
        Task of each item as a code; without tasks, each item is a cluster.
    verdicts : ndarray of shape (n_items, n_judges)
        Verdicts of judges, nan where absent.
    judges : Index
        Names of the judges.
    label : ndarray of shape (n_items,)
        Mean verdict of people, nan where absent.
    rating_item, rating_rater : ndarray of int of shape (n_ratings,)
        Item and rater of each verdict of people.
    rating : ndarray of shape (n_ratings,)
        Verdicts of people.
    raters : Index
        Names of people.
    """

    first: Codes
    second: Codes
    systems: pd.Index
    task: pd.Index
    cluster: Codes
    verdicts: Array
    judges: pd.Index
    label: Array
    rating_item: Codes
    rating_rater: Codes
    rating: Array
    raters: pd.Index

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Mask of the pairs that people compared."""
        return ~np.isnan(self.label)

    @classmethod
    def from_comparisons(cls, judges: Comparisons, people: Comparisons) -> ArenaItems:
        """Join comparisons of judges and of people by task and pair of systems.

        Parameters
        ----------
        judges, people : Comparisons
            Comparisons, with tasks in both or in neither.

        Returns
        -------
        ArenaItems

        Raises
        ------
        InputError
            If no pair was compared by both, or only one of them has tasks.
        """
        if (judges.tasks is None) != (people.tasks is None):
            raise InputError(
                "either both judges and people name the task of a comparison, or neither; add the column task"
            )
        parts = [_read_verdicts(part) for part in (judges, people)]
        rows = pd.concat(parts, keys=["judges", "people"], names=["by", "row"]).reset_index("by")
        key = ["task", "first", "second"]
        keys = pd.MultiIndex.from_frame(rows[key].drop_duplicates().sort_values(key))
        rows["item"] = keys.get_indexer(pd.MultiIndex.from_frame(rows[key]))
        by_judges, by_people = (rows[rows["by"] == name] for name in ("judges", "people"))
        if not np.isin(by_people["item"], by_judges["item"]).any():
            raise InputError(
                "no pair of systems was compared by judges and by people on the same task; use the same ids in both"
            )
        systems = pd.Index(sorted(set(rows["first"]) | set(rows["second"])), name="system")
        judge, judge_names = pd.factorize(by_judges["worker"], sort=True)
        rater, raters = pd.factorize(by_people["worker"], sort=True)
        n = len(keys)
        verdicts = _weighted_mean(by_judges["item"] * len(judge_names) + judge, by_judges, n * len(judge_names))
        task = keys.get_level_values("task")
        cluster = np.arange(n) if judges.tasks is None else pd.factorize(task)[0]
        return cls(
            first=systems.get_indexer(keys.get_level_values("first")).astype(np.int64),
            second=systems.get_indexer(keys.get_level_values("second")).astype(np.int64),
            systems=systems, task=task, cluster=cluster.astype(np.int64),
            verdicts=verdicts.reshape(n, len(judge_names)), judges=pd.Index(judge_names, name="judge"),
            label=_weighted_mean(by_people["item"], by_people, n),
            rating_item=by_people["item"].to_numpy(dtype=np.int64), rating_rater=rater.astype(np.int64),
            rating=by_people["verdict"].to_numpy(dtype=np.float64), raters=pd.Index(raters, name="rater"),
        )  # fmt: skip

    def count_comparisons(self, *, labelled: bool) -> NDArray[np.int64]:
        """Count the pairs of each system.

        Parameters
        ----------
        labelled : bool
            Count only pairs that people compared.

        Returns
        -------
        ndarray of int of shape (n_systems,)
        """
        rows = self.is_labelled if labelled else np.ones(len(self.first), dtype=bool)
        return np.bincount(np.concatenate([self.first[rows], self.second[rows]]), minlength=len(self.systems))

    def to_items(self, first: str, second: str) -> EvaluationItems:
        """Return the comparisons of two systems as items with labels from −1 (second wins) to 1 (first wins).

        Parameters
        ----------
        first, second : str
            Names of the systems.

        Returns
        -------
        EvaluationItems

        Raises
        ------
        UsageError
            If a system does not exist, or the two were never compared.
        """
        for name in (first, second):
            if name not in self.systems:
                raise UsageError(
                    f"there is no system {name!r}; the systems are {preview(self.systems, 8)}.{suggest_name(name, self.systems)}"
                )
        a, b = self.systems.get_indexer(pd.Index([first, second]))
        straight, swapped = (self.first == a) & (self.second == b), (self.first == b) & (self.second == a)
        rows = np.flatnonzero(straight | swapped)
        if not len(rows):
            raise UsageError(
                f"{first!r} and {second!r} were never compared with each other; use rank, which compares all systems"
            )
        sign = np.where(straight[rows], 1.0, -1.0)
        position = np.full(len(self.first), -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        of_pair = position[self.rating_item] >= 0
        zeros = np.zeros(len(rows), dtype=np.int64)
        return EvaluationItems(
            system=zeros, systems=pd.Index([f"{first} against {second}"], name="system"), task=self.task[rows],
            cluster=self.cluster[rows], stratum=zeros, scores=sign[:, None] * (2 * self.verdicts[rows] - 1),
            judges=self.judges, label=sign * (2 * self.label[rows] - 1), inclusion=None,
            rating_item=position[self.rating_item[of_pair]], rating_rater=self.rating_rater[of_pair],
            rating=sign[position[self.rating_item[of_pair]]] * (2 * self.rating[of_pair] - 1), raters=self.raters,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ArenaScores:
    """Bradley–Terry scores of systems.

    Attributes
    ----------
    score : ndarray of shape (n_systems,)
        Scores in logits; the mean is zero.
    covariance : ndarray of shape (n_systems, n_systems)
        Covariance of the scores.
    degrees_of_freedom : ndarray of shape (n_systems,)
        Degrees of freedom of the variance of each score.
    """

    score: Array
    covariance: Array
    degrees_of_freedom: Array


def estimate_arena(
    arena: ArenaItems, *, use_judges: bool = True, population: Population = "source", random_state: int = 0
) -> ArenaScores:
    """Estimate Bradley–Terry scores of systems by people's comparisons, which judges make more precise.

    The estimating equation is that of Bradley and Terry with pseudo-labels in place of outcomes: the judges' prediction plus, where
    people compared, its error divided by the probability of being compared by people. Errors are summed by task.

    Parameters
    ----------
    arena : ArenaItems
        Comparisons; those by people are a random sample of all.
    use_judges : bool, default=True
        Whether verdicts of judges are used. Without them, only pairs that people compared count.
    population : {"source", "items"}, default="source"
        Whether scores are about the source of the comparisons, or exactly these.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    ArenaScores

    Raises
    ------
    InputError
        If people compared fewer than two pairs.
    """
    labelled = arena.is_labelled
    n_labelled, n_items = int(labelled.sum()), len(labelled)
    if n_labelled < 2:
        raise InputError(f"people compared {n_labelled} pairs; an interval needs two or more, better 50")
    design = csr_array(
        (np.tile([1.0, -1.0], n_items), (np.repeat(np.arange(n_items), 2), np.stack([arena.first, arena.second], 1).ravel())),
        shape=(n_items, len(arena.systems)),
    )  # fmt: skip
    if not use_judges:
        rows = np.flatnonzero(labelled)
        design, outcome = design[rows], arena.label[rows]
        score = fit_scores(design, outcome)
        error = outcome - _win_probs(design, score)
        share = np.sqrt(1 - n_labelled / n_items) if population == "items" else 1.0
        return _describe_scores(design, score, share * error, arena.cluster[rows], np.ones(len(rows), dtype=bool))
    inverse = np.where(labelled, n_items / n_labelled, 0.0)
    prediction = 0.5 + _predict_verdicts(arena, design, inverse, np.random.default_rng(random_state))
    residual = np.where(labelled, np.nan_to_num(arena.label) - prediction, 0.0)
    pseudo = prediction + inverse * residual
    score = fit_scores(design, pseudo)
    error = pseudo - _win_probs(design, score)
    if population == "items":
        error = np.sqrt(1 - n_labelled / n_items) * inverse * residual
    return _describe_scores(design, score, error, arena.cluster, labelled)


def _predict_verdicts(arena: ArenaItems, design: Any, inverse: Array, rng: np.random.Generator) -> Array:
    """Return the expected verdict of people minus ½, from the judges' verdicts and the systems."""
    is_given = ~np.isnan(arena.verdicts)
    centred = np.where(is_given, arena.verdicts - 0.5, 0.0)
    count = is_given.sum(axis=1)
    mean = centred.sum(axis=1) / np.maximum(count, 1)
    compared = count > 0
    # Scores by the judges smooth their verdicts over all comparisons of a system.
    by_judges = _win_probs(design, fit_scores(design[compared], 0.5 + mean[compared])) - 0.5
    columns = [centred, by_judges[:, None]]
    if len(arena.systems) <= MAX_SYSTEM_FEATURES:
        columns.append(design.toarray() * 0.5)  # people may like a system more than judges do
    features = np.hstack(columns)
    scale = np.sqrt((features**2).mean(axis=0))
    n_verdicts = centred.shape[1] + 1
    scale[:n_verdicts] = np.where(scale[:n_verdicts] > 0, scale[:n_verdicts], 1.0)
    features[:, :n_verdicts] /= scale[:n_verdicts]
    fit = cross_fit(
        [features], arena.label - 0.5, group=None, cluster=arena.cluster, weight=np.maximum(inverse, 1e-12), rng=rng
    )
    group = np.zeros(len(inverse), dtype=np.int64)
    weight = tune_weights(fit, arena.label - 0.5, group, 1, inverse)
    return np.asarray(weight[fit.fold, 0] * fit.prediction)


def fit_scores(design: Any, outcome: Array) -> Array:
    """Return the scores that solve the equations of Bradley and Terry, with a small ridge.

    Parameters
    ----------
    design : csr_array of shape (n_items, n_systems)
        +1 for the first system, −1 for the second.
    outcome : ndarray of shape (n_items,)
        Outcomes; pseudo-labels may lie outside of 0 and 1.

    Returns
    -------
    ndarray of shape (n_systems,)
        Scores with mean zero.

    Examples
    --------
    >>> design = csr_array([[1.0, -1.0]] * 4)
    >>> round(float(np.ptp(fit_scores(design, np.array([1.0, 1.0, 1.0, 0.0])))), 1)
    1.1
    """
    n_systems = design.shape[1]
    score = np.zeros(n_systems)
    wins = design.T @ outcome
    for _ in range(MAX_STEPS):
        win = _win_probs(design, score)
        gradient = wins - design.T @ win - RIDGE * score
        information = _information(design, win)
        step = np.linalg.solve(information, gradient)
        step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-300))
        score = score + step
        if np.abs(step).max() < TOLERANCE:
            break
    return np.asarray(score - score.mean())


def _win_probs(design: Any, score: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(design @ score))


def _information(design: Any, win: Array) -> Array:
    weighted = design.multiply((win * (1 - win))[:, None]).tocsr()
    return np.asarray((design.T @ weighted).toarray()) + RIDGE * np.eye(design.shape[1])


def _describe_scores(
    design: Any, score: Array, error: Array, cluster: Codes, labelled: NDArray[np.bool_]
) -> ArenaScores:
    """Return scores with the covariance by sums of errors within clusters (sandwich)."""
    names, code = np.unique(cluster, return_inverse=True)
    membership = csr_array((np.ones(len(code)), (code, np.arange(len(code)))), shape=(len(names), len(code)))
    by_cluster = np.asarray((membership @ design.multiply(error[:, None]).tocsr()).toarray())
    bread = np.linalg.inv(_information(design, _win_probs(design, score)))
    influence = by_cluster @ bread
    influence -= influence.mean(axis=1, keepdims=True)  # scores have mean zero
    is_labelled = np.bincount(code[labelled], minlength=len(names)) > 0
    n = int(is_labelled.sum())
    covariance = influence.T @ influence * (n / max(n - 1, 1))
    freedom = [estimate_freedom(influence[is_labelled, system]) for system in range(influence.shape[1])]
    return ArenaScores(score, covariance, np.clip(freedom, 1.0, max(n - 1.0, 1.0)))


def _read_verdicts(comparisons: Comparisons) -> pd.DataFrame:
    """Return a table of task, first and second system in the order of their names, worker, verdict and weight."""
    left, right = (comparisons.items.astype(str).to_numpy()[codes] for codes in (comparisons.left, comparisons.right))
    verdict = np.where(comparisons.outcome == TIE, 0.5, (comparisons.outcome == LEFT).astype(np.float64))
    is_swapped = left > right
    return pd.DataFrame({
        "task": "" if comparisons.tasks is None else comparisons.tasks.astype(str).to_numpy()[comparisons.task],
        "first": np.where(is_swapped, right, left), "second": np.where(is_swapped, left, right),
        "worker": ONLY_RATER if comparisons.workers is None else comparisons.workers.astype(str).to_numpy()[comparisons.worker],
        "verdict": np.where(is_swapped, 1 - verdict, verdict), "weight": comparisons.vote_weight,
    })  # fmt: skip


def _weighted_mean(code: Any, rows: pd.DataFrame, n: int) -> Array:
    """Return the mean verdict of each code, nan where there is none."""
    weight, verdict = rows["weight"].to_numpy(dtype=np.float64), rows["verdict"].to_numpy(dtype=np.float64)
    total = np.bincount(code, weights=weight, minlength=n)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(code, weights=weight * verdict, minlength=n) / np.where(total > 0, total, np.nan))
