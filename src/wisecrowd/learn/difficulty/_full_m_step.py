"""M-step of a classifier that determines the easiness of tasks.

It maximises  Σ_i Σ_k q_ik [ log f_k(x_i) + log P(votes on i | k; a s(f(x_i))) ] − λ/2 ‖W‖²

A step that fits the posterior alone (the plug-in step) can lower the likelihood. This step cannot, if it is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.errors import UsageError
from wisecrowd.learn.difficulty._responses import Array, Responses, compute_easiness, compute_easiness_gradient
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.network_classifier import NetworkClassifier

if TYPE_CHECKING:
    from torch import Tensor

#: Number of L-BFGS steps in an M-step. They need not converge, because the next M-step continues from there.
LBFGS_STEPS = 20


def fit_full(classifier: SoftClassifier, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
    """Improve a fitted classifier by L-BFGS (logistic regression) or by some epochs of training (networks).

    Parameters
    ----------
    classifier : Logistic or NetworkClassifier
        Classifier, fitted before.
    X : ndarray of shape (n_tasks, ...)
        Features.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of the tasks.
    ability : ndarray of shape (n_workers, n_classes, ...)
        Abilities of the workers.
    responses : Responses
        Votes on the tasks.

    Raises
    ------
    UsageError
        If the classifier has no gradient, or a network meets workers with matrices.
    """
    if isinstance(classifier, Logistic):
        _fit_logistic(classifier, X, posterior, ability, responses)
    elif isinstance(classifier, NetworkClassifier) and ability.ndim > 2:
        raise UsageError('m_step="full" of a network has no worker_model="matrix"; use m_step="plugin"')
    elif isinstance(classifier, NetworkClassifier):
        _fit_network(classifier, X, posterior, ability, responses)
    else:
        raise UsageError(
            f'm_step="full" needs the gradient of the classifier, which {type(classifier).__name__} does not have; use '
            '"logistic", a network, or m_step="plugin"'
        )


def _fit_logistic(classifier: Logistic, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
    from scipy.optimize import minimize

    assert classifier.coefficients is not None
    rows = classifier.standardiser.apply(X.reshape(len(X), -1))
    shape, size = classifier.coefficients.shape, max(float(len(rows)), 1.0)

    def loss_and_gradient(flat: Array) -> tuple[float, Array]:
        coefficients = flat.reshape(shape)
        logits = rows @ coefficients[:-1] + coefficients[-1]
        share = softmax(logits, axis=1)
        peak = logits.max(axis=1)
        log_total = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
        vote_value, easiness_gradient = responses.expected_log_likelihood(posterior, ability, compute_easiness(share))
        value = np.einsum("nk,nk->", posterior, logits) - log_total.sum() + vote_value
        value -= 0.5 * classifier.ridge * np.einsum("dk,dk->", coefficients[:-1], coefficients[:-1])
        gradient = posterior - share + easiness_gradient[:, None] * compute_easiness_gradient(share)
        weight_gradient = rows.T @ gradient - classifier.ridge * coefficients[:-1]
        return -float(value) / size, -np.vstack([weight_gradient, gradient.sum(axis=0)]).ravel() / size

    options = {"maxiter": LBFGS_STEPS, "gtol": classifier.tol, "ftol": 1e-12}
    start = classifier.coefficients.ravel()
    result = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    classifier.coefficients = result.x.reshape(shape)


def _fit_network(
    classifier: NetworkClassifier, X: Array, posterior: Array, ability: Array, responses: Responses
) -> None:
    torch = import_torch()
    trainer = classifier.trainer
    assert trainer is not None
    n_classes = responses.n_classes
    inputs = classifier.to_tensor(classifier.prepare_rows(X))
    targets, abilities = classifier.to_tensor(posterior), classifier.to_tensor(ability)
    device = inputs.device
    worker = torch.as_tensor(np.array(responses.worker), device=device, dtype=torch.int64)
    label = torch.as_tensor(np.array(responses.label), device=device, dtype=torch.int64)
    weight = None if responses.weight is None else classifier.to_tensor(responses.weight)
    offset = np.searchsorted(responses.task, np.arange(responses.n_tasks + 1))
    first_vote, n_votes = (torch.as_tensor(part, device=device) for part in (offset[:-1], np.diff(offset)))
    classes = torch.arange(n_classes, device=device)

    def loss(batch: Tensor) -> Tensor:
        log_share = torch.log_softmax(trainer.model(inputs[batch]), dim=1)
        easiness = n_classes / (n_classes - 1) * ((log_share.exp() - 1 / n_classes) ** 2).sum(dim=1)
        counts = n_votes[batch]
        row = torch.repeat_interleave(torch.arange(len(batch), device=device), counts)
        vote = torch.arange(len(row), device=device) + (first_vote[batch] - counts.cumsum(0) + counts)[row]
        log_odds = abilities[worker[vote]] * easiness[row, None] - np.log(n_classes - 1)  # (votes, classes)
        vote_log_prob = torch.nn.functional.logsigmoid(torch.where(label[vote, None] == classes, log_odds, -log_odds))
        if weight is not None:
            vote_log_prob = vote_log_prob * weight[vote, None]
        total = (targets[batch] * log_share).sum() + (targets[batch][row] * vote_log_prob).sum()
        return -total / len(batch)

    trainer.run(loss, len(inputs), epochs=classifier.epochs_per_fit)
