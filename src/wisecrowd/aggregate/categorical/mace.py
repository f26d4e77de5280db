"""MACE: a worker knows, or guesses by habit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows, divergence, geometric_mean
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError
from wisecrowd.kernels.reference import Expectation


class _Counts(NamedTuple):
    """Votes cast in knowledge, and guesses, (workers,); and the guesses by what was said, (pairs, 1)."""

    known: NDArray[np.float64]
    guessed: NDArray[np.float64]
    guesses: NDArray[np.float64]


@method_class
class MACE(ConfusionEM):
    """Every worker knows the answer with a probability of their own (competence), and otherwise guesses by habit.

    Model: worker r knows the answer of task i with probability θ_r and then says z_i; otherwise the label is drawn from
    ξ_r, whatever is true. So P(y_ir = l | z_i = k) = θ_r [k = l] + (1 − θ_r) ξ_r[l]. The share of knowledge in a vote is

        E:  κ_ir = q_i(y_ir) θ_r / (θ_r + (1 − θ_r) ξ_r[y_ir])

    and θ_r, ξ_r follow from the sums of κ and 1 − κ: by variational Bayes with θ_r ~ Beta(competence + diagonal,
    competence) and ξ_r ~ Dir(smoothing) (the default, and the paper's), or with these as pseudo-votes by EM
    (``variational=False``; the authors' program takes ``smoothing=competence=0.01 / K`` there). The likelihood has many
    tops: of ``n_init`` starts, the first from the votes and the others from random parameters, the best is kept.

    Choose it to find spammers: `workers_` has the competence of each, which a lucky guess does not raise. Every worker has
    K numbers, so it needs fewer labels per worker than `DawidSkene`, but it cannot see a worker who confuses two classes. The
    class prior is uniform as in the paper, which costs much where classes are unequal (D_Product: .84, with
    ``prior="estimate"`` .93); crowd-kit's figure there (.929) comes from strategies that got attached to other workers.

    >>> from wisecrowd import MACE
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = MACE().fit(made.crowd)
    >>> float((fitted.labels_ == made.truth).mean()) > 0.8
    True
    >>> list(fitted.workers_)
    ['n_votes', 'accuracy', 'competence']
    """

    references: ClassVar[tuple[str, ...]] = ("hovy2013learning",)

    variational: bool = parameter(default=True, help="variational Bayes; False for EM")
    competence: float = parameter(
        default=0.5, help="votes of each worker in knowledge, and as many guesses, seen beforehand"
    )
    smoothing: float = parameter(default=10.0, help="guesses of each label by each worker, seen beforehand")
    diagonal: float = parameter(default=0.0, help="further votes in knowledge, seen beforehand")
    prior: Literal["estimate", "uniform"] | Any = parameter(
        default="uniform", help="class prior: 'estimate', 'uniform', or one number per class"
    )
    n_init: int = parameter(default=10, help="starts; the first from the votes, the others from random parameters")

    def _check(self) -> None:
        super()._check()
        if self.competence < 0 or (self.variational and not (self.competence > 0 and self.smoothing > 0)):
            raise UsageError(
                "competence and smoothing must be positive, for variational Bayes has no zeros (EM may have them); "
                f"got {self.competence} and {self.smoothing}"
            )

    # The table that stands in for the tally has the votes cast in knowledge on the diagonal, and the guesses spread over
    # the other classes: two numbers per pair, in the shape that the whole family uses.

    def _counts(self, tally: NDArray[Any], pairs: Pairs) -> _Counts:
        known = tally[np.arange(len(pairs)), pairs.label].astype(np.float64)
        guesses = np.maximum(tally.sum(axis=1, dtype=np.float64) - known, 0)
        return _Counts(pairs.by_worker(known), pairs.by_worker(guesses), guesses[:, None])

    def _habits(self, n_classes: int) -> DirichletRows:
        return DirichletRows(np.array([-1]), n_classes, self.smoothing)

    def _knowing(self, counts: _Counts, *, mean: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """θ_r and 1 − θ_r, (workers,): their means, or what the variational E-step multiplies."""
        votes = np.stack([counts.known + self.competence + self.diagonal, counts.guessed + self.competence], axis=1)
        if not mean:
            shares = geometric_mean(votes)
        else:
            total = votes.sum(axis=1, keepdims=True)
            shares = np.divide(votes, total, out=np.full_like(votes, 0.5), where=total > 0)
        return shares[:, 0], shares[:, 1]

    def _table(self, tally: NDArray[Any], pairs: Pairs, *, mean: bool) -> NDArray[Any]:
        counts, habits = self._counts(tally, pairs), self._habits(tally.shape[1])
        knows, guesses = self._knowing(counts, mean=mean)
        habit = (habits.mean if mean else habits.geometric_mean)(counts.guesses, pairs)[:, 0]
        return _mixture(knows[pairs.worker], guesses[pairs.worker] * habit, pairs, tally.shape[1]).astype(tally.dtype)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._table(tally, pairs, mean=not self.variational)

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._table(tally, pairs, mean=True)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        counts, habits = self._counts(tally, pairs), self._habits(tally.shape[1])
        known_before, guessed_before = self.competence + self.diagonal, self.competence
        if self.variational:
            votes = np.stack([counts.known, counts.guessed], axis=1)
            return -divergence(np.array([known_before, guessed_before]), votes) - habits.divergence(
                counts.guesses, pairs
            )
        knows, guesses = self._knowing(counts, mean=True)
        density = xlogy(known_before, knows).sum() + xlogy(guessed_before, guesses).sum()
        return float(density) + habits.log_density(counts.guesses, pairs)

    def _statistics(
        self, found: Expectation, label_probs: NDArray[Any], before: Statistics, pairs: Pairs
    ) -> Statistics:
        knows, _ = self._knowing(self._counts(before.tally, pairs), mean=not self.variational)
        return Statistics(found.classes, _split(found.tally, label_probs, knows, pairs))

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        yield from islice(super()._starts(engine, start, dtype), 1)
        if start is None:
            rng = np.random.default_rng(self.random_state)
            for _ in range(self.n_init - 1):
                yield self._drawn(engine, rng, dtype)

    def _drawn(self, engine: Engine, rng: np.random.Generator, dtype: type) -> Statistics:
        """Statistics of random parameters, each drawn within a factor of 1.5 as the authors' program does."""
        pairs, n_classes = engine.crowd.pairs, engine.crowd.n_classes
        known, guessed = rng.uniform(1, 1.5, (2, pairs.n_workers))
        knows, habit = known / (known + guessed), rng.uniform(1, 1.5, len(pairs))
        unseen = n_classes - np.bincount(pairs.worker, minlength=pairs.n_workers)
        habit /= (pairs.by_worker(habit) + 1.25 * unseen)[pairs.worker]  # a label never said counts as the mean draw
        label_probs: NDArray[Any] = _mixture(
            knows[pairs.worker], (1 - knows)[pairs.worker] * habit, pairs, n_classes
        ).astype(dtype)
        found = engine.expect(self._class_prior(np.ones(n_classes)), label_probs)
        return Statistics(found.classes, _split(found.tally, label_probs, knows, pairs))

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate everything from a posterior, as one M-step does; one E-step tells knowledge from guesses."""
        super().restart_from(crowd, posterior)
        knows, _ = self._knowing(self._counts(self.tally_, crowd.pairs), mean=not self.variational)
        self.tally_ = _split(self.tally_, self._label_probs(self.tally_, crowd.pairs), knows, crowd.pairs)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        pairs, counts, shares = self._pairs, self._counts(self.tally_, self._pairs), self._class_shares()
        knows, guesses = self._knowing(counts, mean=True)
        # A guess is right by luck: as often as it falls on a class, times how frequent the class is.
        lucky = pairs.by_worker(counts.guesses[:, 0] * shares[pairs.label]) + self.smoothing
        total = counts.guessed + self.smoothing * len(shares)
        luck = np.divide(lucky, total, out=np.full(len(total), 1 / len(shares)), where=total > 0)
        n_classes = np.round(counts.known + counts.guessed, 6)
        return {"n_votes": n_classes, "accuracy": knows + guesses * luck, "competence": knows}


def _mixture(knows: NDArray[Any], spam: NDArray[Any], pairs: Pairs, n_classes: int) -> NDArray[Any]:
    """θ [k = l] + (1 − θ) ξ[l], (pairs, classes), from both parts by pair."""
    label_probs = np.repeat(spam[:, None], n_classes, axis=1)
    label_probs[np.arange(len(pairs)), pairs.label] += knows
    return label_probs


def _split(tally: NDArray[Any], label_probs: NDArray[Any], knows: NDArray[np.float64], pairs: Pairs) -> NDArray[Any]:
    """Tell knowledge from guesses in a tally of classes, by the parameters (θ̃ by worker) that it came from."""
    own, n_classes = (np.arange(len(pairs)), pairs.label), tally.shape[1]
    if n_classes == 1:  # nothing to guess
        return tally
    known = tally[own] * np.divide(
        knows[pairs.worker], label_probs[own], out=np.zeros(len(pairs)), where=label_probs[own] > 0
    )
    guesses = (tally.sum(axis=1) - known) / (n_classes - 1)
    split = np.repeat(guesses.astype(tally.dtype)[:, None], n_classes, axis=1)
    split[own] = known
    return split
