"""Tasks of a review: their order, texts, images and votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.diagnose.assessment import CrowdAssessment, assess_crowd
from wisecrowd.errors import InputError
from wisecrowd.evaluate.confidence import estimate_confidence
from wisecrowd.service.review_queue import ReviewQueue, find_disputed_tasks, read_task_table


@pytest.fixture(scope="module")
def crowd() -> wc.Crowd:
    kinds = ["expert"] * 3 + ["noisy(0.6)"] * 6
    return wc.simulate_crowd(60, workers=kinds, n_classes=3, votes_per_task=4, random_state=1).crowd


def build_queue(crowd: wc.Crowd, **more: Any) -> ReviewQueue:
    more.setdefault("tasks", crowd.tasks)
    return ReviewQueue(assessment=assess_crowd(crowd), **more)


def test_disputed_tasks_are_those_with_different_labels_the_least_certain_first(crowd: wc.Crowd) -> None:
    estimate = estimate_confidence(wc.ModelAverage().fit(crowd), crowd)
    tasks = find_disputed_tasks(crowd, estimate, 1_000)
    n_labels = crowd.to_frame().groupby("task")["label"].nunique()
    assert set(tasks) == set(n_labels.index[n_labels > 1])
    assert estimate.table["confidence"][tasks].is_monotonic_increasing
    assert find_disputed_tasks(crowd, estimate, 5).tolist() == tasks[:5].tolist()
    gold = {tasks[0]: "c0"}
    with_gold = estimate_confidence(wc.ModelAverage().fit(crowd, truth=gold), crowd, truth=gold)
    assert tasks[0] not in find_disputed_tasks(crowd, with_gold, 1_000)


def test_agreement_on_all_tasks_is_explained() -> None:
    crowd = wc.Crowd.from_triples([("t1", "ann", "a"), ("t1", "bob", "a"), ("t2", "ann", "b")])
    estimate = estimate_confidence(wc.MajorityVote().fit(crowd), crowd)
    with pytest.raises(InputError, match="nothing is disputed"):
        find_disputed_tasks(crowd, estimate, 10)


def test_votes_come_with_the_quality_of_the_workers(crowd: wc.Crowd) -> None:
    queue = build_queue(crowd)
    votes = queue.describe_votes(7)
    frame = crowd.to_frame()
    own = frame[frame["task"] == crowd.tasks[7]].set_index("worker")
    assert {vote["worker"]: vote["label"] for vote in votes} == own["label"].to_dict()
    accuracy = queue.assessment.worker_table["accuracy"]  # as in the report and in diagnose
    assert [vote["accuracy"] for vote in votes] == sorted(
        (round(accuracy[name], 3) for name in own.index), reverse=True
    )
    assert all(vote["flags"] == queue.assessment.worker_table["flags"][vote["worker"]] for vote in votes)
    assert all(vote["n_votes"] == (frame["worker"] == vote["worker"]).sum() for vote in votes)


def test_votes_without_workers_are_shown(crowd: wc.Crowd) -> None:
    anonymous = wc.Crowd.from_frame(crowd.to_frame()[["task", "label"]], worker=None)
    assessment = CrowdAssessment(anonymous, wc.MajorityVote().fit(anonymous))
    queue = ReviewQueue(assessment=assessment, tasks=anonymous.tasks)
    vote = queue.describe_votes(0)[0]
    assert (vote["worker"], vote["accuracy"], vote["n_votes"]) == (None, None, None)


def test_tasks_without_votes_are_refused(crowd: wc.Crowd) -> None:
    with pytest.raises(InputError, match="1 of 2 tasks to review have no votes: 'nowhere'"):
        build_queue(crowd, tasks=wc.Crowd.from_triples([("nowhere", "a", "x"), (crowd.tasks[0], "a", "x")]).tasks)


def test_numbers_in_the_table_match_numbers_in_the_votes(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([(7, "ann", "a"), (7, "bob", "b"), (8, "ann", "a")])
    (tmp_path / "tasks.csv").write_text("task\n8\n7\n")
    queue = build_queue(crowd, tasks=read_task_table(tmp_path / "tasks.csv").tasks)
    assert queue.names == ["8", "7"]


def test_tables_of_tasks(tmp_path: Path) -> None:
    path = tmp_path / "checks.csv"
    path.write_text("task,truth,stratum,weight\nt2,,0,1.5\nt1,cat,1,3\n")
    table = read_task_table(tmp_path)  # the folder of an audit
    assert table.tasks.tolist() == ["t2", "t1"]
    assert table.is_audit
    assert table.truth.to_dict() == {"t1": "cat"}
    assert {name: column.astype(float).to_dict() for name, column in table.columns.items()} == {
        "stratum": {"t2": 0, "t1": 1},
        "weight": {"t2": 1.5, "t1": 3},
    }
    path.write_text("item,sentence,file\nt2,Hello,a/b.png\nt1,,c.png\n")
    table = read_task_table(path)
    assert table.texts is not None
    assert table.texts.to_dict().get("t2") == "Hello"
    assert table.images is not None
    assert table.images["t2"] == tmp_path / "a" / "b.png"
    assert not table.is_audit
    path.write_text("task,image\nt1,../../etc/passwd.png\n")
    with pytest.raises(InputError, match="must stay inside the folder"):
        read_task_table(path)
    path.write_text("task\n")
    with pytest.raises(InputError):
        read_task_table(path)
    with pytest.raises(InputError, match=r"no checks\.csv"):
        read_task_table(tmp_path / "..")


def test_the_task_column_of_an_audit_may_be_called_otherwise_than_that_of_the_votes(tmp_path: Path) -> None:
    (tmp_path / "checks.csv").write_text("task,truth,stratum,weight,draw\nt7,,0,2.5,a-b-c\nt3,cat,0,2.5,a-b-c\n")
    table = read_task_table(tmp_path, task="photo nr")
    assert table.is_audit
    assert table.truth.to_dict() == {"t3": "cat"}
    assert list(table.columns) == ["stratum", "weight", "draw"]
    with pytest.raises(InputError, match="absent does not exist"):
        read_task_table(tmp_path / "absent")
