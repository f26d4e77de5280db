from __future__ import annotations

from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError


@pytest.mark.parametrize(
    ("votes", "header", "truth"),
    [("answer.csv", "question,worker,answer", "question,truth"), ("label.csv", "item,worker,label", "item,truth")],
)
def test_both_benchmarks(tmp_path: Path, votes: str, header: str, truth: str) -> None:
    (tmp_path / votes).write_text(f"{header}\n0,7,1\n0,8,0\n1,7,1\n")
    (tmp_path / "truth.csv").write_text(f"{truth}\n0,1\n1,1\n")
    dataset = wc.load_dataset(tmp_path)
    assert dataset.crowd.n_votes == 3
    assert dataset.truth is not None
    assert dataset.truth.to_dict() == {"0": "1", "1": "1"}


def test_the_truth_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "label.csv").write_text("item,worker,label\n0,7,1\n")
    assert wc.load_dataset(tmp_path).truth is None


def test_wrong_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither answer\.csv nor label\.csv"):
        wc.read(tmp_path, format="truth-inference")
