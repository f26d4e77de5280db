from __future__ import annotations

import json
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log


@pytest.mark.parametrize("name", ["test_run.json", "result.json"])
def test_real_runs(recorded: Path, name: str) -> None:
    log = read_evaluation_log(recorded / name)
    assert log.format == "deepeval"
    table = log.scores.pivot(index="task", columns="judge", values="score")
    assert table.index.tolist() == ["case 0", "case 1", "case 2", "case 3"]
    assert table["Contains cat"].tolist() == [0.25, 1, 0.25, 1]


def test_cases_of_one_name_and_failed_metrics(tmp_path: Path) -> None:
    metric = {"name": "m", "score": 1.0}
    cases = [
        {"name": "a", "metricsData": [metric]},
        {"name": "a", "metricsData": [metric, {"name": "m", "error": "x"}]},
    ]
    (tmp_path / "run.json").write_text(json.dumps({"testRunData": {"testCases": cases}}))
    log = read_evaluation_log(tmp_path / "run.json", format="deepeval")
    assert log.scores["task"].tolist() == ["a", "a (1)"]
    assert log.notes == ("1 metric without a score",)


@pytest.mark.parametrize(("text", "message"), [('{"testCases": [{}]}', "no test case"), ('{"a": 1}', "no testCases")])
def test_broken_runs_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_evaluation_log(tmp_path / "run.json", format="deepeval")
