"""Fitting of aggregators, and their results on engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold

from wisecrowd import KOS, Crowd, DawidSkene, MajorityVote, Median, methods, simulate_crowd
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import method_class
from wisecrowd.engines import LocalEngine
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples(
    [(f"t{task}", f"w{worker}", "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)]
)


@method_class
class Recorder(Aggregator):
    """Records the arguments of `_fit` and gives every task the first class."""

    uses_features: ClassVar[bool] = True

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        self.arguments = (crowd, gold, X, start)
        self._set_fitted(
            crowd, np.eye(crowd.n_classes)[np.zeros(crowd.n_tasks, dtype=int)], np.zeros((len(crowd.pairs), 2))
        )


def test_arguments_are_prepared_for_the_method() -> None:
    table = pd.DataFrame({"x": range(6)}, index=CROWD.tasks)
    start = np.ones((6, 2))
    method = Recorder().fit(CROWD.to_frame(), table, truth={"t2": "b"}, start=start)
    crowd, gold, X, given_start = method.arguments
    assert crowd == CROWD
    assert gold.tolist() == [-1, -1, 1, -1, -1, -1]
    assert X is table
    assert given_start is start
    assert method.n_votes_ == 18


def test_without_truth_there_is_no_gold() -> None:
    assert Recorder().fit(CROWD).arguments[1] is None


def test_features_are_refused_where_they_are_not_used() -> None:
    with pytest.raises(UsageError, match="MajorityVote does not use features; leave X out"):
        MajorityVote().fit(CROWD, np.ones((6, 1)))


def test_shards_are_refused_where_the_method_does_not_stream(tmp_path: Path) -> None:
    assert not KOS.streams
    with pytest.raises(UsageError, match="shards"):
        KOS().fit(CROWD.to_shards(tmp_path / "crowd"))


def test_fit_predict_gives_labels_and_posterior() -> None:
    fitted = MajorityVote().fit(CROWD)
    assert MajorityVote().fit_predict(CROWD).equals(fitted.labels_)
    assert MajorityVote().fit_predict_proba(CROWD, truth={"t1": "a"}).loc["t1"].tolist() == [1, 0]


def test_the_type_of_a_parameter_is_checked_before_the_fit() -> None:
    with pytest.raises(UsageError, match="max_iter"):
        DawidSkene(max_iter="many").fit(CROWD)  # type: ignore[arg-type]


class TestResultsFromAnEngine:
    @pytest.mark.parametrize("given", [False, True])
    def test_tally_is_computed_unless_it_is_given(self, given: bool, tmp_path: Path) -> None:
        expected = MajorityVote().fit(CROWD)
        tally = np.full_like(expected.tally_, 7.0) if given else None
        for crowd in (CROWD, CROWD.to_shards(tmp_path / "crowd", votes_per_shard=6)):
            fitted = MajorityVote().fit(crowd)
            if isinstance(crowd, Crowd):
                fitted._set_fitted_from_engine(LocalEngine(crowd), fitted._compute_chunk_posterior, tally=tally)
            np.testing.assert_allclose(fitted.posterior_, expected.posterior_)
            if tally is None:
                np.testing.assert_allclose(fitted.tally_, expected.tally_)
            elif isinstance(crowd, Crowd):
                assert fitted.tally_ is tally

    def test_the_posterior_of_shards_is_computed_on_access(self, tmp_path: Path) -> None:
        fitted = MajorityVote().fit(CROWD.to_shards(tmp_path / "crowd", votes_per_shard=6))
        assert "posterior_" not in vars(fitted)
        assert fitted.labels_.equals(MajorityVote().fit(CROWD).labels_)


MADE = simulate_crowd(240, 10, 3, votes_per_task=4, workers={"expert": 3, "noisy": 5, "spammer": 2}, random_state=1)


def test_the_score_is_the_log_probability_of_new_votes() -> None:
    training, new = MADE.crowd[:160], MADE.crowd[160:]
    fitted = DawidSkene(smoothing=1.0).fit(training)
    total = 0.0
    for task in range(new.n_tasks):
        rows = np.flatnonzero(new.task == task)
        joint = fitted.prior_ * np.prod(fitted.confusion_[new.worker_codes[rows], :, new.label[rows]], axis=0)
        total += np.log(joint.sum())
    assert fitted.score(new) == pytest.approx(total / new.n_votes, abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "majority-vote",
        "dawid-skene",
        "model-average",
        "glad",
        "one-coin",
        "wawa",
        pytest.param("ebcc", marks=pytest.mark.slow),
    ],
)
def test_a_model_predicts_new_votes_better_than_chance(name: str) -> None:
    fitted = methods("aggregate")[name]().fit(MADE.crowd[:160])
    score = fitted.score(MADE.crowd[160:])
    counts = np.bincount(MADE.crowd.label)
    shares = counts / counts.sum()
    assert (shares * np.log(shares)).sum() < score < 0


def test_the_score_chooses_parameters_by_heldout_votes() -> None:
    search = GridSearchCV(DawidSkene(), {"smoothing": [1e-6, 1.0, 300.0]}, cv=3, error_score="raise").fit(MADE.crowd)
    assert search.best_params_ == {"smoothing": 1.0}
    assert search.best_estimator_.labels_.shape == (240,)
    by_hand = []
    for train, test in KFold(3).split(np.zeros(240)):
        by_hand.append(DawidSkene(smoothing=1.0).fit(MADE.crowd[train]).score(MADE.crowd[test]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_new_workers_texts_for_numbers_and_missing_ids_are_scored() -> None:
    votes = [(task, worker, (task + (worker == 2)) % 2) for task in range(12) for worker in range(3)]
    fitted = DawidSkene().fit(Crowd.from_triples(votes))
    expected = fitted.score(Crowd.from_triples([(99, 0, 1), (99, 1, 1)]))
    assert fitted.score(Crowd.from_triples([("99", "0", "1"), ("99", "1", "1")])) == pytest.approx(expected)
    assert fitted.score(Crowd.from_triples([(99, 77, 1), (99, 78, 1)])) < expected
    counts = MajorityVote().fit(MADE.crowd.drop_workers())
    assert -1.2 < counts.score(MADE.crowd.drop_workers()[:50]) < 0


def test_votes_that_cannot_be_scored_are_refused() -> None:
    fitted = DawidSkene().fit(MADE.crowd)
    with pytest.raises(InputError, match="classes that the fit did not know: 'c9'"):
        fitted.score(Crowd.from_triples([("t", "w", "c9")]))
    with pytest.raises(UsageError, match="not fitted"):
        DawidSkene().score(MADE.crowd)
    numbers = Crowd.from_triples([("t", "a", 0.5), ("t", "b", 0.7)], numeric=True)
    with pytest.raises(UsageError, match="score needs class labels"):
        Median().fit(numbers).score(numbers)
    with pytest.raises(UsageError, match="Known truth is given as truth="):
        GridSearchCV(DawidSkene(), {"smoothing": [1.0]}, cv=3, error_score="raise").fit(MADE.crowd, MADE.truth)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_scorers_by_name_are_explained() -> None:
    from sklearn.model_selection import GridSearchCV

    from wisecrowd import OneCoin, simulate_crowd

    simulation = simulate_crowd(n_tasks=30, n_workers=6, n_classes=2, votes_per_task=4, random_state=0)
    crowd, truth = simulation.crowd, simulation.truth
    search = GridSearchCV(OneCoin(), {"max_iter": [200, 300]}, cv=3, scoring="accuracy")
    with pytest.raises(ValueError, match=r"leave y and scoring out .*or score by known truth: scoring=lambda"):
        search.fit(crowd, truth[crowd.tasks])
    search.set_params(scoring=lambda model, votes: (model.predict(votes) == truth[votes.tasks]).mean())
    assert 0.5 < search.fit(crowd).best_score_ <= 1
