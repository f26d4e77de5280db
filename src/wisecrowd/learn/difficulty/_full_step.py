"""The M-step of a classifier on which the easiness of tasks depends: it must fit the posterior *and* explain the votes.

    maximises  Σ_i Σ_k q_ik [ log f_k(x_i) + log P(votes on i | k; a s(f(x_i))) ] − λ/2 ‖W‖²

A step that fits the posterior alone (the plug-in step) can lower the likelihood; this one cannot, if it climbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from wisecrowd.classifiers.soft import Logistic, SoftClassifier
from wisecrowd.errors import UsageError
from wisecrowd.learn.difficulty._responses import Array, Responses, easiness_of, easiness_slope

if TYPE_CHECKING:
    from torch import Tensor

    from wisecrowd.nn.network_classifier import Network

#: Iterations of L-BFGS in one step. Nothing is lost if it does not reach the top: the next step goes on.
CLIMB = 20


def teach(model: SoftClassifier, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
    """One full step from where the classifier is: L-BFGS for logistic regression, some epochs of SGD for a network."""
    if isinstance(model, Logistic):
        _climb(model, X, posterior, ability, responses)
        return
    if hasattr(model, "trainer"):
        _train(model, X, posterior, ability, responses)  # type: ignore[arg-type]  # importing Network imports torch
        return
    raise UsageError(
        f'm_step="full" needs the gradient of the classifier, which {type(model).__name__} does not give; use '
        '"logistic" or a network, or m_step="plugin"'
    )


def _climb(model: Logistic, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
    from scipy.optimize import minimize

    assert model.coefficients is not None
    rows = model.standardiser.apply(X.reshape(len(X), -1))
    shape, size = model.coefficients.shape, max(float(len(rows)), 1.0)

    def against(flat: Array) -> tuple[float, Array]:
        coefficients = flat.reshape(shape)
        logits = rows @ coefficients[:-1] + coefficients[-1]
        share = softmax(logits, axis=1)
        peak = logits.max(axis=1)
        normaliser = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
        votes, by_easiness = responses.expected(posterior, ability, easiness_of(share))
        value = np.einsum("nk,nk->", posterior, logits) - normaliser.sum() + votes
        value -= 0.5 * model.ridge * np.einsum("dk,dk->", coefficients[:-1], coefficients[:-1])
        slope = posterior - share + by_easiness[:, None] * easiness_slope(share)
        by_weight = rows.T @ slope - model.ridge * coefficients[:-1]
        return -float(value) / size, -np.vstack([by_weight, slope.sum(axis=0)]).ravel() / size

    options = {"maxiter": CLIMB, "gtol": model.tol, "ftol": 1e-12}
    begin = model.coefficients.ravel()
    model.coefficients = minimize(against, begin, jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


def _train(model: Network, X: Array, posterior: Array, ability: Array, responses: Responses) -> None:
    import torch
    from torch.nn.functional import logsigmoid

    trainer = model.trainer
    assert trainer is not None
    n_classes = responses.n_classes
    inputs, wanted, able = model.tensor(model.rows(X)), model.tensor(posterior), model.tensor(ability)
    device = inputs.device
    worker = torch.as_tensor(np.array(responses.worker), device=device, dtype=torch.int64)
    label = torch.as_tensor(np.array(responses.label), device=device, dtype=torch.int64)
    weight = None if responses.weight is None else model.tensor(responses.weight)
    offset = np.searchsorted(responses.task, np.arange(responses.n_tasks + 1))
    first, count = (torch.as_tensor(part, device=device) for part in (offset[:-1], np.diff(offset)))
    classes = torch.arange(n_classes, device=device)

    def loss(batch: Tensor) -> Tensor:
        log_share = torch.log_softmax(trainer.model(inputs[batch]), dim=1)
        easiness = n_classes / (n_classes - 1) * ((log_share.exp() - 1 / n_classes) ** 2).sum(dim=1)
        here = count[batch]
        place = torch.repeat_interleave(torch.arange(len(batch), device=device), here)
        vote = torch.arange(len(place), device=device) + (first[batch] - here.cumsum(0) + here)[place]
        odds = able[worker[vote]] * easiness[place, None] - np.log(n_classes - 1)  # (votes, classes)
        chance = logsigmoid(torch.where(label[vote, None] == classes, odds, -odds))
        if weight is not None:
            chance = chance * weight[vote, None]
        return -((wanted[batch] * log_share).sum() + (wanted[batch][place] * chance).sum()) / len(batch)

    trainer.run(loss, len(inputs), epochs=model.epochs_per_fit)
