"""Base of crowds of label sets, marks, scores and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd.data.answers_by_task import AnswersByTask, compute_answers_digest, order_by_task
from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import InputError

ROWS: dict[str, Any] = {"task": ["b", "a", "a"], "worker": ["ann", "bob", "ann"]}
CROWDS: dict[str, AnswersByTask] = {
    "label sets": LabelSetCrowd.from_frame({**ROWS, "labels": ["x|y", "", "x"]}),
    "boxes": BoxCrowd.from_frame({**ROWS, "x": [1, 2, 3], "y": [1, 1, 1], "width": [5, 5, 5], "height": [4, 4, 4]}),
    "masks": MaskCrowd.from_frame({**ROWS, "mask": ["13", "04", ""], "height": [2, 2, 2], "width": [2, 2, 2]}),
    "scores": ScoreCrowd.from_frame({**ROWS, "score": [1, 2, 3]}),
    "texts": TextCrowd.from_frame({**ROWS, "text": ["one", "two", "three"]}),
}


@pytest.mark.parametrize("name", CROWDS)
def test_sizes_and_counts(name: str) -> None:
    crowd = CROWDS[name]
    assert (crowd.n_votes, crowd.n_tasks, crowd.n_workers, len(crowd)) == (3, 2, 2, 2)
    assert dict(zip(crowd.tasks, crowd.votes_per_task.tolist(), strict=True)) == {"a": 2, "b": 1}
    assert dict(zip(crowd.workers, crowd.votes_per_worker.tolist(), strict=True)) == {"ann": 2, "bob": 1}
    for number, task in enumerate(crowd.tasks):
        part = crowd.task[crowd.task_offset[number] : crowd.task_offset[number + 1]]
        assert (crowd.tasks[part] == task).all()


@pytest.mark.parametrize("name", CROWDS)
def test_selections_are_crowds_of_the_same_kind(name: str) -> None:
    crowd = CROWDS[name]
    assert crowd.take([2, 0]) == crowd.take([True, False, True]) != crowd
    assert crowd.take([]).n_votes == 0
    visible, heldout = crowd.hide(1 / 3, random_state=1)
    assert (type(visible), visible.n_votes, heldout.n_votes) == (type(crowd), 2, 1)
    assert hash(crowd.take(np.arange(3))) == hash(crowd)
    assert "<table" in crowd._repr_html_()


def test_crowds_of_different_kinds_differ() -> None:
    assert len({crowd.digest for crowd in CROWDS.values()}) == len(CROWDS)
    assert CROWDS["texts"] != CROWDS["scores"]
    codes = np.array([0])
    assert compute_answers_digest("texts", [["a"]], [codes]) != compute_answers_digest("scores", [["a"]], [codes])


def test_a_second_answer_is_refused_with_advice() -> None:
    ids = pd.Index(["t1", "t2"])
    with pytest.raises(
        InputError, match=r"^1 repeated row; for example worker 't2' answered task 't1' twice\. Keep one$"
    ):
        order_by_task(np.array([0, 1, 0]), np.array([1, 1, 1]), ids, ids, advice="Keep one")
