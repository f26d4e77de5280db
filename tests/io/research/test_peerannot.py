from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError

# Its own toy data.
ANSWERS = {"0": {"0": 1, "1": 0, "2": 1, "3": 1}, "1": {"0": 1, "2": 0, "3": 0}, "2": {"1": 1, "3": 1}}
INVERTED = {"0": {"0": 1, "1": 1}, "1": {"0": 0, "2": 1}, "2": {"0": 1, "1": 0}, "3": {"0": 1, "1": 0, "2": 1}}
MATRIX = "1 0 1 1\n1 -1 0 0\n-1 1 -1 1\n"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "answers.json").write_text(json.dumps(ANSWERS, indent=4))
    (tmp_path / "metadata.json").write_text('{"name": "toy-data", "n_classes": 2, "n_workers": 4, "n_tasks": 3}')
    return tmp_path


def test_three_ways_to_say_the_same(toy: Path, tmp_path: Path) -> None:
    crowd = wc.read(toy)
    assert repr(crowd) == "Crowd(9 votes: 3 tasks x 4 workers, 2 classes, 3.0 votes/task)"
    assert (crowd.tasks.tolist(), crowd.workers.tolist()) == ([0, 1, 2], [0, 1, 2, 3])
    (tmp_path / "answers.txt").write_text(MATRIX)
    (tmp_path / "answers_inversed.json").write_text(json.dumps(INVERTED))
    assert wc.read(tmp_path / "answers.txt") == crowd
    assert wc.read(tmp_path / "answers_inversed.json") == crowd
    (toy / "answers.json").write_text(json.dumps(INVERTED))
    assert wc.read(toy, format="peerannot-inverted") == crowd


@pytest.mark.parametrize("key", ["n_task", "n_tasks"])
def test_metadata_counts_what_nobody_answered(toy: Path, key: str) -> None:
    (toy / "metadata.json").write_text(json.dumps({key: 5, "n_classes": 4}))
    crowd = wc.read(toy)
    assert (crowd.n_tasks, crowd.n_classes, crowd.has_task_order) == (5, 4, True)


def test_metadata_that_does_not_fit_is_not_believed(toy: Path) -> None:
    (toy / "metadata.json").write_text('{"n_task": 2, "n_classes": 1}')
    assert wc.read(toy).shape == (3, 4)


def test_rows_without_an_answer_are_tasks(tmp_path: Path) -> None:
    (tmp_path / "answers.txt").write_text("-1 -1\n-1 0\n")
    crowd = wc.read(tmp_path)
    assert (crowd.n_tasks, crowd.n_votes) == (2, 1)


def test_ids_that_are_no_integers_stay_text(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('{"img_1": {"ann": "cat"}, "01": {"2": "dog"}}')
    assert wc.read(tmp_path).tasks.tolist() == ["01", "img_1"]


def test_truth_of_its_simulator(toy: Path) -> None:
    np.save(toy / "ground_truth.npy", np.array([1, 0, 1]))
    dataset = wc.load_dataset(toy)
    assert dataset.truth is not None
    assert dataset.truth.to_dict() == {0: 1, 1: 0, 2: 1}
    assert dataset.name == "toy-data"


def test_a_list_of_records_may_be_called_answers_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text('[{"task": "a", "worker": "x", "label": "p"}]')
    assert wc.read(path).tasks.tolist() == ["a"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("answers.json", "{oops", "not JSON"),
        ("answers.json", '{"0": 1}', 'should look like {"task": {"worker": label}}'),
        ("answers.json", '{"0": {"0": 1, "1": "x"}}', "mixes types"),
        ("answers.json", '{"0": {}}', "no votes in it"),
        ("answers.txt", "1 x\n", "is not a matrix of integers"),
        ("answers.txt", "1 0\n1 0 1\n", "is not a matrix of integers"),
        ("answers.txt", "", "is empty"),
    ],
)
def test_bad_input(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        wc.read(tmp_path)


def test_wrong_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither answers\.json nor answers\.txt"):
        wc.read(tmp_path, format="peerannot")


@pytest.mark.data
def test_a_published_matrix(raw_folder: Path, data_folder: Path) -> None:
    crowd = wc.read(raw_folder / "labelme" / "answers.txt")
    known = wc.load_dataset(data_folder / "labelme").crowd
    assert (crowd.n_tasks, crowd.n_votes) == (known.n_tasks, known.n_votes)
    assert (crowd.vote_counts == known.vote_counts).all()
