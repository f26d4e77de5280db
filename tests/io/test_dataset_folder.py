from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.dataset_folder import write_dataset

CROWD = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(
        tmp_path / "pets",
        CROWD,
        truth=pd.Series({"t1": "cat", "t2": "cat", "t9": "dog"}),
        splits=pd.Series({"t1": "train", "t2": "train", "t9": "test"}),
        features=pd.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], index=["t1", "t2", "t9"]),
        texts=pd.DataFrame({"text": ["a", "b", "c"]}, index=["t1", "t2", "t9"]),
        meta={"citation": "Somebody (2024)"},
    )
    return tmp_path / "pets"


def test_everything_comes_back(folder: Path) -> None:
    dataset = wc.load_dataset(folder)
    assert dataset.crowd == CROWD == wc.read(folder)
    assert dataset.truth is not None
    assert dataset.truth.to_dict() == {"t1": "cat", "t2": "cat", "t9": "dog"}
    assert dataset.splits is not None
    assert dataset.splits.to_dict() == {"t1": "train", "t2": "train", "t9": "test"}
    assert dataset.features is not None
    assert dataset.features.loc["t9"].tolist() == [5, 6]
    assert dataset.texts is not None
    assert dataset.texts.loc["t2", "text"] == "b"
    assert (dataset.name, dataset.meta["citation"], dataset.folder) == ("pets", "Somebody (2024)", folder)
    assert wc.read_truth(folder).to_dict() == dataset.truth.to_dict()


def test_counts_are_told_without_reading_the_votes(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    counts = {key: meta[key] for key in meta if key.startswith("n_")}
    assert counts == {
        "n_tasks": 2,
        "n_votes": 3,
        "n_gold": 3,
        "n_gold_with_annotations": 2,
        "n_workers": 2,
        "n_classes": 2,
    }


def test_the_order_of_classes_is_kept(tmp_path: Path) -> None:
    labels = [str(n) for n in range(12)]
    crowd = wc.Crowd.from_triples([(label, "ann", label) for label in labels], classes=[*labels, "12"])
    wc.write(crowd, tmp_path / "d")
    assert wc.read(tmp_path / "d").classes.tolist() == [*labels, "12"]
    assert wc.read(tmp_path / "d", classes=sorted([*labels, "x", "12"])).classes.tolist()[1] == "1"


def test_features_of_several_types_go_into_a_table(tmp_path: Path) -> None:
    features = pd.DataFrame({"age": [1.5, 2.5], "job": ["a", "b"]}, index=["t1", "t2"])
    write_dataset(tmp_path / "d", CROWD, features=features)
    read = wc.load_dataset(tmp_path / "d").features
    assert read is not None
    pd.testing.assert_frame_equal(read, features.rename_axis("task"))


def test_a_floating_label_is_a_number(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", wc.Crowd.from_triples([("a", "x", 1.0), ("a", "y", 2.0)], numeric=True))
    assert wc.read(tmp_path / "d").is_numeric
    meta = tmp_path / "d" / "meta.json"
    meta.unlink()
    assert wc.read(tmp_path / "d").is_numeric
    meta.write_text('{"numeric": false}')
    assert wc.read(tmp_path / "d").classes.tolist() == [1, 2]


def test_meta_may_call_whole_numbers_numbers(tmp_path: Path) -> None:
    write_dataset(tmp_path / "d", wc.Crowd.from_triples([("a", "x", 1), ("a", "y", 2)]))
    (tmp_path / "d" / "meta.json").write_text('{"numeric": true}')
    assert wc.read(tmp_path / "d").label.tolist() == [1.0, 2.0]


def test_classes_that_do_not_cover_the_labels(folder: Path) -> None:
    (folder / "meta.json").write_text('{"classes": ["cat"]}')
    with pytest.raises(InputError, match=r"pets: 1 label ids are not in the given vocabulary of 1: 'dog'"):
        wc.read(folder)


@pytest.mark.parametrize("content", ["{oops", "[1]", "\udcff"])
def test_bad_meta(folder: Path, content: str) -> None:
    (folder / "meta.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"meta\.json"):
        wc.read(folder)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 2))}, r"features\.npz: expected the arrays 'task' and 'X'"),
        ({"task": np.array(["a"]), "X": np.ones((2, 2))}, r"they are of shape \(1,\) and \(2, 2\)"),
        ({"task": np.array(["a", "a"]), "X": np.ones((2, 2))}, "several rows for 'a'"),
        ({"task": np.array(["a", "b"], dtype=object), "X": np.ones((2, 2))}, "'task' holds Python objects"),
    ],
)
def test_bad_features(folder: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(folder / "features.npz", **arrays)
    with pytest.raises(InputError, match=message):
        wc.load_dataset(folder)


def test_two_truths_for_one_task(folder: Path) -> None:
    pd.DataFrame({"task": ["t1", "t1"], "label": ["cat", "dog"]}).to_parquet(folder / "truth.parquet")
    with pytest.raises(InputError, match=r"1 task has more than one value in the column '.*', for example 't1'"):
        wc.load_dataset(folder)


def test_nothing_is_overwritten(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(UsageError, match="exists already"):
        wc.write(CROWD, folder)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    wc.write(CROWD, tmp_path / "d")
    assert wc.read(tmp_path / "d") == CROWD


def test_nothing_is_left_of_a_failed_write(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_dataset(tmp_path / "d", CROWD, meta={"bad": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_votes_is_not_a_dataset(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder, but not a dataset.*It is empty"):
        wc.read(tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", ["income", "movie_reviews", "music_genre_ceka"])
def test_real_datasets_survive(data_folder: Path, tmp_path: Path, name: str) -> None:
    dataset = wc.load_dataset(data_folder / name)
    parts = {part: getattr(dataset, part) for part in ("truth", "splits", "features", "texts")}
    write_dataset(tmp_path / name, dataset.crowd, meta=dict(dataset.meta), **parts)
    again = wc.load_dataset(tmp_path / name)
    assert again.crowd == dataset.crowd
    for part, value in parts.items():
        if value is None:
            assert getattr(again, part) is None
        elif isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(getattr(again, part), value)
        else:
            pd.testing.assert_series_equal(getattr(again, part), value)


def test_the_order_of_classes_is_stored(tmp_path: Path) -> None:
    crowd = wc.Crowd.from_triples([("a", "x", "low"), ("a", "y", "high")], ordered=True, classes=["low", "high"])
    write_dataset(tmp_path / "d", crowd)
    assert wc.read(tmp_path / "d") == crowd
    assert wc.read(tmp_path / "d").is_ordered
