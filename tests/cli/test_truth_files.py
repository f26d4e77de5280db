"""Tables of truth on the command line: columns, tasks and classes are compared with the votes in every command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.cli._reading import GoldReading
from wisecrowd.cli._truth_files import read_column, read_truth
from wisecrowd.errors import InputError

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])
READING = GoldReading(task="image_id")


def test_the_task_column_may_be_called_as_that_of_the_votes_or_not(tmp_path: Path) -> None:
    for name in ("image_id", "task"):
        (tmp_path / "gold.csv").write_text(f"{name},truth\nt1,cat\n")
        assert read_truth(tmp_path / "gold.csv", READING, CROWD).to_dict() == {"t1": "cat"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image_id,truth\nt1,cat\nt1,dog\n", "1 task has more than one value in the column 'truth'"),
        ("image_id,said_by_experts\nt1,cow\n", "there is no truth column"),
        ("task,said_by_experts\nt1,cow\n", "there is no truth column"),
        ("image_id,truth\nt1\n", "line 2 has 1 columns"),
    ],
)
def test_the_true_error_shows(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "gold.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read_truth(tmp_path / "gold.csv", READING, CROWD)


def test_gold_columns_are_named_apart_from_those_of_the_votes(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("nr,expert_says,label\nt1,cat,dog\n")
    reading = GoldReading(task="image_id", gold_task="nr", gold_label="expert_says")
    assert read_truth(tmp_path / "gold.csv", reading, CROWD).to_dict() == {"t1": "cat"}


def test_the_error_about_gold_advises_options_that_name_columns_of_gold(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("nr,expert_says\nx1,cow\n")
    with pytest.raises(InputError, match=r"\(--gold-task NAME --gold-label NAME\)"):
        read_truth(tmp_path / "gold.csv", GoldReading(), CROWD)
    (tmp_path / "gold.csv").write_text("task,gold,expert\nt1,cat,cat\n")
    with pytest.raises(InputError, match=r"say which: truth=\"gold\" \(--gold-label gold\)"):
        read_truth(tmp_path / "gold.csv", GoldReading(), CROWD)


@pytest.mark.parametrize(
    "words",
    [
        ("aggregate", "--gold"),
        ("aggregate", "--score"),
        ("compare", "--score"),
        ("complete", "-m", "gmv", "-o", "c", "--score"),
    ],
)
def test_gold_on_other_tasks_gets_advice(run: Any, votes: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *options = words
    (tmp_path / "other.csv").write_text("task,truth\nx1,cat\nx2,dog\n")
    result = run(command, votes, *options, "other.csv")
    message = " ".join(result.stderr.split())
    assert result.exit_code == 1
    assert "other.csv: none of its 2 tasks has votes. It has 'x1', 'x2', the votes have 't00', 't01'" in message
    assert "--gold-task COLUMN" in message
    (tmp_path / "other.csv").write_text("task,truth\n T00,cat\nT01 ,dog\n")
    assert "They differ only in spelling: add --normalise" in " ".join(
        run(command, votes, *options, "other.csv").stderr.split()
    )


#: Commands that read a table of truth.
USES = [
    ("aggregate", "--gold"), ("aggregate", "--score"), ("compare", "-m", "majority-vote", "--score"), ("audit", "--checked"),
    ("complete", "-m", "gmv", "-o", "c", "--score"), ("report", "--no-compare", "--gold"), ("report", "--no-compare", "--score"),
    ("audit", "--size", "3", "--gold"),
]  # fmt: skip


@pytest.mark.parametrize("words", USES, ids=" ".join)
def test_every_command_names_tasks_of_the_truth_that_have_no_votes(
    run: Any, votes: Path, gold: Path, words: tuple[str, ...]
) -> None:
    text = "\n".join(gold.read_text(encoding="utf-8").splitlines()[:8])
    gold.write_text(f"{text}\nt98,cat\nt99,dog\n", encoding="utf-8")
    command, *options = words
    result = run(command, votes, *options, gold.name)
    assert result.exit_code == 0, result.output
    assert "Warning: gold.csv: 2 of its 9 tasks have no votes and are ignored ('t98', 't99')" in result.stderr


@pytest.mark.parametrize("words", USES, ids=" ".join)
def test_every_command_names_classes_of_the_truth_that_no_vote_has(
    run: Any, votes: Path, gold: Path, words: tuple[str, ...]
) -> None:
    text = "\n".join(gold.read_text(encoding="utf-8").splitlines()[:8])
    gold.write_text(text.replace("t01,cat", "t01,catt") + "\n", encoding="utf-8")
    command, *options = words
    result = run(command, votes, *options, gold.name)
    message = " ".join(result.stderr.split())
    assert "'catt'" in message
    assert "id you mean 'cat'?" in message
    if "--score" in words:  # such tasks count as wrong, which is what a score is for
        assert result.exit_code == 0
        assert message.startswith("Warning: gold.csv: no label of the crowd is 'catt', so 1 task")
    else:
        assert result.exit_code == 1
        assert "gold.csv: 1 row has a class that no vote names: 'catt' for task 't01'" in message
        assert ("--new-classes catt" if "--checked" in words else "--classes cat,dog,catt") in message


@pytest.mark.parametrize("words", USES, ids=" ".join)
def test_every_command_advises_to_normalise_labels_that_differ_by_case(
    run: Any, votes: Path, gold: Path, words: tuple[str, ...]
) -> None:
    text = "\n".join(gold.read_text(encoding="utf-8").splitlines()[:8])
    gold.write_text(text.replace("cat", "Cat").replace("dog", "DOG") + "\n", encoding="utf-8")
    command, *options = words
    result = run(command, votes, *options, gold.name)
    message = " ".join(result.stderr.split())
    if "--checked" in words:  # a person typed these labels, and votes must be read as for the draw
        assert result.exit_code == 0
        assert "Note: gold.csv: read 7 checks in the spelling of the votes, such as 'DOG' as 'dog'" in message
        return
    assert result.exit_code == 1
    assert "none of its 7 true labels is a class of the votes: 'DOG' for task 't00'" in message
    assert "They differ only in spelling: add --normalise" in message
    assert run(command, votes, *options, gold.name, "--normalise").exit_code == 0


def test_a_score_with_other_labels_only_is_an_error(run: Any, votes: Path, gold: Path) -> None:
    gold.write_text("task,truth\nt00,easy\nt01,hard\n", encoding="utf-8")
    result = run("aggregate", votes, "--score", gold.name)
    assert result.exit_code == 1
    assert "Is this the column of the true labels, and are these the votes?" in " ".join(result.stderr.split())


def test_rows_without_a_truth_are_left_out(run: Any, votes: Path, gold: Path) -> None:
    gold.write_text("task,truth\nt00,dog\nt01,\nt02, \nt03,cat\n", encoding="utf-8")
    result = run("aggregate", votes, "--gold", gold.name, "--json")
    assert json.loads(result.stdout)["summary"]["gold"] == {"tasks": 2}
    assert result.stderr == ""


def test_further_columns_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("image_id,truth,weight\nt1,cat,2.5\n")
    weight = read_column(tmp_path / "gold.csv", READING, "weight", numeric=True)
    assert weight is not None
    assert weight.to_dict() == {"t1": 2.5}
    assert read_column(tmp_path / "gold.csv", READING, "draw") is None


@pytest.mark.parametrize(
    "words", [("aggregate", "--score"), ("aggregate", "--gold"), ("audit", "--checked")], ids=" ".join
)
def test_inferred_labels_are_no_known_truth(run: Any, votes: Path, gold: Path, words: tuple[str, str]) -> None:
    assert run("aggregate", votes, "-o", "results").exit_code == 0
    result = run(words[0], votes, words[1], "results/labels.csv")
    assert "Warning: results/labels.csv: wisecrowd inferred these labels, so they are no known truth" in result.stderr
    Path("mine").mkdir()
    Path("mine/labels.csv").write_text(gold.read_text())
    assert "inferred" not in run(words[0], votes, words[1], "mine/labels.csv").stderr


@pytest.mark.parametrize(("use", "is_rotated"), [("gold", True), ("checks", True), ("decisions", False)])
def test_a_truth_that_contradicts_the_votes_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], use: Any, is_rotated: bool
) -> None:
    classes = ["cat", "dog", "fox"]
    rows = [(f"t{task}", worker, classes[task % 3]) for task in range(12) for worker in ("ann", "bob")]
    crowd = wc.Crowd.from_triples(rows)
    for shift in (0, 1):
        lines = [f"t{task},{classes[(task + shift) % 3]}" for task in range(12)]
        (tmp_path / "gold.csv").write_text("\n".join(["task,truth", *lines]))
        read_truth(tmp_path / "gold.csv", GoldReading(), crowd, use=use)
        is_warned = "contradict the votes: 0 of 12 (0%) equal" in capsys.readouterr().err
        assert is_warned == (is_rotated and shift == 1)


def test_thousands_separators_of_task_ids_are_a_spelling(run: Any, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(
        "task,worker,label\n" + "".join(f'"{t:,}",w{w},{"ab"[t % 2]}\n' for t in range(1000, 1020) for w in range(3))
    )
    (tmp_path / "gold.csv").write_text("task,gold\n" + "".join(f"{t},{'ab'[t % 2]}\n" for t in range(1000, 1010)))
    words = ("aggregate", "votes.csv", "-m", "majority-vote", "--score", "gold.csv", "--json")
    assert "They differ only in spelling: add --normalise" in run(*words).stderr
    assert '"accuracy": 1.0' in run(*words, "--normalise").stdout


def shift_by_a_row(truth: pd.Series) -> pd.Series:
    return pd.Series(np.roll(truth.to_numpy(), 1), index=truth.index, name="truth").rename_axis("task")


@pytest.mark.parametrize("use", ["gold", "score", "checks"])
def test_a_truth_shifted_by_a_row_is_named_with_both_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], use: Any
) -> None:
    """18 of 40 labels are the true ones, which is more than one in three, but far fewer than the votes lead one to expect."""
    made = wc.simulate_crowd(300, n_workers=12, n_classes=3, votes_per_task=4, random_state=5)
    truth = made.truth[:40]
    path = tmp_path / "gold.csv"
    truth.rename("truth").rename_axis("task").to_csv(path)
    read_truth(path, GoldReading(), made.crowd, use=use)
    assert capsys.readouterr().err == ""
    shifted = shift_by_a_row(truth)
    differing = shifted.index[shifted != truth]
    restored = differing[: 18 - (40 - len(differing))]
    shifted[restored] = truth[restored]
    assert (shifted == truth).sum() == 18
    shifted.to_csv(path)
    read_truth(path, GoldReading(), made.crowd, use=use)
    message = capsys.readouterr().err
    assert re.search(
        r"contradict the votes: \d+ of 40 \(\d+%\) equal the labels .* but \d+% of these labels are expected to be right",
        message,
    )
    assert "no row is shifted" in message


def test_a_hard_crowd_does_not_contradict_its_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = wc.simulate_crowd(200, workers=["noisy(0.45)"] * 8, n_classes=3, votes_per_task=3, random_state=1)
    made.truth.rename("truth").rename_axis("task").to_csv(tmp_path / "gold.csv")
    read_truth(tmp_path / "gold.csv", GoldReading(), made.crowd, use="score")
    assert capsys.readouterr().err == ""


COMPLETE = [
    ("aggregate", "--gold"), ("diagnose", "--gold"), ("report", "--no-compare", "--gold"), ("audit", "--size", "3", "--gold"),
]  # fmt: skip


@pytest.mark.parametrize("words", COMPLETE, ids=" ".join)
def test_a_truth_of_every_task_as_gold_leaves_nothing_to_estimate(
    run: Any, votes: Path, gold: Path, words: tuple[str, ...]
) -> None:
    command, *options = words
    result = run(command, votes, *options, gold.name)
    message = " ".join(result.stderr.split())
    assert "gold.csv: every task with votes is gold, so nothing is estimated" in message
    assert "give it with --score FILE instead of --gold" in message
    assert "expected 100" not in result.stdout
    if command in ("aggregate", "diagnose"):
        assert "Accuracy not estimated, because every task is gold" in " ".join(result.stdout.split())


def test_two_tables_of_truth_may_name_their_columns_differently(run: Any, votes: Path) -> None:
    Path("a.csv").write_text("nr,expert_says,label\nt00,dog,cat\nt01,cat,dog\n")
    Path("b.csv").write_text("task,truth\nt02,dog\nt03,cat\n")
    for given, scored in (("a.csv", "b.csv"), ("b.csv", "a.csv")):
        result = run(
            "aggregate",
            votes,
            "--gold",
            given,
            "--score",
            scored,
            "--gold-task",
            "nr",
            "--gold-label",
            "expert_says",
            "--json",
        )
        assert result.exit_code == 0, result.output
        summary = json.loads(result.stdout)["summary"]
        assert (summary["gold"]["tasks"], summary["score"]["n_tasks"]) == (2, 2)
        assert summary["score"]["accuracy"] == 1
    result = run("aggregate", votes, "--gold", "b.csv", "--score", "b.csv", "--gold-task", "number")
    assert result.exit_code == 1
    assert "b.csv: there is no column 'number'" in " ".join(result.stderr.split())


@pytest.mark.parametrize("words", USES, ids=" ".join)
def test_columns_are_recognised_by_their_contents(run: Any, votes: Path, words: tuple[str, ...]) -> None:
    Path("experts.csv").write_text("who,nr,expert_says\neve,t00,dog\neve,t01,cat\nmax,t02,dog\n")
    command, *options = words
    result = run(command, votes, *options, "experts.csv")
    assert result.exit_code == 0, result.output
    message = " ".join(result.stderr.split())
    assert "read 'nr' as the task column, because its values are tasks of the votes" in message
    assert "read 'expert_says' as the truth column, because its values are labels of the votes" in message


@pytest.mark.parametrize("word", ["?", "Unknown", "unsure", "n/a", "-"])
@pytest.mark.parametrize(
    "words", [("audit", "--checked"), ("aggregate", "--gold"), ("aggregate", "--score")], ids=" ".join
)
def test_undecided_tasks_are_to_be_left_blank(
    run: Any, votes: Path, gold: Path, words: tuple[str, str], word: str
) -> None:
    gold.write_text(gold.read_text().replace("t01,cat", f"t01,{word}").replace("t11,cat\n", ""))
    message = " ".join(run(words[0], votes, words[1], gold.name).stderr.split())
    assert f"'{word}' reads as undecided: leave such cells blank, and the tasks are left out" in message
    assert "--new-classes" not in message
    assert "--classes" not in message
