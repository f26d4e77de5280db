"""DSFill against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import DawidSkene, DSFill, OneCoin, simulate_crowd
from wisecrowd.errors import UsageError


@pytest.mark.parametrize("aggregator", ["dawid-skene", OneCoin()], ids=["by name", "as an object"])
def test_it_is_the_posterior_times_the_matrix(aggregator: object) -> None:
    crowd = simulate_crowd(n_tasks=40, n_workers=6, n_classes=3, votes_per_task=3).crowd
    fitted = (OneCoin() if isinstance(aggregator, OneCoin) else DawidSkene()).fit(crowd)
    said = DSFill(aggregator=aggregator).fit(crowd).predict_worker_proba()
    for task in range(40):
        for worker in range(6):
            wanted = sum(fitted.posterior_[task, k] * fitted.confusion_[worker, k] for k in range(3))
            assert np.allclose(said[task, worker], wanted)


def test_a_bias_is_imitated_and_not_mended() -> None:
    made = simulate_crowd(n_tasks=400, n_workers=6, n_classes=2, votes_per_task=5, workers={"expert(0.95)": 1.0})
    crowd = made.crowd
    label = np.where(crowd.worker == 0, 1 - crowd.label, crowd.label)  # the first worker says the opposite
    swapped = type(crowd).from_codes(
        crowd.task, crowd.worker, label, tasks=crowd.tasks, workers=crowd.workers, classes=crowd.classes
    )
    filled = DSFill().complete(swapped)
    hers = (filled.worker == 0) & ~filled.observed
    truth = crowd.classes.get_indexer(made.truth)[filled.task[hers]]
    assert (filled.label[hers] != truth).mean() > 0.9


def test_the_aggregator_that_was_given_is_not_touched() -> None:
    mine = DawidSkene()
    DSFill(aggregator=mine).fit(simulate_crowd(n_tasks=20, n_workers=4).crowd)
    assert not hasattr(mine, "posterior_")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("median", "median is an aggregator of numeric labels, not of classes; expected .* 'dawid-skene'"),
        ("wslc", "'wslc' is not an aggregator; expected .* 'dawid-skene'"),
        (3, "3 is not an aggregator"),
        ("dawid-skeen", "no method is called 'dawid-skeen'. Did you mean 'dawid-skene'?"),
    ],
)
def test_only_an_aggregator_of_classes_will_do(other: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DSFill(aggregator=other).fit(simulate_crowd(n_tasks=20, n_workers=4).crowd)
