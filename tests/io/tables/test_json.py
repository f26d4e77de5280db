from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io.problems import MixedTypes

RECORDS = [
    {"task": "2015-01-01", "worker": 7, "label": "cat", "extra": {"deep": [1]}},
    {"task": "2015-01-02", "worker": 8, "label": "dog", "note": "x"},
]


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def test_types_are_kept_and_dates_stay_text(tmp_path: Path) -> None:
    crowd = wc.read(lines(tmp_path / "votes.jsonl", *RECORDS))
    assert crowd.tasks.tolist() == ["2015-01-01", "2015-01-02"]
    assert crowd.workers.tolist() == [7, 8]


def test_a_list_says_the_same_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "votes.json"
    path.write_text(json.dumps(RECORDS, indent=1))
    assert wc.read(path) == wc.read(lines(tmp_path / "votes.jsonl", *RECORDS))


def test_compressed_and_with_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join([b"", *(json.dumps(record).encode() for record in RECORDS), b"", b""])))
    assert wc.read(path).n_votes == 2


def test_null_and_absent_are_holes(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "v.jsonl", RECORDS[0], {"task": "b", "worker": 1, "label": None}, {"task": "c", "worker": 2}
    )
    with pytest.raises(InputError, match=r"2 of 3 rows have no label \(line 2, 3\)"):
        wc.read(path)
    assert wc.read(path, missing="drop").n_votes == 1


def test_whole_numbers_may_become_fractions_later(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "v.jsonl",
        *({"task": n, "worker": 1, "label": 1} for n in range(9000)),
        {"task": 9000, "worker": 1, "label": 0.5},
    )
    crowd = wc.read(path, numeric=True)
    assert crowd.label[-1] == 0.5
    assert crowd.tasks[-1] == 9000


@pytest.mark.parametrize("name", ["v.jsonl", "v.json"])
@pytest.mark.parametrize("bad", ["text", 2, True])
def test_mixed_types(tmp_path: Path, name: str, bad: object) -> None:
    good = {"text": 1, 2: "text", True: 3}[bad]  # type: ignore[index]
    records = [
        *({"task": good, "worker": n, "label": "x"} for n in range(5000)),
        {"task": bad, "worker": 0, "label": "x"},
    ]
    path = lines(tmp_path / name, *records)
    if name == "v.json":
        path.write_text(json.dumps(records))
    with pytest.raises(MixedTypes, match="use one type per key"):
        wc.read(path)


def test_numbers_too_long_to_be_exact_are_refused(tmp_path: Path) -> None:
    path = lines(tmp_path / "v.jsonl", {"task": 2**70, "worker": 1, "label": "x"})
    with pytest.raises(InputError, match="to int64"):
        wc.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"task": "a", "worker": "x", "label": "p"}\n{oops\n', "line 2 is not JSON"),
        ('{"task": "a", "worker": "x", "label": ["p"]}\n', "'label' holds list values"),
        ("[1, 2]\n", "line 1 is not a JSON object"),
        ('{"task": "a", "worker": "x"}\n', "no label column; the columns are 'task', 'worker'"),
        ("\n", "is empty"),
    ],
)
def test_bad_lines(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=f"votes.jsonl.*{message}"):
        wc.read(path)


def test_a_bad_line_far_into_the_file(tmp_path: Path) -> None:
    path = lines(tmp_path / "v.jsonl", *({"task": n, "worker": 1, "label": "x"} for n in range(5000)))
    path.write_text(path.read_text() + "{oops\n")
    with pytest.raises(InputError, match="row 5000"):
        wc.read(path)


def test_bad_encoding(tmp_path: Path) -> None:
    path = lines(tmp_path / "v.jsonl", *({"task": n, "worker": 1, "label": "x"} for n in range(5000)))
    path.write_bytes(path.read_bytes() + b'{"task": 5000, "worker": 1, "label": "caf\xe9"}\n')
    with pytest.raises(InputError, match="not in UTF-8"):
        wc.read(path)


@pytest.mark.parametrize("content", ['{"task": 1}', "[1, 2]", "[{", '"text"', "[]"])
def test_what_is_no_list_of_objects(tmp_path: Path, content: str) -> None:
    path = tmp_path / "votes.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"votes\.json"):
        wc.read(path)


def test_truth(tmp_path: Path) -> None:
    records = [{"item": 1, "gold": "x"}, {"item": 1, "gold": "x"}, {"item": 2, "gold": "y"}]
    assert wc.read_truth(lines(tmp_path / "t.jsonl", *records)).to_dict() == {1: "x", 2: "y"}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(records))
    assert wc.read_truth(path).to_dict() == {1: "x", 2: "y"}


def test_infinity_has_no_word(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([("a", "x", float("inf"))], numeric=True)
    with pytest.raises(InputError, match="infinite"):
        wc.write(crowd, tmp_path / "v.jsonl")
    assert not (tmp_path / "v.jsonl").exists()
