"""Medoids: the text of a worker as written, nearest to the others."""

from __future__ import annotations

import pytest

from wisecrowd import TextMedoid, compute_error_rates, simulate_texts
from wisecrowd.errors import UsageError


def test_the_nearest_text_is_returned_as_written() -> None:
    votes = {"task": ["t"] * 3, "worker": list("abc"), "text": ["Hello, World!", "hello world", "help the word"]}
    fitted = TextMedoid(weighted=False).fit(votes)
    assert fitted.texts_["t"] in ("Hello, World!", "hello world")
    assert fitted.tasks_["confidence"]["t"] == pytest.approx(2 / 3)


def test_reliable_workers_count_more() -> None:
    simulation = simulate_texts(n_tasks=200, votes_per_task=4, accuracy=0.6, worker_spread=2.0, random_state=1)
    weighted, plain = (TextMedoid(weighted=flag).fit(simulation.crowd) for flag in (True, False))
    rates = [compute_error_rates(fitted.texts_, simulation.truth).mean() for fitted in (weighted, plain)]
    assert rates[0] < rates[1]
    assert weighted.workers_["accuracy"].corr(simulation.workers["accuracy"]) > 0.9
    with pytest.raises(UsageError, match="shrinkage"):
        TextMedoid(shrinkage=-1.0).fit(simulation.crowd)
