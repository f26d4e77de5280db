"""Reading and writing of votes and truth in files of any format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.io import VoteSource
from wisecrowd.io.tools.projects import read_project
from wisecrowd.io.vote_table import ReadOptions, VoteTable

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog")])


def test_a_source_is_detected_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"_input_hash": 5, "_session_id": "ann", "label": "SPORT", "answer": "accept"}\n')
    source = VoteSource.detect(path)
    assert (source.path, source.format.name) == (path, "prodigy")

    def find_format(*_: object) -> None:
        raise AssertionError("the format is detected again")

    monkeypatch.setattr("wisecrowd.io.vote_source.find_format", find_format)
    assert VoteSource.detect(source) is source
    crowd = wc.read(source)
    assert crowd == source.read_votes() == read_project(source).get_question().crowd
    assert wc.check_votes(source).source == str(path)
    assert list(source.read_export().questions) == ["SPORT"]
    with pytest.raises(InputError, match="this prodigy data holds no truth"):
        wc.read_truth(source)


def test_only_exports_have_answers(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.csv")
    with pytest.raises(UsageError, match="applies to exports of labelling tools only; this is a table"):
        VoteSource.detect(tmp_path / "v.csv").read_export()


@pytest.mark.slow
def test_reading_a_table_imports_no_other_reader(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.csv")
    program = "import sys, wisecrowd; wisecrowd.read(sys.argv[1]); print(*sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "v.csv")], capture_output=True, text=True, check=True
    )
    modules = set(result.stdout.split())
    assert "wisecrowd.io.tables.csv" in modules
    others = (
        "tools",
        "research",
        "sharding",
        "validation.vote",
        "validation.crowd",
        "tables.json",
        "tables.parquet",
        "dataset_folder",
    )
    assert not [name for name in modules if name.startswith(tuple(f"wisecrowd.io.{other}" for other in others))]


def test_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="duplicates must be one of"):
        wc.read(tmp_path, duplicates="frist")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="missing must be one of"):
        wc.read(tmp_path, missing="ignore")  # type: ignore[arg-type]


def test_vocabularies_are_passed_on(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.csv")
    crowd = wc.read(tmp_path / "v.csv", tasks=["t0", "t1"], workers=["bob", "ann"], classes=["dog", "cat", "fox"])
    assert (crowd.tasks.tolist(), crowd.workers.tolist(), crowd.n_classes) == (["t0", "t1"], ["bob", "ann"], 3)
    assert crowd.has_task_order
    with pytest.raises(InputError, match=r"v\.csv: 1 label ids are not in the given vocabulary"):
        wc.read(tmp_path / "v.csv", classes=["cat"])


def test_paths_may_be_text(tmp_path: Path) -> None:
    wc.write(CROWD, os.path.join(tmp_path, "v.csv"))
    assert wc.read(os.path.join(tmp_path, "v.csv")) == CROWD


def test_write_by_name_of_format(tmp_path: Path) -> None:
    wc.write(CROWD, tmp_path / "v.dat", format="tsv")
    assert (tmp_path / "v.dat").read_text().startswith('"task"\t"worker"')


def test_write_says_what_it_cannot(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"end it in \.csv"):
        wc.write(CROWD, tmp_path / "v.xlsx")
    with pytest.raises(UsageError, match="can read the format ceka but not write it; choose another"):
        wc.write(CROWD, tmp_path / "v", format="ceka")
    assert list(tmp_path.iterdir()) == []


def test_write_makes_folders_and_replaces_files(tmp_path: Path) -> None:
    path = tmp_path / "new" / "v.csv"
    wc.write(CROWD, path)
    wc.write(CROWD.select_workers(["ann"]), path)
    assert wc.read(path).n_votes == 1


def test_ids_of_several_types_cannot_be_written(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_codes([0, 1], [0, 0], [0, 0], tasks=[1, "b"], workers=["x"], classes=["p"])
    with pytest.raises(InputError, match="the task ids mix types"):
        wc.write(crowd, tmp_path / "v.csv")
    assert list(tmp_path.iterdir()) == []


def test_truth_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("photo,expert view,label\n1,cat,x\n2,,y\n")
    assert wc.read_truth(path, task="photo", truth="expert view").to_dict() == {"1": "cat"}


def test_truth_beside_the_votes(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,gold\nt1,ann,cat,cat\nt1,bob,dog,cat\n")
    assert wc.read_truth(path).to_dict() == {"t1": "cat"}


def test_truth_in_numbers(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,0.5\nb,2\n")
    assert wc.read_truth(path, numeric=True).to_dict() == {"a": 0.5, "b": 2.0}
    path.write_text("task,truth\na,much\n")
    with pytest.raises(InputError, match=r"truth\.csv: the truth must be numbers; got 'much' for the task 'a'"):
        wc.read_truth(path, numeric=True)


def test_conflicting_truth(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,x\na,y\n")
    with pytest.raises(InputError, match=r"truth\.csv: 1 task has more than one value in the column"):
        wc.read_truth(path)


def test_no_truth_there(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="this mace data holds no truth"):
        wc.read_truth(tmp_path / "matrix.csv", format="mace")


def test_truths_are_counted_by_task(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,truth\na,x\na,y\na,z\nb,x\nb,y\nc,x\n")
    with pytest.raises(
        InputError, match=r"2 tasks have more than one value in the column '.*', for example 'a', 'b'; keep"
    ):
        wc.read_truth(path)


def test_what_is_no_path_or_no_crowd() -> None:
    frame: Any = pd.DataFrame({"task": [1]})
    with pytest.raises(UsageError, match=r"got DataFrame\. .*Crowd\.from_frame"):
        wc.read(frame)
    with pytest.raises(UsageError, match=r"got DataFrame\. .*Series by task"):
        wc.read_truth(frame)
    fitted: Any = wc.MajorityVote().fit(wc.Crowd.from_triples([("t1", "ann", "cat")]))
    with pytest.raises(UsageError, match=r"only a Crowd can be written; got MajorityVote\. .*save\(path\)"):
        wc.write(fitted, "v.csv")


def test_ordered_classes_are_read_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("task,worker,label\na,x,10\na,y,9\nb,x,2\n")
    assert wc.read(path, ordered=True).classes.tolist() == ["2", "9", "10"]
    with pytest.raises(UsageError, match="either numeric=True or ordered=True"):
        wc.read(path, ordered=True, numeric=True)


FLOATS = "task,worker,label\nt1,ann,1\nt1,bob,1\nt1,dora,1.0\n2,ann,Cat\n2.0,dora,cat \n2,bob,Cat\n"


def test_labels_that_are_equal_as_numbers_are_warned_about(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(FLOATS)
    with pytest.warns(DataWarning) as warnings:
        crowd = wc.read(tmp_path / "votes.csv")
    assert crowd.classes.tolist() == ["1", "1.0", "Cat", "cat "]
    messages = [str(warning.message).partition("votes.csv: ")[2].partition(";")[0] for warning in warnings]
    assert messages == [
        "2 labels are equal as numbers, but count as different ('1', '1.0')",
        "2 labels differ only by case or space, but count as different ('Cat', 'cat ')",
        "2 task ids are equal as numbers, but count as different ('2', '2.0')",
    ]
    assert "--normalise" in str(warnings[0].message)


def test_normalise_unifies_ids_and_labels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "votes.csv").write_text(FLOATS)
    with caplog.at_level("INFO", "wisecrowd.io"):
        crowd = wc.read(tmp_path / "votes.csv", normalise=True)
    assert crowd.tasks.tolist() == ["2", "t1"]
    assert crowd.classes.tolist() == ["1", "Cat"]
    assert crowd.votes_per_task.tolist() == [3, 3]
    assert "normalised 1 task: '2.0' to '2'" in caplog.text
    assert wc.read(tmp_path / "votes.csv", normalise=True, classes=["cat", "1"]).classes.tolist() == ["cat", "1"]


def test_normalise_applies_the_rule_for_repeated_votes_afterwards(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\nt1,ann,1\nT1,ann,1.0\nt1,bob,1\n")
    with pytest.raises(InputError, match="ann"):
        wc.read(tmp_path / "votes.csv", normalise=True)
    assert wc.read(tmp_path / "votes.csv", normalise=True, duplicates="distinct").n_votes == 2


def test_truth_takes_the_spelling_of_the_votes(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(FLOATS)
    (tmp_path / "gold.csv").write_text("task,truth\nT1,1.0\n2.0,CAT\n2,cat\nt9,Dog\n")
    crowd = wc.read(tmp_path / "votes.csv", normalise=True)
    assert wc.read_truth(tmp_path / "gold.csv", match=crowd).to_dict() == {"t1": "1", "2": "Cat", "t9": "Dog"}
    (tmp_path / "gold.csv").write_text("task,truth\n2.0,1\n2,cat\n")
    with pytest.raises(InputError, match="spellings of the same task have more than one truth, for example '2'"):
        wc.read_truth(tmp_path / "gold.csv", match=crowd)


def test_removed_rows_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt1,ann,a\nt1,ann,b\nt1,bob,\nt2,ann,b\n")
    with caplog.at_level("INFO", "wisecrowd.io"):
        assert wc.read(path, duplicates="last", missing="drop").n_votes == 2
    counts = VoteSource.detect(path).read_counted(ReadOptions(duplicates="last", missing="drop")).counts
    assert counts.to_dict() == {
        "read": 4, "dropped_missing": 1, "dropped_repeated": 1, "respelled": {}, "left_out": {}
    }  # fmt: skip
    text = "dropped 2 of 4 rows: 1 with a missing value and 1 that repeat a worker's vote on a task"
    assert text in caplog.text
    path.write_text("task,worker,label\n" + "t1,ann,a\nt1,ann,b\n" * 6)
    with pytest.warns(DataWarning, match="11 of 12 rows were dropped because the same worker"):
        wc.read(path, duplicates="first")


def test_respelled_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(
        "task,worker,label\nt1,ann,cat\nt1,bob,CAT\nt2,ann,cat\nt2,bob,Cat\nT2,eve,dog\n"
    )
    read = VoteSource.detect(tmp_path / "votes.csv").read_counted(ReadOptions(normalise=True))
    assert read.counts.respelled == {"task": 1, "label": 2}
    assert read.crowd.n_votes == read.counts.n_rows == 5


def test_incomplete_rows_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    drop = VoteTable.drop_incomplete_rows
    monkeypatch.setattr(VoteTable, "drop_incomplete_rows", lambda table: (calls.append(1), drop(table))[1])
    (tmp_path / "votes.csv").write_text("task,worker,label\nt1,ann,a\nt1,bob,\n")
    assert wc.read(tmp_path / "votes.csv", missing="drop").n_votes == 1
    assert len(calls) == 1


def test_answers_that_are_no_votes_are_counted(tmp_path: Path) -> None:
    result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    annotations = [{"completed_by": 1, "result": [result]}, {"completed_by": 2, "result": [], "was_cancelled": True}]
    (tmp_path / "export.json").write_text(json.dumps([{"id": 7, "data": {}, "annotations": annotations}]))
    assert VoteSource.detect(tmp_path / "export.json").read_counted().counts.left_out == {"cancelled": 1}


def test_labels_that_look_like_texts_are_named(tmp_path: Path) -> None:
    rows = [f"t{task},w{worker},cat {worker} sits on mat {task}" for task in range(3) for worker in range(3)]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["task,worker,label", *rows]))
    with pytest.warns(
        DataWarning, match="labels look like texts: 9 of 9 are different.*rename the column of labels to text"
    ):
        crowd = wc.read(path)
    assert wc.read(path, classes=list(crowd.classes)).n_votes == 9  # without a warning, which would be an error here
    names = [finding.name for finding in wc.check_votes(path).findings]
    assert "labels-look-like-texts" in names
