from __future__ import annotations

import shlex
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
    *lines, command = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert command.startswith("Fix all  wisecrowd aggregate")  # not broken, so that it can be copied
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


MESSY = "photo,user,user_name,category\np1,ann,x,1\np1,ann,x,1.0\np1,bob,y,\nP1,bob,y,2\np2,bob,y,1\n"


def test_one_command_resolves_all_problems_and_keeps_the_given_options(run: Any, tmp_path: Path) -> None:
    (tmp_path / "my votes.csv").write_text(MESSY, encoding="utf-8")
    result = run("check", "my votes.csv", "--worker", "user", "--classes", "1,2,3")
    assert result.exit_code == 1
    command = " ".join(result.stdout[result.stdout.index("Fix all") + len("Fix all") :].split())
    assert command.startswith("wisecrowd aggregate 'my votes.csv' --task photo --worker user --classes 1,2,3")
    fixed = run(*shlex.split(command)[1:])
    assert fixed.exit_code == 0, fixed.output


def test_a_command_that_fails_names_all_problems(run: Any, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(MESSY, encoding="utf-8")
    result = run("aggregate", "votes.csv", "--task", "photo")
    assert result.exit_code == 1
    text = " ".join(result.stderr.split())
    assert "The file has 3 problems (missing-column, missing-labels, conflicting-votes)" in text
    assert "--task photo --worker user --duplicates last --missing drop --normalise resolve all" in text


def test_marks_are_checked_with_their_images(run: Any, tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("task,worker,x,y,width,height\ni,ann,9,9,5,5\ni,bob,1,1,-5,5\n")
    (tmp_path / "sizes.csv").write_text("task,width,height\ni,8,8\n")
    result = run("check", "boxes.csv", "--images", "sizes.csv")
    assert result.exit_code == 1
    assert "negative-sizes" in result.stdout
    assert "outside-image" in result.stdout
    refused = run("check", "boxes.csv", "--documents", "sizes.csv")
    assert "apply to spans only" in refused.output


def test_a_table_of_marks_with_several_problems_names_them_all(run: Any, tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("task,worker,x,y,width,height\ni,ann,9,,5,5\ni,bob,1,1,-5,5\ni,cy,1,1,5,5\n")
    result = run("aggregate", "boxes.csv")
    assert result.exit_code != 0
    assert "2 problems (partial-coordinates 1, negative-sizes 1); wisecrowd check" in " ".join(result.output.split())
