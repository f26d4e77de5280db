from __future__ import annotations

import json
from pathlib import Path

import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.parquet"])
def test_real_traces(recorded: Path, name: str) -> None:
    log = read_evaluation_log(recorded / name)
    assert log.format == "mlflow"
    assert sorted(log.scores["judge"].unique()) == ["length by len", "relevance by mock:/judge"]
    assert log.scores["task"].nunique() == 4
    assert log.labels["rater"].unique().tolist() == ["ann@example.com"]
    assert log.labels["metric"].unique().tolist() == ["relevance"]
    assert log.labels["label"].sum() == 3


def feedback(name: str, kind: str, value: object, **more: object) -> dict[str, object]:
    return {
        "assessment_name": name,
        "source": {"source_type": kind, "source_id": kind.lower()},
        "feedback": {"value": value},
    } | more


def test_metrics_are_chosen(tmp_path: Path) -> None:
    assessments = [feedback("tone", "HUMAN", 1), feedback("truth", "HUMAN", 0), feedback("tone", "CODE", 1)]
    (tmp_path / "t.json").write_text(json.dumps([{"trace_id": "a", "assessments": assessments}]))
    log = read_evaluation_log(tmp_path / "t.json")
    assert log.select_metric("truth")["label"].tolist() == [0.0]
    with pytest.raises(UsageError, match="2 metrics"):
        log.select_metric(None)
    with pytest.raises(UsageError, match="no person judged 'tones'"):
        log.select_metric("tones")


def test_replaced_assessments_are_left_out(tmp_path: Path) -> None:
    assessments = [feedback("tone", "CODE", 1), feedback("tone", "CODE", 0, valid=False), {"expectation": {"value": 1}}]
    (tmp_path / "t.json").write_text(
        json.dumps([{"trace_id": "a", "assessments": assessments}, {"trace_id": "b", "assessments": None}])
    )
    log = read_evaluation_log(tmp_path / "t.json")
    assert log.scores["score"].tolist() == [1.0]
    assert "1 assessment" in log.notes[0]


@pytest.mark.parametrize(("assessments", "message"), [([], "log_feedback"), ({"a": 1}, "no list"), ("{", "not JSON")])
def test_broken_traces_are_refused(tmp_path: Path, assessments: object, message: str) -> None:
    (tmp_path / "t.json").write_text(json.dumps([{"trace_id": "a", "assessments": assessments}]))
    with pytest.raises(InputError, match=message):
        read_evaluation_log(tmp_path / "t.json")
