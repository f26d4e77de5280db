"""Meta-gradient of Coupled Confusion Correction: trusted labels, groups of workers, and corrections.

A correction V_g is added to the matrices of all workers in a group g. The correction that would have improved the
network on trusted labels is found by looking one step ahead:

    θ̂(V) = θ − η ∇_θ L(θ, T + V)         the step
    G_g   = ∂ L_meta(θ̂(V)) / ∂V_g at V = 0

L is the loss of CrowdLayer on a batch of votes, and L_meta the cross-entropy of the trusted labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.learn.crowd_layer import compute_layer_scores
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.vote_tensors import MIN_TOTAL_WEIGHT, Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor

#: Number of workers from which on K-means uses minibatches, to bound its time.
MANY_WORKERS = 20_000
#: Largest entry of a meta-gradient that counts as zero, without a direction.
MIN_GRADIENT = 1e-30


class TrustedLabels(NamedTuple):
    """Labels that a network trusts.

    Attributes
    ----------
    task, label : Tensor of shape (n_labels,)
        Task code and class code of every label.
    """

    task: Tensor
    label: Tensor


def list_voted_labels(vote_tensors: VoteTensors, n_classes: int) -> TrustedLabels:
    """Return every label that a task received, once.

    Parameters
    ----------
    vote_tensors : VoteTensors
        Votes.
    n_classes : int
        Number of classes.

    Returns
    -------
    TrustedLabels

    Examples
    --------
    >>> torch = import_torch()
    >>> vote_tensors = VoteTensors(*map(torch.tensor, ([0, 2, 3], [0, 1, 0], [1, 1, 0], [1.0, 1.0, 1.0])))
    >>> [codes.tolist() for codes in list_voted_labels(vote_tensors, n_classes=2)]
    [[0, 1], [1, 0]]
    """
    torch = import_torch()
    distinct = torch.unique(torch.repeat_interleave(vote_tensors.offset.diff()) * n_classes + vote_tensors.label)
    return TrustedLabels(distinct // n_classes, distinct % n_classes)


def select_trusted_labels(class_log_probs: Tensor, labels: TrustedLabels, size: int) -> TrustedLabels:
    """Return the labels that a network finds most probable, equally many of every class.

    Parameters
    ----------
    class_log_probs : Tensor of shape (n_tasks, n_classes)
        Class log-probabilities of the network.
    labels : TrustedLabels
        Labels to select from.
    size : int
        Number of labels to select over all classes.

    Returns
    -------
    TrustedLabels

    Examples
    --------
    >>> torch = import_torch()
    >>> labels = TrustedLabels(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 0, 1]))
    >>> selected = select_trusted_labels(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]).log(), labels, size=2)
    >>> selected.task.tolist(), selected.label.tolist()
    ([0, 2], [0, 1])
    """
    torch = import_torch()
    n_classes, (task, label) = class_log_probs.shape[1], labels
    order = torch.argsort(class_log_probs[task, label], descending=True, stable=True)
    order = order[torch.argsort(label[order], stable=True)]
    count = torch.bincount(label, minlength=n_classes)
    rank = torch.arange(len(order), device=order.device) - (torch.cumsum(count, 0) - count)[label[order]]
    selected = order[rank < max(1, size // n_classes)]
    return TrustedLabels(task[selected], label[selected])


def cluster_workers(matrices: NDArray[Any], n_groups: int, random_state: int) -> NDArray[np.int64]:
    """Return the group of each worker by K-means over their matrices.

    Parameters
    ----------
    matrices : ndarray of shape (n_workers, ...)
        Matrices of the workers.
    n_groups : int
        Largest number of groups.
    random_state : int
        Seed.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> cluster_workers(np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 5.0]]), 2, random_state=0).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    points = np.asarray(matrices, dtype=np.float64).reshape(len(matrices), -1)
    kind = MiniBatchKMeans if len(points) > MANY_WORKERS else KMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # with fewer distinct workers than groups, some stay empty
        groups = kind(min(n_groups, len(points)), n_init=1, random_state=random_state).fit_predict(points)
    return np.asarray(groups, dtype=np.int64)


def compute_head_gradient(
    batch: Batch, group: Tensor, n_groups: int, rate: float, hidden: Tensor, label: Tensor
) -> Tensor:
    """Return G when only the last layer o = W h + b looks ahead, in closed form.

    With p = softmax(o), the label probabilities a = softmax(Tᵀp) of a vote, its error e = a − [y], and J(p)s = p ⊙ (s
    − pᵀs),

        ∂L/∂o_i = J(p_i) Σ_r T_r e_ir,    P = ∂L_meta/∂(W, b) at the head after the step,    s_i = P_W h_i + P_b,
        v_i = J(p_i) s_i,    G_g = −η Σ_{r in g} [v_i e_irᵀ + p_i (J(a_ir) T_rᵀ v_i)ᵀ]        summed over votes by weight.

    There are no second derivatives and no tensor of tasks x workers; the cost is proportional to the votes.

    Parameters
    ----------
    batch : Batch
        Tasks and votes of the step.
    group : Tensor of shape (n_workers,)
        Group of each worker.
    n_groups : int
        Number of groups.
    rate : float
        Step size η.
    hidden : Tensor of shape (n_trusted, n_hidden)
        Inputs of the last layer for the trusted tasks.
    label : Tensor of shape (n_trusted,)
        Trusted labels.

    Returns
    -------
    Tensor of shape (n_groups, n_classes, n_classes)
    """
    torch = import_torch()
    p = (
        batch.class_probs.detach()
    )  # computed outside of the block below, since the first access decides on its gradient
    with torch.no_grad():
        head, h = batch.network.head, batch.hidden
        weight, bias = head.weight, head.bias
        matrices = batch.network.worker_rows("T", batch.worker)
        p_vote = p.index_select(0, batch.task)
        a = torch.softmax(torch.bmm(p_vote[:, None], matrices)[:, 0], dim=1)
        e = a.clone()
        e[torch.arange(len(e), device=e.device), batch.label] -= 1
        share = (batch.weight / batch.weight.sum().clamp_min(MIN_TOTAL_WEIGHT))[:, None]

        back = torch.zeros_like(p).index_add_(0, batch.task, share * torch.bmm(matrices, e[:, :, None])[:, :, 0])
        slope = _apply_softmax_jacobian(p, back)
        if batch.gold is not None:
            slope[batch.gold >= 0] = 0.0  # a certain class does not depend on the network
        ahead_weight = weight - rate * slope.T @ h
        ahead_bias = bias if bias is None else bias - rate * slope.sum(0)
        off = torch.softmax(torch.nn.functional.linear(hidden, ahead_weight, ahead_bias), dim=1)
        # The sum over the other classes, not one minus the probability of the label, which rounds to zero for a confident network.
        off.scatter_(1, label[:, None], 0.0)
        off.scatter_(1, label[:, None], -off.sum(dim=1, keepdim=True))
        off /= len(off)
        s = h @ (off.T @ hidden).T
        if bias is not None:
            s += off.sum(0)
        v = _apply_softmax_jacobian(p, s)
        if batch.gold is not None:
            v[batch.gold >= 0] = 0.0
        v_vote = v.index_select(0, batch.task)
        w = torch.bmm(v_vote[:, None], matrices)[:, 0]
        vote_gradient = (
            v_vote[:, :, None] * (share * e)[:, None]
            + p_vote[:, :, None] * (share * _apply_softmax_jacobian(a, w))[:, None]
        )
        n_classes = p.shape[1]
        total = torch.zeros(n_groups, n_classes * n_classes, dtype=p.dtype, device=p.device)
        total.index_add_(0, group[batch.worker], vote_gradient.flatten(1))
        return -rate * total.view(n_groups, n_classes, n_classes)


def compute_full_gradient(
    batch: Batch, group: Tensor, n_groups: int, rate: float, inputs: Tensor, label: Tensor
) -> Tensor:
    """Return G when all layers look ahead, by differentiating through the step, without dropout.

    Parameters
    ----------
    batch : Batch
        Tasks and votes of the step.
    group : Tensor of shape (n_workers,)
        Group of each worker.
    n_groups : int
        Number of groups.
    rate : float
        Step size η.
    inputs : Tensor of shape (n_trusted, ...)
        Prepared features of the trusted tasks.
    label : Tensor of shape (n_trusted,)
        Trusted labels.

    Returns
    -------
    Tensor of shape (n_groups, n_classes, n_classes)
    """
    torch = import_torch()
    functional_call, grad = torch.func.functional_call, torch.func.grad
    functional = torch.nn.functional
    network = batch.network
    with network.eval_mode():
        module = torch.nn.Sequential(network.trunk, network.head)
        start = {name: weight.detach() for name, weight in module.named_parameters()}
        matrices = network.worker_rows("T", batch.worker).detach()
        vote_group = group[batch.worker]

        def compute_meta_loss(correction: Tensor) -> Any:
            def compute_loss(parameters: dict[str, Tensor]) -> Tensor:
                ahead = replace(batch, logits=functional_call(module, parameters, (batch.inputs,)))
                scores = compute_layer_scores(ahead, matrices + correction[vote_group])
                return batch.weighted_mean(functional.cross_entropy(scores, batch.label, reduction="none"))

            slope = grad(compute_loss)(start)
            after = {name: weight - rate * slope[name] for name, weight in start.items()}
            return functional.cross_entropy(functional_call(module, after, (inputs,)), label)

        n_classes = batch.logits.shape[1]
        zero = torch.zeros(n_groups, n_classes, n_classes, dtype=matrices.dtype, device=matrices.device)
        gradient: Tensor = grad(compute_meta_loss)(zero)
        return gradient.detach()


def scale_correction(gradient: Tensor, gamma: float, largest: float) -> Tensor:
    """Return V = −γ max(T) G / max|G|, whose size is relative to the matrices.

    Parameters
    ----------
    gradient : Tensor
        Meta-gradient G.
    gamma : float
        Relative size γ.
    largest : float
        Largest entry of the matrices T.

    Returns
    -------
    Tensor of the same shape
        Zero if the gradient is zero.

    Examples
    --------
    >>> scale_correction(import_torch().tensor([[[0.5, -0.25]]]), gamma=0.5, largest=2.0).tolist()
    [[[-1.0, 0.5]]]
    >>> float(scale_correction(import_torch().zeros(1, 1, 1), gamma=0.5, largest=2.0).abs().max())
    0.0
    """
    steepest = gradient.abs().max()
    scale = import_torch().where(steepest > MIN_GRADIENT, gamma * abs(largest) / steepest.clamp_min(MIN_GRADIENT), 0.0)
    return -scale * gradient


def _apply_softmax_jacobian(p: Tensor, s: Tensor) -> Tensor:
    """Return J(p) s, row by row."""
    return p * (s - (p * s).sum(dim=1, keepdim=True))
