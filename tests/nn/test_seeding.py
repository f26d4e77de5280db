"""Devices and random streams."""

from __future__ import annotations

from typing import Any

import pytest

from wisecrowd.errors import UsageError
from wisecrowd.nn.seeding import fork_random_state, get_sum_dtype, select_device

torch = pytest.importorskip("torch")

CPU = torch.device("cpu")


def test_a_stream_goes_on_where_it_was() -> None:
    with fork_random_state(CPU, 3):
        whole = torch.rand(4)
    with fork_random_state(CPU, 3) as get_state:
        first, state = torch.rand(2), get_state()
    with fork_random_state(CPU, state):
        assert torch.equal(torch.cat([first, torch.rand(2)]), whole)


def test_the_global_stream_is_restored_after_an_error() -> None:
    before = torch.get_rng_state()

    def draw_and_fail() -> None:
        with fork_random_state(CPU, 0):
            torch.rand(5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw_and_fail()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_state_is_not_changed_by_its_use() -> None:
    with fork_random_state(CPU, 1) as get_state:
        state = get_state()
    copy = state["cpu"].copy()
    with fork_random_state(CPU, state):
        torch.rand(5)
    assert (state["cpu"] == copy).all()


@pytest.mark.parametrize("name", ["abacus", "meta", "cpu:7:8", ""])
def test_other_devices_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"torch cannot use the device '{name}'"):
        select_device(name)
    assert select_device("auto").type in ("cpu", "cuda")


class FakeLibrary:
    """Library with a single device, as `torch.mps`."""

    def __init__(self) -> None:
        self.state = torch.zeros(2, dtype=torch.uint8)

    def manual_seed(self, seed: int) -> None:
        self.state = torch.full((2,), seed, dtype=torch.uint8)

    def get_rng_state(self) -> Any:
        return self.state.clone()

    def set_rng_state(self, state: Any) -> None:
        self.state = state


def test_the_stream_of_mps_is_forked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeLibrary()
    monkeypatch.setattr(torch, "mps", library)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: torch.zeros(0))
    device = torch.device("mps")
    with fork_random_state(device, 7) as get_state:
        assert library.state.tolist() == [7, 7]
        state = get_state()
    assert library.state.tolist() == [0, 0]
    with fork_random_state(device, state):
        assert library.state.tolist() == [7, 7]
    assert get_sum_dtype(device) == torch.float32
    assert get_sum_dtype(torch.device("cpu")) == torch.float64
