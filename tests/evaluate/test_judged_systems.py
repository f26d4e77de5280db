from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import difference, rank, rate
from wisecrowd.evaluate.evaluation_items import EvaluationItems
from wisecrowd.evaluate.judged_systems import rank_intervals
from wisecrowd.simulate.evaluations import simulate_arena, simulate_evaluation

#: Few draws; `wisecrowd bench run judge-evaluation` has a thousand. At least 36 of 42 intervals of 95 % cover with probability .99.
DRAWS, LEAST = 42, 36 / 42


def test_humans_only_and_judges_only_are_always_beside() -> None:
    simulation = simulate_evaluation(n_labelled=80, random_state=1)
    estimate = rate(simulation.scores, simulation.labels)
    assert estimate.people_only.estimate == pytest.approx(simulation.labels["label"].mean())
    assert estimate.judges_only is None  # scores are not on the scale of labels
    assert estimate.corrected.width < estimate.people_only.width
    assert estimate.labels_saved == pytest.approx(estimate.effective_labels - 80)
    assert (estimate.n_items, estimate.n_labelled, estimate.n_judges) == (1000, 80, 5)
    assert "people only" in str(estimate)
    assert estimate.to_dict()["labelled_items"] == 80


def test_judges_alone_are_shown_on_the_scale_of_labels() -> None:
    scores = pd.DataFrame({"a": [0.2] * 50, "b": [0.4] * 50}, index=range(50))
    estimate = rate(scores, pd.Series(np.tile([0, 1], 15)))
    assert estimate.judges_only == pytest.approx(0.3)
    assert estimate.corrected.estimate == pytest.approx(0.5)
    assert "do not name their raters" in estimate.notes[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"n_labelled": 50},
        {"n_labelled": 100, "rates": (0.05,)},
        {"n_labelled": 60, "raters_per_item": 2, "severity_spread": 0.5, "n_raters": 15},
    ],
    ids=["plain", "rare", "raters"],
)
@pytest.mark.slow
def test_rates_are_covered(settings: dict[str, object]) -> None:
    covered = []
    for seed in range(DRAWS):
        simulation = simulate_evaluation(n_tasks=400, random_state=seed, **settings)  # type: ignore[arg-type]
        interval = rate(simulation.scores, simulation.labels).corrected
        covered.append(interval.low <= simulation.rates.iloc[0] <= interval.high)
    assert np.mean(covered) >= LEAST


@pytest.mark.slow
def test_differences_are_covered_and_paired() -> None:
    covered, ratio = [], []
    for seed in range(DRAWS):
        simulation = simulate_evaluation(
            n_tasks=250, rates=(0.6, 0.5), n_labelled=60, task_spread=1.5, random_state=seed
        )
        estimate = difference(simulation.scores, simulation.labels)
        covered.append(estimate.corrected.low <= 0.1 <= estimate.corrected.high)
        if seed >= 10:
            continue
        singles = [
            rate(simulation.scores, simulation.labels, system=name).people_only for name in simulation.rates.index
        ]
        ratio.append(estimate.people_only.standard_error / np.hypot(*(single.standard_error for single in singles)))
    assert np.mean(covered) >= LEAST
    assert np.mean(ratio) < 0.85  # what both systems find difficult cancels


def test_difference_is_antisymmetric() -> None:
    simulation = simulate_evaluation(n_tasks=200, rates=(0.6, 0.5), n_labelled=40, random_state=0)
    one, other = (
        difference(simulation.scores, simulation.labels, systems=names).corrected
        for names in (("system0", "system1"), ("system1", "system0"))
    )
    assert (one.estimate, one.low) == pytest.approx((-other.estimate, -other.high))


@pytest.mark.slow
def test_ranks_are_covered() -> None:
    all_covered, widths = [], []
    for seed in range(25):
        simulation = simulate_evaluation(n_tasks=300, rates=(0.75, 0.7, 0.5, 0.3), n_labelled=60, random_state=seed)
        table = rank(simulation.scores, simulation.labels).table
        truth = simulation.rates.rank(ascending=False).reindex(table.index)
        all_covered.append(((table["rank_low"] <= truth) & (truth <= table["rank_high"])).all())
        widths.append((table["high"] - table["low"]).mean() / (table["people_high"] - table["people_low"]).mean())
    assert np.mean(all_covered) >= 0.9
    assert np.mean(widths) < 0.95


@pytest.mark.slow
def test_arenas_are_covered() -> None:
    all_covered, covered, widths = [], [], []
    for seed in range(30):
        arena = simulate_arena(n_tasks=600, n_labelled=150, random_state=seed)
        ranking = rank(arena.judges, arena.people)
        table = ranking.table
        score = arena.scores.reindex(table.index)
        truth = score.rank(ascending=False)
        all_covered.append(((table["rank_low"] <= truth) & (truth <= table["rank_high"])).all())
        covered.append(((table["low"] <= score) & (score <= table["high"])).mean())
        widths.append((table["high"] - table["low"]).mean() / (table["people_high"] - table["people_low"]).mean())
    assert ranking.scale == "logit"
    assert np.mean(all_covered) >= 0.9
    assert 0.9 <= np.mean(covered) <= 0.99
    assert np.mean(widths) < 0.9


def test_win_rates_of_two_systems() -> None:
    arena = simulate_arena(scores=(0.5, -0.5), n_tasks=500, n_labelled=100, random_state=0)
    estimate = difference(arena.judges, arena.people)
    truth = 2 / (1 + np.exp(-1.0)) - 1
    assert estimate.corrected.low < truth < estimate.corrected.high
    assert estimate.corrected.width < estimate.people_only.width
    reverse = difference(arena.judges, arena.people, systems=("system1", "system0"))
    assert reverse.people_only.estimate == pytest.approx(-estimate.people_only.estimate)


def test_ranks_of_equal_systems_are_open() -> None:
    low, high = rank_intervals(np.zeros(3), np.eye(3), freedom=50)
    assert (low.tolist(), high.tolist()) == ([1, 1, 1], [3, 3, 3])


def test_the_seed_is_the_only_randomness() -> None:
    simulation = simulate_evaluation(n_tasks=200, n_labelled=40)
    first = rate(simulation.scores, simulation.labels, random_state=3).corrected
    again = rate(simulation.scores.iloc[::-1], simulation.labels.iloc[::-1], random_state=3).corrected
    # Sums in another order differ in the last digit.
    np.testing.assert_allclose(
        [again.estimate, again.standard_error], [first.estimate, first.standard_error], rtol=1e-12
    )


def test_wrong_calls_are_refused() -> None:
    simulation = simulate_evaluation(n_tasks=100, rates=(0.6, 0.5), n_labelled=30)
    scores, labels = simulation.scores, simulation.labels
    with pytest.raises(UsageError, match="name one"):
        rate(scores, labels)
    with pytest.raises(UsageError, match="labels of people are missing"):
        rate(scores)
    with pytest.raises(UsageError, match="leave labels and items out"):
        rate(EvaluationItems.from_tables(scores, labels), labels)
    with pytest.raises(UsageError, match="two systems"):
        difference(scores, labels, systems=("system0",))
    with pytest.raises(UsageError, match="two systems or more"):
        rank(EvaluationItems.from_tables(scores, labels).select_systems(["system0"]))
    arena = simulate_arena(n_tasks=50, n_labelled=10)
    with pytest.raises(UsageError, match="comparisons of people"):
        rank(arena.judges, labels)
    with pytest.raises(UsageError, match="use rank"):
        rate(arena.judges)
    with pytest.raises(UsageError, match="two systems"):
        difference(arena.judges, arena.people)
    with pytest.raises(UsageError, match="no system 'gpt'"):
        difference(arena.judges, arena.people, systems=("gpt", "system0"))


@pytest.mark.data
def test_civil_comments_are_covered(answer_types_folder: Path) -> None:
    folder = answer_types_folder / "civilcomments_judges"
    table = pd.read_parquet(folder / "scores.parquet").pivot(index="task", columns="worker", values="score")
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")["label"].astype(float).reindex(table.index)
    scores, label = table.to_numpy(), truth.to_numpy()
    covered, widths, people = [], [], []
    for seed in range(30):
        rows = np.random.default_rng(seed).integers(0, len(label), len(label))
        items = EvaluationItems.from_arrays(scores[rows], np.where(np.arange(len(rows)) < 100, label[rows], np.nan))
        estimate = rate(items, random_state=seed)
        covered.append(estimate.corrected.low <= label.mean() <= estimate.corrected.high)
        widths.append(estimate.corrected.width)
        people.append(estimate.people_only.width)
    assert np.mean(covered) >= 0.85
    assert np.mean(widths) < 0.165
    assert np.mean(people) > 0.19


def test_no_common_pair_is_refused() -> None:
    one, other = simulate_arena(n_tasks=30, n_labelled=10), simulate_arena(n_tasks=30, n_labelled=10, random_state=1)
    from wisecrowd.data.comparisons import Comparisons

    frame = other.people.to_frame().assign(task="elsewhere")
    with pytest.raises(InputError, match="no pair of systems"):
        rank(one.judges, Comparisons.from_frame(frame, task="task", duplicates="keep"))
