"""One story in every view: all commands, the report, the service and its page show the same figures for the same votes."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli import build_app
from wisecrowd.diagnose.assessment import CrowdAssessment, assess_crowd
from wisecrowd.utils.text import format_percent

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("jinja2", reason="the extra report is not installed")

from wisecrowd.service.events import Upsert, VoteRecord
from wisecrowd.service.question_state import QuestionState
from wisecrowd.service.refits import calibrate_question, refit_question
from wisecrowd.service.status_page import render_status_page
from wisecrowd.service.store import Store

#: Every test runs several commands.
pytestmark = pytest.mark.slow

#: Real crowds of different sizes, numbers of classes and agreement; the fifth crowd is simulated.
REAL = ["bluebirds", "labelme", "weather_cf", "wsd"]
SIMULATED = "simulated"
#: Export of Label Studio with six tasks; a model voted on ``mood``.
EXPORT = Path(__file__).parents[1] / "recorded" / "label_studio" / "export_json.json"


def simulate() -> pd.DataFrame:
    """Return votes with spammers, an adversary and a copier."""
    kinds = ["noisy(0.75)"] * 12 + ["spammer"] * 2 + ["adversary"]
    votes = wc.simulate_crowd(150, workers=kinds, n_classes=3, votes_per_task=5, random_state=3).crowd.to_frame()
    copied = votes[votes["worker"] == "w00"].assign(worker="copier")
    return pd.concat([votes, copied])[["task", "worker", "label"]]


@pytest.fixture(
    scope="module",
    params=[SIMULATED, *(pytest.param(name, marks=[pytest.mark.data, pytest.mark.slow]) for name in REAL)],
)
def votes(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File with the votes of a crowd."""
    if request.param == SIMULATED:
        frame = simulate()
    else:
        frame = request.getfixturevalue("dataset")(request.param).crowd.to_frame()[["task", "worker", "label"]]
    path = tmp_path_factory.mktemp("views") / "votes.csv"
    frame.astype(str).to_csv(path, index=False)
    return path


def run(*words: object) -> Any:
    """Run a command and return what it prints."""
    result = CliRunner().invoke(
        build_app(), [str(word) for word in words], prog_name="wisecrowd", catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def crowd(votes: Path) -> wc.Crowd:
    return wc.read(votes)


@pytest.fixture(scope="module")
def assessment(crowd: wc.Crowd) -> CrowdAssessment:
    return assess_crowd(crowd)


@pytest.fixture(scope="module")
def figures(assessment: CrowdAssessment) -> dict[str, Any]:
    """Figures of the library, which all views have to show."""
    return assessment.to_dict()


def describe_interval(assessment: CrowdAssessment) -> str:
    accuracy = assessment.accuracy
    return f"90 % interval {format_percent(accuracy.low)} to {format_percent(accuracy.high)}"


@pytest.fixture(scope="module")
def page(votes: Path) -> str:
    """Report on the votes."""
    path = votes.parent / "page.html"
    run("report", votes, "-o", path, "--no-compare", "-q")
    return html.unescape(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def state(votes: Path) -> Iterator[QuestionState]:
    """State of the service after all votes have arrived."""
    store = Store(f"sqlite:///{votes.parent / 'votes.db'}")
    frame = pd.read_csv(votes, dtype=str)
    records = [VoteRecord("mood", *row) for row in frame.itertuples(index=False)]
    store.apply([Upsert(f"id:{number}", (record,)) for number, record in enumerate(records)])
    state = QuestionState.create(store.vocabularies["mood"], wc.ModelAverage(), 0.9)
    state.update_sizes()
    state.finish_calibration(calibrate_question(store.url, 0, wc.ModelAverage()))
    state.start_fit()
    state.finish_fit(refit_question(store.url, 0, wc.ModelAverage(), state.calibration))
    yield state
    store.close()


def test_commands_have_the_figures_of_the_library(
    votes: Path, figures: dict[str, Any], assessment: CrowdAssessment
) -> None:
    out = {name: votes.parent / name for name in ("aggregate", "diagnose", "plan")}
    records = {
        "aggregate": json.loads(run("aggregate", votes, "--json", "-o", out["aggregate"]))["summary"],
        "diagnose": json.loads(run("diagnose", votes, "--json", "-o", out["diagnose"])),
        "plan": json.loads(run("plan", votes, "--budget", 5, "--json")),
    }
    assert {name: record["figures"] for name, record in records.items()} == dict.fromkeys(records, figures)
    labels = pd.read_csv(out["aggregate"] / "labels.csv", dtype={"task": str, "label": str}).set_index("task")
    tasks = pd.read_csv(out["diagnose"] / "tasks.csv", dtype={"task": str, "label": str}).set_index("task")
    np.testing.assert_allclose(labels["confidence"], tasks.loc[labels.index, "confidence"], atol=1e-6)
    assert (labels["label"] == tasks.loc[labels.index, "label"]).all()
    np.testing.assert_allclose(labels["confidence"].mean(), figures["mean_confidence"], atol=1e-5)
    assert records["plan"]["curve"][0]["expected_accuracy"] == pytest.approx(figures["mean_confidence"], abs=1e-6)
    spammers = {
        name for name, flags in figures["flagged_workers"].items() if {"spammer", "one-button"} & set(flags.split(", "))
    }
    assert set(records["plan"]["left_out"]) == spammers
    for name in ("aggregate", "diagnose"):
        workers = pd.read_csv(out[name] / "workers.csv", dtype={"worker": str}, keep_default_na=False).set_index(
            "worker"
        )
        assert list(workers["flags"][workers["flags"] != ""].items()) == list(figures["flagged_workers"].items())
        assert workers["flags"].iloc[len(figures["flagged_workers"]) :].eq("").all(), "flagged workers come first"
        rated = assessment.worker_table["accuracy"].rename(index=str)
        np.testing.assert_allclose(workers["accuracy"], rated[workers.index], atol=1e-5)
    for key in ("best", "worst"):
        for row in records["aggregate"]["workers"][key]:
            assert row["accuracy"] == pytest.approx(rated[row["worker"]], abs=1e-5)


def test_the_printed_summaries_agree(votes: Path, figures: dict[str, Any]) -> None:
    accuracy = wc.evaluate.accuracy.AccuracyEstimate.from_dict(figures["expected_accuracy"])
    for words in (("aggregate", votes), ("diagnose", votes), ("plan", votes, "--budget", 5)):
        text = " ".join(run(*words).split())
        assert f"Accuracy expected {accuracy}, by votes alone" in text
        assert f"mean confidence {figures['mean_confidence']:.3f}" in text
        n_flagged = len(figures["flagged_workers"])
        assert f"Flagged {f'{n_flagged:,} of' if n_flagged else 'none of'}" in text


def test_the_report_shows_them(page: str, figures: dict[str, Any], assessment: CrowdAssessment) -> None:
    first_tile = re.search(
        r"<dl class=\"tiles\">\s*<div class=\"main\"><dt>(.*?)</dt><dd><strong>(.*?)</strong> <span>(.*?)</span>",
        page,
        re.S,
    )
    assert first_tile is not None
    interval = describe_interval(assessment)
    assert first_tile.groups() == (
        "expected accuracy",
        format_percent(assessment.accuracy.accuracy),
        f"of the labels; {interval}",
    )
    rows = re.findall(r"<tr data-tags=\"([^\"]*)\" data-least", page)
    assert [tags for tags in rows if tags] == [flags.replace(",", "") for flags in figures["flagged_workers"].values()]
    assert f"Use the labels of {figures['recommended_method']}." in page
    assert all(f"<strong>Warning:</strong> {warning}" in page for warning in figures["warnings"])


def test_truth_for_evaluation_changes_no_figure(
    votes: Path, figures: dict[str, Any], assessment: CrowdAssessment
) -> None:
    """``--score`` is compared with the labels and never enters what is computed, in any view."""
    truth = assessment.labels.table["label"].rename_axis("task").rename("truth").iloc[:40]
    path, page = votes.parent / "score.csv", votes.parent / "scored.html"
    truth.to_csv(path)
    record = json.loads(run("aggregate", votes, "--score", path, "--json"))["summary"]
    assert record["figures"] == figures
    run("report", votes, "--score", path, "-o", page, "--no-compare", "-q")
    text = html.unescape(page.read_text(encoding="utf-8"))
    expected = f"{format_percent(assessment.accuracy.accuracy)} of the labels are expected to be right"
    assert f"{expected} ({describe_interval(assessment)})" in text
    assert f"On {len(truth)} gold tasks" in text


def test_the_service_and_its_page_show_them(
    state: QuestionState, figures: dict[str, Any], assessment: CrowdAssessment
) -> None:
    summary = state.describe()
    assert summary["flagged_workers"] == figures["flagged_workers"]
    assert summary["recommended_method"] == figures["recommended_method"]
    assert summary["warnings"] == figures["warnings"]
    assert summary["mean_confidence"] == pytest.approx(figures["mean_confidence"], abs=1e-4)
    assert summary["expected_accuracy"] == pytest.approx(figures["expected_accuracy"], abs=1e-4)
    expected = assessment.labels.table
    answers = pd.DataFrame(state.describe_tasks(np.arange(state.n_tasks))).set_index("task")
    expected.index = expected.index.astype(str)
    np.testing.assert_allclose(answers["confidence"], expected.loc[answers.index, "confidence"], atol=1e-3)
    coordinator: Any = SimpleNamespace(lock=threading.Lock(), questions=lambda: [state], started_at=0.0, n_events=1)
    text = html.unescape(bytes(render_status_page(coordinator).body).decode())
    assert f"<strong>{format_percent(assessment.accuracy.accuracy)}</strong>" in text
    assert f"{describe_interval(assessment)}, by votes alone" in text
    shown = [flag for flags in figures["flagged_workers"].values() for flag in flags.split(", ")]
    assert re.findall(r'<span class="flag">(.*?)</span>', text)[: len(shown)] == shown[:20]
    workers = assessment.worker_table
    described = {row["worker"]: row["accuracy"] for row in state.describe_workers()}
    rated = {str(worker): accuracy for worker, accuracy in workers["accuracy"].items()}
    assert described == pytest.approx(rated, abs=1e-3)


@pytest.mark.parametrize("question", ["mood", "stars"])
def test_a_small_export_has_one_story(question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few votes, an accuracy by labels that the votes themselves helped to infer is far too high."""
    words = (EXPORT, "--question", question, "-q")
    run("aggregate", *words, "-o", tmp_path / "aggregate")
    run("diagnose", *words, "-o", tmp_path / "diagnose")
    run("report", *words, "-o", tmp_path / "page.html")
    aggregated, diagnosed = (
        pd.read_csv(tmp_path / name / "workers.csv", dtype={"worker": str}).set_index("worker").sort_index()
        for name in ("aggregate", "diagnose")
    )
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    reported = {
        worker["name"].strip("\u2068\u2069"): float(worker["accuracy"].partition(" ")[0])
        for worker in json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["workers"]  # type: ignore[index]
    }
    sessions: list[Any] = []
    monkeypatch.setattr(
        "wisecrowd.service.review_app.create_review_app", lambda session, token: sessions.append(session)
    )
    monkeypatch.setattr("wisecrowd.service.server.create_server", lambda app: SimpleNamespace(run=lambda sockets: None))
    run("review", *words, "-o", tmp_path / "checked.csv", "--port", 0)
    queue = sessions[0].queue
    reviewed = {vote["worker"]: vote["accuracy"] for n in range(len(queue)) for vote in queue.describe_votes(n)}
    expected = diagnosed["accuracy"].to_dict()
    assert aggregated["accuracy"].to_dict() == pytest.approx(expected, abs=1e-5)
    assert reported == pytest.approx(expected, abs=1e-2)
    assert reviewed == pytest.approx({worker: expected[worker] for worker in reviewed}, abs=1e-3)


def test_gold_means_the_same_in_all_views(tmp_path: Path) -> None:
    """Known truth is used in the fit, calibrates the confidence, and never counts as evidence about itself."""
    made = wc.simulate_crowd(120, workers=["noisy(0.7)"] * 10, n_classes=3, votes_per_task=4, random_state=5)
    votes, gold = tmp_path / "votes.csv", tmp_path / "gold.csv"
    made.crowd.to_frame()[["task", "worker", "label"]].to_csv(votes, index=False)
    made.truth[:40].rename_axis("task").rename("label").to_csv(gold)
    expected = assess_crowd(wc.read(votes), gold=wc.read_truth(gold))
    record = json.loads(run("aggregate", votes, "--gold", gold, "--json"))["summary"]["figures"]
    assert record == expected.to_dict()
    assert record["expected_accuracy"]["gold_tasks"] == 40
    plan = json.loads(run("plan", votes, "--budget", 200, "--gold", gold, "--json", "-o", tmp_path / "plan"))
    assert plan["figures"] == record
    requests = pd.read_csv(tmp_path / "plan" / "requests.csv", dtype=str)
    assert set(requests["task"]).isdisjoint(made.truth[:40].index.astype(str)), "gold tasks need no votes"
    page = tmp_path / "page.html"
    run("report", votes, "--gold", gold, "-o", page, "--no-compare", "-q")
    text = html.unescape(page.read_text(encoding="utf-8"))
    accuracy = expected.accuracy
    assert (
        f"<strong>{format_percent(accuracy.accuracy)}</strong> <span>of the labels; {describe_interval(expected)}"
        in text
    )
    n_right, n_gold = int(expected.labels.outcomes["right"].sum()), len(expected.labels.outcomes)
    assert n_gold == 40
    assert f"{n_right} labels, inferred without their own truth, are right" in text
    store = Store(f"sqlite:///{tmp_path / 'votes.db'}")
    records = [VoteRecord("mood", *row) for row in pd.read_csv(votes, dtype=str).itertuples(index=False)]
    records += [VoteRecord("mood", str(task), None, str(label)) for task, label in made.truth[:40].items()]
    store.apply([Upsert(f"id:{number}", (record,)) for number, record in enumerate(records)])
    calibration = calibrate_question(store.url, 0, wc.ModelAverage())
    state = QuestionState.create(store.vocabularies["mood"], wc.ModelAverage(), 0.9)
    state.update_sizes()
    state.update_votes(
        {},
        {
            store.vocabularies["mood"].tasks.codes[str(task)]: store.vocabularies["mood"].classes.codes[str(label)]
            for task, label in made.truth[:40].items()
        },
        40,
    )
    state.finish_calibration(calibration)
    state.start_fit()
    state.finish_fit(refit_question(store.url, 0, wc.ModelAverage(), state.calibration))
    summary = state.describe()
    store.close()
    assert summary["flagged_workers"] == record["flagged_workers"]
    assert summary["expected_accuracy"] == pytest.approx(record["expected_accuracy"], abs=1e-3)


def test_no_view_has_a_confidence_below_chance(tmp_path: Path) -> None:
    """A label less probable than chance would mean that another one is better; all views have the same figure."""
    kinds = ["noisy(0.4)"] * 12 + ["spammer"] * 6
    made = wc.simulate_crowd(150, workers=kinds, n_classes=3, votes_per_task=3, random_state=18)
    votes = tmp_path / "votes.csv"
    made.crowd.to_frame()[["task", "worker", "label"]].to_csv(votes, index=False)
    crowd = wc.read(votes)
    assessment = assess_crowd(crowd)
    estimate = wc.estimate_confidence(assessment.model, crowd)
    assert estimate.confidence.min() == 1 / 3
    np.testing.assert_array_equal(estimate.confidence, assessment.labels.confidence)
    np.testing.assert_allclose(assessment.posterior[np.arange(150), estimate.label], estimate.confidence, atol=1e-8)
    out = {name: tmp_path / name for name in ("aggregate", "diagnose", "plan")}
    records = {
        "aggregate": json.loads(run("aggregate", votes, "--json", "-o", out["aggregate"]))["summary"],
        "diagnose": json.loads(run("diagnose", votes, "--json", "-o", out["diagnose"])),
        "plan": json.loads(run("plan", votes, "--budget", 100, "--json", "-o", out["plan"])),
    }
    assert {name: record["figures"] for name, record in records.items()} == dict.fromkeys(records, assessment.to_dict())
    labels = pd.read_csv(out["aggregate"] / "labels.csv", dtype={"task": str}).set_index("task")["confidence"]
    tasks = pd.read_csv(out["diagnose"] / "tasks.csv", dtype={"task": str}).set_index("task")["confidence"]
    requests = pd.read_csv(out["plan"] / "requests.csv", dtype={"task": str}).drop_duplicates("task").set_index("task")
    np.testing.assert_allclose(labels, estimate.confidence, atol=1e-6)
    np.testing.assert_allclose(tasks.loc[labels.index], labels, atol=1e-6)
    np.testing.assert_allclose(requests["confidence"], labels[requests.index], atol=1e-6)
    store = Store(f"sqlite:///{tmp_path / 'votes.db'}")
    frame = pd.read_csv(votes, dtype=str)
    records_of_votes = [VoteRecord("mood", *row) for row in frame.itertuples(index=False)]
    store.apply([Upsert(f"id:{number}", (record,)) for number, record in enumerate(records_of_votes)])
    state = QuestionState.create(store.vocabularies["mood"], wc.ModelAverage(), 0.9)
    state.update_sizes()
    state.finish_calibration(calibrate_question(store.url, 0, wc.ModelAverage()))
    state.start_fit()
    state.finish_fit(refit_question(store.url, 0, wc.ModelAverage(), state.calibration))
    answers = pd.DataFrame(state.describe_tasks(np.arange(state.n_tasks))).set_index("task")
    store.close()
    np.testing.assert_allclose(answers.loc[labels.index.astype(str), "confidence"], labels, atol=1e-3)
    shards = tmp_path / "shards"
    run("shard", votes, "-o", shards)
    run("aggregate", shards, "-o", tmp_path / "sharded")
    of_shards = pd.read_parquet(tmp_path / "sharded" / "labels.parquet").set_index("task")["confidence"]
    assert of_shards.min() >= 1 / 3 - 1e-6
