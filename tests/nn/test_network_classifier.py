from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import TwoStage, simulate_crowd
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.nn.network_classifier import NetworkClassifier

torch = pytest.importorskip("torch")


def blobs(n_rows: int = 120, n_classes: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features around one corner per class, the truth, and targets that are right at 80 %."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_rows)
    X = 2.0 * np.eye(n_classes)[truth] + rng.normal(size=(n_rows, n_classes))
    targets = np.full((n_rows, n_classes), 0.2 / (n_classes - 1))
    targets[np.arange(n_rows), truth] = 0.8
    return X, truth, targets


def images(n_rows: int = 60, seed: int = 0) -> tuple[Any, Any]:
    """Colour images (height x width x channels) of 12 x 10 that are bright above or below."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_rows)
    X = rng.normal(size=(n_rows, 12, 10, 3))
    X[truth == 0, :6] += 2
    X[truth == 1, 6:] += 2
    return 50 + 10 * X, np.eye(2)[truth]


def own(shape: tuple[int, ...], n_classes: int) -> Any:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), n_classes))


CHOICES = ["linear", "mlp", own, torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))]


@pytest.mark.parametrize("choice", CHOICES, ids=["linear", "mlp", "function", "module"])
def test_every_choice_learns_from_soft_targets(choice: Any) -> None:
    X, truth, targets = blobs()
    model = make_classifier(choice, l2=1.0, random_state=0)
    assert isinstance(model, NetworkClassifier)
    model = NetworkClassifier(choice, epochs=60, learning_rate=0.01).fit(X, targets)
    found = model.predict_proba(X)
    assert found.shape == (120, 3)
    assert found.sum(axis=1) == pytest.approx(1)
    assert (found.argmax(axis=1) == truth).mean() > 0.8
    assert found.max() < 0.97  # targets of 0.8 do not teach certainty
    assert model.predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize("weight", [None, "uneven"])
def test_a_linear_network_is_logistic_regression(weight: Any) -> None:
    X, _, targets = blobs()
    weight = weight and np.random.default_rng(1).uniform(0, 3, size=len(X))
    exact = Logistic(l2=4.0).fit(X, targets, weight)
    settings: dict[str, Any] = {"epochs": 400, "learning_rate": 0.05, "schedule": "cosine", "batch_size": 120}
    network = NetworkClassifier("linear", l2=4.0, **settings).fit(X, targets, weight)
    assert network.predict_proba(X) == pytest.approx(exact.predict_proba(X), abs=2e-3)
    assert network.log_prior() == pytest.approx(exact.log_prior(), rel=0.02)


def test_same_seed_same_bits_and_nobody_else_s_chance() -> None:
    X, _, targets = blobs()

    def fit(seed: int) -> bytes:
        network = NetworkClassifier("mlp", epochs=3, random_state=seed).fit(X, targets)
        return network.fit(X, targets[::-1]).predict_proba(X).tobytes()

    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first = fit(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    torch.rand(3)
    assert fit(1) == first
    assert fit(2) != first


def test_a_later_fit_goes_on_with_the_moments_of_the_optimiser() -> None:
    X, _, targets = blobs()
    parts = NetworkClassifier("mlp", epochs=2, epochs_per_fit=3).fit(X, targets).fit(X, targets)
    whole = NetworkClassifier("mlp", epochs=5).fit(X, targets)
    assert len(parts.history) == 5
    assert parts.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()


def test_few_rows_are_gone_through_more_often() -> None:
    X, _, targets = blobs()
    assert len(NetworkClassifier("mlp").fit(X, targets).history) == 150  # two batches each
    assert len(NetworkClassifier("mlp", batch_size=4).fit(X, targets).history) == 20
    assert len(NetworkClassifier("mlp", epochs=3).fit(X, targets).history) == 3


def test_fresh_knows_the_settings_and_nothing_else() -> None:
    X, _, targets = blobs()
    fitted = NetworkClassifier("mlp", epochs=2, hidden=7).fit(X, targets)
    fresh = fitted.clone_unfitted()
    assert (fresh.hidden, fresh.trainer, fresh.standardiser.mean) == (7, None, None)
    assert fresh.fit(X, targets).predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    with pytest.raises(UsageError, match="not fitted"):
        fitted.clone_unfitted().predict_proba(X)


@pytest.mark.parametrize("choice", CHOICES, ids=["linear", "mlp", "function", "module"])
def test_arrays_are_enough_to_predict_and_the_state_to_go_on(choice: Any) -> None:
    X, _, targets = blobs()
    network = NetworkClassifier(choice, epochs=3, l2=1.0).fit(X, targets)
    assert all(isinstance(array, np.ndarray) for array in network.arrays().values())
    assert not any(name.startswith("moment") for name in network.arrays())
    restored = network.clone_unfitted().restore(network.arrays())
    assert restored.predict_proba(X).tobytes() == network.predict_proba(X).tobytes()
    state = {name: array.copy() for name, array in network.state().items()}
    gone_on = network.fit(X, targets[::-1]).predict_proba(X).tobytes()
    assert network.clone_unfitted().restore(state).fit(X, targets[::-1]).predict_proba(X).tobytes() == gone_on


def test_copies_and_pickles_go_on_alike() -> None:
    X, _, targets = blobs()
    network = NetworkClassifier("mlp", epochs=2).fit(X, targets)
    copies = [copy.deepcopy(network), pickle.loads(pickle.dumps(network))]
    wanted = network.fit(X, targets).predict_proba(X).tobytes()
    assert [each.fit(X, targets).predict_proba(X).tobytes() for each in copies] == [wanted] * 2


# ---------------------------------------------------------------------- architectures


def test_a_module_is_an_architecture_and_stays_as_it_was() -> None:
    X, _, targets = blobs()
    module = torch.nn.Linear(3, 3)
    torch.nn.init.constant_(module.weight, 100.0)
    first = NetworkClassifier(module, epochs=0).fit(X, targets)
    assert first.module.weight.abs().max() < 1  # initialised again
    NetworkClassifier(module, epochs=2).fit(X, targets)
    assert torch.all(module.weight == 100)
    kept = NetworkClassifier(lambda shape, n_classes: module, epochs=0).fit(X, targets)
    assert torch.all(kept.module.weight == 100)
    assert kept.module is not module


def test_a_function_is_told_shape_and_classes() -> None:
    told: list[Any] = []

    def make(shape: Any, n_classes: Any) -> Any:
        told.append((shape, n_classes))
        return own(shape, n_classes)

    X, targets = images()
    NetworkClassifier(make, epochs=1).fit(np.moveaxis(X, 3, 1), targets)
    assert told == [((3, 12, 10), 2)]


def test_images_in_any_layout_are_one_to_the_cnn() -> None:
    X, targets = images()
    model = NetworkClassifier("cnn", epochs=8, batch_size=8, hidden=16).fit(X, targets)
    found = model.predict_proba(X)
    assert (found.argmax(axis=1) == targets.argmax(axis=1)).mean() > 0.9
    assert model.standardiser.mean is not None
    assert model.standardiser.mean.shape == (3,)  # by channel
    other = NetworkClassifier("cnn", epochs=8, batch_size=8, hidden=16).fit(np.moveaxis(X, 3, 1), targets)
    assert other.predict_proba(np.moveaxis(X, 3, 1)) == pytest.approx(found, abs=1e-3)
    restored = model.clone_unfitted().restore(model.arrays())  # with the running means of its norms
    assert restored.predict_proba(X).tobytes() == found.tobytes()


@pytest.mark.parametrize("shape", [(5, 5), (1, 3, 2), (64, 40), (3, 9, 33)])
def test_images_of_any_size(shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).normal(size=(4, *shape))
    found = NetworkClassifier("cnn", epochs=1, hidden=4).fit(X, np.eye(2)[[0, 1, 0, 1]]).predict_proba(X)
    assert np.isfinite(found).all()


def test_one_row_is_enough_to_fit() -> None:
    assert np.isfinite(
        NetworkClassifier("mlp").fit(np.ones((1, 2)), np.array([[0.4, 0.6]])).predict_proba(np.zeros((1, 2)))
    ).all()


def test_features_are_standardised_unless_told_otherwise() -> None:
    X, _, targets = blobs()
    scaled = 1000 + X * [1e-3, 1.0, 1e3]
    near = NetworkClassifier("linear", epochs=20).fit(X, targets).predict_proba(X)
    assert NetworkClassifier("linear", epochs=20).fit(scaled, targets).predict_proba(scaled) == pytest.approx(
        near, abs=1e-4
    )
    raw = NetworkClassifier("linear", epochs=20, standardise=False).fit(X, targets)
    assert raw.standardiser.mean is None
    assert raw.clone_unfitted().restore(raw.arrays()).predict_proba(X).tobytes() == raw.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("perceptron", "unknown network 'perceptron'"),
        (7, "unknown network 7"),
        (lambda shape, n_classes: "no module", "must return a torch module"),
        (torch.nn.Linear(2, 3), "cannot process rows of shape"),
        (torch.nn.Linear(3, 5), "one logit per class"),
    ],
)
def test_a_network_that_does_not_fit_is_an_error_that_says_so(choice: Any, says: str) -> None:
    X, _, targets = blobs()
    with pytest.raises(UsageError, match=says):
        NetworkClassifier(choice).fit(X, targets)


def test_bad_settings_and_rows_that_are_no_images() -> None:
    X, _, targets = blobs()
    with pytest.raises(InputError, match="needs images"):
        NetworkClassifier("cnn").fit(X, targets)
    for wrong in ({"dropout": 1.0}, {"hidden": 0}, {"l2": -1.0}, {"epochs_per_fit": -1}):
        with pytest.raises(UsageError, match="hidden must be"):
            NetworkClassifier("mlp", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="learning_rate"):
        NetworkClassifier("mlp", learning_rate=0.0).fit(X, targets)


def test_without_torch_the_message_is_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, targets = blobs()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[learn\]"):
        NetworkClassifier("mlp").fit(X, targets)


# ---------------------------------------------------------------------- with learners


def test_a_network_in_the_second_stage(tmp_path: Path) -> None:
    made = simulate_crowd(n_tasks=300, n_workers=10, n_classes=3, votes_per_task=3)
    codes = made.crowd.classes.get_indexer(made.truth.reindex(made.crowd.tasks))
    X = 3 * np.eye(3)[codes] + np.random.default_rng(0).normal(size=(300, 3))
    import pandas as pd

    import wisecrowd

    frame = pd.DataFrame(X, index=made.crowd.tasks)
    model = TwoStage(aggregator="majority-vote", classifier="mlp").fit(frame, made.crowd)
    assert model.score(frame, made.truth) > 0.9
    model.save(tmp_path / "model")
    loaded: Any = wisecrowd.load(tmp_path / "model")
    assert loaded.predict_proba(frame).tobytes() == model.predict_proba(frame).tobytes()


def test_a_first_fit_with_a_checkpoint_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, targets = blobs()
    plain = NetworkClassifier("mlp", epochs=4).fit(X, targets).predict_proba(X).tobytes()
    network = NetworkClassifier("mlp", epochs=4, checkpoint=str(tmp_path))
    kept = network.fit(X, targets)
    assert kept.predict_proba(X).tobytes() == plain
    kept.fit(X, targets)  # goes on, and leaves the file of the first fit alone
    assert len(list(tmp_path.iterdir())) == 1
    network.clone_unfitted().fit(X, targets[::-1])  # other targets, another file
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr("wisecrowd.nn.trainer.Trainer._run_epoch", None)  # nothing is left to train
    assert network.clone_unfitted().fit(X, targets).predict_proba(X).tobytes() == plain
