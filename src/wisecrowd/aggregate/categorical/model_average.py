"""The default method: an average of three models of workers over one posterior of the tasks."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ACCELERATE_HELP, ConfusionEM
from wisecrowd.em.initialization import compute_vote_shares, make_class_prior
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import estimate_class_accuracy_probs, estimate_smoothed_probs
from wisecrowd.engines.base import Chunk, Engine, add_results
from wisecrowd.kernels import Expectation

#: Number of models in the average.
N_MEMBERS = 3
#: Pseudo-votes of each kind, informed and guessed, in the competence of a worker.
COMPETENCE_PSEUDO_VOTES = 1.0
#: Iterations that separate informed votes from guesses within an M-step; more of them change no label on public crowds.
COMPETENCE_ITERATIONS = 10
#: Accuracy of a vote with two classes before votes on the same task are compared, typical of public crowds.
TYPICAL_ACCURACY = 0.75
#: Number of ordered pairs of votes on the same task that the typical accuracy is worth.
TYPICAL_ACCURACY_PAIRS = 1000.0
#: Smallest difference between the accuracy of votes and chance for which the class prior is corrected.
MIN_ADVANTAGE = 0.005
#: Mean number of votes per task up to which the correction is applied in full, and the power of its decrease beyond. The more
#: votes a task has, the less they need a prior, and the more errors that workers share distort the correction.
FULL_CORRECTION_VOTES, CORRECTION_DECREASE = 2.0, 0.25
#: Range of a corrected class prior: votes alone never exclude a class.
CORRECTED_PRIOR_RANGE = (0.02, 0.98)
#: Smallest class prior relative to the largest; a class without votes keeps it.
MIN_RELATIVE_PRIOR = 1e-6


@method_class
class ModelAverage(ConfusionEM):
    """Average of three models of workers, which share one posterior; the default method of wisecrowd.

    The members differ in what they assume about a worker:

    1. *competence*: the worker knows the class, or guesses by habit (the model of `MACE`),
       P(y_ir = l | z_i = k) = θ_r [k = l] + (1 − θ_r) ξ_r[l];
    2. *confusion*: a full confusion matrix π_r (the model of `DawidSkene`);
    3. *class accuracy*: one accuracy per class and uniform errors (the model of `HDS`).

    Every iteration estimates all members from the same expected counts n_r[k, l] and averages what they infer:

        M:  π_r^(m) from n_r,  m = 1, 2, 3
        E:  q_i(k) = (1/3) Σ_m q_i^(m)(k),   q_i^(m)(k) ∝ ρ_k^(m) Π_r π_r^(m)[k, y_ir]

    So there is one posterior and one table of counts, hence one confusion matrix per worker, as in `DawidSkene`. The confusion
    matrices in the results are those of the second member.

    Class priors are not estimated by EM, which moves them too far if tasks have few votes. With more than two classes, the prior
    is uniform for the first member and ρ_k ∝ √(share of votes for k) for the others. With two classes, errors make a rare class
    look more frequent than it is; the share of votes s is corrected by the accuracy a of a vote, ρ = (s − (1 − a)) / (2a − 1).
    Disagreement between votes on the same task gives a, since two votes differ with probability 2a(1 − a). The correction is
    smaller if tasks have more than two votes. The third member uses the corrected share, the first the middle between it and one
    half, the second the middle between it and s.

    Choose it unless you know that another model is right: on random parts of public crowds, no other method here is as accurate
    on average, from one vote per task to many. With sparse votes it follows the votes, where `DawidSkene` can collapse.

    Examples
    --------
    >>> from wisecrowd import MajorityVote, ModelAverage, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=3)
    >>> fitted = ModelAverage().fit(simulation.crowd)
    >>> majority = MajorityVote().fit(simulation.crowd)
    >>> bool((fitted.labels_ == simulation.truth).mean() > (majority.labels_ == simulation.truth).mean())
    True
    >>> fitted.confusion_.shape
    (20, 3, 3)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum", "hovy2013learning", "li2014error")
    unused_labels_are_equal: ClassVar[bool] = True
    #: The iteration averages members and maximises no common objective.
    monotone: ClassVar[bool] = False
    tally_is_sufficient: ClassVar[bool] = True
    warns_of_collapse: ClassVar[bool] = False

    prior: Literal["estimate", "uniform"] | Any = parameter(
        default="estimate",
        help="Class prior of all members: 'estimate' from the votes, 'uniform', or one number per class.",
    )
    max_iter: int = parameter(default=100, help="Maximum number of passes over the votes.")
    tol: float = parameter(
        default=1e-5, help="Relative change of the mean log-likelihood below which the iteration has converged."
    )
    accelerate: bool = parameter(default=False, help=ACCELERATE_HELP)

    # ------------------------------------------------------------------ members

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)

    def e_step_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate P(label of the pair given class) by every member, side by side.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, 3 n_classes)
        """
        members = (
            estimate_competence_probs(tally, pairs, self.smoothing),
            estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal),
            estimate_class_accuracy_probs(tally, pairs, *self.accuracy_pseudo_votes(tally.shape[1])),
        )
        return np.concatenate(members, axis=1)

    def fold_to_classes(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Sum the columns of all members by class, along the last axis.

        Parameters
        ----------
        columns : ndarray of shape (..., 3 n_classes)
            Values by member and class.

        Returns
        -------
        ndarray of shape (..., n_classes)
        """
        return columns.reshape(*columns.shape[:-1], N_MEMBERS, -1).sum(axis=-2)

    def e_step_posterior(
        self,
        compute: Callable[[NDArray[np.float64], NDArray[Any]], NDArray[Any]],
        prior: NDArray[np.float64],
        label_probs: NDArray[Any],
    ) -> NDArray[Any]:
        """Average the posteriors of the members.

        Parameters
        ----------
        compute : callable
            Function from class prior and label probabilities of one member to a posterior.
        prior : ndarray of shape (3 n_classes,)
            Class priors of all members.
        label_probs : ndarray of shape (n_rows, 3 n_classes)
            Label probabilities of all members.

        Returns
        -------
        ndarray of shape (..., n_classes)
        """
        total = sum(compute(*member) for member in _split_members(prior, label_probs))
        return np.asarray(total / N_MEMBERS)

    # ------------------------------------------------------------------ iteration

    def _run(self, engine: Engine, start: Any) -> None:
        self.e_step_prior_ = self._make_member_priors(engine.sum(_sum_votes))
        super()._run(engine, start)

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate all parameters from a posterior, in one M-step.

        Parameters
        ----------
        crowd : Crowd
            All votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of all tasks.
        """
        super().restart_from(crowd, posterior)
        self.e_step_prior_ = self._make_member_priors(_sum_votes(Chunk(crowd)))
        self.prior_ = self.fold_to_classes(self.e_step_prior_) / N_MEMBERS

    def _m_step(self, statistics: Statistics, pairs: Pairs) -> tuple[NDArray[np.float64], NDArray[Any]]:
        return self.e_step_prior_, self.e_step_label_probs(statistics.tally, pairs)

    def _e_step(self, engine: Engine, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> Expectation:
        # The statistics are linear in the posterior, so those of the average are the average of those of the members.
        members = (engine.expect(*member) for member in _split_members(prior, label_probs))
        log_likelihood, class_counts, tally, _ = reduce(add_results, members)
        return Expectation(log_likelihood / N_MEMBERS, class_counts / N_MEMBERS, tally / N_MEMBERS, None)

    def _make_member_priors(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the class priors of all members, (3 n_classes,), from the sums of `_sum_votes`."""
        n_tasks, (n_votes, n_pairs, n_disagreements) = votes[:-3].sum(), votes[-3:]
        shares = votes[:-3] / n_tasks
        uniform = np.full(len(shares), 1 / len(shares))
        if not isinstance(self.prior, str) or self.prior != "estimate":
            priors = [make_class_prior(self.prior, uniform, getattr(self, "classes_", None))] * N_MEMBERS
        elif len(shares) == 2:
            corrected = correct_class_shares(shares, n_pairs, n_disagreements)
            extent = min(1.0, (FULL_CORRECTION_VOTES * n_tasks / n_votes) ** CORRECTION_DECREASE)
            corrected = shares + extent * (corrected - shares)
            priors = [(uniform + corrected) / 2, (shares + corrected) / 2, corrected]
        else:
            damped = np.sqrt(shares) / np.sqrt(shares).sum()
            priors = [uniform, damped, damped]
        floors = [np.maximum(prior, MIN_RELATIVE_PRIOR * prior.max()) for prior in priors]
        return np.concatenate([prior / prior.sum() for prior in floors])


def estimate_competence_probs(tally: NDArray[Any], pairs: Pairs, smoothing: float) -> NDArray[Any]:
    """Estimate P(label given class) of workers who know the class or guess by habit, from expected counts.

    A worker knows the class with probability θ_r and otherwise draws the label from ξ_r. The votes for the true class are divided
    into informed votes and lucky guesses, θ_r : (1 − θ_r) ξ_r[l], and θ_r and ξ_r follow from the sums. One informed and one
    guessed pseudo-vote per worker regularise θ_r.

    Parameters
    ----------
    tally : ndarray of shape (n_pairs, n_classes)
        Expected counts.
    pairs : Pairs
        Worker and label of every row of the tally.
    smoothing : float
        Guessed pseudo-votes for each label.

    Returns
    -------
    ndarray of shape (n_pairs, n_classes)

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 0]), np.array([0, 1]), np.empty(0, dtype=np.int32), 1)
    >>> estimate_competence_probs(np.array([[50.0, 0.0], [0.0, 50.0]]), pairs, smoothing=0.1).round(2).tolist()
    [[0.99, 0.01], [0.01, 0.99]]
    """
    n_classes, diagonal = tally.shape[1], (np.arange(len(pairs)), pairs.label)
    right, total = tally[diagonal].astype(np.float64), tally.sum(axis=1, dtype=np.float64)
    n_votes = pairs.sum_by_worker(total)
    competence, habit = np.full(pairs.n_workers, 0.5), np.full(len(pairs), 1 / n_classes)
    for _ in range(COMPETENCE_ITERATIONS):
        knows = competence[pairs.worker]
        informed = right * knows / (knows + (1 - knows) * habit)
        guessed = np.maximum(total - informed, 0)
        n_informed = pairs.sum_by_worker(informed)
        competence = (n_informed + COMPETENCE_PSEUDO_VOTES) / (n_votes + 2 * COMPETENCE_PSEUDO_VOTES)
        n_guessed = np.maximum(n_votes - n_informed, 0) + smoothing * n_classes
        habit = np.divide(
            guessed + smoothing, n_guessed[pairs.worker], out=np.full(len(pairs), 1 / n_classes),
            where=n_guessed[pairs.worker] > 0,
        )  # fmt: skip
    knows = competence[pairs.worker]
    label_probs = np.repeat(((1 - knows) * habit).astype(tally.dtype)[:, None], n_classes, axis=1)
    label_probs[diagonal] += knows.astype(tally.dtype)
    return label_probs


def correct_class_shares(
    shares: NDArray[np.float64], n_pairs: float, n_disagreements: float
) -> NDArray[np.float64]:  # fmt: skip
    """Estimate the frequencies of two classes from their shares of votes, corrected for errors.

    Parameters
    ----------
    shares : ndarray of shape (2,)
        Shares of votes.
    n_pairs : float
        Number of ordered pairs of votes on the same task.
    n_disagreements : float
        Number of these pairs whose labels differ.

    Returns
    -------
    ndarray of shape (2,)

    Examples
    --------
    >>> correct_class_shares(np.array([0.65, 0.35]), n_pairs=1e6, n_disagreements=0.32e6).round(2)  # votes are 80 % right
    array([0.75, 0.25])
    """
    typical = 2 * TYPICAL_ACCURACY * (1 - TYPICAL_ACCURACY)
    disagreement = (n_disagreements + TYPICAL_ACCURACY_PAIRS * typical) / (n_pairs + TYPICAL_ACCURACY_PAIRS)
    # 2a(1 − a) = d has the solution a = (1 + √(1 − 2d)) / 2.
    advantage = np.sqrt(max(1 - 2 * disagreement, 0.0)) / 2
    if advantage < MIN_ADVANTAGE:
        return shares
    second = np.clip(0.5 + (shares[1] - 0.5) / (2 * advantage), *CORRECTED_PRIOR_RANGE)
    return np.array([1 - second, second])


def _split_members(
    prior: NDArray[np.float64], label_probs: NDArray[Any]
) -> list[tuple[NDArray[np.float64], NDArray[Any]]]:  # fmt: skip
    """Return class prior and label probabilities of every member."""
    priors, tables = np.split(prior, N_MEMBERS), np.split(label_probs, N_MEMBERS, axis=-1)
    return [(prior, np.ascontiguousarray(table)) for prior, table in zip(priors, tables, strict=True)]


def _sum_votes(chunk: Chunk) -> NDArray[np.float64]:
    """Chunk function: return sums over tasks, of vote shares by class, votes, pairs of votes on a task, and disagreements."""
    totals = np.zeros(chunk.crowd.n_classes + 3)
    for block in chunk.blocks():
        crowd = block.crowd
        totals[:-3] += compute_vote_shares(crowd)[crowd.votes_per_task > 0].sum(axis=0)
        votes = crowd.vote_counts
        n_votes = votes.sum(axis=1)
        n_pairs = n_votes * (n_votes - 1)
        several = n_pairs > 0
        n_agreements = (votes * (votes - 1)).sum(axis=1)[several]
        n_disagreements = np.clip(n_pairs[several] - n_agreements, 0, n_pairs[several])
        totals[-3:] += n_votes.sum(), n_pairs[several].sum(), n_disagreements.sum()
    return totals
