"""Kinds of worker: each a function that gives confusion matrices, and an entry in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.spec import check_fraction


class Behaviour(NamedTuple):
    """How some workers vote: by ``confusion`` (workers, true, said), after copying with probability ``fidelity``.

    In the second half of the time they vote by ``later``, if it is there.

    >>> Behaviour(np.eye(2)[None]).fidelity
    0.0
    """

    confusion: NDArray[np.float64]
    fidelity: float = 0.0
    later: NDArray[np.float64] | None = None


def build_symmetric_confusion(accuracy: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Matrices of workers who are right with one probability whatever is true, and err on all other classes alike.

    >>> build_symmetric_confusion(np.array([0.8]), 3).round(3).tolist()
    [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]]
    """
    right = np.eye(n_classes)
    wrong = (1 - right) / (n_classes - 1)
    return np.asarray(accuracy[:, None, None] * right + (1 - accuracy)[:, None, None] * wrong)


def make_expert(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Nearly always right: ``expert`` between 0.9 and 0.98, ``expert(0.95)`` exactly, ``expert(0.9, 1)`` between.

    >>> make_expert(np.random.default_rng(0), 1, 2, 0.95).confusion.round(2).tolist()
    [[[0.95, 0.05], [0.05, 0.95]]]
    """
    return Behaviour(build_symmetric_confusion(_between(rng, n, (0.9, 0.98), accuracy, up_to), n_classes))


def make_noisy(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Often right: ``noisy`` between 0.55 and 0.8, ``noisy(0.7)`` exactly, ``noisy(0.6, 0.9)`` between.

    >>> make_noisy(np.random.default_rng(0), 1, 2, 0.75).confusion.tolist()
    [[[0.75, 0.25], [0.25, 0.75]]]
    """
    return Behaviour(build_symmetric_confusion(_between(rng, n, (0.55, 0.8), accuracy, up_to), n_classes))


def make_spammer(rng: np.random.Generator, n: int, n_classes: int) -> Behaviour:  # noqa: ARG001  # one signature for all
    """Answers at random, without looking.

    >>> make_spammer(np.random.default_rng(0), 1, 2).confusion.tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    return Behaviour(np.full((n, n_classes, n_classes), 1 / n_classes))


def make_one_button(rng: np.random.Generator, n: int, n_classes: int, button: float | None = None) -> Behaviour:
    """Always gives the same answer: ``one-button`` a class drawn for each worker, ``one-button(0)`` the class of code 0.

    >>> make_one_button(np.random.default_rng(0), 1, 2, 0).confusion.tolist()
    [[[1.0, 0.0], [1.0, 0.0]]]
    """
    favourite = _favourites(rng, n, n_classes, button)
    return Behaviour(np.repeat(np.eye(n_classes)[favourite][:, None, :], n_classes, axis=1))


def make_biased(
    rng: np.random.Generator, n: int, n_classes: int, pull: float = 0.4, button: float | None = None
) -> Behaviour:
    """A noisy worker who gives one favourite class instead with probability ``pull``.

    >>> make_biased(np.random.default_rng(0), 1, 2, 1, 1).confusion.tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """
    check_fraction("the pull of a biased worker", pull)
    seen = make_noisy(rng, n, n_classes).confusion
    return Behaviour((1 - pull) * seen + pull * make_one_button(rng, n, n_classes, button).confusion)


def make_mixer(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Takes each class for the next one when wrong (the last for the first), as accurate as a noisy worker.

    >>> make_mixer(np.random.default_rng(0), 1, 3, 0.75).confusion.tolist()
    [[[0.75, 0.25, 0.0], [0.0, 0.75, 0.25], [0.25, 0.0, 0.75]]]
    """
    right = _between(rng, n, (0.55, 0.8), accuracy, up_to)[:, None, None]
    return Behaviour(right * np.eye(n_classes) + (1 - right) * _shift(n_classes))


def make_adversary(rng: np.random.Generator, n: int, n_classes: int, malice: float = 0.8) -> Behaviour:  # noqa: ARG001
    """Knows the truth and says the next class instead with probability ``malice``.

    >>> make_adversary(np.random.default_rng(0), 1, 2, 0.75).confusion.tolist()
    [[[0.25, 0.75], [0.75, 0.25]]]
    """
    check_fraction("the malice of an adversary", malice)
    one = (1 - malice) * np.eye(n_classes) + malice * _shift(n_classes)
    return Behaviour(np.repeat(one[None], n, axis=0))


def make_copier(rng: np.random.Generator, n: int, n_classes: int, fidelity: float = 0.9) -> Behaviour:
    """Goes where another worker has been and repeats his answer with probability ``fidelity``; else votes as if noisy.

    >>> make_copier(np.random.default_rng(0), 1, 2, 0.9).fidelity
    0.9
    """
    if not 0 < fidelity <= 1:
        raise UsageError(f"the fidelity of a copier must be above 0 and at most 1; got {fidelity}")
    return Behaviour(make_noisy(rng, n, n_classes).confusion, fidelity)


def make_drifter(
    rng: np.random.Generator, n: int, n_classes: int, before: float | None = None, after: float | None = None
) -> Behaviour:
    """Begins well and tires: right between 0.8 and 0.95 of the time at first, then between chance and halfway there.

    ``drifter(0.9, 0.4)`` says how often. The votes of a crowd with drifters have times, and all change in the middle of them.

    >>> make_drifter(np.random.default_rng(0), 1, 2, 0.9, 0.5).later.tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    first = _between(rng, n, (0.8, 0.95), before, before)
    chance = 1 / n_classes
    then = _between(rng, n, (chance, (chance + 0.8) / 2), after, after)
    return Behaviour(build_symmetric_confusion(first, n_classes), later=build_symmetric_confusion(then, n_classes))


#: Kinds by name; a new one is a function (rng, how many, n_classes, numbers…) and an entry here.
KINDS: dict[str, Callable[..., Behaviour]] = {
    "expert": make_expert,
    "noisy": make_noisy,
    "spammer": make_spammer,
    "one-button": make_one_button,
    "biased": make_biased,
    "mixer": make_mixer,
    "adversary": make_adversary,
    "copier": make_copier,
    "drifter": make_drifter,
}


def _between(
    rng: np.random.Generator, n: int, usual: tuple[float, float], accuracy: float | None, up_to: float | None
) -> NDArray[np.float64]:
    low, high = usual if accuracy is None else (accuracy, accuracy if up_to is None else up_to)
    check_fraction("the accuracy of a worker", low)
    check_fraction("the accuracy of a worker", high)
    if low > high:
        raise UsageError(
            f"the accuracy of a worker lies between a low and a high number, in this order; got {low}, {high}"
        )
    return low + (high - low) * rng.random(n)


def _favourites(rng: np.random.Generator, n: int, n_classes: int, button: float | None) -> NDArray[np.int64]:
    if button is None:
        return rng.integers(n_classes, size=n)
    if button not in range(n_classes):
        raise UsageError(f"the favourite class is a code from 0 to {n_classes - 1}; got {button:g}")
    return np.full(n, int(button))


def _shift(n_classes: int) -> NDArray[np.float64]:
    return np.roll(np.eye(n_classes), 1, axis=1)
