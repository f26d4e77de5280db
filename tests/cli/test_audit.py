"""``wisecrowd audit``: draw tasks to check, and evaluate the checks."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc

LABEL_STUDIO = Path(__file__).parents[1] / "recorded" / "label-studio"


@pytest.fixture
def simulated(tmp_path: Path) -> tuple[Path, pd.Series]:
    made = wc.simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=4, random_state=2)
    made.crowd.to_frame().to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv", made.truth


def test_draw_check_and_evaluate(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    drawn = run("audit", votes, "--size", "40", "-o", "audit")
    assert drawn.exit_code == 0, drawn.output
    assert "40 tasks to check" in drawn.stdout
    assert f"wisecrowd review {votes} --tasks audit -o checked.csv" in " ".join(drawn.stdout.split())
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object})
    assert list(checks.columns) == ["task", "truth", "stratum", "weight", "draw"]
    assert checks["weight"].sum() == pytest.approx(200)

    checks["truth"] = truth[checks["task"]].to_numpy()
    checks.to_csv("checked.csv", index=False)
    result = run("audit", votes, "--checked", "checked.csv", "-o", "audited")
    assert result.exit_code == 0, result.output
    record = json.loads(Path("audited/run.json").read_text())["summary"]
    fitted = wc.ModelAverage().fit(wc.read(votes))
    assert record["checked"] == 40
    assert record["right"] == int((fitted.labels_ == truth)[checks["task"]].sum())
    expected = record["expected_accuracy"]
    assert expected["low"] < (fitted.labels_ == truth).mean() < expected["high"]
    assert expected["gold_tasks"] == 40
    assert f"about {record['further_checks']} more checks for ±2 points" in result.stdout
    labels = pd.read_csv("audited/labels.csv", index_col="task")
    assert (labels["confidence"][checks["task"]] == 1).all()
    assert (labels["label"][checks["task"]].to_numpy() == checks["truth"]).all()
    classes = pd.read_csv("audited/classes.csv", index_col="class")
    assert classes["n_gold"].sum() == 40
    assert classes["n_tasks"].sum() == 200


def test_rows_that_are_not_filled_in_do_not_count(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    run("audit", votes, "--size", "30", "-o", "audit")
    empty = run("audit", votes, "--checked", "audit/checks.csv")
    assert empty.exit_code != 0
    assert "no row of audit/checks.csv has a truth yet" in empty.stderr
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object}, keep_default_na=False)
    checks.loc[:9, "truth"] = truth[checks["task"][:10]].to_numpy()
    checks.to_csv("half.csv", index=False)
    assert json.loads(run("audit", votes, "--checked", "half.csv", "--json").stdout)["summary"]["checked"] == 10
    half = run("audit", votes, "--checked", "half.csv")
    assert "10 of 30 drawn tasks, " in half.stdout
    assert "blank or deleted checks bias the estimate" in half.stderr
    checks[:10].to_csv("audit/checks.csv", index=False)
    assert "10 of 30 drawn tasks, " in run("audit", votes, "--checked", "audit/checks.csv").stdout


def test_further_tasks_are_new(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    truth[:50].rename("truth").rename_axis("task").to_csv("checked.csv")
    result = run("audit", votes, "--checked", "checked.csv", "--size", "20", "-o", "more")
    assert result.exit_code == 0, result.output
    table = pd.read_csv("more/checks.csv", dtype={"truth": object}, keep_default_na=False)
    drawn = table[table["truth"] == ""]
    assert len(drawn) == 20
    assert not drawn["task"].isin(truth.index[:50]).any()
    assert table["weight"].astype(float).sum() == pytest.approx(200, abs=1e-3)
    assert dict(zip(table["task"][:50], table["truth"][:50], strict=True)) == truth[:50].to_dict()
    table["truth"] = truth[table["task"]].to_numpy()
    table.to_csv("all.csv", index=False)
    result = run("audit", votes, "--checked", "all.csv", "--json")
    assert json.loads(result.stdout)["summary"]["checked"] == 70


def test_wrong_use_is_explained(run: Any, simulated: tuple[Path, pd.Series], tmp_path: Path) -> None:
    votes, _ = simulated
    assert "say what to do" in run("audit", votes).stderr
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("task,worker,label\nt1,ann,1.5\nt1,bob,2.5\n")
    assert "audit needs classes" in run("audit", numbers, "--numeric", "--size", "1", "-m", "median").stderr


@pytest.fixture
def filled(run: Any, simulated: tuple[Path, pd.Series]) -> tuple[Path, pd.Series]:
    """Votes and truth after a draw whose checks a person has filled in."""
    votes, truth = simulated
    assert run("audit", votes, "--size", "20", "-o", "audit").exit_code == 0
    checks = pd.read_csv("audit/checks.csv", dtype={"truth": object})
    checks["truth"] = truth[checks["task"]].to_numpy()
    checks.to_csv("audit/checks.csv", index=False)
    return votes, truth


def test_a_draw_does_not_overwrite_what_a_person_filled_in(run: Any, filled: tuple[Path, pd.Series]) -> None:
    votes, _ = filled
    before = Path("audit/checks.csv").read_text()
    result = run("audit", votes, "--size", "30", "--seed", "5", "-o", "audit")
    message = " ".join(result.stderr.split())
    assert result.exit_code == 2
    assert "audit/checks.csv has 20 tasks with a truth filled in, which a new draw would overwrite" in message
    assert f"wisecrowd audit {votes} --checked audit/checks.csv --size N -o audit-2" in message
    assert Path("audit/checks.csv").read_text() == before
    assert run("audit", votes, "--checked", "audit/checks.csv", "--size", "5", "-o", "audit-2").exit_code == 0
    Path("audit/checks.csv").write_bytes(b"\xff\xfenotes of a person")
    assert "contents that cannot be read" in run("audit", votes, "--size", "30", "-o", "audit").stderr
    Path("audit/checks.csv").unlink()
    assert run("audit", votes, "--size", "30", "-o", "audit").exit_code == 0
    assert run("audit", votes, "--size", "10", "-o", "audit").exit_code == 0, "an empty table may be drawn again"


def test_a_typo_in_a_check_is_not_a_wrong_label(run: Any, filled: tuple[Path, pd.Series]) -> None:
    votes, _ = filled
    checks = pd.read_csv("audit/checks.csv", dtype=object)
    checks.loc[0, "truth"], checks.loc[1, "truth"] = "c00", "bird"
    checks.to_csv("typo.csv", index=False)
    result = run("audit", votes, "--checked", "typo.csv")
    message = " ".join(result.stderr.split())
    assert result.exit_code == 1
    assert (
        f"2 rows have a class that no vote names: 'c00' for task '{checks['task'][0]}' (did you mean 'c0'?)" in message
    )
    assert f"'bird' for task '{checks['task'][1]}'" in message
    checks.loc[0, "truth"] = "c0"
    checks.to_csv("typo.csv", index=False)
    assert "--new-classes bird" in run("audit", votes, "--checked", "typo.csv").stderr
    result = run("audit", votes, "--checked", "typo.csv", "--new-classes", "bird", "--json")
    assert json.loads(result.stdout)["summary"]["checked"] == 20
    assert "add --checked" in run("audit", votes, "--size", "3", "--new-classes", "bird").stderr


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (("-m", "majority-vote"), "another method or other parameters"),
        (("-p", "max_iter=3"), "another method or other parameters"),
        (("--gold", "gold.csv"), "other gold"),
        (("--classes", "c0,c1,c2,c3"), "other votes, or votes read with other options"),
    ],
)
def test_checks_are_evaluated_with_the_options_of_the_draw(
    run: Any, filled: tuple[Path, pd.Series], options: tuple[str, ...], difference: str
) -> None:
    votes, truth = filled
    truth[:5].rename("truth").rename_axis("task").to_csv("gold.csv")
    result = run("audit", votes, "--checked", "audit/checks.csv", *options)
    message = " ".join(result.stderr.split())
    assert result.exit_code == 1
    assert f"these tasks were drawn with {difference}, so their weights do not fit" in message
    assert f"the command of the draw was: wisecrowd audit {votes}." in message
    Path("copy.csv").write_text(Path("audit/checks.csv").read_text())  # the identity travels with the rows
    assert difference in " ".join(run("audit", votes, "--checked", "copy.csv", *options).stderr.split())
    assert run("audit", votes, "--checked", "copy.csv").exit_code == 0


def test_checks_of_other_votes_are_refused(run: Any, filled: tuple[Path, pd.Series], tmp_path: Path) -> None:
    votes, _ = filled
    (tmp_path / "fewer.csv").write_text("".join(votes.read_text().splitlines(keepends=True)[:-1]))
    assert "drawn with other votes" in " ".join(
        run("audit", "fewer.csv", "--checked", "audit/checks.csv").stderr.split()
    )


def test_the_command_that_evaluates_a_draw_is_printed(run: Any, simulated: tuple[Path, pd.Series]) -> None:
    votes, truth = simulated
    votes.write_text(votes.read_text().replace("task,worker,label", "photo,who,answer"))
    truth[:5].rename("truth").rename_axis("nr").to_csv("gold.csv")
    options = ["--task", "photo", "--worker", "who", "--label", "answer", "--gold-task", "nr"]
    rest = ["-m", "one-coin", "-p", "max_iter=9", "--gold", "gold.csv"]
    drawn = run("audit", votes, *options, *rest, "--size", "12", "-o", "my audit")
    words = [str(votes), *options, *rest]
    text = " ".join(drawn.stdout.split())
    evaluate = ["wisecrowd", "audit", *words, "--checked", "my audit/checks.csv", "-o", "audited"]
    assert shlex.join(evaluate) in text
    assert shlex.join(["wisecrowd", "review", *words, "--tasks", "my audit", "-o", "checked.csv"]) in text
    checks = pd.read_csv("my audit/checks.csv", dtype={"truth": object})
    checks["truth"] = truth[checks["task"]].to_numpy()
    checks.to_csv("my audit/checks.csv", index=False)
    evaluated = run(*evaluate[1:])
    assert evaluated.exit_code == 0, evaluated.output
    further = int(json.loads(Path("audited/run.json").read_text())["summary"]["further_checks"])
    more = ["wisecrowd", "audit", *words, "--checked", "my audit/checks.csv", "--size", str(further), "-o", "audit-2"]
    assert shlex.join(more) in " ".join(evaluated.stdout.split())
    assert run(*more[1:]).exit_code == 0


def test_weights_of_an_excel_copy_count(run: Any, filled: tuple[Path, pd.Series]) -> None:
    pytest.importorskip("openpyxl")
    votes, _ = filled
    pd.read_csv("audit/checks.csv").to_excel("checks.xlsx", index=False)
    summaries = [
        json.loads(run("audit", votes, "--checked", path, "--json").stdout)["summary"]
        for path in ("audit/checks.csv", "checks.xlsx")
    ]
    assert summaries[0] == summaries[1]
    broken = pd.read_csv("audit/checks.csv").assign(weight="a")
    broken.to_csv("broken.csv", index=False)
    assert "20 checks have no number as weight" in run("audit", votes, "--checked", "broken.csv").stderr


def test_a_draw_of_more_tasks_than_there_are_is_pointed_out(run: Any, votes: Path) -> None:
    result = run("audit", votes, "-m", "majority-vote", "--size", "400")
    assert result.exit_code == 0, result.output
    assert "--size 400 is more than the 12 tasks that are left to check" in result.stderr


def test_label_sets_are_not_the_labels_of_aggregate(run: Any, votes: Path, tmp_path: Path) -> None:
    sets = tmp_path / "sets.csv"
    sets.write_text("task,worker,labels\nt1,ann,a|b\nt1,bob,a\nt2,ann,b\nt2,bob,b\n")
    assert "these are not the labels that wisecrowd aggregate writes" in run("audit", sets, "--size", "2").stderr
    assert "sets of labels" not in run("audit", votes, "-m", "majority-vote", "--size", "2").stderr


def test_checks_without_the_columns_of_a_draw_are_a_simple_random_sample(run: Any, votes: Path, gold: Path) -> None:
    result = run("audit", votes, "--checked", gold.name)
    assert "gold.csv has no column weight, so the checks count as a simple random sample" in " ".join(
        result.stderr.split()
    )
    assert run("audit", votes, "--checked", gold.name, "-q").stderr == ""
    assert run("audit", votes, "--size", 5, "-o", "audit").exit_code == 0
    checks = pd.read_csv("audit/checks.csv", dtype=str)
    checks["truth"] = checks["task"].map(pd.read_csv(gold, index_col="task")["truth"])
    checks.to_csv("checks.csv", index=False)
    assert "simple random sample" not in run("audit", votes, "--checked", "checks.csv").stderr
    # The column of tasks may have any name; weights are then read, too.
    checks.rename(columns={"task": "nr"}).to_csv("renamed.csv", index=False)
    assert "simple random sample" not in run("audit", votes, "--checked", "renamed.csv").stderr


def test_named_columns_may_be_those_of_the_checks_or_of_the_gold(run: Any, votes: Path, gold: Path) -> None:
    lines = gold.read_text().splitlines()
    Path("known.csv").write_text("\n".join(["ref,verdict,label", *(f"{line},cat" for line in lines[1:4])]))
    Path("checked.csv").write_text("\n".join(["task,truth", *lines[4:9]]))
    words = ("--gold-task", "ref", "--gold-label", "verdict")
    for given, checked, n in (("known.csv", "checked.csv", 5), ("checked.csv", "known.csv", 3)):
        result = run("audit", votes, "--gold", given, "--checked", checked, *words, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["summary"]["checked"] == n


def _label_studio_task(number: int, data: dict[str, Any], answers: dict[int, str]) -> dict[str, Any]:
    annotations = [
        {
            "completed_by": worker,
            "result": [{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}],
        }
        for worker, label in answers.items()
    ]
    return {"id": number, "data": data, "annotations": annotations, "predictions": []}


@pytest.fixture
def mood_export(tmp_path: Path) -> Path:
    """Export of Label Studio with 20 tasks and three people."""
    tasks = [
        _label_studio_task(
            number,
            {"text": f"text {number}"},
            {worker: "good" if (number + (worker == 3 and number % 5 == 0)) % 2 else "bad" for worker in (1, 2, 3)},
        )
        for number in range(20)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def test_answers_to_the_draw_in_label_studio_are_checks(run: Any, mood_export: Path) -> None:
    assert run("audit", mood_export, "--size", "6", "-o", "audit").exit_code == 0
    checks = pd.read_csv("audit/checks.csv")
    assert checks.columns.tolist() == ["task", "text", "truth", "stratum", "weight", "draw"]
    assert checks["text"].tolist() == [f"text {task}" for task in checks["task"]]
    imported = json.loads(Path("audit/checks.json").read_text())
    labels = ["good" if int(task["data"]["wisecrowd_task"]) % 2 else "bad" for task in imported]
    answered = [
        _label_studio_task(300 + place, task["data"], {9: label})
        for place, (task, label) in enumerate(zip(imported, labels, strict=True))
    ]
    Path("answered.json").write_text(json.dumps(answered))
    result = run("audit", mood_export, "--checked", "answered.json", "--json")
    assert result.exit_code == 0, result.output
    checks.assign(truth=labels).to_csv("checked.csv", index=False)
    by_hand = run("audit", mood_export, "--checked", "checked.csv", "--json")
    assert json.loads(result.stdout)["summary"] == json.loads(by_hand.stdout)["summary"]

    # Two people disagree about a check.
    both = [*answered[1:], _label_studio_task(300, imported[0]["data"], {8: "good", 9: "bad"})]
    Path("both.json").write_text(json.dumps(both))
    assert "1 task to check has different answers" in run("audit", mood_export, "--checked", "both.json").output
    # A skipped task is one that was drawn and is not checked.
    Path("fewer.json").write_text(json.dumps([*answered[1:], _label_studio_task(300, imported[0]["data"], {})]))
    assert "only 5 of 6 drawn tasks are checked" in run("audit", mood_export, "--checked", "fewer.json").output


def test_checks_without_weights_are_no_simple_sample(run: Any, mood_export: Path) -> None:
    tasks = [_label_studio_task(300, {"text": "text 3", "wisecrowd_task": "3"}, {9: "good"})]
    Path("answered.json").write_text(json.dumps(tasks))
    refused = run("audit", mood_export, "--checked", "answered.json")
    assert refused.exit_code == 1
    assert "copy the answers into the column truth of checks.csv" in refused.output
