"""Saved methods."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import DawidSkene, MajorityVote
from wisecrowd.base.persistence import load
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


def test_saving_twice_replaces(tmp_path: Path) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    fitted = DawidSkene(prior=np.array([0.3, 0.7])).fit(CROWD)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, DawidSkene)
    assert again.prior.tolist() == [0.3, 0.7]
    assert again.restarts_.equals(fitted.restarts_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="exists and is not a saved method"):
        MajorityVote().fit(CROWD).save(tmp_path)
    with pytest.raises(UsageError, match="exists and is not a saved method"):
        MajorityVote().fit(CROWD).save(tmp_path / "thesis.txt")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no method\.json"):
        load(tmp_path)
    (tmp_path / "method.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(InputError, match="layout 99"):
        load(tmp_path)


def test_models_hold_no_pickle(tmp_path: Path) -> None:
    DawidSkene().fit(CROWD).save(tmp_path / "model")
    with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
