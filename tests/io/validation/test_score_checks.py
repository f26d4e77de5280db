"""Checks of scores: constant judges, few scores, repeated scores."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from wisecrowd import check_votes, simulate_scores
from wisecrowd.io.validation.vote_checks import find_options


@pytest.fixture
def table() -> pd.DataFrame:
    return simulate_scores(n_tasks=40, n_judges=3).scores.to_frame().rename(columns={"worker": "judge"})


def test_good_scores_have_no_findings(table: pd.DataFrame) -> None:
    report = check_votes(table)
    assert [finding.name for finding in report.findings] == ["columns"]
    assert report.summary == "ScoreCrowd(120 scores: 40 tasks x 3 judges)"


def test_problems_are_named_with_the_option_that_resolves_them(table: pd.DataFrame, tmp_path: Path) -> None:
    table.loc[table["judge"] == "judge0", "score"] = 5
    table.loc[3, "score"] = None
    file = tmp_path / "scores.csv"
    pd.concat([table, table.tail(1)]).to_csv(file, index=False)
    report = check_votes(file)
    names = {finding.name for finding in report.findings}
    assert names == {"columns", "missing-ids", "duplicate-votes", "one-score-judges"}
    assert find_options(file, report) == {"missing": "drop", "duplicates": "keep"}
    few = check_votes(table.dropna().head(30))
    assert "few-scores" in [finding.name for finding in few.findings]
