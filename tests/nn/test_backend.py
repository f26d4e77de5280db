"""Access to torch."""

from __future__ import annotations

import sys

import pytest

from wisecrowd.errors import MissingExtra
from wisecrowd.nn.backend import import_torch, limit_threads

torch = pytest.importorskip("torch")


def test_without_torch_the_message_is_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"maps need .*wisecrowd\[learn\]"):
        import_torch("maps")


@pytest.mark.parametrize("number", [1, 3, None])
def test_the_number_of_threads_is_restored(number: int | None) -> None:
    before = torch.get_num_threads()
    with limit_threads(number):
        assert torch.get_num_threads() == (before if number is None else number)
    assert torch.get_num_threads() == before


def test_the_number_of_threads_is_restored_after_an_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), limit_threads(before + 1):
        _ = 1 / 0
    assert torch.get_num_threads() == before
