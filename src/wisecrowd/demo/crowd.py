"""The demo's crowd: real pictures with known truth, labelled by workers who are not all what one would wish for."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wisecrowd.simulate import Simulation, simulate_crowd

#: Who labels the pictures. Nobody tells the methods.
WORKERS = {"expert": 5, "noisy": 17, "biased": 4, "spammer": 6, "one-button": 3, "adversary": 3, "copier": 2}


@dataclass(frozen=True)
class DigitsCrowd:
    """A simulated crowd on handwritten digits, and the pixels of the digits by task.

    >>> digits_crowd().features.shape
    (1797, 64)
    """

    simulation: Simulation
    features: pd.DataFrame


def digits_crowd(random_state: int = 0) -> DigitsCrowd:
    """Scikit-learn's 1,797 digits, each labelled by three to five of forty workers; some work far more than others.

    >>> digits_crowd().simulation.kind.value_counts().to_dict()["spammer"]
    6
    """
    from sklearn.datasets import load_digits

    pixels, target = load_digits(return_X_y=True)
    tasks = pd.Index([f"digit-{number:04d}" for number in range(len(target))], name="task")
    made = simulate_crowd(
        truth=pd.Series(target.astype(str), index=tasks, name="truth"),
        workers=WORKERS,
        votes_per_task=(3, 5),
        activity="beta(2, 3)",
        random_state=random_state,
    )
    return DigitsCrowd(made, pd.DataFrame(pixels, index=tasks))


_SEVERAL = {"expert": "experts", "spammer": "spammers", "adversary": "adversaries", "copier": "copiers"}


def described(kind: pd.Series) -> str:
    """How many workers there are of each kind, the most frequent first.

    >>> described(pd.Series(["noisy", "spammer", "spammer"]))
    '2 spammers, 1 noisy'
    """
    counts = kind.value_counts().items()
    return ", ".join(f"{number} {_SEVERAL.get(str(one), one) if number > 1 else one}" for one, number in counts)
