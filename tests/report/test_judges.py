"""Judges on the page: what each is worth, what it shares, how sure it is, and where it differs from people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wisecrowd import Panel, krippendorff_alpha, report
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel
from wisecrowd.utils.text import format_number, format_percent


@pytest.fixture(scope="module")
def panel_made() -> PanelSimulation:
    return simulate_panel(200, 5, 3, 3, n_models=2, strength=0.9, random_state=4)


@pytest.fixture(scope="module")
def fitted(panel_made: PanelSimulation) -> Panel:
    return Panel(groups=panel_made.groups, kinds=panel_made.kinds).fit(panel_made.crowd)


@pytest.fixture(scope="module")
def scores(panel_made: PanelSimulation) -> Any:
    return panel_made.crowd.to_frame().query("worker == 'judge0'").assign(score=0.95)


@pytest.fixture(scope="module")
def built(panel_made: PanelSimulation, fitted: Panel, scores: Any) -> report.Report:
    return report.build(panel_made.crowd, truth=panel_made.truth, model=fitted, scores=scores)


@pytest.fixture(scope="module")
def page(built: report.Report, page_of: Any) -> Any:
    return page_of(built.html)


def test_judges_are_those_of_the_panel(page: Any, fitted: Panel, panel_made: PanelSimulation, scores: Any) -> None:
    rows = {row["Judge"].text: row for row in page.rows("judge-table")}
    assert set(rows) == set(fitted.judges_.index)
    for name, judge in fitted.judges_.iterrows():
        row = rows[str(name)]
        assert row["Group"].text == judge["group"]
        assert row["Worth"].text == format_number(judge["worth"])
        assert row["Alone"].text == format_number(judge["alone"])
        assert row["Shared"].text == format_percent(judge["shared"])
        assert row["Accuracy"].text == format_percent(judge["accuracy"])
        assert row["Agreement with people"].text == format_percent(judge["agreement"])
    wanted = fitted.calibration(scores, truth=panel_made.truth).loc["judge0"]
    assert rows["judge0"]["Score"].text == "0.95"
    assert rows["judge0"]["Accuracy of scored votes"].text == f"{format_percent(wanted['accuracy'])} of 200"
    assert rows["judge0"]["Calibration error"].text == format_number(wanted["calibration_error"])
    assert rows["judge1"]["Score"].text == "–"
    assert "by gold labels" in page.captions["judge-table"]


def test_groups_and_what_judges_say_where_people_say_a_class(
    page: Any, fitted: Panel, panel_made: PanelSimulation
) -> None:
    groups = {row["Group"].text: row for row in page.rows("judge-group-table")}
    for name, group in fitted.opinions_.iterrows():
        assert groups[str(name)]["Members"].text == str(int(group["n_workers"]))
        assert groups[str(name)]["Worth together"].text == format_number(group["worth"])
        assert f"members of “{name}” together are worth {format_number(group['worth'])} votes" in page.said("judges")
    counts = fitted.judge_confusion_.sum(axis=0)
    said = page.said("judges")
    for row in counts / counts.sum(axis=1, keepdims=True):
        assert "".join(format_percent(share) for share in row) in said
    assert "5 of 8 workers are judges" in said
    people = panel_made.crowd.select_workers(["person0", "person1", "person2"])
    assert f"Krippendorff’s alpha among people is {float(krippendorff_alpha(people)):.2f}" in said
    assert ("a", "#judges") in {(tag, found.get("href")) for tag, found in page.tags}


def test_workers_show_kind_and_group(page: Any) -> None:
    rows = {row["Worker"].text: row for row in page.rows("worker-table")}
    assert rows["judge0"]["Kind"].text == "machine"
    assert rows["judge0"]["Belongs to"].text == "model0"
    assert rows["person0"]["Kind"].text == "person"
    assert rows["person0"]["Belongs to"].text == "–"


def test_methods_that_know_no_groups_are_not_recommended(page: Any) -> None:
    assert "Use the labels of panel." in page.said("next")
    assert "members of a group predict each other" in page.said("methods")


def test_copies_may_be_machines_that_nobody_told_of(panel_made: PanelSimulation, page: Any, page_of: Any) -> None:
    told = page_of(report.build(panel_made.crowd, compare=False).html).said("next")
    assert "If some of them are models of one family, declare the groups with --members." in told
    assert "--members" not in page.said("next")


def test_without_machines_there_is_no_such_section(made: Any, page_of: Any) -> None:
    page = page_of(report.build(made.crowd, compare=False).html)
    assert "judges" not in page.texts
    assert "Kind" not in page.rows("worker-table")[0]


def test_scores_that_are_none_are_told(panel_made: PanelSimulation, fitted: Panel, scores: Any, page_of: Any) -> None:
    page = page_of(report.build(panel_made.crowd, model=fitted, scores=scores.assign(score=85.0), compare=False).html)
    assert "between 0 and 1; got 85.0" in page.said("judges")
    assert "Score" not in page.rows("judge-table")[0]


def test_a_browser_sorts_and_opens_them(browser: Any, built: report.Report, tmp_path: Path) -> None:
    browser.get_log("browser")
    browser.get(built.save(tmp_path / "page.html").as_uri())

    def find(selector: str) -> Any:
        return browser.find_elements("css selector", selector)

    (worth,) = [one for one in find("#judge-table button.sort") if one.text == "Worth"]
    worth.click()
    values = [float(row.get_attribute("data-v")) for row in find("#judge-table tbody tr td:nth-child(4)")]
    assert len(values) == 5
    assert values in (sorted(values), sorted(values, reverse=True))
    assert not find("#judges details table")[0].is_displayed()
    find("#judges summary")[0].click()
    assert len(find("#judges details table")) == 5
    assert find("#judges details table")[0].is_displayed()
    assert browser.get_log("browser") == []
