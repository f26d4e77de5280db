"""The parts of Coupled Confusion Correction: what one network teaches the other, groups, and the meta-gradient.

A correction V_g is added to the matrices of all workers in a group. Which one would have made the network better on tasks
whose labels can be trusted is found by looking one step ahead:

    θ̂(V) = θ − η ∇_θ L(θ, T + V)         the step that would be taken
    G_g   = ∂ L_meta(θ̂(V)) / ∂V_g at V = 0

with L the loss of CrowdLayer on a batch of votes and L_meta the cross-entropy on the trusted tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

if TYPE_CHECKING:
    from torch import Tensor

    from wisecrowd.nn.crowd_network import CrowdNetwork

#: Workers from which on K-means looks at a sample of them in each of its passes.
MANY_WORKERS = 20_000
#: A meta-gradient below this has no direction.
NO_DIRECTION = 1e-30


class Trusted(NamedTuple):
    """Tasks, by number, with the labels that a network believes most."""

    task: Tensor
    label: Tensor


def given(vote_tensors: VoteTensors, n_classes: int) -> Trusted:
    """Every label that a task was given by somebody, once.

    >>> torch = need_torch()
    >>> vote_tensors = VoteTensors(*map(torch.tensor, ([0, 2, 3], [0, 1, 0], [1, 1, 0], [1.0, 1.0, 1.0])))
    >>> [side.tolist() for side in given(vote_tensors, n_classes=2)]
    [[0, 1], [1, 0]]
    """
    torch = need_torch()
    once = torch.unique(torch.repeat_interleave(vote_tensors.offset.diff()) * n_classes + vote_tensors.label)
    return Trusted(once // n_classes, once % n_classes)


def distilled(log_p: Tensor, labels: Trusted, size: int) -> Trusted:
    """Of the labels that somebody gave, those that a network finds most probable, as many of every class.

    ``log_p`` (tasks, classes) is the network's word.

    >>> torch = need_torch()
    >>> labels = Trusted(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 0, 1]))
    >>> found = distilled(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]).log(), labels, size=2)
    >>> found.task.tolist(), found.label.tolist()
    ([0, 2], [0, 1])
    """
    torch = need_torch()
    n_classes, (task, label) = log_p.shape[1], labels
    order = torch.argsort(log_p[task, label], descending=True, stable=True)
    order = order[torch.argsort(label[order], stable=True)]
    count = torch.bincount(label, minlength=n_classes)
    rank = torch.arange(len(order), device=order.device) - (torch.cumsum(count, 0) - count)[label[order]]
    chosen = order[rank < max(1, size // n_classes)]
    return Trusted(task[chosen], label[chosen])


def grouped(matrices: NDArray[Any], n_groups: int, seed: int) -> NDArray[np.int64]:
    """The group of each worker, by K-means over their matrices; no more groups than there are different workers.

    >>> grouped(np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 5.0]]), 2, seed=0).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    points = np.asarray(matrices, dtype=np.float64).reshape(len(matrices), -1)
    kind = MiniBatchKMeans if len(points) > MANY_WORKERS else KMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different workers than groups: some stay empty
        found = kind(min(n_groups, len(points)), n_init=1, random_state=seed).fit_predict(points)
    return np.asarray(found, dtype=np.int64)


def head_gradient(batch: Batch, group: Tensor, n_groups: int, rate: float, hidden: Tensor, label: Tensor) -> Tensor:
    """G when only the last layer o = W h + b looks ahead, in closed form: (groups, true, said).

    ``hidden`` (tasks, units) and ``label`` are of the trusted tasks, ``rate`` is η. With p = softmax(o), a vote's answer
    a = softmax(Tᵀp), its error e = a − [y], and J(p)s = p ⊙ (s − pᵀs),

        ∂L/∂o_i = J(p_i) Σ_r T_r e_ir,    P = ∂L_meta/∂(W, b) at the head after the step,    s_i = P_W h_i + P_b,
        v_i = J(p_i) s_i,    G_g = −η Σ_{r in g} [v_i e_irᵀ + p_i (J(a_ir) T_rᵀ v_i)ᵀ]        summed over votes by weight.

    No second derivative is built, and no tensor of tasks x workers; the cost is that of the votes.
    """
    torch = need_torch()
    p = batch.p.detach()  # asked for outside the block below, since who asks first decides whether it has a gradient
    with torch.no_grad():
        head, h = batch.network.head, batch.hidden
        weight, bias = head.weight, head.bias
        matrices = batch.network.rows_of("T", batch.worker)
        p_vote = p[batch.row]
        a = torch.softmax(torch.bmm(p_vote[:, None], matrices)[:, 0], dim=1)
        e = a.clone()
        e[torch.arange(len(e), device=e.device), batch.label] -= 1
        share = (batch.weight / batch.weight.sum().clamp_min(1e-12))[:, None]

        back = torch.zeros_like(p).index_add_(0, batch.row, share * torch.bmm(matrices, e[:, :, None])[:, :, 0])
        slope = _through_softmax(p, back)
        if batch.known is not None:
            slope[batch.known >= 0] = 0.0  # what is certain does not move with the network
        ahead_weight = weight - rate * slope.T @ h
        ahead_bias = bias if bias is None else bias - rate * slope.sum(0)
        off = torch.softmax(torch.nn.functional.linear(hidden, ahead_weight, ahead_bias), dim=1)
        # The probability of all else, not one minus that of the label: a network that is sure leaves nothing of the latter.
        off.scatter_(1, label[:, None], 0.0)
        off.scatter_(1, label[:, None], -off.sum(dim=1, keepdim=True))
        off /= len(off)
        s = h @ (off.T @ hidden).T
        if bias is not None:
            s += off.sum(0)
        v = _through_softmax(p, s)
        if batch.known is not None:
            v[batch.known >= 0] = 0.0
        v_vote = v[batch.row]
        w = torch.bmm(v_vote[:, None], matrices)[:, 0]
        each = (
            v_vote[:, :, None] * (share * e)[:, None] + p_vote[:, :, None] * (share * _through_softmax(a, w))[:, None]
        )
        n_classes = p.shape[1]
        total = torch.zeros(n_groups, n_classes * n_classes, dtype=p.dtype, device=p.device)
        total.index_add_(0, group[batch.worker], each.flatten(1))
        return -rate * total.view(n_groups, n_classes, n_classes)


def full_gradient(batch: Batch, group: Tensor, n_groups: int, rate: float, inputs: Tensor, label: Tensor) -> Tensor:
    """G when all layers look ahead, by differentiating through the step: (groups, true, said).

    ``inputs`` and ``label`` are of the trusted tasks. Dropout is off, and norms of batches stay as they are.
    """
    torch = need_torch()
    from torch.func import functional_call, grad

    functional = torch.nn.functional
    network = batch.network
    with network.resting():
        both = torch.nn.Sequential(network.trunk, network.head)
        start = {name: each.detach() for name, each in both.named_parameters()}
        matrices = network.rows_of("T", batch.worker).detach()
        of_vote = group[batch.worker]

        def ahead(correction: Tensor) -> Any:
            def loss(parameters: dict[str, Tensor]) -> Tensor:
                logits = functional_call(both, parameters, (batch.inputs,))
                p = Batch(network, batch.inputs, batch.hidden, logits, batch.row, batch.worker, batch.label, batch.weight,
                         batch.known).p[batch.row]  # fmt: skip
                s = torch.bmm(p[:, None], matrices + correction[of_vote])[:, 0]
                return batch.mean(functional.cross_entropy(s, batch.label, reduction="none"))

            slope = grad(loss)(start)
            after = {name: each - rate * slope[name] for name, each in start.items()}
            return functional.cross_entropy(functional_call(both, after, (inputs,)), label)

        n_classes = batch.logits.shape[1]
        zero = torch.zeros(n_groups, n_classes, n_classes, dtype=matrices.dtype, device=matrices.device)
        found: Tensor = grad(ahead)(zero)
        return found.detach()


def correction_of(gradient: Tensor, gamma: float, largest: float) -> Tensor:
    """V = −γ max(T) G / max|G|: the direction is the gradient's, the size is relative to the matrices.

    >>> correction_of(need_torch().tensor([[[0.5, -0.25]]]), gamma=0.5, largest=2.0).tolist()
    [[[-1.0, 0.5]]]
    >>> float(correction_of(need_torch().zeros(1, 1, 1), gamma=0.5, largest=2.0).abs().max())
    0.0
    """
    steepest = gradient.abs().max()
    scale = need_torch().where(steepest > NO_DIRECTION, gamma * abs(largest) / steepest.clamp_min(NO_DIRECTION), 0.0)
    return -scale * gradient


def hidden_of(network: CrowdNetwork, inputs: Tensor) -> Tensor:
    """What the last layer is given, with dropout off."""
    with network.resting(), need_torch().no_grad():
        return network.hidden(inputs)


def _through_softmax(p: Tensor, s: Tensor) -> Tensor:
    """J(p) s, row by row."""
    return p * (s - (p * s).sum(dim=1, keepdim=True))
