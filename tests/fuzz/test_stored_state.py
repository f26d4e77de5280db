"""Stored state, damaged or made by a stranger: a short seeded run, and valid state behind the mutations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz import runner, stored_state
from tests.fuzz.runner import Target

#: Methods and targets that import torch.
NEED_TORCH = ("network", "crowd-layer", "two-stage", "raykar", "cmm")
#: Targets that do not, so that the run is short.
QUICK = [target for target in stored_state.TARGETS if not any(name in target.name for name in NEED_TORCH)]
#: Methods, of which those that import torch are not in the fast tier.
METHODS = [pytest.param(name, marks=[pytest.mark.torch] if name in NEED_TORCH else []) for name in stored_state.METHODS]
#: Cases of a target. ``python -m tests.fuzz.stored_state --count 2000`` runs all targets in processes with limits.
CASES = 8


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_valid_models_are_used(name: str, tmp_path: Path) -> None:
    """A model that is refused before it is changed would test nothing but that refusal."""
    for file, content in stored_state._model_files(name).items():
        (tmp_path / "state" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "state" / file).write_bytes(content)
    stored_state.use_model(name, tmp_path)
    assert len(stored_state._supported_uses(name)) >= 5


@pytest.mark.parametrize("kind", ["plain", "weighted", "counts"])
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_valid_shards_are_used(kind: str, tmp_path: Path) -> None:
    for file, content in stored_state._shard_files(kind).items():
        (tmp_path / "state" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "state" / file).write_bytes(content)
    stored_state.use_shards(tmp_path)


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_changed_state_is_refused_or_gives_results(target: Target, tmp_path: Path) -> None:
    outcomes = []
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        outcomes.append(runner.run_case(target, folder, 1, case))
    assert [outcome for outcome in outcomes if outcome.is_bad] == []
    assert any(outcome.kind == runner.REFUSED for outcome in outcomes)


def test_sealed_shards_have_the_digests_of_their_contents(tmp_path: Path) -> None:
    for file, content in stored_state._shard_files("plain").items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(content)
    before = (tmp_path / "crowd.json").read_text()
    stored_state.seal_shards(tmp_path)
    assert json.loads((tmp_path / "crowd.json").read_text()) == json.loads(before)


def test_arrays_change_in_type_shape_and_numbers() -> None:
    rng, array = np.random.default_rng(0), np.arange(6.0).reshape(2, 3)
    changed = [stored_state.change_array(array, rng) for _ in range(200)]
    assert {other.dtype.kind for other in changed} >= set("fiubUSO")
    assert len({other.shape for other in changed}) > 8
    assert any(other.dtype.kind == "f" and not np.isfinite(other).all() for other in changed)
