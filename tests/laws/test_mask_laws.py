"""Laws of the aggregators of masks: row order, names, unanimity, reflection of images, and degenerate crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.base.mask_aggregator import MaskAggregator
from wisecrowd.base.registry import methods
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.simulate.masks import simulate_masks

NAMES = [name for name, kind in methods("aggregate").items() if issubclass(kind, MaskAggregator)]
CROWD = simulate_masks(n_tasks=8, n_workers=6, votes_per_task=4, height=10, width=12, random_state=5).crowd


def fit(name: str, crowd: MaskCrowd) -> Any:
    method: Any = methods()[name]()
    with ignore_fit_warnings():
        return method.fit(crowd)


@pytest.mark.parametrize("name", NAMES)
def test_row_order_and_names_do_not_matter(name: str) -> None:
    frame = CROWD.to_frame()
    expected = fit(name, CROWD)
    shuffled = MaskCrowd.from_frame(frame.sample(frac=1, random_state=1), tasks=CROWD.tasks, workers=CROWD.workers)
    assert fit(name, shuffled).tasks_.equals(expected.tasks_)
    new = {worker: f"n{number}" for number, worker in enumerate(reversed(CROWD.workers))}
    renamed = MaskCrowd.from_frame(frame.assign(worker=frame["worker"].map(new)), tasks=CROWD.tasks)
    other = fit(name, renamed)
    assert other.masks_.tolist() == expected.masks_.tolist()
    rates = other.workers_.loc[[new[worker] for worker in CROWD.workers]]
    assert rates.to_numpy() == pytest.approx(expected.workers_.to_numpy(), abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_pixels_have_no_order(name: str) -> None:
    arrays = [CROWD.masks.to_array(row)[::-1, ::-1] for row in range(CROWD.n_votes)]
    frame = CROWD.to_frame()
    reflected = MaskCrowd.from_arrays(frame["task"].tolist(), frame["worker"].tolist(), arrays)
    expected, other = fit(name, CROWD), fit(name, reflected)
    for task in CROWD.tasks:
        assert (other.mask_of(task) == expected.mask_of(task)[::-1, ::-1]).all()
        assert other.probability_of(task) == pytest.approx(expected.probability_of(task)[::-1, ::-1], abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_unanimous_workers_decide(name: str) -> None:
    first = CROWD.task_offset[:-1]
    same = MaskCrowd(
        CROWD.task, CROWD.worker, CROWD.masks.take(first[CROWD.task]), tasks=CROWD.tasks, workers=CROWD.workers
    )
    fitted = fit(name, same)
    assert fitted.masks_.tolist() == CROWD.masks.take(first).to_coco()
    assert fitted.tasks_["confidence"].min() > 0.99


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_crowds_are_handled(name: str) -> None:
    empty = MaskCrowd.from_arrays(["i", "i", "j"], ["a", "b", "a"], [np.zeros((2, 3))] * 3)
    for part in (CROWD.take(CROWD.worker == 0), CROWD.take([0]), CROWD.take(CROWD.task == 3), empty):
        fitted = fit(name, part)
        assert np.isfinite(fitted.tasks_[["confidence", "expected_dice"]].to_numpy()).all()
        assert np.isfinite(fitted.workers_.to_numpy()).all()
    assert fitted.runs_.area.tolist() == [0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_single_mask_is_the_result(name: str) -> None:
    fitted = fit(name, CROWD.take([0]))
    assert fitted.masks_.iloc[0] == CROWD.masks.take([0]).to_coco()[0]
