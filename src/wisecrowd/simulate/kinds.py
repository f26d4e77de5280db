"""Kinds of simulated workers.

Each kind is a function that makes confusion matrices, and an entry in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.errors import UsageError
from wisecrowd.simulate.spec import check_fraction

#: Range of the accuracy of an expert.
EXPERT_ACCURACY = (0.9, 0.98)
#: Range of the accuracy of a noisy worker.
NOISY_ACCURACY = (0.55, 0.8)
#: Range of the accuracy of a drifter in the first half of the time.
FRESH_ACCURACY = (0.8, 0.95)


class Behaviour(NamedTuple):
    """Behaviour of some workers.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Probability of each label, by worker and true class.
    fidelity : float, default=0.0
        Probability with which the workers repeat the label of a source; zero for independent workers.
    later_confusion : ndarray of shape (n_workers, n_classes, n_classes), default=None
        Confusion matrices in the second half of the time, if they differ.

    Examples
    --------
    >>> Behaviour(np.eye(2)[None]).fidelity
    0.0
    """

    confusion: NDArray[np.float64]
    fidelity: float = 0.0
    later_confusion: NDArray[np.float64] | None = None


def build_symmetric_confusion(accuracy: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Build confusion matrices with one accuracy for all classes and uniform errors.

    Parameters
    ----------
    accuracy : ndarray of shape (n_workers,)
        Accuracy of each worker.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices.

    Examples
    --------
    >>> build_symmetric_confusion(np.array([0.8]), 3).round(3).tolist()
    [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]]
    """
    right = np.eye(n_classes)
    wrong = (1 - right) / (n_classes - 1)
    return np.asarray(accuracy[:, None, None] * right + (1 - accuracy)[:, None, None] * wrong)


def make_expert(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Make workers who are nearly always right.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    accuracy : float, default=None
        Accuracy, or lower bound of it; drawn between 0.9 and 0.98 by default.
    up_to : float, default=None
        Upper bound of the accuracy.

    Returns
    -------
    Behaviour
        Symmetric confusion matrices.

    Examples
    --------
    >>> make_expert(np.random.default_rng(0), 1, 2, 0.95).confusion.round(2).tolist()
    [[[0.95, 0.05], [0.05, 0.95]]]
    """
    return Behaviour(build_symmetric_confusion(_draw_accuracy(rng, n, EXPERT_ACCURACY, accuracy, up_to), n_classes))


def make_noisy(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Make workers who are often right.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    accuracy : float, default=None
        Accuracy, or lower bound of it; drawn between 0.55 and 0.8 by default.
    up_to : float, default=None
        Upper bound of the accuracy.

    Returns
    -------
    Behaviour
        Symmetric confusion matrices.

    Examples
    --------
    >>> make_noisy(np.random.default_rng(0), 1, 2, 0.75).confusion.tolist()
    [[[0.75, 0.25], [0.25, 0.75]]]
    """
    return Behaviour(build_symmetric_confusion(_draw_accuracy(rng, n, NOISY_ACCURACY, accuracy, up_to), n_classes))


def make_spammer(rng: np.random.Generator, n: int, n_classes: int) -> Behaviour:  # noqa: ARG001  # common signature
    """Make workers who vote at random.

    Parameters
    ----------
    rng : Generator
        Random numbers; unused.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.

    Returns
    -------
    Behaviour
        Uniform confusion matrices.

    Examples
    --------
    >>> make_spammer(np.random.default_rng(0), 1, 2).confusion.tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    return Behaviour(np.full((n, n_classes, n_classes), 1 / n_classes))


def make_one_button(rng: np.random.Generator, n: int, n_classes: int, button: float | None = None) -> Behaviour:
    """Make workers who always give the same label.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    button : float, default=None
        Class code of the label; drawn for each worker by default.

    Returns
    -------
    Behaviour
        Confusion matrices with ones in one column.

    Examples
    --------
    >>> make_one_button(np.random.default_rng(0), 1, 2, 0).confusion.tolist()
    [[[1.0, 0.0], [1.0, 0.0]]]
    """
    favourite = _draw_favourites(rng, n, n_classes, button)
    return Behaviour(np.repeat(np.eye(n_classes)[favourite][:, None, :], n_classes, axis=1))


def make_biased(
    rng: np.random.Generator, n: int, n_classes: int, pull: float = 0.4, button: float | None = None
) -> Behaviour:
    """Make noisy workers who sometimes give one favourite class instead.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    pull : float, default=0.4
        Probability of the favourite class.
    button : float, default=None
        Class code of the favourite; drawn for each worker by default.

    Returns
    -------
    Behaviour
        Mixtures of noisy and one-button matrices.

    Examples
    --------
    >>> make_biased(np.random.default_rng(0), 1, 2, 1, 1).confusion.tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """
    check_fraction("the pull of a biased worker", pull)
    unbiased = make_noisy(rng, n, n_classes).confusion
    return Behaviour((1 - pull) * unbiased + pull * make_one_button(rng, n, n_classes, button).confusion)


def make_mixer(
    rng: np.random.Generator, n: int, n_classes: int, accuracy: float | None = None, up_to: float | None = None
) -> Behaviour:
    """Make workers who confuse each class with the next one only (the last with the first).

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    accuracy : float, default=None
        Accuracy, or lower bound of it; drawn between 0.55 and 0.8 by default.
    up_to : float, default=None
        Upper bound of the accuracy.

    Returns
    -------
    Behaviour
        Confusion matrices with two diagonals.

    Examples
    --------
    >>> make_mixer(np.random.default_rng(0), 1, 3, 0.75).confusion.tolist()
    [[[0.75, 0.25, 0.0], [0.0, 0.75, 0.25], [0.25, 0.0, 0.75]]]
    """
    right = _draw_accuracy(rng, n, NOISY_ACCURACY, accuracy, up_to)[:, None, None]
    return Behaviour(right * np.eye(n_classes) + (1 - right) * _shift_classes(n_classes))


def make_adversary(rng: np.random.Generator, n: int, n_classes: int, malice: float = 0.8) -> Behaviour:  # noqa: ARG001
    """Make workers who know the truth and often give the next class instead.

    Parameters
    ----------
    rng : Generator
        Random numbers; unused.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    malice : float, default=0.8
        Probability of the wrong label.

    Returns
    -------
    Behaviour
        Confusion matrices with two diagonals.

    Examples
    --------
    >>> make_adversary(np.random.default_rng(0), 1, 2, 0.75).confusion.tolist()
    [[[0.25, 0.75], [0.75, 0.25]]]
    """
    check_fraction("the malice of an adversary", malice)
    matrix = (1 - malice) * np.eye(n_classes) + malice * _shift_classes(n_classes)
    return Behaviour(np.repeat(matrix[None], n, axis=0))


def make_copier(rng: np.random.Generator, n: int, n_classes: int, fidelity: float = 0.9) -> Behaviour:
    """Make workers who repeat the labels of another worker.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    fidelity : float, default=0.9
        Probability of a repeated label; the other labels are those of a noisy worker.

    Returns
    -------
    Behaviour
        Noisy confusion matrices and the fidelity.

    Examples
    --------
    >>> make_copier(np.random.default_rng(0), 1, 2, 0.9).fidelity
    0.9
    """
    if not 0 < fidelity <= 1:
        raise UsageError(f"the fidelity of a copier must be above 0 and at most 1; got {fidelity}")
    return Behaviour(make_noisy(rng, n, n_classes).confusion, fidelity)


def make_drifter(
    rng: np.random.Generator, n: int, n_classes: int, before: float | None = None, after: float | None = None
) -> Behaviour:
    """Make workers whose accuracy drops in the middle of the time.

    Parameters
    ----------
    rng : Generator
        Random numbers.
    n : int
        Number of workers.
    n_classes : int
        Number of classes.
    before : float, default=None
        Accuracy in the first half; drawn between 0.8 and 0.95 by default.
    after : float, default=None
        Accuracy in the second half; drawn between chance and halfway to 0.8 by default.

    Returns
    -------
    Behaviour
        Symmetric confusion matrices for both halves.

    Examples
    --------
    >>> make_drifter(np.random.default_rng(0), 1, 2, 0.9, 0.5).later_confusion.tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    accuracy = _draw_accuracy(rng, n, FRESH_ACCURACY, before, before)
    chance = 1 / n_classes
    later_accuracy = _draw_accuracy(rng, n, (chance, (chance + 0.8) / 2), after, after)
    return Behaviour(
        build_symmetric_confusion(accuracy, n_classes),
        later_confusion=build_symmetric_confusion(later_accuracy, n_classes),
    )


#: Kinds by name; to add one, write a function (rng, n, n_classes, numbers…) and an entry here.
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


def _draw_accuracy(
    rng: np.random.Generator, n: int, default: tuple[float, float], accuracy: float | None, up_to: float | None
) -> NDArray[np.float64]:
    low, high = default if accuracy is None else (accuracy, accuracy if up_to is None else up_to)
    check_fraction("the accuracy of a worker", low)
    check_fraction("the accuracy of a worker", high)
    if low > high:
        raise UsageError(
            f"the lower bound of a worker's accuracy comes first, and the upper second; got {low}, {high}: exchange them"
        )
    return low + (high - low) * rng.random(n)


def _draw_favourites(rng: np.random.Generator, n: int, n_classes: int, button: float | None) -> NDArray[np.int64]:
    if button is None:
        return rng.integers(n_classes, size=n)
    if button not in range(n_classes):
        raise UsageError(f"the favourite class must be a code from 0 to {n_classes - 1}; got {button:g}")
    return np.full(n, int(button))


def _shift_classes(n_classes: int) -> NDArray[np.float64]:
    """Return the confusion matrix of a worker who always gives the next class."""
    return np.roll(np.eye(n_classes), 1, axis=1)
