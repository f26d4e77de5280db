"""Crowd of the demo: real images with known truth, labelled by simulated workers."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wisecrowd.simulate import Simulation, simulate_crowd

#: Types of workers, unknown to the methods.
WORKERS = {"expert": 5, "noisy": 17, "biased": 4, "spammer": 6, "one-button": 3, "adversary": 3, "copier": 2}


@dataclass(frozen=True)
class DigitsCrowd:
    """Simulated crowd on handwritten digits, and the pixels of the digits by task.

    Attributes
    ----------
    simulation : Simulation
        Votes, truth and types of workers.
    features : DataFrame
        Pixels, with one row per task.

    Examples
    --------
    >>> make_digits_crowd().features.shape
    (1797, 64)
    """

    simulation: Simulation
    features: pd.DataFrame


def make_digits_crowd(random_state: int = 0) -> DigitsCrowd:
    """Simulate forty workers who label the 1,797 digits of scikit-learn, three to five votes each.

    Parameters
    ----------
    random_state : int, default 0
        Seed of the simulation.

    Returns
    -------
    DigitsCrowd

    Examples
    --------
    >>> make_digits_crowd().simulation.kind.value_counts().to_dict()["spammer"]
    6
    """
    from sklearn.datasets import load_digits

    pixels, target = load_digits(return_X_y=True)
    tasks = pd.Index([f"digit-{number:04d}" for number in range(len(target))], name="task")
    simulation = simulate_crowd(
        truth=pd.Series(target.astype(str), index=tasks, name="truth"),
        workers=WORKERS,
        votes_per_task=(3, 5),
        activity="beta(2, 3)",
        random_state=random_state,
    )
    return DigitsCrowd(simulation, pd.DataFrame(pixels, index=tasks))


_SEVERAL = {"expert": "experts", "spammer": "spammers", "adversary": "adversaries", "copier": "copiers"}


def count_kinds(kind: pd.Series) -> str:
    """Return the number of workers of each type as text, most frequent first.

    Parameters
    ----------
    kind : Series
        Type of every worker.

    Returns
    -------
    str

    Examples
    --------
    >>> count_kinds(pd.Series(["noisy", "spammer", "spammer"]))
    '2 spammers, 1 noisy'
    """
    counts = kind.value_counts().items()
    return ", ".join(f"{number} {_SEVERAL.get(str(one), one) if number > 1 else one}" for one, number in counts)
