"""Spectral starts for EM: what the workers' agreement alone says, without a first guess from majority vote.

EM climbs to the nearest peak. Where majority vote is far off (most workers at chance level, a bias that all share), its
start may lead to the wrong one. Zhang, Chen, Zhou and Jordan (2016) estimate the workers by the method of moments, which
needs no start, and let EM polish the estimate. Both of their models are here:

- *confusion*: the answers of three groups of workers are independent given the truth, so that their second and third
  moments determine the confusion matrices of the groups, and these the matrices of the workers;
- *one-coin*: agreement corrected for chance is s_a s_b, so that two partners determine the skill of a third worker.

The paper assumes that everybody labels everything. Here moments are taken over the tasks that all three groups
labelled, a worker's matrix is drawn towards the group's, and a worker's partners are sought among those with whom most
tasks are shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._agreement import Agreement, log_odds, within_reach
from wisecrowd.aggregate.categorical._weighting import Poll
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import InputError, UsageError, one_of
from wisecrowd.kernels import reference as kernels

#: The paper, in ``references.bib``.
REFERENCE = "zhang2016spectral"
#: Pseudo-labels by which a worker's matrix is drawn towards that of the group, and an agreement towards chance.
SHRINK = 10.0
#: Partners of a worker among whom the best two are sought.
PARTNERS = 12
#: No probability is estimated lower, no eigenvalue counts for less (as a part of the largest), no power is weaker.
LEAST = 1e-3
#: Tasks per class that all three groups must have labelled.
ENOUGH = 10


@method_class
class SpectralStart(ConfusionEM):
    """A model that can start from the spectral estimate of Zhang et al. (2016) instead of the votes.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=500, n_workers=12, n_classes=2, votes_per_task=9)
    >>> DawidSkene(init="spectral").fit(made.crowd).converged_
    True
    """

    init: Literal["votes", "spectral"] = parameter(
        default="votes", help="start from the 'votes', or from a 'spectral' estimate (dense crowds only)"
    )
    #: What the spectral estimate is of.
    spectral_model: ClassVar[Literal["confusion", "one-coin"]] = "confusion"

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        one_of("init", self.init, ("votes", "spectral"))
        starts = super()._starts(engine, start, dtype)
        # There is one spectral estimate, whatever the number of starts.
        yield from islice(starts, 1) if self._is_spectral(start) else starts

    def _is_spectral(self, start: Any) -> bool:
        return start is None and self.init == "spectral"

    def _start_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        if not self._is_spectral(start):
            return super()._start_posterior(chunk, start, dtype, attempt)
        if chunk.of > 1:
            raise UsageError(
                "a spectral start looks at all votes together, and this crowd is in chunks; use init='votes'"
            )
        estimate = spectral_start(chunk.crowd, self.random_state, model=self.spectral_model, gold=chunk.gold)
        return estimate.astype(dtype)


def spectral_start(
    crowd: Crowd,
    random_state: int = 0,
    *,
    model: Literal["confusion", "one-coin"] = "confusion",
    gold: NDArray[np.int32] | None = None,
) -> NDArray[np.float64]:
    """A posterior for EM to start from, (tasks, classes), estimated from moments instead of the majority's opinion.

    ``random_state`` deals the workers into three groups and starts the power iterations of ``model="confusion"``;
    ``model="one-coin"`` uses no random numbers. ``gold`` holds the class of tasks whose truth is known, −1 elsewhere.
    A crowd in which too few tasks were labelled by all three groups is refused: take one-coin there, or the votes.

    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(1000, 30, 2, votes_per_task=10, workers={"expert": 6, "spammer": 24})
    >>> start = spectral_start(made.crowd)
    >>> float((DawidSkene().fit(made.crowd, start=start).labels_ == made.truth).mean()) > 0.9
    True
    """
    one_of("model", model, ("confusion", "one-coin"))
    if model == "confusion":
        return kernels.posterior(crowd.layout, *spectral_confusion(crowd, random_state), gold)
    poll = Poll(crowd, gold)
    return poll.odds(poll.scores(log_odds(spectral_skills(crowd, gold), crowd.n_classes)))


# ---------------------------------------------------------------------- one-coin


def spectral_skills(crowd: Crowd, gold: NDArray[np.int32] | None = None) -> NDArray[np.float64]:
    """Skill s = (K a − 1)/(K − 1) of every worker from agreement with two partners: s_r² = X_ra X_rb / X_ab.

    Of the partners with whom a worker shares most tasks, the two are taken who agree (or disagree) most clearly with
    each other. A worker without two such partners gets the mean skill.

    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(5000, n_classes=2, votes_per_task=4, workers=["expert(0.9)"] * 2 + ["noisy(0.7)"] * 2)
    >>> spectral_skills(made.crowd).round(1).tolist()
    [0.8, 0.8, 0.4, 0.4]
    """
    pairs = Agreement.of(crowd, gold)
    first, second, link = _triangles(pairs)
    found = link >= 0
    skill = np.zeros(pairs.n_workers)
    skew = pairs.skew
    skill[found] = np.sqrt(np.abs(skew[first[found]] * skew[second[found]] / skew[link[found]]))
    skill *= pairs.signs(None if gold is None else crowd.n_workers)
    skill, found = within_reach(skill, crowd)[: crowd.n_workers], found[: crowd.n_workers]
    skill[~found] = skill[found].mean() if found.any() else 0.5
    return skill


def _triangles(pairs: Agreement) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each worker r the positions of the pairs (r, a), (r, b) and (a, b) to judge them by; −1 where there are none."""
    n = pairs.n_workers
    none = np.full(n, -1)
    if len(pairs) == 0:
        return none, none, none
    order = np.lexsort((pairs.second, -pairs.common, pairs.first))
    rank = np.arange(len(pairs)) - (np.cumsum(pairs.degree) - pairs.degree)[pairs.first]
    near = rank < PARTNERS
    partner = np.full((n, PARTNERS), -1)
    partner[pairs.first[near], rank[near]] = order[near]

    one, other = np.triu_indices(PARTNERS, 1)
    first, second = partner[:, one], partner[:, other]  # (workers, candidates)
    key = pairs.first.astype(np.int64) * n + pairs.second
    wanted = pairs.second[first].astype(np.int64) * n + pairs.second[second]
    link = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    clear = np.abs(pairs.skew[link]) * pairs.common[link] / (pairs.common[link] + SHRINK)
    clear[(first < 0) | (second < 0) | (key[link] != wanted)] = 0

    best = np.arange(n), clear.argmax(axis=1)
    found = clear[best] > 1e-9
    return np.where(found, first[best], -1), np.where(found, second[best], -1), np.where(found, link[best], -1)


# ---------------------------------------------------------------------- confusion matrices


def spectral_confusion(crowd: Crowd, random_state: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Class prior, and P(the pair's worker says the pair's label | true class) over ``crowd.pairs``, from moments.

    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(5000, n_classes=2, votes_per_task=6, workers=["noisy(0.8)"] * 6, prior=[0.7, 0.3])
    >>> prior, label_probs = spectral_confusion(made.crowd)
    >>> prior.round(1).tolist(), label_probs[:2].round(1).tolist()
    ([0.7, 0.3], [[0.8, 0.2], [0.2, 0.8]])
    """
    rng = np.random.default_rng(random_state)
    assert crowd.worker is not None
    # A class that nobody chose has no moments; it keeps no prior.
    chosen = np.unique(crowd.pairs.label)
    group = _deal(crowd, rng)
    cell = (group[crowd.worker] * crowd.n_tasks + crowd.task) * crowd.n_classes + crowd.label
    votes = np.bincount(cell, crowd.weight, 3 * crowd.n_tasks * crowd.n_classes)
    votes = votes.reshape(3, crowd.n_tasks, crowd.n_classes)[:, :, chosen]
    total = votes.sum(axis=2)  # (groups, tasks)
    share = np.divide(votes, total[:, :, None], out=np.zeros_like(votes), where=total[:, :, None] > 0)
    whole = (total > 0).all(axis=0)
    if np.count_nonzero(whole) < ENOUGH * len(chosen):
        raise InputError(
            f"a spectral start wants {ENOUGH * len(chosen)} tasks or more that three groups of workers labelled, and "
            f"this crowd has {np.count_nonzero(whole)}; start from the votes, or use the one-coin model"
        )
    one, two, three = share[:, whole]
    parts = [_mixture(*views, rng) for views in ((two, three, one), (three, one, two), (one, two, three))]
    prior = np.mean([part.prior for part in parts], axis=0)
    of_group = np.stack([part.label_probs for part in parts])  # (groups, said, true)
    label_probs = _workers(crowd, group, share, prior, of_group, np.searchsorted(chosen, crowd.pairs.label))

    all_prior, all_said = np.zeros(crowd.n_classes), np.full((len(label_probs), crowd.n_classes), 1 / crowd.n_classes)
    all_prior[chosen], all_said[:, chosen] = prior, label_probs
    return all_prior, all_said


def _deal(crowd: Crowd, rng: np.random.Generator) -> NDArray[np.int64]:
    """Three groups of workers at random, with about as many labels each: busy workers are dealt out first."""
    order = rng.permutation(crowd.n_workers)
    order = order[np.argsort(-crowd.votes_per_worker[order], kind="stable")]
    rounds = rng.permuted(np.tile(np.arange(3), (-(-crowd.n_workers // 3), 1)), axis=1)
    group = np.empty(crowd.n_workers, dtype=np.int64)
    group[order] = rounds.ravel()[: crowd.n_workers]
    return group


class _Part(NamedTuple):
    label_probs: NDArray[np.float64]  # (said, true)
    prior: NDArray[np.float64]  # (true,)


def _mixture(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], rng: np.random.Generator) -> _Part:
    """What the third group says when each class is true, from the shares of votes (tasks, classes) of all three.

    The first two are turned into views of the third, a' and b', for which E[a' b'ᵀ] = Σ_k ρ_k c_k c_kᵀ and
    E[a' ⊗ b' ⊗ c] = Σ_k ρ_k c_k ⊗ c_k ⊗ c_k. Whitening by the former makes the latter an orthogonal tensor, whose
    eigenvectors v_k with eigenvalues λ_k give ρ_k = λ_k⁻² and c_k = λ_k times the unwhitened v_k.
    """
    from scipy.optimize import linear_sum_assignment

    n_tasks = len(a)
    cross = a.T @ b / n_tasks
    seen_a = a @ (c.T @ b / n_tasks @ np.linalg.pinv(cross, rcond=LEAST)).T
    seen_b = b @ (c.T @ a / n_tasks @ np.linalg.pinv(cross.T, rcond=LEAST)).T
    second = seen_a.T @ seen_b / n_tasks
    value, vector = np.linalg.eigh((second + second.T) / 2)
    value = np.maximum(value, LEAST * value.max())
    white = vector / np.sqrt(value)
    third = np.einsum("ia,ib,ic->abc", seen_a @ white, seen_b @ white, c @ white, optimize=True) / n_tasks
    power, direction = _eigenvectors(sum(third.transpose(axes) for axes in permutations(range(3))) / 6, rng)
    label_probs = np.maximum(vector * np.sqrt(value) @ direction * power, LEAST)
    label_probs /= label_probs.sum(axis=0)
    # Which component is which class: the one to one choice under which the group is right most often.
    true = linear_sum_assignment(-label_probs)[1]
    prior = power[true] ** -2
    return _Part(label_probs[:, true], prior / prior.sum())


def _eigenvectors(
    tensor: NDArray[np.float64], rng: np.random.Generator, starts: int = 20, sweeps: int = 100
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues and eigenvectors (columns) of a symmetric orthogonal tensor, by power iteration and deflation."""
    n = len(tensor)
    value, vector = np.empty(n), np.empty((n, n))
    for component in range(n):
        guess = rng.normal(size=(starts, n))
        for _ in range(sweeps):
            guess /= np.maximum(np.linalg.norm(guess, axis=1, keepdims=True), np.finfo(float).tiny)
            guess = np.einsum("abc,sb,sc->sa", tensor, guess, guess, optimize=True)
        length = np.linalg.norm(guess, axis=1)  # of the image of a unit vector: the eigenvalue, once it has settled
        best = length.argmax()
        value[component] = max(length[best], LEAST)
        vector[:, component] = guess[best] / value[component]
        tensor = tensor - length[best] * np.einsum("a,b,c->abc", *[vector[:, component]] * 3)
    return value, vector


def _workers(
    crowd: Crowd,
    group: NDArray[np.int64],
    share: NDArray[np.float64],
    prior: NDArray[np.float64],
    of_group: NDArray[np.float64],
    label: NDArray[np.intp],
) -> NDArray[np.float64]:
    """P(said | true) of every (worker, label) pair: E[e_y gᵀ] = π_rᵀ diag(ρ) Cᵀ for the groups g that are not the worker's."""
    pairs = crowd.pairs
    mine = group[pairs.worker]
    label_probs = SHRINK * of_group[mine, label]
    for other, matrix in enumerate(of_group):
        solve = np.linalg.pinv(prior[:, None] * matrix.T, rcond=LEAST)
        counted = kernels.tally(crowd.layout, share[other])[mine != other] @ solve
        label_probs[mine != other] += np.maximum(counted, 0)
    label_probs /= pairs.by_worker(label_probs)[pairs.worker]
    return np.maximum(label_probs, LEAST)
