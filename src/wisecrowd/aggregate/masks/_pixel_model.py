"""EM on patterns of votes on pixels: rates of workers, and the probability that a pixel belongs to the mask."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.base.mask_aggregator import PixelInference, compute_rates
from wisecrowd.data.mask_regions import Region, count_region_pixels
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.vote_patterns import VotePatterns
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError, check_choice

Array = NDArray[np.float64]

#: Rates are clipped here, so that no worker has a veto.
MIN_RATE = 1e-6
#: Rates before the first iteration.
START_RATE = 0.99

Prior = Literal["estimated", "votes", "pixel"]

SHARED_HELP = "Give a worker the same rates on all tasks; False estimates them for every task by itself."
REGION_HELP = (
    "Pixels that count: the box around all marked pixels of a task with a margin ('box'), the whole image ('image'), or "
    "the pixels that "
    "somebody marked ('union'). The more empty background counts, the more likely are pixels that few workers marked."
)
SHRINKAGE_HELP = "Pseudo-masks that draw a worker's rates to those of the crowd."
MAX_ITER_HELP = "Maximum number of EM iterations."
TOL_HELP = "Largest change of a rate at convergence."


class PixelSettings(NamedTuple):
    """Settings of the model, with the meaning of the parameters of the same names.

    Parameters
    ----------
    symmetric : bool
        Whether workers have one accuracy instead of sensitivity and specificity.
    shared : bool
        Whether workers have the same rates on all tasks.
    prior : {"estimated", "votes", "pixel"}
        Share of the pixels in the mask: estimated for every task, the share of votes, or the posterior of each pixel before.
    region : {"box", "image", "union"}
        Pixels that count.
    shrinkage : float
        Pseudo-masks.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Tolerance.
    """

    symmetric: bool
    shared: bool
    prior: Prior
    region: Region
    shrinkage: float
    max_iter: int
    tol: float

    def check(self) -> None:
        """Raise if a setting is invalid.

        Raises
        ------
        UsageError
            If a setting is outside its range.
        """
        check_choice("prior", self.prior, ("estimated", "votes", "pixel"))
        check_choice("region", self.region, ("box", "image", "union"))
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")


def fit_pixel_model(crowd: MaskCrowd, patterns: VotePatterns, settings: PixelSettings) -> PixelInference:
    """Estimate rates of workers and probabilities of pixels by EM.

    Parameters
    ----------
    crowd : MaskCrowd
        Masks.
    patterns : VotePatterns
        Patterns of votes.
    settings : PixelSettings
        Settings.

    Returns
    -------
    PixelInference
    """
    settings.check()
    n_pixels = count_region_pixels(crowd, patterns, settings.region)
    region = patterns.sum_over_tasks(n_pixels)
    share = patterns.n_marks / crowd.votes_per_task[patterns.task]
    votes = np.divide(
        patterns.sum_over_tasks(share * n_pixels), region, out=np.full(crowd.n_tasks, 0.5), where=region > 0
    )
    trace: list[float] = []

    def sum_by_worker(values: Array) -> Array:
        """Return the sum over the tasks of a worker for every mask, if rates are shared."""
        if not settings.shared:
            return values
        return np.asarray(np.bincount(crowd.worker, values, crowd.n_workers)[crowd.worker], dtype=np.float64)

    def divide(right: Array, total: Array) -> Array:
        """Return rates, drawn to that of the crowd."""
        pooled = right.sum() / max(total.sum(), 1e-300)
        strength = settings.shrinkage * total.mean() + 1e-9
        rate = (sum_by_worker(right) + strength * pooled) / (sum_by_worker(total) + strength)
        return np.asarray(np.clip(rate, MIN_RATE, 1 - MIN_RATE))

    def estimate_rates(probability: Array) -> tuple[Array, Array]:
        """Return sensitivity and specificity of every mask: the M-step."""
        inside = n_pixels * probability
        outside = n_pixels - inside
        true, false = (patterns.sum_over_tasks(values)[crowd.task] for values in (inside, outside))
        hits, rejections = patterns.marks_by_vote @ inside, false - patterns.marks_by_vote @ outside
        if settings.symmetric:
            accuracy = divide(hits + rejections, true + false)
            return accuracy, accuracy
        return divide(hits, true), divide(rejections, false)

    def compute_probability(sensitivity: Array, specificity: Array, prior: Array) -> Array:
        """Return the probabilities of pixels: the E-step."""
        evidence = patterns.sum_votes(np.log(sensitivity / (1 - specificity)), np.log((1 - sensitivity) / specificity))
        outside = patterns.sum_votes(np.log(1 - specificity), np.log(specificity))
        with np.errstate(divide="ignore", invalid="ignore"):  # priors of 0 and 1
            log_odds = np.log(prior) - np.log1p(-prior) + evidence
            log_prob = np.where(prior < 1, np.log1p(-prior) + outside + np.logaddexp(0, log_odds), evidence + outside)
        trace.append(float((n_pixels * log_prob).sum()))
        return np.asarray(expit(log_odds))

    def estimate_prior(probability: Array) -> Array:
        """Return the prior of every pattern."""
        if settings.prior == "pixel":
            return probability
        mean = votes
        if settings.prior == "estimated":
            inside = patterns.sum_over_tasks(n_pixels * probability)
            mean = np.divide(inside, region, out=votes.copy(), where=region > 0)
        return np.asarray(np.clip(mean, MIN_RATE, 1 - MIN_RATE)[patterns.task])

    State = tuple[Array, Array, Array, Array]

    def step(state: State) -> tuple[State, float]:
        sensitivity, specificity, prior, _ = state
        probability = compute_probability(sensitivity, specificity, prior)
        rates = estimate_rates(probability)
        change = max(float(np.abs(new - old).max(initial=0)) for new, old in zip(rates, state[:2], strict=True))
        return (*rates, estimate_prior(probability), probability), change

    if settings.prior == "pixel":  # as in the paper: rates against the majority, and the shares of votes as priors
        start = (*estimate_rates((share > 0.5).astype(np.float64)), share, share)
    else:
        equal = np.full(crowd.n_votes, START_RATE)
        start = (equal, equal, estimate_prior(votes[patterns.task]), share)
    state, n_iter, converged = iterate_to_fixed_point(
        step, start, max_iter=settings.max_iter, tol=settings.tol, title="Masks"
    )
    probability = state[3]
    is_outside = n_pixels == 0  # pixels that do not count
    probability = np.where(is_outside, 0.0, probability)
    sensitivity, specificity = compute_rates(patterns, crowd, probability, n_pixels)
    return PixelInference(probability, n_pixels, sensitivity, specificity, n_iter, converged, np.array(trace))
