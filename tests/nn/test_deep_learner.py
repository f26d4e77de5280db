"""What all networks that learn how workers err have in common: truth that is known, epochs, what is held out, and hidden."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from wisecrowd import CCC, CoNAL, CrowdAR, CrowdLayer, DoctorNet, load
from wisecrowd.base.registry import methods
from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.epoch_watchers import watch_epochs
from wisecrowd.nn.training_set import select_heldout_tasks
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


def test_hidden_votes_choose_the_number_of_epochs_and_all_votes_are_learnt(made: Simulation, X: pd.DataFrame) -> None:
    model = CrowdLayer(epochs="auto", hidden=16, learning_rate=0.01).fit(X, made.crowd)
    hidden = model.search_["hidden"].to_numpy()
    assert model.epochs_ == hidden.argmax() + 1 == len(model.history_)
    assert len(hidden) == min(500, model.epochs_ + 30)
    same = CrowdLayer(epochs=model.epochs_, hidden=16, learning_rate=0.01).fit(X, made.crowd)
    assert np.array_equal(same.posterior_, model.posterior_)


def test_a_search_for_epochs_goes_on_after_a_kill(made: Simulation, X: pd.DataFrame, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": "auto", "hidden": 16, "learning_rate": 0.01}
    whole = CrowdLayer(**settings).fit(X, made.crowd)
    for _ in range(2):
        again = CrowdLayer(checkpoint=str(tmp_path), **settings).fit(X, made.crowd)
        assert np.array_equal(again.posterior_, whole.posterior_)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", [name for name, kind in methods("learn").items() if issubclass(kind, DeepLearner)])
def test_every_network_can_search_for_epochs_or_says_why_not(made: Simulation, X: pd.DataFrame, name: str) -> None:
    kind: Any = methods("learn")[name]
    model = kind(epochs="auto", hidden=8, learning_rate=0.02, batch_size=128, schedule="constant")
    if not kind.predicts_votes:
        with pytest.raises(UsageError, match="give the number of epochs"):
            model.fit(X, made.crowd)
    else:
        assert model.fit(X, made.crowd).epochs_ >= 1


def test_votes_that_are_held_out_do_not_teach(made: Simulation, X: pd.DataFrame) -> None:
    model = CrowdLayer(validation=0.3, **QUICK).fit(X, made.crowd)
    assert model.history_["validation"].between(0, 1).all()
    held = select_heldout_tasks(made.crowd, None, 0.3, model.random_state)
    assert held.sum() == round(0.3 * 150)
    rest = made.crowd[np.flatnonzero(~held)]
    alone = CrowdLayer(**QUICK).fit(X, rest)
    np.testing.assert_allclose(alone.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_who_watches_sees_every_epoch_and_changes_nothing(made: Simulation, X: pd.DataFrame) -> None:
    rows, batch = X.to_numpy(), []
    with watch_epochs(lambda model: batch.append(model.classify(rows))):
        watched = CrowdLayer(**QUICK).fit(X, made.crowd)
    alone = CrowdLayer(**QUICK).fit(X, made.crowd)
    assert len(batch) == 6
    assert np.array_equal(batch[-1], alone.predict_proba(X))
    assert np.array_equal(watched.posterior_, alone.posterior_)


def ends_in_softmax(shape: tuple[int, ...], n_classes: int) -> Any:
    nn = import_torch().nn
    return nn.Sequential(nn.Linear(*shape, 8), nn.ReLU(), nn.Linear(8, n_classes), nn.Softmax(-1))


def test_a_network_ends_in_a_linear_layer_wherever_that_was_declared(made: Simulation, X: pd.DataFrame) -> None:
    nn = import_torch().nn

    class Backwards(nn.Module):  # type: ignore[misc,name-defined]  # torch is not imported here
        def __init__(self) -> None:
            super().__init__()
            self.out, self.inner, self.unused = nn.Linear(8, 3), nn.Linear(4, 8), nn.Linear(2, 2)

        def forward(self, rows: Any) -> Any:
            return self.out(self.inner(rows).relu())

    model = CrowdLayer(classifier=Backwards(), **QUICK).fit(X, made.crowd)
    assert model.network_.head.weight.shape == (3, 8)
    with pytest.raises(UsageError, match="must end in a linear layer"):
        CrowdLayer(classifier=ends_in_softmax, **QUICK).fit(X, made.crowd)


def test_frozen_layers_stay_as_they_are(made: Simulation, X: pd.DataFrame) -> None:
    torch = import_torch()
    body = torch.nn.Linear(4, 8).requires_grad_(False)
    net = torch.nn.Sequential(body, torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = CrowdLayer(classifier=net, **QUICK).fit(X, made.crowd)
    assert torch.equal(model.network_.trunk[0].weight, body.weight)
    assert not torch.equal(model.network_.head.weight, net[2].weight)


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
