"""Section about groups of workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.utils.text import format_percent


@pytest.fixture(scope="module")
def simulated() -> Any:
    kinds = ["expert(0.9)"] * 10 + ["mixer(0.6)"] * 7 + ["spammer"]
    return wc.simulate_crowd(n_tasks=400, workers=kinds, n_classes=3, votes_per_task=6, random_state=2)


@pytest.fixture(scope="module")
def page(simulated: Any, page_of: Any) -> Any:
    return page_of(report.build(simulated.crowd, compare=False).html)


@pytest.mark.slow
def test_each_group_has_a_description(simulated: Any, page: Any) -> None:
    groups = wc.diagnose_crowd(simulated.crowd).groups
    assert len(groups.size) >= 2
    for sentence in groups.descriptions:
        assert sentence in page.section_text("workers")


@pytest.mark.slow
def test_table_and_map_show_the_groups(simulated: Any, page: Any) -> None:
    of_worker = wc.diagnose_crowd(simulated.crowd).groups.memberships
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
    assert titles.count(", group ") == simulated.crowd.n_workers


@pytest.mark.slow
def test_one_group_has_no_section(page_of: Any) -> None:
    votes = wc.simulate_crowd(n_tasks=200, workers=["noisy(0.8)"] * 6, n_classes=2, votes_per_task=3).crowd
    assert len(wc.diagnose_crowd(votes).groups.size) == 1
    page = page_of(report.build(votes, compare=False).html)
    assert "Group" not in page.rows("worker-table")[0]
    assert "similar errors are close to each other" in page.section_text("workers")
    assert "Groups of workers with similar errors" not in page.section_text("workers")


def test_few_workers_have_no_groups(page_of: Any) -> None:
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
    content = build_section(diagnosed, shown)
    assert content is not None
    assert [one["colour"] for one in content["rows"]][-3:] == [MAX_COLOURS] * 3
    assert [one["number"] for one in content["memberships"]] == list(range(1, n + 1))
