"""DEWSMV, an experimental reading."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import DEWSMV, Crowd, Wawa
from wisecrowd.aggregate.categorical.dewsmv import _Uncertainty
from wisecrowd.em.poll import Poll
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.simulate import simulate_crowd


def uncertainty(crowd: Crowd, weight: np.ndarray, gold: np.ndarray) -> float:
    """The sum of the docstring, task by task."""
    total = []
    for task in np.unique(crowd.task):
        mine = crowd.task == task
        p = np.bincount(crowd.label[mine], weight[crowd.worker[mine]], crowd.n_classes)
        p = p / p.sum()
        entropy = -sum(x * np.log(x) for x in p if x > 0) / np.log(crowd.n_classes)
        total.append(2 * (1 - p[gold[task]]) if gold[task] >= 0 else 1 - p.max() + entropy)
    return float(np.mean(total))


@given(st.integers(0, 1000), st.booleans())
@settings(max_examples=min(20, settings.default.max_examples))
def test_the_fitness_is_the_sum_it_claims_to_be(seed: int, with_gold: bool) -> None:
    rng = np.random.default_rng(seed)
    crowd = simulate_crowd(12, 5, 3, votes_per_task=3, random_state=seed).crowd
    gold = np.where(rng.random(12) < 0.3, rng.integers(3, size=12), -1) if with_gold else np.full(12, -1)
    fitness = _Uncertainty(Poll(crowd, gold.astype(np.int32) if with_gold else None))
    candidates = rng.uniform(0.1, 1, (5, 4))
    wanted = [uncertainty(crowd, weight, gold) for weight in candidates.T]
    np.testing.assert_allclose(fitness(candidates), wanted)


def test_it_ends_surer_than_where_it_started() -> None:
    made = simulate_crowd(150, 12, 3, votes_per_task=4, random_state=1)
    fitness = _Uncertainty(Poll(made.crowd))
    start = np.clip(Wawa().fit(made.crowd).weight_, 0.1, 1)
    fitted = DEWSMV(max_iter=40).fit(made.crowd)
    assert fitted.uncertainty_ < fitness(start[:, None])[0]
    assert fitted.uncertainty_ == pytest.approx(fitness(fitted.weight_[:, None])[0])
    assert fitted.weight_.min() >= 0.1
    assert fitted.weight_.max() <= 1


def test_longer_searches_find_surer_answers() -> None:
    made = simulate_crowd(150, 12, 2, votes_per_task=5, random_state=2)
    found = [DEWSMV(max_iter=n).fit(made.crowd).uncertainty_ for n in (1, 20, 100)]
    assert found[0] > found[1] > found[2]


def test_guessers_lose_weight() -> None:
    made = simulate_crowd(300, 12, 2, votes_per_task=6, workers={"expert": 6, "spammer": 6}, random_state=3)
    fitted = DEWSMV().fit(made.crowd)
    weight = fitted.workers_["weight"]
    assert weight[made.kind == "expert"].min() > weight[made.kind == "spammer"].max()
    assert accuracy(made.truth, fitted) > 0.95


def test_the_seed_decides_and_a_worker_without_votes_has_no_weight() -> None:
    crowd = Crowd.from_triples([(t, w, (t * w) % 2) for t in range(8) for w in range(3)], workers=range(5))
    one, again, other = (DEWSMV(max_iter=5, random_state=seed).fit(crowd).weight_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one[:3], other[:3])
    assert np.isnan(one[3:]).all()


@pytest.mark.parametrize("bad", [{"floor": 0.0}, {"floor": 1.0}, {"population": 4}, {"max_iter": 0}])
def test_bad_parameters_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(bad))):
        DEWSMV(**bad).fit(Crowd.from_triples([(0, 0, "a")]))


def test_it_says_that_it_is_experimental() -> None:
    assert DEWSMV.summary().endswith("(experimental).")
