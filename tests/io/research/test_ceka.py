from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError

ARFF = "@relation pets\n@attribute size numeric\n@attribute fur {yes,no}\n@attribute Class {0,1,2}\n\n@data\n"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    (tmp_path / "pets.response.txt").write_text("w1\te1\t0\nw2 e1 1\nw1\te2\t10\n")
    (tmp_path / "pets.gold.txt").write_text("e1\t0\ne2\t2\ne3\t2")
    return tmp_path


def test_the_worker_comes_first(pets: Path) -> None:
    crowd = wc.read(pets / "pets.response.txt")
    assert list(crowd.to_frame().itertuples(index=False, name=None)) == [
        ("e1", "w1", "0"),
        ("e1", "w2", "1"),
        ("e2", "w1", "10"),
    ]


def test_classes_are_numbers_in_order_and_known_from_the_gold_too(pets: Path) -> None:
    assert wc.read(pets).classes.tolist() == ["0", "1", "2", "10"]


def test_gold(pets: Path) -> None:
    known = {"e1": "0", "e2": "2", "e3": "2"}
    assert wc.read_truth(pets).to_dict() == known
    assert wc.read_truth(pets / "pets.gold.txt").to_dict() == known
    assert wc.load_dataset(pets / "pets.response.txt").truth.to_dict() == known  # type: ignore[union-attr]


def test_attributes_with_ids(pets: Path) -> None:
    (pets / "pets.arffx").write_text(f"{ARFF}1.5,yes,0\n2.5,no,2\n?,no,1\n\n@ID-MAP\ne1\ne2\ne3\n")
    features = wc.load_dataset(pets).features
    assert features is not None
    assert features.index.tolist() == ["e1", "e2", "e3"]
    assert features["size"].tolist()[:2] == [1.5, 2.5]
    assert features["size"].isna().tolist() == [False, False, True]
    assert features["fur"].tolist() == ["yes", "no", "no"]
    assert "Class" not in features


def test_the_class_attribute_stands_in_for_gold(pets: Path) -> None:
    (pets / "pets.gold.txt").unlink()
    (pets / "pets.arff").write_text(f"{ARFF}1.5,yes,0\n2.5,no,2\n")
    assert wc.read_truth(pets).to_dict() == {"0": "0", "1": "2"}


def test_without_gold_or_attributes(pets: Path) -> None:
    (pets / "pets.gold.txt").unlink()
    assert wc.load_dataset(pets).truth is None
    with pytest.raises(InputError, match="holds no truth"):
        wc.read_truth(pets)


def test_several_datasets_in_a_folder(pets: Path) -> None:
    (pets / "cars.response.txt").write_text("w1 e1 0\n")
    (pets / "cars.gold.txt").write_text("e1 1\n")
    with pytest.raises(InputError, match="2 datasets here"):
        wc.read(pets)
    assert wc.load_dataset(pets / "cars.response.txt").truth.to_dict() == {"e1": "1"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("w1 e1", "line 1 is 'w1 e1'; expected 3 words: worker task label"),
        ("w1 e1 0 1", "line 1 is 'w1 e1 0 1'; expected 3 words"),
        ("w1 e1 0\n\nw1 e1 0 1 5", "line 3 is .*expected 3 words"),
        ("", "is empty"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "x.response.txt"
    path.write_text(f"{line}\n")
    with pytest.raises(InputError, match=message):
        wc.read(path)


def test_bad_attributes(pets: Path) -> None:
    (pets / "pets.arffx").write_text(f"{ARFF}1.5,yes,0\n2.5,no,2\n\n@ID-MAP\ne1\n")
    with pytest.raises(InputError, match="2 rows but 1 ids"):
        wc.load_dataset(pets)
    (pets / "pets.arffx").write_text("@relation pets\n@attribute name string\n@data\nx\n")
    with pytest.raises(InputError, match=r"pets\.arffx cannot be read as ARFF"):
        wc.load_dataset(pets)


def test_wrong_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file NAME\.response\.txt with the votes here"):
        wc.read(tmp_path, format="ceka")


@pytest.mark.data
def test_a_real_dataset_survives_the_way_through_ceka(data_folder: Path, tmp_path: Path) -> None:
    dataset = wc.load_dataset(data_folder / "music_genre_ceka")
    votes = dataset.crowd.to_frame()
    votes[["worker", "task", "label"]].to_csv(tmp_path / "m.response.txt", sep="\t", header=False, index=False)
    assert dataset.truth is not None
    dataset.truth.to_csv(tmp_path / "m.gold.txt", sep="\t", header=False)
    again = wc.load_dataset(tmp_path)
    assert again.crowd == dataset.crowd
    pd.testing.assert_series_equal(again.truth, dataset.truth)


def test_pipe_in_the_folder_is_refused(pets: Path) -> None:
    (pets / "pets.response.txt").unlink()
    os.mkfifo(pets / "pets.response.txt")
    with pytest.raises(InputError, match="is a pipe or a device"):
        wc.read(pets, format="ceka")
