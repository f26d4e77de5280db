"""Panels on the command line: who is a machine, who belongs together, and what they are worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.cli._members import Members, use_worker_names
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel

Run = Callable[..., Any]
EXTRA = ["calibration.csv", "groups.csv", "judge_confusion.csv", "judges.csv"]


@pytest.fixture(scope="module")
def made() -> PanelSimulation:
    """Four prompts of one model, and three people."""
    return simulate_panel(n_tasks=150, n_judges=4, n_people=3, n_classes=3, strength=0.9)


@pytest.fixture
def votes(made: PanelSimulation, tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    made.crowd.to_frame().to_csv(path, index=False)
    return path


@pytest.fixture
def members(made: PanelSimulation, tmp_path: Path) -> Path:
    """Table of the judges; workers that are not listed are people."""
    path = tmp_path / "members.csv"
    judges = [str(name) for name in made.crowd.workers if str(name).startswith("judge")]
    path.write_text("worker,kind,group\n" + "".join(f"{name},machine,gpt\n" for name in judges))
    return path


@pytest.fixture(scope="module")
def labelled() -> PanelSimulation:
    """Two prompts of one model, one of another, and three people."""
    return simulate_panel(n_tasks=150, n_judges=3, n_people=3, n_models=2, strength=0.9)


@pytest.fixture
def export(labelled: PanelSimulation, tmp_path: Path) -> Path:
    """Export of Label Studio in which only the prompts have scores."""
    models = {"judge0": "gpt-4o:plain", "judge1": "bert", "judge2": "gpt-4o:reasons"}

    def result(label: str) -> list[dict[str, Any]]:
        return [{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}]

    tasks = []
    for name, votes in labelled.crowd.to_frame().groupby("task"):
        people, predictions = [], []
        for who, label in zip(votes["worker"], votes["label"], strict=True):
            if who in models:
                score = {"score": 0.9} if "gpt" in models[who] else {}
                predictions.append({"model_version": models[who], "result": result(label), **score})
            else:
                people.append({"completed_by": 1 + int(who.removeprefix("person")), "result": result(label)})
        tasks.append({"id": str(name), "data": {}, "annotations": people, "predictions": predictions})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path


# ---------------------------------------------------------------------- aggregate


def test_a_table_tells_who_is_who(run: Run, votes: Path, members: Path, made: PanelSimulation) -> None:
    said = run("aggregate", votes, "-m", "panel", "--members", members, "-o", "out")
    assert said.exit_code == 0, said.output
    assert said.stderr == ""
    wanted = ["groups.csv", "judge_confusion.csv", "judges.csv", "labels.csv", "run.json", "workers.csv"]
    assert sorted(path.name for path in Path("out").iterdir()) == wanted
    fitted = wc.Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    assert pd.read_csv("out/labels.csv")["label"].tolist() == fitted.labels_.tolist()
    judges = pd.read_csv("out/judges.csv", index_col="worker")
    assert judges.index.tolist() == fitted.judges_.index.tolist()
    np.testing.assert_allclose(judges["worth"], fitted.judges_["worth"], atol=1e-6)
    groups = pd.read_csv("out/groups.csv", index_col="group")
    assert groups.loc["gpt", "n_workers"] == 4
    assert groups.loc["gpt", "worth"] == pytest.approx(fitted.opinions_["worth"].iloc[0], abs=1e-6)
    assert "Judges" in said.stdout
    assert "votes of a person" in said.stdout
    assert "gpt" in said.stdout
    assert "(4 members)" in " ".join(said.stdout.split())


def test_what_judges_say_where_people_say_a_class(run: Run, votes: Path, members: Path) -> None:
    run("aggregate", votes, "-m", "panel", "--members", members, "-o", "out")
    table = pd.read_csv("out/judge_confusion.csv")
    assert table.columns.tolist() == ["worker", "people_say", "judge_says", "n_votes", "share"]
    np.testing.assert_allclose(table.groupby(["worker", "people_say"])["share"].sum(), 1, atol=1e-5)
    np.testing.assert_allclose(table.groupby("worker")["n_votes"].sum(), 150, atol=1e-3)


def test_the_record_tells_who_was_who(run: Run, votes: Path, members: Path) -> None:
    record = json.loads(run("aggregate", votes, "-m", "panel", "--members", members, "-o", "out", "--json").stdout)
    assert record["command"]["members"] == str(members)
    assert set(record["parameters"]["kinds"].values()) == {"person", "machine"}
    assert set(record["parameters"]["groups"].values()) == {"gpt"}
    assert set(record["summary"]["judges"]) == set(record["parameters"]["groups"])
    assert record["summary"]["groups"]["gpt"]["members"] == 4


def test_an_export_tells_it_by_itself(run: Run, export: Path) -> None:
    said = run("aggregate", export, "-m", "panel", "-o", "out")
    assert said.exit_code == 0, said.output
    assert set(EXTRA) < {path.name for path in Path("out").iterdir()}
    record = json.loads(Path("out/run.json").read_text())
    assert record["parameters"]["groups"] == {"bert": "bert", "gpt-4o:plain": "gpt-4o", "gpt-4o:reasons": "gpt-4o"}
    assert sorted(record["parameters"]["kinds"].values()) == ["machine"] * 3 + ["person"] * 3
    judges = pd.read_csv("out/judges.csv", index_col="worker").fillna({"group": ""})
    assert judges["group"].to_dict() == {"bert": "", "gpt-4o:plain": "gpt-4o", "gpt-4o:reasons": "gpt-4o"}
    calibration = pd.read_csv("out/calibration.csv", index_col="worker")
    assert calibration["n_scores"].to_dict() == {"gpt-4o:plain": 150, "gpt-4o:reasons": 150}
    assert (calibration["score"] == 0.9).all()
    assert (calibration["calibration_error"] > 0.1).all()


@pytest.mark.slow
def test_calibration_is_by_the_truth_where_it_is_known(
    run: Run, export: Path, labelled: PanelSimulation, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.csv"
    labelled.truth.head(50).rename_axis("task").to_csv(gold)
    assert run("aggregate", export, "-m", "panel", "--score", gold, "-o", "out").exit_code == 0
    told = pd.read_csv("out/calibration.csv", index_col="worker")
    assert set(told["n_scores"]) == {50}
    said = labelled.crowd.to_frame().query("worker == 'judge0'").set_index("task")["label"]
    right = (said[labelled.truth.index[:50]] == labelled.truth.head(50)).mean()
    assert told.loc["gpt-4o:plain", "accuracy"] == pytest.approx(right)
    tasks = json.loads(export.read_text())
    tasks[0]["predictions"] = []  # and what is known is of a task that no machine scored
    export.write_text(json.dumps(tasks))
    labelled.truth.loc[[tasks[0]["id"]]].rename_axis("task").to_csv(gold)
    assert run("aggregate", export, "-m", "panel", "--score", gold, "-o", "out").exit_code == 0
    assert set(pd.read_csv("out/calibration.csv")["n_scores"]) == {149}  # by the panel itself


@pytest.mark.slow
def test_a_table_counts_more_than_an_export(run: Run, export: Path) -> None:
    Path("members.csv").write_text("worker,kind,group\nbert,,gpt-4o\ngpt-4o:plain,,other\n1,machine,\n")
    record = json.loads(run("aggregate", export, "-m", "panel", "--members", "members.csv", "--json").stdout)
    assert record["parameters"]["groups"] == {"bert": "gpt-4o", "gpt-4o:plain": "other", "gpt-4o:reasons": "gpt-4o"}
    assert record["parameters"]["kinds"]["1"] == "machine"
    assert record["parameters"]["kinds"]["2"] == "person"


@pytest.mark.slow
def test_what_is_wrong_with_other_questions_does_not_matter(run: Run, export: Path) -> None:
    tasks = json.loads(export.read_text())
    for number in (3, 4):  # one answer twice by one person, and in another question
        result = {
            "from_name": "other",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": ["a", "b"][: number - 2]},
        }
        tasks[0]["annotations"].append({"completed_by": 1, "result": [result]})
    export.write_text(json.dumps(tasks))
    said = run("aggregate", export, "--question", "mood", "-m", "panel", "-o", "out")
    assert said.exit_code == 0, said.output
    assert Path("out/judges.csv").exists()
    assert run("aggregate", export, "--question", "other=b", "-m", "panel", "--duplicates", "last").exit_code == 0


def test_scores_that_are_no_probabilities_are_left_out(run: Run, export: Path) -> None:
    export.write_text(export.read_text().replace('"score": 0.9', '"score": 7.5'))
    said = run("aggregate", export, "-m", "panel", "-o", "out")
    assert said.exit_code == 0
    assert "calibration.csv is not written: a score is the probability" in " ".join(said.stderr.split())
    assert not Path("out/calibration.csv").exists()


def test_groups_alone_are_enough(run: Run, votes: Path) -> None:
    Path("members.tsv").write_text("annotator\tteam\nperson0\tvendor\nperson1\tvendor\n")
    record = json.loads(run("aggregate", votes, "-m", "panel", "--members", "members.tsv", "--json").stdout)
    assert record["parameters"]["kinds"] is None
    assert record["parameters"]["groups"] == {"person0": "vendor", "person1": "vendor"}


def test_without_machines_and_groups_a_panel_is_what_it_was(run: Run, votes: Path, made: PanelSimulation) -> None:
    record = json.loads(run("aggregate", votes, "-m", "panel", "-o", "out", "--json").stdout)
    assert record["files"] == ["labels.csv", "workers.csv", "run.json"]
    assert record["parameters"]["kinds"] is record["parameters"]["groups"] is None
    assert "judges" not in record["summary"]
    labels = pd.read_csv("out/labels.csv")["label"].tolist()
    assert labels == wc.DawidSkene().fit(made.crowd).labels_.tolist()
    assert "so panel equals dawid-skene; see --members" in " ".join(
        run("aggregate", votes, "-m", "panel").stdout.split()
    )


def test_other_methods_take_machines_for_workers(run: Run, export: Path) -> None:
    record = json.loads(run("aggregate", export, "-m", "one-coin", "-o", "out", "--json").stdout)
    assert record["files"] == ["labels.csv", "workers.csv", "run.json"]


def test_what_a_panel_left_is_told_from_what_is_new(run: Run, votes: Path, members: Path) -> None:
    run("aggregate", votes, "-m", "panel", "--members", members, "-o", "out")
    said = " ".join(run("aggregate", votes, "-m", "majority-vote", "-o", "out").stderr.split())
    assert "judges.csv, judge_confusion.csv, groups.csv in out: written by an earlier run, not by this one" in said


def test_mistakes_in_members_end_in_a_message(run: Run, votes: Path, members: Path) -> None:
    for table, message in [
        ("worker,kind\njudge0,robot\n", "must be person or machine; got 'robot'"),
        ("worker,kind\nnobody,machine\n", "none of its workers has votes"),
        ("worker,kind\njudge0,machine\njudge0,person\n", "contradicts itself about 'judge0'"),
        ("worker,colour\njudge0,red\n", "it needs a column kind (person or machine)"),
        ("kind,group\nmachine,gpt\n", "no worker column"),
        ("worker,kind\n,machine\n", "every row needs a worker"),
        ("worker,team,vendor\njudge0,a,b\n", "could be 'team' or 'vendor'"),
    ]:
        members.write_text(table)
        said = run("aggregate", votes, "-m", "panel", "--members", members)
        assert said.exit_code != 0, table
        assert message in " ".join(said.stderr.split())
    said = run("aggregate", votes, "-m", "panel", "--members", "nothing.csv")
    assert "nothing.csv: there is no such file" in said.stderr


def test_members_who_cast_no_votes_are_told(run: Run, votes: Path, members: Path) -> None:
    members.write_text(members.read_text() + "gone,machine,gpt\n" + "judge0,machine,gpt\n")
    said = run("aggregate", votes, "-m", "panel", "--members", members)
    assert said.exit_code == 0
    assert "workers without votes are ignored: 'gone'" in " ".join(said.stderr.split())


def test_methods_that_take_no_members_refuse_them(run: Run, votes: Path, members: Path) -> None:
    said = run("aggregate", votes, "-m", "one-coin", "--members", members)
    assert said.exit_code == 2
    assert "-m panel" in said.stderr
    named, chosen = (
        json.loads(run("aggregate", votes, "--members", members, *words, "--json").stdout)
        for words in (("-m", "panel"), ())
    )
    assert chosen["method"] == named["method"] == "panel"
    assert chosen["parameters"] == named["parameters"]
    said = run("aggregate", votes, "-m", "panel", "-p", 'groups={"judge0": "x"}', "--members", members)
    assert said.exit_code == 2
    assert "leave one of them out" in said.stderr
    said = run("aggregate", votes, "-m", "panel", "--no-workers", "--members", members)
    assert "--members needs votes with worker ids, and these have none" in said.stderr


def test_a_table_of_members_is_not_overwritten(run: Run, votes: Path, members: Path) -> None:
    target = Path("out")
    target.mkdir()
    members.rename(target / "groups.csv")
    said = run("aggregate", votes, "-m", "panel", "--members", target / "groups.csv", "-o", target)
    assert said.exit_code == 2
    assert "groups.csv is an input file and would be overwritten" in said.stderr


def test_a_fitted_panel_is_kept(run: Run, votes: Path, members: Path) -> None:
    assert run("aggregate", votes, "-m", "panel", "--members", members, "-o", "out", "--save").exit_code == 0
    kept: Any = wc.load("out/model")
    assert kept.groups["judge0"] == "gpt"


# ---------------------------------------------------------------------- plan


@pytest.fixture
def some_votes(votes: Path, made: PanelSimulation) -> Path:
    """One person and two judges on each task, in turn."""
    frame = made.crowd.to_frame()
    turn = frame.groupby("task", sort=True).ngroup()
    place = frame["worker"].map({str(name): row for row, name in enumerate(made.crowd.workers)})
    is_judge = frame["worker"].str.startswith("judge")
    kept = np.where(is_judge, (place - turn) % 4 < 2, (place - turn) % 3 == 0)
    frame[kept].to_csv(votes, index=False)
    return votes


@pytest.mark.slow
def test_a_plan_weighs_people_against_machines(run: Run, some_votes: Path, members: Path) -> None:
    words = ("plan", some_votes, "--members", members, "--budget", 4, "-o", "next")
    dear = json.loads(run(*words, "--costs", "person=0.20,machine=0.19", "--json").stdout)
    asks = pd.read_csv("next/requests.csv")
    assert set(asks["cost"]) <= {0.20, 0.19}
    assert asks["cost"].sum() <= 4
    assert (
        dear["requests_by_kind"]["person"] > dear["requests_by_kind"]["machine"]
    )  # what judges share was said already
    assert dear["costs"] == {"person": 0.20, "machine": 0.19}
    assert dear["members"] == str(members)
    cheap = json.loads(run(*words, "--costs", "people=0.20,judge0=0.0001,machine=0.0002", "--json").stdout)
    assert cheap["requests_by_kind"]["machine"] > dear["requests_by_kind"]["machine"]
    said = run(*words, "--costs", "person=0.20,machine=0.01")
    assert said.exit_code == 0
    assert "go to people and" in said.stdout
    assert "money" in said.stdout


def test_an_export_with_machines_is_planned_by_a_panel(run: Run, export: Path) -> None:
    said = run("plan", export, "--budget", 2, "--costs", "person=0.20,machine=0.01", "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["requests_by_kind"] is not None


@pytest.mark.slow
def test_kinds_without_groups_have_prices(run: Run, some_votes: Path) -> None:
    Path("kinds.csv").write_text("worker,kind\njudge0,machine\njudge1,machine\njudge2,machine\njudge3,machine\n")
    said = run(
        "plan", some_votes, "--budget", 2, "--costs", "person=0.2,machine=0.1", "--members", "kinds.csv", "--json"
    )
    assert said.exit_code == 0, said.output
    assert sum(json.loads(said.stdout)["requests_by_kind"].values()) >= 10


def test_plans_without_machines_stay_what_they_were(run: Run, some_votes: Path) -> None:
    said = json.loads(run("plan", some_votes, "--budget", 10, "--json").stdout)
    assert "requests_by_kind" not in said
    priced = json.loads(run("plan", some_votes, "--budget", 1, "--costs", "person0=0.1,judge0=0.2", "--json").stdout)
    assert priced["costs"] == {"person0": 0.1, "judge0": 0.2}


def test_mistakes_in_costs_end_in_a_message(run: Run, some_votes: Path, members: Path) -> None:
    told = ("--members", members)
    for words, message in [
        (("--costs", "person=0.2"), "--members FILE"),
        ((*told, "--costs", "robot=0.2"), "neither a worker nor a kind"),
        ((*told, "--costs", "person"), "takes costs by kind or worker"),
        ((*told, "--costs", "person=free"), "must be a positive number"),
        ((*told, "--costs", "person=0"), "must be a positive number"),
        ((*told, "--costs", "person=1,human=2"), "twice"),
    ]:
        said = run("plan", some_votes, "--budget", 5, *words)
        assert said.exit_code == 2, words
        assert message in " ".join(said.stderr.split())


# ---------------------------------------------------------------------- diagnose and report


def test_a_diagnosis_knows_kinds_and_groups(run: Run, votes: Path, members: Path, made: PanelSimulation) -> None:
    said = run("diagnose", votes, "--members", members, "-o", "out")
    assert said.exit_code == 0, said.output
    workers = pd.read_csv("out/workers.csv", index_col="worker", keep_default_na=False)
    assert workers["kind"].to_dict() == {str(name): str(kind) for name, kind in made.kinds.items()}
    assert set(workers["belongs_to"]) == {"gpt", ""}
    assert (workers["flags"] == "").all()
    fitted = wc.Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    assert pd.read_csv("out/tasks.csv")["label"].tolist() == fitted.labels_.tolist()
    record = json.loads(Path("out/run.json").read_text())
    assert (record["method"], record["members"]) == ("panel", str(members))


@pytest.mark.slow
def test_an_export_is_diagnosed_by_a_panel_by_itself(run: Run, export: Path) -> None:
    record = json.loads(run("diagnose", export, "-o", "out", "--json").stdout)
    assert record["method"] == "panel"
    kinds = pd.read_csv("out/workers.csv", index_col="worker")["kind"]
    assert (kinds == "machine").sum() == 3
    assert json.loads(run("diagnose", export, "-m", "one-coin", "--json").stdout)["method"] == "one-coin"


@pytest.mark.parametrize("command", [["diagnose"], ["report"], ["plan", "--budget", "5"]])
def test_members_are_for_the_panel(run: Run, votes: Path, members: Path, command: list[str]) -> None:
    name, *more = command
    assert run(name, votes, "-m", "panel", "--members", members, *more).exit_code == 0
    said = run(name, votes, "-m", "ibcc", "--members", members, *more)
    assert said.exit_code == 2
    assert "does not use --members; leave it out, or use -m panel" in " ".join(said.stderr.split())


@pytest.mark.slow
def test_a_report_has_a_section_on_judges(run: Run, votes: Path, members: Path, export: Path) -> None:
    assert run("report", votes, "--members", members, "-o", "one.html").exit_code == 0
    html = Path("one.html").read_text()
    assert 'id="judges"' in html
    assert "--members" in html  # the command that makes it again
    assert "Calibration error" not in html
    assert run("report", export, "-o", "two.html").exit_code == 0
    assert "Calibration error" in Path("two.html").read_text()


def test_every_view_of_an_export_with_machines_has_one_method_and_its_figures(run: Run, export: Path) -> None:
    aggregated = json.loads(run("aggregate", export, "--json").stdout)
    diagnosed = json.loads(run("diagnose", export, "--json").stdout)
    planned = json.loads(run("plan", export, "--budget", "3", "--json").stdout)
    audited = json.loads(run("audit", export, "--size", "5", "--json").stdout)
    assert {record["method"] for record in (aggregated, diagnosed, planned, audited)} == {"panel"}
    figures = aggregated["summary"]["figures"]
    assert diagnosed["figures"] == planned["figures"] == figures
    assert audited["summary"]["expected_accuracy"] == figures["expected_accuracy"]
    run("report", export, "-o", "report.html")
    html = Path("report.html").read_text()
    accuracy = figures["expected_accuracy"]["accuracy"]
    assert f"{accuracy:.0%} of the labels are expected to be right" in html
    assert "Use the labels of panel." in html
    assert "Use the labels of model-average." not in html
    assert "the other commands use panel" in run("compare", export, "-m", "majority-vote").stderr


# ---------------------------------------------------------------------- what is said unasked


@pytest.mark.slow
def test_other_methods_hint_at_the_panel(run: Run, export: Path, votes: Path) -> None:
    said = run("aggregate", export, "-m", "one-coin")
    assert said.exit_code == 0
    assert "machines of one model make the same errors; -m panel models this" in said.stderr
    assert "-m panel" not in run("aggregate", export, "-m", "one-coin", "-q").stderr
    assert "-m panel" not in run("aggregate", export).stderr
    assert run("aggregate", votes).stderr == ""  # nobody tells who is a machine


@pytest.mark.slow
def test_machines_that_nobody_put_together_are_no_independent_votes(run: Run, votes: Path, members: Path) -> None:
    table = pd.read_csv(members)
    table.drop(columns="group").to_csv(members, index=False)
    said = run("aggregate", votes, "-m", "panel", "--members", members)
    assert said.exit_code == 0
    assert said.stderr == ""
    assert "judges carry the information of" in said.stdout or "are only one vote" in said.stdout
    assert run("report", votes, "--members", members, "-o", "page.html", "--no-compare").exit_code == 0
    independent = ("-m", "panel", "--members", members, "-p", "dependence=groups")
    assert "these 4 machines agree with each other" in run("aggregate", votes, *independent).stderr


@pytest.mark.slow
def test_with_machines_alone_gold_is_the_only_anchor(run: Run, votes: Path, members: Path, gold: Path) -> None:
    pd.read_csv(votes).query("worker.str.startswith('judge')").to_csv(votes, index=False)
    said = run("aggregate", votes, "-m", "panel", "--members", members)
    assert "only gold shows which of them are right" in said.stderr
    made = pd.read_csv(votes)
    gold.write_text(f"task,truth\n{made['task'][0]},{made['label'][0]}\n")
    assert "only gold" not in run("aggregate", votes, "-m", "panel", "--members", members, "--gold", gold).stderr


def test_normalise_matches_members_to_votes(run: Run, votes: Path, members: Path) -> None:
    table = pd.read_csv(members)
    table["worker"] = table["worker"].str.upper() + " "
    table.to_csv(members, index=False)
    assert "none of its workers has votes" in run("aggregate", votes, "-m", "panel", "--members", members).stderr
    assert run("aggregate", votes, "-m", "panel", "--members", members, "--normalise").exit_code == 0


def test_names_of_workers_stand_beside_their_ids() -> None:
    crowd = wc.Crowd.from_triples([("t1", "1", "a"), ("t1", "2", "b"), ("t2", "gpt", "a")])
    scores = pd.DataFrame({"task": ["t1"], "worker": ["1"], "label": ["a"], "score": [0.9]})
    members = Members({"1": "person", "2": "person", "gpt": "machine"}, {"1": "team"}, scores)
    renamed, about = use_worker_names(crowd, members, {"1": "Ann Lee", "2": "2"})
    assert renamed.workers is not None
    assert renamed.workers.tolist() == ["Ann Lee (1)", "2", "gpt"]
    assert about.kinds == {"Ann Lee (1)": "person", "2": "person", "gpt": "machine"}
    assert about.groups == {"Ann Lee (1)": "team"}
    assert about.scores is not None
    assert about.scores["worker"].tolist() == ["Ann Lee (1)"]
    assert use_worker_names(crowd, members, {}) == (crowd, members)


def test_one_machine_without_a_group_is_rated_by_the_panel_of_the_page(run: Run) -> None:
    export = Path(__file__).parents[1] / "recorded/label_studio/export_json.json"
    assert run("report", export, "--question", "mood", "-o", "report.html").exit_code == 0
    html = Path("report.html").read_text()
    assert "Use the labels of panel." in html
    assert "-m model-average" not in html
