from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.report import build
from wisecrowd.utils.notebook import MAX_ROWS, render_html

CROWD = wc.simulate_crowd(n_tasks=40, n_workers=6, votes_per_task=3, random_state=0).crowd


def test_long_tables_are_cut_and_say_so() -> None:
    text = render_html("title", pd.DataFrame({"x": range(MAX_ROWS + 3)}))
    assert "… and 3 more rows" in text
    assert text.count("<tr>") == MAX_ROWS  # the header row has a style of its own


def test_data_are_escaped() -> None:
    hostile = wc.Crowd.from_triples([("<script>1</script>", "ann", "<img src=x>"), ("t2", "ann", "dog")])
    for page in (hostile._repr_html_(), wc.MajorityVote().fit(hostile)._repr_html_()):
        assert "<script>" not in page
        assert "<img" not in page


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (CROWD, "120 votes"),
        (wc.DawidSkene(), "DawidSkene()"),
        (wc.DawidSkene().fit(CROWD), "posterior"),
        (wc.compare_methods(CROWD, ["majority-vote", "one-coin"]), "log_likelihood"),
        (wc.plan_votes(CROWD, 5), "expected_confidence"),
        (wc.diagnose_crowd(CROWD), "reliability"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_show_themselves(result: Any, expected: str) -> None:
    assert expected in result._repr_html_()


def test_a_numeric_method_shows_its_parameters() -> None:
    numbers = wc.Crowd.from_triples([("t1", "ann", 1.0), ("t1", "bob", 2.0)], numeric=True)
    assert "Mean()" in wc.Mean().fit(numbers)._repr_html_()


def test_a_report_is_a_frame_of_its_own() -> None:
    page = build(CROWD, compare=False)._repr_html_()
    assert page.startswith('<iframe sandbox="allow-scripts"')
    assert "<!doctype" not in page
