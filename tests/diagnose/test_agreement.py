"""Agreement beyond chance, against other people's programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd import Crowd
from wisecrowd.diagnose import agreement
from wisecrowd.diagnose.agreement import cohen_kappas, fleiss_kappa, gwet_ac1, krippendorff_alpha
from wisecrowd.errors import InputError, WisecrowdError
from wisecrowd.simulate.ratings import simulate_ratings


def crowd_of(seed: int, n_tasks: int = 60, n_workers: int = 7, n_classes: int = 4, density: float = 0.6) -> Crowd:
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    said = np.where(
        rng.random((n_tasks, n_workers)) < 0.6, truth[:, None], rng.integers(n_classes, size=(n_tasks, n_workers))
    )
    task, worker = np.nonzero(rng.random((n_tasks, n_workers)) < density)
    return Crowd.from_codes(
        task, worker, said[task, worker], tasks=range(n_tasks), workers=range(n_workers), classes=range(n_classes)
    )


def matrix_of(crowd: Crowd) -> np.ndarray:
    table = np.full((crowd.n_workers, crowd.n_tasks), np.nan)
    table[crowd.worker, crowd.task] = crowd.label
    return table


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_that_of_krippendorff(seed: int, level: str) -> None:
    theirs = pytest.importorskip("krippendorff", reason="the package krippendorff is not installed")
    crowd = crowd_of(seed, density=0.3 + 0.15 * seed)
    wanted = theirs.alpha(reliability_data=matrix_of(crowd), level_of_measurement=level, value_domain=list(range(4)))
    assert float(krippendorff_alpha(crowd, level)) == pytest.approx(wanted, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.2, 1.0))
def test_alpha_is_that_of_all_pairs(seed: int, n_classes: int, density: float) -> None:
    """The definition: disagreement of pairs on a task, over that of pairs of any votes."""
    crowd = crowd_of(seed, n_tasks=12, n_workers=5, n_classes=n_classes, density=density)
    paired = np.isin(crowd.task, np.flatnonzero(crowd.votes_per_task > 1))
    task, label = crowd.task[paired], crowd.label[paired]
    m = crowd.votes_per_task[task]
    differ = label[:, None] != label[None, :]
    observed = (differ & (task[:, None] == task[None, :])).sum(axis=1) @ (1 / (m - 1)) if len(m) else 0
    n = len(label)
    found = float(krippendorff_alpha(crowd))
    if n == 0 or not differ.any():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(1 - (observed / n) / (differ.sum() / (n * (n - 1))), abs=1e-9)


def test_numbers_have_an_alpha_too() -> None:
    crowd = crowd_of(3)
    numeric = Crowd.from_codes(
        crowd.task, crowd.worker, 7.0 + 1e4 * crowd.label, tasks=crowd.tasks, workers=crowd.workers, classes=None
    )
    wanted = krippendorff_alpha(crowd, "interval", interval=0.9)
    found = krippendorff_alpha(numeric, "interval", interval=0.9)
    assert float(found) == pytest.approx(float(wanted), abs=1e-9)
    assert found.low == pytest.approx(wanted.low, abs=0.03)
    with pytest.raises(WisecrowdError, match="interval"):
        krippendorff_alpha(numeric)


def test_the_order_of_classes_is_given_or_known() -> None:
    crowd = crowd_of(1)
    names = np.array(["good", "awful", "fair", "poor"])
    named = Crowd.from_frame(crowd.to_frame().assign(label=lambda frame: names[frame["label"].astype(int)]))
    ordered = [names[place] for place in range(4)]
    assert float(krippendorff_alpha(named, "ordinal", order=ordered)) == pytest.approx(
        float(krippendorff_alpha(crowd, "ordinal"))
    )
    with pytest.raises(WisecrowdError, match="pass order, such as"):
        krippendorff_alpha(named, "ordinal")
    with pytest.raises(WisecrowdError, match="missing 'poor'"):
        krippendorff_alpha(named, "ordinal", order=ordered[:3])


def test_fleiss_is_that_of_statsmodels() -> None:
    theirs = pytest.importorskip("statsmodels.stats.inter_rater", reason="statsmodels is not installed")
    crowd = crowd_of(5, density=1.1)
    assert float(fleiss_kappa(crowd)) == pytest.approx(theirs.fleiss_kappa(crowd.vote_counts), abs=1e-12)
    with pytest.raises(WisecrowdError, match="use krippendorff_alpha instead"):
        fleiss_kappa(crowd_of(5, density=0.5))


def test_cohen_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import cohen_kappa_score

    crowd = crowd_of(6, density=0.7)
    table, found = matrix_of(crowd), cohen_kappas(crowd)
    assert len(found) == 21
    for row in found.itertuples():
        both = np.isfinite(table[row.first]) & np.isfinite(table[row.second])
        assert row.common == both.sum()
        assert row.agreement == pytest.approx((table[row.first] == table[row.second]).sum() / both.sum())
        assert row.kappa == pytest.approx(cohen_kappa_score(table[row.first][both], table[row.second][both]), abs=1e-12)
    assert (cohen_kappas(crowd, min_common=35)["common"] >= 35).all()


def test_ac1_by_hand() -> None:
    """Three tasks of two votes: agree, agree, differ; shares 2/3 and 1/3 → P_e = 4/9."""
    votes = [(1, "a", "x"), (1, "b", "x"), (2, "a", "x"), (2, "b", "x"), (3, "a", "x"), (3, "b", "y")]
    shares = np.array([5 / 6, 1 / 6])
    expected = (shares * (1 - shares)).sum()
    assert float(gwet_ac1(Crowd.from_triples(votes))) == pytest.approx((2 / 3 - expected) / (1 - expected))


def test_intervals_cover() -> None:
    """Of 40 crowds of one kind, a 90 % interval misses the value of a large one rarely."""
    large = float(krippendorff_alpha(crowd_of(0, n_tasks=20_000)))
    within = 0
    for seed in range(40):
        found = krippendorff_alpha(crowd_of(seed + 100), interval=0.9, repeats=300)
        assert found.low is not None
        assert found.high is not None
        assert found.low < float(found) < found.high
        within += found.low <= large <= found.high
    assert 30 <= within <= 40


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = crowd_of(2)
    before = [
        float(part) for part in (krippendorff_alpha(crowd), krippendorff_alpha(crowd, "ordinal"), gwet_ac1(crowd))
    ]
    monkeypatch.setattr(agreement, "MAX_CELLS", 20)
    after = [float(part) for part in (krippendorff_alpha(crowd), krippendorff_alpha(crowd, "ordinal"), gwet_ac1(crowd))]
    assert after == pytest.approx(before, abs=1e-12)


def test_counts_without_workers_and_filled_votes() -> None:
    crowd = crowd_of(4)
    assert float(krippendorff_alpha(crowd.drop_workers())) == pytest.approx(float(krippendorff_alpha(crowd)))
    filled = Crowd.from_codes(
        [*crowd.task, 0], [*crowd.worker, 0], [*crowd.label, 0], observed=[True] * crowd.n_votes + [False],
        tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes, duplicates="keep",
    )  # fmt: skip
    assert krippendorff_alpha(filled) == krippendorff_alpha(crowd)


def test_what_cannot_be_told_is_not_a_number() -> None:
    alone = Crowd.from_triples([(task, task, "x") for task in range(5)])
    assert np.isnan(float(krippendorff_alpha(alone)))
    unanimous = Crowd.from_triples([(task, worker, "x") for task in range(5) for worker in "ab"])
    assert np.isnan(float(krippendorff_alpha(unanimous)))
    with pytest.raises(WisecrowdError, match="interval must lie"):
        krippendorff_alpha(unanimous, interval=95)


#: Ratings of two raters, with kappas of scikit-learn's cohen_kappa_score by weights.
FIRST, SECOND = [1, 2, 3, 4, 5, 3, 2, 1, 4, 5, 2, 3], [1, 3, 3, 5, 4, 2, 2, 2, 4, 4, 1, 3]
SKLEARN_KAPPAS = {None: 0.26315789473684215, "linear": 0.5922330097087378, "quadratic": 0.8189655172413793}


@pytest.mark.parametrize("weights", SKLEARN_KAPPAS)
def test_weighted_kappa_equals_scikit_learn(weights: Any) -> None:
    votes = [(task, rater, row[task]) for rater, row in (("a", FIRST), ("b", SECOND)) for task in range(12)]
    votes += [(task, "c", 1) for task in range(12, 20)]
    crowd = Crowd.from_triples(votes, ordered=True, classes=[1, 2, 3, 4, 5, 6])
    table = cohen_kappas(crowd, weights=weights)
    assert table["kappa"].tolist() == pytest.approx([SKLEARN_KAPPAS[weights]])


def test_weighted_kappa_of_many_pairs_equals_scikit_learn() -> None:
    from sklearn.metrics import cohen_kappa_score

    crowd = simulate_ratings(n_tasks=60, n_workers=6, n_classes=4, votes_per_task=4, random_state=0).crowd
    wide = crowd.to_frame().pivot(index="task", columns="worker", values="label")
    for weights in ("linear", "quadratic"):
        for row in cohen_kappas(crowd, weights=weights).itertuples():  # type: ignore[arg-type]
            both = wide[[row.first, row.second]].dropna()
            expected = cohen_kappa_score(both[row.first], both[row.second], weights=weights, labels=[1, 2, 3, 4])
            assert row.kappa == pytest.approx(expected)


def test_weighted_kappa_needs_an_order() -> None:
    with pytest.raises(InputError, match="--ordered --classes low,middle,high"):
        cohen_kappas(Crowd.from_triples([("t", "a", "x"), ("t", "b", "y")]), weights="linear")


def test_ordinal_alpha_follows_the_order_of_the_crowd() -> None:
    names = ["poor", "fair", "good"]
    votes = [(task, rater, names[(task + (rater == "b" and task % 4 == 0)) % 3]) for task in range(9) for rater in "ab"]
    ordered = krippendorff_alpha(Crowd.from_triples(votes, ordered=True, classes=names), "ordinal")
    assert ordered == krippendorff_alpha(Crowd.from_triples(votes), "ordinal", order=names)
