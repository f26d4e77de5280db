"""Crowd of the demo."""

from __future__ import annotations

import pandas as pd

from wisecrowd.demo.digits import WORKERS, count_kinds, make_digits_crowd


def test_the_crowd_is_sparse_and_motley() -> None:
    simulation = make_digits_crowd()
    crowd = simulation.simulation.crowd
    assert crowd.shape == (1797, 40)
    assert set(crowd.votes_per_task) == {3, 4, 5}
    assert simulation.simulation.kind.value_counts().to_dict() == WORKERS
    assert simulation.features.index.equals(simulation.simulation.truth.index)
    assert make_digits_crowd().simulation.crowd == crowd
    assert make_digits_crowd(1).simulation.crowd != crowd


def test_workers_in_words() -> None:
    assert (
        count_kinds(pd.Series(["copier", "noisy", "noisy", "expert", "expert", "expert"]))
        == "3 experts, 2 noisy, 1 copier"
    )
