"""The work of reading is proportional to the size of a file, also of one that is built to be slow.

Work is counted, not timed: lines of Python, comparisons of names, and characters that are copied when texts are added up.
"""

from __future__ import annotations

import csv
import json
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import features, read_project
from wisecrowd.io.features import read_features
from wisecrowd.io.tools import cvat, export_files, label_sets
from wisecrowd.io.tools.exported_answers import ExportedQuestion
from wisecrowd.io.tools.label_sets import format_label_set, parse_label_set
from wisecrowd.io.tools.question_votes import name_workers

#: Growth of the work between two sizes that differ by a factor of four. Quadratic work grows by sixteen.
GROWTH, MAX_RATIO = 4, 8


def count_lines(run: Callable[[], Any]) -> int:
    """Return the number of lines of Python that a call runs, comprehensions with each of their items."""
    n_lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:  # noqa: ARG001  # the signature is Python's
        nonlocal n_lines
        n_lines += 1
        frame.f_trace_opcodes = True
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(previous)
    return n_lines


def check_count(make: Callable[[int], Callable[[], Any]], size: int) -> None:
    make(2)()  # imports
    small, large = (count_lines(make(n)) for n in (size, GROWTH * size))
    assert large < MAX_RATIO * small


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class CountedName(str):
    """Name that counts how often it is compared, also by ``in`` and ``count`` of a list."""

    n_comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.n_comparisons += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


class CountedText(str):
    """Text that counts the characters that are copied when it is added to another text."""

    n_copied = 0

    def __add__(self, other: str) -> CountedText:
        return CountedText.concatenate(self, other)

    def __radd__(self, other: str) -> CountedText:
        return CountedText.concatenate(other, self)

    @classmethod
    def concatenate(cls, first: str, second: str) -> CountedText:
        cls.n_copied += len(first) + len(second)
        return cls(str(first) + str(second))


@pytest.fixture(autouse=True)
def reset_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedName, "n_comparisons", 0)
    monkeypatch.setattr(CountedText, "n_copied", 0)


@pytest.fixture
def counted_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every cell that an export's CSV reader yields a `CountedName`."""

    class CountingReader:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.reader = csv.reader(*arguments, **options)

        def __iter__(self) -> CountingReader:
            return self

        def __next__(self) -> list[CountedName]:
            return list(map(CountedName, next(self.reader)))

        @property
        def line_num(self) -> int:
            return self.reader.line_num

    class CountingCsv:
        field_size_limit, Error, reader = csv.field_size_limit, csv.Error, CountingReader

    monkeypatch.setattr(export_files, "csv", CountingCsv)


# ---------------------------------------------------------------------- tables


def _read_nothing(_: Sequence[str]) -> pa.Table:
    raise AssertionError("no column has to be read, because one is called task")


def test_columns_of_features_are_compared_a_few_times() -> None:
    n = 2_000
    names = [CountedName(f"feature{number}") for number in range(n)]
    assert features._find_task_column(["task", *names], None, read=_read_nothing, vote_tasks=None) == "task"
    assert CountedName.n_comparisons < 20 * n


@pytest.mark.slow
def test_fifty_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "X.csv"
    n = 50_000
    names, values = ",".join(f"feature{number}" for number in range(n)), ",".join(["0.12345678901234567890"] * n)
    path.write_text(f"task,{names}\nt1,{values}\nt2,{values}\n")
    assert read_features(path).rows.shape == (2, n)
    path.write_text(f"task,{names},feature7,feature9\nt1,{values},1,1\n")
    with pytest.raises(InputError, match="several columns are called 'feature7', 'feature9'"):
        read_features(path)


@pytest.mark.usefixtures("counted_cells")
def test_repeated_columns_of_an_export(tmp_path: Path) -> None:
    n = 1_000
    path = tmp_path / "assignments.tsv"
    names = [f"INPUT:{number // 2}" for number in range(n)]
    path.write_text("\t".join(["OUTPUT:x", "ASSIGNMENT:worker_id", *names]) + "\n")
    with pytest.raises(InputError, match="several columns"):
        read_project(path, "toloka")
    assert 0 < CountedName.n_comparisons < 20 * n


# ---------------------------------------------------------------------- exports in which every record has keys of its own


def test_columns_of_workers(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        records = [{"id": str(k), "annotator_0": "x", f"annotator_{k + 1}": "y"} for k in range(n)]
        path = write_lines(tmp_path / f"{n}.jsonl", records)
        return lambda: read_project(path, "hugging-face")

    check_count(make, 50)


def test_lists_of_answers(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        records = [{"id": str(k), "annotators": ["a", "b"], f"answer{k}": ["x", "y"]} for k in range(n)]
        path = write_lines(tmp_path / f"{n}.jsonl", records)
        return lambda: wc.io.FORMATS["hugging-face"].reader.read_export(path)  # type: ignore[misc]

    check_count(make, 50)


def test_keys_of_json_min(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.json"
        records = [
            {"id": 1, "annotator": k, "annotation_id": k, "lead_time": 1, f"question{k}": {"choices": ["a"]}}
            for k in range(n)
        ]
        path.write_text(json.dumps(records))
        return lambda: wc.io.FORMATS["label-studio-min"].reader.read_export(path)  # type: ignore[misc]

    check_count(make, 200)


@pytest.mark.usefixtures("counted_cells")
def test_questions_of_crowdflower(tmp_path: Path) -> None:
    n = 500
    path = tmp_path / "full.csv"
    names = [f"q{number}" for number in range(n)]
    header = ",".join(["_unit_id", "_worker_id", "_trust", *names, *(f"{name}_gold" for name in names)])
    path.write_text(f"{header}\n1,w,1,{','.join(['x'] * (2 * n))}\n")
    export = wc.io.FORMATS["crowdflower"].reader.read_export(path)  # type: ignore[misc]
    assert len(export.questions) == n
    assert 0 < CountedName.n_comparisons < 50 * n


def test_options_of_a_multiple_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 100
    records = [{"id": str(k), "annotators": ["a"], "labels": [[f"option{k}", "x"]]} for k in range(n)]
    path = write_lines(tmp_path / "data.jsonl", records)
    crowds: list[Any] = []
    build = wc.Crowd.from_codes
    monkeypatch.setattr(wc.Crowd, "from_codes", lambda *codes, **names: crowds.append(codes) or build(*codes, **names))
    question = read_project(path, "hugging-face").get_question()
    assert len(question.options) == n + 1
    assert len(crowds) < 5, "a crowd of every option has votes times options rows"
    assert question.options["option7"].to_frame()["label"].value_counts().to_dict() == {"no": n - 1, "yes": 1}
    assert question.options["x"].to_frame()["label"].tolist() == ["yes"] * n


# ---------------------------------------------------------------------- text


def test_text_of_xml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 40_000
    path = tmp_path / "annotations.xml"
    # Every character reference is a piece of text of its own; the parser joins them to pieces of a few kilobytes.
    text = "&#120;y" * n
    path.write_text(
        f"<annotations><meta><task><id>{text}</id><assignee><username>{text}</username></assignee></task></meta>"
        f"<name>{text}</name><image name='a'><tag label='cat'/></image></annotations>"
    )
    add_text, n_pieces = cvat._DocumentParser._add_text, 0

    def add_counted_text(parser: Any, text: str) -> None:
        nonlocal n_pieces
        n_pieces += 1
        add_text(parser, CountedText(text))

    monkeypatch.setattr(cvat._DocumentParser, "_add_text", add_counted_text)
    crowd = read_project(path).get_question().crowd
    assert crowd.workers.tolist() == ["xy" * n]  # type: ignore[union-attr]
    assert n_pieces > 10
    assert CountedText.n_copied < 2 * len(text)


def test_depth_of_xml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1_000
    path = tmp_path / "annotations.xml"
    image = "<image name='a'><tag label='cat'/></image>"
    path.write_text(f"<annotations>{image}{'<a><tag/>' * n}{'</a>' * n}</annotations>")
    start_element = cvat._DocumentParser._start_element
    monkeypatch.setattr(
        cvat._DocumentParser,
        "_start_element",
        lambda parser, tag, attributes: start_element(parser, CountedName(tag), attributes),
    )
    assert read_project(path).get_question().crowd.n_votes == 1  # type: ignore[union-attr]
    assert 0 < CountedName.n_comparisons < 50 * n


def test_sets_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = label_sets._PIECE

    class CountingPattern:
        @staticmethod
        def findall(text: str) -> list[CountedText]:
            return list(map(CountedText, pattern.findall(text)))

    monkeypatch.setattr(label_sets, "_PIECE", CountingPattern)
    n = 1_000
    text = "x\\|y" * n + "|" + "z" * n
    assert parse_label_set(text) == ("x|y" * n, "z" * n)
    assert CountedText.n_copied < 2 * len(text)
    options = ("a|b", "c\\", "", "∅", "x" * 1000)
    assert parse_label_set(format_label_set(options)) == options


def test_machines_with_the_names_of_people() -> None:
    n_names, n_answers = 200, 400
    question = ExportedQuestion("q")
    for k in range(n_names):
        question.add_answer("t", "machine:" * k + "gpt", ["x"])
    for k in range(n_answers):
        question.add_answer(f"t{k}", "gpt", ["x"], machine=True)
    n_lines = count_lines(lambda: name_workers(question))
    assert n_lines < 100 * (n_names + n_answers)
    assert name_workers(question)[-1] == "machine:" * n_names + "gpt"


def test_overlapping_files_of_a_zip_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ann.jsonl", '{"id": 1, "label": ["x"]}')
        (info,) = archive.filelist
        # The directory names the same bytes a thousand times.
        archive.filelist.extend([info] * 999)
    opened: list[Any] = []
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, info: opened.append(info))
    with pytest.raises(InputError, match="overlaps another file in this zip"):
        read_project(path, "doccano")
    assert opened == []
