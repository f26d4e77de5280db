"""Scores of judges: construction, validation, selections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd, ScoreCrowd
from wisecrowd.errors import InputError

FRAME = pd.DataFrame({"task": ["t2", "t1", "t1", "t2"], "worker": ["b", "b", "a", "a"], "score": [4.0, 3.0, 0.2, 0.9]})


def test_rows_are_sorted_and_read_only() -> None:
    scores = ScoreCrowd.from_frame(FRAME)
    shuffled = ScoreCrowd.from_frame(FRAME.sample(frac=1, random_state=1))
    assert scores == shuffled
    assert hash(scores) == hash(shuffled)
    assert scores.to_frame().to_dict("list") == {
        "task": ["t1", "t1", "t2", "t2"],
        "worker": ["a", "b", "a", "b"],
        "score": [0.2, 3.0, 0.9, 4.0],
    }
    assert not scores.score.flags.writeable
    assert scores.votes_per_task.tolist() == scores.votes_per_worker.tolist() == [2, 2]


def test_rows_without_a_score_are_votes_of_people() -> None:
    frame = pd.concat(
        [FRAME.assign(label=None), pd.DataFrame({"task": ["t1", "t3"], "worker": "ann", "label": ["x", "y"]})]
    )
    scores = ScoreCrowd.from_frame(frame, label="label")
    assert scores.n_votes == 4
    assert scores.tasks.tolist() == ["t1", "t2", "t3"]
    assert scores.workers.tolist() == ["a", "b"]
    assert scores.votes is not None
    assert scores.votes.to_frame()[["task", "worker", "label"]].to_numpy().tolist() == [
        ["t1", "ann", "x"],
        ["t3", "ann", "y"],
    ]
    assert scores != ScoreCrowd.from_frame(FRAME, tasks=["t1", "t2", "t3"])
    added = ScoreCrowd.from_frame(FRAME).with_votes(Crowd.from_triples([("t1", "ann", "x"), ("t3", "ann", "y")]))
    assert added == scores


def test_a_wide_table_gives_the_same() -> None:
    wide = FRAME.pivot(index="task", columns="worker", values="score")
    assert ScoreCrowd.from_wide(wide) == ScoreCrowd.from_frame(FRAME)
    with pytest.raises(InputError, match="must be numbers"):
        ScoreCrowd.from_wide(pd.DataFrame({"a": ["high"]}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [1.0, 2.0, np.inf, 3.0]}, "finite numbers; got inf of 'a' on task 't1'"),
        ({"score": [1.0, 2.0, None, 3.0]}, "1 row without a score, such as 'a' on task 't1'"),
        ({"score": ["1", "2", "high", "3"]}, "expected numbers"),
        ({"worker": ["b", "b", "b", "a"]}, "judge 'b' scored task 't1' twice"),
        ({"label": ["x", None, None, None]}, "1 row with a score and a label, such as 'b' on task 't2'"),
    ],
)
def test_bad_rows_are_refused(change: dict[str, list[object]], message: str) -> None:
    label = "label" if "label" in change else None
    with pytest.raises(InputError, match=message):
        ScoreCrowd.from_frame(FRAME.assign(**change), label=label)


def test_repeated_scores_count_as_one_answer() -> None:
    frame = pd.DataFrame({"task": ["t1", "t1", "t1"], "worker": ["a", "a", "b"], "score": [5, 3, 1]})
    kept = ScoreCrowd.from_frame(frame, duplicates="keep")
    assert kept.weight.tolist() == [0.5, 0.5, 1.0]
    assert ScoreCrowd.from_frame(frame, duplicates="first").score.tolist() == [5.0, 1.0]
    assert ScoreCrowd.from_frame(frame, duplicates="last").score.tolist() == [3.0, 1.0]


def test_selections_keep_the_vocabularies() -> None:
    scores = ScoreCrowd.from_frame(FRAME)
    visible, heldout = scores.hide(0.5)
    assert visible.n_votes == heldout.n_votes == 2
    assert visible.tasks.equals(scores.tasks)
    assert scores.select_workers(["b"]).to_frame()["score"].tolist() == [3.0, 4.0]
    with pytest.raises(InputError, match="unknown judges: 'c'"):
        scores.select_workers(["c"])
    with pytest.raises(InputError, match="no column 'grade'"):
        ScoreCrowd.from_frame(FRAME, score="grade")
    assert "ScoreCrowd(4 scores" in scores._repr_html_()
