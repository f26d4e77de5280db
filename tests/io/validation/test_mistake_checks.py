"""Mistakes in files whose votes are valid: what is found, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import Crowd, check_votes
from wisecrowd.errors import DataWarning
from wisecrowd.io.validation.findings import Finding
from wisecrowd.io.validation.mistake_checks import check_mistakes, is_slip, looks_right_when_swapped, looks_swapped

CLASSES = ("negative", "neutral", "positive")
TRANSLATION = {"positive": "positivo", "negative": "negativo", "neutral": "neutro"}
Row = tuple[Any, Any, Any]


def simulate(n_tasks: int = 120, n_workers: int = 12, votes_per_task: int = 5, accuracy: float = 0.8) -> list[Row]:
    """Votes of workers who are right with a probability, with ids that do not tell tasks from workers."""
    random = np.random.default_rng(0)
    rows: list[Row] = []
    for task in range(n_tasks):
        truth = random.integers(3)
        for worker in random.choice(n_workers, votes_per_task, replace=False):
            label = truth if random.random() < accuracy else random.integers(3)
            rows.append((f"t{task}", f"w{worker}", CLASSES[label]))
    return rows


def find(rows: list[Row], **options: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in check_mistakes(Crowd.from_triples(rows, duplicates="keep"), **options)}


def write(path: Path, rows: list[Row], header: str = "task,worker,label") -> Path:
    path.write_text(
        "\n".join([header, *(",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows)]) + "\n"
    )
    return path


class TestSwapped:
    def test_swapped_columns_are_a_question_with_the_options(self, tmp_path: Path) -> None:
        path = write(tmp_path / "votes.csv", simulate(), "rater,item,label")
        message = (
            r"are tasks and workers swapped\? There are 12 tasks with 50 votes each and 120 workers with 5\.0 each"
        )
        with pytest.warns(DataWarning, match=message):
            wc.read(path)
        (finding,) = [finding for finding in check_votes(path).warnings if finding.name == "swapped-columns"]
        assert finding.fix == "If they are: task='rater', worker='item' (--task rater --worker item)."
        assert wc.read(path, task="rater", worker="item").n_tasks == 120  # no warning, which would be an error here

    def test_a_crowd_in_order_is_not_asked(self) -> None:
        assert find(simulate()) == {}

    def test_many_workers_on_few_tasks_are_no_swap_if_they_agree(self) -> None:
        rows = [(worker, task, label) for task, worker, label in simulate(10, 300, 150)]
        crowd = Crowd.from_triples([(task, worker, label) for worker, task, label in rows])
        assert crowd.n_workers > 20 * crowd.n_tasks
        assert not looks_swapped(crowd)
        assert looks_right_when_swapped(Crowd.from_triples(simulate()))

    def test_many_spammers_are_no_swap(self) -> None:
        assert not looks_swapped(Crowd.from_triples(simulate(10, 300, 150, accuracy=0.0)))

    def test_numbers_and_votes_without_workers_are_not_asked(self) -> None:
        crowd = Crowd.from_triples([(task, worker, 1.5) for worker, task, _ in simulate()], numeric=True)
        assert not looks_swapped(crowd)
        assert not looks_right_when_swapped(crowd)


class TestCodings:
    def translate(self, *workers: str) -> list[Row]:
        return [(task, who, TRANSLATION[label] if who in workers else label) for task, who, label in simulate()]

    def test_a_worker_with_labels_of_another_coding_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "votes.csv", self.translate("w3"))
        with pytest.warns(
            DataWarning, match=r"1 worker \('w3'\) gave labels that nobody else gives \('negativo', 'neutro', "
        ):
            wc.read(path)
        finding = check_votes(path).warnings[0]
        assert finding.name == "labels-in-another-coding"
        assert "another coding of the classes" in finding.message

    def test_two_workers_may_share_a_coding(self) -> None:
        assert find(self.translate("w3", "w4"))["labels-in-another-coding"].examples == ("w3", "w4")

    def test_dates_in_place_of_labels_are_another_coding(self) -> None:
        rows = [
            (task, who, f"2026-03-{number % 28 + 1:02}" if who == "w5" else label)
            for number, (task, who, label) in enumerate(simulate())
        ]
        assert find(rows)["labels-in-another-coding"].examples == ("w5",)

    def test_a_worker_who_gives_one_label_of_the_others_is_none(self) -> None:
        rows = self.translate("w3")
        position = next(number for number, row in enumerate(rows) if row[1] == "w3")
        rows[position] = (*rows[position][:2], "positive")
        assert find(rows) == {}

    def test_workers_who_share_no_task_may_have_other_classes(self) -> None:
        others = [(f"x{task}", f"x{who}", TRANSLATION[label]) for task, who, label in simulate(20)]
        assert find([*simulate(), *others]) == {}

    def test_open_ended_labels_are_no_codings(self) -> None:
        rows = [(task, who, f"{label} of {who}") for task, who, label in simulate(n_workers=30)]
        assert find(rows) == {}
        chain = [(task, f"w{number}", f"c{number + task % 2}") for number in range(200) for task in range(10)]
        assert "labels-in-another-coding" not in find(chain)

    def test_listed_classes_are_meant(self) -> None:
        assert find(self.translate("w3"), classes_listed=True) == {}


class TestSlips:
    def test_a_file_that_is_cut_off_is_named_with_its_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "votes.csv", [*simulate(), ("t1", "w99", "positive")])
        path.write_text(path.read_text()[:-3])
        message = r"the last line ends in 'positi' without a line break \(line 602\), which is the beginning of the class 'positive"
        with pytest.warns(DataWarning, match=message):
            wc.read(path)
        assert [finding.name for finding in check_votes(path).warnings] == ["cut-off"]

    def test_a_complete_file_without_the_last_line_break_is_in_order(self, tmp_path: Path) -> None:
        path = write(tmp_path / "votes.csv", simulate())
        path.write_text(path.read_text()[:-1])
        assert wc.read(path).n_votes == 600  # a warning would be an error here

    @pytest.mark.parametrize("slip", ["positve", "positiv", "possitive", "pozitive"])
    def test_a_class_given_once_that_resembles_a_frequent_one_is_named(self, tmp_path: Path, slip: str) -> None:
        path = write(tmp_path / "votes.csv", [("t1", "w99", slip), *simulate()])
        with pytest.warns(
            DataWarning, match=rf"the class '{slip}' has a single vote \(line 2\) and resembles .* 'positive'"
        ):
            wc.read(path)

    @pytest.mark.parametrize(
        ("label", "other"), [("level 1", "level 2"), ("B-PER", "I-PER"), ("moral", "amoral"), ("no", "not")]
    )
    def test_classes_that_differ_on_purpose_are_no_slips(self, label: str, other: str) -> None:
        assert not is_slip(label, other)
        assert not is_slip(other, label)

    def test_a_class_given_twice_is_no_slip(self) -> None:
        assert find([("t1", "w98", "positiv"), ("t1", "w99", "positiv"), *simulate()]) == {}


class TestNumbersAndDates:
    def test_thousands_separators_in_ids_are_noted(self, tmp_path: Path) -> None:
        rows = [(f"{int(task[1:]) + 950:,}", who, label) for task, who, label in simulate()]
        path = write(tmp_path / "votes.csv", rows)
        (finding,) = check_votes(path).notes
        assert finding.name == "ids-with-separators"
        assert finding.message.startswith(
            "70 task ids have a thousands separator ('1,000', '1,001', '1,002', …), so '1,000' is not"
        )
        assert finding.fix.endswith("normalise=True (--normalise).")
        assert "1000" in wc.read(path, normalise=True).tasks
        assert check_votes(path, normalise=True).findings[0].name == "spellings"

    def test_amounts_as_labels_are_warned_about(self, tmp_path: Path) -> None:
        rows = [(task, who, f"{1000 + 7.25 * number:,.2f}") for number, (task, who, _) in enumerate(simulate())]
        path = write(tmp_path / "votes.csv", rows)
        with pytest.warns(
            DataWarning,
            match=r"labels are numbers, 600 of them with a thousands separator .* such as 1000\.00, and use",
        ):
            wc.read(path)

    @pytest.mark.parametrize("form", ["2026-01-0{}", "0{}.01.2026", "{}/1/2026 09:30"])
    def test_dates_as_classes_are_noted(self, form: str) -> None:
        rows = [(task, who, form.format(CLASSES.index(label) + 1)) for task, who, label in simulate()]
        assert find(rows)["labels-are-dates"].severity == "note"
        assert find([*rows, ("t1", "w99", "positive")]) == {}


def test_no_votes_have_no_mistakes() -> None:
    assert list(check_mistakes(Crowd.from_triples(simulate(3)).take([]))) == []
