"""Crowds with known truth.

>>> from wisecrowd.simulate import simulate_crowd
>>> made = simulate_crowd(n_tasks=200, n_workers=20, n_classes=3, workers={"expert": 0.5, "spammer": 0.5})
>>> made.crowd
Crowd(600 labels: 200 tasks x 20 workers, 3 classes, 3.0 labels/task)
>>> made.accuracy.groupby(made.kind).mean().round(2).to_dict()
{'expert': 0.94, 'spammer': 0.33}

A generator is made of three steps that others can share: `assign` decides who labels what, `draw_labels` lets workers
speak by their confusion matrices, and `shadow` sends copiers to where their sources have been.
"""

from wisecrowd.simulate.activity import ACTIVITIES
from wisecrowd.simulate.assignment import assign
from wisecrowd.simulate.copying import shadow
from wisecrowd.simulate.crowds import MIX, Simulation, simulate_crowd
from wisecrowd.simulate.difficulty import (
    FIVE_WORKERS,
    DifficultyCrowd,
    easiness_of,
    gaussian_difficulty,
    gaussian_difficulty_2019,
    simulate_by_difficulty,
    simulate_unstructured,
)
from wisecrowd.simulate.kinds import KINDS, Behaviour
from wisecrowd.simulate.mixtures import (
    GroupedSimulation,
    one_worker_per_label,
    simulate_gaussian_groups,
    simulate_image_groups,
)
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel
from wisecrowd.simulate.patterns import (
    LOOKS,
    PATTERN_SETS,
    PATTERNS,
    NoiseRates,
    PatternSimulation,
    noise_rates,
    simulate_patterns,
)
from wisecrowd.simulate.votes import draw_labels, simulate_votes

__all__ = [
    "ACTIVITIES",
    "FIVE_WORKERS",
    "KINDS",
    "LOOKS",
    "MIX",
    "PATTERNS",
    "PATTERN_SETS",
    "Behaviour",
    "DifficultyCrowd",
    "GroupedSimulation",
    "NoiseRates",
    "PanelSimulation",
    "PatternSimulation",
    "Simulation",
    "assign",
    "draw_labels",
    "easiness_of",
    "gaussian_difficulty",
    "gaussian_difficulty_2019",
    "noise_rates",
    "one_worker_per_label",
    "shadow",
    "simulate_by_difficulty",
    "simulate_crowd",
    "simulate_gaussian_groups",
    "simulate_image_groups",
    "simulate_panel",
    "simulate_patterns",
    "simulate_unstructured",
    "simulate_votes",
]
