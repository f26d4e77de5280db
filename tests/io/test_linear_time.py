"""The work of reading is proportional to the size of a file, also of one that is built to be slow.

Work is counted in calls and lines of Python where that is what grows. Where a library or a copy of text is what grows, the
processor time of two sizes is compared, with a wide margin.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io import features, read_project
from wisecrowd.io.features import read_features
from wisecrowd.io.tools.exported_answers import ExportedQuestion
from wisecrowd.io.tools.label_sets import format_label_set, parse_label_set
from wisecrowd.io.tools.question_votes import name_workers

#: Growth of the work between two sizes that differ by a factor of four. Quadratic work grows by sixteen.
GROWTH, MAX_RATIO = 4, 8
#: Processor seconds that the noise of a busy machine may add; quadratic work would add much more.
NOISE_SECONDS = 0.3


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


def measure_seconds(run: Callable[[], Any]) -> float:
    """Return the least processor time of three calls."""
    gc.collect()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def check_count(make: Callable[[int], Callable[[], Any]], size: int) -> None:
    make(2)()  # imports
    small, large = (count_lines(make(n)) for n in (size, GROWTH * size))
    assert large < MAX_RATIO * small


def check_seconds(make: Callable[[int], Callable[[], Any]], size: int) -> None:
    make(2)()
    small, large = (measure_seconds(make(n)) for n in (size, GROWTH * size))
    assert large < MAX_RATIO * small + NOISE_SECONDS


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


# ---------------------------------------------------------------------- tables


class CountedName(str):
    """Column name that counts how often it is compared."""

    n_comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.n_comparisons += 1
        return str.__eq__(self, other) is True

    __hash__ = str.__hash__


def test_columns_of_features_are_compared_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2_000
    names = [CountedName(f"feature{number}") for number in range(n)]
    monkeypatch.setattr(CountedName, "n_comparisons", 0)
    assert features._find_task_column(["task", *names], None) == "task"
    assert CountedName.n_comparisons < 20 * n


def test_fifty_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "X.csv"
    n = 50_000
    names, values = ",".join(f"feature{number}" for number in range(n)), ",".join(["0.12345678901234567890"] * n)
    path.write_text(f"task,{names}\nt1,{values}\nt2,{values}\n")
    assert read_features(path).rows.shape == (2, n)
    path.write_text(f"task,{names},feature7,feature9\nt1,{values},1,1\n")
    with pytest.raises(InputError, match="several columns are called 'feature7', 'feature9'"):
        read_features(path)


def test_repeated_columns_of_an_export(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.tsv"
        names = [f"INPUT:{number // 2}" for number in range(n)]
        path.write_text("\t".join(["OUTPUT:x", "ASSIGNMENT:worker_id", *names]) + "\n")

        def read() -> None:
            with pytest.raises(InputError, match="several columns"):
                read_project(path, "toloka")

        return read

    check_seconds(make, 20_000)


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


def test_questions_of_crowdflower(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.csv"
        names = [f"q{number}" for number in range(n)]
        header = ",".join(["_unit_id", "_worker_id", "_trust", *names, *(f"{name}_gold" for name in names)])
        path.write_text(f"{header}\n1,w,1,{','.join(['x'] * (2 * n))}\n")
        return lambda: wc.io.FORMATS["crowdflower"].reader.read_export(path)  # type: ignore[misc]

    check_seconds(make, 4_000)


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


def test_text_of_xml(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.xml"
        # Every character reference is a piece of text of its own.
        text = "&#120;y" * n
        path.write_text(
            f"<annotations><meta><task><id>{text}</id><assignee><username>{text}</username></assignee></task></meta>"
            f"<name>{text}</name><image name='a'><tag label='cat'/></image></annotations>"
        )
        return lambda: read_project(path)

    check_seconds(make, 40_000)
    assert read_project(tmp_path / "40000.xml").get_question().crowd.workers.tolist() == ["xy" * 40_000]  # type: ignore[union-attr]


def test_depth_of_xml(tmp_path: Path) -> None:
    def make(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.xml"
        image = "<image name='a'><tag label='cat'/></image>"
        path.write_text(f"<annotations>{image}{'<a><tag/>' * n}{'</a>' * n}</annotations>")
        return lambda: read_project(path)

    check_seconds(make, 10_000)


def test_sets_of_labels() -> None:
    def make(n: int) -> Callable[[], Any]:
        text = "x\\|y" * n + "|" + "z" * n
        return lambda: parse_label_set(text)

    check_seconds(make, 40_000)
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
