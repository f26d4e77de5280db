from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import plan_labels, rate
from wisecrowd.evaluate.evaluation_items import EvaluationItems
from wisecrowd.evaluate.label_plan import draw_systematic, expected_deviation, scale_probabilities
from wisecrowd.evaluate.system_means import estimate_system_means
from wisecrowd.simulate.evaluations import simulate_evaluation


def sharp_items(seed: int, n: int = 1000) -> tuple[pd.DataFrame, pd.Series]:
    """Return judges who are sure about most items and undecided about some."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.02, 0.5, 0.98], n, p=[0.45, 0.2, 0.35])
    truth = pd.Series((rng.random(n) < p).astype(int), index=[f"t{i}" for i in range(n)])
    return pd.DataFrame({"judge": p}, index=truth.index), truth


def test_the_forecast_comes_true() -> None:
    simulation = simulate_evaluation(n_tasks=2000, n_labelled=60, random_state=0)
    plan = plan_labels(simulation.scores, simulation.labels, half_width=0.05, design="random", raters="panel")
    assert plan.reachable
    assert plan.expected_half_width <= 0.05
    later = simulate_evaluation(n_tasks=2000, n_labelled=60 + plan.n_more, random_state=0)
    assert rate(later.scores, later.labels, raters="panel").corrected.width / 2 == pytest.approx(0.05, rel=0.15)


@pytest.mark.slow
def test_active_designs_are_narrower_at_equal_labels() -> None:
    ratio, covered = [], []
    for seed in range(20):
        scores, truth = sharp_items(seed)
        first = truth.sample(60, random_state=seed)
        widths = []
        for design in ("active", "random"):
            plan = plan_labels(scores, first, size=60, design=design, random_state=seed)  # type: ignore[arg-type]
            labels = truth[[*first.index, *plan.chosen["task"]]]
            assert len(labels) == 120
            interval = rate(scores, labels, items=plan.items).corrected
            widths.append(interval.width)
            covered.append(interval.low <= truth.mean() <= interval.high)
        ratio.append(widths[0] / widths[1])
    assert np.mean(ratio) < 0.95
    assert np.mean(covered) > 0.9


def test_uncertain_items_are_chosen_more_often() -> None:
    scores, truth = sharp_items(0)
    plan = plan_labels(scores, truth[:60], size=100)
    inclusion = plan.items.set_index("task")["inclusion"]
    assert inclusion[scores["judge"] == 0.5].mean() > 1.5 * inclusion[scores["judge"] == 0.98].mean()
    assert not plan.items.loc[plan.items["labelled"], "chosen"].any()


def test_outputs_for_one_task_are_chosen_together() -> None:
    simulation = simulate_evaluation(n_tasks=200, rates=(0.6, 0.5), n_labelled=30, random_state=0)
    plan = plan_labels(simulation.scores, simulation.labels, size=40, systems=("system0", "system1"))
    assert (plan.chosen.groupby("task")["system"].nunique() == 2).all()
    assert plan.n_more in (40, 41, 42)
    inclusion = plan.items.pivot(index="task", columns="system", values="inclusion")
    np.testing.assert_allclose(inclusion["system0"], inclusion["system1"])


def test_wide_targets_need_nothing_and_narrow_ones_are_out_of_reach() -> None:
    simulation = simulate_evaluation(n_tasks=300, n_labelled=60, random_state=0)
    assert plan_labels(simulation.scores, simulation.labels, half_width=0.4).n_more == 0
    plan = plan_labels(simulation.scores, simulation.labels, half_width=0.001)
    assert not plan.reachable
    assert plan.n_more == 240
    finite = plan_labels(simulation.scores, simulation.labels, half_width=0.001, population="items", raters="panel")
    assert finite.reachable


def test_ratings_are_planned_by_the_size_of_errors() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(500)
    rating = 50 + 30 * score + rng.normal(0, 1 + 20 * score)
    items = EvaluationItems.from_arrays(score[:, None], np.where(np.arange(500) < 150, rating, np.nan))
    deviation = expected_deviation(items, estimate_system_means(items))
    assert deviation[score > 0.8].mean() > 2 * deviation[score < 0.2].mean()


def test_probabilities_are_those_of_the_draw() -> None:
    probability = scale_probabilities(np.array([5.0, 1.0, 1.0, 1.0, 0.5]), np.ones(5), 2.0)
    assert probability.sum() == pytest.approx(2)
    counts = np.zeros(5)
    for seed in range(2000):
        drawn = draw_systematic(probability, np.random.default_rng(seed))
        assert len(drawn) == 2
        counts[drawn] += 1
    assert counts / 2000 == pytest.approx(probability, abs=0.04)


def test_wrong_calls_are_refused() -> None:
    simulation = simulate_evaluation(n_tasks=50, n_labelled=50)
    with pytest.raises(InputError, match="every item is labelled"):
        plan_labels(simulation.scores, simulation.labels, size=5)
    with pytest.raises(UsageError, match="either half_width"):
        plan_labels(simulation.scores, simulation.labels)
    with pytest.raises(UsageError, match="positive"):
        plan_labels(simulation.scores, simulation.labels, half_width=-1)
