"""Truth discovery: alternation between the weights of workers and the truth of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.numeric._numeric_aggregator import NumericVotes
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError

Array = NDArray[np.float64]

#: Help texts of the parameters that CATD and PM share.
MAX_ITER_HELP = "Maximum number of rounds."
TOL_HELP = "Largest change of an estimate, relative to the spread of the labels, in a converged fit."


class DiscoveredTruth(NamedTuple):
    """Result of truth discovery."""

    truth: Array
    """Estimates, (n_tasks,), or winners, (n_tasks, n_classes)."""
    weight: Array
    """Weight of each worker, (n_workers,); NaN without votes."""
    n_iter: int
    """Number of rounds."""
    converged: bool
    """Whether truth and weights converged."""


@dataclass(frozen=True)
class TruthDiscovery:
    """Alternation between weights that follow from losses and the truth that minimises the weighted losses.

    Parameters
    ----------
    compute_weights : callable
        Function of the losses of workers, their total votes, and the mean loss of a vote in the first round; returns weights.
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of the truth in a converged fit.
    title : str
        Name in the progress bar.
    """

    compute_weights: Callable[[Array, Array, float], Array]
    max_iter: int
    tol: float
    title: str

    def discover_numbers(
        self,
        votes: NumericVotes,
        compute_loss: Callable[[NumericVotes, Array], Array],
        average: Callable[[NumericVotes, Array], Array],
    ) -> DiscoveredTruth:
        """Estimate numeric truth.

        Parameters
        ----------
        votes : NumericVotes
            Votes.
        compute_loss : callable
            Function of votes and estimates; returns the loss of each vote.
        average : callable
            Function of votes and weights; returns the estimates that minimise the weighted losses.

        Returns
        -------
        DiscoveredTruth
        """
        scale = float(np.sqrt((votes.spread[votes.has_votes] ** 2).mean())) or 1.0
        return self._alternate(
            votes.median(),
            sum_loss=lambda estimate: votes.sum_by_worker(compute_loss(votes, estimate)),
            average=lambda weight: average(votes, weight),
            measure_change=lambda before, after: float(np.abs(after - before).max()) / scale,
            worker_totals=votes.worker_totals,
        )

    def discover_classes(self, poll: Poll) -> DiscoveredTruth:
        """Estimate the true classes: a wrong label has loss one, and the truth is the weighted vote.

        Parameters
        ----------
        poll : Poll
            Votes.

        Returns
        -------
        DiscoveredTruth
        """
        totals = poll.worker_totals
        return self._alternate(
            poll.find_winners(poll.crowd.vote_counts),
            sum_loss=lambda winners: totals - np.nan_to_num(totals * poll.compute_agreement(winners)),
            average=lambda weight: poll.find_winners(poll.compute_scores(weight)),
            measure_change=lambda before, after: float(np.mean((before != after).any(axis=1))),
            worker_totals=totals,
        )

    def _alternate(
        self,
        truth: Array,
        *,
        sum_loss: Callable[[Array], Array],
        average: Callable[[Array], Array],
        measure_change: Callable[[Array, Array], float],
        worker_totals: Array,
    ) -> DiscoveredTruth:
        """Alternate between weights and truth until they agree."""
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        voted = worker_totals > 0
        first_loss = sum_loss(truth)[voted]
        unit = float(first_loss.sum() / worker_totals.sum()) or 1.0

        def step(state: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array, Array], float]:
            old_truth, loss, _ = state
            weight = np.full(len(worker_totals), np.nan)
            weight[voted] = self.compute_weights(loss, worker_totals[voted], unit)
            new_truth = average(weight)
            return (new_truth, sum_loss(new_truth)[voted], weight), measure_change(old_truth, new_truth)

        result = iterate_to_fixed_point(
            step, (truth, first_loss, np.empty(0)), max_iter=self.max_iter, tol=self.tol, title=self.title
        )
        return DiscoveredTruth(result.state[0], result.state[2], result.n_iter, result.converged)
