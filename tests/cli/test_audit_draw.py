"""Draws of an audit: identity of votes, method and gold, and tables that several draws share."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.cli._audit_draw import check_draw, combine_checks, find_draw_command, identify_draw, refuse_filled_checks
from wisecrowd.cli._reading import GoldReading
from wisecrowd.errors import InputError, UsageError

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "dog")])
DRAW = identify_draw(CROWD, wc.OneCoin(), None)


def test_the_identity_has_a_part_for_votes_method_and_gold() -> None:
    gold = pd.Series({"t1": "cat", "t2": "dog"})
    parts = [
        identify_draw(CROWD[:1], wc.OneCoin(), None).split("-"),
        identify_draw(CROWD, wc.OneCoin(max_iter=7), None).split("-"),
        identify_draw(CROWD, wc.OneCoin(), gold).split("-"),
    ]
    for position, other in enumerate(parts):
        differs = [here != there for here, there in zip(DRAW.split("-"), other, strict=True)]
        assert differs == [number == position for number in range(3)]
    assert identify_draw(CROWD, wc.OneCoin(n_jobs=2), None) == DRAW, "the labels are the same"
    assert identify_draw(CROWD, wc.OneCoin(), gold[::-1]) == identify_draw(CROWD, wc.OneCoin(), gold)


def test_a_broken_identity_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "checks.csv"
    path.write_text(f"task,truth,draw\nt1,cat,{DRAW}\nt2,dog,\n")
    check_draw(path, GoldReading(), DRAW, "", CROWD.tasks)
    path.write_text("task,truth,draw\nt1,cat,my own note\n")
    with pytest.raises(InputError, match=r"the column draw contains 'my own note'.*Restore it"):
        check_draw(path, GoldReading(), DRAW, "", CROWD.tasks)
    path.write_text("task,truth\nt1,cat\n")
    check_draw(path, GoldReading(), DRAW, "", CROWD.tasks)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"command": {"draw": 3}}'])
def test_a_damaged_record_has_no_command(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    assert find_draw_command(tmp_path / "checks.csv") == ""


def test_weights_of_two_draws_count_every_task_once() -> None:
    index = pd.Index(["t3", "t4"], name="task")
    sample = pd.DataFrame({"stratum": [0, 1], "weight": [3.0, 5.0]}, index=index)
    earlier = pd.Series({"t1": "cat", "t2": "dog"})
    table = combine_checks(sample, earlier, pd.Series({"t1": 4.0, "t2": 6.0}), None, DRAW)
    assert table.index.tolist() == ["t1", "t2", "t3", "t4"]
    assert table["truth"].tolist() == ["cat", "dog", "", ""]
    assert table["weight"].tolist() == [2.5, 3.5, 1.5, 2.5]
    assert table["weight"].sum() == 10
    assert set(table["draw"]) == {DRAW}


def test_filled_checks_are_refused_with_the_columns_of_other_checks(tmp_path: Path) -> None:
    refuse_filled_checks(tmp_path, ["wisecrowd", "audit", "v.csv"], None, [])
    (tmp_path / "checks.csv").write_text("task,truth\nt1,cat\n")
    with pytest.raises(UsageError, match=r"--gold-task nr --checked other\.csv --size N"):
        refuse_filled_checks(tmp_path, ["wisecrowd", "audit", "v.csv"], Path("other.csv"), ["--gold-task", "nr"])
