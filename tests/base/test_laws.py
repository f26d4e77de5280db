"""Every law is broken by some careless method, and find_broken_laws names it."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from wisecrowd import MajorityVote, TwoStage
from wisecrowd.base.fields import fitted, method_class
from wisecrowd.base.laws import LAWS, LEARNER_LAWS, find_broken_laws, get_laws
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.engines import Chunk
from wisecrowd.errors import WisecrowdError

RNG = np.random.default_rng(0)
TASK, WORKER = np.nonzero(RNG.random((20, 7)) < 0.7)
CROWD = Crowd.from_codes(
    TASK, WORKER, RNG.integers(3, size=len(TASK)), tasks=[f"t{n:02d}" for n in range(20)],
    workers=[f"w{n}" for n in range(7)], classes=["c0", "c1", "c2"],
)  # fmt: skip
#: The saved folder of a class that no file of wisecrowd defines cannot be loaded.
UNREGISTERED = {"copies_are_equal"}


class SoftVote(MajorityVote):
    """Vote shares; the careless methods below differ in one point each."""

    def _compute_chunk_posterior(self, chunk: Chunk) -> NDArray[np.float64]:
        return self._change(super()._compute_chunk_posterior(chunk), chunk)

    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        return posterior


def keep_gold(posterior: Any, chunk: Chunk) -> Any:
    if chunk.gold is not None:
        known = chunk.gold >= 0
        posterior[known] = np.eye(posterior.shape[1])[chunk.gold[known]]
    return posterior


class CountsFits(SoftVote):
    count: ClassVar = itertools.count()

    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        noise = np.random.default_rng(next(self.count)).random(posterior.shape[1])
        return keep_gold(0.9 * posterior + 0.1 * noise / noise.sum(), chunk)


class TrustsTheFirstWorker(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        mine = chunk.crowd.worker == 0
        posterior[chunk.crowd.task[mine]] = np.eye(posterior.shape[1])[chunk.crowd.label[mine]]
        return keep_gold(posterior, chunk)


class LooksAtTaskNames(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        odd = np.array([len(str(task)) + int(str(task)[-1]) for task in chunk.crowd.tasks]) % 2 == 1
        posterior[odd] = posterior[odd] ** 2 / (posterior[odd] ** 2).sum(axis=1, keepdims=True)
        return keep_gold(posterior, chunk)


class PrefersTheFirstClass(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        return keep_gold(np.eye(posterior.shape[1])[posterior.argmax(axis=1)], chunk)


class SumsToTwo(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        return 2 * posterior


class SetsAnUndeclaredAttribute(SoftVote):
    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        super()._fit(crowd, gold, X=X, start=start)
        self.extra_ = 1


class TakesTheMinority(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        opposite = 1 - posterior
        return keep_gold(opposite / opposite.sum(axis=1, keepdims=True).clip(1e-9), chunk)


class DependsOnTheNumberOfTasks(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        share = 1 / (2 + chunk.crowd.n_tasks)
        return keep_gold((1 - share) * posterior + share / posterior.shape[1], chunk)


class CountsRowsWithTheSquareRootOfWeights(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        crowd, counts = chunk.crowd, np.full(posterior.shape, 1e-9)
        np.add.at(counts, (crowd.task, crowd.label), np.sqrt(crowd.weight))
        pseudo_votes = counts + 1
        return keep_gold(pseudo_votes / pseudo_votes.sum(axis=1, keepdims=True), chunk)


class ChangesItsParameters(SoftVote):
    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        super()._fit(crowd, gold, X=X, start=start)
        self.random_state += 1


class IgnoresGold(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        return compute_vote_shares(chunk.crowd)


@method_class
class Worsens(SoftVote):
    trace_: NDArray[np.float64] = fitted(help="Objective by iteration.")

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        super()._fit(crowd, gold, X=X, start=start)
        self.trace_ = np.array([-3.0, -2.0, -2.5])


class ForgetsShards(SoftVote):
    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        super()._fit(crowd, gold, X=X, start=start)
        if isinstance(crowd, ShardedCrowd):
            self.tally_ = self.tally_ / 2 + 1


class TakesFeaturesByPosition(SoftVote):
    uses_features: ClassVar[bool] = True

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        self._first_feature = np.asarray(X)[: crowd.n_tasks, 0]
        super()._fit(crowd, gold, X=X, start=start)

    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        weight = 1 / (1 + np.exp(-self._first_feature[: len(posterior), None]))
        return keep_gold(weight * posterior + (1 - weight) / posterior.shape[1], chunk)


class DividesByTheNumberOfOtherClasses(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return posterior * (np.float64(posterior.shape[1] - 1) / (posterior.shape[1] - 1))


class SquaresWeights(SoftVote):
    def _change(self, posterior: Any, chunk: Chunk) -> Any:
        crowd, scale = chunk.crowd, 1e300
        heavy = np.bincount(crowd.task, crowd.weight, minlength=crowd.n_tasks)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            product = heavy * scale
            return posterior * product / product


CARELESS = {
    "row_order_is_irrelevant": CountsFits,
    "worker_names_do_not_matter": TrustsTheFirstWorker,
    "task_names_do_not_matter": LooksAtTaskNames,
    "class_names_do_not_matter": PrefersTheFirstClass,
    "posteriors_are_distributions": SumsToTwo,
    "fitted_attributes_are_declared": SetsAnUndeclaredAttribute,
    "unanimity_wins": TakesTheMinority,
    "an_unlabelled_task_changes_nothing": DependsOnTheNumberOfTasks,
    "a_double_weight_is_a_repeated_row": CountsRowsWithTheSquareRootOfWeights,
    "extreme_weights_give_finite_results": SquaresWeights,
    "input_is_unchanged": ChangesItsParameters,
    "same_seed_same_bits": CountsFits,
    "copies_are_equal": SoftVote,
    "gold_is_kept": IgnoresGold,
    "the_objective_never_falls": Worsens,
    "chunks_change_nothing": ForgetsShards,
    "features_meet_tasks_by_id": TakesFeaturesByPosition,
    "degenerate_crowds_are_handled": DividesByTheNumberOfOtherClasses,
}


def test_there_is_a_careless_method_for_every_law() -> None:
    assert set(CARELESS) == set(LAWS)


@pytest.mark.parametrize("law", CARELESS)
def test_the_careless_method_is_caught(law: str) -> None:
    with pytest.raises((AssertionError, WisecrowdError)):
        LAWS[law](CARELESS[law](), CROWD)


def test_a_careful_method_breaks_no_law() -> None:
    assert set(find_broken_laws(SoftVote(), CROWD)) == UNREGISTERED


def test_laws_that_a_method_declares_to_break_are_not_reported() -> None:
    assert "class_names_do_not_matter" in find_broken_laws(PrefersTheFirstClass(), CROWD)

    class Honest(PrefersTheFirstClass):
        breaks: ClassVar = {"class_names_do_not_matter": "ties go to the first class"}

    assert "class_names_do_not_matter" not in find_broken_laws(Honest(), CROWD)


def test_an_unexpected_error_breaks_a_law() -> None:
    class Crashes(SoftVote):
        def _change(self, posterior: Any, chunk: Chunk) -> Any:
            raise ZeroDivisionError("an accident")

    assert find_broken_laws(Crashes(), CROWD)["unanimity_wins"] == "ZeroDivisionError: an accident"


class TestLearners:
    def test_learners_obey_more_laws(self) -> None:
        assert get_laws(TwoStage) == LAWS | LEARNER_LAWS
        assert get_laws(MajorityVote()) == LAWS

    def test_a_prediction_that_depends_on_other_rows_is_caught(self) -> None:
        class Peeks(TwoStage):
            def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
                return super()._predict_proba(X - X.mean(axis=0))

        with pytest.raises(AssertionError, match="predicting one task at a time"):
            LEARNER_LAWS["rows_are_predicted_one_by_one"](Peeks(aggregator="majority-vote"), CROWD)

    def test_a_prediction_that_overflows_is_caught(self) -> None:
        class Overflows(TwoStage):
            def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
                scores = np.exp(np.minimum(X[:, :3] * 1e-3, 800))
                with np.errstate(over="ignore", invalid="ignore"):
                    return scores / scores.sum(axis=1, keepdims=True)

        with np.errstate(over="ignore"), pytest.raises(AssertionError, match="a prediction is not finite"):
            LEARNER_LAWS["predictions_are_distributions"](Overflows(aggregator="majority-vote"), CROWD)


def test_features_reach_methods_as_a_table_by_task() -> None:
    received = []

    class Records(SoftVote):
        uses_features: ClassVar[bool] = True

        def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
            received.append(X)
            super()._fit(crowd, gold, X=X, start=start)

    LAWS["posteriors_are_distributions"](Records(), CROWD)
    assert isinstance(received[0], pd.DataFrame)
    assert received[0].index.equals(CROWD.tasks)
