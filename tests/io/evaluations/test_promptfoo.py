from __future__ import annotations

import json
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log


def test_real_results(recorded: Path) -> None:
    log = read_evaluation_log(recorded / "promptfoo.json")
    assert log.format == "promptfoo"
    assert sorted(log.scores["system"].unique()) == ["echo: Repeat {{word}}", "echo: Say {{word}}"]
    assert sorted(log.scores["task"].unique()) == ["0", "1"]
    table = log.scores.set_index(["system", "task", "judge"])["score"]
    assert table["echo: Say {{word}}", "0", "contains"] == 1
    assert table["echo: Repeat {{word}}", "0", "says"] == 0
    assert len(log.labels) == 0


def test_ratings_of_people_are_labels(recorded: Path, tmp_path: Path) -> None:
    document = json.loads((recorded / "promptfoo.json").read_text())
    for result in document["results"]["results"]:
        rating = {"pass": True, "score": 1, "assertion": {"type": "human"}}
        result["gradingResult"]["componentResults"].append(rating)
    (tmp_path / "rated.json").write_text(json.dumps(document))
    log = read_evaluation_log(tmp_path / "rated.json")
    assert len(log.labels) == 4
    assert log.labels["metric"].unique().tolist() == ["human"]


def test_repeated_assertions_and_descriptions(tmp_path: Path) -> None:
    part = {"pass": True, "score": 1, "assertion": {"type": "contains"}}
    graded = {
        "gradingResult": {"componentResults": [part, part]},
        "provider": "gpt",
        "testCase": {"description": "hello"},
    }
    plain = {"gradingResult": {"score": 0.5}, "provider": {"id": "gpt"}, "testIdx": 7}
    failed = {"error": "no answer", "provider": "gpt"}
    document = {"evalId": "e", "results": {"results": [graded, plain, failed]}}
    (tmp_path / "r.json").write_text(json.dumps(document))
    log = read_evaluation_log(tmp_path / "r.json")
    assert log.scores["judge"].tolist() == ["contains", "contains 2", "score"]
    assert log.scores["task"].tolist() == ["0: hello", "0: hello", "7"]
    assert log.notes == ("1 result without a grade",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"evalId": "e", "results": []}', "results"),
        ('{"evalId": "e", "results": {"results": [{}]}}', "add assertions"),
        ("[]", "not an object"),
    ],
)
def test_broken_results_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_evaluation_log(tmp_path / "r.json", format="promptfoo")
