"""Judging completers: every figure against one that was reckoned vote by vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import (
    GMV,
    Crowd,
    DawidSkene,
    DSFill,
    MajorityVote,
    accuracy_after_completion,
    density_curve,
    redundancy_curve,
    score_completer,
    simulate_crowd,
)
from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate import completion, metrics
from wisecrowd.simulate import Simulation


@dataclass(kw_only=True, eq=False, repr=False)
class ByFeature(Completer):
    """Everybody says the class that the first feature names, seven times of ten; answers for even workers only."""

    uses_features: ClassVar[bool] = True

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        self.named_ = X[:, 0].astype(int)

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        n_classes = len(self.classes_)
        rows = np.full((len(tasks), n_classes), 0.3 / (n_classes - 1))
        rows[np.arange(len(tasks)), self.named_[tasks]] = 0.7
        proba = np.broadcast_to(rows[:, None], (len(tasks), len(workers), n_classes))
        return WorkerLabelProbs(proba, np.broadcast_to(workers % 2 == 0, (len(tasks), len(workers))))


@pytest.fixture(scope="module")
def made() -> Simulation:
    return simulate_crowd(n_tasks=120, n_workers=8, votes_per_task=4, workers={"noisy(0.7)": 1.0}, random_state=3)


@pytest.fixture(scope="module", name="X")
def features(made: Simulation) -> pd.DataFrame:
    assert made.crowd.classes is not None
    return pd.DataFrame({"named": made.crowd.classes.get_indexer(made.truth)}, index=made.truth.index)


def standard_error(values: list[float], tasks: list[int]) -> float:
    """Over tasks, each with the sum of how far its votes are from the mean."""
    mean = sum(values) / len(values)
    sums: dict[int, float] = {}
    for value, task in zip(values, tasks, strict=True):
        sums[task] = sums.get(task, 0.0) + value - mean
    variance = sum(one * one for one in sums.values()) * len(sums) / (len(sums) - 1)
    return float(variance**0.5 / len(values))


def test_every_figure_by_brute_force(made: Simulation, X: pd.DataFrame) -> None:
    crowd = made.crowd
    judged = score_completer(ByFeature(), crowd, X, random_state=5)
    kept, hidden = crowd.hide(0.2, random_state=5)
    ds = DawidSkene().fit(kept)
    k = crowd.n_classes
    overall = np.bincount(kept.label, minlength=k) / kept.n_votes
    credit: dict[str, list[float]] = {name: [] for name in judged.table.index}
    loss: dict[str, list[float]] = {name: [] for name in judged.table.index}
    filled = []
    for task, worker, label in zip(hidden.task, hidden.worker_codes, hidden.label, strict=True):
        mine = [kept.label[n] for n in range(kept.n_votes) if kept.worker_codes[n] == worker]
        its = [kept.label[n] for n in range(kept.n_votes) if kept.task[n] == task]
        named = np.full(k, 0.3 / (k - 1))
        named[int(X["named"].iloc[task])] = 0.7
        forecasts = {
            "by-feature": named,
            "votes of the task": (np.bincount(its, minlength=k) + overall) / (len(its) + 1),
            "labels of the worker": (np.bincount(mine, minlength=k) + overall) / (len(mine) + 1),
            "ds-fill": ds.posterior_[task] @ ds.confusion_[worker],
        }
        for (name, said), row in zip(forecasts.items(), judged.table.index, strict=True):
            assert name in (row, "by-feature")
            best = np.flatnonzero(np.isclose(said, said.max(), atol=1e-12))
            credit[row].append((label in best) / len(best))
            loss[row].append(-np.log(0.999 * said[label] + 0.001 / k))
        filled.append(worker % 2 == 0)
    assert judged.n_votes == len(filled)
    assert judged.coverage == pytest.approx(np.mean(filled))
    first = judged.table.index[0]
    tasks = hidden.task.tolist()
    for name, row in judged.table.iterrows():
        gain = [other - own for other, own in zip(loss[str(name)], loss[first], strict=True)]
        for column, values in (("accuracy", credit[str(name)]), ("log_loss", loss[str(name)]), ("gain", gain)):
            assert row[column] == pytest.approx(np.mean(values))
            assert row[f"{column}_se"] == pytest.approx(standard_error(values, tasks))
        assert row["filled_accuracy"] == pytest.approx(np.mean(np.array(credit[str(name)])[filled]))
        assert row["filled_log_loss"] == pytest.approx(np.mean(np.array(loss[str(name)])[filled]))


def test_who_knows_the_truth_foretells_best(made: Simulation, X: pd.DataFrame) -> None:
    table = score_completer(ByFeature(), made.crowd, X, repeats=3).table
    assert table["log_loss"].idxmin() == table.index[0]
    assert (table["gain"].iloc[1:] > 2 * table["gain_se"].iloc[1:]).all()


@pytest.mark.slow
def test_the_standard_error_is_the_spread_over_crowds() -> None:
    """Over many crowds of one kind, figures spread as their standard error says."""
    found = [
        score_completer("gmv", simulate_crowd(n_tasks=60, n_workers=6, votes_per_task=4, random_state=seed).crowd).table
        for seed in range(40)
    ]
    for column in ("accuracy", "log_loss"):
        spread = np.std([table.loc["gmv", column] for table in found])
        assert 0.6 < np.mean([table.loc["gmv", f"{column}_se"] for table in found]) / spread < 1.5


def test_repeats_hide_other_votes_and_are_taken_together(made: Simulation) -> None:
    twice = score_completer("gmv", made.crowd, repeats=2, random_state=7)
    parts = [score_completer("gmv", made.crowd, random_state=seed) for seed in (7, 8)]
    assert twice.n_votes == sum(part.n_votes for part in parts)
    mean = np.mean([part.table["log_loss"].to_numpy() for part in parts], axis=0)
    np.testing.assert_allclose(twice.table["log_loss"], mean)
    assert not parts[0].table.equals(parts[1].table)
    pd.testing.assert_frame_equal(score_completer("gmv", made.crowd, random_state=7).table, parts[0].table)


def test_what_is_impossible_costs_much_and_not_infinitely_much() -> None:
    crowd = Crowd.from_triples([(task, worker, (task + worker) % 2) for task in range(6) for worker in range(5)])
    table = score_completer("gmv", crowd, fraction=0.5).table
    assert np.isfinite(table["log_loss"]).all()
    assert table["log_loss"].max() <= -np.log(completion.UNIFORM_SHARE / 2)


def test_both_of_two_answers_are_hidden_together() -> None:
    """Else who said both would be told by the one of the other."""
    triples = [(task, worker, label) for task in range(20) for worker in range(3) for label in ("a", "b")]
    crowd = Crowd.from_triples(triples, duplicates="keep")
    kept, hidden = completion._hide_votes(crowd, 0.25, 0)
    cells = [set(zip(part.task.tolist(), part.worker_codes.tolist(), strict=True)) for part in (kept, hidden)]
    assert not cells[0] & cells[1]
    assert (len(cells[0]), len(cells[1]), hidden.n_votes) == (45, 15, 30)
    assert completion.count_cells(crowd) == 60


def test_without_repeats_the_hidden_votes_are_those_of_the_crowd(made: Simulation) -> None:
    assert completion._hide_votes(made.crowd, 0.3, 4) == made.crowd.hide(0.3, random_state=4)


def test_weights_count(made: Simulation) -> None:
    """A vote of weight two counts as two."""
    crowd = made.crowd
    frame = crowd.to_frame()
    heavy = Crowd.from_frame(frame.assign(weight=2.0), weight="weight")
    scored = [completion._score_heldout(GMV(), *completion._hide_votes(one, 0.2, 0), None) for one in (crowd, heavy)]
    assert scored[1].weight.sum() == 2 * scored[0].weight.sum()
    weight = np.where(np.arange(len(scored[0].weight)) < 5, 3.0, 1.0)
    mean, _ = completion._clustered_mean(scored[0].loss["gmv"], scored[0]._replace(weight=weight))
    assert mean == pytest.approx(np.average(scored[0].loss["gmv"], weights=weight))


def test_workers_who_are_not_filled_in_for_are_not_covered(made: Simulation) -> None:
    some = score_completer(GMV(min_votes=45), made.crowd)
    kept, hidden = made.crowd.hide(0.2, random_state=0)
    eligible = kept.votes_per_worker > 45
    assert 0 < eligible.sum() < 8
    assert some.coverage == pytest.approx(eligible[hidden.worker_codes].mean())
    none = score_completer(GMV(min_votes=1000), made.crowd)
    assert none.coverage == 0
    assert none.table["filled_log_loss"].isna().all()
    assert none.table["log_loss"].notna().all()


def test_votes_that_were_filled_in_are_not_hidden_and_not_learnt(made: Simulation) -> None:
    pd.testing.assert_frame_equal(
        score_completer("ds-fill", GMV().complete(made.crowd)).table, score_completer("ds-fill", made.crowd).table
    )


def test_the_completer_that_is_given_stays_as_it_is(made: Simulation, X: pd.DataFrame) -> None:
    mine = ByFeature(fill_weight=0.5)
    score_completer(mine, made.crowd, X)
    accuracy_after_completion(mine, made.crowd, X, made.truth)
    density_curve(mine, made.crowd, X, made.truth, min_votes=[3])
    assert (mine.fill_weight, mine.min_votes) == (0.5, 0)
    assert not hasattr(mine, "named_")


# ---------------------------------------------------------------------- with truth


def test_before_and_after_are_what_aggregators_say(made: Simulation, X: pd.DataFrame) -> None:
    table = accuracy_after_completion(ByFeature(fill_weight=0.25), made.crowd, X, made.truth)
    assert table.loc["majority-vote"].index.tolist() == [
        "before", "after, shared weight", "after, weight 1", "after, weight 0.25",
    ]  # fmt: skip
    for weight, title in (("shared", "shared weight"), (1, "weight 1"), (0.25, "weight 0.25")):
        filled = ByFeature(fill_weight=weight).complete(made.crowd, X)
        for aggregator in (MajorityVote(), DawidSkene()):
            fitted = aggregator.fit(filled)
            row = table.loc[(aggregator.name, f"after, {title}")]
            assert row["accuracy"] == metrics.accuracy(made.truth, fitted)
            assert row["log_loss"] == metrics.log_loss(made.truth, fitted)
            assert row["calibration_error"] == metrics.calibration_error(made.truth, fitted)
            assert row["confidence"] == pytest.approx(fitted.posterior_.max(axis=1).mean())
    before = DawidSkene().fit(made.crowd)
    assert table.loc[("dawid-skene", "before"), "accuracy"] == metrics.accuracy(made.truth, before)


def test_votes_of_nobody_make_a_model_of_workers_too_sure() -> None:
    """Check that filled votes of full weight make posteriors overconfident, and shared weight less so."""
    crowd = simulate_crowd(n_tasks=400, n_workers=40, votes_per_task=3, workers={"noisy(0.6)": 1.0})
    table = accuracy_after_completion("gmv", crowd.crowd, None, crowd.truth, aggregators=["dawid-skene"]).loc[
        "dawid-skene"
    ]
    assert table["confidence"].is_monotonic_increasing
    assert table.loc["after, weight 1", "confidence"] > 0.99 > table.loc["after, weight 1", "accuracy"] + 0.2
    assert table.loc["after, shared weight", "log_loss"] < table.loc["after, weight 1", "log_loss"]


def test_redundancy(made: Simulation, X: pd.DataFrame) -> None:
    curve = redundancy_curve(
        ByFeature(), made.crowd, X, made.truth, at_most=[2, 3], aggregators=[MajorityVote()], repeats=2
    )
    assert curve.index.tolist() == [(2, "majority-vote"), (3, "majority-vote")]
    gains = []
    for seed in range(2):
        few = made.crowd.limit_votes_per_task(2, random_state=seed)
        filled = ByFeature().complete(few, X)
        gains.append([metrics.accuracy(made.truth, MajorityVote().fit(one)) for one in (few, filled)])
    before, after = np.mean(gains, axis=0)
    row = curve.loc[(2, "majority-vote")]
    assert (row["votes_per_task"], row["before"], row["after"]) == (2.0, pytest.approx(before), pytest.approx(after))
    assert row["gain"] == pytest.approx(after - before)
    assert row["gain_sd"] == pytest.approx(np.std([b - a for a, b in gains], ddof=1))
    assert after > before


def test_density(made: Simulation) -> None:
    thresholds = [0, 58, 1000]
    curve = density_curve("ds-fill", made.crowd, None, made.truth, min_votes=thresholds, aggregators=["majority-vote"])
    curve = curve.droplevel("aggregator")
    for threshold in thresholds:
        eligible = made.crowd.votes_per_worker > threshold
        filled = DSFill(min_votes=threshold).complete(made.crowd)
        row = curve.loc[threshold]
        assert row["workers"] == eligible.sum()
        assert row["density"] == filled.n_votes / (120 * 8)
        assert row["after"] == metrics.accuracy(made.truth, MajorityVote().fit(filled))
    assert curve["density"].iloc[0] == 1
    assert curve.loc[1000, "before"] == curve.loc[1000, "after"]
    soft = density_curve(DSFill(fill_mode="soft"), made.crowd, None, made.truth, min_votes=[0])
    assert (soft["density"] == 1).all(), "shares of one vote are one cell"


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0.0}, "fraction must lie between 0 and 1; got 0.0"),
        ({"fraction": 1.0}, "fraction must lie between 0 and 1; got 1.0"),
        ({"repeats": 0}, "repeats must be 1 or more; got 0"),
    ],
)
def test_options_that_make_no_sense(made: Simulation, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score_completer("gmv", made.crowd, **options)


def test_what_is_not_a_completer(made: Simulation) -> None:
    with pytest.raises(UsageError, match="must be a Completer"):
        score_completer("majority-vote", made.crowd)
    with pytest.raises(UsageError, match="must be a Completer"):
        score_completer(DawidSkene(), made.crowd)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs the features of the tasks"):
        score_completer(ByFeature(), made.crowd)


def test_what_is_not_an_aggregator(made: Simulation) -> None:
    for wrong in ("majority-vote", [], ["gmv"], ["median"]):
        with pytest.raises(UsageError, match="aggregators"):
            accuracy_after_completion("gmv", made.crowd, None, made.truth, aggregators=wrong)
    with pytest.raises(UsageError, match="repeats must be 1 or more"):
        redundancy_curve("gmv", made.crowd, None, made.truth, repeats=0)


def test_truth_of_other_tasks_is_refused_before_anything_is_fitted(
    made: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GMV, "_fit", lambda *_: pytest.fail("too late"))
    for look in (accuracy_after_completion, redundancy_curve, density_curve):
        with pytest.raises(InputError, match="no task in common"):
            look("gmv", made.crowd, None, {"elsewhere": "c1"})


def test_crowds_that_cannot_be_judged() -> None:
    with pytest.raises(InputError, match="at least two votes"):
        score_completer("gmv", Crowd.from_triples([("t", "w", "a")]))
    with pytest.raises(InputError, match="numbers"):
        score_completer("gmv", Crowd.from_triples([("t", "w", 1.0)], numeric=True))
    with pytest.raises(InputError, match="needs the worker of each vote"):
        score_completer("gmv", Crowd.from_counts([[2, 1]]))


def test_two_votes_are_enough() -> None:
    judged = score_completer("gmv", Crowd.from_triples([("t", "v", "a"), ("t", "w", "b"), ("s", "w", "b")]))
    assert judged.n_votes == 1
    assert judged.table["log_loss_se"].isna().all(), "one task tells nothing of the spread"
