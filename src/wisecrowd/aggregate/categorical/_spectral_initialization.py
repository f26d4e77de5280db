"""Spectral initialisation of EM: workers' parameters from moments of the votes, without a first guess by majority vote.

EM finds the nearest local optimum. Where majority vote is far off (most workers at chance level, a bias that all workers
share), it may start near the wrong one. Zhang, Chen, Zhou and Jordan (2016) estimate the workers by the method of moments,
which needs no starting point, and improve the estimate by EM. Both of their models are implemented:

- *confusion*: the votes of three groups of workers are independent given the truth, so their second and third moments determine
  the confusion matrices of the groups, and these determine the matrices of the workers;
- *one-coin*: agreement corrected for chance is s_a s_b, so two partners determine the skill of a third worker.

The paper assumes that every worker labels every task. Here moments are taken over the tasks that all three groups labelled, the
matrix of a worker is shrunk towards that of the group, and the partners of a worker are the workers with the most
common tasks.
"""

from __future__ import annotations

from itertools import permutations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.aggregate.categorical._pairwise_agreement import PairwiseAgreement, clip_skills, compute_log_odds
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import add_posterior
from wisecrowd.em.loop import Statistics
from wisecrowd.em.poll import Poll
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import InputError, UsageError, check_choice

SpectralModel = Literal["confusion", "one-coin"]

#: The paper, in ``references.bib``.
REFERENCE = "zhang2016spectral"
#: Help text of the parameter ``init`` of methods with a spectral start.
INIT_HELP = "Start of EM: 'votes' for the vote shares, or 'spectral' for a spectral estimate (dense crowds only)."
#: Pseudo-votes by which the matrix of a worker is shrunk towards that of the group, and an agreement towards chance.
SHRINKAGE = 10.0
#: Number of partners of a worker among which the best two are selected.
N_PARTNERS = 12
#: Smallest probability, smallest relative eigenvalue, and smallest eigenvalue of the moment tensor.
FLOOR = 1e-3
#: Number of tasks per class that all three groups must have labelled.
MIN_TASKS_PER_CLASS = 10
#: Skill of all workers if no worker has two partners.
DEFAULT_SKILL = 0.5
#: Smallest clarity of a triangle that counts as evidence.
MIN_CLARITY = 1e-9


def uses_spectral_start(init: str, start: object) -> bool:
    """Return whether EM starts from a spectral estimate.

    Parameters
    ----------
    init : {'votes', 'spectral'}
        Parameter of the method.
    start : object or None
        Starting point given by the user, which takes precedence.

    Returns
    -------
    bool
    """
    check_choice("init", init, ("votes", "spectral"))
    return start is None and init == "spectral"


def compute_spectral_statistics(engine: Engine, dtype: type, random_state: int, model: SpectralModel) -> Statistics:
    """Compute the statistics of the spectral posterior, as a starting point of EM.

    Parameters
    ----------
    engine : Engine
        Engine over a crowd in memory.
    dtype : type
        Type of the tally.
    random_state : int
        Seed.
    model : {'confusion', 'one-coin'}
        Model of the workers.

    Returns
    -------
    Statistics

    Raises
    ------
    UsageError
        If the crowd is in several chunks.
    """
    return Statistics(*engine.sum(_sum_spectral_posterior, dtype, random_state, model))


def _sum_spectral_posterior(
    chunk: Chunk, dtype: type, random_state: int, model: SpectralModel
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return class counts and tally of the spectral posterior of the only chunk."""
    if chunk.n_chunks > 1:
        raise UsageError(
            f"a spectral start looks at all votes together, but this crowd has {chunk.n_chunks:,} chunks; use init='votes'"
        )
    posterior = infer_spectral_posterior(chunk.crowd, random_state, model=model, gold=chunk.gold)
    return add_posterior(chunk, posterior.astype(dtype))


def infer_spectral_posterior(
    crowd: Crowd,
    random_state: int = 0,
    *,
    model: SpectralModel = "confusion",
    gold: NDArray[np.int32] | None = None,
) -> NDArray[np.float64]:
    """Infer the posterior of every task from moments of the votes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    random_state : int, default 0
        Seed of the three groups of workers and of the power iterations of ``model="confusion"``.
    model : {'confusion', 'one-coin'}, default 'confusion'
        Model of the workers.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.

    Returns
    -------
    ndarray of shape (n_tasks, n_classes)

    Raises
    ------
    InputError
        If too few tasks were labelled by all three groups.

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(1000, 30, 2, votes_per_task=10, workers={"expert": 6, "spammer": 24})
    >>> start = infer_spectral_posterior(simulation.crowd)
    >>> float((DawidSkene().fit(simulation.crowd, start=start).labels_ == simulation.truth).mean()) > 0.9
    True
    """
    check_choice("model", model, ("confusion", "one-coin"))
    if model == "confusion":
        return kernels.posterior(crowd.layout, *estimate_spectral_confusion(crowd, random_state), gold)
    poll = Poll(crowd, gold)
    weight = compute_log_odds(estimate_spectral_skills(crowd, gold), crowd.n_classes)
    return poll.apply_softmax(poll.compute_scores(weight))


# ---------------------------------------------------------------------- one-coin


def estimate_spectral_skills(crowd: Crowd, gold: NDArray[np.int32] | None = None) -> NDArray[np.float64]:
    """Estimate the skill s = (K a − 1)/(K − 1) of every worker from agreement with two partners: s_r² = X_ra X_rb / X_ab.

    Of the partners with the most common tasks, the two who agree (or disagree) most clearly with each other are used.
    A worker without two such partners has the mean skill.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    gold : ndarray of shape (n_tasks,), optional
        Class codes, −1 where the truth is unknown.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(5000, n_classes=2, votes_per_task=4, workers=["expert(0.9)"] * 2 + ["noisy(0.7)"] * 2)
    >>> estimate_spectral_skills(simulation.crowd).round(1).tolist()
    [0.8, 0.8, 0.4, 0.4]
    """
    pairs = PairwiseAgreement.from_crowd(crowd, gold)
    first, second, link = _find_triangles(pairs)
    has_triangle = link >= 0
    skill = np.zeros(pairs.n_workers)
    agreement = pairs.agreement
    skill[has_triangle] = np.sqrt(
        np.abs(agreement[first[has_triangle]] * agreement[second[has_triangle]] / agreement[link[has_triangle]])
    )
    skill *= pairs.estimate_signs(None if gold is None else crowd.n_workers)
    skill, has_triangle = clip_skills(skill, crowd)[: crowd.n_workers], has_triangle[: crowd.n_workers]
    skill[~has_triangle] = skill[has_triangle].mean() if has_triangle.any() else DEFAULT_SKILL
    return skill


def _find_triangles(
    pairs: PairwiseAgreement,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for each worker r the positions of the pairs (r, a), (r, b) and (a, b) of the best partners; −1 without any."""
    n = pairs.n_workers
    none = np.full(n, -1)
    if len(pairs) == 0:
        return none, none, none
    order = np.lexsort((pairs.second, -pairs.n_common, pairs.first))
    rank = np.arange(len(pairs)) - (np.cumsum(pairs.n_partners) - pairs.n_partners)[pairs.first]
    is_candidate = rank < N_PARTNERS
    partner = np.full((n, N_PARTNERS), -1)
    partner[pairs.first[is_candidate], rank[is_candidate]] = order[is_candidate]

    row, column = np.triu_indices(N_PARTNERS, 1)
    first, second = partner[:, row], partner[:, column]  # (workers, candidates)
    key = pairs.first.astype(np.int64) * n + pairs.second
    link_key = pairs.second[first].astype(np.int64) * n + pairs.second[second]
    link = np.minimum(np.searchsorted(key, link_key), len(key) - 1)
    clarity = np.abs(pairs.agreement[link]) * pairs.n_common[link] / (pairs.n_common[link] + SHRINKAGE)
    clarity[(first < 0) | (second < 0) | (key[link] != link_key)] = 0

    best = np.arange(n), clarity.argmax(axis=1)
    is_clear = clarity[best] > MIN_CLARITY
    first_best, second_best, link_best = (np.where(is_clear, part[best], -1) for part in (first, second, link))
    return first_best, second_best, link_best


# ---------------------------------------------------------------------- confusion matrices


def estimate_spectral_confusion(crowd: Crowd, random_state: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate class prior and P(label given class) from how often three random groups of workers agree.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    random_state : int, default 0
        Seed of the groups of workers and of the power iterations.

    Returns
    -------
    prior : ndarray of shape (n_classes,)
        Class prior.
    label_probs : ndarray of shape (n_pairs, n_classes)
        P(label of the pair given class) for the pairs (worker, label) that occur, ``crowd.pairs``.

    Raises
    ------
    InputError
        If too few tasks were labelled by workers of all three groups.

    Examples
    --------
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(5000, n_classes=2, votes_per_task=6, workers=["noisy(0.8)"] * 6, prior=[0.7, 0.3])
    >>> prior, label_probs = estimate_spectral_confusion(simulation.crowd)
    >>> prior.round(1).tolist(), label_probs[:2].round(1).tolist()
    ([0.7, 0.3], [[0.8, 0.2], [0.2, 0.8]])
    """
    rng = np.random.default_rng(random_state)
    assert crowd.worker is not None
    # A class without votes has no moments: its prior is zero, and P(label given this class) has no effect.
    chosen = np.unique(crowd.pairs.label)
    group = _assign_groups(crowd, rng)
    cell = (group[crowd.worker] * crowd.n_tasks + crowd.task) * crowd.n_classes + crowd.label
    votes = np.bincount(cell, crowd.weight, 3 * crowd.n_tasks * crowd.n_classes)
    votes = votes.reshape(3, crowd.n_tasks, crowd.n_classes)[:, :, chosen]
    total = votes.sum(axis=2)  # (groups, tasks)
    share = np.divide(votes, total[:, :, None], out=np.zeros_like(votes), where=total[:, :, None] > 0)
    is_complete = (total > 0).all(axis=0)
    n_complete, n_required = np.count_nonzero(is_complete), MIN_TASKS_PER_CLASS * len(chosen)
    if n_complete < n_required:
        raise InputError(
            f"a spectral start needs {n_required} tasks with votes from each of three random groups of workers, and this "
            f"crowd has {n_complete}; use init='votes', or OneCoin(init='spectral')"
        )
    one, two, three = share[:, is_complete]
    # The last group of each view is the one that is estimated.
    views = (two, three, one), (three, one, two), (one, two, three)
    estimates = [_estimate_group(*view, rng) for view in views]
    prior = np.mean([estimate.prior for estimate in estimates], axis=0)
    group_probs = np.stack([estimate.label_probs for estimate in estimates])  # (groups, label, class)
    label = np.searchsorted(chosen, crowd.pairs.label)
    label_probs = _estimate_worker_probs(crowd, group, share, prior, group_probs, label)

    full_prior = np.zeros(crowd.n_classes)
    full_probs = np.full((len(label_probs), crowd.n_classes), 1 / crowd.n_classes)
    full_prior[chosen], full_probs[:, chosen] = prior, label_probs
    return full_prior, full_probs


def _assign_groups(crowd: Crowd, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random group out of three for each worker, with about equally many votes per group."""
    order = rng.permutation(crowd.n_workers)
    order = order[np.argsort(-crowd.votes_per_worker[order], kind="stable")]
    rounds = rng.permuted(np.tile(np.arange(3), (-(-crowd.n_workers // 3), 1)), axis=1)
    group = np.empty(crowd.n_workers, dtype=np.int64)
    group[order] = rounds.ravel()[: crowd.n_workers]
    return group


class _GroupEstimate(NamedTuple):
    """P(label given class) of a group, [given, true], and the class prior."""

    label_probs: NDArray[np.float64]
    prior: NDArray[np.float64]


def _estimate_group(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], rng: np.random.Generator
) -> _GroupEstimate:
    """Estimate the third group from the vote shares (n_tasks, n_classes) of all three.

    The first two are transformed into views of the third, a' and b', for which E[a' b'ᵀ] = Σ_k ρ_k c_k c_kᵀ and E[a' ⊗ b' ⊗
    c] = Σ_k ρ_k c_k ⊗ c_k ⊗ c_k. Whitening by the former makes the latter an orthogonal tensor, whose eigenvectors v_k with
    eigenvalues λ_k give ρ_k = λ_k⁻² and c_k = λ_k times the unwhitened v_k.
    """
    from scipy.optimize import linear_sum_assignment

    n_tasks = len(a)
    cross = a.T @ b / n_tasks
    view_a = a @ (c.T @ b / n_tasks @ np.linalg.pinv(cross, rcond=FLOOR)).T
    view_b = b @ (c.T @ a / n_tasks @ np.linalg.pinv(cross.T, rcond=FLOOR)).T
    second = view_a.T @ view_b / n_tasks
    value, vector = np.linalg.eigh((second + second.T) / 2)
    value = np.maximum(value, FLOOR * value.max())
    whitening = vector / np.sqrt(value)
    third = np.einsum("ia,ib,ic->abc", view_a @ whitening, view_b @ whitening, c @ whitening, optimize=True) / n_tasks
    symmetric = sum(third.transpose(axes) for axes in permutations(range(3))) / 6
    power, direction = _decompose_tensor(symmetric, rng)
    label_probs = np.maximum(vector * np.sqrt(value) @ direction * power, FLOOR)
    label_probs /= label_probs.sum(axis=0)
    # Components are assigned to classes one to one, so that the accuracy of the group is highest.
    true = linear_sum_assignment(-label_probs)[1]
    prior = power[true] ** -2
    return _GroupEstimate(label_probs[:, true], prior / prior.sum())


def _decompose_tensor(
    tensor: NDArray[np.float64], rng: np.random.Generator, n_starts: int = 20, n_sweeps: int = 100
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues and eigenvectors (columns) of a symmetric orthogonal tensor, by power iteration and deflation."""
    n = len(tensor)
    value, vector = np.empty(n), np.empty((n, n))
    for component in range(n):
        guess = rng.normal(size=(n_starts, n))
        # Power iteration converges quadratically; a fixed number of sweeps is enough, so the shared loop does not apply.
        for _ in range(n_sweeps):
            guess /= np.maximum(np.linalg.norm(guess, axis=1, keepdims=True), np.finfo(float).tiny)
            guess = np.einsum("abc,sb,sc->sa", tensor, guess, guess, optimize=True)
        length = np.linalg.norm(guess, axis=1)  # of the image of a unit vector: the eigenvalue, at convergence
        best = length.argmax()
        value[component] = max(length[best], FLOOR)
        vector[:, component] = guess[best] / value[component]
        tensor = tensor - length[best] * np.einsum("a,b,c->abc", *[vector[:, component]] * 3)
    return value, vector


def _estimate_worker_probs(
    crowd: Crowd,
    group: NDArray[np.int64],
    share: NDArray[np.float64],
    prior: NDArray[np.float64],
    group_probs: NDArray[np.float64],
    label: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return P(label given class) of every pair, from E[e_y gᵀ] = π_rᵀ diag(ρ) Cᵀ for the groups g without the worker."""
    pairs = crowd.pairs
    own_group = group[pairs.worker]
    label_probs = SHRINKAGE * group_probs[own_group, label]
    for other, matrix in enumerate(group_probs):
        solve = np.linalg.pinv(prior[:, None] * matrix.T, rcond=FLOOR)
        counts = kernels.tally(crowd.layout, share[other])[own_group != other] @ solve
        label_probs[own_group != other] += np.maximum(counts, 0)
    label_probs /= pairs.sum_by_worker(label_probs)[pairs.worker]
    return np.maximum(label_probs, FLOOR)
