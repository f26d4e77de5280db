"""Laws of the aggregators of texts: row order, names, unanimity, and degenerate crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tasks_do_not_matter(name: str) -> None:
    frame = CROWD.to_frame()
    new = {task: f"n{len(CROWD.tasks) - number:03d}" for number, task in enumerate(CROWD.tasks)}
    other = fit(name, TextCrowd.from_frame(frame.assign(task=frame["task"].map(new)))).texts_
    expected = fit(name, CROWD).texts_
    assert other.loc[[new[task] for task in CROWD.tasks]].tolist() == expected.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_input_is_unchanged_and_the_result_repeats(name: str) -> None:
    digest = CROWD.digest
    first, second = fit(name, CROWD).tasks_, fit(name, CROWD).tasks_
    del vars(CROWD)["digest"]
    assert CROWD.digest == digest
    assert first.equals(second)


@pytest.mark.parametrize("name", NAMES)
def test_case_and_punctuation_do_not_matter(name: str) -> None:
    frame = CROWD.to_frame()
    shouted = TextCrowd.from_frame(frame.assign(text=frame["text"].str.upper() + "!"), tasks=CROWD.tasks)
    other, expected = fit(name, shouted), fit(name, CROWD)
    assert other.texts_.str.lower().str.rstrip("!").tolist() == expected.texts_.tolist()
    assert other.confidence_ == pytest.approx(expected.confidence_, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_further_worker_who_agrees_does_not_lower_the_confidence(name: str) -> None:
    expected = fit(name, CROWD)
    echo = expected.texts_.reset_index().assign(worker="echo")
    more = fit(name, TextCrowd.from_frame(pd.concat([CROWD.to_frame(), echo])))
    assert more.confidence_.mean() >= expected.confidence_.mean()
    assert more.workers_["accuracy"].idxmax() == "echo"
