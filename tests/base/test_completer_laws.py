"""Laws of completers catch careless completers."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd import GMV, Crowd
from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.completer_laws import COMPLETER_LAWS

RNG = np.random.default_rng(1)
TASK, WORKER = np.nonzero(RNG.random((12, 6)) < 0.5)
CROWD = Crowd.from_codes(
    TASK, WORKER, RNG.integers(3, size=len(TASK)), tasks=[f"t{n:02d}" for n in range(12)],
    workers=[f"w{n}" for n in range(6)], classes=["a", "b", "c"],
)  # fmt: skip


class Shares(Completer):
    """Predicts the shares of votes in the whole crowd for everybody; the careless ones below differ in one point each."""

    def _fit(self, crowd: Crowd, X: Any) -> None:
        counts = np.bincount(crowd.label, minlength=crowd.n_classes)
        self.shares = counts / counts.sum()

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        return WorkerLabelProbs(self._change(np.tile(self.shares, (len(tasks), len(workers), 1)), tasks, workers))

    def _change(self, probs: Any, tasks: Any, workers: Any) -> Any:
        return probs


class Favours(Shares):
    """Moves probability to the first class where some mask says so."""

    def _change(self, probs: Any, tasks: Any, workers: Any) -> Any:
        mask = np.broadcast_to(self._favours(tasks, workers), probs.shape[:2])
        probs[mask] = probs[mask] / 2
        probs[mask, 0] += 0.5
        return probs

    def _favours(self, tasks: Any, workers: Any) -> Any:
        raise NotImplementedError


class FavoursTheFirstWorker(Favours):
    def _favours(self, tasks: Any, workers: Any) -> Any:
        return (workers == 0)[None, :]


class FavoursTheFirstTask(Favours):
    def _favours(self, tasks: Any, workers: Any) -> Any:
        return (tasks == 0)[:, None]


class FavoursTheFirstClass(Favours):
    def _favours(self, tasks: Any, workers: Any) -> Any:
        return True


class FavoursTheFirstOfAChunk(Favours):
    def _favours(self, tasks: Any, workers: Any) -> Any:
        return (np.arange(len(tasks)) == 0)[:, None]


class DiffersEveryTime(Favours):
    count: ClassVar = itertools.count()

    def _favours(self, tasks: Any, workers: Any) -> Any:
        return next(self.count) % 2 == 0


class DoesNotSumToOne(Shares):
    def _change(self, probs: Any, tasks: Any, workers: Any) -> Any:
        return 2 * probs


class ChangesVotes(Shares):
    def fill(self) -> Crowd:
        filled = super().fill()
        return Crowd.from_codes(
            filled.task, filled.worker, (filled.label + 1) % filled.n_classes, observed=filled.observed, weight=filled.weight,
            tasks=filled.tasks, workers=filled.workers, classes=filled.classes, duplicates="keep",
        )  # fmt: skip


class ForgetsLimits(Shares):
    def fill(self) -> Crowd:
        self.min_votes = 0
        return super().fill()


class FillsTwice(Shares):
    def fill(self) -> Crowd:
        filled = super().fill()
        return Crowd.concat([filled, filled[:1]], duplicates="keep")


class ExpectsTooMuch(Shares):
    def expected_votes(self) -> Any:
        return 1.1 * super().expected_votes()


class MultipliesWeights(Shares):
    def _fit(self, crowd: Crowd, X: Any) -> None:
        super()._fit(crowd, X)
        with np.errstate(over="ignore", invalid="ignore"):
            product = crowd.weight.sum() * 1e300
            self.shares = self.shares * product / product


class FailsOnOneClass(Shares):
    def _fit(self, crowd: Crowd, X: Any) -> None:
        super()._fit(crowd, X)
        if crowd.n_classes == 1:
            raise ZeroDivisionError


CARELESS = [
    ("extreme_weights_give_finite_results", MultipliesWeights),
    ("observed_votes_stay", ChangesVotes),
    ("filled_votes_are_new_and_marked", FillsTwice),
    ("soft_votes_add_up", ExpectsTooMuch),
    ("label_probs_are_distributions", DoesNotSumToOne),
    ("chunks_change_nothing", FavoursTheFirstOfAChunk),
    ("workers_with_few_votes_are_left_out", ForgetsLimits),
    ("worker_names_do_not_matter", FavoursTheFirstWorker),
    ("task_names_do_not_matter", FavoursTheFirstTask),
    ("class_names_do_not_matter", FavoursTheFirstClass),
    ("same_seed_same_bits", DiffersEveryTime),
    ("row_order_is_irrelevant", DiffersEveryTime),
    ("completing_again_changes_nothing", ChangesVotes),
    ("degenerate_crowds_are_handled", FailsOnOneClass),
]


def test_there_is_a_careless_completer_for_every_law() -> None:
    assert {law for law, _ in CARELESS} == set(COMPLETER_LAWS) - {"copies_are_equal"}


@pytest.mark.parametrize(("law", "completer"), CARELESS)
def test_the_careless_completer_is_caught(law: str, completer: type[Completer]) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        COMPLETER_LAWS[law](completer(), CROWD)


@pytest.mark.parametrize("law", [law for law in COMPLETER_LAWS if law != "copies_are_equal"])
def test_the_careful_completer_is_not(law: str) -> None:
    """A class of a test cannot be loaded, so that its copies are not tried."""
    COMPLETER_LAWS[law](Shares(), CROWD)


def test_copies_of_a_completer_are_equal() -> None:
    COMPLETER_LAWS["copies_are_equal"](GMV(), CROWD)
