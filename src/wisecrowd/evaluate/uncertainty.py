"""How sure one can be: intervals for workers and classes, and confidence that means what it says.

Worker intervals and calibration cost about as much as a few EM passes. In both, the parameters of the *other* workers
are held at their estimates, and a vote's evidence about its own worker is judged against the posterior that the other
votes on the task give: with the vote itself left in, a worker on a task of one vote would be certain to be right.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em import incremental as online
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import NotConverged, UsageError
from wisecrowd.utils.deduplication import MANY, once

_GRID = 101


def worker_intervals(
    fitted: ConfusionEM, crowd: Crowd, *, level: float = 0.9, others: NDArray[np.float64] | None = None
) -> pd.DataFrame:
    """Accuracy of each worker with a credible interval: columns n_votes, accuracy, low, high.

    The accuracy a of a worker has the posterior p(a) ∝ Beta(a) Π_i [a·u_i + (1 − a)·v_i], where u_i is the probability,
    by the other votes, that the worker's answer on task i is right, and v_i = (1 − u_i) / (K − 1) that it is one
    particular error; it is integrated on a grid. The Beta prior is the method's own pseudo-votes. ``others`` are the posteriors
    by the other votes, from `leave_one_out`, where they are at hand.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> table = worker_intervals(DawidSkene().fit(made.crowd), made.crowd)
    >>> bool((table["low"] < table["accuracy"]).all() and (table["accuracy"] < table["high"]).all())
    True
    """
    _check_level(level)
    n_classes = crowd.n_classes
    others = leave_one_out(fitted, crowd) if others is None else others
    right = others[np.arange(crowd.n_votes), crowd.label]
    worker, weight = crowd.worker_codes.astype(np.intp), crowd.weight
    if crowd.n_votes > MANY:
        rows, weight = once(right, worker, weight=weight)
        worker, right = worker[rows], right[rows]
    accuracy = (np.arange(_GRID) + 0.5) / _GRID
    before, total = fitted._pseudo_votes(n_classes)
    log_density = by_accuracy(right, n_classes, accuracy, worker, crowd.n_workers, weight)
    log_density += before * np.log(accuracy) + (total - before) * np.log1p(-accuracy)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    return pd.DataFrame(
        {"n_votes": crowd.votes_per_worker, "accuracy": density @ accuracy,
         "low": _quantile(density, (1 - level) / 2), "high": _quantile(density, (1 + level) / 2)},
        index=fitted.workers_.index,
    )  # fmt: skip


def by_accuracy(
    right: NDArray[np.float64], n_classes: int, accuracy: NDArray[np.float64], part: NDArray[Any], n_parts: int,
    weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """log P of each part of the votes if they are right with each probability, erring evenly: (parts, accuracies).

    A vote that is right with the probability u, by the others, has the likelihood a u + (1 − a)(1 − u)/(K − 1).

    >>> by_accuracy(np.array([1.0, 0.0]), 3, np.array([0.5]), np.array([0, 1]), 2).round(3).tolist()
    [[-0.693], [-1.386]]
    """
    wrong = (1 - right) / max(n_classes - 1, 1)
    found = np.empty((n_parts, len(accuracy)))
    for column, a in enumerate(accuracy):
        told = np.log(a * right + (1 - a) * wrong)
        found[:, column] = np.bincount(part, told if weight is None else weight * told, minlength=n_parts)
    return found


def prevalence_intervals(
    fitted: ConfusionEM, crowd: Crowd, *, level: float = 0.9, n_groups: int = 20, random_state: int = 0
) -> pd.DataFrame:
    """Share of each class with an interval: columns prevalence, low, high.

    A delete-a-group jackknife over tasks: the method is fitted again without each of ``n_groups`` random groups of
    tasks, starting from what it knows of the workers, so that the uncertainty about the workers counts too. The
    interval is Student's on the scale of log-odds.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=200, n_workers=8, n_classes=3, votes_per_task=4, random_state=0)
    >>> list(prevalence_intervals(DawidSkene().fit(made.crowd), made.crowd).columns)
    ['prevalence', 'low', 'high']
    """
    from scipy.special import expit, logit
    from scipy.stats import t

    _check_level(level)
    voted = np.flatnonzero(crowd.votes_per_task)
    n_groups = min(n_groups, len(voted))
    if n_groups < 2:
        raise UsageError("an interval for class shares needs two tasks or more")
    group = np.random.default_rng(random_state).permutation(len(voted)) % n_groups

    def log_odds(posterior: NDArray[Any]) -> NDArray[np.float64]:
        # Half a task on either side keeps a class that (almost) nothing belongs to away from infinity.
        count = posterior.sum(axis=0, dtype=np.float64)
        return logit((count + 0.5) / (len(posterior) + 1))

    whole = log_odds(fitted.posterior_[voted])
    without = np.empty((n_groups, crowd.n_classes))
    for number in range(n_groups):
        rest = crowd[voted[group != number]]
        again = copy.copy(fitted).set_params(n_init=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            without[number] = log_odds(again.fit(rest, start=fitted).posterior_)
    error = np.sqrt((n_groups - 1) / n_groups * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    reach = t.ppf((1 + level) / 2, n_groups - 1) * error
    share = fitted.posterior_[voted].mean(axis=0)
    return pd.DataFrame(
        {"prevalence": share, "low": expit(whole - reach), "high": expit(whole + reach)},
        index=fitted.classes_.rename("class"),
    )


def leave_one_out(fitted: ConfusionEM, crowd: Crowd) -> NDArray[np.float64]:
    """For every vote, the posterior of its task by all the other votes: (n_votes, n_classes).

    >>> from wisecrowd import Crowd, DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1)])
    >>> leave_one_out(DawidSkene(prior="uniform").fit(crowd), crowd)[2].round(6).tolist()
    [0.5, 0.5]
    """
    if not crowd.tasks.equals(fitted.task_index_):
        raise UsageError("give the crowd that the method was fitted on")
    if len(fitted.e_step_prior_) != crowd.n_classes:
        raise UsageError(
            f"{fitted.name} splits classes, and a vote cannot be taken out of that; use dawid-skene or ibcc"
        )
    # Dividing out a vote of a nearly impossible answer needs more digits than the posterior keeps: work in logarithms. They are
    # taken of pairs and of tasks, which are fewer than votes, and the largest array is changed in place.
    said = np.log(np.maximum(online.label_probs_of_crowd(fitted, crowd), np.finfo(np.float64).tiny))[
        crowd.pairs.of_vote
    ]
    if crowd.is_weighted:
        said *= crowd.weight[:, None]
    posterior = np.log(np.maximum(fitted.posterior_, np.finfo(np.float64).tiny))[crowd.task]
    posterior -= said
    posterior -= posterior.max(axis=1, keepdims=True)
    np.exp(posterior, out=posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def calibrated(fitted: ConfusionEM, crowd: Crowd) -> tuple[pd.DataFrame, float]:
    """The posterior, flattened or sharpened so that votes are predicted best: (table, exponent).

    Models that take workers to err independently are too sure of themselves when they do not. The exponent τ of
    q_i(k)^τ is chosen to maximise the likelihood of every vote given the other votes on its task,
    Σ_k q_i^{−r}(k)^τ π_r[k, y_ir], which needs no gold. τ < 1 says that the posterior was overconfident.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=10, n_classes=3, votes_per_task=4, random_state=0)
    >>> table, exponent = calibrated(DawidSkene().fit(made.crowd), made.crowd)
    >>> table.shape, 0 < exponent < 2
    ((300, 3), True)
    """
    from scipy.optimize import minimize_scalar

    several = crowd.votes_per_task[crowd.task] > 1  # a task's only vote is predicted by the prior alone, whatever τ is
    others = np.log(np.maximum(leave_one_out(fitted, crowd)[several], 1e-300))
    said = online.label_probs_of_crowd(fitted, crowd)[crowd.pairs.of_vote[several]]
    weight = crowd.weight[several]

    def loss(exponent: float) -> float:
        return -float((weight * np.log(np.maximum((_tempered(others, exponent) * said).sum(axis=1), 1e-300))).sum())

    exponent = float(minimize_scalar(loss, bounds=(0.05, 2.0), method="bounded").x) if several.any() else 1.0
    table = _tempered(np.log(np.maximum(fitted.posterior_, 1e-300)), exponent)
    return pd.DataFrame(table, index=fitted.proba_.index, columns=fitted.proba_.columns), exponent


def _tempered(log_posterior: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    scaled = exponent * log_posterior
    table: NDArray[Any] = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return table / table.sum(axis=1, keepdims=True)


def _quantile(density: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Where the distribution on the grid reaches a share, linearly between the edges of its cells."""
    reached = np.cumsum(density, axis=1)
    cell = (reached < share).sum(axis=1)
    rows = np.arange(len(density))
    below = np.where(cell > 0, reached[rows, cell - 1], 0)
    return (cell + (share - below) / np.maximum(density[rows, cell], 1e-300)) / density.shape[1]


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, for example 0.9; got {level}")
