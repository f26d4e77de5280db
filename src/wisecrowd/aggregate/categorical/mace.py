"""MACE: a worker knows the class, or guesses by habit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import PRIOR_HELP, ConfusionEM
from wisecrowd.em.dirichlet import DirichletRows, compute_divergence, compute_geometric_mean
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError
from wisecrowd.kernels import Expectation

#: Upper end of the uniform distribution, from 1, of random initial parameters, as in the authors' program.
MAX_INITIAL_DRAW = 1.5


class _CompetenceCounts(NamedTuple):
    """Expected numbers of informed votes and of guesses."""

    informed: NDArray[np.float64]
    """Informed votes by worker, (n_workers,)."""
    guessed: NDArray[np.float64]
    """Guesses by worker, (n_workers,)."""
    guesses: NDArray[np.float64]
    """Guesses by pair, (n_pairs, 1)."""


@method_class
class MACE(ConfusionEM):
    """Model in which a worker knows the class with some probability (competence) and otherwise guesses by habit.

    Model: worker r knows the class of task i with probability θ_r and then gives z_i; otherwise the label is drawn from ξ_r,
    whatever is true. So P(y_ir = l | z_i = k) = θ_r [k = l] + (1 − θ_r) ξ_r[l]. The probability that a vote is informed is

        E:  κ_ir = q_i(y_ir) θ_r / (θ_r + (1 − θ_r) ξ_r[y_ir])

    and θ_r, ξ_r follow from the sums of κ and 1 − κ: by variational Bayes with θ_r ~ Beta(competence + diagonal,
    competence) and ξ_r ~ Dir(smoothing) (the default, and the paper's), or with these as pseudo-votes by EM
    (``variational=False``; the authors' program has ``smoothing=competence=0.01 / K`` there). The likelihood has many local
    optima; the best of ``n_init`` starts is kept.

    Choose it to find spammers: `workers_` has the competence of each worker, which lucky guesses do not raise. Every worker
    has K parameters, fewer than in `DawidSkene`, but a worker who confuses two classes is not modelled. The class prior is
    uniform as in the paper, which lowers the accuracy where classes are unequal; use ``prior="estimate"`` there.

    Examples
    --------
    >>> from wisecrowd import MACE
    >>> from wisecrowd.simulate import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5, random_state=1)
    >>> fitted = MACE().fit(simulation.crowd)
    >>> float((fitted.labels_ == simulation.truth).mean()) > 0.8
    True
    >>> list(fitted.workers_)
    ['n_votes', 'accuracy', 'competence']
    """

    references: ClassVar[tuple[str, ...]] = ("hovy2013learning",)
    unused_labels_are_equal: ClassVar[bool] = True

    variational: bool = parameter(default=True, help="Fit by variational Bayes; False fits by EM.")
    competence: float = parameter(
        default=0.5, help="Number of informed pseudo-votes of each worker, and of pseudo-guesses."
    )
    smoothing: float = parameter(default=10.0, help="Number of pseudo-guesses of each label by each worker.")
    diagonal: float = parameter(default=0.0, help="Number of further informed pseudo-votes of each worker.")
    prior: Literal["estimate", "uniform"] | Any = parameter(default="uniform", help=PRIOR_HELP)
    n_init: int = parameter(
        default=10, help="Number of starts: the first from the votes, the others from random parameters."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.competence < 0 or (self.variational and not (self.competence > 0 and self.smoothing > 0)):
            raise UsageError(
                "competence and smoothing must be positive for variational Bayes (EM allows zero); "
                f"got {self.competence} and {self.smoothing}"
            )

    # The table in place of the tally has informed votes on the diagonal and guesses spread over the other classes: two
    # numbers per pair, in the shape that the whole family uses.

    def _count(self, tally: NDArray[Any], pairs: Pairs) -> _CompetenceCounts:
        """Return the expected numbers of informed votes and guesses."""
        informed = tally[np.arange(len(pairs)), pairs.label].astype(np.float64)
        guesses = np.maximum(tally.sum(axis=1, dtype=np.float64) - informed, 0)
        return _CompetenceCounts(pairs.sum_by_worker(informed), pairs.sum_by_worker(guesses), guesses[:, None])

    def _make_habits(self, n_classes: int) -> DirichletRows:
        """Return the prior of the guesses, one row per worker."""
        return DirichletRows(np.array([-1]), n_classes, self.smoothing)

    def _estimate_competence(
        self, counts: _CompetenceCounts, *, mean: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return θ_r and 1 − θ_r, (n_workers,): their means, or the geometric means of the variational E-step."""
        votes = np.stack([counts.informed + self.competence + self.diagonal, counts.guessed + self.competence], axis=1)
        if not mean:
            shares = compute_geometric_mean(votes)
        else:
            total = votes.sum(axis=1, keepdims=True)
            shares = np.divide(votes, total, out=np.full_like(votes, 0.5), where=total > 0)
        return shares[:, 0], shares[:, 1]

    def _mix_label_probs(self, tally: NDArray[Any], pairs: Pairs, *, mean: bool) -> NDArray[Any]:
        """Return P(label given class) with means, or with geometric means."""
        counts, habits = self._count(tally, pairs), self._make_habits(tally.shape[1])
        competence, guessing = self._estimate_competence(counts, mean=mean)
        habit = (habits.mean if mean else habits.geometric_mean)(counts.guesses, pairs)[:, 0]
        guess_probs = guessing[pairs.worker] * habit
        return _mix(competence[pairs.worker], guess_probs, pairs, tally.shape[1]).astype(tally.dtype)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._mix_label_probs(tally, pairs, mean=not self.variational)

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair given class) with posterior means of the parameters.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return self._mix_label_probs(tally, pairs, mean=True)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        counts, habits = self._count(tally, pairs), self._make_habits(tally.shape[1])
        informed_prior, guess_prior = self.competence + self.diagonal, self.competence
        if self.variational:
            votes = np.stack([counts.informed, counts.guessed], axis=1)
            competence_divergence = compute_divergence(np.array([informed_prior, guess_prior]), votes)
            return -competence_divergence - habits.divergence(counts.guesses, pairs)
        competence, guessing = self._estimate_competence(counts, mean=True)
        density = xlogy(informed_prior, competence).sum() + xlogy(guess_prior, guessing).sum()
        return float(density) + habits.log_density(counts.guesses, pairs)

    def _complete_statistics(
        self, expectation: Expectation, label_probs: NDArray[Any], previous: Statistics, pairs: Pairs
    ) -> Statistics:
        competence, _ = self._estimate_competence(self._count(previous.tally, pairs), mean=not self.variational)
        tally = _split_guesses(expectation.tally, label_probs, competence, pairs)
        return Statistics(expectation.class_counts, tally)

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        yield from islice(super()._initialize(engine, start, dtype), 1)
        if start is None:
            rng = np.random.default_rng(self.random_state)
            for _ in range(self.n_init - 1):
                yield self._draw_start(engine, rng, dtype)

    def _draw_start(self, engine: Engine, rng: np.random.Generator, dtype: type) -> Statistics:
        """Return the statistics of random parameters."""
        pairs, n_classes = engine.crowd.pairs, engine.crowd.n_classes
        informed, guessed = rng.uniform(1, MAX_INITIAL_DRAW, (2, pairs.n_workers))
        competence, habit = informed / (informed + guessed), rng.uniform(1, MAX_INITIAL_DRAW, len(pairs))
        # A label that a worker never gave counts with the mean of a draw.
        n_unused = n_classes - np.bincount(pairs.worker, minlength=pairs.n_workers)
        habit /= (pairs.sum_by_worker(habit) + (1 + MAX_INITIAL_DRAW) / 2 * n_unused)[pairs.worker]
        guess_probs = (1 - competence)[pairs.worker] * habit
        label_probs: NDArray[Any] = _mix(competence[pairs.worker], guess_probs, pairs, n_classes).astype(dtype)
        expectation = engine.expect(self.estimate_class_prior(np.ones(n_classes)), label_probs)
        tally = _split_guesses(expectation.tally, label_probs, competence, pairs)
        return Statistics(expectation.class_counts, tally)

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate all parameters from a posterior, in one M-step; one E-step separates informed votes from guesses.

        Parameters
        ----------
        crowd : Crowd
            All votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of all tasks.
        """
        super().restart_from(crowd, posterior)
        competence, _ = self._estimate_competence(self._count(self.tally_, crowd.pairs), mean=not self.variational)
        label_probs = self._label_probs(self.tally_, crowd.pairs)
        self.tally_ = _split_guesses(self.tally_, label_probs, competence, crowd.pairs)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        pairs, shares = self._pairs, self._mean_posterior()
        counts = self._count(self.tally_, pairs)
        competence, guessing = self._estimate_competence(counts, mean=True)
        # A guess is right by chance: the probability of the label times the frequency of the class.
        right_guesses = pairs.sum_by_worker(counts.guesses[:, 0] * shares[pairs.label]) + self.smoothing
        total = counts.guessed + self.smoothing * len(shares)
        guess_accuracy = np.divide(right_guesses, total, out=np.full(len(total), 1 / len(shares)), where=total > 0)
        n_votes = np.round(counts.informed + counts.guessed, 6)
        return {"n_votes": n_votes, "accuracy": competence + guessing * guess_accuracy, "competence": competence}


def _mix(competence: NDArray[Any], guess_probs: NDArray[Any], pairs: Pairs, n_classes: int) -> NDArray[Any]:
    """Return θ [k = l] + (1 − θ) ξ[l], (n_pairs, n_classes), from both parts by pair."""
    label_probs = np.repeat(guess_probs[:, None], n_classes, axis=1)
    label_probs[np.arange(len(pairs)), pairs.label] += competence
    return label_probs


def _split_guesses(
    tally: NDArray[Any], label_probs: NDArray[Any], competence: NDArray[np.float64], pairs: Pairs
) -> NDArray[Any]:
    """Separate informed votes from guesses in a tally, with the parameters that it came from."""
    diagonal, n_classes = (np.arange(len(pairs)), pairs.label), tally.shape[1]
    if n_classes == 1:  # there is nothing to guess
        return tally
    probs = label_probs[diagonal]
    informed_share = np.divide(competence[pairs.worker], probs, out=np.zeros(len(pairs)), where=probs > 0)
    informed = tally[diagonal] * informed_share
    guesses = (tally.sum(axis=1) - informed) / (n_classes - 1)
    split = np.repeat(guesses.astype(tally.dtype)[:, None], n_classes, axis=1)
    split[diagonal] = informed
    return split
