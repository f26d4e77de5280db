"""Section about judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wisecrowd import Panel, krippendorff_alpha, report
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel
from wisecrowd.utils.text import format_number, format_percent


@pytest.fixture(scope="module")
def simulated_panel() -> PanelSimulation:
    return simulate_panel(200, 5, 3, 3, n_models=2, strength=0.9, random_state=4)


@pytest.fixture(scope="module")
def fitted(simulated_panel: PanelSimulation) -> Panel:
    return Panel(groups=simulated_panel.groups, kinds=simulated_panel.kinds).fit(simulated_panel.crowd)


@pytest.fixture(scope="module")
def scores(simulated_panel: PanelSimulation) -> Any:
    return simulated_panel.crowd.to_frame().query("worker == 'judge0'").assign(score=0.95)


@pytest.fixture(scope="module")
def built(simulated_panel: PanelSimulation, fitted: Panel, scores: Any) -> report.Report:
    return report.build(simulated_panel.crowd, truth=simulated_panel.truth, model=fitted, scores=scores)


@pytest.fixture(scope="module")
def page(built: report.Report, page_of: Any) -> Any:
    return page_of(built.html)


def test_judges_are_those_of_the_panel(page: Any, fitted: Panel, simulated_panel: PanelSimulation, scores: Any) -> None:
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
    expected = fitted.calibration(scores, truth=simulated_panel.truth).loc["judge0"]
    assert rows["judge0"]["Score"].text == "0.95"
    assert rows["judge0"]["Accuracy of scored votes"].text == f"{format_percent(expected['accuracy'])} of 200"
    assert rows["judge0"]["Calibration error"].text == format_number(expected["calibration_error"])
    assert rows["judge1"]["Score"].text == "–"
    assert "by gold labels" in page.captions["judge-table"]


def test_groups_and_confusion_with_people(page: Any, fitted: Panel, simulated_panel: PanelSimulation) -> None:
    groups = {row["Group"].text: row for row in page.rows("judge-group-table")}
    for name, group in fitted.opinions_.iterrows():
        assert groups[str(name)]["Members"].text == str(int(group["n_workers"]))
        assert groups[str(name)]["Worth together"].text == format_number(group["worth"])
        assert f"members of “{name}” together are worth {format_number(group['worth'])} votes" in page.section_text(
            "judges"
        )
    counts = fitted.judge_confusion_.sum(axis=0)
    text = page.section_text("judges")
    for row in counts / counts.sum(axis=1, keepdims=True):
        assert "".join(format_percent(share) for share in row) in text
    assert "5 of 8 workers are judges" in text
    people = simulated_panel.crowd.select_workers(["person0", "person1", "person2"])
    assert f"Krippendorff’s alpha among people is {float(krippendorff_alpha(people)):.2f}" in text
    assert ("a", "#judges") in {(tag, attributes.get("href")) for tag, attributes in page.tags}


def test_workers_show_kind_and_group(page: Any) -> None:
    rows = {row["Worker"].text: row for row in page.rows("worker-table")}
    assert rows["judge0"]["Kind"].text == "machine"
    assert rows["judge0"]["Belongs to"].text == "model0"
    assert rows["person0"]["Kind"].text == "person"
    assert rows["person0"]["Belongs to"].text == "–"


def test_methods_without_groups_are_not_recommended(page: Any) -> None:
    assert "Use the labels of panel." in page.section_text("next")
    assert "members of a group predict each other" in page.section_text("methods")


def test_copies_lead_to_advice_about_members(simulated_panel: PanelSimulation, page: Any, page_of: Any) -> None:
    text = page_of(report.build(simulated_panel.crowd, compare=False).html).section_text("next")
    assert "If some of them are models of one family, declare the groups with --members." in text
    assert "--members" not in page.section_text("next")


@pytest.mark.slow
def test_no_section_without_judges(simulated: Any, page_of: Any) -> None:
    page = page_of(report.build(simulated.crowd, compare=False).html)
    assert "judges" not in page.texts
    assert "Kind" not in page.rows("worker-table")[0]


def test_invalid_scores_have_a_note(simulated_panel: PanelSimulation, fitted: Panel, scores: Any, page_of: Any) -> None:
    page = page_of(
        report.build(simulated_panel.crowd, model=fitted, scores=scores.assign(score=85.0), compare=False).html
    )
    assert "between 0 and 1; got 85.0" in page.section_text("judges")
    assert "Score" not in page.rows("judge-table")[0]


def test_browser_sorts_and_opens_judges(browser: Any, built: report.Report, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_the_verdict_of_a_panel_without_groups_is_on_the_page(simulated_panel: PanelSimulation) -> None:
    panel = Panel(kinds=simulated_panel.kinds).fit(simulated_panel.crowd)
    page = report.build(simulated_panel.crowd, model=panel, compare=False).html
    assert "5 judges carry the information of" in page or "5 judges are only one vote" in page
