"""Latent-class model of judges' answers whose evidence is discounted by the correlation of their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers

Array = NDArray[np.float64]
#: Function of the posterior that returns the log-likelihood of other votes on every task, (n_tasks, n_classes).
EvidenceFunction = Callable[[Array], Array]

#: Pseudo-answers per judge and class, distributed like all answers of the judge.
PSEUDO_ANSWERS = 1.0
#: Iterations after which the discount is not estimated again, so that EM converges.
DISCOUNT_ITERATIONS = 20
#: Largest change of a posterior probability at convergence.
TOLERANCE = 1e-4
#: Tasks from which error correlations are estimated, at most; further tasks change little and cost judges² each.
MAX_CORRELATION_TASKS = 20_000


class ErrorCorrelation(NamedTuple):
    """Dependence between the errors of judges.

    Parameters
    ----------
    correlation : ndarray of shape (n_judges, n_judges)
        Correlation of errors, given the true class; shrunk towards independence if there are few tasks.
    separation : ndarray of shape (n_judges,)
        Squared distance between the classes in the evidence of each judge, in units of its error variance.
    n_effective : float
        Number of independent judges with the same information about the truth.
    kish : float
        Design effect form of the same number, J / (1 + (J − 1) ρ̄), for judges that count equally.
    """

    correlation: Array
    separation: Array
    n_effective: float
    kish: float


class LatentClasses(NamedTuple):
    """Fitted latent-class model.

    Parameters
    ----------
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of all tasks.
    log_prior : ndarray of shape (n_classes,)
        Log class prior.
    level_logits : ndarray of shape (n_levels, n_classes)
        Discounted log P(answer | class).
    discount : float
        Factor of the log-likelihood of judges.
    evidence : ndarray of shape (n_tasks, n_classes)
        Log-likelihood of other votes.
    """

    posterior: Array
    log_prior: Array
    level_logits: Array
    discount: float
    evidence: Array


def estimate_level_log_probs(answers: CodedAnswers, posterior: Array) -> Array:
    """Return log P(answer | class) of every level, shrunk to the shares of a judge's answers.

    Parameters
    ----------
    answers : CodedAnswers
        Answers.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior.

    Returns
    -------
    ndarray of shape (n_levels, n_classes)
    """
    judge, n_judges = answers.levels.judge, answers.levels.n_judges
    counts = np.asarray(answers.table.T @ posterior)
    total = answers.counts
    share = (total + 1e-9) / (np.bincount(judge, total, n_judges) + 1e-9)[judge]
    by_judge = np.stack([np.bincount(judge, column, n_judges) for column in counts.T], axis=1)
    probs = (counts + PSEUDO_ANSWERS * share[:, None]) / (by_judge + PSEUDO_ANSWERS)[judge]
    return np.log(np.maximum(probs, 1e-12))


def measure_error_correlation(answers: CodedAnswers, posterior: Array) -> ErrorCorrelation:
    """Estimate the correlation of judges' errors given the true class.

    A judge's evidence on a task is log P(answer | class), centred over classes; its error is the deviation from the mean
    evidence under the true class. Truth enters by the posterior, which must be calibrated.

    Parameters
    ----------
    answers : CodedAnswers
        Answers.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior.

    Returns
    -------
    ErrorCorrelation

    Examples
    --------
    >>> from wisecrowd.aggregate.categorical.panel._coded_answers import encode_answers
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=400)
    >>> label = np.where(rng.random(400) < 0.8, truth, 1 - truth)
    >>> task, judge = np.repeat(np.arange(400), 3), np.tile(np.arange(3), 400)
    >>> copies = encode_answers(task, judge, np.repeat(label, 3), n_tasks=400, n_judges=3, is_ordered=False)
    >>> round(measure_error_correlation(copies, np.eye(2)[truth]).n_effective, 1)
    1.0
    """
    evidence = estimate_level_log_probs(answers, posterior)
    evidence -= evidence.mean(axis=1, keepdims=True)
    table, n_judges, n_classes = answers.table, answers.levels.n_judges, posterior.shape[1]
    if table.shape[0] > MAX_CORRELATION_TASKS:
        rows = np.linspace(0, table.shape[0] - 1, MAX_CORRELATION_TASKS).astype(np.int64)
        table, posterior = table[rows], posterior[rows]
    n_levels = len(answers.levels.judge)
    by_judge = sparse.csr_array(
        (np.ones(n_levels), (np.arange(n_levels), answers.levels.judge)), shape=(n_levels, n_judges)
    )
    observed = table @ by_judge
    n_by_class = np.asarray(observed.T @ posterior)
    covariance, between = np.zeros((n_judges, n_judges)), np.zeros((n_judges, n_judges))
    n_common = np.zeros((n_judges, n_judges))
    for k in range(n_classes):
        weighted = sparse.diags_array(posterior[:, k]) @ observed
        n_common_k = (observed.T @ weighted).toarray()
        n_common += n_common_k
        for dimension in range(n_classes):
            values = table @ (sparse.diags_array(evidence[:, dimension]) @ by_judge)
            weighted_values = sparse.diags_array(posterior[:, k]) @ values
            mean = np.asarray(weighted_values.sum(axis=0)).ravel() / np.maximum(n_by_class[:, k], 1e-9)
            cross = (weighted_values.T @ observed).toarray()  # Σ q x_j over tasks of both judges
            covariance += (
                (values.T @ weighted_values).toarray()
                - cross * mean[None, :]
                - cross.T * mean[:, None]
                + np.outer(mean, mean) * n_common_k
            )
            between += np.outer(mean, mean) * n_by_class[:, k].sum() / max(n_by_class.sum(), 1e-9)
    covariance = np.divide(covariance, n_common, out=np.zeros_like(covariance), where=n_common > 0)
    variance = np.diag(covariance).copy()
    informative = np.flatnonzero(variance > 1e-12)
    scale = np.sqrt(np.where(variance > 1e-12, variance, 1.0))
    n_tasks = max(float(n_common.diagonal().max(initial=1.0)), 1.0)
    shrinkage = n_judges / (n_judges + n_tasks)
    correlation = np.clip(covariance / np.outer(scale, scale), -1, 1) * (1 - shrinkage)
    np.fill_diagonal(correlation, 1.0)
    separation_matrix = between / np.outer(scale, scale)
    separation = np.diag(separation_matrix).copy()
    if len(informative) < 2 or separation[informative].sum() <= 0:
        return ErrorCorrelation(correlation, separation, float(min(len(informative), 1)), float(len(informative)))
    part = correlation[np.ix_(informative, informative)]
    mean_correlation = max(float((part.sum() - len(part)) / (len(part) * (len(part) - 1))), 0.0)
    kish = len(part) / (1 + (len(part) - 1) * mean_correlation)
    values, vectors = np.linalg.eigh(part)
    inverse = (vectors / np.maximum(values, 1e-3)) @ vectors.T
    gain = float((inverse * separation_matrix[np.ix_(informative, informative)]).sum())
    weight = separation[informative]
    typical = float((weight**2).sum() / weight.sum())
    return ErrorCorrelation(correlation, separation, float(np.clip(gain / typical, 1.0, len(part))), kish)


def fit_latent_classes(
    answers: CodedAnswers,
    start: Array,
    compute_evidence: EvidenceFunction,
    make_prior: Callable[[Array], Array],
    *,
    max_iter: int = 200,
    discount: float | None = None,
) -> LatentClasses:
    """Fit the latent-class model by EM.

    Parameters
    ----------
    answers : CodedAnswers
        Answers of judges.
    start : ndarray of shape (n_tasks, n_classes)
        Initial posterior.
    compute_evidence : callable
        Function of the posterior that returns the log-likelihood of other votes, such as those of people, and of gold.
    make_prior : callable
        Function of the class counts that returns the class prior.
    max_iter : int, default=200
        Maximum number of iterations.
    discount : float, optional
        Factor of the judges' log-likelihood. By default it is estimated: the effective number of judges, as if all counted
        equally, divided by their number.

    Returns
    -------
    LatentClasses
    """
    posterior = start
    factor = 1.0 if discount is None else discount
    for iteration in range(max_iter):
        if discount is None and iteration in (1, 3, 6, 10, DISCOUNT_ITERATIONS):
            dependence = measure_error_correlation(answers, posterior)
            factor = dependence.kish / max(answers.levels.n_judges, 1)
        log_prior = np.log(np.maximum(make_prior(posterior.sum(axis=0)), 1e-12))
        level_logits = factor * estimate_level_log_probs(answers, posterior)
        evidence = compute_evidence(posterior)
        updated = softmax(log_prior + answers.table @ level_logits + evidence, axis=1)
        change = np.abs(updated - posterior).max(initial=0.0)
        posterior = updated
        if change < TOLERANCE and (discount is not None or iteration > DISCOUNT_ITERATIONS):
            break
    return LatentClasses(posterior, log_prior, level_logits, factor, evidence)
