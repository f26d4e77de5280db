"""Ratings, comparisons and label sets of simulated crowds: one line for each type of answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.aggregate.multilabel.binary_relevance import BinaryRelevance
from wisecrowd.aggregate.multilabel.label_set_mixture import LabelSetMixture
from wisecrowd.aggregate.numeric.mean import Mean
from wisecrowd.aggregate.ordinal.graded_response import GradedResponse
from wisecrowd.aggregate.pairwise.judge_aware_bradley_terry import JudgeAwareBradleyTerry
from wisecrowd.aggregate.pairwise.win_rate import WinRate
from wisecrowd.data.crowd import Crowd
from wisecrowd.simulate.comparisons import simulate_comparisons
from wisecrowd.simulate.label_sets import simulate_label_sets
from wisecrowd.simulate.ratings import simulate_ratings


@dataclass(frozen=True)
class AnswerResult:
    """Result on one type of answers, beside a simple method.

    Attributes
    ----------
    answers : str
        Type of answers, with the size of the crowd.
    metric : str
        Figure that is compared with the truth; larger is better.
    method, baseline : str
        Names of the methods.
    value, baseline_value : float
        Their figures.

    Examples
    --------
    >>> AnswerResult("comparisons", "rank correlation", "judge-aware-bradley-terry", "win-rate", 0.98, 0.91).describe()
    'comparisons: rank correlation 0.98 by judge-aware-bradley-terry, 0.91 by win-rate'
    """

    answers: str
    metric: str
    method: str
    baseline: str
    value: float
    baseline_value: float

    def describe(self) -> str:
        """Return the result as one line."""
        return f"{self.answers}: {self.metric} {self.value:.2f} by {self.method}, {self.baseline_value:.2f} by {self.baseline}"


def run_other_answers(random_state: int = 0) -> list[AnswerResult]:
    """Aggregate ratings, comparisons and label sets of simulated crowds.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the simulations.

    Returns
    -------
    list of AnswerResult

    Examples
    --------
    >>> [result.answers.split(" (")[0] for result in run_other_answers()]
    ['Ratings', 'Comparisons', 'Label sets']
    """
    return [_rate(random_state), _compare(random_state), _label(random_state)]


def _rate(random_state: int) -> AnswerResult:
    simulation = simulate_ratings(
        n_tasks=200, n_workers=30, votes_per_task=3, severity_sd=1.0, random_state=random_state
    )
    graded = GradedResponse().fit(simulation.crowd)
    frame = simulation.crowd.to_frame()
    numbers = Crowd.from_frame(frame.assign(label=frame["label"].astype(float)), numeric=True)
    means = Mean().fit(numbers).labels_
    truth = simulation.scores
    return AnswerResult(
        "Ratings (200 tasks, 3 of 30 raters each)",
        "rank correlation with the true scores",
        graded.name,
        Mean().name,
        float(graded.tasks_["score"].corr(truth, method="spearman")),
        float(means.astype(float).corr(truth, method="spearman")),
    )


def _compare(random_state: int) -> AnswerResult:
    simulation = simulate_comparisons(
        n_items=20,
        n_workers=15,
        votes_per_worker=30,
        lean_spread=2.0,
        discrimination_spread=1.0,
        random_state=random_state,
    )
    aware, simple = JudgeAwareBradleyTerry().fit(simulation.comparisons), WinRate().fit(simulation.comparisons)
    return AnswerResult(
        "Comparisons (20 items, 15 judges who lean to a side)",
        "rank correlation with the true scores",
        aware.name,
        simple.name,
        *(float(fitted.scores_["score"].corr(simulation.scores, method="spearman")) for fitted in (aware, simple)),
    )


def _label(random_state: int) -> AnswerResult:
    simulation = simulate_label_sets(n_tasks=200, n_groups=4, random_state=random_state)
    truth = simulation.truth.to_numpy(dtype=bool)
    scores = []
    for method in (LabelSetMixture(), BinaryRelevance(model="majority")):
        fitted = method.fit(simulation.crowd)
        chosen = fitted.label_probs_ >= fitted.threshold_
        hits = (chosen & truth).sum(axis=0)
        scores.append(float(np.mean(2 * hits / np.maximum(chosen.sum(axis=0) + truth.sum(axis=0), 1))))
    return AnswerResult(
        "Label sets (200 tasks, 8 labels that occur together)",
        "macro F1",
        LabelSetMixture().name,
        "majority vote on each label",
        *scores,
    )
