from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.errors import UsageError
from wisecrowd.simulate import KINDS
from wisecrowd.simulate.spec import call_spec


def confusion_of(kind: str, n: int = 20, n_classes: int = 4) -> np.ndarray:
    return call_spec(KINDS, "worker kind", kind, np.random.default_rng(0), n, n_classes).confusion


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_every_kind_gives_distributions(kind: str, n_classes: int) -> None:
    confusion = confusion_of(kind, 5, n_classes)
    assert confusion.shape == (5, n_classes, n_classes)
    assert (confusion >= 0).all()
    assert np.allclose(confusion.sum(axis=2), 1)


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("expert", 0.9, 0.98), ("noisy", 0.55, 0.8), ("noisy(0.3, 0.4)", 0.3, 0.4)]
)
def test_accuracy_lies_where_it_should_and_varies(kind: str, low: float, high: float) -> None:
    right = confusion_of(kind, 500)[:, 0, 0]
    assert low <= right.min() < right.max() <= high
    assert np.ptp(right) > 0.9 * (high - low)


def test_one_number_is_meant_exactly() -> None:
    assert np.allclose(confusion_of("noisy(0.7)")[:, 1, 1], 0.7)
    assert np.allclose(confusion_of("noisy(0.7)")[:, 1, 0], 0.1)


def test_kinds_do_what_they_say() -> None:
    assert np.allclose(confusion_of("spammer"), 0.25)
    assert (confusion_of("one-button(2)")[:, :, 2] == 1).all()
    assert len({int(one.argmax()) for one in confusion_of("one-button")[:, 0]}) == 4
    adversary = confusion_of("adversary(0.9)")[0]
    assert np.allclose(np.diag(adversary), 0.1)
    assert np.allclose(adversary[[0, 1, 2, 3], [1, 2, 3, 0]], 0.9)
    biased = confusion_of("biased(0.5, 3)")
    assert (biased[:, :, 3] >= 0.5).all()
    mixer = confusion_of("mixer(0.6)")[0]
    assert np.allclose(mixer[[3, 3], [3, 0]], [0.6, 0.4])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("exprt", "Did you mean 'expert'"),
        ("noisy(70)", "accuracy of a worker must lie between 0 and 1; got 70"),
        ("noisy(0.8, 0.6)", "lower bound .* comes first"),
        ("adversary(2)", "malice"),
        ("biased(-1)", "pull"),
        ("copier(0)", "fidelity"),
        ("one-button(4)", "code from 0 to 3; got 4"),
        ("one-button(1.5)", "code from 0 to 3; got 1.5"),
        ("spammer(1)", "takes none"),
    ],
)
def test_bad_kinds(kind: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        confusion_of(kind)
