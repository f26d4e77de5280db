"""Shared parts of deep learners: gold, epochs, held-out tasks and hidden votes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CCC, CoNAL, CrowdAR, CrowdLayer, DoctorNet, load
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.simulate import Simulation

QUICK: dict[str, Any] = {"epochs": 6, "hidden": 16}


def test_known_truth_teaches(made: Simulation, X: pd.DataFrame) -> None:
    """Truth that contradicts the votes is believed, and tells that their workers are wrong."""
    wrong = made.truth.map(dict(zip(made.crowd.classes, [*made.crowd.classes[1:], made.crowd.classes[0]], strict=True)))
    settings: dict[str, Any] = {"epochs": 60, "hidden": 32}
    model = CrowdLayer(**settings).fit(X, made.crowd, truth=wrong)
    assert model.score(X, wrong) > 0.8
    assert model.score(X, made.truth) < 0.15
    assert (model.labels_ == wrong).all()


def case(kind: type[DeepLearner], **settings: Any) -> Any:
    """A case of a test: a method with its settings."""
    return pytest.param(kind, settings, id="-".join(map(str, [kind.__name__, *settings.values()])))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        case(CoNAL, learning_rate=1e-3),
        case(CrowdAR, learning_rate=0.01),
        case(DoctorNet, variant="DN", learning_rate=0.01),
        case(DoctorNet, variant="IWDN", learning_rate=0.01),
    ],
)
def test_predicts_workers_and_beats_the_votes(
    kind: type[DeepLearner], settings: dict[str, Any], made: Simulation, X: pd.DataFrame
) -> None:
    fitted = kind(hidden=32, epochs=60, **settings).fit(X, made.crowd)
    found = fitted.predict_worker_proba(X.iloc[:5], [*made.crowd.workers[:3], "stranger"])
    assert found.shape == (5, 4, 3)
    np.testing.assert_allclose(found.sum(axis=2), 1, atol=1e-5)
    votes = (made.crowd.classes[made.crowd.label] == made.truth.to_numpy()[made.crowd.task]).mean()
    assert fitted.score(X, made.truth) > votes + 0.05


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        case(CoNAL, hidden=16),
        case(CrowdAR, hidden=16, learning_rate=0.01),
        case(DoctorNet, variant="DN", hidden=8, learning_rate=0.01),
        case(DoctorNet, variant="WDN", hidden=8, learning_rate=0.01),
    ],
)
def test_truth_that_is_given_teaches(
    kind: type[DeepLearner], settings: dict[str, Any], made: Simulation, X: pd.DataFrame
) -> None:
    gold = made.truth.iloc[:100]
    told, untold = (
        kind(precision="double", epochs=30, **settings).fit(X, made.crowd, truth=truth) for truth in (gold, None)
    )
    assert told.score(X.loc[gold.index], gold) > untold.score(X.loc[gold.index], gold)


@pytest.mark.parametrize(
    ("learnt", "model"),
    [
        (("common_", "gate_"), CoNAL(separation=0.5, embedding=3, hidden=16, epochs=3)),
        (("expertise_", "reliability_"), CrowdAR(warm_up=2, hidden=16, epochs=8, learning_rate=0.01)),
    ],
    ids=["conal", "crowd-ar"],
)
def test_what_a_method_adds_comes_back_from_disk(
    learnt: tuple[str, ...], model: DeepLearner, made: Simulation, X: pd.DataFrame, tmp_path: Path
) -> None:
    model.fit(X, made.crowd)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, type(model))
    for name in learnt:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))


def test_functions_of_one_name_have_checkpoints_of_their_make_worker_parameters(
    made: Simulation, X: pd.DataFrame, tmp_path: Path
) -> None:
    nn = import_torch().nn

    def made_with(activation: Any) -> Any:
        return lambda shape, k: nn.Sequential(nn.Linear(*shape, 8), activation, nn.Linear(8, k))

    for activation in (nn.Tanh(), nn.ReLU()):
        choice = made_with(activation)
        kept = CrowdLayer(classifier=choice, checkpoint=str(tmp_path), **QUICK).fit(X, made.crowd)
        alone = CrowdLayer(classifier=choice, **QUICK).fit(X, made.crowd)
        assert np.array_equal(kept.posterior_, alone.posterior_)
    with pytest.raises(UsageError, match="is a file"):
        CrowdLayer(checkpoint=str(next(tmp_path.iterdir())), **QUICK).fit(X, made.crowd)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"validation": 1.0}, "validation must be a share"),
        ({"validation": 0.001}, "holds out none or all of them"),
        ({"keep": "selected"}, "validation=0.1"),
        ({"keep": "first"}, "keep must be"),
        ({"epochs": 0}, "epochs must be a whole number from 1"),
        ({"epochs": "auto", "schedule": "cosine"}, "schedule='constant'"),
        ({"dropout": 1.0}, "dropout"),
        ({"l2": -1.0}, "l2"),
        ({"precision": "half"}, "precision"),
        ({"epochs": "5"}, "epochs must be a whole number"),
        ({"batch_size": 0}, "batch_size must be 1 or more"),
        ({"l2": float("nan")}, "l2"),
        ({"optimiser": "lazyadam"}, "optimiser must be"),
    ],
)
def test_settings_are_checked(made: Simulation, X: pd.DataFrame, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CrowdLayer(**settings).fit(X, made.crowd)


def test_ccc_says_that_hidden_votes_cannot_choose_for_it(made: Simulation, X: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="CCC"):
        CCC(epochs="auto").fit(X, made.crowd)
    assert "epochs" in {each.name for each in dataclasses.fields(CCC)}


def test_calibration_flattens_an_overtrained_network(made: Simulation, X: pd.DataFrame, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 80, "hidden": 32, "dropout": 0.0, "l2": 0.0, "learning_rate": 0.01}
    model = CrowdLayer(calibration=0.3, checkpoint=str(tmp_path / "checkpoints"), **settings).fit(X, made.crowd)
    plain = CrowdLayer(**settings).fit(X, made.crowd)
    assert model.prediction_sharpness_ < 0.9
    np.testing.assert_allclose(model.posterior_, plain.posterior_, atol=1e-6)
    assert model.predict_proba(X).max(axis=1).mean() < plain.predict_proba(X).max(axis=1).mean()
    model.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").predict_proba(X), model.predict_proba(X), atol=1e-6)
