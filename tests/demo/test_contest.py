"""Methods of the demo, ranked by the known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import EBCC, MajorityVote, find
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo import Demo
from wisecrowd.demo.contest import REASONS, SETTINGS, Contest, Entry, run_contest
from wisecrowd.demo.digits import DigitsCrowd, make_digits_crowd
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics


@pytest.mark.slow
def test_the_table_says_what_the_metrics_say(demo: Demo) -> None:
    table = demo.contest.table()
    assert table["accuracy"].is_monotonic_decreasing
    fitted = MajorityVote().fit(demo.crowd)
    assert table.loc["majority-vote", "accuracy"] == metrics.accuracy(demo.simulation.truth, fitted)
    assert table.loc["majority-vote", "log_loss"] == metrics.log_loss(demo.simulation.truth, fitted)
    assert table.loc["dawid-skene", "accuracy"] > table.loc["majority-vote", "accuracy"] + 0.1


def test_agreement_is_symmetric_and_counts_tasks(demo: Demo) -> None:
    agreement = demo.contest.agreement()
    assert (np.diag(agreement) == 1).all()
    pd.testing.assert_frame_equal(agreement, agreement.T, check_names=False)
    fitted = {entry.method: entry.fitted for entry in demo.contest.entries}
    same = (fitted["dawid-skene"].labels_ == fitted["one-coin"].labels_).mean()
    assert agreement.loc["dawid-skene", "one-coin"] == pytest.approx(same)


def test_a_method_that_declines_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.demo import contest

    def decline(method: type[Aggregator], demo: DigitsCrowd) -> Aggregator:
        if method.name == "one-coin":
            raise UsageError("not today")
        return contest._aggregate(method, demo)

    monkeypatch.setitem(contest.RUNNERS, "aggregate", decline)
    completions = run_contest(make_digits_crowd(), only=["majority-vote", "one-coin"])
    assert completions.declined == {"one-coin": "not today"}
    assert [entry.method for entry in completions.entries] == ["majority-vote"]


@pytest.mark.slow
def test_learners_see_the_pixels() -> None:
    completions = run_contest(make_digits_crowd(), only=["dawid-skene", "majority-vote", "raykar"])
    table = completions.table()
    assert table["kind"].to_dict() == {"raykar": "learn", "dawid-skene": "aggregate", "majority-vote": "aggregate"}
    assert table.loc["raykar", "accuracy"] > table.loc["dawid-skene", "accuracy"] + 0.1
    gain = round((table.loc["raykar", "accuracy"] - table.loc["dawid-skene", "accuracy"]) * 1797)
    assert completions.describe(1797).endswith(
        f"With the pixels as features, raykar gets {gain} more tasks right than that."
    )


def test_an_aggregator_that_looks_at_pictures_is_not_said_to_have_seen_votes_alone() -> None:
    completions = run_contest(make_digits_crowd(), only=["majority-vote", "dawid-skene", "mnldp"])
    assert [entry.uses_features for entry in completions.entries] == [True, False, False]
    assert completions.describe(1797).startswith("From the same votes, dawid-skene gets")
    assert " With the pixels as features, mnldp gets" in completions.describe(1797)


def test_what_does_no_better_than_guessing_gets_its_reason(demo: Demo) -> None:
    assert demo.contest.footnotes(10) == []
    fitted = demo.contest.entries[0].fitted
    bad = Contest([Entry(fitted, 0.1, 2.3, 0.0)], {})
    [note] = bad.footnotes(10)
    assert note.startswith(f"{fitted.name} does no better than guessing (10%)")
    assert note.endswith(f"wisecrowd methods {fitted.name}")
    assert bad.footnotes(20) == []


def test_what_is_not_out_of_the_box_is_told() -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "dog")])
    notes = Contest([Entry(EBCC(**SETTINGS["ebcc"]).fit(crowd), 0.9, 0.3, 0.0)], {}).footnotes(2)
    assert notes == ["ebcc ran with -p n_init=5 to save time (default: 40)."]


def test_settings_and_reasons_are_of_methods_that_exist() -> None:
    for name, settings in SETTINGS.items():
        find(name)(**settings)
    for name in REASONS:
        find(name)
