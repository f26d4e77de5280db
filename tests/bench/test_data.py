from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Crowd
from wisecrowd.bench.data import SimulatedDataset, StoredDataset, get_classification_data
from wisecrowd.errors import InputError
from wisecrowd.io.dataset_folder import write_dataset

VOTES = [("t1", "ann", "1"), ("t1", "bob", "1"), ("t2", "ann", "0"), ("t3", "bob", "1")]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_dataset(tmp_path / "pets", Crowd.from_triples(VOTES), truth=pd.Series({"t1": "1", "t2": "0", "t3": "0"}))
    write_dataset(tmp_path / "untold", Crowd.from_triples(VOTES))
    monkeypatch.setenv("WISECROWD_DATA", str(tmp_path))
    return tmp_path


def test_a_stored_dataset_is_scored(stored: Path) -> None:  # noqa: ARG001
    data = StoredDataset("pets", "keep", positive="1")
    dataset = data.load(0)
    figures = data.score(dataset, pd.Series({"t1": "1", "t2": "0", "t3": "1"}))
    assert figures["accuracy"] == pytest.approx(2 / 3)
    assert figures["positive_f1"] == pytest.approx(2 * 1 / (1 + 2))  # one of the two chosen, and the one there is
    assert (data.size(), data.absence()) == (4, None)


def test_without_truth_nothing_can_be_scored(stored: Path) -> None:  # noqa: ARG001
    with pytest.raises(InputError, match="no truth"):
        StoredDataset("untold", "keep").load(0)


def test_without_features_no_classifier_can_be_scored(stored: Path) -> None:  # noqa: ARG001
    with pytest.raises(InputError, match="pets has no features, no splits"):
        get_classification_data(StoredDataset("pets", "keep").load(0))


def test_identity_follows_the_files(stored: Path) -> None:
    before = StoredDataset("pets", "keep").identity()
    assert StoredDataset("pets", "distinct").identity() != before
    other = stored / "other"
    write_dataset(other / "pets", Crowd.from_triples(VOTES[:3]), truth=pd.Series({"t1": "1"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WISECROWD_DATA", str(other))
        assert StoredDataset("pets", "keep").identity() != before


def test_identity_follows_the_features(stored: Path) -> None:
    before = StoredDataset("pets", "keep").identity()
    np.savez(stored / "pets" / "features.npz", X=np.zeros((2, 3)))
    assert StoredDataset("pets", "keep").identity() != before


def test_seeds_make_other_crowds_of_the_same_kind() -> None:
    data = SimulatedDataset({"n_tasks": 40, "votes_per_task": 2})
    first, again, other = data.load(0), data.load(0), data.load(1)
    assert first.crowd.digest == again.crowd.digest != other.crowd.digest
    assert data.size() == first.crowd.n_votes == 80
