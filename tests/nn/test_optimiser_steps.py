"""Fast steps are those of torch, to rounding, and keep its moments."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from wisecrowd.nn.optimiser_steps import FusedAdamStep, LazyAdamStep, make_step  # noqa: E402


def make_parameters() -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((4, 3), (3,))]


def train(kind: Any, settings: dict[str, Any], *, fast: bool, n_steps: int = 5) -> tuple[list[Any], Any]:
    parameters, target = make_parameters(), torch.linspace(-1, 1, 3)
    optimiser = kind(parameters, lr=0.05, **settings)
    step = make_step(optimiser) if fast else optimiser.step
    for _ in range(n_steps):
        optimiser.zero_grad()
        (((parameters[0] - target) ** 2).sum() + (parameters[1] ** 4).sum()).backward()
        step()
    return parameters, optimiser


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (torch.optim.Adam, {}),
        (torch.optim.Adam, {"weight_decay": 0.1}),
        (torch.optim.AdamW, {"weight_decay": 0.1}),
        (torch.optim.RAdam, {}),
        (torch.optim.SGD, {"momentum": 0.9}),
    ],
    ids=["adam", "adam with decay", "adamw", "radam", "sgd"],
)
def test_steps_are_those_of_torch(kind: Any, settings: dict[str, Any]) -> None:
    (fast, fast_optimiser), (plain, optimiser) = (train(kind, settings, fast=value) for value in (True, False))
    for weight, expected in zip(fast, plain, strict=True):
        torch.testing.assert_close(weight, expected)
    for weight, expected in zip(fast, plain, strict=True):
        for name, moment in optimiser.state[expected].items():
            torch.testing.assert_close(torch.as_tensor(fast_optimiser.state[weight][name]), torch.as_tensor(moment))


def test_adam_uses_the_fused_kernel() -> None:
    assert isinstance(make_step(torch.optim.Adam(make_parameters())), FusedAdamStep)
    assert isinstance(make_step(torch.optim.AdamW(make_parameters())), FusedAdamStep)


def test_a_parameter_without_gradient_stays() -> None:
    first, second = make_parameters()
    optimiser = torch.optim.Adam([first, second], lr=0.1)
    step, before = make_step(optimiser), second.detach().clone()
    for _ in range(2):
        first.grad, second.grad = torch.ones_like(first), None
        step()
    torch.testing.assert_close(second.detach(), before, rtol=0, atol=0)
    assert float(optimiser.state[first]["step"]) == 2
    second.grad = torch.ones_like(second)
    step()
    assert float(optimiser.state[second]["step"]) == 1
    assert float(optimiser.state[first]["step"]) == 3


def test_lazy_steps_are_those_of_sparse_adam() -> None:
    def run(*, fast: bool) -> tuple[Any, Any]:
        table = torch.nn.Parameter(torch.arange(15.0).reshape(5, 3))
        optimiser = torch.optim.SparseAdam([table], lr=0.1)
        step = make_step(optimiser) if fast else optimiser.step
        for rows in ([0, 2, 2], [2, 4], [], [0]):
            table.grad = None
            embedded = torch.nn.functional.embedding(torch.tensor(rows, dtype=torch.int64), table, sparse=True)
            (embedded**2).sum().backward()
            step()
        return table, optimiser

    (fast, fast_optimiser), (plain, optimiser) = run(fast=True), run(fast=False)
    assert isinstance(make_step(optimiser), LazyAdamStep)
    torch.testing.assert_close(fast, plain)
    assert fast[1].tolist() == [3, 4, 5]  # nobody touched the row
    assert fast_optimiser.state[fast]["step"] == optimiser.state[plain]["step"]
    for name in ("exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(fast_optimiser.state[fast][name], optimiser.state[plain][name])


def test_a_dense_gradient_is_left_to_torch() -> None:
    table = torch.nn.Parameter(torch.zeros(2, 2))
    step = make_step(torch.optim.SparseAdam([table]))
    table.grad = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="dense gradients"):
        step()
