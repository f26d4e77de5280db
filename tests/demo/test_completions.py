"""Completers of the demo."""

from __future__ import annotations

from typing import Any

import pytest

from wisecrowd import DawidSkene, MajorityVote, find, methods
from wisecrowd.demo.completions import Completion, Completions, get_quick_completer_settings, run_completions
from wisecrowd.demo.digits import make_digits_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics


@pytest.mark.slow
def test_completions_are_what_aggregators_make_of_them() -> None:
    digits = make_digits_crowd()
    crowd, truth = digits.simulation.crowd, digits.simulation.truth
    completions = run_completions(digits, only=["gmv", "ds-fill", "ldplc"])
    assert completions.before["dawid-skene"] == metrics.accuracy(truth, DawidSkene().fit(crowd))
    assert completions.declined == {}
    table = completions.table()
    assert table.index[0] == "nothing"
    assert table["majority-vote"].iloc[1:].is_monotonic_decreasing
    for entry in completions.entries:
        kind: Any = find(entry.method)
        filled = kind().complete(crowd, digits.features if kind.uses_features else None)
        assert entry.accuracy["majority-vote"] == metrics.accuracy(truth, MajorityVote().fit(filled))
    words = completions.describe(1797)
    assert words.startswith("From votes alone, completion does not help dawid-skene. With the pixels as features, ")
    assert words.endswith("with ldplc.")


def test_completers_that_do_not_run_out_of_the_box_are_told() -> None:
    for name in methods("complete"):
        settings = get_quick_completer_settings(name)
        entry = Completion(find(name)(**settings), {}, 0.0)  # type: ignore[arg-type]
        assert bool(Completions({}, [entry], {}).footnotes()) == bool(settings)


def test_a_completer_that_declines_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def decline(*_: object) -> None:
        raise UsageError("not today")

    monkeypatch.setattr(find("gmv"), "_fit", decline)
    assert run_completions(make_digits_crowd(), only=["gmv"]).declined == {"gmv": "not today"}
