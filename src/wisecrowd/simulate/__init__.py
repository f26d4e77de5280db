"""Simulated crowds with known truth.

A generator combines three steps: `assign` decides which workers vote on which tasks, `draw_labels` draws labels from
confusion matrices, and `assign_with_copiers` sends copiers to the tasks of their sources.

Examples
--------
>>> from wisecrowd.simulate import simulate_crowd
>>> simulation = simulate_crowd(n_tasks=200, n_workers=20, n_classes=3, workers={"expert": 0.5, "spammer": 0.5})
>>> simulation.crowd
Crowd(600 votes: 200 tasks x 20 workers, 3 classes, 3.0 votes/task)
>>> simulation.accuracy.groupby(simulation.kind).mean().round(2).to_dict()
{'expert': 0.94, 'spammer': 0.33}
"""

from wisecrowd.simulate.activity import ACTIVITIES
from wisecrowd.simulate.assignment import assign
from wisecrowd.simulate.copiers import assign_with_copiers
from wisecrowd.simulate.crowds import DEFAULT_WORKER_MIX, Simulation, simulate_crowd
from wisecrowd.simulate.difficulty import (
    XU2019_ACCURACIES,
    DifficultyCrowd,
    compute_easiness,
    simulate_by_difficulty,
    simulate_gaussian_difficulty,
    simulate_unstructured,
    simulate_xu2019,
)
from wisecrowd.simulate.kinds import KINDS, Behaviour
from wisecrowd.simulate.mixtures import (
    GroupedSimulation,
    assign_worker_per_vote,
    simulate_gaussian_groups,
    simulate_image_groups,
)
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel
from wisecrowd.simulate.patterns import (
    PATTERN_SETS,
    PATTERNS,
    PEER_PATTERNS,
    NoiseRates,
    PatternSimulation,
    compute_noise_rates,
    simulate_patterns,
)
from wisecrowd.simulate.scores import ScoreSimulation, simulate_scores
from wisecrowd.simulate.votes import draw_labels, simulate_votes

__all__ = [
    "ACTIVITIES",
    "DEFAULT_WORKER_MIX",
    "KINDS",
    "PATTERNS",
    "PATTERN_SETS",
    "PEER_PATTERNS",
    "XU2019_ACCURACIES",
    "Behaviour",
    "DifficultyCrowd",
    "GroupedSimulation",
    "NoiseRates",
    "PanelSimulation",
    "PatternSimulation",
    "ScoreSimulation",
    "Simulation",
    "assign",
    "assign_with_copiers",
    "assign_worker_per_vote",
    "compute_easiness",
    "compute_noise_rates",
    "draw_labels",
    "simulate_by_difficulty",
    "simulate_crowd",
    "simulate_gaussian_difficulty",
    "simulate_gaussian_groups",
    "simulate_image_groups",
    "simulate_panel",
    "simulate_patterns",
    "simulate_scores",
    "simulate_unstructured",
    "simulate_votes",
    "simulate_xu2019",
]
