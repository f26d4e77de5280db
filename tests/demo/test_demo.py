"""The demo's claims: methods are ranked by truth, and the workers are judged without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import EBCC, DawidSkene, MajorityVote, find, methods, simulate_crowd
from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo import Demo, run_demo
from wisecrowd.demo.completions import Completion, Completions, quick_settings, run_completions
from wisecrowd.demo.contest import REASONS, SETTINGS, Contest, Entry, run_contest
from wisecrowd.demo.copying import compute_pair_agreement, find_copiers
from wisecrowd.demo.crowd import WORKERS, DigitsCrowd, count_kinds, make_digits_crowd
from wisecrowd.demo.run import EXPECTED_FINDINGS, HARMFUL_FINDINGS
from wisecrowd.demo.verdicts import Verdict, describe, rate_workers
from wisecrowd.errors import UsageError
from wisecrowd.evaluate import metrics

SOME = ("dawid-skene", "one-coin", "majority-vote")


@pytest.fixture(scope="module")
def demo() -> Demo:
    """With some methods only; tests/cli/test_demo.py runs the whole."""
    return run_demo(only=SOME)


# ---------------------------------------------------------------------- crowd and contest


def test_the_crowd_is_sparse_and_motley() -> None:
    simulation = make_digits_crowd()
    crowd = simulation.simulation.crowd
    assert crowd.shape == (1797, 40)
    assert set(crowd.votes_per_task) == {3, 4, 5}
    assert simulation.simulation.kind.value_counts().to_dict() == WORKERS
    assert simulation.features.index.equals(simulation.simulation.truth.index)
    assert make_digits_crowd().simulation.crowd == crowd
    assert make_digits_crowd(1).simulation.crowd != crowd


def test_who_enters(demo: Demo) -> None:
    assert {entry.method for entry in demo.contest.entries} == set(SOME)
    with pytest.raises(UsageError, match="dawid-skene"):
        run_demo(only=["one-coin"])


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
        settings = quick_settings(name)
        entry = Completion(find(name)(**settings), {}, 0.0)  # type: ignore[arg-type]
        assert bool(Completions({}, [entry], {}).footnotes()) == bool(settings)


def test_a_completer_that_declines_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def decline(*_: object) -> None:
        raise UsageError("not today")

    monkeypatch.setattr(find("gmv"), "_fit", decline)
    assert run_completions(make_digits_crowd(), only=["gmv"]).declined == {"gmv": "not today"}


# ---------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_hold_for_other_crowds(seed: int) -> None:
    """Not for one lucky crowd only: nearly all who harm are named, and nobody else is."""
    simulation = make_digits_crowd(seed + 10).simulation
    found = pd.Series(
        {one.worker: one.finding for one in rate_workers(simulation.crowd, DawidSkene().fit(simulation.crowd))}
    )
    harmful = simulation.kind.map(lambda kind: EXPECTED_FINDINGS[kind] <= HARMFUL_FINDINGS)
    accused = found.isin(HARMFUL_FINDINGS)
    # A copier may be told from his source by nothing at all, and who copies an expert does little harm.
    assert accused[harmful].sum() >= harmful.sum() - 2
    assert accused[~harmful].sum() <= 1


def test_no_truth_enters_the_verdicts(demo: Demo) -> None:
    """The same votes with every class renamed get the same verdicts: nothing but votes is known."""
    frame = demo.crowd.to_frame()
    frame["label"] = frame["label"].map({str(digit): "abcdefghij"[digit] for digit in range(10)})
    crowd = Crowd.from_frame(frame)
    again = rate_workers(crowd, DawidSkene().fit(crowd))
    assert [(one.worker, one.finding) for one in again] == [(one.worker, one.finding) for one in demo.verdicts]


def test_honest_twins_are_no_copiers() -> None:
    simulation = simulate_crowd(400, workers=["expert"] * 6 + ["noisy"] * 6, votes_per_task=6)
    assert find_copiers(simulation.crowd, DawidSkene().fit(simulation.crowd)) == []


def test_pairs_by_brute_force() -> None:
    simulation = simulate_crowd(40, workers=["noisy"] * 5, votes_per_task=3)
    crowd = simulation.crowd
    fitted = DawidSkene().fit(crowd)
    confusion, posterior = fitted.confusion_, fitted.posterior_
    votes: dict[tuple[int, int], int] = {
        (int(task), int(worker)): int(label)
        for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True)  # type: ignore[arg-type]
    }
    for row in compute_pair_agreement(crowd, fitted).to_dict("records"):
        shared = same = 0
        expected = 0.0
        for task in range(crowd.n_tasks):
            one, other = (votes.get((task, int(row[who]))) for who in ("first", "second"))
            if one is None or other is None:
                continue
            shared, same = shared + 1, same + (one == other)
            mine, yours = confusion[int(row["first"])], confusion[int(row["second"])]
            others = posterior[task] / (mine[:, one] * yours[:, other])
            expected += float((others / others.sum()) @ (mine * yours).sum(axis=1))
        assert (row["shared"], row["same"]) == (shared, same)
        assert row["expected"] == pytest.approx(expected)


def test_few_votes_make_no_reputation() -> None:
    votes = [(task, worker, task % 2) for task in range(30) for worker in ("ann", "bob")] + [
        (0, "new", 1),
        (1, "new", 0),
    ]
    crowd = Crowd.from_triples(votes)
    found = {one.worker: one.finding for one in rate_workers(crowd, DawidSkene().fit(crowd))}
    assert found["new"] == "unknown"
    assert "random" not in found.values()


def test_one_class_that_is_nearly_always_true_is_no_button() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.03
    votes = [
        (task, worker, "rare" if truth[task] else "usual") for task in range(400) for worker in ("ann", "bob", "cy")
    ]
    crowd = Crowd.from_triples(votes)
    assert {one.finding for one in rate_workers(crowd, DawidSkene().fit(crowd))} == {"reliable"}


def test_without_workers_there_is_nobody_to_judge() -> None:
    crowd = Crowd.from_counts([[2, 1]])
    with pytest.raises(UsageError):
        rate_workers(crowd, MajorityVote().fit(crowd))
    with pytest.raises(UsageError):
        find_copiers(crowd, MajorityVote().fit(crowd))


def test_every_finding_has_its_sentence() -> None:
    verdicts = [
        Verdict("w1", "copies", 50, 0.5, "repeats w2"),
        Verdict("w3", "one answer", 50, 0.1, "always says 3"),
        Verdict("w4", "contrary", 50, 0.1, "says 3 for 2"),
        Verdict("w5", "leaning", 50, 0.5, "says 3 in 50%"),
        Verdict("w6", "random", 50, 0.1),
        Verdict("w7", "reliable", 50, 0.95),
        Verdict("w8", "fallible", 50, 0.6),
        Verdict("w9", "unknown", 3, 0.6),
    ]
    lines = describe(verdicts, 10)
    assert len(lines) == len(verdicts)
    assert lines[0] == "w1 repeats w2."
    assert "w6 answers at random: right in 10%, where guessing gives 10%." in lines
    assert "w3 ignores the tasks: w3 always says 3." in lines
    assert lines[-1] == "w9: fewer than 20 votes, too few to tell."
    assert describe([], 10) == []


# ---------------------------------------------------------------------- the check


def test_the_check_counts_against_the_known_kinds(demo: Demo) -> None:
    check = demo.check()
    assert check["workers"].to_dict() == WORKERS
    assert (check["right"] <= check["workers"]).all()
    missed = check["workers"] - check["right"]
    assert all(bool(text) == bool(n) for text, n in zip(check["taken_for"], missed, strict=True))
    workers = demo.workers()
    assert workers["made_as"].to_dict() == demo.simulation.kind.to_dict()
    spammers = workers[workers["made_as"] == "spammer"]
    assert (spammers["finding"] == "random").sum() == check.loc["spammer", "right"]


def test_workers_in_words() -> None:
    assert (
        count_kinds(pd.Series(["copier", "noisy", "noisy", "expert", "expert", "expert"]))
        == "3 experts, 2 noisy, 1 copier"
    )


# ---------------------------------------------------------------------- footnotes


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
