"""Likelihood of a cumulative-link model: task scores on a grid, and three parameters per worker."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from wisecrowd.data.pairs import Pairs
from wisecrowd.em.gradient import GaussianPrior
from wisecrowd.utils.slices import slice_rows

Array = NDArray[np.float64]

#: Stands for the infinite thresholds below the lowest and above the highest class; finite, so that products stay numbers.
EDGE = 1e6
#: Prior means and standard deviations of the parameters of all workers together: the logarithm of the typical discrimination, the
#: centre of the thresholds, and the logarithms of their distances. They keep classes without votes from collapsing.
TYPICAL_DISCRIMINATION, BASE_SD, CENTRE_SD, GAP_SD = 1.5, 1.0, 2.0, 1.0
#: Discrimination of the rater whose votes are the gold labels, as a multiple of the typical one.
GOLD_DISCRIMINATION = 4.0


class GradedParameters(NamedTuple):
    """Parameters of a cumulative-link model: P(label ≥ k) = σ(a (z − b − w c_k)).

    Attributes
    ----------
    discrimination, severity, spread : ndarray of shape (n_workers,)
        a, b and w of every worker.
    thresholds : ndarray of shape (n_classes - 1,)
        c, ascending.
    """

    discrimination: Array
    severity: Array
    spread: Array
    thresholds: Array


class _Curves(NamedTuple):
    """Log-probabilities of labels and their derivatives by the two arguments of the link."""

    log_probs: Array
    upper: Array  # a (z − b − w c_l): the argument of P(label ≥ l)
    lower: Array  # the argument of P(label ≥ l + 1)
    by_upper: Array
    by_lower: Array


class GradedLikelihood:
    """Probabilities of labels given scores on a grid, as a function of all parameters in one vector, the *point*.

    Parameters
    ----------
    pairs : Pairs
        Pairs of worker and label that occur.
    n_classes : int
        Number of classes.
    nodes : ndarray of shape (n_nodes,)
        Scores.
    discrimination_sd, severity_sd, spread_sd : float
        Prior standard deviations of log a, b and log w. Zero fixes a parameter.
    gold_worker : bool, default=False
        Whether the last worker is the rater of the gold tasks, whose parameters are fixed.
    """

    def __init__(
        self,
        pairs: Pairs,
        n_classes: int,
        nodes: Array,
        *,
        discrimination_sd: float,
        severity_sd: float,
        spread_sd: float,
        gold_worker: bool = False,
    ) -> None:
        self.pairs, self.n_classes, self.nodes = pairs, n_classes, nodes
        n_workers = pairs.n_workers
        n_gaps = max(n_classes - 2, 0)
        mean, sd = np.zeros(3 * n_workers + 2 + n_gaps), np.ones(3 * n_workers + 2 + n_gaps)
        for part, value in enumerate((discrimination_sd, severity_sd, spread_sd)):
            sd[part * n_workers : (part + 1) * n_workers] = value
        if gold_worker:
            mean[n_workers - 1] = np.log(GOLD_DISCRIMINATION)
            sd[[n_workers - 1, 2 * n_workers - 1, 3 * n_workers - 1]] = 0
        mean[3 * n_workers], sd[3 * n_workers : 3 * n_workers + 2] = (
            np.log(TYPICAL_DISCRIMINATION),
            [BASE_SD, CENTRE_SD],
        )
        mean[3 * n_workers + 2 :], sd[3 * n_workers + 2 :] = np.log(3 / n_classes), GAP_SD
        with np.errstate(divide="ignore"):
            self.prior = GaussianPrior(mean, 1 / sd**2)

    def get_parameters(self, point: Array) -> GradedParameters:
        """Return the parameters that a point stands for.

        Parameters
        ----------
        point : ndarray
            Logarithms of the discriminations relative to the typical one, severities, logarithms of the spreads, then the
            logarithm of the typical discrimination, the centre of the thresholds and the logarithms of their distances.

        Returns
        -------
        GradedParameters
        """
        log_slope, severity, log_spread = point[: 3 * self.pairs.n_workers].reshape(3, -1)
        base, centre = point[3 * self.pairs.n_workers : 3 * self.pairs.n_workers + 2]
        place = np.concatenate([[0.0], np.cumsum(np.exp(point[3 * self.pairs.n_workers + 2 :]))])
        thresholds = (centre + place - place.mean())[: self.n_classes - 1]
        return GradedParameters(np.exp(base + log_slope), severity, np.exp(log_spread), thresholds)

    def initial_point(self, label_shares: Array) -> Array:
        """Return a point that gives every label its share of the votes.

        Parameters
        ----------
        label_shares : ndarray of shape (n_classes,)
            Share of each class among the votes.

        Returns
        -------
        ndarray
        """
        point = self.prior.mean.copy()
        if self.n_classes < 2:
            return point
        above = np.clip(1 - np.cumsum(label_shares)[:-1], 0.01, 0.99)
        # A logistic variable plus a normal score of variance one is about as wide as this multiple of a logistic one.
        width = np.sqrt(1 + TYPICAL_DISCRIMINATION**2 * 3 / np.pi**2) / TYPICAL_DISCRIMINATION
        thresholds = -np.log(above / (1 - above)) * width
        gaps = np.maximum(np.diff(thresholds), 0.05)
        start = 3 * self.pairs.n_workers
        point[start + 1], point[start + 2 :] = thresholds.mean(), np.log(gaps)
        return point

    def label_probs(self, point: Array) -> Array:
        """Return P(label of the pair | score) on the grid.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.

        Returns
        -------
        ndarray of shape (n_pairs, n_nodes)
        """
        parameters = self.get_parameters(point)
        probs = np.empty((len(self.pairs), len(self.nodes)))
        for rows in slice_rows(*probs.shape):
            probs[rows] = np.exp(self._curves(parameters, rows).log_probs)
        return probs

    def severity_scores(self, point: Array) -> Array:
        """Return the derivative of log P(label of the pair | score) by the worker's severity.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.

        Returns
        -------
        ndarray of shape (n_pairs, n_nodes)
        """
        parameters = self.get_parameters(point)
        scores = np.empty((len(self.pairs), len(self.nodes)))
        for rows in slice_rows(*scores.shape):
            curves = self._curves(parameters, rows)
            slope = parameters.discrimination[self.pairs.worker[rows], None]
            scores[rows] = -slope * (curves.by_upper + curves.by_lower)
        return scores

    def expected_log_joint(self, point: Array, tally: NDArray[Any]) -> tuple[float, Array]:
        """Return Σ tally · log P(label | score) + log prior, and its gradient.

        Parameters
        ----------
        point : ndarray
            Values of all parameters.
        tally : ndarray of shape (n_pairs, n_nodes)
            Expected number of votes by pair and score.

        Returns
        -------
        value : float
        gradient : ndarray
        """
        parameters, pairs = self.get_parameters(point), self.pairs
        slope, spread = parameters.discrimination, parameters.spread
        value = self.prior.log_density(point)
        by_pair = np.empty((4, len(pairs)))  # sums over scores: by log a, by b, by either argument of the link
        for rows in slice_rows(*tally.shape):
            curves, counts = self._curves(parameters, rows), tally[rows]
            value += float((counts * curves.log_probs).sum())
            upper, lower = counts * curves.by_upper, counts * curves.by_lower
            by_pair[0, rows] = (upper * curves.upper + lower * curves.lower).sum(axis=1)
            by_pair[2, rows], by_pair[3, rows] = upper.sum(axis=1), lower.sum(axis=1)
        by_pair[1] = -slope[pairs.worker] * (by_pair[2] + by_pair[3])
        low, high = self._edges(parameters)
        factor = -(slope * spread)[pairs.worker]
        by_threshold = np.bincount(pairs.label, factor * by_pair[2], self.n_classes + 1)
        by_threshold += np.bincount(pairs.label + 1, factor * by_pair[3], self.n_classes + 1)
        by_threshold = by_threshold[1 : self.n_classes]
        by_slope = pairs.sum_by_worker(by_pair[0])
        by_spread = pairs.sum_by_worker(factor * (by_pair[2] * low + by_pair[3] * high))
        start = 3 * pairs.n_workers
        gaps = np.exp(point[start + 2 :])
        # Threshold k is the centre plus the gaps before it, minus the mean of these sums.
        above = np.cumsum(by_threshold[::-1])[::-1][1:]
        mean_share = np.arange(len(gaps), 0, -1) / (len(gaps) + 1)
        by_gap = gaps * (above - by_threshold.sum() * mean_share) if len(gaps) else gaps
        gradient = np.concatenate(
            [by_slope, pairs.sum_by_worker(by_pair[1]), by_spread, [by_slope.sum(), by_threshold.sum()], by_gap]
        )
        return value, self.prior.add_gradient(gradient, point)

    def curvature(self, votes_per_worker: Array) -> Array:
        """Return the approximate curvature of the expected log-joint along every coordinate.

        Parameters
        ----------
        votes_per_worker : ndarray of shape (n_workers,)
            Total weight of the votes of each worker.

        Returns
        -------
        ndarray
            Positive; infinite for fixed coordinates.
        """
        n_common = len(self.prior.mean) - 3 * self.pairs.n_workers
        information = np.concatenate([np.tile(votes_per_worker, 3), np.full(n_common, votes_per_worker.sum())])
        return self.prior.add_curvature(information)

    def _edges(self, parameters: GradedParameters) -> tuple[Array, Array]:
        """Return the thresholds below and above the label of every pair."""
        edges = np.concatenate([[-EDGE], parameters.thresholds, [EDGE]])
        return edges[self.pairs.label], edges[self.pairs.label + 1]

    def _curves(self, parameters: GradedParameters, rows: slice) -> _Curves:
        """Return log-probabilities and derivatives for some pairs, without cancellation of the two cumulative probabilities."""
        worker = self.pairs.worker[rows]
        slope = parameters.discrimination[worker, None]
        position = self.nodes - parameters.severity[worker, None]
        low, high = (edge[rows] for edge in self._edges(parameters))
        upper = slope * (position - (parameters.spread[worker] * low)[:, None])
        lower = slope * (position - (parameters.spread[worker] * high)[:, None])
        # σ(u) − σ(v) = σ(u) σ(−v) (1 − e^(v − u)) for u > v
        gap = np.log(np.maximum(-np.expm1(lower - upper), np.finfo(np.float64).tiny))
        of_upper, of_lower = log_expit(upper), log_expit(-lower)
        log_probs = of_upper + of_lower + gap
        by_upper = np.exp(log_expit(-upper) - of_lower - gap)
        by_lower = -np.exp(log_expit(lower) - of_upper - gap)
        return _Curves(log_probs, upper, lower, by_upper, by_lower)
