"""Ids and labels that try something are written and read again as they were, or refused in words."""

from __future__ import annotations

import csv
import json
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError
from wisecrowd.io.dataset_folder import write_dataset
from wisecrowd.io.features import read_features
from wisecrowd.io.tables.chunks import write_chunks

GROUPS = json.loads((Path(__file__).parents[1] / "hostile.json").read_text(encoding="utf-8"))
LONG = "x" * 10_000
HOSTILE = [*(text for texts in GROUPS.values() for text in texts), LONG]
#: Half a character, which no file in UTF-8 can hold.
HALF = "half \ud800"
FILES = ["votes.csv", "votes.tsv", "votes.jsonl", "votes.parquet", "votes.csv.gz", "votes.jsonl.gz", "dataset"]


pytestmark = pytest.mark.filterwarnings(
    "ignore:.*but count as different:wisecrowd.errors.DataWarning"
)  # so they are meant


def crowd_of(texts: list[str]) -> Crowd:
    """A crowd in which every text is a task, a worker and a class."""
    n = len(texts)
    rows = [(texts[i], texts[(i + j) % n], texts[(i * j + i) % n]) for i in range(n) for j in range(min(n, 3))]
    return Crowd.from_triples(rows)


@pytest.mark.parametrize("name", FILES)
def test_all_texts_survive_together(tmp_path: Path, name: str) -> None:
    crowd = crowd_of(HOSTILE)
    wc.write(crowd, tmp_path / name)
    read = wc.read(tmp_path / name)
    assert read == crowd
    assert set(read.tasks) == set(read.workers) == set(read.classes) == set(HOSTILE)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning")  # some look like numbers
@pytest.mark.parametrize(("name", "every"), [("votes.csv", 1), ("votes.tsv", 3), ("votes.jsonl", 3)])
def test_each_text_survives_alone(tmp_path: Path, name: str, every: int) -> None:
    path = tmp_path / name
    for text in HOSTILE[::every]:
        crowd = crowd_of([text])
        wc.write(crowd, path)
        assert wc.read(path) == crowd, repr(text[:40])


@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.parquet"])
def test_pieces(tmp_path: Path, name: str) -> None:
    crowd = crowd_of(HOSTILE)
    write_chunks(crowd.split_tasks(3), tmp_path / name)
    assert wc.read(tmp_path / name) == crowd


def test_look_alikes_are_not_made_one() -> None:
    alike = ["\u00e9", "e\u0301", "\u00c5", "\u212b", "\ufb01", "fi", "7", "007", "true", "True", "a", "a\0", "", "\0"]
    assert len({unicodedata.normalize("NFKC", text) for text in alike}) < len(alike)
    assert crowd_of(alike).n_tasks == len(alike)
    assert crowd_of(["a\0"]) != crowd_of(["a"])


@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.jsonl", "votes.parquet", "dataset"])
@pytest.mark.parametrize("text", ["\U0001f600" * 10_000, "x" * 300_000], ids=["emoji", "letters"])
def test_a_row_longer_than_what_is_looked_at_first(tmp_path: Path, name: str, text: str) -> None:
    crowd = Crowd.from_triples([(text, "ann", text), (f"{text}2", text, f"{text}3")])
    wc.write(crowd, tmp_path / name)
    assert wc.read(tmp_path / name) == crowd


# ---------------------------------------------------------------------- beside the votes


def table(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A table as other tools would write it."""
    frame = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in frame.to_dict("records")), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(frame.to_dict("records")), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t", quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(frame.columns)
            writer.writerows(frame.to_numpy().tolist())
    return path


@pytest.mark.parametrize("name", ["truth.csv", "truth.tsv", "truth.jsonl", "truth.json", "truth.parquet"])
def test_truth(tmp_path: Path, name: str) -> None:
    path = table(tmp_path / name, {"task": HOSTILE, "truth": HOSTILE[::-1]})
    assert wc.io.read_truth(path).to_dict() == dict(zip(HOSTILE, HOSTILE[::-1], strict=True))


@pytest.mark.parametrize("name", ["X.csv", "X.tsv", "X.parquet"])
def test_features(tmp_path: Path, name: str) -> None:
    ours = ("task", "task_id", "__index_level_0__")  # ids, and what pandas calls an index without a name
    names = [text for text in HOSTILE if text not in ours and ("\0" not in text or name.endswith(".parquet"))]
    columns = {text: [float(n) for n in range(len(HOSTILE), 0, -1)] for text in names}
    read = read_features(table(tmp_path / name, {"task": HOSTILE} | columns))
    assert read.tasks.tolist() == HOSTILE
    assert list(read.names or ()) == list(columns)
    assert (read.rows == np.arange(len(HOSTILE), 0, -1)[:, None]).all()


def test_a_dataset_keeps_all_its_parts(tmp_path: Path) -> None:
    crowd = crowd_of(HOSTILE)
    index = pd.Index(HOSTILE)
    truth, texts = pd.Series(HOSTILE[::-1], index=index), pd.DataFrame({"text": HOSTILE}, index=index)
    numbers = np.arange(2.0 * len(HOSTILE)).reshape(-1, 2)
    for name, columns in (("named", ["=1", "a\nb"]), ("nameless", [0, 1])):
        features = pd.DataFrame(numbers, index=index, columns=columns)
        meta = {"source": LONG, "licence": "\x1b[31m"}
        write_dataset(tmp_path / name, crowd, truth=truth, features=features, texts=texts, meta=meta)
        read = wc.load_dataset(tmp_path / name)
        assert read.crowd == crowd
        assert read.truth.to_dict() == truth.to_dict()
        assert read.texts["text"].to_dict() == texts["text"].to_dict()
        assert read.features.index.tolist() == HOSTILE, name
        assert (read.features.to_numpy() == numbers).all()
        assert read.meta["licence"] == "\x1b[31m"
        assert read_features(tmp_path / name).tasks.tolist() == HOSTILE


def test_features_that_are_called_task_are_refused(tmp_path: Path) -> None:
    features = pd.DataFrame({"task": [1.0]}, index=["t"])
    with pytest.raises(InputError, match="called 'task'"):
        write_dataset(tmp_path / "dataset", Crowd.from_triples([("t", "ann", "cat")]), features=features)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("name", "part"), [("votes.csv", 0), ("votes.tsv", 1), ("votes.jsonl", 2), ("votes.json", 3), ("votes.parquet", 4)]
)
def test_columns_may_be_called_anything(tmp_path: Path, name: str, part: int) -> None:
    wanted = Crowd.from_triples([("t", "ann", "cat")])
    for text in [*HOSTILE[part::5], "[/]", "\x1b[31m", "\0", "a\nb", "=1"]:
        if text in ("", "worker", "label", "weight", "observed", "time"):  # they have a meaning; no name is no name
            continue
        path = table(tmp_path / name, {text: ["t"], "worker": ["ann"], "label": ["cat"]})
        if "\0" in text and path.suffix in (".csv", ".tsv"):  # a header with zero bytes is how UTF-16 looks
            with pytest.raises(InputError, match="not text"):
                wc.read(path, task=text)
        else:
            assert wc.read(path, task=text) == wanted, repr(text[:40])


def test_messages_are_short_whatever_they_quote(tmp_path: Path) -> None:
    longer = "y" * 100_000
    path = table(tmp_path / "votes.csv", {longer: ["t"], "worker": ["ann"], "label": ["cat"]})
    attempts: list[Any] = [
        lambda: wc.read(path),
        lambda: wc.read(path, task=longer[:-1]),
        lambda: Crowd.from_triples([(longer, longer, "cat"), (longer, longer, "dog")]),
        lambda: Crowd.from_triples([(longer, "ann", longer)], classes=["cat"]),
        lambda: Crowd.from_triples([("t", "ann", longer)], numeric=True),
        lambda: Crowd.from_triples([("t", "ann", "cat", longer)]),
    ]
    for attempt in attempts:
        with pytest.raises(InputError) as caught:
            attempt()
        assert len(str(caught.value)) < 1000


# ---------------------------------------------------------------------- what no file can hold


@pytest.mark.parametrize(
    "build",
    [
        lambda: Crowd.from_triples([(HALF, "ann", "cat")]),
        lambda: Crowd.from_triples([("t", "ann", "cat")], classes=["cat", HALF]),
        lambda: Crowd.from_triples([("t", "ann", "cat")], tasks=["t", HALF]),
        lambda: Crowd.from_frame({"task": ["t"], "worker": [HALF], "label": ["cat"]}),
        lambda: Crowd.from_frame(pd.DataFrame({"task": ["t"], "worker": ["ann"], "label": [HALF]}, dtype=object)),
        lambda: Crowd.from_matrix(pd.DataFrame([["cat"]], index=pd.Index([HALF], dtype=object))),
        lambda: Crowd.from_matrix([[HALF, "cat"]]),
        lambda: Crowd.from_counts([[1, 2]], classes=["cat", HALF]),
        lambda: Crowd.from_codes([0], [0], [0], tasks=[HALF], workers=["ann"], classes=["cat"]),
    ],
)
def test_half_characters_are_refused(build: Any) -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        build()


@pytest.mark.parametrize("name", ["votes.json", "votes.jsonl", "answers.json"])
def test_half_characters_in_files_are_refused(tmp_path: Path, name: str) -> None:
    row = {"task": HALF, "worker": "ann", "label": "cat"}
    text = {"votes.json": [row], "votes.jsonl": row, "answers.json": {HALF: {"ann": "cat"}}}[name]
    (tmp_path / name).write_text(json.dumps(text), encoding="ascii")
    with pytest.raises(InputError, match=r"lone surrogate|surrogate"):
        wc.read(tmp_path / name)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_name_of_another_encoding_is_refused_in_words(tmp_path: Path) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.csv"))
    path.write_text("task,worker,label\nt,ann,cat\n", encoding="utf-8")
    for read in (wc.read, wc.io.read_truth, read_features):
        with pytest.raises(InputError, match="not in UTF-8; rename it"):
            read(path)
    with pytest.raises(InputError, match="not in UTF-8"):
        wc.write(Crowd.from_triples([("t", "ann", "cat")]), path.with_name(path.name + ".csv"))


@pytest.mark.parametrize("name", ["$(id).csv", "[bold].csv", "--help.csv", "\x1b[31m\n.csv", "=1+1.csv", "a b.csv"])
def test_files_may_be_called_anything_else(tmp_path: Path, name: str) -> None:
    crowd = Crowd.from_triples([("t", "ann", "cat")])
    wc.write(crowd, tmp_path / name)
    assert wc.read(tmp_path / name) == crowd


def test_what_is_no_text_is_still_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes("task,worker,label\nt,ann,cat\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="not text"):
        wc.read(path)
    path.write_bytes(b"\x7fELF\0\0\0\n" * 10)
    with pytest.raises(InputError, match="not text"):
        wc.read(path)
