"""Weights of class scores from several models, chosen by the likelihood of evidence on the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wisecrowd.classifiers.soft_classifier import Rows

#: Largest weight of a score. Scores of a regression on class indicators are of order one, so this is beyond any certainty.
MAX_WEIGHT = 50.0
#: Maximum number of steps of the optimiser.
MAX_STEPS = 60


class ScoreWeights(NamedTuple):
    """Weights of scores, and the log-likelihood with them.

    Attributes
    ----------
    weights : ndarray of shape (n_scores,)
        Weight of every score, zero or positive.
    log_likelihood : float
        Mean log-likelihood of a task.

    Examples
    --------
    >>> ScoreWeights(np.ones(1), -0.5).log_likelihood
    -0.5
    """

    weights: Rows
    log_likelihood: float


def fit_score_weights(
    scores: Rows, log_priors: Rows, evidence: Sequence[Rows], *, start: Rows | None = None, ridge: float = 0.0
) -> ScoreWeights:
    """Find the weights w of scores under which the evidence is most probable.

    With p_i = softmax(log ρ + Σ_c w_c s_ci), maximises Σ_i log Σ_k p_ik e_ik − λ/2 ‖w‖² over w ≥ 0, averaged over the priors ρ
    with their evidence e. A score that carries no information gets a weight of zero.

    Parameters
    ----------
    scores : ndarray of shape (n_scores, n_tasks, n_classes)
        Scores s, each for tasks that its model was not fitted to.
    log_priors : ndarray of shape (n_priors, n_classes)
        Logarithms of class priors.
    evidence : sequence of ndarray of shape (n_tasks, n_classes)
        Log-likelihoods of the classes, one array per prior.
    start : ndarray of shape (n_scores,), optional
        Weights to start from.
    ridge : float, default 0
        Penalty λ, which divides the weight among scores that are alike.

    Returns
    -------
    ScoreWeights

    Examples
    --------
    >>> truth = np.arange(40) % 2
    >>> right = np.where(truth[:, None] == np.arange(2), 0.5, -0.5)
    >>> noise = np.where((np.arange(40) // 2 % 2)[:, None] == np.arange(2), 0.5, -0.5)
    >>> evidence = np.log(np.where(truth[:, None] == np.arange(2), 0.8, 0.2))
    >>> weights, _ = fit_score_weights(np.array([right, noise]), np.zeros((1, 2)), [evidence], ridge=1.0)
    >>> bool(weights[0] > 1), bool(weights[1] < 1e-3)
    (True, True)
    """
    from scipy.optimize import minimize

    n_scores, n_tasks, n_classes = scores.shape
    flat = scores.reshape(n_scores, -1)
    peaks = [part.max(axis=1, keepdims=True) for part in evidence]
    likelihoods = [np.exp(part - peak) for part, peak in zip(evidence, peaks, strict=True)]
    constant = float(np.mean([peak.sum() for peak in peaks]))

    def loss_and_gradient(weights: Rows) -> tuple[float, Rows]:
        total = (weights @ flat).reshape(n_tasks, n_classes)
        value, slope = 0.0, np.zeros((n_tasks, n_classes))
        for log_prior, likelihood in zip(log_priors, likelihoods, strict=True):
            prior = total + log_prior
            prior -= prior.max(axis=1, keepdims=True)
            np.exp(prior, out=prior)
            prior /= prior.sum(axis=1, keepdims=True)
            joint = prior * likelihood
            marginal = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
            value += float(np.log(marginal).sum())
            slope += joint / marginal - prior
        value, slope = value / len(likelihoods), slope / len(likelihoods)
        value -= 0.5 * ridge * float(weights @ weights)
        return -value / n_tasks, (ridge * weights - flat @ slope.ravel()) / n_tasks

    result = minimize(
        loss_and_gradient,
        np.full(n_scores, 1.0) if start is None else np.clip(start, 0, MAX_WEIGHT),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, MAX_WEIGHT)] * n_scores,
        options={"maxiter": MAX_STEPS, "ftol": 1e-10, "gtol": 1e-7},
    )
    return ScoreWeights(result.x, -float(result.fun) + constant / n_tasks)
