"""Laws of the aggregators of texts: row order, names, unanimity, and degenerate crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.base.registry import methods
from wisecrowd.base.text_aggregator import TextAggregator
from wisecrowd.data.texts import TextCrowd
from wisecrowd.simulate.texts import simulate_texts

NAMES = [name for name, kind in methods("aggregate").items() if issubclass(kind, TextAggregator)]
CROWD = simulate_texts(n_tasks=40, n_workers=7, accuracy=0.6, random_state=5).crowd


def fit(name: str, crowd: TextCrowd) -> Any:
    method: Any = methods()[name]()
    return method.fit(crowd)


@pytest.mark.parametrize("name", NAMES)
def test_row_order_and_names_do_not_matter(name: str) -> None:
    frame = CROWD.to_frame()
    expected = fit(name, CROWD).tasks_
    shuffled = TextCrowd.from_frame(frame.sample(frac=1, random_state=1), tasks=CROWD.tasks, workers=CROWD.workers)
    assert fit(name, shuffled).tasks_.equals(expected)
    new = {worker: f"n{number}" for number, worker in enumerate(reversed(CROWD.workers))}
    renamed = TextCrowd.from_frame(frame.assign(worker=frame["worker"].map(new)), tasks=CROWD.tasks)
    assert fit(name, renamed).texts_.tolist() == expected["text"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_unanimous_workers_decide(name: str) -> None:
    frame = CROWD.to_frame()
    crowd = TextCrowd.from_frame(frame.assign(text="text of " + frame["task"]))
    fitted = fit(name, crowd)
    assert fitted.texts_.tolist() == [f"text of {task}" for task in crowd.tasks]
    assert fitted.tasks_["confidence"].min() > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_crowds_are_handled(name: str) -> None:
    for part in (CROWD.take(CROWD.worker == 0), CROWD.take([0]), CROWD.take(CROWD.task == 3)):
        tasks = fit(name, part).tasks_
        assert np.isfinite(tasks[["confidence", "token_confidence"]].to_numpy()).all()
        assert (tasks.loc[tasks["n_votes"] == 1, "text"] != "").all()
