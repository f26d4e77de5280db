from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_writes_labels_workers_and_a_record(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-o", "out")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path("out").iterdir()) == ["labels.csv", "run.json", "workers.csv"]
    fitted = wc.ModelAverage().fit(wc.read(votes))
    labels = rows_of(Path("out/labels.csv"))
    assert list(labels[0]) == ["task", "label", "confidence"]
    assert {row["task"]: row["label"] for row in labels} == fitted.labels_.to_dict()
    confidence = [float(row["confidence"]) for row in labels]
    estimate = wc.estimate_confidence(fitted, wc.read(votes))
    np.testing.assert_allclose(confidence, estimate.confidence, atol=1e-6)
    workers = rows_of(Path("out/workers.csv"))
    assert [(row["worker"], row["n_votes"]) for row in workers] == [
        (name, "12") for name in ("zed", "ann", "bob", "cy")
    ]
    assert [row["flags"] for row in workers] == ["one-button", "", "", ""]  # flagged workers come first
    accuracy = {row["worker"]: float(row["accuracy"]) for row in workers}
    rated = wc.diagnose_crowd(wc.read(votes)).workers["accuracy"]  # not the method's own, which is too high
    assert accuracy == pytest.approx(rated.to_dict(), abs=1e-6)


def test_the_record_names_method_input_and_files(run: Any, votes: Path) -> None:
    run("aggregate", votes, "-m", "one-coin", "-p", "max_iter=77", "-o", "out")
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert record["method"] == "one-coin"
    assert record["parameters"]["max_iter"] == 77
    assert record["input"]["sha256"] == wc.read(votes).digest
    assert record["files"] == ["labels.csv", "workers.csv", "run.json"]
    assert record["summary"]["confidence"]["tasks"] == 12


def test_says_the_handful_of_things_a_person_wants(run: Any, votes: Path) -> None:
    text = run("aggregate", votes.name, "-m", "majority-vote", "-o", "out").stdout
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert list(lines) == [
        "Read", "Votes", "Method", "Classes", "Accuracy", "Certainty", "Flagged", "Best", "Worst", "Wrote"
    ]  # fmt: skip
    assert "48 votes: 12 tasks x 4 workers, 2 classes, 4.0 votes/task" in lines["Votes"]
    assert "2 tied" in lines["Certainty"]  # two slips fall on dogs, where zed votes against them too
    assert "zed" in lines["Worst"]
    assert "(12 votes)" in lines["Best"]
    assert all((name in lines["Best"]) != (name in lines["Worst"]) for name in ("ann", "bob", "cy", "zed"))
    assert max(map(len, text.splitlines())) <= 80


def test_without_a_folder_nothing_is_written(run: Any, votes: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = run("aggregate", votes)
    assert result.exit_code == 0
    assert "nothing; write the results with -o FOLDER" in result.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_proba_and_save(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-o", "out", "--proba", "--save")
    assert result.exit_code == 0, result.output
    assert "posterior.csv" in result.stdout
    fitted = wc.ModelAverage().fit(wc.read(votes))
    posterior = pd.read_csv("out/posterior.csv", index_col="task")
    assert posterior.columns.tolist() == ["cat", "dog"]
    np.testing.assert_allclose(posterior, fitted.posterior_, atol=1e-6)
    loaded = wc.load("out/model")
    np.testing.assert_array_equal(loaded.posterior_, fitted.posterior_)  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", ["--proba", "--save"])
def test_what_writes_needs_a_folder(run: Any, votes: Path, option: str) -> None:
    result = run("aggregate", votes, option)
    assert result.exit_code == 2
    assert "-o FOLDER" in result.stderr


def test_json_is_the_record(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-o", "out", "--json")
    assert json.loads(result.stdout) == json.loads(Path("out/run.json").read_text(encoding="utf-8"))


def test_quiet_prints_nothing(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-o", "out", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("out/labels.csv").exists()


def test_score_judges_and_does_not_teach(run: Any, votes: Path, gold: Path) -> None:
    plain = json.loads(run("aggregate", votes, "-m", "majority-vote", "--json").stdout)
    result = run("aggregate", votes, "-m", "majority-vote", "--score", gold, "--json", "-o", "out")
    record = json.loads(result.stdout)
    assert {key: record["summary"][key] for key in plain["summary"]} == plain["summary"]
    # Ten of twelve are right, and the two ties are half right.
    assert record["summary"]["score"]["accuracy"] == pytest.approx(11 / 12)
    told = run("aggregate", votes, "-m", "majority-vote", "--score", gold).stdout
    assert "accuracy 91.7%, 90 % interval 69.9% to 98.1% (ties split)" in " ".join(told.split())
    assert "on 12 tasks" in told


def test_truth_is_kept_and_teaches(run: Any, votes: Path, gold: Path) -> None:
    told = run("aggregate", votes, "-m", "majority-vote", "--gold", gold, "-o", "out").stdout
    assert "12 tasks with known truth used in the fit" in told
    truth = {row["task"]: row["truth"] for row in rows_of(gold)}
    labels = rows_of(Path("out/labels.csv"))
    assert {row["task"]: row["label"] for row in labels} == truth
    assert {row["confidence"] for row in labels} == {"1"}
    accuracy = {row["worker"]: float(row["accuracy"]) for row in rows_of(Path("out/workers.csv"))}
    rated = wc.diagnose_crowd(wc.read(votes), gold=wc.read_truth(gold)).workers["accuracy"]
    assert accuracy == pytest.approx(rated.to_dict(), abs=1e-6)
    assert accuracy["zed"] == pytest.approx(0.5, abs=0.05)


def test_what_was_told_is_not_scored(run: Any, votes: Path, gold: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.csv"
    some.write_text("\n".join(gold.read_text(encoding="utf-8").splitlines()[:4]) + "\n", encoding="utf-8")
    record = json.loads(run("aggregate", votes, "--gold", some, "--score", gold, "--json").stdout)
    assert record["summary"]["score"]["n_tasks"] == 9
    assert record["summary"]["score"]["gold_left_out"] == 3
    result = run("aggregate", votes, "--gold", gold, "--score", gold)
    assert result.exit_code == 1
    assert "score other tasks" in result.stderr


def test_truth_of_other_tasks_is_an_error(run: Any, votes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("task,truth\nx1,cat\n", encoding="utf-8")
    for option in ("--gold", "--score"):
        result = run("aggregate", votes, option, other)
        assert result.exit_code == 1
        assert "Error:" in result.stderr


def test_a_gold_file_may_name_its_columns_as_the_votes_do(run: Any, votes: Path, gold: Path) -> None:
    for path in (votes, gold):
        path.write_text(path.read_text(encoding="utf-8").replace("task,", "photo,", 1), encoding="utf-8")
    result = run("aggregate", votes, "--task", "photo", "--score", gold, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["summary"]["score"]["n_tasks"] == 12


def test_a_gold_file_may_have_columns_of_any_name(run: Any, votes: Path, gold: Path) -> None:
    gold.write_text(gold.read_text(encoding="utf-8").replace("task,truth", "nr,expert_says"), encoding="utf-8")
    columns = ("--gold-task", "nr", "--gold-label", "expert_says")
    record = json.loads(run("aggregate", votes, "-m", "majority-vote", "--gold", gold, *columns, "--json").stdout)
    assert record["command"]["gold_label"] == "expert_says"
    assert run("aggregate", votes, *columns).exit_code == 2, "there is no table with these columns"


def test_normalise_unifies_votes_and_gold(run: Any, tmp_path: Path) -> None:
    rows = [
        f"{task},{worker},{1 + task % 2}{form}"
        for task in range(8)
        for worker, form in (("ann", ""), ("bob", ""), ("dora", ".0"))
    ]
    (tmp_path / "votes.csv").write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    (tmp_path / "gold.csv").write_text("task,truth\n0.0,1.0\n1.0,2.0\n", encoding="utf-8")
    result = run("aggregate", "votes.csv", "--normalise", "--score", "gold.csv", "--json")
    assert "normalised 2 labels: '1.0' to '1', '2.0' to '2'" in result.stderr
    record = json.loads(result.stdout)
    assert record["summary"]["score"]["accuracy"] == 1
    assert record["command"]["normalise"] is True
    assert "2 classes" in run("aggregate", "votes.csv", "--normalise").stdout
    assert "dora" in run("check", "votes.csv").stdout


def test_columns_by_other_names(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("photo,who,said\n1,ann,cat\n1,bob,cat\n", encoding="utf-8")
    result = run("aggregate", path)
    assert result.exit_code == 1
    assert "--task NAME" in result.stderr
    result = run("aggregate", path, "--task", "photo", "--worker", "who", "--label", "said")
    assert result.exit_code == 0, result.stderr


def test_names_of_other_tools_are_noted(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.tsv"
    path.write_text("question\tworker\tanswer\n1\tann\tcat\n1\tbob\tcat\n", encoding="utf-8")
    result = run("aggregate", path, "-m", "majority-vote")
    assert result.exit_code == 0, result.stderr
    assert "read 'question' as the task column" in result.stderr


@pytest.mark.parametrize(("rule", "labels"), [("first", 2), ("last", 2), ("distinct", 3), ("keep", 4)])
def test_duplicates_are_an_error_unless_a_rule_is_given(run: Any, tmp_path: Path, rule: str, labels: int) -> None:
    path = tmp_path / "d.csv"
    path.write_text("task,worker,label\n1,ann,cat\n1,ann,cat\n1,ann,dog\n1,bob,cat\n", encoding="utf-8")
    result = run("aggregate", path)
    assert result.exit_code == 1
    assert "--duplicates" in result.stderr
    result = run("aggregate", path, "--duplicates", rule, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["input"]["votes"] == labels


def test_a_wrong_rule_is_a_usage_error(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "--duplicates", "frist")
    assert result.exit_code == 2
    assert "Did you mean 'first'?" in result.stderr


def test_holes_are_an_error_unless_dropped(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("task,worker,label\n1,ann,cat\n1,bob,\n", encoding="utf-8")
    assert run("aggregate", path).exit_code == 1
    result = run("aggregate", path, "--missing", "drop", "--json")
    made_from = json.loads(result.stdout)["input"]
    assert made_from["votes"] == 1
    assert made_from["rows"] == {
        "read": 2, "dropped_missing": 1, "dropped_repeated": 0, "respelled": {}, "left_out": {}
    }  # fmt: skip
    assert "dropped 1 of 2 rows: 1 with a missing value" in result.stderr


def test_nobody_knows_who_said_what(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "--no-workers", "-m", "majority-vote", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert "no worker ids" in result.stdout
    assert not Path("out/workers.csv").exists()
    result = run("aggregate", votes, "--no-workers")
    assert result.exit_code == 1
    assert "majority-vote" in result.stderr
    result = run("aggregate", votes, "--no-workers", "--worker", "worker")
    assert result.exit_code == 2


def test_classes_that_nobody_chose(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "--classes", "cat, dog, emu", "--proba", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert list(rows_of(Path("out/posterior.csv"))[0]) == ["task", "cat", "dog", "emu"]


def test_a_class_may_be_called_task(run: Any, votes: Path) -> None:
    votes.write_text(votes.read_text(encoding="utf-8").replace("cat", "task"), encoding="utf-8")
    assert run("aggregate", votes, "--proba", "-o", "out").exit_code == 0
    assert list(rows_of(Path("out/posterior.csv"))[0]) == ["task_id", "dog", "task"]


def test_ids_meet_though_one_file_has_numbers_and_the_other_text(run: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xxyyxx")})
    frame.to_parquet(tmp_path / "votes.parquet")
    (tmp_path / "gold.csv").write_text("task,truth\n1,x\n", encoding="utf-8")
    pd.DataFrame({"task": [1, 2], "truth": ["x", "x"]}).to_parquet(tmp_path / "known.parquet")
    result = run("aggregate", "votes.parquet", "--gold", "gold.csv", "--score", "known.parquet", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)["summary"]
    assert summary["gold"]["tasks"] == 1
    assert (summary["score"]["n_tasks"], summary["score"]["gold_left_out"]) == (1, 1)
    assert summary["score"]["accuracy"] == 0


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Two tasks with three ratings each, of which zed's are far off, and one task with one rating."""
    rows = ["1,ann,2.0", "1,bob,2.5", "1,zed,9.0", "2,ann,4.0", "2,bob,4.5", "2,zed,0.0", "3,ann,1.0"]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["task,worker,label", *rows]) + "\n", encoding="utf-8")
    return path


def test_numbers_want_a_numeric_method(run: Any, ratings: Path, votes: Path) -> None:
    result = run("aggregate", ratings, "--numeric", "-m", "majority-vote")
    assert result.exit_code == 1
    assert "numbers" in result.stderr
    result = run("aggregate", votes, "-m", "median")
    assert result.exit_code == 1
    assert "Add --numeric" in result.stderr
    result = run("aggregate", ratings, "--numeric", "-m", "median", "--proba", "-o", "out")
    assert result.exit_code == 2
    assert "--proba writes class probabilities, and these labels are numbers; leave it out" in result.stderr


def test_numbers(run: Any, ratings: Path, tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("task,truth\n1,2\n2,4\n", encoding="utf-8")
    result = run("aggregate", ratings.name, "--numeric", "-m", "median", "--score", "gold.csv", "-o", "out")
    assert result.exit_code == 0, result.stderr
    labels = rows_of(Path("out/labels.csv"))
    assert [(row["task"], float(row["label"])) for row in labels] == [("1", 2.5), ("2", 4.0), ("3", 1.0)]
    assert list(labels[0]) == ["task", "label", "standard_error"]
    assert labels[2]["standard_error"] == ""
    assert [row["worker"] for row in rows_of(Path("out/workers.csv"))] == ["ann", "bob", "zed"]
    told = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "mean 2.5, from 1 to 4" in told["Numbers"]
    assert "1 task with too few votes for a standard" in told["Certainty"]
    assert "zed" in result.stdout.partition("Workers")[2].partition("Score")[0]
    assert "mean absolute error 0.25, root mean square error 0.3536, on 2 tasks" in told["Score"]


def test_gold_numbers(run: Any, ratings: Path, tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("task,truth\n1,7.5\n", encoding="utf-8")
    result = run("aggregate", ratings, "--numeric", "-m", "mean", "--gold", "gold.csv", "-o", "out")
    assert result.exit_code == 0, result.stderr
    assert float(rows_of(Path("out/labels.csv"))[0]["label"]) == 7.5
    assert "1 task with known truth used in the fit" in result.stdout


def test_jobs_reach_methods_that_have_threads_only(run: Any, votes: Path) -> None:
    assert json.loads(run("aggregate", votes, "-j", "2", "--json").stdout)["parameters"]["n_jobs"] == 2
    assert run("aggregate", votes, "-j", "2", "-m", "majority-vote").exit_code == 0
    assert run("aggregate", votes, "-j", "0").exit_code == 2


def test_a_method_that_stops_early_warns_in_one_line(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-p", "max_iter=1", "-p", "tol=1e-12")
    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("Warning: ModelAverage stopped after 1 iterations before it converged; raise max_iter")
    assert "stopped before it converged" in result.stdout


def test_results_are_written_again_but_never_over_something_else(run: Any, votes: Path, tmp_path: Path) -> None:
    assert run("aggregate", votes, "-o", "out", "--proba").exit_code == 0
    again = run("aggregate", votes, "-o", "out")
    assert again.exit_code == 0
    assert "posterior.csv in out: written by an earlier run, not by this one" in again.stderr
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "labels.csv").write_text("precious", encoding="utf-8")
    result = run("aggregate", votes, "-o", mine)
    assert result.exit_code == 2
    assert "choose another folder" in result.stderr
    assert (mine / "labels.csv").read_text(encoding="utf-8") == "precious"


def test_results_never_overwrite_what_is_read(run: Any, votes: Path) -> None:
    run("aggregate", votes, "-o", "out")
    result = run("aggregate", "out/labels.csv", "--no-workers", "-m", "majority-vote", "-o", "out")
    assert result.exit_code == 2
    assert "is an input file and would be overwritten" in result.stderr


def test_a_file_is_no_folder(run: Any, votes: Path, gold: Path) -> None:
    for output in (gold, gold / "deeper"):
        result = run("aggregate", votes, "-o", output)
        assert result.exit_code == 2
        assert "is a file" in result.stderr


def test_hostile_ids_survive(run: Any, tmp_path: Path) -> None:
    tasks = ["007", "NA", "a,b", 'say "x"', "line\nend", "cr\rend", "[red]", "\x1b[31m", "ünï", "=1+1", " padded "]
    frame = pd.DataFrame({"task": tasks, "worker": "w[bold]", "label": "null"})
    path = tmp_path / "odd.csv"
    wc.write(wc.Crowd.from_frame(frame), path)
    result = run("aggregate", path, "-m", "majority-vote", "-o", "out", "--proba")
    assert result.exit_code == 0, result.stderr
    assert sorted(row["task"] for row in rows_of(Path("out/labels.csv"))) == sorted(tasks)
    assert [row["worker"] for row in rows_of(Path("out/workers.csv"))] == ["w[bold]"]
    assert "w[bold]" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_learner_or_a_misspelt_method_is_a_usage_error(run: Any, votes: Path) -> None:
    result = run("aggregate", votes, "-m", "dawid-skeen")
    assert result.exit_code == 2
    assert "Did you mean 'dawid-skene'?" in result.stderr


class TestRatings:
    @pytest.fixture
    def ratings(self, tmp_path: Path) -> Path:
        path = tmp_path / "ratings.csv"
        made = wc.simulate_ratings(n_tasks=60, n_workers=8, n_classes=5, votes_per_task=4, random_state=0)
        made.crowd.to_frame().to_csv(path, index=False)
        return path

    @pytest.mark.parametrize("method", ["graded-response", "rater-mean", "ordinal-dawid-skene"])
    def test_ordered_classes_are_named_and_scored(self, run: Any, ratings: Path, tmp_path: Path, method: str) -> None:
        said = run("aggregate", ratings, "--ordered", "-m", method, "-o", tmp_path / "out")
        assert said.exit_code == 0
        assert "ratings, 1 < 2 < 3 < 4 < 5" in said.stdout
        labels = pd.read_csv(tmp_path / "out" / "labels.csv")
        assert labels["label"].between(1, 5).all()
        if method != "ordinal-dawid-skene":
            assert "strictest" in said.stdout
            tasks = pd.read_csv(tmp_path / "out" / "tasks.csv")
            assert (tasks["lower"] < tasks["upper"]).all()

    def test_numbers_have_intervals(self, run: Any, ratings: Path, tmp_path: Path) -> None:
        assert run("aggregate", ratings, "--numeric", "-m", "rater-mean", "-o", tmp_path / "out", "-q").exit_code == 0
        labels = pd.read_csv(tmp_path / "out" / "labels.csv")
        assert labels.columns.tolist() == ["task", "label", "standard_error", "lower", "upper"]

    def test_grades_without_order_are_noticed(self, run: Any, ratings: Path) -> None:
        assert "labels are 1 to 5; if they are grades, add --ordered -m graded-response" in " ".join(
            run("aggregate", ratings).stdout.split()
        )

    @pytest.mark.parametrize(
        ("options", "advice"),
        [
            (["-m", "graded-response"], "--ordered --classes low,middle,high"),
            (["--numeric", "-m", "graded-response"], "rater-mean, mean, median"),
            (["--ordered", "-m", "mean"], "or choose -m rater-mean"),
        ],
    )
    def test_the_wrong_type_gives_advice(self, run: Any, ratings: Path, options: list[str], advice: str) -> None:
        said = run("aggregate", ratings, *options)
        assert said.exit_code != 0
        assert advice in " ".join(said.stderr.split())


def test_gold_in_another_spelling_is_not_ignored_silently(run: Any, votes: Path, tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("task,truth\nt00,dog\nT01 ,cat\n", encoding="utf-8")
    result = run("aggregate", votes, "--gold", "gold.csv", "--json")
    assert "another spelling of 1 task than the votes" in " ".join(result.stderr.split())
    assert "another spelling" not in run("aggregate", votes, "--gold", "gold.csv", "--normalise").stderr
