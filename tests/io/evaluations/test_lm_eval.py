from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.evaluations.evaluation_log import combine_logs, read_evaluation_log


def test_real_samples(recorded: Path, tmp_path: Path) -> None:
    for model in ("small", "large"):
        (tmp_path / model).mkdir()
        shutil.copyfile(
            recorded / "samples_sums.jsonl", tmp_path / model / "samples_sums_2026-01-31T10-00-00.123.jsonl"
        )
    logs = [read_evaluation_log(next((tmp_path / model).iterdir())) for model in ("small", "large")]
    assert logs[0].format == "lm-eval"
    assert sorted(logs[0].scores["task"].unique()) == [f"sums/{number}" for number in range(5)]
    both = combine_logs(logs).scores
    assert both.groupby("system")["judge"].unique().map(list).to_dict() == {
        "small": ["acc", "acc_norm"], "large": ["acc", "acc_norm"],
    }  # fmt: skip


def test_samples_without_a_list_of_metrics(tmp_path: Path) -> None:
    sample = {
        "doc_id": 3,
        "doc": {},
        "target": "x",
        "resps": [],
        "filtered_resps": [],
        "exact_match": 1.0,
        "filter": "strict",
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(sample))
    scores = read_evaluation_log(tmp_path / "s.jsonl").scores
    assert scores[["task", "judge", "score"]].to_numpy().tolist() == [["3", "exact_match (strict)", 1.0]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"doc_id": 1, "filtered_resps": []}'], "--log_samples"),
        (['{"doc_id": 1, "filtered_resps": [], "acc": 1}', '{"other": 1}'], "line 2 has no doc_id"),
        (['{"doc_id": 1, "filtered_resps": [], "acc": 1}', '{"doc_id": 2'], "line 2 is not JSON"),
    ],
)
def test_broken_samples_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        read_evaluation_log(tmp_path / "s.jsonl")
