"""Learning rates against the schedulers of torch. `test_trainer.py` has their use in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.nn.schedules import FIRST_FACTOR, LAST_FACTOR, RISING_SHARE, SCHEDULES, compute_rectification

torch = pytest.importorskip("torch")

N_STEPS = 200


def list_rates(make_scheduler: Any) -> list[float]:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, rates = make_scheduler(optimiser), []
    for _ in range(N_STEPS):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


def test_cosine_is_that_of_torch() -> None:
    expected = list_rates(lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, N_STEPS))
    assert [SCHEDULES["cosine"](step / N_STEPS) for step in range(N_STEPS)] == pytest.approx(expected)


def test_step_is_that_of_torch() -> None:
    expected = list_rates(lambda optimiser: torch.optim.lr_scheduler.MultiStepLR(optimiser, [134]))
    assert [SCHEDULES["step"](step / N_STEPS) for step in range(N_STEPS)] == pytest.approx(expected)


def test_one_cycle_rises_to_one_and_falls() -> None:
    cycle = SCHEDULES["onecycle"]
    assert (cycle(0.0), cycle(RISING_SHARE), cycle(1.0)) == pytest.approx((FIRST_FACTOR, 1.0, LAST_FACTOR))
    rates = [cycle(share) for share in np.linspace(0, 1, 101)]
    assert (np.diff(rates[:31]) > 0).all()
    assert (np.diff(rates[30:]) < 0).all()


def test_constant_is_constant() -> None:
    assert {SCHEDULES["constant"](share) for share in (0.0, 0.3, 1.0)} == {1.0}


def test_rectification_is_that_of_radam() -> None:
    """With a constant gradient, Adam's step is the learning rate, and RAdam's the learning rate times the factor."""
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = torch.optim.RAdam([parameter], lr=1.0, eps=0.0)
    for step in range(1, 40):
        before = parameter.item()
        parameter.grad = torch.ones_like(parameter)
        optimiser.step()
        factor = compute_rectification(step)
        if factor > 0:  # before, RAdam follows the gradient itself
            assert before - parameter.item() == pytest.approx(factor, rel=1e-6)
    assert compute_rectification(5) == 0
    assert compute_rectification(10**6) == pytest.approx(1)
