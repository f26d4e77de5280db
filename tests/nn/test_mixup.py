"""Mixtures of rows."""

from __future__ import annotations

import pytest

from wisecrowd.nn.mixup import draw_mixup

torch = pytest.importorskip("torch")


def test_shares_and_partners_are_drawn_from_torchs_stream() -> None:
    rows = torch.arange(2000.0)[:, None]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        mix, again = draw_mixup(2000, 1.0, rows), draw_mixup(2000, 1.0, rows)
        torch.manual_seed(3)
        same = draw_mixup(2000, 1.0, rows)
    assert (mix(rows) == same(rows)).all()
    assert not (mix(rows) == again(rows)).all()
    ones = torch.zeros(2000, 2000)
    ones.fill_diagonal_(1)
    share = mix(ones).diagonal()
    assert float((share < 0.25).double().mean()) == pytest.approx(0.25, abs=0.04)  # Beta(1, 1) is uniform
    assert mix(torch.eye(2000)).sum(dim=0).mean() == pytest.approx(1)
    assert draw_mixup(5, 0.0, rows)(rows[:5]).equal(rows[:5])
