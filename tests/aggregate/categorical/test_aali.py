"""AALI: its three stages one by one, what it does where they fail, and real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from wisecrowd import AALI, Crowd, MajorityVote, load_dataset
from wisecrowd.aggregate.categorical.aali import _compute_vote_features, _find_reliable_tasks
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy


def votes_of(*label_probs: str) -> Crowd:
    """A task for each word, whose letters are its votes."""
    rows = [(task, worker, label) for task, word in enumerate(label_probs) for worker, label in enumerate(word)]
    return Crowd.from_triples(rows, tasks=range(len(label_probs)))


def test_what_votes_add_to_features() -> None:
    found = _compute_vote_features(np.array([[0.5, 0.5, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.6, 0.4, 0]]))
    np.testing.assert_allclose(found[:, :3].sum(axis=1), 1)
    np.testing.assert_allclose(found[:, 3], [np.log(2) / np.log(3), 0, 1, 0.6730116670092565 / np.log(3)], atol=1e-12)
    np.testing.assert_allclose(found[:, 4], [0, 1, 0, 0.2], atol=1e-12)
    assert _compute_vote_features(np.ones((2, 1))).tolist() == [[1, 0, 1]] * 2


def test_find_reliable_tasks_is_what_is_as_find_reliable_tasks_as_usual_for_the_class() -> None:
    shares = np.array([[1, 0], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5]])
    clear, winner = _find_reliable_tasks(shares, np.array([True] * 5 + [False]))
    assert clear.tolist() == [True, True, False, True, False, False]
    assert winner[:4].tolist() == [0, 0, 0, 1]
    thirds = np.full((30, 2), [0.1 + 0.2 + 0.4, 0.3])
    assert _find_reliable_tasks(thirds, np.ones(30, dtype=bool))[0].all()


def test_classifiers_correct_votes(clustered: Any) -> None:
    crowd, X, truth = clustered()
    votes = accuracy(truth, MajorityVote().fit(crowd))
    found = AALI().fit(crowd, X)
    assert accuracy(truth, found) > votes + 0.05
    assert 0.2 < found.reliable_.mean() < 0.9
    right = MajorityVote().fit(crowd).labels_ == truth
    assert right[found.reliable_].mean() > right[~found.reliable_].mean()
    assert accuracy(truth, AALI(classifier=LogisticRegression()).fit(crowd, X)) > votes + 0.05
    assert accuracy(truth, AALI(classifier="tree").fit(crowd, X)) > votes - 0.1


def test_tasks_without_votes_are_told_by_their_features(clustered: Any) -> None:
    crowd, X, truth = clustered()
    hidden = crowd.tasks[::4]
    frame = crowd.to_frame()
    fewer = Crowd.from_frame(frame[~frame["task"].isin(hidden)], tasks=crowd.tasks, classes=crowd.classes)
    found = AALI().fit(fewer, X)
    assert accuracy(truth[hidden], found) > 0.9
    assert not found.reliable_[::4].any()


def test_truth_is_kept_and_teaches() -> None:
    X = pd.DataFrame({"x": [0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3, 1.15]})
    crowd = Crowd.from_triples([(task, "ann", "a") for task in range(8)], tasks=X.index, classes=["a", "b"])
    assert AALI().fit(crowd, X).labels_.tolist() == ["a"] * 9
    found = AALI().fit(crowd, X, truth=dict.fromkeys([4, 5, 6, 7], "b"))
    assert found.posterior_[4:8].tolist() == [[0, 1]] * 4
    assert found.labels_[8] == "b"
    unseen = AALI().fit(crowd, X, truth={8: "b"})  # of a task that nobody voted on
    assert unseen.posterior_[8].tolist() == [0, 1]


class TestWhereStagesFail:
    X = pd.DataFrame({"x": [0.0, 0.1, 0.9, 1.0]})

    def test_all_tied(self) -> None:
        crowd = votes_of("ab", "ab", "ab", "ab")
        assert AALI().fit(crowd, self.X).posterior_.tolist() == [[0.5, 0.5]] * 4

    def test_one_class_only(self) -> None:
        crowd = Crowd.from_triples([(0, "ann", "a"), (1, "ann", "a"), (2, "bob", "a")], tasks=range(4))
        assert AALI().fit(crowd, self.X).posterior_.tolist() == [[1]] * 4

    def test_one_find_reliable_tasks_class_leaves_votes_alone_and_answers_for_the_rest(self) -> None:
        crowd = Crowd.from_triples([(0, 1, "a"), (1, 1, "a"), (2, 1, "a"), (2, 2, "b")], tasks=range(4))
        assert AALI().fit(crowd, self.X).posterior_.tolist() == [[1, 0], [1, 0], [0.5, 0.5], [1, 0]]

    @pytest.mark.parametrize("classifier", ["naive-bayes", "tree", LogisticRegression()])
    def test_fewer_find_reliable_tasks_tasks_than_folds(self, classifier: Any) -> None:
        found = AALI(classifier=classifier).fit(votes_of("aa", "aa", "bb", "bb"), self.X)
        np.testing.assert_allclose(found.posterior_.sum(axis=1), 1)
        assert found.labels_.tolist() == ["a", "a", "b", "b"]

    def test_a_class_with_a_single_find_reliable_tasks_task(self) -> None:
        found = AALI().fit(votes_of("aa", "aa", "bb", "ab"), self.X)  # one of three components has never heard of b
        assert found.posterior_[2, 1] == pytest.approx(2 / 3, abs=0.01)
        assert found.labels_.tolist() == ["a", "a", "b", "b"]

    def test_a_class_that_never_wins_find_reliable_tasksly(self) -> None:
        X = pd.DataFrame({"x": np.linspace(0, 1, 8)})
        found = AALI().fit(votes_of("aa", "aa", "aa", "bb", "bb", "bb", "bc", "bc"), X)
        assert not found.posterior_[:, 2].any()
        np.testing.assert_allclose(found.posterior_.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds must be 2 or more"),
        ({"classifier": "forest"}, "classifier must be one of"),
        ({"classifier": 3}, "a scikit-learn classifier with predict_proba"),
    ],
)
def test_parameters_that_make_no_sense(options: dict[str, Any], message: str, clustered: Any) -> None:
    crowd, X, _ = clustered(30)
    with pytest.raises(UsageError, match=message):
        AALI(**options).fit(crowd, X)


def test_it_starts_from_votes_and_features(clustered: Any) -> None:
    crowd, X, _ = clustered(30)
    with pytest.raises(UsageError, match="AALI starts from the votes"):
        AALI().fit(crowd, X, start=MajorityVote().fit(crowd))
    with pytest.raises(UsageError, match="AALI uses the features"):
        AALI().fit(crowd)


# No figure of the paper could be read; these say that the method stays what it is.
@pytest.mark.data
@pytest.mark.parametrize(("name", "wanted"), [("leaves", 0.7266), ("labelme", 0.811), ("music_genre_ceka", 0.7086)])
def test_real_crowds(name: str, wanted: float, data_folder: Path) -> None:
    data = load_dataset(data_folder / name)
    found = accuracy(data.truth, AALI().fit(data.crowd, data.features))
    assert found == pytest.approx(wanted, abs=0.01)
    assert found > accuracy(data.truth, MajorityVote().fit(data.crowd))
