"""Groups of workers on the page: a sentence for each, a colour on the map, a column of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.utils.text import format_percent


@pytest.fixture(scope="module")
def made() -> Any:
    kinds = ["expert(0.9)"] * 10 + ["mixer(0.6)"] * 7 + ["spammer"]
    return wc.simulate_crowd(n_tasks=400, workers=kinds, n_classes=3, votes_per_task=6, random_state=2)


@pytest.fixture(scope="module")
def page(made: Any, page_of: Any) -> Any:
    return page_of(report.build(made.crowd, compare=False).html)


def test_every_group_has_its_sentence(made: Any, page: Any) -> None:
    groups = wc.diagnose_crowd(made.crowd).groups
    assert len(groups.size) >= 2
    for sentence in groups.descriptions:
        assert sentence in page.said("workers")


def test_the_table_and_the_map_tell_who_is_in_which(made: Any, page: Any) -> None:
    of_worker = wc.diagnose_crowd(made.crowd).groups.memberships
    titles = page.texts["map"]
    marks = {
        attributes["data-worker"]: str(attributes["class"]).split()
        for tag, attributes in page.tags
        if tag == "g" and "data-worker" in attributes
    }
    for place, row in enumerate(page.rows("worker-table")):
        mine = of_worker.loc[row["Worker"].text]
        number = int(mine["group"]) + 1
        assert row["Group"].text == f"{number} {format_percent(mine['probability'])}"
        assert f"g{number}" in marks[str(place)]
        assert f"{row['Worker'].text}: " in titles
    assert titles.count(", group ") == made.crowd.n_workers


def test_one_group_is_none(page_of: Any) -> None:
    votes = wc.simulate_crowd(n_tasks=200, workers=["noisy(0.8)"] * 6, n_classes=2, votes_per_task=3).crowd
    assert len(wc.diagnose_crowd(votes).groups.size) == 1
    page = page_of(report.build(votes, compare=False).html)
    assert "Group" not in page.rows("worker-table")[0]
    assert "similar errors are close to each other" in page.said("workers")
    assert "Groups of workers with similar errors" not in page.said("workers")


def test_of_few_workers_no_groups_are_made(page_of: Any) -> None:
    kinds = ["expert(0.9)"] * 3 + ["mixer(0.6)"] * 2
    votes = wc.simulate_crowd(n_tasks=400, workers=kinds, n_classes=3, votes_per_task=5).crowd
    assert "Group" not in page_of(report.build(votes, compare=False).html).rows("worker-table")[0]


def test_more_groups_than_colours_share_the_last() -> None:
    from types import SimpleNamespace

    import pandas as pd

    from wisecrowd.report.groups import MAX_COLOURS, build_section

    n = MAX_COLOURS + 2
    of_worker = pd.DataFrame({"group": np.arange(n), "probability": 1.0}, index=[f"w{place}" for place in range(n)])
    groups: Any = SimpleNamespace(
        memberships=of_worker, size=pd.Series(np.ones(n)), descriptions=tuple(f"group {place}" for place in range(n))
    )
    crowd = SimpleNamespace(votes_per_worker=np.ones(n))
    diagnosed: Any = SimpleNamespace(groups=groups, crowd=crowd)
    shown: Any = SimpleNamespace(positions=np.arange(n))
    found = build_section(diagnosed, shown)
    assert found is not None
    assert [one["colour"] for one in found["rows"]][-3:] == [MAX_COLOURS] * 3
    assert [one["number"] for one in found["memberships"]] == list(range(1, n + 1))
