from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_good_votes(run: Any, votes: Path) -> None:
    result = run("check", votes.name)
    assert result.exit_code == 0, result.output
    assert "48 votes" in result.stdout
    assert "error" not in result.stdout


def test_the_whole_examination_in_one_go(run: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(
        "task,worker,label\n1,ann,cat\n1,ann,cat\n1,bob,\n2,ann,Cat\n2,bob,dog\n", encoding="utf-8"
    )
    result = run("check", "bad.csv")
    assert result.exit_code == 1
    for finding in ("duplicate-votes", "missing-labels", "labels-differ-by-case-or-space"):
        assert finding in result.stdout
    assert "--duplicates" in result.stdout
    assert "--missing" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    mended = run("check", "bad.csv", "--duplicates", "distinct", "--missing", "drop")
    assert mended.exit_code == 0
    assert "error" not in mended.stdout


@pytest.mark.parametrize("content", ["", "task,worker,label\n", "only one column\nx\n"])
def test_what_cannot_be_read_is_an_error(run: Any, tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.csv").write_text(content, encoding="utf-8")
    result = run("check", "odd.csv")
    assert result.exit_code == 1
    assert "error" in result.stdout


def test_an_absent_file(run: Any) -> None:
    assert run("check", "absent.csv").exit_code == 1


def test_comparisons(run: Any, tmp_path: Path) -> None:
    (tmp_path / "arena.csv").write_text("judge,left,right,winner\nann,a,b,a\nann,b,a,a\nbob,c,d,d\n", encoding="utf-8")
    result = run("check", "arena.csv")
    assert result.exit_code == 0, result.output
    assert "3 comparisons" in result.stdout
    assert "disconnected-graph" in result.stdout
    assert "swapped-comparisons" in result.stdout
