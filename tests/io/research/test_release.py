"""Votes for others: nobody goes by their name, and what is learnt from them is the same."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io import read_project
from wisecrowd.io.research.release import load_release_key, make_pseudonyms, write_release

KEY = b"0123456789abcdef"
CROWD = wc.Crowd.from_triples(
    [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t1", "cy", "cat"), ("t2", "ann", "dog"), ("t3", "cy", "cat")]
)


@pytest.mark.parametrize("name", ["votes.parquet", "votes.jsonl"])
def test_what_was_released_is_read_again(tmp_path: Path, name: str) -> None:
    write_release(CROWD, tmp_path / name, key=KEY)
    again = read_project(tmp_path / name).get_question()
    known = dict(zip(CROWD.workers, make_pseudonyms(CROWD.workers, KEY), strict=True))
    frame = CROWD.to_frame().assign(worker=lambda votes: votes["worker"].map(known))
    assert again.crowd == wc.Crowd.from_frame(frame)
    assert wc.MajorityVote().fit(again.crowd).labels_.tolist() == wc.MajorityVote().fit(CROWD).labels_.tolist()


def test_no_id_and_no_key_is_in_the_file(tmp_path: Path) -> None:
    write_release(CROWD, tmp_path / "votes.jsonl", key=KEY)
    text = (tmp_path / "votes.jsonl").read_text()
    assert not any(name in text for name in ("ann", "bob", '"cy"', KEY.decode()))
    write_release(CROWD, tmp_path / "votes.parquet", key=KEY)
    table = pq.read_table(tmp_path / "votes.parquet")
    assert table.column_names == ["task", "workers", "labels", "soft_label"]
    assert not {"ann", "bob", "cy"} & set(table["workers"].combine_chunks().flatten().to_pylist())
    assert KEY not in (tmp_path / "votes.parquet").read_bytes()


def test_the_order_of_votes_tells_nothing_of_the_ids(tmp_path: Path) -> None:
    write_release(CROWD, tmp_path / "votes.jsonl", key=KEY)
    for line in (tmp_path / "votes.jsonl").read_text().splitlines():
        assert json.loads(line)["workers"] == sorted(json.loads(line)["workers"])


def test_pseudonyms_are_keyed_hashes() -> None:
    expected = hmac.new(KEY, b"ann", hashlib.sha256).hexdigest()[:16]
    assert make_pseudonyms(["ann"], KEY) == [expected]
    assert make_pseudonyms(["ann"], KEY[::-1]) != [expected]
    with pytest.raises(UsageError, match="the key has 3 bytes and can be guessed; use 16 or more"):
        make_pseudonyms(["ann"], b"abc")


def test_names_grow_where_two_would_be_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wisecrowd.io.research.release._PSEUDONYM_DIGITS", 1)
    names = make_pseudonyms(range(40), KEY)
    assert len(set(names)) == 40
    assert {len(name) for name in names} == {64}


def test_soft_labels(tmp_path: Path) -> None:
    write_release(CROWD, tmp_path / "votes.parquet", key=KEY)
    soft = pq.read_table(tmp_path / "votes.parquet")["soft_label"].to_pylist()
    assert soft[0] == pytest.approx({"cat": 2 / 3, "dog": 1 / 3})
    model = wc.DawidSkene(smoothing=0.5).fit(CROWD)
    answers = model.labels_.to_frame("label").assign(confidence=model.posterior_.max(axis=1))
    write_release(CROWD, tmp_path / "sure.parquet", key=KEY, answers=answers, posterior=model.proba_)
    table = pq.read_table(tmp_path / "sure.parquet").to_pylist()
    for row, posterior in zip(table, model.posterior_, strict=True):
        assert list(row["soft_label"].values()) == pytest.approx(posterior)
        assert row["confidence"] == pytest.approx(posterior.max())
        assert row["label"] == model.classes_[posterior.argmax()]


def test_sets_and_numbers(export: Any, tmp_path: Path) -> None:
    topics = read_project(export("label-studio")).questions["topics"]
    write_release(topics.crowd, tmp_path / "sets.parquet", key=KEY, sets=True)
    again = read_project(tmp_path / "sets.parquet").get_question()
    assert again.kind == "multiple"
    assert sorted(again.crowd.to_frame()["label"]) == sorted(topics.crowd.to_frame()["label"])
    numbers = wc.Crowd.from_triples([(1, "ann", 1.5), (1, "bob", 2.5)], numeric=True)
    write_release(numbers, tmp_path / "numbers.jsonl", key=KEY)
    row = json.loads((tmp_path / "numbers.jsonl").read_text())
    assert sorted(row["labels"]) == [1.5, 2.5]
    assert "soft_label" not in row
    assert read_project(tmp_path / "numbers.jsonl").get_question().kind == "number"


def test_a_task_without_votes(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([("t1", "ann", "cat")], tasks=["t0", "t1"])
    write_release(crowd, tmp_path / "votes.parquet", key=KEY)
    rows = pq.read_table(tmp_path / "votes.parquet").to_pylist()
    assert (rows[0]["workers"], rows[0]["soft_label"]) == ([], {"cat": 0.0})


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    with pytest.raises(UsageError, match=r"end it in \.parquet or \.jsonl"):
        write_release(CROWD, tmp_path / "votes.csv", key=KEY)
    with pytest.raises(InputError, match="no worker ids"):
        write_release(wc.Crowd.from_counts([[1, 2]]), path, key=KEY)
    lacking = pd.DataFrame(np.ones((1, 2)), index=["t1"], columns=["cat", "dog"])
    with pytest.raises(InputError, match="no probabilities for 2 tasks: 't2', 't3'; give a row"):
        write_release(CROWD, path, key=KEY, posterior=lacking)
    assert list(tmp_path.iterdir()) == []


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WISECROWD_KEY", raising=False)
    with pytest.raises(UsageError, match="there is no key for the pseudonyms"):
        load_release_key()
    monkeypatch.setenv("WISECROWD_KEY", "secret-but-short")
    assert load_release_key() == b"secret-but-short"
    monkeypatch.setenv("WISECROWD_KEY", "short")
    with pytest.raises(UsageError, match="has 5 bytes and can be guessed") as refused:
        load_release_key()
    assert "short" not in str(refused.value)
    (tmp_path / "key").write_text("from-a-file-0123456\nnot this\n")
    assert load_release_key(tmp_path / "key") == b"from-a-file-0123456"
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_release_key(tmp_path / "none")
