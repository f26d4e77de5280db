"""Check of the default method by held-out votes, and the method to recommend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.evaluate.heldout_votes import EXPONENTS, assign_vote_folds, heldout_log_probs, order_workers_by_votes
from wisecrowd.evaluate.ranking import rank_log_probs

#: Method that a model of workers has to beat: it knows nothing about them.
BASELINE = "majority-vote"
#: Number of folds of the held-out votes.
FOLDS = 5
#: Largest number of votes in a check, and of votes times classes. More votes take longer and do not change the answer.
MAX_CHECKED_VOTES, MAX_CHECKED_CELLS = 10_000, 2_000_000
#: Largest number of classes in a check, whose cost grows with their square.
MAX_CHECKED_CLASSES = 500
#: Distance behind the baseline, in nats per vote, from which the default method is rejected. On 24 public crowds it is behind by
#: 0.04 at most, and then it is still as accurate.
REJECTED_DISTANCE = 0.1


@dataclass(frozen=True)
class MethodCheck:
    """Held-out votes predicted by the default method and by majority vote.

    Attributes
    ----------
    method : str
        Method that was checked.
    recommended : str
        Method to use: the checked one, or majority vote if the held-out votes reject it.
    distance : float
        Mean log-probability of a held-out vote by majority vote minus that by the method, in nats.
    low : float
        Lower bound of the interval of the distance.
    n_votes : int
        Number of held-out votes.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> check_default_method(simulate_crowd(n_tasks=100, votes_per_task=5).crowd).recommended
    'model-average'
    """

    method: str
    recommended: str
    distance: float
    low: float
    n_votes: int

    @property
    def is_rejected(self) -> bool:
        """True if the held-out votes reject the method."""
        return self.recommended != self.method


def check_default_method(crowd: Crowd, *, random_state: int = 0) -> MethodCheck | None:
    """Check by held-out votes whether the default method describes a crowd.

    The method has to predict held-out votes about as well as majority vote, which knows nothing about workers. All votes on a
    random sample of tasks take part.

    Parameters
    ----------
    crowd : Crowd
        Votes with classes and worker ids.
    random_state : int, default=0
        Seed of the sample, the folds and the bootstrap.

    Returns
    -------
    MethodCheck or None
        Result; None if there are too few votes, or too many classes.

    Examples
    --------
    >>> print(check_default_method(Crowd.from_triples([("t1", "ann", 0)])))
    None
    """
    if crowd.n_classes > MAX_CHECKED_CLASSES:
        return None
    sample = sample_votes(crowd, random_state)
    if sample.n_votes < 2 * FOLDS or sample.n_classes < 2 or sample.votes_per_task.max(initial=0) < 2:
        return None
    sample = order_workers_by_votes(sample)
    fold = assign_vote_folds(sample, FOLDS, random_state)
    log_probs = {
        name: heldout_log_probs(find(name)(), sample, None, fold, FOLDS) for name in (DEFAULT_METHOD, BASELINE)
    }
    return judge_default_method(log_probs, sample, random_state)


def judge_default_method(log_probs: dict[str, NDArray[np.float64]], crowd: Crowd, seed: int) -> MethodCheck | None:
    """Decide whether held-out votes reject the default method.

    Parameters
    ----------
    log_probs : dict of str to ndarray of shape (n_votes, n_exponents)
        Log-probabilities of held-out votes by method, from `heldout_log_probs`.
    crowd : Crowd
        Votes.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    MethodCheck or None
        Result; None if the default method or majority vote was not compared.
    """
    if DEFAULT_METHOD not in log_probs or BASELINE not in log_probs:
        return None
    pair = {name: choose_exponent(log_probs[name])[0] for name in (DEFAULT_METHOD, BASELINE)}
    table, _ = rank_log_probs(pair, crowd.task, crowd.n_tasks, seed)
    behind, bounds = table["behind"].to_dict(), table[["low", "high"]].to_dict("index")
    distance = float(behind[DEFAULT_METHOD] - behind[BASELINE])
    low = float(bounds[DEFAULT_METHOD]["low"] if distance > 0 else -bounds[BASELINE]["high"])
    recommended = BASELINE if distance > REJECTED_DISTANCE and low > 0 else DEFAULT_METHOD
    return MethodCheck(DEFAULT_METHOD, recommended, distance, low, crowd.n_votes)


def choose_exponent(log_probs: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the log-probabilities of a method with the exponent of its posterior that predicts votes best.

    Parameters
    ----------
    log_probs : ndarray of shape (n_votes, n_exponents)
        Log-probabilities from `heldout_log_probs`.

    Returns
    -------
    log_probs : ndarray of shape (n_votes,)
    exponent : float
    """
    column = int(log_probs.mean(axis=0).argmax())
    return log_probs[:, column], float(EXPONENTS[column])


def sample_votes(crowd: Crowd, random_state: int = 0) -> Crowd:
    """Return the votes on random tasks that are enough to compare methods.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Crowd
        All votes of a small crowd.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> sample_votes(simulate_crowd(n_tasks=3000, votes_per_task=5).crowd).n_votes
    10000
    """
    max_votes = min(MAX_CHECKED_VOTES, MAX_CHECKED_CELLS // max(crowd.n_classes, 1))
    return crowd if crowd.n_votes <= max_votes else crowd[sample_tasks(crowd, max_votes, random_state)]


def sample_tasks(crowd: Crowd, max_votes: int, random_state: int = 0) -> NDArray[np.intp]:
    """Draw tasks with at most ``max_votes`` votes in total.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    max_votes : int
        Largest number of votes on the drawn tasks.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of int
        Positions of the tasks, in order; at least one.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> len(sample_tasks(simulate_crowd(n_tasks=100, votes_per_task=5).crowd, 50))
    10
    """
    order = np.random.default_rng(random_state).permutation(crowd.n_tasks)
    n_tasks = int(np.searchsorted(np.cumsum(crowd.votes_per_task[order]), max_votes, side="right"))
    return np.sort(order[: max(n_tasks, 1)])
