from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.evaluations.evaluation_log import EvaluationLog, combine_logs, read_evaluation_log


def read(tmp_path: Path, text: str) -> EvaluationLog:
    (tmp_path / "scores.csv").write_text(text)
    return read_evaluation_log(tmp_path / "scores.csv")


def test_plain_tables(tmp_path: Path) -> None:
    log = read(tmp_path, "model,id,judge,score,prompt\nm,t1,gpt,0.5,p1\nm,t2,gpt,0.7,p1\n")
    assert log.format == "table"
    assert log.scores.columns.tolist() == ["system", "task", "judge", "score", "cluster"]
    assert log.labels.empty


def test_tables_without_a_judge_are_labels_of_people(tmp_path: Path) -> None:
    assert read(tmp_path, "task,label\nt1,1\n").scores["judge"].tolist() == [""]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b\n1,2\n", "expected task, judge and score"), ("task,judge,score\n", "no scores in it")],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_evaluation_log(tmp_path / "absent.csv")
    (tmp_path / "scores.csv").write_text("task,judge,score\nt,j,1\n")
    with pytest.raises(UsageError, match="Did you mean 'inspect'"):
        read_evaluation_log(tmp_path / "scores.csv", format="inspekt")


def test_logs_with_and_without_systems_do_not_mix(tmp_path: Path) -> None:
    one = read(tmp_path, "task,judge,score\nt1,gpt,1\n")
    other = read(tmp_path, "system,task,judge,score\nm,t1,gpt,1\n")
    with pytest.raises(InputError, match="add the column system"):
        combine_logs([one, other])
    assert len(combine_logs([one, one]).scores) == 2
