"""The meta-gradient against finite differences, and what one network hands the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from wisecrowd import CrowdLayer, simulate_crowd
from wisecrowd.learn.ccc._correction import (
    cluster_workers,
    compute_full_gradient,
    compute_head_gradient,
    list_voted_labels,
    scale_correction,
    select_trusted_labels,
)
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.vote_tensors import Batch, VoteTensors

torch = import_torch()
RATE, N_GROUPS, N_TRUSTED = 0.3, 3, 7


@pytest.fixture(params=["mlp", "linear"])
def scene(request: pytest.FixtureRequest) -> tuple[Batch, Any, Any, Any]:
    """A batch of votes as a network with worker matrices sees it, groups of workers, and trusted tasks."""
    made = simulate_crowd(n_tasks=20, n_workers=6, n_classes=3, votes_per_task=2)
    generator = torch.Generator().manual_seed(0)
    model = CrowdLayer(classifier=request.param, hidden=5, dropout=0.0)
    network = model._make_builder([4], 6, 3).build(0)
    network.module.to(torch.float64)
    with torch.no_grad():
        for each in network.module.parameters():
            each += 0.5 * torch.randn(each.shape, generator=generator, dtype=torch.float64)
    inputs = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    vote_tensors = VoteTensors.from_crowd(made.crowd, like=inputs)
    batch = Batch(network, inputs, *network(inputs), *vote_tensors.select_tasks(torch.arange(20)))
    group = torch.tensor([0, 1, 2, 0, 1, 0])
    trusted = torch.randn(N_TRUSTED, 4, generator=generator, dtype=torch.float64)
    return batch, group, trusted, torch.randint(3, (N_TRUSTED,), generator=generator)


def hidden_of(network: CrowdNetwork, inputs: Any) -> Any:
    """Inputs of the last layer, without dropout."""
    with network.eval_mode(), torch.no_grad():
        return network.compute_hidden(inputs)


def ahead(batch: Batch, group: Any, inputs: Any, label: Any, correction: Any, *, only_head: bool) -> float:
    """The meta loss after the step, by brute force."""
    network = batch.network
    parameters = (
        list(network.head.parameters()) if only_head else [*network.trunk.parameters(), *network.head.parameters()]
    )
    p = torch.softmax(network(batch.inputs)[1], dim=1)[batch.task]
    s = torch.einsum(
        "nk,nkl->nl", p, network.worker_table("T").detach()[batch.worker] + correction[group[batch.worker]]
    )
    loss = torch.nn.functional.cross_entropy(s, batch.label)
    slopes = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        before = [each.clone() for each in parameters]
        for each, slope in zip(parameters, slopes, strict=True):
            each -= RATE * slope
        found = float(torch.nn.functional.cross_entropy(network(inputs)[1], label))
        for each, was in zip(parameters, before, strict=True):
            each.copy_(was)
    return found


def differences(batch: Batch, group: Any, inputs: Any, label: Any, *, only_head: bool) -> Any:
    """∂ meta loss / ∂V by central differences."""
    found = torch.zeros(N_GROUPS, 3, 3, dtype=torch.float64)
    for place in np.ndindex(N_GROUPS, 3, 3):
        at = []
        for sign in (1, -1):
            correction = torch.zeros(N_GROUPS, 3, 3, dtype=torch.float64)
            correction[place] = sign * 1e-5
            at.append(ahead(batch, group, inputs, label, correction, only_head=only_head))
        found[place] = (at[0] - at[1]) / 2e-5
    return found


def test_the_closed_form_is_the_derivative_through_the_head(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, group, inputs, label = scene
    found = compute_head_gradient(batch, group, N_GROUPS, RATE, hidden_of(batch.network, inputs), label)
    wanted = differences(batch, group, inputs, label, only_head=True)
    assert float(wanted.abs().max()) > 1e-4
    assert torch.allclose(found, wanted, atol=1e-9)


def test_the_full_gradient_is_the_derivative_through_all_layers(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, group, inputs, label = scene
    found = compute_full_gradient(batch, group, N_GROUPS, RATE, inputs, label)
    assert torch.allclose(found, differences(batch, group, inputs, label, only_head=False), atol=1e-9)


def test_the_two_agree_where_the_head_is_the_whole_network(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, group, inputs, label = scene
    head = compute_head_gradient(batch, group, N_GROUPS, RATE, hidden_of(batch.network, inputs), label)
    full = compute_full_gradient(batch, group, N_GROUPS, RATE, inputs, label)
    is_whole = isinstance(batch.network.trunk, torch.nn.Identity)
    assert torch.allclose(head, full, atol=1e-12) == is_whole


def test_weights_and_known_truth_are_part_of_it(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, group, inputs, label = scene
    hidden = hidden_of(batch.network, inputs)
    batch.weight = torch.linspace(0.5, 2, len(batch.task), dtype=torch.float64)
    batch.gold = torch.where(torch.arange(20) < 5, 1, -1)
    batch.__dict__.pop("class_log_probs", None)
    head = compute_head_gradient(batch, group, N_GROUPS, RATE, hidden, label)
    full = compute_full_gradient(batch, group, N_GROUPS, RATE, inputs, label)
    if isinstance(batch.network.trunk, torch.nn.Identity):
        assert torch.allclose(head, full, atol=1e-12)
    certain = torch.ones_like(batch.logits[:, 0], dtype=torch.long)
    nothing = compute_head_gradient(
        replace(batch, gold=certain),
        group, N_GROUPS, RATE, hidden, label,
    )  # fmt: skip
    assert float(nothing.abs().max()) == 0  # if all is known, no step depends on the matrices


def test_a_group_without_votes_is_not_corrected(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, _, inputs, label = scene
    alone = torch.zeros(6, dtype=torch.long)
    found = compute_head_gradient(batch, alone, N_GROUPS, RATE, hidden_of(batch.network, inputs), label)
    assert float(found[1:].abs().max()) == 0
    assert float(found[0].abs().max()) > 0


def test_one_group_has_the_sum_of_what_single_workers_have(scene: tuple[Batch, Any, Any, Any]) -> None:
    batch, _, inputs, label = scene
    hidden = hidden_of(batch.network, inputs)
    single = compute_head_gradient(batch, torch.arange(6), 6, RATE, hidden, label)
    together = compute_head_gradient(batch, torch.zeros(6, dtype=torch.long), 1, RATE, hidden, label)
    assert torch.allclose(single.sum(0, keepdim=True), together, atol=1e-14)


@pytest.mark.parametrize("largest", [2.0, -2.0])
def test_the_largest_correction_is_gamma_times_the_largest_entry(largest: float) -> None:
    gradient = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(1))
    assert float(scale_correction(gradient, 0.5, largest).abs().max()) == pytest.approx(1.0)
    assert float(scale_correction(0 * gradient, 0.5, largest).abs().max()) == 0


def test_trusted_labels_are_the_most_probable_of_every_class_and_were_given() -> None:
    made = simulate_crowd(n_tasks=300, n_workers=20, n_classes=4, votes_per_task=3)
    crowd = made.crowd
    labels = list_voted_labels(VoteTensors.from_crowd(crowd), 4)
    log_p = torch.log_softmax(torch.randn(300, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    task, label = select_trusted_labels(log_p, labels, size=40)
    assert torch.bincount(label).tolist() == [10] * 4
    all_given = set(zip(crowd.task.tolist(), crowd.label.tolist(), strict=True))
    chosen = set(zip(task.tolist(), label.tolist(), strict=True))
    assert len(chosen) == 40
    assert chosen <= all_given
    for k in range(4):
        least = min(float(log_p[i, j]) for i, j in chosen if j == k)
        assert all(float(log_p[i, j]) <= least for i, j in all_given - chosen if j == k)


def test_a_class_with_few_labels_gives_all_it_has() -> None:
    crowd = simulate_crowd(n_tasks=30, n_workers=5, n_classes=2).crowd
    task, label = select_trusted_labels(
        torch.zeros(30, 2), list_voted_labels(VoteTensors.from_crowd(crowd), 2), size=10_000
    )
    assert len(task) == len(set(zip(crowd.task.tolist(), crowd.label.tolist(), strict=True)))
    assert torch.bincount(label).tolist() == [len(set(crowd.task[crowd.label == k])) for k in (0, 1)]


def test_groups_are_at_most_as_many_as_workers_and_alike_for_the_alike() -> None:
    tables = np.concatenate([np.eye(3)[None].repeat(4, 0), np.ones((3, 3, 3))])
    assert len(set(cluster_workers(tables, 2, 0)[:4])) == len(set(cluster_workers(tables, 2, 0)[4:])) == 1
    assert cluster_workers(tables, 50, 0).max() < 7


def test_looking_at_trusted_tasks_leaves_the_network_in_training() -> None:
    network = CrowdNetwork("mlp", (3,), 2, hidden=4, dropout=0.5)
    network.module.train()
    hidden_of(network, torch.zeros(5, 3))
    assert all(part.training for part in network.module.modules())
