"""Reports on comparisons and label sets."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import UsageError
from wisecrowd.report import build
from wisecrowd.report.answers import build_comparison_content, build_label_set_content


class Page(HTMLParser):
    """Ids of the elements, and the text of the cells of each table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.table = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.ids += [str(named["id"])] if "id" in named else []
        if tag == "table":
            self.table = str(named.get("id"))
            self.tables[self.table] = []
        if tag == "tr" and self.table:
            self.tables[self.table].append([])
        if tag in ("th", "td") and self.table:
            self.tables[self.table][-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.tables[self.table][-1][-1] += data.strip()


@pytest.fixture(scope="module")
def comparisons() -> wc.Comparisons:
    made = wc.simulate_comparisons(n_items=6, n_workers=8, votes_per_worker=30, score_spread=2.0, random_state=3)
    frame = made.comparisons.to_frame()
    lefty = frame[frame["worker"] == "w0"].assign(worker="<b>lefty</b>", label=lambda rows: rows["left"])
    return wc.Comparisons.from_frame(pd.concat([frame, lefty]), duplicates="keep")


@pytest.fixture(scope="module")
def label_sets() -> wc.LabelSetCrowd:
    return wc.simulate_label_sets(n_tasks=50, n_labels=4, random_state=0).crowd


def test_the_page_of_comparisons_has_the_ranking(comparisons: wc.Comparisons) -> None:
    model = wc.BradleyTerry().fit(comparisons)
    html = build(comparisons, model=model, compare=False, title="Arena", command="wisecrowd report arena.csv").html
    page = Page(html)
    assert {"summary", "ranking", "next", "workers", "provenance"} <= set(page.ids)
    ranking = page.tables["ranking-table"][1:]
    assert [row[1] for row in ranking] == model.scores_.index.tolist()
    assert ranking[0][0] == "1"
    lower, upper = model.scores_[["lower", "upper"]].iloc[0]
    assert f"{lower:.2f} to {upper:.2f}" in ranking[0][2]
    assert "wisecrowd report arena.csv" in html
    flagged = page.tables["workers-table"][1]
    assert flagged[0] == "<b>lefty</b>"
    assert "left" in flagged[1]
    assert "<b>lefty" not in html
    assert "almost always chose the left item" in html


def test_the_page_of_label_sets_has_agreement_and_confidence(label_sets: wc.LabelSetCrowd) -> None:
    model = wc.BinaryRelevance().fit(label_sets)
    page = Page(build(label_sets, model=model, compare=False).html)
    labels = page.tables["labels-table"][1:]
    assert {row[0] for row in labels} == set(label_sets.labels)
    tasks = page.tables["tasks-table"][1:]
    assert len(tasks) == 50
    assert [float(row[2]) for row in tasks] == sorted(float(row[2]) for row in tasks)
    assert len(page.tables["workers-table"]) == label_sets.n_workers + 1


@pytest.mark.slow
def test_methods_are_compared_on_request(comparisons: wc.Comparisons) -> None:
    page = Page(build(comparisons).html)
    methods = page.tables["methods-table"][1:]
    assert methods[0][0].startswith("judge-aware-bradley-terry")
    assert "use this" in methods[0][0]
    assert len(methods) == 5


def test_too_few_votes_leave_the_comparison_of_methods_out() -> None:
    few = wc.Comparisons.from_tuples([("x", "a", "b", "a"), ("y", "b", "c", "b")])
    content = build_comparison_content(few)
    assert "methods" not in [section["id"] for section in content["sections"]]


def test_groups_of_items_are_shown(comparisons: wc.Comparisons) -> None:
    other = wc.Comparisons.from_tuples([("w1", "p", "q", "p"), ("w2", "p", "q", "q")])
    with pytest.warns(wc.errors.DataWarning, match="not connected"):
        content = build_comparison_content(
            wc.Comparisons.concat([comparisons, other]), model="bradley-terry", compare=False
        )
    assert any("2 groups without comparisons" in sentence for sentence in content["sentences"])
    columns = [column["text"] for column in content["sections"][0]["table"]["columns"]]
    assert "Group" in columns


def test_methods_without_intervals_and_without_workers() -> None:
    votes = {"left": list("abc"), "right": list("bca"), "label": list("abc")}
    content = build_comparison_content(wc.Comparisons.from_frame(votes, worker=None), model="elo", compare=False)
    assert [section["id"] for section in content["sections"]] == ["ranking"]


def test_large_tables_are_selections(monkeypatch: pytest.MonkeyPatch, label_sets: wc.LabelSetCrowd) -> None:
    monkeypatch.setattr("wisecrowd.report.answers.MAX_ROWS", 3)
    monkeypatch.setattr("wisecrowd.report.section_tables.MAX_ROWS", 3)
    sections = build_label_set_content(label_sets, model="binary-relevance", compare=False)["sections"]
    by_id = {section["id"]: section["table"] for section in sections}
    assert [len(by_id[name]["rows"]) for name in ("labels", "tasks", "workers")] == [3, 3, 3]
    assert re.search(r"3 of 50 tasks", by_id["tasks"]["caption"])


def test_unused_arguments_are_refused(comparisons: wc.Comparisons) -> None:
    with pytest.raises(UsageError, match="truth"):
        build(comparisons, truth={"t": 1})
