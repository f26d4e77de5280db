"""Results in folders that other commands wrote. `test_export.py` runs the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.cli._reading import Reading
from wisecrowd.cli._results import (
    check_question,
    check_results_match,
    read_answers,
    read_posterior,
    read_queue,
    restore_reading,
)
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import EmptyInput, MissingColumn

LABELS = "task,label,confidence\nt1,x,0.9\nt2,y,0.6\n"
CROWD = Crowd.from_triples([("t1", "ann", "x"), ("t2", "ann", "y"), ("t2", "bob", "y")])


def write(folder: Path, run: dict[str, Any] | None = None, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    if run is not None:
        (folder / "run.json").write_text(json.dumps(run))
    return folder


class TestAnswers:
    def test_labels_confidence_and_record(self, tmp_path: Path) -> None:
        run = {"files": ["labels.csv"], "command": {"question": "mood"}}
        table, record = read_answers(write(tmp_path / "results", run, labels_csv=LABELS))
        assert table.to_dict() == {"label": {"t1": "x", "t2": "y"}, "confidence": {"t1": 0.9, "t2": 0.6}}
        assert record == run

    def test_a_file_of_ones_own_needs_no_record(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "mine", labels_csv="task,label\nt1,x\n")
        table, record = read_answers(folder / "labels.csv")
        assert list(table.columns) == ["label"]
        assert record == {}

    def test_apostrophes_of_spreadsheets_are_removed(self, tmp_path: Path) -> None:
        run = {"files": ["labels.csv"], "spreadsheet": True}
        folder = write(tmp_path / "results", run, labels_csv="task,label\n'=t1,'+x\n'plain,y\n")
        assert read_answers(folder)[0]["label"].to_dict() == {"=t1": "+x", "'plain": "y"}

    def test_a_file_of_an_earlier_run_is_refused(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "results", {"files": ["workers.csv"]}, labels_csv=LABELS)
        with pytest.raises(InputError, match="was left by an earlier run"):
            read_answers(folder)
        assert len(read_answers(folder / "labels.csv")[0]) == 2

    def test_a_plan_is_no_answer(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "next", requests_csv="task,worker\nt1,ann\n")
        with pytest.raises(InputError, match="did you mean --queue"):
            read_answers(folder)
        with pytest.raises(MissingColumn, match="did you mean --queue"):
            read_answers(folder / "requests.csv")

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="there is no file or folder"):
            read_answers(tmp_path / "absent")
        with pytest.raises(InputError, match=r"there is no labels\.csv or .* as wisecrowd aggregate -o writes it"):
            read_answers(write(tmp_path / "empty"))

    @pytest.mark.parametrize("text", ["not json", "[1, 2]", ""])
    def test_a_broken_record_is_no_record(self, tmp_path: Path, text: str) -> None:
        folder = write(tmp_path / "results", labels_csv=LABELS)
        (folder / "run.json").write_text(text)
        assert read_answers(folder)[1] == {}


class TestPosterior:
    POSTERIOR = "task,x,y\nt1,0.9,0.1\nt2,0.4,0.6\n"

    def test_probabilities_by_task(self, tmp_path: Path) -> None:
        run = {"files": ["labels.csv", "posterior.csv"]}
        folder = write(tmp_path / "results", run, labels_csv=LABELS, posterior_csv=self.POSTERIOR)
        table = read_posterior(folder, run)
        assert table is not None
        assert table.loc["t2"].to_dict() == {"x": 0.4, "y": 0.6}
        assert read_posterior(folder / "labels.csv", run) is not None

    def test_a_file_of_an_earlier_run_is_ignored_with_a_warning(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = write(tmp_path / "results", {"files": ["labels.csv"]}, labels_csv=LABELS, posterior_csv=self.POSTERIOR)
        assert read_posterior(folder, {"files": ["labels.csv"]}) is None
        assert "is ignored" in capsys.readouterr().err

    def test_a_run_without_probabilities(self, tmp_path: Path) -> None:
        assert read_posterior(write(tmp_path / "results", labels_csv=LABELS), {}) is None


class TestQueue:
    def test_tasks_in_their_order(self, tmp_path: Path) -> None:
        assert read_queue(write(tmp_path / "next", requests_csv="task,worker\nt9,ann\nt1,bob\nt9,cy\n")) == [
            "t9",
            "t1",
            "t9",
        ]
        path = tmp_path / "next.tsv"
        path.write_text("item\tworker\n007\tann\n")
        assert read_queue(path) == ["007"]
        table = tmp_path / "next.parquet"
        pd.DataFrame({"task": [3, 1]}).to_parquet(table)
        assert read_queue(table) == ["3", "1"]

    def test_an_empty_queue(self, tmp_path: Path) -> None:
        with pytest.raises(EmptyInput, match="the file contains no tasks"):
            read_queue(write(tmp_path / "next", requests_csv="task,worker\n"))

    def test_labels_are_no_queue(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="leave --queue out to export them"):
            read_queue(write(tmp_path / "results", labels_csv=LABELS))


class TestQuestion:
    RUN: ClassVar[dict[str, Any]] = {"command": {"question": "topics=food"}}

    def test_the_question_of_the_run_is_known(self, tmp_path: Path) -> None:
        assert check_question(tmp_path, self.RUN, None) == "topics=food"
        assert check_question(tmp_path, {}, "mood") == "mood"
        assert check_question(tmp_path, {}, None) is None

    def test_another_question_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="one option of 'topics'"):
            check_question(tmp_path, self.RUN, "topics")
        with pytest.raises(UsageError, match="has answers to 'topics=food', not to 'mood'"):
            check_question(tmp_path, self.RUN, "mood")


def test_votes_are_read_as_the_run_read_them() -> None:
    run = {"command": {"votes": "v.csv", "task": "item", "duplicates": "first", "format": "csv", "method": "glad"}}
    reading = restore_reading(run, Path("w.csv"), question=None, format=None, duplicates="last")
    assert (reading.task, reading.duplicates, reading.format) == ("item", "last", "csv")
    assert restore_reading(run, Path("w.parquet"), question=None, format=None, duplicates=None).format is None


class TestMatch:
    TABLE = pd.DataFrame({"label": ["x", "y"]}, index=["t1", "t2"])

    def check(self, run: dict[str, Any], table: pd.DataFrame | None = None, form: str = "csv") -> None:
        check_results_match(Path("results"), run, self.TABLE if table is None else table, Path("v.csv"), CROWD, form)

    def test_results_of_these_votes(self, capsys: pytest.CaptureFixture[str]) -> None:
        facts = {"votes": 3, "workers": 2, "tasks": 2, "sha256": CROWD.digest}
        self.check({"input": facts, "command": {"format": "csv"}})
        self.check({})
        assert capsys.readouterr().err == ""

    def test_other_numbers_of_votes(self) -> None:
        with pytest.raises(
            InputError, match="the answers are to 9 votes of 2 workers, and 3 votes of 2 workers were read"
        ):
            self.check({"input": {"votes": 9}})

    def test_as_many_but_other_votes(self) -> None:
        run = {"input": {"sha256": "another"}, "command": {"format": "csv"}}
        with pytest.raises(InputError, match="but they are not the same"):
            self.check(run)
        self.check(run, form="parquet")  # ids of another type have another digest

    def test_labels_of_other_tasks(self) -> None:
        table = pd.DataFrame({"label": ["x"]}, index=["t9"])
        with pytest.raises(InputError, match=r"1 answer to tasks that have no votes \('t9'\)"):
            self.check({}, table)
        self.check({"command": {"features": "features.csv"}}, table)

    def test_tasks_without_a_label_are_warned_of(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.check({}, self.TABLE.iloc[:1])
        assert "1 task of v.csv has no answer in results" in capsys.readouterr().err


def test_results_without_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("task,label,confidence\n")
    (tmp_path / "posterior.csv").write_text("task,x,y\n")
    with pytest.raises(EmptyInput, match=r"labels\.csv has no rows"):
        read_answers(tmp_path)
    with pytest.raises(EmptyInput, match=r"posterior\.csv: it has no rows"):
        read_posterior(tmp_path, {"files": ["posterior.csv"]})


def test_deeply_nested_record_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "run.json").write_text("[" * 100_000 + "]" * 100_000)
    assert read_answers(tmp_path)[1] == {}


def test_values_of_wrong_types_in_a_record_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "posterior.csv").write_text("task,x,y\nt1,0.9,0.1\n")
    record = {
        "files": 5,
        "command": {"question": ["a"], "format": 1, "task": 7, "numeric": "x"},
        "input": {"votes": "many"},
    }
    (tmp_path / "run.json").write_text(json.dumps(record))
    run = read_answers(tmp_path)[1]
    assert run["input"] == {}
    assert read_posterior(tmp_path, run) is None
    assert check_question(tmp_path, run, None) is None
    assert restore_reading(run, Path("votes.csv"), question=None, format=None, duplicates=None) == Reading()


def test_a_record_does_not_raise_the_limit_on_unpacking() -> None:
    run = {"command": {"max_unpacked": "100TB", "task": "item"}}
    assert restore_reading(run, Path("votes"), question=None, format=None, duplicates=None) == Reading(task="item")
